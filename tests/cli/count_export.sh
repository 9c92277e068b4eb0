#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Exports of counts: callgrind profiles (read back by callgrind_annotate, and compared with what
# callgrind itself says of the plain program) and lcov tracefiles.
. "$ROOT/tests/lib.sh"
if ! command -v gcc >tools.txt; then
	skip "exports of counted programs: gcc is missing"
	finish
fi
export WEIR_CACHE=$PWD/cache

cat >prog.h <<'END'
static inline int twice(int n)
{
	return n > 5 ? n * 2 : n + n + 1;
}
END
cat >prog.c <<'END'
#include "prog.h"

static volatile int sink;

__attribute__((noinline)) int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

__attribute__((noinline)) void leaf(int n)
{
	for (int i = 0; i < n; i++)
		sink += twice(i);
}

__attribute__((noinline)) void unused(void)
{
	sink = 7;
}

int main(void)
{
	for (int i = 0; i < 10; i++)
		leaf(i);
	sink = fib(10);
	return 0;
}
END
flags='-O1 -g -fno-optimize-sibling-calls'
"$WEIR" count -q --metrics instructions,cycles gcc $flags -o prog prog.c && ./prog || not_ok "a program is linked and runs"

# The profile read by a reader of its own: self by function, and arcs.
cat >read.py <<'END'
import re, sys
names, self_, arcs, calls, total, events = {}, {}, {}, 0, None, []
fn = cfn = None
def name(kind, text):
    number, rest = re.match(r"\((\d+)\)(?: (.*))?$", text).groups()
    if rest is not None:
        assert (kind, number) not in names, "a name is written once"
        names[kind, number] = rest
    return names[kind, number]
for line in open(sys.argv[1]):
    line = line.rstrip("\n")
    if m := re.match(r"(fl|fi|fe|cfi)=(.*)", line): name("file", m[2])
    elif m := re.match(r"c?ob=(.*)", line): name("object", m[1])
    elif m := re.match(r"fn=(.*)", line): fn = name("fn", m[1])
    elif m := re.match(r"cfn=(.*)", line): cfn = name("fn", m[1])
    elif m := re.match(r"calls=(\d+) \d+$", line): calls = int(m[1])
    elif m := re.match(r"events: (.*)", line): events = m[1].split()
    elif m := re.match(r"(summary|totals): (.*)", line):
        assert total in (None, m[2]); total = m[2]
    elif re.match(r"\d+ ", line):
        values = [int(v) for v in line.split()[1:]]
        assert len(values) == len(events)
        if calls:
            old = arcs.setdefault((fn, cfn), [0] + [0] * len(events))
            arcs[fn, cfn] = [a + b for a, b in zip(old, [calls] + values)]
            calls = 0
        else:
            old = self_.setdefault(fn, [0] * len(events))
            self_[fn] = [a + b for a, b in zip(old, values)]
    elif line and not re.match(r"#|(version|creator|pid|cmd|part|positions|event): ", line):
        sys.exit("not understood: " + line)
assert [sum(v[i] for v in self_.values()) for i in range(len(events))] == [int(v) for v in total.split()]
if sys.argv[2] == "self":
    for f in sorted(self_): print(f, *self_[f])
elif sys.argv[2] == "arcs":
    for a in sorted(arcs): print(*a, *arcs[a])
else:
    print(*events, total)
END

"$WEIR" export callgrind prog.weir -o prog.cg || not_ok "a callgrind profile is written"
"$WEIR" report flat prog.weir --json >flat.json
"$WEIR" report flat prog.weir --metric cycles --json >cycles.json
equal "it has instructions and cycles, and the total of the report" "Ir Cy $(json flat.json 'j["total"]')" \
	"$(python3 read.py prog.cg events | cut -d ' ' -f 1-3)"
close() { [ $(($1 - $2)) -ge -3 ] && [ $(($1 - $2)) -le 3 ]; } # each function is rounded
check "its cycles are those of the report" close "$(json cycles.json 'j["total"]')" "$(python3 read.py prog.cg events | cut -d ' ' -f 4)"
flat='"\n".join(sorted("%s %d" % (r["name"], r["base"]) for r in j["rows"] if r["kind"] == "native" and r["base"]))'
equal "self of every function is the report's" "$(json flat.json "$flat")" "$(python3 read.py prog.cg self | cut -d ' ' -f 1,2)"
"$WEIR" report arcs prog.weir --json >arcs.json
equal "calls and sums of every arc are the report's" \
	"$(python3 - <<'PYTHON'
