#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# From a count file to every report: files made by tests/fixtures/count_files/make_counts.py, and one
# that describes a real program, for its lines.
. "$ROOT/tests/lib.sh"
make_counts="python3 $ROOT/tests/fixtures/count_files/make_counts.py"
second="python3 $ROOT/tests/format/read_trace.py --counts"

if ! command -v zstd >zstd.txt; then
	skip "count files are reported: there is no zstd program for the second reader of traces"
	finish
fi

rows() { "$WEIR" report "$@" | tail -n +2 | sed -E 's/^ +//; s/ +/ /g'; }

for case in $($make_counts --list); do
	[ "$case" = program ] || $make_counts "$case" "$case.weir" || not_ok "makes the count file $case"
done

# --- the example of golden/average.txt, in tenths of a second ---------------------------------

expected=$(awk '/^[a-zA-Z]/ { printf "%s %d %d\n", $1, $2 * 10 + 0.5, $4 * 10 + 0.5 }' "$ROOT/tests/golden/average.txt")
"$WEIR" report flat average.weir --json >flat.json || not_ok "a count file is reported"
equal "self and self+descendants of the golden example are exact, not averages" "$(sort <<<"$expected")" \
	"$(json flat.json '"\n".join("%s %d %d" % (r["name"], r["base"], r["cum"]) for r in j["rows"] if r["kind"] == "native")' | sort)"
equal "D is 300 below B and 100 below C, 40 calls each" "5 1 40 300 300 - - - - - D
5 1 40 100 100 - - - - - D" "$(rows tree average.weir | grep ' D$')"
equal "callers of D have their own shares" "Parent 40 300 300 B
Parent 40 100 100 C" "$(rows arcs average.weir --filter '^D$' | grep Parent)"
equal "min and max are the own instructions of the cheapest and the dearest call" "2 8 300 300" \
	"$(json flat.json '"%d %d %d %d" % tuple(r[k] for n in "DC" for r in j["rows"] if r["name"] == n for k in ("min", "max"))')"
equal "the metric is instructions" "instructions 1 1011" "$(json flat.json 'j["metric"]["name"] + " " + j["metric"]["unit"] + " " + str(j["total"])')"
equal "cycles that the program summed are by node" "4 1 1 100 250 - - - - B" \
	"$(rows tree average_cycles.weir --metric cycles | grep ' B$')"

# --- sums, in every file -----------------------------------------------------------------------

bad=
for case in average average_cycles threads foreign left sites killed; do
	"$WEIR" import counts $case.weir -o $case.trace || bad+="$case(import) "
	$second $case.trace >counts.json || bad+="$case(second reader) "
	total=$("$WEIR" report flat $case.trace --json >of_trace.json; json of_trace.json 'j["total"]')
	[ "$(json counts.json 'sum(b["count"] * b["instructions"] for f in j["functions"] for b in f["blocks"])')" = "$total" ] || bad+="$case(blocks) "
	[ "$(json counts.json 'sum(n["instructions"] for n in j["nodes"])')" = "$total" ] || bad+="$case(nodes) "
	[ "$(json counts.json 'sum(s[2] for s in j["sums"])')" = "$total" ] || bad+="$case(functions) "
	[ "$(json counts.json 'all(sum(n["instructions"] for n in j["nodes"] if n["thread"] == t) == sum(s[2] for s in j["sums"] if s[0] == t) for t in {n["thread"] for n in j["nodes"]})')" = True ] || bad+="$case(threads) "
	"$WEIR" report arcs $case.weir --json >arcs.json && python3 "$ROOT/tests/golden/model.py" check-arcs arcs.json || bad+="$case(arcs) "
	[ "$(rows tree $case.weir)" = "$(rows tree $case.trace)" ] || bad+="$case(trace) "
done
equal "blocks, nodes, functions and reports add up to the same, file or trace" "" "$bad"

# --- calls that did not come back ------------------------------------------------------------------

$second left.trace >counts.json
equal "a block that was left is in parts, each executed as often as it was" "main 4 5 main 2 3 work 1 5 work 2 4 work 1 5" \
	"$(json counts.json '" ".join("%s %d %d" % (f["name"], b["instructions"], b["count"]) for f in j["functions"] for b in f["blocks"])')"

# --- threads, uncharged cost, functions that did not run ---------------------------------------

