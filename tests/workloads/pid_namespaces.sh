# SPDX-License-Identifier: MIT
# A program in a pid namespace of its own, and weir itself in one, with /proc of that namespace or of the one
# around it: the same times, threads, names and complete stacks as outside, sampled and hooked.
# weir-test: alone: shares of samples depend on the load
# weir-test: root: only root may make a pid namespace
. "$ROOT/tests/lib.sh"

cat >family.c <<'C'
/* Three children of two threads each, which burn 60 ms of CPU time deep inside of their stacks. */
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 120

static long ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

__attribute__((noinline)) long burn(void)
{
	long end = ns() + 60000000;
	volatile long sum = 0;

	while (ns() < end)
		for (long i = 0; i < 20000; i++)
			sum += i;
	return sum;
}

/* Frames of a KiB: the whole is larger than what the kernel copies. */
__attribute__((noinline)) long dive(int depth)
{
	volatile char room[1024];
	long sum;

	room[0] = (char)depth;
	sum = depth ? dive(depth - 1) : burn();
	return sum + room[0];
}

static void *thread_main(void *arg)
{
	dive(DEPTH);
	return arg;
}

int main(void)
{
	for (int i = 0; i < 3; i++) {
		pthread_t thread;

		if (fork())
			continue;
		pthread_create(&thread, NULL, thread_main, NULL);
		dive(DEPTH);
		pthread_join(thread, NULL);
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
C
gcc -O1 -g -fno-optimize-sibling-calls -o family family.c -lpthread || exit 1
if ! unshare -fp --mount-proc true 2>why.txt; then
	skip "pid namespaces: $(tail -1 why.txt)"
	finish
fi

# What the reports of a trace say: times in ms, threads that burn, percent of complete stacks.
look() { # TRACE
	"$WEIR" report flat "$1" --json >flat.json
	"$WEIR" report threads "$1" --json >threads.json
	burnt=$(json flat.json "round(sum(r['cum'] for r in j['rows'] if r['name']=='burn')/1e6)")
	total=$(json flat.json "round(j['total']/1e6)")
	busy=$(json threads.json "sum((r['base'] or 0)>2e7 for r in j['rows'])")
	complete=$(json flat.json "round(100*j['loss']['stacks_complete']/max(j['loss']['stacks'],1))")
}

same() { # NAME: what is in t.weir, against six times 60 ms
	look t.weir
	check "$1: burn() has the program's time ($burnt ms of 360)" test "$burnt" -ge 290 -a "$burnt" -le 430
	check "$1: and so has the whole ($total ms)" test "$total" -ge 300 -a "$total" -le 520
	equal "$1: six threads are busy" 6 "$busy"
	check "$1: the stacks are complete ($complete %)" test "$complete" -ge 97
}

hooked() { # NAME
	"$WEIR" report flat t.weir --json >flat.json
	equal "$1: burn() has six calls" 6 "$(json flat.json "sum(r['calls'] or 0 for r in j['rows'] if r['name']=='burn')")"
	look t.weir
	check "$1: of the program's time ($burnt ms of 360)" test "$burnt" -ge 290 -a "$burnt" -le 430
	check "$1: and the samples are not beside it ($total ms)" test "$total" -ge 300 -a "$total" -le 520
	check "$1: nothing was lost" test "$(json flat.json "j['loss']['events_lost']")" = 0
}

inner=(unshare -fp --mount-proc)
outer_proc=(unshare -fp) # /proc stays that of the namespace around
users=(unshare -Urpf --mount-proc)
"$WEIR" record -q -o t.weir -- ./family
same "outside"
"$WEIR" record -q -o t.weir -- "${inner[@]}" ./family
same "the program inside"
"$WEIR" record -q -o t.weir -- "${outer_proc[@]}" "${inner[@]}" ./family
same "the program two namespaces further in"
"${inner[@]}" "$WEIR" record -q -o t.weir -- ./family
same "weir inside"
"${outer_proc[@]}" "$WEIR" record -q -o t.weir -- ./family
same "weir inside, /proc from outside"
"${inner[@]}" "$WEIR" record -q -o t.weir -- "${inner[@]}" ./family
same "weir inside, the program further in"
if "${users[@]}" true 2>why.txt; then
	"$WEIR" record -q -o t.weir -- "${users[@]}" ./family
	same "the program inside, with a user namespace"
else
	skip "the program inside, with a user namespace: $(tail -1 why.txt)"
fi

hook() { # NAME, COMMAND in front of weir, then behind it after a --
	local name=$1 front=()
	shift
	while [ "$1" != -- ]; do
		front+=("$1")
		shift
	done
	"${front[@]}" "$WEIR" record -q --functions burn -o t.weir "$@"
	hooked "$name"
}
hook "hooked outside" -- ./family
hook "hooked inside" -- "${inner[@]}" ./family
hook "hooked by weir inside" "${inner[@]}" -- ./family
hook "hooked by weir inside, /proc from outside" "${outer_proc[@]}" -- ./family

# A process that is attached to, seen from inside of a namespace that it is in, by the number it has there.
cat >attach.sh <<'S'
"$1" forever &
pid=$!
sleep 0.3
"$2" record -q -p $pid --duration 0.5 -o "$3"
kill -9 $pid
S
gcc -O2 -o split "$ROOT/tests/workloads/split.c" -lpthread || exit 1
"${outer_proc[@]}" sh attach.sh ./split "$WEIR" a.weir
"$WEIR" report flat a.weir --json >flat.json
check "attached inside, /proc from outside: the names are there" \
	test "$(json flat.json "any(r['name']=='seventy' and r['base']>0.6*j['total'] for r in j['rows'])")" = True
"${inner[@]}" "$WEIR" record -a --duration 0.1 -o all.weir 2>note.txt
check "-a inside: what is outside has no number, and that is said" grep -q 'outside of this pid namespace have no number' note.txt
