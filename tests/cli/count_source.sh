#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Answers below the level of functions, for real programs linked by weir count: annotated source,
# blocks, instructions, coverage.
. "$ROOT/tests/lib.sh"
if ! command -v gcc objdump >tools.txt; then
	skip "source lines of counted programs: gcc or objdump is missing"
	finish
fi
export WEIR_CACHE=$PWD/cache

cat >prog.c <<'END'
#include <stdio.h>
#include <stdlib.h>

static volatile int sink;

__attribute__((noinline)) static void same(int n)
{
	for (int i = 0; i < n; i++)
		sink += i;
}

__attribute__((noinline)) int choose(int n)
{
	if (n > 1000) {
		sink = 1;
		printf("large\n");
	}
	return n > 3 ? n * sink : n + sink;
}

__attribute__((noinline)) void unused(int n)
{
	sink = n;
}

void other(void);

int main(int argc, char **argv)
{
	(void)argv;
	for (int i = 0; i < 10 * argc; i++)
		sink = choose(i);
	same(5);
	other();
	return 0;
}
END
cat >other.c <<'END'
static volatile int there;

__attribute__((noinline)) static void same(int n)
{
	there = n;
	there = n;
}

void other(void)
{
	for (int i = 0; i < 3; i++)
		same(i);
	there = 0;
}
END
"$WEIR" count -q gcc -O1 -g -o prog prog.c other.c || not_ok "the program is linked"
./prog || not_ok "the program runs"

line_of() { grep -n "$1" "$2" | head -n 1 | cut -d : -f 1; } # PATTERN FILE
# value TEXT-PATTERN KEY: of the row whose text matches, in rows.json
value() { python3 - "$1" "$2" <<'PYTHON'; }
import json, re, sys
rows = [r for r in json.load(open("rows.json"))["rows"] if r["text"] and re.search(sys.argv[1], r["text"])]
print(", ".join(str(r[sys.argv[2]]) for r in rows))
PYTHON

# --- lines ---------------------------------------------------------------------------------------

"$WEIR" report source choose prog.weir --json >rows.json || not_ok "source has a JSON form"
equal "an executed line has the mark of its block" '|' "$(value 'if \(n > 1000' mark)"
equal "it is counted once a call" 10 "$(value 'if \(n > 1000' count)"
equal "lines that were not executed are marked" '#, #' "$(value 'sink = 1|large' mark)"
equal "they cost nothing" '0, 0' "$(value 'sink = 1|large' base)"
equal "several blocks on a line are marked" '+' "$(value 'return n > 3' mark)"
equal "lines without code have neither mark nor figures" '  None None' \
	"$(value '^	}$' mark) $(value '^	}$' base) $(value '^	}$' percent)"
"$WEIR" report flat prog.weir --json >flat.json
base=$(json flat.json '[r["base"] for r in j["rows"] if r["name"] == "choose"][0]')
equal "the lines add up to what the function itself costs" "$base" \
	"$(json rows.json 'sum(r["base"] or 0 for r in j["rows"])')"
equal "their shares add up to 100" 100.0 "$(json rows.json 'round(sum(r["percent"] or 0 for r in j["rows"]), 2)')"
equal "line numbers and text are those of the file" "" "$(python3 - <<'PYTHON'
import json
for r in json.load(open("rows.json"))["rows"]:
    text = open(r["file"]).read().split("\n")[r["line"] - 1]
    if text != r["text"]:
        print(r["line"], text, r["text"])
PYTHON
)"
"$WEIR" report source choose prog.weir >source.txt
equal "the comment before the function has calls, callers and its cost" 1 \
	"$(grep -c "^/\* choose: 10 calls (10 by main); self $base instructions, [0-9.]* % of all \*/$" source.txt)"
equal "the comment stands right before the head of the function" "__attribute__((noinline)) int choose(int n)" \
	"$(grep -A 1 '^/\*' source.txt | tail -n 1 | sed 's/^ *[0-9]* *//')"

