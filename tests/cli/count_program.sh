# SPDX-License-Identifier: MIT
# weir count -- CMD: figures, statuses, what is followed, what cannot be counted, options of one kind.
# weir-test: once: what is tested runs inside other programs and has no sanitizer in any build
. "$ROOT/tests/lib.sh"
fixtures=$ROOT/tests/fixtures/translate
gcc -nostdlib -static -o exact "$fixtures/exact_calls.S" || exit 1
gcc -O1 -o storm "$fixtures/life_storm.c" -lpthread || exit 1

count() { # its status in $rc, what it says in err.txt
	"$WEIR" count "$@" >out.txt 2>err.txt
	rc=$?
}

# --- figures
count -- ./exact
equal "the command's status is passed on" 7 $rc
check "instructions, blocks, calls, processes and threads are said" \
	grep -qE "^weir: 'trace.weir': 5004 instructions, 5 blocks, 1000 calls in .* \(1 process, 1 thread\), [0-9]+ bytes; 'weir report flat' shows them$" err.txt
"$WEIR" report flat --json trace.weir >flat.json
equal "each function has its calls and instructions" "[('_start', 3004), ('leaf', 2000)]" "$(json flat.json \
	"sorted((r['name'], r['base']) for r in j['rows'] if r['name'] in ('_start', 'leaf'))")"
equal "the leaf has 1000 calls" 1000 "$(json flat.json "[r['calls'] for r in j['rows'] if r['name'] == 'leaf'][0]")"
count -q -o other.weir -- ./exact
equal "-q says nothing" "" "$(cat err.txt)"
check "-o names the file" [ -s other.weir ]
count -q -o other.weir -- ./exact
check "an older file of ours is kept" [ -s other.weir.old ]
echo text >foreign
fails "a foreign file is not replaced" 1 "'foreign': exists and is no weir file" "$WEIR" count -o foreign -- ./exact
equal "it is as it was" text "$(cat foreign)"

# --- what it becomes, starts, and dies of
count -q -- sh -c 'echo one; /bin/echo two | cat; exit 5'
equal "a shell with a pipe prints what it prints" "one two" "$(xargs <out.txt)"
equal "and ends as it ends" 5 $rc
count -q -- sh -c 'kill -9 $$'
equal "a command that is killed makes weir die of the same signal" 137 $rc
count -q -- sh -c 'trap "echo caught" USR1; kill -USR1 $$; kill -SEGV $$'
equal "a handler runs" caught "$(cat out.txt)"
equal "a signal without one ends the command" 139 $rc
for i in 1 2 3; do
	count -- ./storm
	equal "a storm of threads, forks and signals, $i: it works" "ok 7" "$(cat out.txt) $rc"
	check "a storm of threads, forks and signals, $i: all are counted" \
		grep -qE '\(15 processes, 221 threads\)' err.txt
	equal "a storm of threads, forks and signals, $i: nothing is lost" 0 "$(grep -c losses err.txt)"
	! grep losses err.txt || "$WEIR" report loss trace.weir | grep -v '^ *0 '
done
fails "what cannot be run is told" 1 "'./none': cannot run: No such file" "$WEIR" count -- ./none
printf '#!/no/such/interpreter\n' >odd && chmod +x odd
fails "so is a missing interpreter" 1 "'./odd': cannot run: No such file" "$WEIR" count -- ./odd
printf 'echo in a shell\n' >bare && chmod +x bare
count -q -- ./bare
equal "a script without #! is run by a shell" "in a shell" "$(cat out.txt)"

# --- what is not counted
cat >thirty.c <<'C'
int main(void) { return 4; }
C
if gcc -m32 -o thirty thirty.c 2>/dev/null; then
	count -- sh -c './thirty; echo $?'
	equal "a 32-bit program that a 64-bit one starts does what it does" 4 "$(cat out.txt)"
	check "it is counted, slowly: a note tells" grep -qE "note: '.*/thirty' \(process [0-9]+\) is a 32-bit program: .* counted exactly" err.txt
	equal "nothing is lost" 0 "$(grep -c 'losses' err.txt)"
	check "the report tells it, too" grep -q '32-bit program' <("$WEIR" report loss trace.weir)
else
	skip "a 32-bit program is counted: gcc -m32 does not work here"
