# SPDX-License-Identifier: MIT
# A tree that the program keeps while handlers jump away, at any moment of a hook: no call is below one
# that was left by a jump, no time is longer than the run, and the calls are those of the program.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/hooks_lib.bash"

widths=(64 32)
build probe32 deep.c -m32 || { widths=(64) && skip "32-bit programs: gcc -m32 does not work here ($(head -n 1 build.txt))"; }
cases=()
for bits in "${widths[@]}"; do
	build "storm$bits" storm.c -O2 "-m$bits" || { not_ok "storm.c, $bits bits: $(head -n 1 build.txt)" && continue; }
	for kind in jump alternate-jump; do
		for round in 1 2 3; do
			name=$bits.$kind.$round
			begin=$(date +%s%N)
			CALLS=$PWD/$name.calls "$WEIR" record --tree --events 'jump_about,jump_leaf,leap' -o "$name.weir" -- "./storm$bits" "$kind" 150 >"$name.out" 2>&1
			echo $? $(($(date +%s%N) - begin)) >"$name.status"
			"$WEIR" report tree "$name.weir" --json >"$name.json"
			cases+=("$name")
		done
	done
done
python3 - "${cases[@]}" <<'PY'
import collections, json, sys
for name in sys.argv[1:]:
    own = collections.Counter({l.split()[0]: int(l.split()[1]) for l in open(f"{name}.calls")})
    tree, calls, faults, path = json.load(open(f"{name}.json")), collections.Counter(), [], []
    status, wall = map(int, open(f"{name}.status").read().split())
    for row in tree["rows"]:
        del path[row["level"]:]
        path.append(row)
        calls[row["name"]] += row["calls"]
        above = path[-2] if len(path) > 1 else None
        if row["name"] == "jump_leaf" and above["name"] != "jump_about":
            faults.append(f"jump_leaf below {above['name']}")
        if row["cum"] > wall:
            faults.append(f"{row['name']}: {row['cum']} ns")
        row["children"] = 0
        if above:
            above["children"] += row["cum"]
            if above["level"] and above["children"] > 1.01 * above["cum"] + 1000:
                faults.append(f"{row['name']}: longer than {above['name']}, which calls it")
    for f, begun in (("jump_leaf", "leaf_begun"), ("leap", "leap_begun")):
        if not own[f] <= calls[f] <= own[begun]:
            faults.append(f"{f}: {calls[f]} calls, {own[f]} to {own[begun]} by the program")
    if status:
        faults.append(f"ended with {status}")
    print("not ok" if faults or not own["leap"] else "ok", f"{name}: calls and times are right where handlers jump away")
    for fault in faults[:5]:
        print(" ", fault)
PY
