# SPDX-License-Identifier: MIT
# The engine `inside`: the same steps as by ptrace, thread by thread; the program as without it; and what
# is left of it when the recording ends, or its recorder is killed.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
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
small guarded guarded.c && same "a program that puts itself under seccomp" ./guarded errno
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

# However a recording ends, the program goes on with its own memory, signals and signal stacks: also
# threads that are being made, or wait in a call since before the recording, or came to wait during it.
build busy busy.c -O1 -pthread || exit 1
ranges() { grep -c weir-steps "/proc/$1/maps"; }
./busy 60 >busy.txt &
busy=$!
sleep 0.1
before=$(own_signals $busy)
for end in "--max 300" "--duration 0.15" "--max 5000" Ctrl-C; do
	# shellcheck disable=SC2086
	case $end in
	Ctrl-C) timeout -s INT 0.2 "$WEIR" steps -q --engine inside -o e.weir -p $busy ;;
	*) timeout 20 "$WEIR" steps -q --engine inside -o e.weir -p $busy $end ;;
	esac
	equal "$end: the memory is given back" 0 "$(ranges $busy)"
	equal "$end: the signals, too" "$before" "$(own_signals $busy)"
done
kill -TERM $busy
wait $busy
equal "attached to again and again: the program ends as it should" 6 $?
equal "attached to again and again: the program was right" fine "$(cat busy.txt)"
equal "--max 2000: so was one that was started" fine "$("$WEIR" steps -q --engine inside -o e.weir --max 2000 -- ./busy 0.5)"

./loop rounds >loop.txt &
loop=$!
runs $loop
"$WEIR" steps -q --engine inside -o e.weir -p $loop 2>/dev/null &
weir=$!
sleep 0.2
kill -9 "$(pgrep -P $weir -x weir-keeper)"
{ wait $weir; } 2>/dev/null
timeout 20 "$WEIR" steps -q --engine inside -o e.weir -p $loop --max 100
equal "the recorder was killed: the next one takes over, and nothing is left of both" 0 "$(ranges $loop)"
kill -TERM $loop
{ wait $loop; } 2>/dev/null
equal "the recorder was killed: its results were right" "code as before wrong 0" "$(tr '\n' ' ' <loop.txt | sed 's/ $//')"

build heir heir.c -O1 -static && same "what becomes of SIGTRAP at exec" ./heir
if small flags32 flags.c -m32 >/dev/null; then
	fails "a 32-bit program: refused before it runs" 1 "'./flags32' is a 32-bit program" "$WEIR" steps -q --engine inside -- ./flags32
	printf '#!%s\n' "$PWD/flags32" >script32
	chmod +x script32
	fails "a script for a 32-bit program: refused, too" 1 "'./script32' is a 32-bit program" "$WEIR" steps -q --engine inside -- ./script32
else
	skip "32-bit programs: gcc -m32 does not work here"
fi

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

# Nobody empties the buffers for a while: the program waits, or what it goes on with is counted.
full() { # OPTION: records full.weir, the keeper standing still in the midst of it
	local weir keeper
	"$WEIR" steps -q --engine inside --buffer 65536 "$1" -o full.weir -- ./sum 3000 >out.txt 2>err.txt &
	weir=$!
	for ((i = 0; i < 200; i++)); do keeper=$(pgrep -P $weir -x weir-keeper) && break || sleep 0.01; done
	sleep 0.15
	kill -STOP "$keeper" && sleep 0.4 && kill -CONT "$keeper"
	wait $weir
	equal "$1: the program's status" 5 $?
	equal "$1: the program prints what it should" "$expected" "$(cat out.txt)"
}
full --lossless
judge ./sum full.weir <<'PY'
bad = broken(t, program)
check(f"--lossless: no step of {t.n_steps()} is missing", t.n_steps() > 15000 and not bad, *bad[:5])
equal("--lossless: nothing is lost", [], [m.a for m in t.marks("lost")])
PY
full --lossy
"$WEIR" report loss full.weir >loss.txt
LOST=$(awk '/events lost/ { print $1 }' loss.txt) judge ./sum full.weir <<'PY'
lost = [m.a for m in t.marks("lost")]
check(f"--lossy: what is lost is counted where it is missing ({lost})", sum(lost) > 0)
equal("--lossy: and told as a loss", os.environ["LOST"], str(sum(lost)))
PY

fails "--data: refused, with a sentence" 1 "engine 'inside' cannot do --data" "$WEIR" steps --engine inside --data -- ./exact
true