fi
count -- unshare -Urpf --mount-proc ls -d /
if [ $rc -eq 0 ]; then
	equal "a program in namespaces of its own is counted" "/ 0" "$(cat out.txt) $(grep -c 'not counted\|losses' err.txt)"
else
	skip "a program in namespaces of its own is counted: unshare does not work here"
fi

# --- its file is another one at the end, though it may have been opened before
gcc -nostdlib -static -Wl,--build-id=none -o replaced "$fixtures/exact_calls.S" || exit 1
count -q -- sh -c './replaced; cp replaced other && echo >>other && mv other replaced'
"$WEIR" report trace.weir --json >summary.json
check "a file that was replaced meanwhile is told, and not read" \
	grep -q "replaced' is not at hand (its size is another)" summary.json

# --- processes that run
./storm 3000000 >worked.txt &
pid=$!
runs $pid
count --duration 0.5 -p $pid
equal "-p ends after --duration" 0 $rc
check "and has counted" grep -qE "'trace.weir': [0-9]{5,} instructions" err.txt
kill -0 $pid && ok "the process goes on" || not_ok "the process goes on"
equal "it is not traced any more" 0 "$(sed -n 's/^TracerPid:\t//p' /proc/$pid/status)"
for i in 1 2; do
	"$WEIR" count -q -p $pid 2>err.txt &
	weir=$!
	sleep 0.5
	kill -INT $weir
	wait $weir
	equal "it can be counted again, $i; Ctrl-C ends that" "" "$(cat err.txt)"
done
kill -0 $pid && ok "the process goes on behind that" || not_ok "the process goes on behind that"
kill $pid
cat >waits.c <<'C'
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
static void *epolls(void *arg)
{
	struct epoll_event e;
	printf("epoll %d\n", epoll_wait(epoll_create1(0), &e, 1, 2000));
	return arg;
}
static void *sleeps(void *arg)
{
	struct timespec t = {2, 0};
	printf("sleep %d\n", nanosleep(&t, NULL));
	return arg;
}
static void *polls(void *arg)
{
	printf("poll %d\n", poll(NULL, 0, 2000));
	return arg;
}
static void *reads(void *arg)
{
	char byte;
	printf("read %d\n", (int)read(0, &byte, 1));
	return arg;
}
static void *works(void *arg)
{
	struct timespec began, now;
	unsigned long rounds = 0;
	clock_gettime(CLOCK_MONOTONIC, &began);
	do
		rounds++, clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec - began.tv_sec < 3);
	puts(rounds ? "worked" : "?");
	return arg;
}
int main(void)
{
	void *(*all[])(void *) = {epolls, sleeps, polls, reads, works};
	pthread_t t[5];
	for (int i = 0; i < 5; i++)
		pthread_create(&t[i], NULL, all[i], NULL);
	for (int i = 0; i < 5; i++)
		pthread_join(t[i], NULL);
	return 7;
}
C
gcc -O1 -o waits waits.c -lpthread || exit 1
(sleep 3.5 && echo x) | ./waits >waited.txt &
pid=$!
sleep 0.3
"$WEIR" count -q --duration 0.5 -p "$(pgrep -n -x waits)" 2>err.txt
equal "threads that wait are counted, and left alone again" "" "$(cat err.txt)"
wait $pid
equal "they wait on, undisturbed: it ends with 7" 7 $?
equal "and none of the calls has failed" "epoll 0 poll 0 read 1 sleep 0 worked" "$(sort waited.txt | xargs)"
fails "a process that is not there is told" 1 'there is no process 4194304' "$WEIR" count -p 4194304
sleep 100 &
pid=$!
runs $pid
"$WEIR" steps -q -o s.weir -p $pid &
weir=$!
sleep 0.5
fails "a process that is traced is told" 1 "process $pid is traced by process" "$WEIR" count -p $pid
kill $pid
wait $weir

# --- options
fails "options of links are refused" 2 '--only is not an option of a program' "$WEIR" count --only f -- ./exact
fails "options of programs are refused for links" 2 '--output is not an option of a link' "$WEIR" count -o f gcc x.c
fails "a command and -p" 2 'a command and -p exclude each other' "$WEIR" count -p 1 -- ./exact
fails "nothing to count" 2 'nothing to count' "$WEIR" count --
check "weir doctor tells of it" grep -qE '^good +count ' <("$WEIR" doctor)
