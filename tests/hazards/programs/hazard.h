/* SPDX-License-Identifier: MIT */
/*
 * A program of the matrix. It defines FUNCTIONS(X) as X(name) for each function that is followed
 * (their names begin with h_), says CALLED(name) first in each of them, and defines hazard(n),
 * which does one round of work of size n and returns what it has computed. This header has the
 * counters and main():
 *
 *   PROGRAM SIZE once   one round
 *   PROGRAM SIZE hold   waits for a line, one round, waits for a line, a round that is not counted
 *   PROGRAM SIZE held   waits for a line, one round
 *   PROGRAM SIZE loop   waits for a line, rounds until there is a line
 *
 * It says "ready" on standard error before it waits. On standard output:
 *
 *   result X            of a round, the same each time
 *   calls NAME N        how often, the same in each run
 *   here NAME N [M]     how often in this run; with M: from N to M times
 *
 * Several processes may print calls: they are added up.
 *
 * With -DHAZARD_TICKS a timer interrupts the work at 5 kHz, whose handler calls h_tick. A program
 * whose threads are to be interrupted, and not the first one, which waits for them, defines
 * HAZARD_THREADS and says TICKS_HERE() in them.
 */
#ifndef TESTS_HAZARDS_HAZARD_H
#define TESTS_HAZARDS_HAZARD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define HAZARD_NUMBER(f) CALLS_##f,
#define HAZARD_NAME(f)	 #f,
#ifdef HAZARD_TICKS
#define HAZARD_TICK(X) X(h_tick)
#else
#define HAZARD_TICK(X)
#endif
enum { FUNCTIONS(HAZARD_NUMBER) HAZARD_TICK(HAZARD_NUMBER) N_CALLS };
static const char *const calls_names[] = {FUNCTIONS(HAZARD_NAME) HAZARD_TICK(HAZARD_NAME)};
static unsigned long calls_n[N_CALLS];
/* Entries that a jump out of a handler, or cancellation, left: perhaps before they were counted. */
static unsigned long calls_cut;
static int calls_are_told;		 /* what comes now is not counted */
static const char *calls_word = "calls"; /* "here" where they differ from run to run */
static int hazard_status = 7;
static volatile long hazard_zero;

/*
 * With HAZARD_INT3 a branch that is never taken leads to the second byte of each function, whose
 * first is a nop (-fpatchable-function-entry=1): then only a breakpoint fits.
 */
#ifdef HAZARD_INT3
#define CALLED_EXTRA(f) __asm__ volatile("test %0, %0\n\tjne " #f "+1" : : "r"(hazard_zero) : "cc")
#else
#define CALLED_EXTRA(f) ((void)0)
#endif
/* Something first that every way to probe a function can move: the kernel refuses a lock prefix. */
#define CALLED(f)                                                                                  \
	__asm__ volatile("test %%esp, %%esp" ::: "cc", "memory");                                  \
	((void)__atomic_fetch_add(&calls_n[CALLS_##f], 1ul, __ATOMIC_RELAXED));                    \
	CALLED_EXTRA(f)
#ifdef __clang__
#define HAZARD_OPAQUE noinline
#else
#define HAZARD_OPAQUE noipa
#endif
#ifdef __cplusplus
#define HOOKED extern "C" __attribute__((HAZARD_OPAQUE, visibility("protected")))
#else
#define HOOKED __attribute__((HAZARD_OPAQUE, visibility("protected")))
#endif
#define PLAIN __attribute__((no_instrument_function, noinline, unused))
/* Behind a call: it is not the last thing that the function does. */
#define AFTER_CALL() __asm__ volatile("" ::: "memory")

#ifdef HAZARD_TICKS
PLAIN static void ticks_mask(int how);
#define TICKS_HERE() ticks_mask(SIG_UNBLOCK)
#else
#define TICKS_HERE() ((void)0)
#endif

static unsigned long hazard(int n);

PLAIN static void say(const char *text)
{
	size_t n = strlen(text);

	if (write(1, text, n) != (ssize_t)n)
		_exit(97);
}
PLAIN static void calls_reset(void)
{
	memset(calls_n, 0, sizeof(calls_n));
}
PLAIN static void calls_print(void)
{
	char text[4096];
	size_t n = 0;

	if (calls_are_told)
		return;
	for (int i = 0; i < N_CALLS; i++) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %s %lu", calls_word,
			calls_names[i], calls_n[i]);
		if (calls_cut)
			n += (size_t)snprintf(
				text + n, sizeof(text) - n, " %lu", calls_n[i] + calls_cut);
		text[n++] = '\n';
	}
	text[n] = 0;
	say(text);
}
PLAIN static void result_print(unsigned long result)
{
	char text[64];

	snprintf(text, sizeof(text), "result %lx\n", result & 0xffffffff);
	say(text);
}

PLAIN static void hazard_wait(void)
{
	char c;

	if (write(2, "ready\n", 6) != 6 || read(0, &c, 1) != 1)
		_exit(98);
}
PLAIN static int hazard_may_go_on(void)
{
	struct pollfd fd = {0, POLLIN, 0};

	return poll(&fd, 1, 0) == 0;
}

#ifdef HAZARD_TICKS
/* Instruction by instruction, everything takes a thousand times as long. */
enum { TICK_US = 200, TINY_TICK_US = 40000, TICK_CALLS = 3 };

HOOKED long h_tick(long n)
{
	CALLED(h_tick);
	return n + hazard_zero;
}
PLAIN static void ticks_handler(int sig)
{
	(void)sig;
	for (long i = 0; i < TICK_CALLS; i++)
		h_tick(i);
}
PLAIN static void ticks_mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(how, &set, NULL);
}
PLAIN static void ticks_set(long us)
{
	struct itimerval t = {{0, us}, {0, us}};

	setitimer(ITIMER_REAL, &t, NULL);
}
PLAIN static unsigned long hazard_with_ticks(int n)
{
	struct sigaction sa;
	unsigned long result;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = ticks_handler;
	sa.sa_flags = SA_RESTART;
	calls_word = "here";
	sigaction(SIGALRM, &sa, NULL);
#ifdef HAZARD_THREADS
	ticks_mask(SIG_BLOCK);
#endif
	ticks_set(n > 10 ? TICK_US : TINY_TICK_US);
	result = hazard(n);
	ticks_set(0);
	return result;
}
#define hazard hazard_with_ticks
#endif

#ifndef HAZARD_OWN_MAIN
int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	const char *mode = argc > 2 ? argv[2] : "once";
	unsigned long result;

	if (*mode != 'o')
		hazard_wait();
	result = hazard(n);
	if (*mode == 'l') {
		calls_word = "here";
		while (hazard_may_go_on())
			if (hazard(n) != result)
				say("a round has another result\n");
	}
	result_print(result);
	calls_print();
	if (!strcmp(mode, "hold")) {
		calls_are_told = 1;
		hazard_wait();
		if (hazard(n) != result)
			say("the last round has another result\n");
	}
	return hazard_status;
}
#endif
#undef hazard
#endif