# Instructions by line as objdump and the counts of blocks have them: choose has 10 executions.
"$WEIR" report source choose prog.weir --json --blocks --asm >blocks.json
equal "the blocks of a line add up to the line" True \
	"$(json blocks.json 'all(sum(b["base"] for b in r["blocks"]) == r["base"] for r in j["rows"] if r["base"] is not None)')"
equal "a line with several blocks has them all" True \
	"$(json blocks.json 'all((len(r["blocks"]) > 1) == (r["mark"] == "+") for r in j["rows"] if r["mark"] in "|+")')"
equal "instructions times counts are the function's cost" "$base" \
	"$(json blocks.json 'sum(b["count"] * len(b["instructions"]) for b in j["functions"][0]["assembly"])')"
gcc -O1 -g -o plain prog.c other.c
# The mnemonics of the program as it is without weir, in order; names of conditions differ.
mnemonics() { sed -E 's/^j(le|ng|nle|g|e|z|ne|nz|l|nge|nl|ge|b|nb|ae|be|nbe|a)$/jcc/; s/^(ret|call)q$/\1/; s/^(mov|add|sub|lea|cmp|xor|imul|push|pop|test)[lqwb]$/\1/'; }
equal "the instructions are those of the plain program" \
	"$(objdump -d --no-show-raw-insn --disassemble=choose plain | sed -nE 's/^ +[0-9a-f]+:\t([a-z]+).*/\1/p' | mnemonics)" \
	"$(json blocks.json '"\n".join(i["text"].split()[0] for b in j["functions"][0]["assembly"] for i in b["instructions"])' | mnemonics)"
"$WEIR" report source choose prog.weir --asm >asm.txt
check "the listing has blocks that were not executed" grep -q '^# block 0x.* executed 0 times' asm.txt
check "calls have the names of functions" grep -Eq 'call 0x[0-9a-f]+ <choose>$' <("$WEIR" report source main prog.weir --asm)
equal "nothing of the inserted code is listed" 0 "$(grep -c '%gs:' asm.txt)"

# --- functions ------------------------------------------------------------------------------------

"$WEIR" report source same prog.weir --json >rows.json
equal "functions of one name are all shown, with their own callers" "other.c 3 [('other', 3)], prog.c 1 [('main', 1)]" \
	"$(json rows.json '", ".join(sorted("%s %d %s" % (f["file"].split("/")[-1], f["calls"], [(c["name"], c["calls"]) for c in f["callers"]]) for f in j["functions"]))')"
equal "their lines are counted apart" "1, 3" \
	"$(json rows.json '", ".join(str(max(r["count"] or 0 for r in j["rows"] if r["file"].endswith(n) and r["text"] == "}")) for n in ("prog.c", "other.c"))')"
fails "a function that is not there is refused" 1 "^weir: 'prog.weir': has no function 'missing'$" "$WEIR" report source missing prog.weir
fails "source needs a function" 2 'source needs a function' "$WEIR" report source
fails "a metric that lines do not have is refused" 1 'lines have instructions and cycles, not calls' "$WEIR" report source main prog.weir --metric calls
"$WEIR" report source main prog.weir --metric cycles --json >rows.json
"$WEIR" report flat prog.weir --metric cycles --json >flat.json
equal "cycles by line add up to those of the function, but for rounding" True \
	"$(python3 - <<'PYTHON'
import json
flat = [r["base"] for r in json.load(open("flat.json"))["rows"] if r["name"] == "main"][0]
rows = json.load(open("rows.json"))
print(flat > 0 and abs(rows["functions"][0]["base"] - flat) <= 1 and abs(sum(r["base"] or 0 for r in rows["rows"]) - flat) <= len(rows["rows"]))
PYTHON
)"
"$WEIR" report source main prog.weir --limit 2 --json >rows.json
equal "--limit limits the lines" 2 "$(json rows.json 'len(j["rows"])')"
"$WEIR" import counts prog.weir -o prog.trace
equal "a trace made of the counts answers the same" "$("$WEIR" report source choose prog.weir --asm --blocks)" \
	"$("$WEIR" report source choose prog.trace --asm --blocks)"

