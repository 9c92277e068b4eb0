# SPDX-License-Identifier: MIT
# A process that runs already: what is traced of it, threads by name, bursts; and that it goes on as before.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/steps_lib.bash"
small loop loop.c || exit 1

start() { # THREADS [NAME]
	rm -f rounds
	./loop rounds "$@" >loop.txt &
	loop=$!
	runs $loop
	until [ "$(rounds)" -gt 1000 ]; do sleep 0.01; done 2>/dev/null
}
rounds() { od -A n -t u8 -N 8 rounds | tr -d ' '; }
goes_on() { # SENTENCE: it runs untraced, and ends right
	local before
	equal "$1: nobody traces it any more" 0 "$(awk '/^TracerPid/ { print $2 }' /proc/$loop/status)"
	before=$(rounds)
	for ((i = 0; i < 300 && $(rounds) < before + 1000; i++)); do sleep 0.01; done
	check "$1: it goes on" [ "$(rounds)" -ge $((before + 1000)) ]
	kill -TERM $loop
	wait $loop
	equal "$1: it ends as it should" 0 $?
	equal "$1: its code and its results were right" "code as before wrong 0" "$(tr '\n' ' ' <loop.txt | sed 's/ $//')"
}

start
steps t.weir -p $loop --max 500
equal "attached: weir ends" 0 $?
judge ./loop <<'PY'
equal("attached: --max 500 are 500 steps", 500, t.n_steps())
bad = broken(t, program) + foreign(t, {os.path.realpath(program)})
check("attached: no step is missing, all are the program's", not bad, *bad[:5])
equal("attached: no signal", [], t.marks("signal"))
PY
goes_on "attached"

start
steps t.weir -p $loop --around work --max 640
judge ./loop <<'PY'
s = symbols(program)
sizes = {x.addr for x in t.steps()}
check("attached, --around work: steps of work alone", sizes and all(s["work"] <= a < s["work"] + 64 for a in sizes), hexes(sorted(sizes)))
resumes = t.marks("resume")
n = len([x for x in t.steps() if x.addr == s["work"]])
check("attached, --around work: each call of it begins anew", n > 3 and len(resumes) >= n - 1, n, resumes[:5])
bad = broken(t, program)
check("attached, --around work: no step is missing", not bad, *bad[:5])
PY
goes_on "attached, --around work"

start 2 helper
steps t.weir -p $loop --threads helper --max 400
judge ./loop <<'PY'
s = symbols(program)
live = [th for th in t.threads if th.steps]
check("--threads NAME: only threads of this name are traced", live and all(th.name == "helper" for th in live), [(th.tid, th.name) for th in live])
check("--threads NAME: steps of what they run", all(x.addr != s["turn"] for x in t.steps()) if "turn" in s else True)
PY
goes_on "--threads"

start
steps t.weir -p $loop --every 20 --for 50 --max 400
judge ./loop <<'PY'
bursts, n = [], 0
for i in t.threads[0].items:
    if i.is_step:
        n += 1
    elif i.kind in ("pause", "resume") and n:
        bursts.append(n)
        n = 0
bursts += [n] if n else []
equal("--every 20 --for 50: bursts of 50 steps", [50] * 8, bursts)
bad = broken(t, program)
check("--every: no step is missing in a burst", not bad, *bad[:5])
PY
goes_on "--every"

# Ctrl-C ends the recording, not the program.
start 1
steps t.weir -p $loop &
w=$!
sleep 0.5
kill -INT $w $(pgrep -P $w) 2>/dev/null
wait $w
check "Ctrl-C: weir ends with what it has" [ $? -le 3 ]
judge ./loop <<'PY'
check(f"Ctrl-C: two threads are traced ({t.n_steps()} steps)", len([th for th in t.threads if th.steps]) == 2)
bad = broken(t, program) + foreign(t, {os.path.realpath(program)})
check("Ctrl-C: no step is missing", not bad, *bad[:5])
PY
goes_on "Ctrl-C"
fails "a process that is not there" 1 "" "$WEIR" steps -q -o t.weir -p 4194305

# Bursts, and the end, find the program in system calls: none of them is interrupted for it.
build waits waits.c -O1
./waits >waits.txt &
waits=$!
for ((i = 0; i < 500; i++)); do grep -q waits waits.txt && break || sleep 0.01; done
timeout 60 "$WEIR" steps -q "${engine_option[@]}" -o waits.weir -p $waits --every 40 --for 50 --duration 1.2
equal "bursts in system calls: recorded" 0 $?
wait $waits
equal "bursts in system calls: no call was interrupted" "waits interrupted 0" "$(tr '\n' ' ' <waits.txt | sed 's/ $//')"
"$WEIR" report steps waits.weir >listing.txt
check "bursts in system calls: the calls have their names" grep -q -- '-- epoll_wait' listing.txt
equal "bursts in system calls: and no other number" 0 "$(grep -c 'system call -' listing.txt)"
