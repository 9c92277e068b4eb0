# SPDX-License-Identifier: MIT
# weir steps as a command: statuses, streams, signals, files, and what becomes of the program when one
# of the two processes of weir steps is killed.
. "$ROOT/tests/lib.sh"
cat >tiny.c <<'C'
/* A program of few instructions: no C library. tiny_WORD NUMBER does what its word says. */
static long call(long n, long a, long b, long c)
{
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
}

static int is(const char *s, const char *word)
{
	while (*word && *s == *word)
		s++, word++;
	return *s == *word;
}

/* exit N, kill N (itself), cat (one read, one write), spin, sleep N (ms) and then exit 5 */
__attribute__((used)) void work(long *stack)
{
	const char *word = (const char *)stack[2], *digits = stack[0] > 2 ? (const char *)stack[3] : "0";
	volatile long spins = 0;
	char text[64];
	long n = 0;

	while (*digits)
		n = n * 10 + *digits++ - '0';
	if (is(word, "kill"))
		call(62, call(39, 0, 0, 0), n, 0);
	if (is(word, "cat"))
		call(1, 1, (long)text, call(0, 0, (long)text, sizeof(text)));
	if (is(word, "say"))
		call(1, 1, (long)"said\n", 5);
	while (is(word, "spin"))
		spins++;
	if (is(word, "sleep")) {
		long t[2] = {n / 1000, n % 1000 * 1000000};

		call(35, (long)t, 0, 0);
		n = 5;
	}
	call(231, n, 0, 0);
}
__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call work\n hlt");
C
gcc -O1 -fno-stack-protector -nostdlib -static -o tiny tiny.c || exit 1
export tiny=$PWD/tiny

# --- status, streams, files ------------------------------------------------------------------

for n in 0 1 3 42 255; do
	"$WEIR" steps -q -- ./tiny exit $n
	equal "exit status $n is passed on" $n $?
done
for s in 6 9 15; do
	bash -c '"$WEIR" steps -q -- ./tiny kill '$s'; exit $?' 2>/dev/null
	equal "death by signal $s is passed on" $((128 + s)) $?
done
python3 - <<'PY'
import os, subprocess
r = subprocess.run([os.environ["WEIR"], "steps", "-q", "--", "./tiny", "kill", "15"])
print("ok" if r.returncode == -15 else "not ok", "weir itself dies of the command's signal")
PY
echo hello | "$WEIR" steps -q -- ./tiny cat >out.txt
equal "standard input and output are the command's" hello "$(cat out.txt)"
"$WEIR" steps -q --max 1 -- sh -c 'echo $FOO; umask; ulimit -n; ls /proc/self/fd | wc -l; grep -E "^Sig(Blk|Ign|Cgt)" /proc/self/status' >a.txt
sh -c 'echo $FOO; umask; ulimit -n; ls /proc/self/fd | wc -l; grep -E "^Sig(Blk|Ign|Cgt)" /proc/self/status' >b.txt
equal "environment, limits, descriptors and signals are the command's own" "$(cat b.txt)" "$(cat a.txt)"
(trap '' CHLD PIPE && exec "$WEIR" steps -q --max 5 -- ./tiny exit 9)
equal "the status is passed on where SIGCHLD is ignored" 9 $?

rm -f trace.weir*
"$WEIR" steps -q -- ./tiny exit && "$WEIR" steps -q -- ./tiny exit
check "an older trace is kept as trace.weir.old" test -s trace.weir.old -a -s trace.weir
"$WEIR" steps -o other.weir -- ./tiny exit 2>err.txt
check "the last word says what was recorded and what to do next" grep -Eqx \
	"weir: 'other.weir': [1-9][0-9]* steps in [0-9.]+ s \(1 process, 1 thread\) by [a-z]+, [0-9]+ bytes \([0-9.]+ a step\); 'weir report steps other.weir' lists them" err.txt
