# SPDX-License-Identifier: MIT
# What weir count -- CMD may not do to programs that live dangerously: masks of signals, code that changes.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
fixtures=$ROOT/tests/fixtures/translate
"$WEIR" count -q -o true.weir -- true 2>err.txt || { skip "dangerous programs: $(head -n 1 err.txt)" && finish; }
gcc -O1 -o signal_masks "$fixtures/signal_masks.c" -lpthread || exit 1
gcc -O1 -o signals_between "$fixtures/signals_between.c" || exit 1
gcc -O1 -o own_code "$fixtures/own_code.c" -lpthread 2>gcc.txt || exit 1

# same SENTENCE COMMAND...: what it prints, and its status, are as they are without us
same() {
	local sentence=$1 expected
	shift
	expected=$("$@" 2>&1) || expected+=" and fails"
	equal "$sentence" "$expected" "$("$WEIR" count -q -o t.weir -- "$@" 2>&1 || echo " and fails")"
}

same "masks are right among signals, and for programs that begin" ./signal_masks
same "signals that come between two blocks are handled" timeout 20 ./signals_between
same "a program that begins with SIGTRAP and SIGSEGV blocked keeps them so" ./signal_masks blocked
same "code that changes, in its own block, too, or by another mapping, is executed as it is" ./own_code

# --- processes that are attached to, and left again
gcc -O1 -o busy_threads "$fixtures/busy_threads.c" -lpthread || exit 1
./busy_threads >busy.txt &
pid=$!
runs $pid
sleep 0.1
n=$(wc -l <"/proc/$pid/maps")
said=
for i in 0.001 0.003 0.01 0.02 0.05 0.001 0.07 0.002 0.03 0.1; do
	"$WEIR" count -q -o a.weir --duration $i -p $pid 2>err.txt || said+="after $i s: $(head -n 1 err.txt) "
done
equal "busy threads are counted for a moment, again and again" "" "$said"
equal "nothing of it stays in their memory" "0 $n" "$(grep -c rwxp "/proc/$pid/maps") $(wc -l <"/proc/$pid/maps")"
kill -USR1 $pid
wait $pid
equal "they have not noticed it" "0: 0 wrong, worked" "$?: $(cat busy.txt)"

# Waits for a time end when it is over, not before, and they do end: none begins its time anew each time.
gcc -O1 -o waiting_threads "$fixtures/waiting_threads.c" -lpthread || exit 1
./waiting_threads 2 >waiting.txt 2>&1 &
pid=$!
runs $pid
said=
n=0
while kill -0 $pid 2>/dev/null && [ $n -lt 100 ]; do
	"$WEIR" count -q -o a.weir --duration 0.0$((n % 4 + 1)) -p $pid 2>err.txt || ! kill -0 $pid 2>/dev/null ||
		said+="$(head -n 1 err.txt) "
	n=$((n + 1))
done
equal "threads that wait in 23 ways are counted for a moment, again and again" "" "$said"
for ((i = 0; i < 100; i++)); do
	kill -0 $pid 2>/dev/null || break
	sleep 0.1
done
kill -9 $pid 2>/dev/null
wait $pid
equal "no wait has ended early, or begun anew, or lost a signal" "0: 0 wrong, signalled" "$?: $(cat waiting.txt)"

cat >narrow.c <<'C'
#include <unistd.h>
int main(void)
{
	for (;;)
		usleep(1000);
}
C
if gcc -m32 -o narrow narrow.c 2>gcc.txt; then
	./narrow &
	pid=$!
	runs $pid
	fails "a 32-bit process is refused, with what can be done instead" 1 \
		"process $pid cannot be counted: it is a 32-bit program.*'weir record -p' samples it" \
		"$WEIR" count -q -o narrow.weir --duration 0.1 -p $pid
	check "it runs on" kill -0 $pid
	kill $pid
	wait $pid 2>/dev/null
else
	skip "a 32-bit process is refused: $(head -n 1 gcc.txt)"
fi

