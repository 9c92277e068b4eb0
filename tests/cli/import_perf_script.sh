#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The text of perf script with everything that makes it hard to read: blanks in names, missing fields, brackets in brackets.
. "$ROOT/tests/lib.sh"

cat >odd.txt <<'END'
# captured on: a comment
my prog 1 12/13 [003] 1.000001: 250000 cpu-clock:u:
	    7f12 operator()(int, char)+0x12 (/tmp/a b (deleted))
  src/a b.c:12
	      45 inner(int)+0x1 (inlined)
	      45 std::map<int, int>::f(int) const+0x3 ([JIT app cache])
	ffffffff81000010 entry+0x10 ([kernel.kallsyms])

x  12 2.000000001: PERF_RECORD_LOST lost 7
          idle     0 [001]     3.100000:      500000 cpu-clock:u:  ffffffff81000020 halt+0x0 ([kernel.kallsyms])
x/y  77/78 4.5: sched:sched_switch: prev_comm=a prev_pid=5 ==> next: b

END
"$WEIR" report flat odd.txt --json >flat.json 2>err.txt
equal "what was lost there is lost here" 3 $?
equal "self figures" "[('halt', 500000), ('operator()(int, char)', 250000)]" \
	"$(json flat.json 'sorted((r["name"], r["base"]) for r in j["rows"] if r["base"])')"
equal "totals: blanks, brackets and inlined calls" \
	"['entry kernel', 'halt kernel', 'inner(int) inline', 'operator()(int, char) native', 'std::map<int, int>::f(int) const native']" \
	"$(json flat.json 'sorted(r["name"] + " " + r["kind"] for r in j["rows"] if r["kind"] not in ("thread",) and r["cum"])')"
equal "threads; the idle task's is none" "['12 13', '77 78', 'None None']" \
	"$("$WEIR" report threads odd.txt --json 2>/dev/null | json /dev/stdin 'sorted("%s %s" % (r["pid"], r["tid"]) for r in j["rows"])')"
equal "another event is another metric" 1 "$("$WEIR" report flat odd.txt --json --metric sched:sched_switch 2>/dev/null | json /dev/stdin 'j["total"]')"
equal "lost samples and guesses are counted" "7 1" "$("$WEIR" report loss odd.txt --json 2>/dev/null |
	json /dev/stdin '"%d %d" % (j["loss"]["samples_lost"], sum("without a period" in r for r in j["loss"]["reasons"]))')"

printf 'a b 5 \n\t 1000 f\n\t 1001 g\n\na b 5 \n\t 1000 f\n\n' >bare.txt
equal "without times, periods and events samples are counted" "2 2 1" \
	"$("$WEIR" report flat bare.txt --json 2>/dev/null | json /dev/stdin '"%d %d %d" % (j["total"],
		sum(r["base"] for r in j["rows"] if r["name"] == "f"), sum(r["cum"] for r in j["rows"] if r["name"] == "g"))')"
"$WEIR" import perf-script odd.txt -o odd.weir 2>err.txt
equal "the trace says what the text says" "$("$WEIR" report flat odd.txt 2>/dev/null)" "$("$WEIR" report flat odd.weir 2>/dev/null)"
printf 'nothing\nof this\n' >other.txt
fails "another text is refused" 1 'there is no sample' "$WEIR" import perf-script other.txt -o other.weir
finish
