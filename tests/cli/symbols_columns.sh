# SPDX-License-Identifier: MIT
# weir symbols resolve: columns of source lines. llvm-symbolizer judges every address of the functions.
. "$ROOT/tests/lib.sh"

cat >prog.c <<'C'
#define TWICE(x) ((x) + (x))
static inline __attribute__((always_inline)) int square(volatile int *x) { return *x * *x; }
__attribute__((noinline)) int work(int n)
{
	volatile int v = n;
	int sum = 0;
	for (int i = 0; i < n; i++) {
		sum += square(&v) + TWICE(v); if (sum & 1) v++; else sum -= square(&v);
	}
	return sum ? sum : v;
}
int main(int argc, char **argv) { (void)argv; return work(argc) == work(argc + 2); }
C
if ! command -v llvm-symbolizer >/dev/null; then
	skip "columns are those of llvm-symbolizer: it is not installed"
	finish
fi
addresses() { nm -S "$1" | awk '$4 == "work" || $4 == "main" { print $1, $2 }' | while read -r at size; do
	python3 -c "print('\n'.join('0x%x' % (0x$at + i) for i in range(0x$size)))"
done; }
# FILE:LINE:COLUMN of the innermost level of each address.
ours() { json "$1" '"\n".join("%s:%d:%d" % (l["file"], l["line"] or 0, l["column"] or 0) for l in (r["levels"][0] for r in j["rows"]))'; }
# The second line of each answer; answers are separated by blank lines. No line has no column.
theirs() { llvm-symbolizer --obj="$1" <addresses.txt | awk 'BEGIN { RS = ""; FS = "\n" } { print $2 }' | sed 's/:0:[0-9]*$/:0:0/'; }

for compiler in gcc clang; do
	command -v $compiler >/dev/null || { skip "columns of $compiler: it is not installed" && continue; }
	for form in "-O2 -gdwarf-4" "-O2 -gdwarf-5" "-O0 -gdwarf-5"; do
		# shellcheck disable=SC2086
		$compiler $form -o prog prog.c || continue
		addresses prog >addresses.txt
		"$WEIR" symbols resolve --json --image ./prog - <addresses.txt >out.json
		equal "$compiler $form: every address has the column of llvm-symbolizer" "$(theirs prog)" "$(ours out.json)"
		check "and there are many" test "$(ours out.json | sort -u | wc -l)" -ge 15
	done
done
gcc -g -O0 -o text prog.c
at=$(nm text | awk '$3 == "work" { print "0x" $1 }')
equal "in text: file:line:column" "$(printf '0x%x' "$at") $PWD/text(work+0x0) $PWD/prog.c:4:1" "$("$WEIR" symbols resolve -q --image ./text "$at")"
equal "only the innermost level has one" "[True, False]" "$(gcc -O2 -g -o inlined prog.c; addresses inlined >addresses.txt
	"$WEIR" symbols resolve --json --image ./inlined - <addresses.txt >inlined.json
	json inlined.json '[[l["column"] is not None for l in r["levels"]] for r in j["rows"] if len(r["levels"]) == 2][0]')"

gcc -O2 -gno-column-info -g -o plain prog.c
addresses plain >addresses.txt
"$WEIR" symbols resolve --json --image ./plain - <addresses.txt >plain.json
equal "without columns in the debug information there are none" "{None}" "$(json plain.json '{l["column"] for r in j["rows"] for l in r["levels"]}')"

# In merged symbol files only where they are asked for.
addresses inlined >addresses.txt
"$WEIR" symbols merge -q --no-search -o without.wsym ./inlined
"$WEIR" symbols merge -q --no-search --columns -o with.wsym ./inlined
"$WEIR" symbols merge -q --no-search -o again.wsym with.wsym
for name in with again; do
	"$WEIR" symbols resolve --json --no-search --catalog $name.wsym --image ./inlined - <addresses.txt >$name.json
	equal "a merged symbol file has them ($name)" "$(theirs inlined)" "$(ours $name.json)"
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$ROOT/tests/format python3 - $name.wsym $name.json >second.txt <<'PY'
import json, sys
from read_catalog_image import images_of, resolve
image, = images_of(sys.argv[1]).values()
print(all([l["column"] for l in r["levels"]] == [l["column"] for l in resolve(image, int(r["address"], 16))["levels"]]
          for r in json.load(open(sys.argv[2]))["rows"]))
PY
	equal "and the second reader sees the same ($name)" True "$(cat second.txt)"
done
"$WEIR" symbols resolve --json --no-search --catalog without.wsym --image ./inlined - <addresses.txt >without.json
equal "by default it has none, and the same lines" "$(theirs inlined | sed 's/:[0-9]*$/:0/')" "$(ours without.json)"