equal "what a thread has not charged yet is its current node's" "0 1 1 5 67 4242_4243
1 1 1 62 62 - work::run(int)" "$(rows tree threads.weir --thread two)"
equal "each thread has its row" "4242 4242 . . 140 . one
4242 4243 . . 67 . two" "$(rows threads threads.weir)"
"$WEIR" report threads.weir >summary.txt
check "the summary says how many functions were executed" grep -q '2 of 4 functions were executed, 3 of 4 blocks' summary.txt
check "the summary says what was not counted" grep -q '1 function was not counted: 1 ' summary.txt
check "the summary says what ran" grep -qx 'prog -x' summary.txt
"$WEIR" report threads.weir --json >summary.json
equal "the summary has it in JSON too" "[4, 2, 1, 4, 3, None]" "$(json summary.json '[j["run"][k] for k in ("functions", "functions_executed", "functions_left_alone", "blocks", "blocks_executed", "foreign_ns")]')"

# --- foreign code, call sites, no call tree ----------------------------------------------------

"$WEIR" report flat foreign.weir --json >foreign.json
equal "and its min and max are no ticks among instructions" "None None" "$(json foreign.json '"%s %s" % tuple(r[k] for r in j["rows"] if r["name"] == "write" for k in ("min", "max"))')"
equal "foreign code is timed, callbacks taken out" "1 1 1 0 4000 - main
2 1 3 1000 1000 - - write
2 1 1 1000 3000 - - qsort
3 1 10 0 2000 - - - compare
4 1 10 2000 2000 - - - - write" "$(rows tree foreign.weir --metric foreign | tail -n +2)"
equal "calls from two places are two rows with their places, a jump has none" "Parent 5 5 5 A+0x2c
Parent 3 30 30 A+0x20
Parent 1 2 2 A
Self 9 37 37 D" "$(rows arcs sites.weir --filter '^D$')"
equal "the tree has the places too" "D [A+0x20], D [A+0x2c], D" "$(rows tree sites.weir | sed -n 's/.*- \(D.*\)/\1/p' | paste -sd, | sed 's/,/, /g')"
"$WEIR" report flat counts_only.weir --json >flat.json
equal "without call trees there is base, but no calls and no cum" "work::run(int) 150 None None, main 23 None None" \
	"$(json flat.json '", ".join("%s %s %s %s" % (r["name"], r["base"], r["calls"], r["cum"]) for r in j["rows"] if r["kind"] == "native")')"
fails "a tree that was not kept is refused" 1 "has no call tree" "$WEIR" report tree counts_only.weir
fails "callers that were not kept are refused" 1 "has no call tree" "$WEIR" report arcs counts_only.weir --json
fails "a metric that was not measured is refused" 1 "has no metric 'cpu' \(it has: instructions, calls\)" "$WEIR" report average.weir --metric cpu
equal "folded stacks have the paths" "one;main 100
one;main;work::run(int) 40
two 5
two;work::run(int) 62" "$("$WEIR" export folded threads.weir)"

# --- what is missing ----------------------------------------------------------------------------

"$WEIR" report loss average.weir >loss.txt
check "a program that is gone is told" grep -q "'/nonexistent/prog' cannot be read (No such file or directory): there are no source lines" loss.txt
"$WEIR" report loss losses.weir >loss.txt
equal "calls without a node are a loss" 3 $?
check "calls without a node are told" grep -q '^ *9  a call had no node' loss.txt
check "nodes with more than their blocks are told" grep -q '1000  call trees were charged with more' loss.txt
"$WEIR" report killed.weir >killed.txt
equal "a killed program has lost nothing" 0 $?
check "and its counts are there up to the end" grep -q 'counted exactly: 1022 instructions' killed.txt
"$WEIR" report tree hostile.weir >hostile.txt 2>&1
equal "a hostile file is read with losses" 3 $?
check "its control characters are not printed" grep -q 'esc?\[31m' hostile.txt
"$WEIR" report loss average.weir --to 1s >loss.txt
check "a window does not apply, and it is told" grep -q 'counts have no times' loss.txt

bad=
size=$(stat -c %s threads.weir)
for n in 8 100 2215 2216 2300 264104 270336 274440 278000 $((size - 4097)) $((size - 1)); do
	head -c "$n" threads.weir >cut.weir
	"$WEIR" report flat cut.weir >cut.txt 2>&1
	rc=$?
	[ $rc -eq 1 ] || [ $rc -eq 3 ] || [ $rc -eq 0 ] || bad+="$n($rc) "
	[ $rc -ne 0 ] || [ "$n" -gt $((size - 4096)) ] || bad+="$n(no loss) "
done
equal "a file that is cut off is refused or read with losses" "" "$bad"
head -c 2000 average.weir >cut.weir
fails "a header that is cut off is refused with a sentence" 1 "^weir: 'cut.weir': the header of the count file is cut off$" "$WEIR" report cut.weir
fails "import refuses what is no count file" 1 "^weir: '.*average.txt': is not a count file$" "$WEIR" import counts "$ROOT/tests/golden/average.txt" -o no.weir
check "and leaves nothing behind" test ! -e no.weir
fails "an unknown processor is refused" 1 "'z80' is not a known processor" "$WEIR" report average.weir --cpu z80

