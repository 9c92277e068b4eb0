#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Import and export: the grammar, its mistakes, what is left behind, and the formats of other tools.
. "$ROOT/tests/lib.sh"

wrong() { # SENTENCE FORMAT TEXT PATTERN
	printf "$3" >wrong.txt
	rm -f wrong.weir
	fails "$1" 1 "^weir: 'wrong.txt':$4" "$WEIR" import "$2" wrong.txt -o wrong.weir
	[ ! -e wrong.weir ] || not_ok "$1: leaves nothing behind"
}
wrong "a word that is not a time is refused" events 'x enter A\n' "1: 'x' is not a time"
wrong "the number of the line counts comments and empty lines" events '# c\n\n0 enter A\n1 jump B\n' "4: 'jump' is not an event"
wrong "a time without an event is refused" events '0\n' "1: there is a time, but no event"
wrong "an event without a name is refused" events '0 enter\n' "1: the name of the routine is missing"
wrong "a thread that is not a number is refused" events '0 enter A one\n' "1: 'one' is not a thread number"
wrong "a word too many is refused" events '0 enter A 1 2\n' "1: '2' is one word too many"
wrong "a time that goes back is refused" events '5 enter A\n4 leave A\n' "2: time 4 is before 5"
wrong "a time that does not fit 64 bits is refused" events '18446744073709551616 enter A\n' "1: '18446744073709551616' is not a time"
wrong "an amount that is missing is refused" events '0 add io\n' "1: 'add' needs a metric and an amount"
wrong "a zero byte in a name is refused" events '0 enter A\0B\n' "1: a name has a zero byte"
wrong "a stack without names is refused" samples 'A\n7:\n' "2: the stack is empty"

fails "a file that is not there is refused" 1 "^weir: 'none.txt'" "$WEIR" import events none.txt
fails "an unknown format is wrong usage" 2 "'xml' is not a format" "$WEIR" import xml none.txt
fails "import without a file is wrong usage" 2 "needs a format and one file" "$WEIR" import events

printf '# c\r\n 7:\tA  B # why\r\nA B#1\n8: A\n  \nA: B' >odd.txt
"$WEIR" import samples odd.txt && "$WEIR" report samples --json >odd.json
equal "blanks, comments, line ends and thread numbers are understood" \
	"[(7, 'A B'), (None, 'A B#1'), (8, 'A'), (None, 'A: B')]" \
	"$(json odd.json '[(r["tid"], " ".join(f["name"] for f in r["stack"])) for r in j["rows"]]')"
equal "each thread has its own root" "pid_7 pid_8 pid_tid" \
	"$("$WEIR" report flat --json >f.json && json f.json '" ".join(sorted(r["name"] for r in j["rows"] if r["kind"] == "thread"))')"

printf 'A B\n' | "$WEIR" import samples - -o stdin.weir
equal "standard input is read for -" "pid_tid;A;B 1" "$("$WEIR" export folded stdin.weir)"
"$WEIR" import samples odd.txt
check "an older trace is kept" test -s trace.weir.old
printf 'x\n' >bad.txt
cp trace.weir before.weir
"$WEIR" import events bad.txt 2>/dev/null
check "a failed import leaves the older trace alone" cmp -s trace.weir before.weir

fails "a full disk is a failure, not a trace" 1 "^weir: '/dev/full'" "$WEIR" import samples odd.txt -o /dev/full
: >empty.txt
"$WEIR" import events empty.txt -o empty.weir && "$WEIR" report flat empty.weir --json >empty.json
equal "an empty file makes an empty trace" "0 0" "$(json empty.json '"%d %d" % (j["total"], len(j["rows"]))')"

# Folded
printf '1: main;x parse\n1: main;x parse\n2: main;x\n' >semi.txt
"$WEIR" import samples semi.txt -o semi.weir
equal "a semicolon in a name does not end it" "pid_1;main:x;parse 2
pid_2;main:x 1" "$("$WEIR" export folded semi.weir)"
"$WEIR" import events "$ROOT/tests/golden/events.txt" -o g.weir
equal "the folded counts of a trace of events add up to its total" 19 \
	"$("$WEIR" export folded g.weir | awk '{n += $NF} END {print n}')"
