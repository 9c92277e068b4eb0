/* SPDX-License-Identifier: MIT */
#include "record/hooks/budget.h"

#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/order.h"
#include "rt/hook/hook_abi.h"

/* By a jump, or by what a compiler has left, about this (bench/events measures it). */
#define PLAIN_PAIR_NS 40.0
#define TRAP_NS	      1500.0 /* where it cannot be measured */
#define TRAP_ROUNDS   8
#define TRAPS_A_ROUND 32

/* Unhooking what costs less than this share of the excess would not help. */
#define SHARE_MIN 0.01

static void on_trap(int number)
{
	(void)number;
}

/* The best of some rounds, in ns. */
static uint64_t measure_traps(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRAP_ROUNDS; i++) {
		uint64_t began = clock_mono_ns(), took;

		for (int k = 0; k < TRAPS_A_ROUND; k++)
			__asm__ volatile("int3");
		took = clock_mono_ns() - began;
		best = took < best ? took : best;
	}
	return best;
}

double budget_measure_trap(void)
{
	struct sigaction action = {.sa_handler = on_trap}, old_action;
	uint64_t best = 0;
	sigset_t trap, old;

	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	if (sigaction(SIGTRAP, &action, &old_action) < 0)
		return TRAP_NS;
	if (pthread_sigmask(SIG_UNBLOCK, &trap, &old) ==
		0) { /* one that is blocked ends a program */
		best = measure_traps();
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	sigaction(SIGTRAP, &old_action, NULL);
	return best ? (double)best / TRAPS_A_ROUND : TRAP_NS;
}

double budget_pair_ns(uint8_t method, double trap_ns)
{
	return method == HOOK_METHOD_INT3 ? PLAIN_PAIR_NS + trap_ns : PLAIN_PAIR_NS;
}

static double cost_ns(const struct budget_function *f)
{
	return (double)f->calls * f->pair_ns;
}

/* How long its calls are for what their hooks cost. */
static double worth(const struct budget_function *f)
{
	return (double)f->elapsed_ns / cost_ns(f);
}

static int by_worth(const void *a, const void *b)
{
	const struct budget_function *x = a, *y = b;

	if (!x->calls || !y->calls)
		return ORDER(y->calls, x->calls);
	return ORDER(worth(x), worth(y));
}

size_t budget_choose(
	struct budget_function *functions, size_t n, uint64_t running_ns, double percent)
{
	double limit = (double)running_ns * percent / 100, cost = 0, excess;
	size_t n_off = 0;

	for (size_t i = 0; i < n; i++)
		cost += cost_ns(&functions[i]);
	if (cost <= limit)
		return 0;
	excess = cost - limit;
	qsort(functions, n, sizeof(*functions), by_worth);
	for (size_t i = 0; i < n && cost > limit; i++) {
		struct budget_function f = functions[i];
		double own = cost_ns(&f);

		if (own < excess * SHARE_MIN)
			continue;
		functions[i] = functions[n_off];
		functions[n_off++] = f;
		cost -= own;
	}
	return n_off;
}