# --- a real program: lines and cycles -----------------------------------------------------------

cat >prog.c <<'END'
#include <stdio.h>

__attribute__((noinline)) int work(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += i * n;
	return sum;
}

int main(void)
{
	printf("%d\n", work(7));
	return 0;
}
END
if ! gcc -g -O1 -fcf-protection=full -o prog prog.c 2>gcc.err || ! command -v objdump addr2line >tools.txt; then
	skip "lines of a real program: gcc, objdump or addr2line is missing"
	finish
fi
$make_counts program program.weir "$PWD/prog"
"$WEIR" import counts program.weir -o program.trace && $second program.trace >counts.json
# FILE:LINE of every instruction of work, by objdump and addr2line.
start=$(nm prog | awk '$3 == "work" { print $1 }')
objdump -d --no-show-raw-insn --disassemble=work prog | sed -nE 's/^ +([0-9a-f]+):\t.*/0x\1/p' >addresses.txt
addr2line -e prog $(cat addresses.txt) | sed 's/ (disc.*//; s/.*prog.c:/prog.c:/' | sort | uniq -c | awk '{ print $2, $1 }' >expected.txt
json counts.json '"\n".join("prog.c:%d %d" % (l[1], l[2]) for f in j["functions"] if f["name"] == "work" for b in f["blocks"] for l in b["lines"])' |
	awk '{ n[$1] += $2 } END { for (l in n) print l, n[l] }' | sort >lines.txt
equal "every instruction is of the line that addr2line says" "$(cat expected.txt)" "$(cat lines.txt)"
equal "the function has its address in the image" "$((16#$start))" "$(json counts.json '[f["address"] for f in j["functions"] if f["name"] == "work"][0]')"
equal "all files are absolute" "['$PWD/prog.c']" "$(json counts.json 'sorted({l[0] for f in j["functions"] if f["name"] == "work" for b in f["blocks"] for l in b["lines"]})')"
"$WEIR" report program.weir --metric cycles >cycles.txt
check "the summary says how far modelled cycles may be from the time" \
	grep -q "of the time of measured programs, [0-9]* to [0-9]* % was in other" cycles.txt
"$WEIR" report program.weir --metric cycles --json >cycles.json
equal "so does its JSON" True "$(json cycles.json "j['run']['cost_model_error'].endswith(' %')")"
"$WEIR" report flat program.weir --metric cycles --json >cycles.json
equal "blocks have modelled cycles, of functions alone" "True True" \
	"$(json cycles.json '" ".join(str(all(x)) for x in zip(*[(r["base"] > 0, r["cum"] is None) for r in j["rows"] if r["kind"] == "native"]))')"
equal "their sum is the total" True "$(json cycles.json 'sum(r["base"] for r in j["rows"]) == j["total"] > 0')"
fails "cycles by call are refused, with what to do" 1 "cycles by function, not by call .* --metric instructions has both" "$WEIR" report tree program.weir --metric cycles
equal "a program that has its own lines and symbols has nothing to note" 0 "$("$WEIR" report loss program.weir --json >loss.json; json loss.json 'len(j["rows"])')"

mv prog elsewhere
"$WEIR" report loss program.weir >loss.txt
check "a program that was moved is told" grep -q "prog' cannot be read" loss.txt
"$WEIR" report loss program.weir --exe elsewhere --json >loss.json
equal "--exe finds it" 0 "$(json loss.json 'len(j["rows"])')"
sed -i 's/i \* n/i + n/' prog.c
gcc -g -O1 -o prog prog.c
"$WEIR" report loss program.weir >loss.txt
check "a program that was built again is told" grep -q "is not the program that ran (its build-id is another)" loss.txt
equal "counts and names stay" "$("$WEIR" report tree program.weir --exe elsewhere)" "$("$WEIR" report tree program.weir)"
gcc -g -O1 -Wl,--build-id=none -o plain prog.c
$make_counts program plain.weir "$PWD/plain"
"$WEIR" report loss plain.weir --json >loss.json
equal "without a build-id size and time are compared" 0 "$(json loss.json 'len(j["rows"])')"
touch -d '2001-01-01' plain
"$WEIR" report loss plain.weir >loss.txt
check "a time that changed is told" grep -q 'it was changed since' loss.txt
gcc -O1 -o prog prog.c
$make_counts program bare.weir "$PWD/prog"
"$WEIR" report loss bare.weir >loss.txt
check "a program without debug information is told" grep -q 'no debug information: there are no source lines' loss.txt
