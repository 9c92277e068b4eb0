# SPDX-License-Identifier: MIT
# On a terminal: a progress line, and Ctrl-C ends the recording, not the data.
# weir-test: alone: keys and progress lines come at certain times
. "$ROOT/tests/lib.sh"
gcc -O2 -o split "$ROOT/tests/workloads/split.c" -lpthread || exit 1
cat >terminal.py <<'PY'
# terminal.py SECONDS COMMAND...: runs it on a terminal of its own, types Ctrl-C after SECONDS,
# writes what it showed to shown.txt and prints the wait status.
import os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
began, typed, shown = time.time(), False, b""
while time.time() - began < 60:
    ready, _, _ = select.select([fd], [], [], 0.05)
    try:
        data = os.read(fd, 65536) if ready else None
    except OSError:
        break
    if data == b"":
        break
    shown += data or b""
    if not typed and time.time() - began > float(sys.argv[1]):
        os.write(fd, b"\x03")
        typed = True
open("shown.txt", "wb").write(shown)
_, status = os.waitpid(pid, 0)
print("signal %d" % os.WTERMSIG(status) if os.WIFSIGNALED(status) else "exit %d" % os.WEXITSTATUS(status))
PY

equal "Ctrl-C ends the command by its signal" "signal 2" "$(python3 terminal.py 1.5 "$WEIR" record -o a.weir -- ./split forever)"
check "a progress line was shown" grep -qE 'weir: [0-9.]+ s, [0-9]+ samples' shown.txt
"$WEIR" report flat a.weir --json >f.json
check "the data is kept" test "$(json f.json "sum(r['samples'] for r in j['rows']) > 300")" = True
equal "a command that ignores Ctrl-C is waited for, and its status is passed on" "exit 4" \
	"$(python3 terminal.py 0.7 "$WEIR" record -o b.weir -- sh -c "trap '' INT; sleep 2; exit 4")"
check "the recording was complete before" grep -q "the recording is complete; 'sh' goes on running" shown.txt
./split forever &
pid=$!
equal "Ctrl-C ends an attached recording with status 0" "exit 0" \
	"$(python3 terminal.py 1 "$WEIR" record -o c.weir -p $pid)"
check "the process goes on" kill -0 $pid
kill -9 $pid
"$WEIR" record -q -o d.weir -- true 2>quiet.txt
equal "-q says nothing" "" "$(cat quiet.txt)"
"$WEIR" record -o d.weir -- true 2>lines.txt
check "without a terminal there is no progress line" test "$(tr -cd '\r' <lines.txt | wc -c)" -eq 0
