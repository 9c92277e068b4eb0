# SPDX-License-Identifier: MIT
# --host when something ends early: signals, a lost connection, killed processes on either side, full disks. What had
# arrived is a trace, and nothing of ours is left there.
# weir-test: once: the agent is a copy of weir, which is ten times as large with sanitizers
# weir-test: long
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/remote.sh"
mkdir there && chmod 1777 there
export TMPDIR=$PWD/there
start_sshd
gcc -O2 -o split "$ROOT/tests/workloads/split.c" -lpthread || exit 1
if ! "$WEIR" record -q --host box -o t.weir -- "$PWD/split" status 0 2>err.txt; then
	skip "a recording on another machine: $(head -n 1 err.txt)"
	finish
fi

# begin NAME: a recording of a program that does not end, in $weir; its trace is NAME.weir, and some of it has come.
begin() {
	local i
	"$WEIR" record -q --host box -o "$1.weir" -- "$PWD/split" forever 2>"$1.txt" &
	weir=$!
	for ((i = 0; i < 300 && $(stat -c %s "$1.weir" 2>/dev/null || echo 0) < 3000; i++)); do sleep 0.1; done
}
# over WHAT NAME STATUS-OF-REPORT: what must be so after an end by WHAT.
over() {
	equal "$1: the program there has ended, and so have agent and recorder" "" "$(agents "^$PWD/(split forever|there/)")"
	equal "$1: nothing is left there" "" "$(left_in there)"
	"$WEIR" report flat "$2.weir" --json >"$2.json" 2>report.txt
	equal "$1: what had arrived is a trace" "$3 True" "$? $(json "$2.json" 'sum(r["samples"] for r in j["rows"]) > 20')"
}

# Signals.
cat >count.py <<'PY'
import signal, sys, time
n = [0]
def take(number, frame):
    n[0] += 1
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, take)
print("begun", flush=True)
while not n[0]:
    time.sleep(0.05)
time.sleep(0.5)
print("signals:", n[0], flush=True)
sys.exit(9)
PY
equal "a typed Ctrl-C reaches the command there, and its status comes back" "exit 9" \
	"$(on_terminal begun "$WEIR" record -q --host box -o t.weir -- python3 "$PWD/count.py")"
equal "once" "signals: 1" "$(grep -o 'signals: [0-9]*' shown.txt)"
"$WEIR" record -q --host box -o t.weir -- python3 "$PWD/count.py" >out.txt &
weir=$!
until_line out.txt begun $weir
kill -TERM $weir
wait $weir
equal "so does a signal that is sent to weir" "9 signals: 1" "$? $(tail -n 1 out.txt)"
begin typed
kill -INT $weir
wait $weir 2>/dev/null
equal "Ctrl-C ends a program as it would there" 130 $?
over "Ctrl-C" typed 0

# The connection.
begin lost
pkill -9 -P $weir
wait $weir
equal "a lost connection is told by the status" 3 $?
check "and by a sentence" grep -qx "weir: box: the connection was lost: 'lost.weir' is cut: it has what had arrived until then" lost.txt
over "a lost connection" lost 3
begin killed
kill -9 $weir
wait $weir 2>/dev/null
over "weir here is killed" killed 3
begin agent
pkill -9 -o -f "$PWD/there/.*--library-path"
wait $weir
equal "a killed agent is a lost connection" 3 $?
over "the agent there is killed" agent 3
begin silent
kill -STOP $weir
over "weir here says nothing for 15 seconds" silent 3
kill -CONT $weir
wait $weir
equal "it then finds the connection lost" 3 $?

# Before the agent runs.
cat >slow.sh <<SH
$WEIR_SSH "\$@" | { head -c 30; sleep 60; }
SH
"$WEIR" record -q --host box --ssh "sh $PWD/slow.sh" -o u.weir -- true 2>err.txt &
weir=$!
for ((i = 0; i < 200; i++)); do
	[ -z "$(ls -A there)" ] || break
	sleep 0.05
done
kill -INT $weir
wait $weir
equal "an interrupt before anything runs there is a sentence" "1 weir: box: interrupted before anything was run there" "$? $(cat err.txt)"
check "and makes no trace" [ ! -e u.weir ]
equal "nor leaves something there" "" "$(left_in there)"

# Disks.
if mkdir tiny && mount -t tmpfs -o size=1m,mode=1777 tmpfs tiny 2>/dev/null; then
	fails "a full disk there is a sentence of the other side" 1 \
		"^weir: box: the agent cannot be put into '$PWD/tiny/weir-agent-[0-9a-f]*': .*No space left on device" \
		env TMPDIR="$PWD/tiny" "$WEIR" record --host box -o u.weir -- true
	equal "nothing is left there" "" "$(left_in tiny)"
	head -c 1044480 /dev/zero >tiny/full
	"$WEIR" record -q --host box -o tiny/t.weir -- sh -c 'sleep 0.1; exit 5' 2>err.txt
	equal "with a full disk here the command runs to its end" 5 $?
	equal "and why there is no whole trace is said" "weir: 'tiny/t.weir': cannot write: No space left on device" "$(cat err.txt)"
	rm tiny/*
	mount -o remount,noexec,size=20m tiny
	TMPDIR=$PWD/tiny "$WEIR" record -q --host box -o u.weir -- true
	equal "where nothing may be run, another folder takes the agent" "0" "$?"
	equal "and nothing is left in the first one" "" "$(left_in tiny)"
	umount tiny
else
	skip "full disks: no permission to mount a tmpfs"
fi
finish
