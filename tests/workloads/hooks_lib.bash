# SPDX-License-Identifier: MIT
# Sourced by the tests of hooked functions: builds fixtures, runs programs with and without hooks,
# and compares what they print, how they end, and how often their functions were called.
hook_fixtures=$ROOT/tests/fixtures/hooks
n_cases=0
record_options=()

# build NAME SOURCE FLAGS...: a fixture; false when the compiler cannot.
build() {
	local name=$1 source=$2 compiler=gcc
	shift 2
	[[ $source != *.cpp ]] || compiler=g++
	$compiler -w "$@" -o "$name" "$hook_fixtures/$source" -lpthread 2>build.txt
}

# same NAME GLOBS COMMAND...: runs it twice; the second time with hooks. What it prints and its status
# must be the same. The counts that it has written (fixtures/hooks/calls.h) are judged by judge_counts.
# Samples are taken meanwhile; none in the kernel, whose names take longer than most of these programs.
same() {
	local name=$1 globs=$2 folder=case_$n_cases plain hooked
	shift 2
	n_cases=$((n_cases + 1))
	mkdir -p $folder
	echo "$name" >$folder/name
	# In braces, because the shell itself says so when a program dies of a signal.
	{ CALLS=$folder/calls.plain timeout 60 "$@" >$folder/out.plain 2>$folder/err.plain; } 2>/dev/null
	plain=$?
	{ CALLS=$folder/calls timeout 120 "$WEIR" record -q --user-only "${record_options[@]}" --events "$globs" \
		-o $folder/t.weir -- "$@" >$folder/out 2>$folder/err; } 2>/dev/null
	hooked=$?
	if [ $plain -eq $hooked ] && cmp -s $folder/out.plain $folder/out && cmp -s $folder/err.plain $folder/err; then
		ok "$name: the same output and status"
	else
		not_ok "$name: the same output and status (status $plain, with hooks $hooked)"
		diff $folder/out.plain $folder/out | head -n 5
		diff $folder/err.plain $folder/err | head -n 5
	fi
	"$WEIR" report flat $folder/t.weir --json >$folder/flat.json 2>$folder/report.txt
	[ $? -le 3 ] && "$WEIR" report hooks $folder/t.weir --json >$folder/hooks.json 2>>$folder/report.txt
	[ $? -le 3 ] || { not_ok "$name: the trace can be read" && head -n 3 $folder/report.txt; }
}

# One verdict for each case so far that wrote counts: every count is that of the program itself. A
# function may be missing only where the report says that a loop leads back to its first instruction.
judge_counts() {
	python3 - $n_cases <<'PY'
import collections, json, os, sys
for i in range(int(sys.argv[1])):
    folder = f"case_{i}"
    if not os.path.exists(f"{folder}/calls"):
        continue
    want, got, refused = collections.Counter(), collections.Counter(), {}
    for line in open(f"{folder}/calls"):
        name, n = line.split()
        want[name] += int(n)
    name = open(f"{folder}/name").read().strip()
    try:
        flat, hooks = json.load(open(f"{folder}/flat.json")), json.load(open(f"{folder}/hooks.json"))
    except Exception as e:
        print(f"not ok {name}: the reports can be read ({e})")
        continue
    for row in flat["rows"]:
        got[row["name"].split("(")[0]] += row["calls"] or 0
    hits = collections.Counter()
    for row in hooks["rows"]:
        hits[row["function"].split("(")[0]] += row.get("hits") or 0
        if row["method"] == "refused":
            refused[row["function"].split("(")[0]] = row["reason"]
    wrong = {f: (n, got[f], refused.get(f)) for f, n in want.items()
             if n != got[f] and not (got[f] == 0 and "loop leads back to its first" in (refused.get(f) or ""))}
    print("not ok" if wrong else "ok", f"{name}: {sum(want.values())} calls are counted as the program counts them")
    for f, (n, g, why) in wrong.items():
        print(f"  {f}: {n} by the program, {g} by the report, {hits[f]} hits{', refused: ' + why if why else ''}")
    if wrong: # where a call was lost: in the program, on the way, or in the report
        print(f"  loss: {flat['loss']}")
        os.system(f"'{os.environ['WEIR']}' report threads {folder}/t.weir; '{os.environ['WEIR']}' report hooks {folder}/t.weir")
    lost = flat["loss"].get("events_lost", 0)
    if lost:
        print(f"not ok {name}: no event is lost ({lost}: {flat['loss'].get('reasons')})")
PY
	n_cases=0
	rm -rf case_*
}

# totals TRACE: "NAME CALLS" lines of the program's functions
totals() {
	"$WEIR" report flat "$1" --json >flat.json 2>err.txt
	[ $? -le 3 ] || { echo "cannot be read: $(head -n 1 err.txt)" && return; }
	json flat.json "'\n'.join(sorted(f\"{r['name'].split('(')[0]} {r['calls']}\" for r in j['rows'] if r['calls'] and r['name'] not in ('calls_write',) and not r['name'][0].isdigit()))"
}
