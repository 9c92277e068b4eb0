# SPDX-License-Identifier: MIT
# A trace is read later, elsewhere, with symbols from a catalog: names and lines that the recorded
# program did not have, other versions refused, and any address resolved when the program is gone.
. "$ROOT/tests/lib.sh"
export WEIR_CATALOG=$PWD/none.wsym

cat >prog.c <<'C'
#include <stdio.h>
#include <unistd.h>
static inline __attribute__((always_inline)) unsigned mix(unsigned x)
{
	for (int i = 0; i < 64; i++)
		x = x * 1664525u + VERSION; /* the loop that costs */
	return x;
}
static __attribute__((noinline)) unsigned hidden_work(unsigned n)
{
	unsigned x = 1;
	for (unsigned i = 0; i < n; i++)
		x += mix(i);
	return x;
}
__attribute__((noinline)) unsigned never_sampled(unsigned x)
{
	return x ^ 0x5a5a;
}
int main(void)
{
	unsigned x = hidden_work(3000000);
	printf("%d %p %p\n", (int)getpid(), (void *)never_sampled, (void *)hidden_work);
	return x == never_sampled(12345);
}
C
mkdir -p run one two
gcc -O2 -g -DVERSION=1013904223u -rdynamic -o one/prog prog.c
gcc -O2 -g -DVERSION=1013904225u -rdynamic -o two/prog prog.c
for v in one two; do
	objcopy --only-keep-debug $v/prog $v/prog.debug
	strip -s $v/prog
done
cp one/prog run/prog
"$WEIR" record -q -o t.weir -- ./run/prog >said.txt
read -r pid never hidden <said.txt
"$WEIR" report flat t.weir --json >plain.json
equal "a stripped program's static function has no name" False \
	"$(json plain.json 'any(r["name"] == "hidden_work" for r in j["rows"])')"

# --- the catalog of the same version ---
"$WEIR" symbols merge -q --no-search -o one.wsym one/prog.debug >/dev/null
"$WEIR" report flat t.weir --catalog one.wsym --json >named.json
equal "a catalog made of the debug file names it" True \
	"$(json named.json 'any(r["name"] == "hidden_work" and r["kind"] == "native" for r in j["rows"])')"
equal "and what was inlined into it" True \
	"$(json named.json 'any(r["name"] == "mix" and r["kind"] == "inline" and r["base"] * 2 > j["total"] for r in j["rows"])')"
"$WEIR" report samples t.weir --catalog one.wsym --json >samples.json
cat >lines.py <<'PY'
import json, sys
lines = {}
for s in json.load(open(sys.argv[1]))["rows"]:
    top = s["stack"][-1]
    if top["name"] == "mix":
        assert top["file"].endswith("/prog.c"), top
        lines[top["line"]] = lines.get(top["line"], 0) + 1
assert lines and set(lines) <= {5, 6}, lines
callers = {s["stack"][-2]["name"] for s in json.load(open(sys.argv[1]))["rows"] if s["stack"][-1]["name"] == "mix"}
assert callers == {"hidden_work"}, callers
PY
check "samples have file and line of the inlined code, below its function" python3 lines.py samples.json
"$WEIR" report modules t.weir --catalog one.wsym --json >modules.json
equal "the module stands on rung build-id, with the catalog's image" "build-id True" \
	"$(json modules.json '" ".join(str(x) for r in j["rows"] if r["path"].endswith("run/prog") for x in (r["match"], r["image"] is not None))')"

# --- another version ---
"$WEIR" symbols merge -q --no-search -o two.wsym two/prog two/prog.debug >/dev/null
"$WEIR" report flat t.weir --catalog two.wsym --json >wrong.json
equal "another version is refused" False \
	"$(json wrong.json 'any(r["name"] == "hidden_work" for r in j["rows"])')"
"$WEIR" symbols verify t.weir --catalog two.wsym --json >verify.json
id() { readelf -n "$1" | sed -n 's/ *Build ID: //p'; }
both=$(json verify.json 'json.dumps(j)' | tr -d ' ')
case $both in
*"$(id one/prog | cut -c1-8)"*"$(id two/prog | cut -c1-8)"* | *"$(id two/prog | cut -c1-8)"*"$(id one/prog | cut -c1-8)"*)
	ok "with a sentence that names both identities" ;;
*) not_ok "with a sentence that names both identities" && echo "$both" | head -c 2000 ;;
esac

# --- the program is gone ---
rm -rf run one two
"$WEIR" symbols resolve --trace t.weir "$pid:$never" --json >gone.json
equal "a function that no sample hit is resolved from the trace alone" "never_sampled 0" \
	"$(json gone.json '"%s %s" % (j["rows"][0]["symbol"], j["rows"][0]["offset"])')"
"$WEIR" symbols resolve --trace t.weir --catalog one.wsym "$pid:$hidden" --json >gone2.json
equal "with the catalog, also one that was stripped" hidden_work \
	"$(json gone2.json 'j["rows"][0]["symbol"]')"
text=$("$WEIR" symbols resolve --trace t.weir --catalog one.wsym "$pid:$hidden")
check "printed as path/image(symbol+offset)" grep -q 'run/prog(hidden_work+0x0)' <<<"$text"
fails "a catalog that is not there is a clear failure" 1 "'no.wsym'" \
	"$WEIR" report flat t.weir --catalog no.wsym
