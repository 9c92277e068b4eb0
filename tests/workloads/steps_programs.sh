# SPDX-License-Identifier: MIT
# Programs that do what a tracer breaks: each prints and ends as without tracing, and its trace has all of
# its steps, none of ours, and every signal once.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/workloads/steps_lib.bash"
sizes=(64)
if small flags32 flags.c -m32 >/dev/null; then sizes+=(32); else skip "32-bit programs: gcc -m32 does not work here"; fi

for bits in "${sizes[@]}"; do
	m=-m$bits
	small flags flags.c $m && same "flags, $bits-bit" ./flags
	sound "flags, $bits-bit" ./flags

	small strings strings.c $m && same "string instructions, $bits-bit" ./strings
	sound "string instructions, $bits-bit" ./strings
	BITS=$bits judge ./strings <<'PY'
import re
bits = os.environ["BITS"]
wrong, n = [], 0
for label, addr in symbols(program).items():
    match = re.fullmatch(r"(rep|steps|calls)_\w+_(\d+)", label)
    if not match:
        continue
    n += 1
    here, want = [s for s in t.steps() if s.addr == addr], int(match[2])
    if match[1] == "rep":
        good = sum(s.times for s in here) == max(want, 1) and len(here) == (2 if "interrupted" in label else 1)
    else:
        good = len(here) == want and all(s.times == 1 for s in here)
    if not good:
        wrong.append(f"{label}: {here}")
check(f"{n} string instructions, {bits}-bit: one step each, with its rounds", n > 15 and not wrong, *wrong)
equal(f"the fault in the midst of one, {bits}-bit, is marked once", [11], [m.a for m in t.marks("signal")])
PY

	small signals signals.c $m || continue
	same "signals, sent, $bits-bit" ./signals sent
	sound "signals, sent, $bits-bit" ./signals "10 12 10 10 12"
	same "signals of its own traps, $bits-bit" ./signals traps
	sound "signals of its own traps, $bits-bit" ./signals "5 5 5 5"
	same "signals of faults, $bits-bit" ./signals faults
	sound "signals of faults, $bits-bit" ./signals "11 4 8 11"
	BITS=$bits judge ./signals <<'PY'
s, bits = symbols(program), os.environ["BITS"]
equal(f"signals of faults, {bits}-bit: with the addresses of faults", [16, s["bad_code"], s["bad_divisor"], 0],
      [m.c for m in t.marks("signal")])
done = [x.addr for x in t.steps()]
check(f"signals of faults, {bits}-bit: what faulted was not executed",
      not {s["bad_load"], s["bad_code"], s["bad_divisor"], 0} & set(done) and s["jump_to_nowhere"] in done)
PY
	same "signals of a timer, $bits-bit" ./signals timer
	sound "signals of a timer, $bits-bit" ./signals "14 14"
	same "system calls that are begun again, $bits-bit" ./signals restarted
	sound "system calls that are begun again, $bits-bit" ./signals
	same "handlers in handlers, $bits-bit" ./signals nested
	sound "handlers in handlers, $bits-bit" ./signals "10 12 10"
	same "a trap that is blocked, $bits-bit" ./signals blocked_trap

	small processes processes.c $m || continue
	for mode in "exit 0" "exit 3" fork vfork exec stop affinity "kill 9" "kill 6" "kill 15" fault; do
		# shellcheck disable=SC2086
		same "processes: $mode, $bits-bit" ./processes $mode
		sound "processes: $mode, $bits-bit" ./processes
	done
	sound "a fault that ends the program, $bits-bit" ./processes 11
	steps t.weir -- ./processes orphan | cat >out.traced
	equal "a child that outlives its parent goes on, $bits-bit" alone "$(cat out.traced)"
	sound "a child that outlives its parent, $bits-bit" ./processes

	small guarded guarded.c $m || continue
	for mode in strict strict_killed errno trap trace killed trace_me; do
		same "seccomp and ptrace: $mode, $bits-bit" ./guarded $mode
		sound "seccomp and ptrace: $mode, $bits-bit" ./guarded
	done

	# What is forked runs untraced: it can be traced by the program itself then.
	step_options=(--no-follow)
	same "a program that traces its child, with --no-follow, $bits-bit" ./guarded debugger
	sound "a program that traces its child, with --no-follow, $bits-bit" ./guarded
	step_options=()

	small faults faults.c $m || continue
	same "page faults and signals are as many, $bits-bit" ./faults
	sound "page faults and signals, $bits-bit" ./faults "10 10 10 10 10"
	# The one difference: before a step by ptrace the kernel itself looks whether the next instruction is
	# a popf, so that a page of code that nobody has touched yet is there when the program comes to it.
	steps t.weir -- ./faults fresh_code >out.traced
	equal "the fault of a page of code that is new, $bits-bit: taken by the kernel's look at it" "1 0" \
		"$(for f in <(./faults fresh_code) out.traced; do sed -n 's/.*zeroes executed //p' "$f"; done | paste -sd ' ')"
	sound "a page of code that is new, $bits-bit" ./faults
done

small processes processes.c || exit 1
for mode in threads clone3 thread_exec thread_exit first_exit; do
	same "processes: $mode" ./processes $mode
	sound "processes: $mode" ./processes
done
step_options=(--no-follow)
same "processes: fork, with --no-follow" ./processes fork
step_options=()
judge ./processes <<'PY'
equal("with --no-follow one process is traced", 1, len({th.pid for th in t.threads if th.steps}))
PY
steps t.weir -- ./processes threads >out.traced
judge ./processes <<'PY'
# Each runs `counter`: as many steps as the others.
s = symbols(program)
counts = [len([x for x in thread.steps if s["counter"] <= x.addr < s["counter"] + 64]) for thread in t.threads]
equal("five threads, four of which count", 5, len(t.threads))
check("each of the four has the same steps", len(set(counts[1:])) == 1 and counts[1] > 60, counts)
equal("their beginnings are marked", sorted(th.tid for th in t.threads[1:]), sorted(m.b for m in t.threads[0].marks("fork")))
equal("and their ends", 5, len(t.marks("exit")))
PY
judge_sound

# A trap that the program ignores, also when it was told so before its exec.
cat >ignoring.c <<'C'
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	signal(SIGTRAP, SIG_IGN);
	raise(SIGTRAP);
	puts("ignored");
	fflush(stdout);
	if (argc > 1)
		return 2;
	execl(argv[0], argv[0], "again", NULL);
	return 1;
}
C
gcc -O1 -static -o ignoring ignoring.c && same "a trap that is ignored" ./ignoring
