#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A trace that is exported and read again has the same report.
. "$ROOT/tests/lib.sh"

"$WEIR" record -o cpu.weir -F 2000 -- perl -e 'sub f { my $x = 0; $x += $_ for 1 .. 20000; $x } sub g { f() for 1 .. 100 } g()' >record.txt 2>&1 || {
	skip "round trips: $(head -n 1 record.txt)"
	finish
}
printf '7: main parse\n7: main parse\n8: main\n8: main eval add\n' >samples.txt
"$WEIR" import samples samples.txt -o samples.weir

# rows FILE [METRIC]: what a report has of each function; a name in several files is one, since not all formats have
# files
rows() { "$WEIR" report flat "$1" ${2:+--metric "$2"} --json | python3 -SE -c 'import json, sys, collections
sums = collections.Counter()
for r in json.load(sys.stdin)["rows"]:
    if r["kind"] != "thread" and not r["name"].startswith("["):
        sums[r["name"]] += r["base"]
print("\n".join(sorted("%s %s" % i for i in sums.items() if i[1])))'; }
# paths FILE: what each call path used
paths() { "$WEIR" export folded "$1" | sed 's/^[^;]*;//' | sort; }

# The format, how a file of it is called, the metric of a recording that it keeps
while read -r format file metric; do
	"$WEIR" export "$format" cpu.weir -o "cpu.$file" >export.txt
	equal "$format: a recording has the same report when it was exported and read again" \
		"$(rows cpu.weir "$metric")" "$(rows "cpu.$file")"
	"$WEIR" export "$format" samples.weir -o "samples.$file" >export.txt
	equal "$format: and samples have the same call paths" "$(paths samples.weir)" "$(paths "samples.$file")"
done <<'TABLE'
folded folded samples
pprof pb.gz cpu
firefox json.gz cpu
speedscope speedscope.json cpu
chrome json cpu
TABLE

"$WEIR" import events "$ROOT/tests/golden/events.txt" -o events.weir
calls() { "$WEIR" report flat "$1" --json | python3 -SE -c 'import json, sys
print("\n".join(sorted("%s %s %s %s" % (r["name"], r["calls"], r["base"], r["cum"]) for r in json.load(sys.stdin)["rows"] if r["kind"] != "thread")))'; }
while read -r format file; do
	"$WEIR" export "$format" events.weir -o "events.$file" >export.txt
	equal "$format: calls have the same report when they were exported and read again" "$(calls events.weir)" "$(calls "events.$file")"
done <<'TABLE'
chrome json
speedscope speedscope.json
TABLE
