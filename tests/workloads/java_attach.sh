# SPDX-License-Identifier: MIT
# Attach to a JVM that works and leave it again, many times: it goes on as before. jstack knows its threads, too.
# weir-test: alone: attaches within a time
# weir-test: once: takes long; java_shapes.sh records with sanitizers
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/java_lib.bash"
reason=$(why_no_java)
[ -z "$reason" ] || {
	skip "attaching to a JVM: $reason"
	finish
}
build_shapes classes || { not_ok "the program can be built" && finish; }
cycles=10
[ -z "${WEIR_SLOW:-}" ] || cycles=100

# start JAVA FLAGS...: the program in a loop; sets `program`, and the descriptor 9 ends it
start() {
	local java=$1
	shift
	shapes "$java" 20 "${java_parts[@]}" loop -- "$@"
	rm -f pipe && mkfifo pipe && : >program.out
	"${command[@]}" <pipe >program.out 2>program.err &
	program=$!
	exec 9>pipe
	for _ in {1..500}; do grep -q ready program.out && break || sleep 0.02; done
	sleep 0.5
}

# stop NAME: the program ends as alone
stop() {
	local rc
	feed 9 end
	exec 9>&-
	wait $program
	rc=$?
	equal "$1: the program ends as alone" "7 done" "$rc $(tail -n 1 program.out)"
	equal "$1: and has printed nothing else" "3 " "$(wc -l <program.out) $(cat program.err)"
}

mapped() { awk '{ print $6 }' "/proc/$program/maps" | grep -i -e weir -e memfd | sort -u; }
opened() { find "/proc/$program/fd" -maxdepth 1 -lname '*weir*' -printf '%l\n'; }

start java
n_good=0
for ((i = 0; i < cycles; i++)); do
	"$WEIR" record -q -p $program --duration 0.1 -o t.weir 2>err.txt
	rc=$?
	[ $rc -eq 0 ] || [ $rc -eq 3 ] || { head -n 2 err.txt && break; }
	n_good=$((n_good + 1))
done
equal "attached $cycles times" $cycles $n_good
equal "nothing of weir is mapped afterwards, and no descriptor is open" " " "$(mapped) $(opened)"
equal "nobody traces it" 0 "$(awk '/^TracerPid/ { print $2 }' /proc/$program/status)"

# What jstack says of threads: "NAME" ... nid=0xTID
"$WEIR" record -q -F 999 -p $program --duration 1.5 -o t.weir 2>err.txt &
recorder=$!
sleep 0.5
# It prints what it reads piece by piece, and a character at the end of one as two that nobody knows.
for _ in 1 2 3 4 5; do
	timeout 20 jcmd $program Thread.print >jstack.txt 2>&1
	jstack_rc=$?
	grep -q "$(printf "\357\277\275")" jstack.txt || break
done
wait $recorder
"$WEIR" report threads t.weir --json >threads.json 2>report.txt
"$WEIR" report samples t.weir --json >samples.json 2>report.txt
equal "jstack answers while weir records" 0 $jstack_rc
python3 - <<'PY'
import json, re
theirs = {}
for line in open("jstack.txt", encoding="utf-8"):
    if m := re.match(r'"(.*)" .*\bnid=(0x[0-9a-f]+|\d+)', line):
        theirs[int(m[2], 0)] = m[1]
ours = {r["tid"]: r["name"] for r in json.load(open("threads.json"))["rows"]}
both = [t for t in theirs if t in ours]
wrong = [(t, theirs[t], ours[t]) for t in both if theirs[t] != ours[t]]
print("ok" if len(both) >= 8 and not wrong else "not ok", f"{len(both)} threads have the names that jstack has", wrong[:5] or "")
PY
# How many samples there are is for who else has the CPUs; all but a few are of Java's main().
read -r n_main n_java < <(python3 - <<'PY'
import json
main = {r["tid"] for r in json.load(open("threads.json"))["rows"] if r["name"] == "main"}
stacks = [r["stack"] for r in json.load(open("samples.json"))["rows"] if r["kind"] == "sample" and r["tid"] in main]
print(len(stacks), sum(any("shapes.Shapes.main" in f["name"] for f in stack) for stack in stacks))
PY
)
check "Java is in the stacks ($n_java of $n_main)" test "$n_main" -ge 5 -a $((n_java * 100)) -ge $((n_main * 95))
stop "attached $cycles times"

# Two at once, and one that is killed.
start java
"$WEIR" record -q -p $program --duration 1 -o a.weir 2>a.txt &
first=$!
"$WEIR" record -q -p $program --duration 1 -o b.weir 2>b.txt &
second=$!
"$WEIR" record -q -p $program --duration 30 -o c.weir 2>c.txt &
third=$!
sleep 0.4
kill -KILL $third
{ wait $third; } 2>/dev/null
wait $first
rc=$?
check "two at once: the first records (status $rc)" test $rc -eq 0 -o $rc -eq 3
wait $second
rc=$?
check "two at once: the second records (status $rc)" test $rc -eq 0 -o $rc -eq 3
for t in a b; do
	"$WEIR" report flat $t.weir --json >flat.json 2>report.txt
	check "two at once: $t.weir has Java's methods" test "$(json flat.json "any('shapes.Shapes.main(' in r['name'] for r in j['rows'])")" = True
done
check "a recorder that was killed: the program goes on" kill -0 $program
equal "a recorder that was killed: nothing of weir is left" " " "$(mapped) $(opened)"
stop "two at once, and one that was killed"

# The program dies while it is recorded.
start java
"$WEIR" record -q -p $program --duration 30 -o t.weir 2>err.txt &
recorder=$!
sleep 1
kill -KILL $program
{ wait $program; } 2>/dev/null
exec 9>&-
wait $recorder
rc=$?
check "a JVM that is killed: the recording ends (status $rc)" test $rc -eq 0 -o $rc -eq 3
"$WEIR" report flat t.weir --json >flat.json 2>report.txt
check "a JVM that is killed: what was recorded has Java's methods" test "$(json flat.json "any('shapes.Shapes.main(' in r['name'] for r in j['rows'])")" = True