equal "and is the only one" 1 "$(wc -l <err.txt)"
"$WEIR" steps -q -- ./tiny say >out.txt 2>err.txt
equal "-q says nothing" "said" "$(cat out.txt err.txt)"
"$WEIR" steps -v -- ./tiny exit 2>err.txt
check "-v says which engines there are" grep -q '^weir: engine ptrace: ' err.txt
"$WEIR" steps --max 5 -- ./tiny exit 4 2>err.txt
equal "a command that outlives --max gives its status" 4 $?
check "and --max is how many steps there are" grep -q ': 5 steps in ' err.txt
"$WEIR" steps --duration 0.2 -- ./tiny sleep 500 2>err.txt
equal "a command that outlives --duration gives its status" 5 $?
"$WEIR" steps -- ./tiny exit 2>&- >&- <&-
equal "closed streams are no hindrance" 0 $?
"$WEIR" steps -- ./tiny exit 7 2>/dev/full
equal "nor is a full stderr" 7 $?

# --- signals and deaths ----------------------------------------------------------------------

cat >deaths.py <<'PY'
import atexit, os, signal, subprocess, time
weir, tiny = os.environ["WEIR"], os.environ["tiny"]

def verdict(good, sentence, *more):
    print("ok" if good else "not ok", sentence, *([] if good else more))

def until(condition, seconds=10):
    end = time.time() + seconds
    while time.time() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    return None

def stat(pid):
    try:
        return open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
    except OSError:
        return None

def state(pid):
    s = stat(pid)
    return s[0] if s else None

def children(pid):
    try:
        return [int(p) for p in open("/proc/%d/task/%d/children" % (pid, pid)).read().split()]
    except OSError:
        return []

def tracer(pid):
    try:
        return int([l for l in open("/proc/%d/status" % pid) if l.startswith("TracerPid")][0].split()[1])
    except OSError:
        return None

def is_tiny(pid):
    try:
        return os.readlink("/proc/%d/exe" % pid) == tiny
    except OSError:
        return False

def start(*options):
    """weir steps, its keeper, and the command when there is one."""
    p = subprocess.Popen([weir, "steps"] + list(options), stderr=open("said.txt", "w"),
                         preexec_fn=os.setpgrp)
    keeper = until(lambda: children(p.pid))
    command = None
    if "--" in options:
        command = until(lambda: [c for c in children(keeper[0]) if is_tiny(c)])[0]
        atexit.register(lambda: is_tiny(command) and end(command)) # whatever goes wrong
    return p, keeper[0], command

def ended(p):
    """Its status and what it said; the command may go on and hold stderr open."""
    status = p.wait(20)
    return status, open("said.txt").read()

def runs_free(pid):
    return until(lambda: is_tiny(pid) and tracer(pid) == 0 and state(pid) in "RS")