cat >restarts.c <<'C'
/* Says all the time that it is in a restartable sequence. */
#include <stdint.h>
#include <sys/rseq.h>
#include <unistd.h>
static struct rseq_cs sequence __attribute__((aligned(32))) = {.start_ip = 1, .post_commit_offset = 1};
static const uint32_t abort_place[2] = {RSEQ_SIG};
int main(void)
{
	struct rseq *r = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);

	alarm(60);
	sequence.abort_ip = (uintptr_t)&abort_place[1];
	if (!__rseq_size)
		return 3;
	for (;;)
		*(volatile uint64_t *)&r->rseq_cs = (uint64_t)&sequence;
}
C
if gcc -O1 -o restarts restarts.c 2>gcc.txt; then
	./restarts &
	pid=$!
	runs $pid
	sleep 0.1
	fails "a process with restartable sequences is refused" 1 \
		"process $pid cannot be counted: it uses restartable sequences" \
		"$WEIR" count -q -o restarts.weir --duration 0.1 -p $pid
	check "it runs on" kill -0 $pid
	kill $pid
	wait $pid 2>/dev/null
else
	skip "restartable sequences: $(grep -m 1 error gcc.txt)"
fi

# --- programs that trace others
cat >tests_tracing.c <<'C'
/* As gdb does to see what ptrace can do: a child in the same memory that is traced, beside one that is made by vfork
 * and wants to be traced, too. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
static int child(void *arg)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	kill(getpid(), SIGSTOP);
	_exit((int)(long)arg);
}
static int stops_and_ends(pid_t pid)
{
	int status = 0, is_stopped = waitpid(pid, &status, 0) == pid && WIFSTOPPED(status);

	ptrace(PTRACE_CONT, pid, 0, 0);
	return is_stopped && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
int main(void)
{
	char *stack = malloc(65536);
	pid_t pid = vfork();

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execl("/bin/true", "true", NULL);
		_exit(9);
	}
	printf("%d ", stops_and_ends(pid));
	for (long i = 1; i < 4; i++)
		printf("%d ", stops_and_ends(clone(child, stack + 65536, CLONE_VM | SIGCHLD, (void *)i)));
	puts("traced");
	return 0;
}
C
gcc -O1 -o tests_tracing tests_tracing.c || exit 1
same "a program that traces its children" timeout 20 ./tests_tracing

# --- programs that have probes in their code
cat >probed.c <<'C'
#include <stdio.h>
__attribute__((noinline)) long probed(long n)
{
	return n * 3 + 1;
}
int main(void)
{
	long sum = 0;
	for (int i = 0; i < 300; i++)
		sum += probed(i);
	printf("%ld\n", sum);
	return 0;
}
C
gcc -O1 -o probed probed.c || exit 1
"$WEIR" probe -q -d 20 -e 'uprobe:./probed:probed { @ = count(); }' >probe.txt 2>&1 &
probe=$!
for ((i = 0; i < 100; i++)); do
	./probed >expected.txt
	# what is in the file is not what is in memory then
	gdb -q -nx -batch -ex 'break main' -ex run -ex 'x/bx probed' ./probed 2>/dev/null | grep -q 'probed>:.*0xcc' && break
	kill -0 $probe 2>/dev/null || break
	sleep 0.05
done
if [ "$i" -lt 100 ] && kill -0 $probe 2>/dev/null; then
	same "a program that has probes in its code" ./probed
else
	skip "a program that has probes in its code: $(head -n 1 probe.txt)"
fi
kill -INT $probe 2>/dev/null
wait $probe

# --- programs with rights of their own
place=$(mktemp -d /tmp/weir-rights-XXXXXX) && chmod 777 "$place"
as() { setpriv --reuid $1 --regid $1 --clear-groups "${@:2}"; }
if [ "$(id -u)" = 0 ] && as 65534 test -x "$WEIR" 2>as.txt; then
	cp "$(type -P true)" "$place/with_rights" && chmod 4755 "$place/with_rights"
	for command in count steps "steps --engine ptrace --max 1000"; do
		for user in 65534 0; do
			as $user "$WEIR" $command -o "$place/$user.weir" -- "$place/with_rights" 2>rights.txt
			equal "$command as user $user: a program that loses its rights is named" "0 $((user > 0))" \
				"$? $(grep -c "with_rights' runs without rights" rights.txt)"
		done
	done
else
	skip "programs that lose their rights: needs root, and a weir that others may execute"
fi
rm -rf "$place"
