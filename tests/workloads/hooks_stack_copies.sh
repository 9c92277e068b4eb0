# SPDX-License-Identifier: MIT
# --stack-at where the whole length of a stack can be copied (a large environment lies above it): each call
# has its stack, in 32-bit programs, too, whose rings are smaller.
. "$ROOT/tests/lib.sh"

cat >calls.c <<'C'
#include <stdio.h>
__attribute__((noipa)) long asked(long x) { return x * 12345 + 77777; }
int main(void)
{
	long sum = 0;

	for (int i = 0; i < 300; i++)
		sum = asked(sum);
	printf("%d\n", sum != 0);
	return 0;
}
C
LARGE=$(head -c 20000 /dev/zero | tr '\0' x)
export LARGE
for bits in 64 32; do
	gcc -g -O2 "-m$bits" -o "calls$bits" calls.c 2>build.txt || { skip "$bits bits: $(head -n 1 build.txt)" && continue; }
	"$WEIR" record -q --events asked --stack-at asked -o "$bits.weir" -- "./calls$bits" >out.txt
	"$WEIR" report flat "$bits.weir" --json >flat.json
	python3 - "$bits" <<'PY'
import json, sys
flat = json.load(open("flat.json"))
rows = [r for r in flat["rows"] if r["name"] == "asked"]
lost, stacks = flat["loss"].get("events_lost", 0), flat["loss"]["stacks"]  # those of samples, too
good = not lost and stacks >= 300 and sum(r["calls"] or 0 for r in rows) == 300
print("ok" if good else "not ok", f"{sys.argv[1]} bits: every call has its stack")
if not good:
    print(f"  {lost} lost, {stacks} stacks: {flat['loss']}")
PY
done
