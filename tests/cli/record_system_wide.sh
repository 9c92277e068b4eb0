# SPDX-License-Identifier: MIT
# Recording of all processes.
# weir-test: alone: samples have to be as many as the time says
. "$ROOT/tests/lib.sh"
export split=split_$$
gcc -O2 -o $split "$ROOT/tests/workloads/split.c" -lpthread || exit 1

if [ "$(id -u)" = 0 ] || [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 0 ]; then
	./$split forever &
	pid=$!
	"$WEIR" record -q -a --duration 0.6 -o all.weir
	rc=$? # 3: done, but with losses, is possible for a recorder slowed by sanitizers
	check "system-wide recording works (status $rc)" test $rc -eq 0 -o "$WEIR_SAN$rc" = 13
	kill -9 $pid
	"$WEIR" report threads all.weir --json >t.json
	check "it sees the busy process" test "$(json t.json "any(r['pid']==$pid and r['samples']>50 for r in j['rows'])")" = True
	# Threads that have ended do not wait: what they leave the CPU for last has no end.
	"$WEIR" record -q -a -e wall -o wall.weir --duration 2 &
	recorder=$!
	sleep 0.7
	cp /bin/true ended_$$
	for i in 1 2 3 4 5 6; do ./ended_$$; done
	wait $recorder
	"$WEIR" report tree wall.weir --metric wall --json >wall.json
	"$WEIR" report threads wall.weir --metric wall --json >threads.json
	cat >dead.py <<'PY'
import json, sys
ended = {"%d_%d" % (r["pid"], r["tid"]): r["base"] for r in json.load(open("threads.json"))["rows"] if (r["name"] or "").startswith(sys.argv[1])}
rows = {r["id"]: r for r in json.load(open("wall.json"))["rows"]}
dead = 0
for r in rows.values():
    names, x = [], r
    while x["parent"] is not None:
        names.append(x["name"])
        x = rows[x["parent"]]
    if x["name"] in ended and names and (names[0] == "do_task_dead" or names[:2] == ["schedule", "do_exit"] or names[:2] == ["__schedule", "do_exit"]):
        dead += r["base"]
print(len(ended) > 2, dead)
PY
	equal "threads that have ended are not said to wait until the recording ends" "True 0" "$(python3 dead.py ended_)"
else
	skip "system-wide recording works: not permitted here"
fi
