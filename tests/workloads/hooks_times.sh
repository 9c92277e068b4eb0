# SPDX-License-Identifier: MIT
# golden/times.txt and golden/merge.txt as real runs. What a routine used is compared with what it has
# measured itself, so a busy machine changes both.
# weir-test: alone: compares times
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
hook_fixtures=$ROOT/tests/fixtures/hooks
gcc -O2 -o times "$hook_fixtures/times.c" && gcc -O2 -o merge "$hook_fixtures/merge.c" || exit 1

# judge SENTENCE PAUSE_NS: the report of t.weir with what the program said in said.txt; the process was
# stopped for so long while it was in B.
judge() {
	"$WEIR" report flat t.weir --json >flat.json 2>err.txt
	[ $? -le 3 ] || { not_ok "$1: the trace can be read" && return; }
	python3 - "$1" "$2" <<'PY'
import json, re, sys
sentence, pause = sys.argv[1], int(sys.argv[2])
said = re.search(r"A (\d+) B (\d+) elapsed (\d+)", open("said.txt").read())
a, b, elapsed = map(int, said.groups())
rows = {r["name"]: r for r in json.load(open("flat.json"))["rows"]}
A, B = rows["A"], rows["B"]
def verdict(ok, what):
    print("ok" if ok else "not ok", f"{sentence}: {what}")
def near(x, y):
    return abs(x - y) <= 0.15 * y
verdict(A["calls"] == 1 and B["calls"] == 1, "each is called once")
verdict(near(A["base"], a), f"base of A is what it used ({A['base']} and {a} ns)")
verdict(near(B["base"], b), f"base of B is what it used ({B['base']} and {b} ns)")
verdict(near(A["cum"], a + b), f"cum of A is that of both ({A['cum']} and {a + b} ns)")
verdict(near(B["cum"], b), f"cum of B is its own ({B['cum']} and {b} ns)")
verdict(near(A["elapsed"], elapsed), f"elapsed of A is what has passed ({A['elapsed']} and {elapsed} ns)")
verdict(B["elapsed"] >= B["cum"] * 0.99 and A["elapsed"] >= A["cum"] * 0.99, "elapsed is not less than cum")
if pause:
    verdict(B["elapsed"] >= pause * 0.95 + b, f"elapsed of B has the pause in it ({B['elapsed']} ns, {pause} of them stopped)")
    verdict(A["elapsed"] - A["cum"] >= pause * 0.95, "and so has that of A")
PY
}

# A host that takes the processor away from this virtual machine is seen by the thread's clock, but not
# by the switch records: then once more.
computing() { # SENTENCE OPTIONS...
	local sentence=$1
	shift
	for _ in 1 2 3; do
		"$WEIR" record -q "$@" --events 'A,B' -o t.weir -- ./times >said.txt 2>err.txt
		judge "$sentence" 0 >verdict.txt
		grep -q '^not ok' verdict.txt || break
	done
	cat verdict.txt
}
computing "computing"
computing "computing, without samples" --no-sample

stopped() {
	local recorder target line
	rm -f pipe && mkfifo pipe
	"$WEIR" record -q --events 'A,B' -o t.weir -- ./times interrupted >pipe 2>err.txt &
	recorder=$!
	exec 3<pipe
	read -r line <&3
	target=$(pgrep -P $recorder -x times)
	kill -STOP "$target"
	sleep 0.5
	kill -CONT "$target"
	cat <&3 >said.txt
	exec 3<&-
	wait $recorder
}
for _ in 1 2 3; do
	stopped
	judge "stopped in B" 500000000 >verdict.txt
	grep -q '^not ok' verdict.txt || break
done
cat verdict.txt

# A sampled chain between and below two hooked functions.
"$WEIR" record -q --events 'Event1,Event2' -o t.weir -- ./merge 500000000 2>err.txt
"$WEIR" report tree t.weir --json >tree.json 2>err.txt
python3 - <<'PY'
import json
rows = json.load(open("tree.json"))["rows"]
by_id = {r["id"]: r for r in rows}
def children(r):
    return {c["name"].lstrip("+"): c for c in rows if c["parent"] == r["id"]}
def verdict(ok, what):
    print("ok" if ok else "not ok", f"merged: {what}")
    return ok
def chain(top, names):
    for name in names:
        c = children(top).get(name)
        if not c or not c["sampled"]:
            return False
        top = c
    return True
# A sample within a hook, before the call is recorded or after its end, is of none.
outside = [r for r in rows if r["name"] in ("Event1", "Event2") and not r["calls"]]
verdict(sum(r["samples"] for r in outside) <= 3, "hardly a sample of them lies outside their calls")
events = {n: [r for r in rows if r["name"] == n and r["calls"]] for n in ("Event1", "Event2")}
if verdict(len(events["Event1"]) == 1 and len(events["Event2"]) == 1, "Event1 and Event2 are one node each"):
    one, two = events["Event1"][0], events["Event2"][0]
    verdict(by_id[two["parent"]] is one, "Event2 hangs below Event1")
    verdict(not one["sampled"] and not two["sampled"] and one["calls"] == two["calls"] == 1, "both are events, called once")
    verdict(chain(two, ["SampleC", "SampleD", "SampleE"]), "SampleC, SampleD and SampleE are sampled below Event2")
    verdict(chain(one, ["SampleA", "SampleB"]), "SampleA and SampleB are sampled below Event1")
    verdict(two["base"] + two["cum"] > 0 and two["cum"] >= 0.9 * one["cum"], "the time is that of Event2")
PY
"$WEIR" report tree t.weir >tree.txt 2>err.txt
check "merged: sampled nodes are marked" grep -q '+SampleE' tree.txt
check "merged: a marker says where a chain begins" grep -q stack_0x40 tree.txt
