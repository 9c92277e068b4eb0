# SPDX-License-Identifier: MIT
# The engine `inside`: the same steps as by ptrace, thread by thread; the program as without it; and what
# is left of it when the recording ends, or its recorder is killed.
. "$ROOT/tests/lib.sh"
engine=inside
STEP_ENGINE=inside
. "$ROOT/tests/workloads/steps_lib.bash"
: "$engine"

# agree SENTENCE COMMAND...: both engines, one after the other; compared all at once at the end.
n_agree=0
agree() {
	local sentence=$1
	shift
	same "$sentence" "$@"
	mv t.weir "agree_$n_agree.inside"
	{ timeout 60 setarch -R "$WEIR" steps -q --engine ptrace -o "agree_$n_agree.ptrace" -- "$@" >/dev/null 2>&1 </dev/null; } 2>/dev/null
	echo "$sentence" >"agree_$n_agree.case"
	n_agree=$((n_agree + 1))
}

small exact exact.S && agree "a program whose steps are counted" ./exact
small flags flags.c && agree "flags" ./flags
small strings strings.c && agree "string instructions" ./strings
small signals signals.c && {
	for mode in sent traps faults nested; do agree "signals, $mode" ./signals $mode; done
}
small processes processes.c && {
	for mode in fork vfork exec; do agree "processes, $mode" ./processes $mode; done
}
small guarded guarded.c && agree "a program under seccomp" ./guarded errno
small made_code made_code.c && {
	for mode in in_place moved no_reading; do agree "made code, $mode" ./made_code $mode; done
}
judge - - <<'PY'
import glob
def row(thread):
    # Signals that the program ignores are not given to it, and so are not seen from inside.
    return [(i.addr, i.times) if i.is_step else (i.kind, i.a) for i in thread.items
            if i.is_step or i.kind == "syscall" or (i.kind == "signal" and i.a != 17)]
for case in sorted(glob.glob("agree_*.case"), key=lambda c: int(c[6:-5])):
    name = open(case).read().strip()
    a, b = open_trace(case.replace(".case", ".ptrace")), open_trace(case.replace(".case", ".inside"))
    if not a or not b:
        continue
    a, b = [sorted(map(row, x.threads)) for x in (a, b)]
    equal(f"{name}: as many threads", len(a), len(b))
    for x, y in zip(a, b):
        equal(f"{name}: the same {len(x)} steps and marks", x, y)
PY

# The recording ends before the program.
small sum sum.c || exit 1
expected=$(./sum 3000)
equal "--max: the program goes on and prints what it should" "$expected" "$("${stepper[@]}" -o m.weir --max 500 -- ./sum 3000)"
judge ./sum m.weir <<'PY'
equal("--max: so many steps", 500, t.n_steps())
PY

# A running program, for a while: afterwards nothing is left of us but memory.
small loop loop.c || exit 1
own_signals() { awk '/^SigCgt/ { print $2 }' "/proc/$1/status"; }
./loop rounds >loop.txt &
loop=$!
runs $loop
before=$(own_signals $loop)
timeout 20 "$WEIR" steps -q --engine inside -o l.weir -p $loop --duration 0.3
equal "attached: the recording ends" 0 $?
judge ./loop l.weir <<'PY'
check(f"attached: there are steps ({t.n_steps()})", t.n_steps() > 100)
PY
for ((i = 0; i < 100; i++)); do [ "$(own_signals $loop)" = "$before" ] && break || sleep 0.02; done
equal "attached: its signals are its own again" "$before" "$(own_signals $loop)"
kill -TERM $loop
{ wait $loop; } 2>/dev/null
equal "attached: its code and its results were right" "code as before wrong 0" "$(tr '\n' ' ' <loop.txt | sed 's/ $//')"

# Whoever takes the steps is killed: the program turns the stepping off itself.
"$WEIR" steps -q --engine inside -o k.weir -- ./sum 3000000 >out.txt 2>err.txt &
weir=$!
sleep 0.4
keeper=$(pgrep -P $weir -x weir-keeper)
check "the recorder is there" kill -9 "$keeper"
{ wait $weir; } 2>/dev/null
for ((i = 0; i < 1000; i++)); do grep -q second out.txt && break || sleep 0.01; done
equal "the recorder is killed: the program prints what it should" "$(./sum 3000000)" "$(cat out.txt)"

# A buffer that is full is waited for, or what does not fit is counted.
equal "a small buffer: the program prints what it should" "$(./sum 1500)" "$("${stepper[@]}" -o b.weir --buffer 65536 -- ./sum 1500)"
judge ./sum b.weir <<'PY'
bad = broken(t, program)
check(f"a small buffer: no step of {t.n_steps()} is missing", t.n_steps() > 15000 and not bad, *bad[:5])
PY

fails "--data: refused, with a sentence" 1 "engine 'inside' cannot do --data" "$WEIR" steps --engine inside --data -- ./exact
true
