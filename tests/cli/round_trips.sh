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

# rows FILE METRIC: what a report has of each function; a name in several files is one, since not all formats have files
rows() { "$WEIR" report flat "$1" --metric "$2" --json | python3 -SE -c 'import json, sys, collections
sums = collections.Counter()
for r in json.load(sys.stdin)["rows"]:
    if r["kind"] != "thread" and not r["name"].startswith("["):
        sums[r["name"]] += r["base"]
        sums[r["name"], "cum"] += r["cum"]
print("\n".join(sorted("%s %s" % i for i in sums.items())))'; }

# The format, what it calls a file of it, the metric that it keeps of a recording
while read -r format file metric; do
	for trace in cpu samples; do
		kept=$metric
		[ $trace = cpu ] || kept=samples
		"$WEIR" export "$format" $trace.weir -o "$trace.$file" >/dev/null
		equal "$format: the report of what was exported and read again is the same ($trace)" \
			"$(rows $trace.weir "$kept")" "$(rows "$trace.$file" "$kept")"
	done
done <<'TABLE'
folded folded samples
pprof pb.gz cpu
TABLE