import json
arcs = {}
for r in json.load(open("arcs.json"))["rows"]:
    for c in r["children"]:
        if r["kind"] != "thread":
            old = arcs.setdefault((r["name"], c["name"]), [0, 0])
            arcs[r["name"], c["name"]] = [old[0] + c["calls"], old[1] + c["cum"]]
for a in sorted(arcs): print(*a, *arcs[a])
PYTHON
)" "$(python3 read.py prog.cg arcs | cut -d ' ' -f 1-4)"
check "inlined code is at its own lines" grep -q '^fi=.*prog.h$' prog.cg
python3 "$ROOT/tests/golden/model.py" check-arcs arcs.json || not_ok "the arcs of the report keep their sums"

if command -v callgrind_annotate >tools.txt; then
	callgrind_annotate --auto=no --threshold=100 prog.cg >annotated.txt 2>annotate.err
	equal "callgrind_annotate reads it without a word" "" "$(cat annotate.err)"
	equal "and shows the total" "$(json flat.json 'j["total"]')" "$(awk '/PROGRAM TOTALS/ { gsub(",", ""); print $1 }' annotated.txt)"
	equal "and what fib costs" "$(json flat.json '[r["base"] for r in j["rows"] if r["name"] == "fib"][0]')" \
		"$(awk '/:fib / { gsub(",", ""); print $1 }' annotated.txt)"
else
	skip "callgrind_annotate reads it: it is not installed"
fi
if command -v valgrind >tools.txt; then
	gcc $flags -o plain prog.c
	valgrind --tool=callgrind --separate-recs=1 --callgrind-out-file=real.cg ./plain >valgrind.txt 2>&1
	callgrind_annotate --auto=no --threshold=100 real.cg >real.txt 2>annotate.err
	for f in fib leaf main; do
		equal "callgrind itself counts the same in $f" \
			"$(grep -F "prog.c:$f " real.txt | awk '{ gsub(",", ""); print $1 }')" "$(grep -F "prog.c:$f " annotated.txt | awk '{ gsub(",", ""); print $1 }')"
	done
	# Sums over all places of the calls; lines "calls=N ..." are followed by "POSITION COST".
	equal "and the same for recursive calls" "$(awk '/^fn=/ { inside = / fib$/ } inside && /^calls=/ { sub("calls=", ""); n += $1; getline; sum += $2 } END { print "fib fib", n, sum }' real.cg)" \
		"$(python3 read.py prog.cg arcs | cut -d ' ' -f 1-4 | grep '^fib fib')"
else
	skip "callgrind itself counts the same: valgrind is not installed"
fi
"$WEIR" export callgrind prog.weir --metric cycles -o - >cycles.cg
equal "one metric alone can be asked for" "Cy $(python3 read.py prog.cg events | cut -d ' ' -f 4)" "$(python3 read.py cycles.cg events)"

# --- call sites apart, two functions of a name, no tree, no cycles ---------------------------------

cat >a.c <<'END'
volatile int there;
__attribute__((noinline)) static void same(void) { there++; }
void a(void) { same(); same(); there = 0; }
END
cat >b.c <<'END'
extern volatile int there;
void a(void);
__attribute__((noinline)) static void same(void) { there--; there--; }
int main(void) { same(); a(); there = 0; return 0; }
END
"$WEIR" count -q gcc $flags -o two a.c b.c && ./two || not_ok "a program of two files is linked and runs"
"$WEIR" export callgrind two.weir -o two.cg
equal "instructions alone, where cycles are not known by call" "Ir" "$(python3 read.py two.cg events | cut -d ' ' -f 1)"
equal "functions of one name are two" 2 "$(grep -cE '^c?fn=.* same$' two.cg)"
"$WEIR" count -q --counts gcc $flags -o flat prog.c && ./flat || not_ok "a program is linked with --counts and runs"
"$WEIR" export callgrind flat.weir -o flat.cg
equal "without a call tree there is self, and no calls" "$(python3 read.py prog.cg self | cut -d ' ' -f 1,2) " \
	"$(python3 read.py flat.cg self | cut -d ' ' -f 1,2) $(python3 read.py flat.cg arcs)"

# --- other traces ------------------------------------------------------------------------------------

