/* SPDX-License-Identifier: MIT */
/*
 * A timer interrupts the work. Flags: TICK_US, how long a tick is when the work is not tiny; one of
 * HANDLER_EMPTY, HANDLER_CALLS=N (N hooked calls a tick), HANDLER_NESTED (raises another signal,
 * whose handler may be interrupted itself), HANDLER_JUMPS (siglongjmp); ON_ALTSTACK.
 */
#define FUNCTIONS(X) X(h_leaf) X(h_work) X(h_in_handler) X(h_in_nested)
#include "hazard.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#ifndef HANDLER_CALLS
#define HANDLER_CALLS 0
#endif

/* Instruction by instruction, everything takes a thousand times as long; so do ticks, and handlers
 * are short. */
enum { TINY_US = 40000, TINY_CALLS = 5 };

static int n_calls, tick_us;
static sigjmp_buf back;
static volatile sig_atomic_t may_jump;
static volatile unsigned long handled;

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
HOOKED long h_work(long n)
{
	CALLED(h_work);
	n = h_leaf(n) + h_leaf(n + 1);
	AFTER_CALL();
	return n;
}
HOOKED long h_in_handler(long n)
{
	CALLED(h_in_handler);
	return n + hazard_zero;
}
HOOKED long h_in_nested(long n)
{
	CALLED(h_in_nested);
	return n ? h_in_handler(n) + 1 : 1;
}

static void nested(int sig)
{
	(void)sig;
	handled += h_in_nested(1) > 0;
}
static void tick(int sig)
{
	(void)sig;
	for (int i = 0; i < n_calls; i++)
		handled += h_in_handler(i) >= 0;
#ifdef HANDLER_NESTED
	h_in_handler(1);
	raise(SIGUSR1);
#endif
#ifdef HANDLER_JUMPS
	h_in_handler(1);
	if (may_jump) {
		may_jump = 0;
		calls_cut++;
		siglongjmp(back, 1);
	}
#endif
}

static void timer_set(long us)
{
	struct itimerval t = {{us / 1000000, us % 1000000}, {us / 1000000, us % 1000000}};

	setitimer(ITIMER_REAL, &t, NULL);
}

static unsigned long hazard(int n)
{
	static char stack[65536];
	stack_t alternative = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction sa = {.sa_handler = tick, .sa_flags = SA_RESTART};
	volatile unsigned long sum = 0;
	volatile long i = 0;

	calls_word = "here";
#ifdef ON_ALTSTACK
	sigaltstack(&alternative, NULL);
	sa.sa_flags |= SA_ONSTACK;
#endif
#ifdef HANDLER_NESTED
	sa.sa_flags |= SA_NODEFER;
#endif
	(void)alternative;
	sigaction(SIGALRM, &sa, NULL);
	sa.sa_handler = nested;
	sigaction(SIGUSR1, &sa, NULL);
	tick_us = n > 10 ? TICK_US : TINY_US;
	n_calls = n > 10 || HANDLER_CALLS < TINY_CALLS ? HANDLER_CALLS : TINY_CALLS;
	timer_set(tick_us);
	/* The work of a round that a jump cuts short is done again. */
	while (i < n * 100) {
		unsigned long part;

		may_jump = 0;
		if (sigsetjmp(back, 1) == 0) {
#ifdef HANDLER_JUMPS
			may_jump = 1;
#endif
			part = (unsigned long)h_work(i);
			may_jump = 0;
			sum += part;
			i++;
		}
	}
	timer_set(0);
	return sum;
}