"$WEIR" export folded g.weir -o g.folded
check "folded goes to the file that is named" test "$(wc -l <g.folded)" -eq 9
equal "one thread can be exported alone" "pid_2;main:x 1" "$("$WEIR" export folded semi.weir --thread 2)"

# pprof
"$WEIR" import samples "$ROOT/tests/golden/samples.txt" -o s.weir
"$WEIR" export pprof s.weir && python3 "$ROOT/tests/format/read_pprof.py" profile.pb.gz >s.json
equal "a pprof profile has the stacks of the trace" \
	"$(grep -v '^#' "$ROOT/tests/golden/samples.txt" | tr ' ' ';' | sort | uniq -c | awk '{print $2, $1}')" \
	"$(json s.json '"\n".join(sorted("%s %d" % i for i in j["folded"].items()))')"
equal "its only type is the number of samples" "[['samples', 'count']] [10]" "$(json s.json '"%s %s" % (j["types"], j["totals"])')"
"$WEIR" export pprof g.weir -o g.pb.gz && python3 "$ROOT/tests/format/read_pprof.py" g.pb.gz >g.json
equal "events are exported with their calls and their time" "[['calls', 'count'], ['time', 'count']] [10, 19]" \
	"$(json g.json '"%s %s" % (j["types"], j["totals"])')"
"$WEIR" export pprof empty.weir -o empty.pb.gz
check "an empty trace makes a valid profile" sh -c "python3 '$ROOT/tests/format/read_pprof.py' empty.pb.gz >/dev/null"
printf 'garbage' | gzip >garbage.pb.gz
check "the reader of these tests refuses garbage" sh -c "! python3 '$ROOT/tests/format/read_pprof.py' garbage.pb.gz >/dev/null 2>&1"

# A recursion 100,000 deep
python3 -c '
n = 100000
for i in range(n): print(i, "enter f")
for i in range(n): print(n + i, "leave f")' >deep.txt
"$WEIR" import events deep.txt -o deep.weir && "$WEIR" report flat deep.weir --json >deep.json
equal "a recursion 100,000 deep is reported" "[(100000, 199999, 199999)]" \
	"$(json deep.json '[(r["calls"], r["base"], r["cum"]) for r in j["rows"] if r["name"] == "f"]')"
equal "its tree has a row for each level" 100001 "$("$WEIR" report tree deep.weir | tail -n +2 | wc -l)"
# Exports write each path in full: 5,000 levels are enough there.
python3 -c '
n = 5000
for i in range(n): print(i, "enter f")
for i in range(n): print(n + i, "leave f")' >deep.txt
"$WEIR" import events deep.txt -o deep.weir
equal "folded counts of deep paths add up" 9999 "$("$WEIR" export folded deep.weir | awk '{n += $NF} END {print n}')"
"$WEIR" export pprof deep.weir -o deep.pb.gz && python3 "$ROOT/tests/format/read_pprof.py" deep.pb.gz >deep.pprof.json
equal "and so does their profile" "[5000, 9999]" "$(json deep.pprof.json 'j["totals"]')"

printf '%s\n' '0 open A' '1 enter B' '3 leave B' '5 leave A' >open.txt
"$WEIR" import events open.txt -o open.weir
equal "a function that is open already is no call" "pid_tid:1:0:5 A:0:3:5 B:1:2:2" \
	"$("$WEIR" report tree open.weir --json | python3 -c 'import json, sys
print(" ".join("%s:%s:%s:%s" % (r["name"], r["calls"], r["base"], r["cum"]) for r in json.load(sys.stdin)["rows"]))')"

fails "export without a format is wrong usage" 2 "needs a format" "$WEIR" export
fails "an unknown export format is wrong usage" 2 "'svg' is not a format" "$WEIR" export svg g.weir
fails "a trace that is not there is a failure" 1 "^weir: 'none.weir'" "$WEIR" export folded none.weir
fails "an output that cannot be written is a failure" 1 "^weir: '/nowhere/x'" "$WEIR" export folded g.weir -o /nowhere/x
fails "a full disk is a failure of the export too" 1 "^weir: '/dev/full'" "$WEIR" export pprof g.weir -o /dev/full
check "the device is still a device" test -c /dev/full
