/* SPDX-License-Identifier: MIT */
#include "record/hooks/budget.h"

#include <stdlib.h>

#include "base/order.h"

/* Unhooking what costs less than this share of the excess would not help. */
#define SHARE_MIN 0.01

static double mean_ns(const struct budget_function *f)
{
	return (double)f->elapsed_ns / (double)f->calls;
}

static int by_mean(const void *a, const void *b)
{
	const struct budget_function *x = a, *y = b;

	if (!x->calls || !y->calls)
		return ORDER(y->calls, x->calls);
	return ORDER(mean_ns(x), mean_ns(y));
}

size_t budget_choose(
	struct budget_function *functions, size_t n, uint64_t running_ns, double percent)
{
	double limit = (double)running_ns * percent / 100, cost = 0, excess;
	size_t n_off = 0;

	for (size_t i = 0; i < n; i++)
		cost += (double)functions[i].calls * BUDGET_PAIR_NS;
	if (cost <= limit)
		return 0;
	excess = cost - limit;
	qsort(functions, n, sizeof(*functions), by_mean);
	for (size_t i = 0; i < n && cost > limit; i++) {
		struct budget_function f = functions[i];
		double own = (double)f.calls * BUDGET_PAIR_NS;

		if (own < excess * SHARE_MIN)
			continue;
		functions[i] = functions[n_off];
		functions[n_off++] = f;
		cost -= own;
	}
	return n_off;
}
