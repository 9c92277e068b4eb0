#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Reports and exports of a trace of steps that know of counts alone: tree, flat, arcs, source, coverage,
# threads, summary; callgrind, lcov, folded, pprof. All of them have every executed instruction.
. "$ROOT/tests/lib.sh"
if ! command -v gcc >tools.txt; then
	skip "reports of steps: gcc is missing"
	finish
fi
cat >prog.c <<'END'
#define CALLED __attribute__((noinline, noclone))
static volatile int sink = 1;
CALLED int leaf(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += sink;
	if (n > 100)
		sum = -1;
	return sum;
}
CALLED int never(int n)
{
	return leaf(n) + 1;
}
CALLED int twice(int n)
{
	return leaf(n) + leaf(n + 1);
}
void _start(void)
{
	int r = twice(3) + twice(4);
	if (r == 12345)
		r = never(r);
	asm volatile("syscall" : : "a"(231), "D"(0) : "rcx", "r11", "memory");
	__builtin_unreachable();
}
int main(void) { return 0; }
END
gcc -O1 -g -static -nostdlib -fno-stack-protector -fno-builtin -fno-pic -no-pie -fcf-protection=none -o prog prog.c
timeout 60 "$WEIR" steps -q -o t.weir -- ./prog
"$WEIR" report flat t.weir --json >flat.json
equal "flat: the metric is instructions" "instructions 1" "$(json flat.json 'j["metric"]["name"]+" "+j["metric"]["unit"]')"
total=$(json flat.json 'j["total"]')
"$WEIR" report steps t.weir --json >steps.json
equal "flat: the total is the number of steps" "$(json steps.json 'sum(r["kind"]=="step" for r in j["rows"])')" "$total"
equal "flat: functions have their calls" "4 2" "$(json flat.json '" ".join(str(r["calls"]) for n in ("leaf","twice") for r in j["rows"] if r["name"]==n)')"
equal "flat: nothing was lost" "0 0 0" "$(json flat.json '" ".join(str(j["loss"][k]) for k in ("samples_lost","events_lost","records_unknown"))')"
"$WEIR" report tree t.weir --json >tree.json
equal "tree: callers and callees" "_start 1, twice 2, leaf 4" "$(json tree.json '", ".join(r["name"]+" "+str(r["calls"]) for r in j["rows"][1:])')"
equal "tree: bases add up to the total" "$total" "$(json tree.json 'sum(r["base"] for r in j["rows"])')"
equal "calls are a metric too" 4 "$("$WEIR" report flat t.weir --metric calls --json >calls.json && json calls.json '[r["base"] for r in j["rows"] if r["name"]=="leaf"][0]')"
"$WEIR" report arcs t.weir --json >arcs.json
equal "arcs: who calls leaf" "[('twice', 4)]" "$(json arcs.json '[(p["name"],p["calls"]) for r in j["rows"] if r["name"]=="leaf" for p in r["parents"]]')"
check "summary: says what was counted" grep -q "counted exactly: $total instructions" <("$WEIR" report t.weir)
check "threads: one thread with all of them" grep -Eq "\b$total\b" <("$WEIR" report threads t.weir)
check "modules: the program is there" grep -q "/prog" <("$WEIR" report modules t.weir)

# What was not executed is known from the program.
"$WEIR" report coverage t.weir --json >coverage.json
equal "coverage: functions, executed and not" \
	"[('_start', 'partly executed'), ('leaf', 'partly executed'), ('main', 'not executed'), ('never', 'not executed'), ('twice', 'executed')]" \
	"$(json coverage.json 'sorted((r["function"],r["state"]) for r in j["rows"])')"
"$WEIR" report source leaf t.weir --json >source.json
equal "source: lines add up to the function" "$(json flat.json '[r["base"] for r in j["rows"] if r["name"]=="leaf"][0]')" "$(json source.json 'sum(r["base"] or 0 for r in j["rows"])')"
equal "source: the loop was executed as often as it went round" 16 "$(json source.json '[r["count"] for r in j["rows"] if "sum += sink" in (r["text"] or "")][0]')"
"$WEIR" report source leaf t.weir --asm >asm.txt
check "source --asm: the instructions of each block" grep -Eq '^\| block 0x[0-9a-f]+-0x[0-9a-f]+ executed 16 times' asm.txt

"$WEIR" export callgrind t.weir -o callgrind.out
equal "callgrind: the total" "totals: $total" "$(grep ^totals: callgrind.out)"
"$WEIR" export lcov t.weir -o coverage.info
check "lcov: a line with its count" grep -q "^DA:[0-9]*,16$" coverage.info
check "lcov: a function that was not executed" grep -q "^FNDA:0,never$" coverage.info
equal "folded: counts add up to the total" "$total" "$("$WEIR" export folded t.weir | awk '{n += $NF} END {print n}')"
"$WEIR" export pprof t.weir -o profile.pb.gz
check "pprof: is written" test -s profile.pb.gz

# The recorder was killed: there are no names in the trace, and no end.
size=$(stat -c %s t.weir)
head -c $((size - 60)) t.weir >cut.weir
"$WEIR" report flat cut.weir --json >cut.json
status=$?
equal "a trace without an end: status 3" 3 "$status"
equal "a trace without an end: the same functions" "$(json flat.json 'sorted((r["name"],r["base"]) for r in j["rows"] if not r["name"][0].isdigit())')" \
	"$(json cut.json 'sorted((r["name"],r["base"]) for r in j["rows"] if not r["name"][0].isdigit())')"
"$WEIR" report coverage cut.weir --json >cut.json
equal "a trace without an end: the same coverage" "$(json coverage.json 'j["totals"]')" "$(json cut.json 'j["totals"]')"
# The program is gone: what was executed is in the trace.
mv prog gone
"$WEIR" report tree t.weir --json >again.json
equal "without the program: the same tree" "$(json tree.json 'j["rows"]')" "$(json again.json 'j["rows"]')"
"$WEIR" report coverage t.weir --json >again.json
equal "without the program: what was executed, and that the rest is not known" "0 1" \
	"$(json again.json 'str(j["totals"]["functions"]-j["totals"]["functions_executed"])+" "+str(sum("is not at hand" in r for r in j["loss"]["reasons"]))')"