def readable(path):
    return subprocess.run([weir, "report", "threads", path], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode in (0, 3)

def end(pid):
    os.kill(pid, signal.SIGKILL)

for number in (signal.SIGINT, signal.SIGUSR1):
    p, keeper, command = start("-q", "-o", "sent.weir", "--", tiny, "spin")
    time.sleep(0.1)
    p.send_signal(number)
    status = p.wait(20)
    verdict(status == -number and not is_tiny(command),
            "%s sent to weir reaches the command, which ends" % signal.Signals(number).name, status)
    verdict(readable("sent.weir"), "and the data is kept")

p, keeper, command = start("-q", "-o", "wait.weir", "--max", "5", "--", tiny, "spin")
runs_free(command)
p.send_signal(signal.SIGTERM)
status = p.wait(20)
verdict(status == -15, "so does SIGTERM when the recording is over already", status)

p, keeper, command = start("-o", "wait.weir", "--max", "5", "--", tiny, "spin")
runs_free(command)
p.kill()
p.wait()
verdict(until(lambda: state(keeper) in (None, "Z")) and runs_free(command),
        "the keeper does not wait for the command when nobody waits for the keeper", state(keeper))
end(command)

p, keeper, command = start("-q", "-o", "group.weir", "--", tiny, "spin")
verdict(os.getpgid(keeper) == os.getpgid(p.pid) == os.getpgid(command), "all are in one process group")
verdict(open("/proc/%d/comm" % keeper).read() == "weir-keeper\n", "the keeper has a name")
os.killpg(p.pid, signal.SIGTSTP)
stopped = until(lambda: state(p.pid) == "T" and state(keeper) == "T" and state(command) in "Tt")
verdict(stopped, "SIGTSTP to the group stops all", state(p.pid), state(keeper), state(command))
os.killpg(p.pid, signal.SIGCONT)
before = stat(command)[11]
verdict(until(lambda: stat(command)[11] != before, 20), "SIGCONT lets the command go on")
os.killpg(p.pid, signal.SIGINT)
status = p.wait(20)
verdict(status == -2, "SIGINT to the group ends it", status)

p, keeper, command = start("-o", "visible.weir", "--", tiny, "spin")
time.sleep(0.2)
p.kill()
p.wait()
verdict(runs_free(command), "kill -9 of weir leaves the command running", tracer(command), state(command))
verdict(until(lambda: state(keeper) in (None, "Z")), "the keeper ends", state(keeper))
verdict(readable("visible.weir"), "and completes the trace")
end(command)

p, keeper, command = start("-o", "keeper.weir", "--", tiny, "spin")
time.sleep(0.2)
end(keeper)
status, out = ended(p)
verdict(status == 1 and out.count("\n") == 1 and
        "weir: 'keeper.weir': the recording was ended by signal 9 (Killed); the trace holds" in out,
        "kill -9 of the keeper is told in a sentence", status, out)

spin = subprocess.Popen([tiny, "spin"])
atexit.register(spin.kill)
p, keeper, _ = start("-o", "attached.weir", "-p", str(spin.pid))
verdict(until(lambda: tracer(spin.pid)) == keeper, "the keeper is who attaches", tracer(spin.pid))
out = subprocess.run([weir, "steps", "-o", "second.weir", "-p", str(spin.pid)], stderr=subprocess.PIPE, text=True,
                     timeout=20)
verdict(out.returncode == 1 and out.stderr.count("\n") == 1 and "process %d" % spin.pid in out.stderr
        and not os.path.exists("second.weir"),
        "a process that is traced already is refused in a sentence", out.returncode, out.stderr)
time.sleep(0.2)
p.kill()
p.wait()
verdict(runs_free(spin.pid), "kill -9 of weir leaves the attached process running")
until(lambda: state(keeper) in (None, "Z"))
verdict(readable("attached.weir"), "and the trace is complete")
p, keeper, _ = start("-o", "again.weir", "-p", "%d,%d" % (spin.pid, spin.pid), "--max", "500")
status, out = ended(p)
verdict(status == 0 and ": 500 steps in" in out, "it can be attached to again; --max ends with status 0",
        status, out)
verdict(runs_free(spin.pid), "and leaves it running")
p, keeper, _ = start("-q", "-o", "interrupted.weir", "-p", str(spin.pid))
until(lambda: tracer(spin.pid))
os.killpg(p.pid, signal.SIGINT)
status = p.wait(20)
verdict(status == 0 and runs_free(spin.pid), "SIGINT ends an attached recording with status 0", status)
p, keeper, _ = start("-q", "-o", "gone.weir", "-p", str(spin.pid))
until(lambda: tracer(spin.pid))
spin.kill()
spin.wait()
status = p.wait(20)
verdict(status == 0 and readable("gone.weir"), "the end of the process ends the recording with status 0", status)
PY
python3 deaths.py

# --- a terminal ------------------------------------------------------------------------------

equal "Ctrl-C ends the command by its signal" "signal 2" \
	"$(on_terminal ' steps' "$WEIR" steps -o typed.weir -- ./tiny spin)"
check "a progress line was shown" grep -qE 'weir: [0-9.]+ s, [0-9]+ steps' shown.txt
"$WEIR" report threads typed.weir >out.txt
equal "and the data is kept" 0 $?