# --- the text, and the program, elsewhere -----------------------------------------------------------

mkdir moved && mv prog.c moved/ && cp prog.weir moved/
"$WEIR" report source choose prog.weir >gone.txt
check "a text that is gone is told" grep -q 'prog.c: (its text was not found)' gone.txt
equal "the lines stay" "$(grep -c '^ *[0-9.]* .*  [|+#]  ' source.txt)" "$(grep -c '^ *[0-9.]* .*  [|+#]  \.$' gone.txt)"
check "a text beside the trace is found" grep -q 'return n > 3' <("$WEIR" report source choose moved/prog.weir)
mv moved/prog.c . && touch -d '+1 hour' prog.c
check "a text that changed since is told" grep -q 'changed since the program was made' <("$WEIR" report source choose prog.weir)
touch -d '2001-01-01' prog.c
mv prog moved/
check "without the program there are no instructions, and it is told" \
	grep -q '^no instructions: the program is not there' <("$WEIR" report source choose prog.trace --asm)
check "--exe names it" grep -q '^| block' <("$WEIR" report source choose prog.trace --asm --exe moved/prog)
mv plain prog
check "another program is not disassembled" \
	grep -q '^no instructions: the program is not the one that ran' <("$WEIR" report source choose prog.trace --asm)
mv moved/prog prog

# --- coverage ---------------------------------------------------------------------------------------

"$WEIR" report coverage prog.weir --json >coverage.json || not_ok "coverage has a JSON form"
state() { json coverage.json "', '.join('%s %s' % (r['function'], r['state']) for r in j['rows'] if r['file'] and r['file'].endswith('$1'))"; }
equal "every function has its state" "same executed, choose partly executed, unused not executed, main executed" "$(state /prog.c)"
equal "lines that were not executed are listed" "[$(line_of 'sink = 1' prog.c), $(line_of large prog.c)]" \
	"$(json coverage.json "[r['lines_not_executed'] for r in j['rows'] if r['function'] == 'choose'][0]")"
equal "the totals are the sums of the files" True \
	"$(json coverage.json 'all(sum(f[k] for f in j["files"]) == v for k, v in j["totals"].items())')"
equal "a file has its functions, and those executed" "4 3" \
	"$(json coverage.json '[str(f["functions"]) + " " + str(f["functions_executed"]) for f in j["files"] if (f["file"] or "").endswith("/prog.c")][0]')"
"$WEIR" report coverage prog.weir >coverage.txt
check "text: functions that were not executed" grep -A 3 '^Functions not executed: 1' coverage.txt >list.txt
check "with their place" grep -Eq "$PWD/prog.c:[0-9]+ +unused$" list.txt
check "text: lines of functions that were partly executed" \
	grep -q " $(line_of 'sink = 1' prog.c)-$(line_of large prog.c) .* choose$" coverage.txt
equal "a filter is on functions" "choose" "$("$WEIR" report coverage prog.weir --filter '^choose$' --json >one.json; json one.json '", ".join(r["function"] for r in j["rows"])')"

"$WEIR" count -q --skip same gcc -O1 -g -o odd prog.c other.c && ./odd || not_ok "a program is linked without some functions and runs"
"$WEIR" report coverage odd.weir --json >coverage.json
equal "functions that were left alone are not known" "not known" "$(json coverage.json "[r['state'] for r in j['rows'] if r['function'] == 'same'][0]")"
equal "with the reason" True "$(json coverage.json "bool([r['reason'] for r in j['rows'] if r['function'] == 'same'][0])")"
check "in text too" grep -q '^Functions not known (they were left alone): ' <("$WEIR" report coverage odd.weir)
fails "source of such a function says why there is none" 1 "'same' was not counted: " "$WEIR" report source same odd.weir

# --- C++: overloads, and code of headers at the head of a function --------------------------------------

if command -v g++ >tools.txt; then
	cat >shop.cc <<'END'
