# SPDX-License-Identifier: MIT
# weir-test: once: what it tests runs inside other programs, where there are no sanitizers
# Handlers that make hundreds of hooked calls at each tick of a fast timer, by every way of hooking: the
# program goes on, nothing is lost, and each function has as many calls as the program has counted.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"

widths=(64 32)
build probe32 deep.c -m32 || { widths=(64) && skip "32-bit programs: gcc -m32 does not work here ($(head -n 1 build.txt))"; }

# storm NAME KINDS FLAGS...
storm() {
	local name=$1 kinds=$2 kind
	shift 2
	build storm storm.c "$@" || { skip "$name: the compiler cannot ($(head -n 1 build.txt))" && return; }
	for kind in $kinds; do
		same "$name, $kind" '*' ./storm "$kind"
	done
}
for bits in "${widths[@]}"; do
	storm "$bits bits" "own alternate nested" -O2 -m$bits
	storm "$bits bits, -finstrument-functions" "own nested" -O2 -m$bits -finstrument-functions
done
storm "-pg" own -O2 -pg
storm "-pg -mfentry" alternate -O2 -pg -mfentry
storm "-fpatchable-function-entry" nested -O2 -fpatchable-function-entry=5
judge_counts

# Handlers that jump away, at any moment of a hook. A jump may come between a hook and the first line of
# its function: there are as many calls as were begun, or as many as came to their first line.
for bits in "${widths[@]}"; do
	storm "$bits bits" "jump alternate-jump" -O2 -m$bits
	storm "$bits bits, -finstrument-functions" jump -O2 -m$bits -finstrument-functions
done
python3 - $n_cases <<'PY'
import collections, json, sys
for i in range(int(sys.argv[1])):
    name = open(f"case_{i}/name").read().strip()
    own = {l.split()[0]: int(l.split()[1]) for l in open(f"case_{i}/calls")}
    flat, got = json.load(open(f"case_{i}/flat.json")), collections.Counter()
    for row in flat["rows"]:
        got[row["name"]] += row["calls"] or 0
    lost = flat["loss"].get("events_lost", 0)
    fits = own["jump_leaf"] <= got["jump_leaf"] <= own["leaf_begun"] and own["leap"] <= got["leap"] <= own["leap_begun"]
    print("ok" if fits and own["leap"] and not lost else "not ok", f"{name}: calls are counted as the program counts them")
    if not fits or lost:
        print(f"  {own}, {dict(got)}, {lost} lost: {flat['loss'].get('reasons')}")
PY
