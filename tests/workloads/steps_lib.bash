# SPDX-License-Identifier: MIT
# Sourced by the tests of instruction tracing: builds programs, runs them with and without tracing, and
# judges what the trace says (fixtures/steps/judge.py).
step_fixtures=$ROOT/tests/fixtures/steps
export PYTHONPATH=$step_fixtures PYTHONDONTWRITEBYTECODE=1
engine=${STEP_ENGINE:-ptrace} # "any": the one that weir takes by itself
engine_option=(--engine "$engine")
[ "$engine" != any ] || engine_option=()
# For programs that are all their own: no library, no address that differs from run to run.
small="-O1 -g -static -nostdlib -fno-stack-protector -fno-builtin -fno-pic -no-pie -fcf-protection=none"

# build NAME SOURCE FLAGS...: false when the compiler cannot.
build() {
	local name=$1 source=$2 compiler=gcc
	shift 2
	[[ $source != *.cc ]] || compiler=g++
	$compiler -w "$@" -o "$name" "$step_fixtures/$source" 2>build.txt || { cat build.txt && return 1; }
}
# small NAME SOURCE [-m32]
small() {
	# shellcheck disable=SC2086
	build "$1" "$2" $small "${@:3}"
}

# steps TRACE ARGUMENTS...: addresses are not random, for weir and what it starts.
stepper=(timeout 120 setarch -R "$WEIR" steps -q "${engine_option[@]}")
steps() { "${stepper[@]}" -o "$@"; }

# same SENTENCE COMMAND...: prints and ends the same, traced into t.weir.
same() {
	local sentence=$1 plain traced
	shift
	rm -f t.weir
	# In braces, because the shell itself says so when a program dies of a signal.
	{ timeout 60 setarch -R "$@" >out.plain 2>err.plain </dev/null; } 2>/dev/null
	plain=$?
	{ "${stepper[@]}" -o t.weir "${step_options[@]}" -- "$@" >out.traced 2>err.traced </dev/null; } 2>/dev/null
	traced=$?
	if [ $plain -eq $traced ] && cmp -s out.plain out.traced && cmp -s err.plain err.traced; then
		ok "$sentence: the same output and status"
	else
		not_ok "$sentence: the same output and status (status $plain, traced $traced)"
		diff out.plain out.traced | head -n 10
		diff err.plain err.traced | head -n 5
	fi
}
step_options=()

# judge PROGRAM [TRACE] <CHECKS: see fixtures/steps/judge.py.
judge() { python3 -S "$step_fixtures/judge.py" "$WEIR" "${2:-t.weir}" "$1"; }

# sound SENTENCE PROGRAM [SIGNALS]: t.weir is kept for judge_sound, which says of all of them at once what
# holds for every trace of a program without libraries; and that these signals were given to it, in order.
n_sound=0
sound() {
	cp -f t.weir "sound_$n_sound.weir" 2>/dev/null
	cp -f "$2" "sound_$n_sound.program"
	printf '%s\t%s\t%s\n' "$1" "$(realpath "$2")" "${3--}" >"sound_$n_sound.case"
	n_sound=$((n_sound + 1))
}
judge_sound() {
	judge - - <<'PY'
import glob
for case in sorted(glob.glob("sound_*.case"), key=lambda c: int(c[6:-5])):
    name, path, signals = open(case).read().rstrip("\n").split("\t")
    trace, program = case.replace(".case", ".weir"), case.replace(".case", ".program")
    t = open_trace(trace)
    if not t:
        continue
    bad = foreign(t, {path})
    check(f"{name}: each of the {t.n_steps()} steps is in code of the program", t.n_steps() and not bad, *bad[:5])
    bad = broken(t, program, path)
    check(f"{name}: no step is missing between two others", not bad, *bad[:5])
    if signals != "-":
        # SIGCHLD, which all of these programs ignore, may be among them or not.
        got = " ".join(str(m.a) for m in t.marks("signal") if m.a != 17)
        equal(f"{name}: each signal is marked once", signals, got)
PY
	rm -f sound_*
	n_sound=0
}