printf '%s\n' 'main f g' 'main f' '7: main f g' 'main' | "$WEIR" import samples - -o samples.weir
"$WEIR" export callgrind samples.weir -o samples.cg
equal "samples: self by function, once for each sample" "f 1
g 2
main 1" "$(python3 read.py samples.cg self)"
equal "samples: sums of arcs, one call for want of a number" "f g 2
main f 3" "$(python3 read.py samples.cg arcs | awk '{ print $1, $2, $NF }')"
printf '%s\n' '0 enter f' '4 enter f' '7 leave f' '9 leave f' | "$WEIR" import events - -o events.weir
"$WEIR" export callgrind events.weir -o events.cg
equal "events: self and recursive calls" "f 9
f f 1 3" "$(python3 read.py events.cg self; python3 read.py events.cg arcs)"
"$WEIR" export callgrind samples.weir || not_ok "the profile has a name of its own"
check "which KCachegrind looks for" test -s callgrind.out.weir

# --- lcov -------------------------------------------------------------------------------------------

"$WEIR" export lcov prog.weir -o prog.info || not_ok "a tracefile is written"
# The grammar of geninfo(1): records in their order, and sums that fit.
cat >check_info.py <<'END'
import re, sys
order = "TN SF FN FNDA FNF FNH DA LF LH end_of_record".split()
at, seen = -1, {}
for line in open(sys.argv[1]):
    line = line.rstrip("\n")
    key, _, rest = line.partition(":")
    assert key in order, line
    if key == "TN":
        assert at in (-1, 9); at, seen = 0, {"FN": [], "FNDA": {}, "DA": {}}
    assert order.index(key) >= at, line
    at = order.index(key)
    if key == "FN": seen["FN"].append(re.fullmatch(r"\d+,(.+)", rest)[1])
    elif key == "FNDA": n, name = rest.split(",", 1); seen["FNDA"][name] = int(n)
    elif key == "DA":
        number, n = (int(v) for v in rest.split(",")); assert number not in seen["DA"]; seen["DA"][number] = n
    elif key == "FNF": assert int(rest) == len(seen["FN"]) == len(seen["FNDA"])
    elif key == "FNH": assert int(rest) == sum(v > 0 for v in seen["FNDA"].values())
    elif key == "LF": assert int(rest) == len(seen["DA"])
    elif key == "LH": assert int(rest) == sum(v > 0 for v in seen["DA"].values())
    elif key == "SF": seen["SF"] = rest
assert at == 9
END
check "it keeps to the grammar of geninfo" python3 check_info.py prog.info
equal "functions have their calls" "FNDA:177,fib
FNDA:10,leaf
FNDA:1,main
FNDA:0,unused" "$(grep -E '^FNDA:[0-9]+,(leaf|fib|main|unused)$' prog.info | sort -t , -k 2)"
line=$(grep -n 'sink += twice' prog.c | cut -d : -f 1)
equal "lines have their executions" "DA:$line,45" "$(awk '/^SF:.*prog.c$/ { inside = 1 } /^end/ { inside = 0 } inside' prog.info | grep "^DA:$line,")"
equal "lines that were not executed have none" "DA:$(grep -n 'sink = 7' prog.c | cut -d : -f 1),0" "$(grep "^DA:$(grep -n 'sink = 7' prog.c | cut -d : -f 1)," prog.info)"
"$WEIR" report coverage prog.weir --json >coverage.json
equal "the sums are those of the coverage report" "$(json coverage.json '"%d %d" % (j["totals"]["lines"], j["totals"]["lines_executed"])')" \
	"$(awk -F : '$1 == "LF" { n += $2 } $1 == "LH" { hit += $2 } END { print n, hit }' prog.info)"
if command -v lcov >tools.txt; then
	check "lcov reads it" lcov --summary prog.info >lcov.txt 2>&1
else
	skip "lcov reads it: it is not installed"
fi
fails "a trace without counts has no coverage" 1 'has no counts of blocks' "$WEIR" export lcov samples.weir -o none.info
check "and nothing is left behind" test ! -e none.info
gcc -O1 -c prog.c -o bare.o && "$WEIR" count -q gcc -o bare bare.o && ./bare || not_ok "a program without debug information is linked and runs"
fails "without source lines there is no tracefile" 1 'has no source lines' "$WEIR" export lcov bare.weir -o none.info