#include <vector>
static volatile int sink;
namespace shop {
__attribute__((noinline)) int total(const std::vector<int> &v)
{
	int s = 0;
	for (int i : v)
		s += i;
	return s;
}
__attribute__((noinline)) int total(int a, int b) { return a + b; }
}
int main()
{
	std::vector<int> v{1, 2, 3};
	sink = shop::total(v) + shop::total(1, 2);
}
END
	"$WEIR" count -q g++ -O2 -g -o shop shop.cc && ./shop || not_ok "a C++ program is linked and runs"
	"$WEIR" report source shop::total shop.weir --json >rows.json
	equal "a name without parameters stands for all overloads, each at its own line" "['shop::total(int, int) shop.cc:11', 'shop::total(std::vector<int, std::allocator<int> > const&) shop.cc:4']" \
		"$(json rows.json 'sorted("%s %s:%d" % (f["name"], f["file"].split("/")[-1], f["line"] if "int, int" in f["name"] else 4 if 4 <= f["line"] <= 9 else 0) for f in j["functions"])')"
	"$WEIR" report coverage shop.weir --json >coverage.json
	equal "functions are in their own file, whatever was inlined first" "main, shop::total(int, int), shop::total(std::vector<int, std::allocator<int> > const&)" \
		"$(json coverage.json '", ".join(sorted(r["function"] for r in j["rows"] if (r["file"] or "").endswith("/shop.cc") and "GLOBAL" not in r["function"]))')"
else
	skip "source of C++ programs: g++ is missing"
fi

# --- hostile counts -------------------------------------------------------------------------------------

make_counts="python3 $ROOT/tests/fixtures/count_files/make_counts.py"
bad=
for case in $($make_counts --list); do
	[ "$case" != program ] && $make_counts "$case" "$case.counts" || continue
	for what in "report source main" "report coverage" "export callgrind -o -" "export lcov -o -"; do
		"$WEIR" $what "$case.counts" >odd.txt 2>odd.err
		rc=$?
		[ $rc -eq 0 ] || [ $rc -eq 1 ] || [ $rc -eq 3 ] || bad+="$case($what: $rc) "
	done
done
equal "odd count files are answered or refused" "" "$bad"

# --- traces without counts ----------------------------------------------------------------------------

printf '%s\n' '0 enter main' '9 leave main' | "$WEIR" import events - -o events.weir
fails "coverage of a trace without counts is refused" 1 'has no counts of blocks' "$WEIR" report coverage events.weir
fails "source of a trace with neither counts nor samples is refused" 1 'has no source lines' "$WEIR" report source main events.weir

cat >spin.c <<'END'
__attribute__((noinline)) static double spin(long n)
{
	double s = 0;

	for (long i = 1; i < n; i++)
		s += 1.0 / (double)i;
	return s;
}

int main(void)
{
	return spin(100000000) < 0;
}
END
gcc -O1 -g -o spin spin.c
if "$WEIR" record -q -o spin.weir -- ./spin 2>record.err && "$WEIR" report source spin spin.weir --json >rows.json 2>source.err; then
	"$WEIR" report flat spin.weir --json >flat.json
	equal "samples: lines add up to what the function itself used" "$(json flat.json '[r["base"] for r in j["rows"] if r["name"] == "spin"][0]')" \
		"$(json rows.json 'sum(r["base"] or 0 for r in j["rows"])')"
	equal "samples: count and mark are not known" "{None} {' '}" "$(json rows.json 'str({r["count"] for r in j["rows"]}) + " " + str({r["mark"] for r in j["rows"]})')"
	check "samples: the lines are those of the loop" grep -q '1.0 / (double)i' rows.json
	"$WEIR" export callgrind spin.weir -o spin.cg
	check "samples: so are those of the callgrind profile" grep -Eq "^($(line_of 'for (long' spin.c)|$(line_of '1.0 /' spin.c)) [0-9]+$" spin.cg
else
	skip "source lines by samples: nothing can be sampled here: $(cat record.err source.err 2>/dev/null | head -n 1)"
fi
