# SPDX-License-Identifier: MIT
# A trace through a pipe: record -o - and report -; readers that are gone, slow, full or not there.
# weir-test: alone: readers and recorders are ended at certain times
. "$ROOT/tests/lib.sh"
gcc -O2 -o split "$ROOT/tests/workloads/split.c" -lpthread || exit 1
./split forever &
pid=$!
trap 'kill -9 $pid' EXIT

"$WEIR" record -q -o - -p $pid --duration 0.5 2>err.txt | tee p.weir | "$WEIR" report flat - --json >piped.json
equal "record -p PID -o - | report flat -: all goes well" "0 0 0" "${PIPESTATUS[*]}"
if [ ! -s p.weir ]; then
	skip "a trace through a pipe: $(head -n 1 err.txt)"
	finish
fi
"$WEIR" report flat p.weir --json >file.json
equal "the report is that of the same trace in a file" "$(sed 's/"trace": "p.weir"/"trace": "-"/' file.json)" "$(cat piped.json)"
check "it has samples" test "$(json piped.json 'sum(r["samples"] for r in j["rows"]) > 20')" = True
check "a second reader of the format finds the trace whole" sh -c "python3 '$ROOT/tests/format/read_trace.py' p.weir >second.txt 2>&1"
"$WEIR" report threads - <p.weir >threads.txt
equal "a file as standard input will do, too" "$("$WEIR" report threads p.weir)" "$(cat threads.txt)"
equal "exports read it as well" "$("$WEIR" export folded p.weir)" "$("$WEIR" export folded - <p.weir)"
equal "what came by a pipe is not advised to be asked again" "" "$("$WEIR" report - <p.weir | grep 'weir report')"

# The command's own output.
"$WEIR" record -o - -- sh -c 'echo said; exit 7' 2>err.txt >c.weir
equal "the command's status is passed on" 7 $?
equal "its output goes to standard error" said "$(grep -v '^weir:' err.txt)"
check "which is said" grep -q '^weir: note: what the command writes to standard output goes to standard error' err.txt
equal "the trace is whole" 0 "$("$WEIR" report flat - <c.weir >flat.txt 2>&1; echo $?)"
printf 'before\n' >behind.txt
"$WEIR" record -q -o - -- true >>behind.txt
equal "what is in a file stays in front of it" before "$(head -n 1 behind.txt)"
equal "and the trace is behind it" 0 "$(tail -n +2 behind.txt | "$WEIR" report flat - >flat.txt 2>&1; echo $?)"

# Readers that are gone.
cat >late.sh <<'SH'
echo begun >begun.txt
sleep 1
i=0
while [ $i -lt 150000 ]; do i=$((i + 1)); done
echo done >late.txt
exit 5
SH
"$WEIR" record -o - -- sh late.sh 2>err.txt | # who is gone before the command begins is a reason not to run it
	{ head -c 20 >/dev/null; while [ ! -e begun.txt ]; do sleep 0.05; done; }
equal "without a reader the command runs to its end, and its status is passed on" "5 done" "${PIPESTATUS[0]} $(cat late.txt)"
equal "why there is no trace is one sentence" 1 "$(grep -c "^weir: 'standard output': cannot write after [0-9]* bytes: Broken pipe$" err.txt)"
mkfifo fifo
sleep 60 <fifo &
sleeper=$!
"$WEIR" record -q -F 9999 -o - -p $pid >fifo 2>err.txt &
recorder=$!
runs $recorder
sleep 2.5 # the pipe is full by now
kill -TERM $recorder # ends the recording; the rest of the trace waits for the reader
sleep 1
kill -TERM $recorder # ends the waiting
for ((i = 0; i < 300; i++)); do
	kill -0 $recorder 2>/dev/null || break
	sleep 0.1
done
check "a reader that does not read does not keep a recorder that is told twice to end" test $i -lt 300
check "and the process that was recorded goes on" kill -0 $pid
kill -9 $recorder $sleeper 2>/dev/null

# Recorders that are gone.
"$WEIR" record -q -o - -p $pid >killed.weir 2>/dev/null &
recorder=$!
runs $recorder
for ((i = 0; i < 100 && $(stat -c %s killed.weir) < 3000; i++)); do sleep 0.1; done
kill -9 $recorder
"$WEIR" report flat - <killed.weir >killed.txt 2>err.txt
equal "a recorder that was killed leaves what it had, with status 3" 3 $?
equal "and the report says in a line that the end is missing" "weir: '-': its end is missing, or a part cannot be read: this is what is there ('weir report loss' says why)" "$(cat err.txt)"
"$WEIR" report flat - --json <killed.weir >killed.json
check "what is there is shown" test "$(json killed.json 'sum(r["samples"] for r in j["rows"]) > 20')" = True

# What is no trace.
fails "something else is refused" 1 '^weir: standard input: is not a trace$' sh -c "yes | '$WEIR' report flat -"
fails "nothing is refused" 1 '^weir: standard input: is empty$' sh -c "'$WEIR' report - </dev/null"
fails "a closed standard input is refused" 1 '^weir: standard input: cannot be read' sh -c "'$WEIR' report - <&-"
fails "a place that is not there is named" 1 "^weir: standard input: cannot be kept in '/nowhere'" sh -c "TMPDIR=/nowhere '$WEIR' report - <p.weir"
if mkdir mnt && mount -t tmpfs -o size=8k tmpfs mnt 2>/dev/null; then
	fails "a full disk on the reader's side is a sentence" 1 "^weir: standard input: cannot be kept in '$PWD/mnt'.*No space left on device" \
		sh -c "cat p.weir p.weir p.weir p.weir | TMPDIR=$PWD/mnt '$WEIR' report flat -"
	"$WEIR" record -o - -- sh late.sh 2>err.txt >mnt/t.weir
	equal "and on the writer's side, where the command runs to its end" "5 1" \
		"$? $(grep -c "^weir: 'standard output': cannot write after [0-9]* bytes: No space left on device$" err.txt)"
	"$WEIR" report flat mnt/t.weir >full.txt 2>err.txt
	equal "what was written can be read" 3 $?
	umount mnt
else
	skip "a full disk: no permission to mount a tmpfs"
fi
shown_and_ended() {
	on_terminal never "$@" >ended.txt
	cat shown.txt ended.txt | paste -sd ' '
}
equal "a terminal is refused as output" \
	"weir: record: -o -: standard output is a terminal, which shows no trace: send it to a pipe or a file ('weir help record' tells more) exit 2" \
	"$(shown_and_ended "$WEIR" record -o - -- true)"
equal "and as input" "weir: standard input: is a terminal, not a trace exit 1" "$(shown_and_ended "$WEIR" report -)"

# Ctrl-C reaches both ends of a pipeline: the recording ends, and is reported.
on_terminal 2 sh -c "trap '' INT; (trap - INT; exec '$WEIR' record -q -o - -p $pid) | (trap - INT; exec '$WEIR' report flat - >typed.txt)" >ended.txt
check "a first Ctrl-C ends the recording, and the report is made of it" grep -q 'main$' typed.txt
trap - EXIT
kill -9 $pid
