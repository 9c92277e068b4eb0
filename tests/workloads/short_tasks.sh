# SPDX-License-Identifier: MIT
# Hundreds of processes and threads that live shorter than the time between two samples: the samples stand for
# the CPU time that the kernel's accounts have, each under its own name; where they cannot, that is said.
# weir-test: alone: shares of samples depend on the load
# shellcheck disable=SC2016
. "$ROOT/tests/lib.sh"

cat >threads.c <<'C'
/* Threads of 0.3 ms each, one after the other; prints the CPU time of the process in ns. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static long ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

__attribute__((noinline)) void burn_shortly(void)
{
	long end = ns(CLOCK_THREAD_CPUTIME_ID) + 300000;
	volatile unsigned sum = 0;

	while (ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (unsigned i = 0; i < 2000; i++)
			sum += i;
}

static void *thread_main(void *arg)
{
	burn_shortly();
	return arg;
}

int main(void)
{
	pthread_t thread;

	for (int i = 0; i < 2000; i++) {
		pthread_create(&thread, NULL, thread_main, NULL);
		pthread_join(thread, NULL);
	}
	printf("%ld\n", ns(CLOCK_PROCESS_CPUTIME_ID));
	return 0;
}
C
gcc -O1 -g -o threads threads.c -lpthread || exit 1
many='for i in $(seq 600); do /bin/true; done'

# What the samples stand for, in percent of the CPU time that the command used.
covered() { # TRACE
	"$WEIR" report loss "$1" --json >loss.json
	json loss.json "round(100*j['loss']['sampled_ns']/j['loss']['cpu_ns'])"
}
between() { # SENTENCE NUMBER LEAST MOST
	check "$1 ($2)" test "$2" -ge "$3" -a "$2" -le "$4"
}

"$WEIR" record -q -o p.weir -- sh -c "$many"
"$WEIR" report p.weir --json >summary.json
if [ "$(id -u)" != 0 ] || "$WEIR" record -o note.weir -- true 2>&1 | grep -q 'BPF is not permitted'; then
	skip "short processes are sampled: BPF is not permitted"
else
	between "600 short processes: the samples stand for their CPU time" "$(covered p.weir)" 75 130
	equal "which is that of the command's accounts" True \
		"$(json summary.json "0.97 < j['run']['cpu_ns'] / (j['run']['user_ns'] + j['run']['sys_ns']) < 1.1")"
	"$WEIR" report threads p.weir --json >t.json
	equal "each process is there, and no other" 602 "$(json summary.json "j['run']['n_processes']")"
	between "most of the time has the name of the short program" \
		"$(json t.json "round(100*sum(r['base'] for r in j['rows'] if r['name']=='true')/j['total'])")" 50 99
	"$WEIR" report flat p.weir --json >flat.json
	between "and is in the dynamic linker or the kernel" \
		"$(json flat.json "round(100*sum(r['base'] for r in j['rows'] if 'ld-linux' in (r['image'] or '') or 'kernel' in (r['image'] or ''))/j['total'])")" 60 100
	check "the summary says what the samples stand for" \
		grep -qE 'for [0-9.]+ % of the CPU time' <("$WEIR" report p.weir)
	check "and has nothing to complain of" test -z "$("$WEIR" report p.weir | grep 'samples stand for')"

	# The judge: perf, by CPU, of the same command.
	if perf record -q -N -a -F 999 -e cpu-clock -o perf.data -- sh -c "$many" 2>perf.err; then
		theirs=$(perf script -i perf.data -F comm 2>/dev/null | grep -cE '^ *(sh|true|seq|perf-exec) *$')
		ours=$(json summary.json "j['run']['samples']")
		between "as many samples as perf record -a has of it ($ours, $theirs), in percent" $((100 * ours / theirs)) 60 160
	else
		skip "perf record -a has as many samples: $(tail -1 perf.err)"
	fi

	"$WEIR" record -q -o t.weir -- ./threads >own.txt
	between "2000 short threads: the samples stand for their CPU time" "$(covered t.weir)" 85 115
	"$WEIR" report flat t.weir --json >flat.json
	between "and most of it is where they burn it, by the program's own clock" \
		"$(json flat.json "round(100*sum(r['cum'] for r in j['rows'] if r['name']=='burn_shortly')/$(cat own.txt))")" 70 110
	equal "each thread is there" 2001 "$("$WEIR" report t.weir --json >s.json; json s.json "j['run']['n_threads']")"

	# Without stacks there is another program at the events.
	"$WEIR" record -q --pc-only -o pc.weir -- sh -c "$many"
	between "--pc-only: likewise" "$(covered pc.weir)" 75 130

	# The kernel takes a task's own events away when it begins such a program.
	if [ "$(id -u)" = 0 ] && cp threads other && chown nobody other && chmod u+s other; then
		"$WEIR" record -q -o u.weir -- ./other >own.txt
		between "a program with other rights is sampled, too" "$(covered u.weir)" 85 115
		"$WEIR" report flat u.weir --json >flat.json
		between "with its names" \
			"$(json flat.json "round(100*sum(r['cum'] for r in j['rows'] if r['name']=='burn_shortly')/$(cat own.txt))")" 70 110
	else
		skip "a program with other rights is sampled: only root can make one"
	fi

	./threads >/dev/null &
	pid=$!
	"$WEIR" record -q -p $pid -o a.weir
	"$WEIR" report a.weir --json >s.json
	between "an attached process: its short threads are sampled" \
		"$(json s.json "round(100*j['total']/j['run']['wall_ns'])")" 15 115
	wait $pid

	"$WEIR" record -q -a -o all.weir -- sh -c "$many; exit 7"
	equal "-a with a command passes its status on" 7 $?
	"$WEIR" report threads all.weir --json >t.json
	check "and has its processes" test "$(json t.json "sum(r['samples'] or 0 for r in j['rows'] if r['name']=='true')")" -ge 100
	check "and others" test "$(json t.json "any(r['pid']!=0 and r['name'] not in ('true','sh','seq') for r in j['rows'])")" = True
	equal "it is the whole system" 'the whole system' "$("$WEIR" report all.weir | head -1)"
fi

# Timers of tasks miss what is short. They are made shorter when there is much of it (without that, less than a
# tenth is seen), and what is still missing is said.
WEIR_NO_FILTER=1 "$WEIR" record -q -o n.weir -- ./threads >own.txt
"$WEIR" report n.weir >n.txt
share=$(covered n.weir)
between "timers of tasks: the samples stand for a part of the time" "$share" 12 110
if [ "$share" -lt 85 ]; then
	check "the summary says so" grep -qE '^  the samples stand for [0-9.]+ m?s of [0-9.]+ m?s of CPU time:$' n.txt
	check "and why, and what would help" \
		grep -qE 'a process or thread that uses less than 1.00 ms may have none \(root, or CAP_BPF and CAP_PERFMON, would sample by CPU\)' n.txt
	check "it does not say that nothing is missing" test -z "$(grep 'Nothing was lost, and' n.txt)"
else
	skip "the summary says what is missing: almost nothing is"
fi
"$WEIR" report flat n.weir --json >flat.json
between "what they have is where the time is, in percent" \
	"$(json flat.json "round(100*sum(r['cum'] for r in j['rows'] if r['name']=='burn_shortly')/j['total'])")" 60 100
"$WEIR" report loss n.weir >l.txt
check "report loss has both times" test "$(grep -cE 'ns of CPU time that there was to sample|ns that the samples stand for' l.txt)" = 2

# Others than root.
if [ "$(id -u)" = 0 ] && setpriv --reuid 65534 --clear-groups true 2>/dev/null; then
	mkdir -m 777 theirs
	setpriv --reuid 65534 --clear-groups "$WEIR" record -q -o theirs/t.weir -- sh -c "$many"
	"$WEIR" report theirs/t.weir >n.txt
	if [ "$(covered theirs/t.weir)" -lt 80 ]; then
		check "without rights: the summary says what the samples stand for" grep -q 'the samples stand for' n.txt
	else
		check "without rights: the summary says what the samples stand for" grep -qE 'for [0-9.]+ % of the CPU time' n.txt
	fi
else
	skip "without rights: only root can give them up"
fi

# One long process is as it was. A processor that others hold for a while has no timer meanwhile: three tries.
for _ in 1 2 3; do
	"$WEIR" record -q -o one.weir -- python3 -c 's=0
for i in range(6000000): s+=i'
	[ "$(covered one.weir)" -lt 90 ] || break
done
between "one long process: the samples stand for its CPU time" "$(covered one.weir)" 90 110
WEIR_NO_FILTER=1 "$WEIR" record -q -o one.weir -- python3 -c 's=0
for i in range(6000000): s+=i'
between "and by its own timer" "$(covered one.weir)" 90 110
