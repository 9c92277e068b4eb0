/* SPDX-License-Identifier: MIT */
#include "record/hooks/hook_cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/order.h"
#include "trace/records.h"

#define SCALE	 16.0
#define SEEN_MAX 65536u
#define CUT_PART 40

void hook_costs_release(struct hook_costs *c)
{
	for (uint32_t i = 0; i < 2 * HOOK_COST_N; i++)
		vec_release(&c->of[i / HOOK_COST_N][i % HOOK_COST_N].seen);
}

void hook_costs_add(struct hook_costs *c, bool is_64, uint64_t data)
{
	struct hook_cost_sum *sum;

	if (HOOK_COST_KIND(data) >= HOOK_COST_N)
		return;
	sum = &c->of[is_64][HOOK_COST_KIND(data)];
	if (sum->seen.n < SEEN_MAX)
		vec_push(&sum->seen, data);
	else
		sum->seen.v[sum->n % SEEN_MAX] = data;
	sum->n++;
}

/* The program may have written anything there. */
static bool makes_sense(const struct hook_tree_cost *cost)
{
	return cost->n && cost->n <= UINT32_MAX && cost->inner / cost->n <= HOOK_COST_MAX &&
	       cost->outer / cost->n <= HOOK_COST_MAX;
}

void hook_costs_add_tree(
	struct hook_costs *c, bool is_64, const struct hook_tree_cost costs[HOOK_COST_N])
{
	for (uint32_t kind = 0; kind < HOOK_COST_N; kind++) {
		struct hook_cost_sum *sum = &c->of[is_64][kind];

		if (!makes_sense(&costs[kind]))
			continue;
		sum->n += costs[kind].n;
		sum->inner += (double)costs[kind].inner;
		sum->outer += (double)costs[kind].outer;
		sum->squares += (double)costs[kind].squares;
	}
}

static uint32_t number_of(bool is_64, uint32_t kind)
{
	return 1 + is_64 * HOOK_COST_N + kind;
}

uint32_t hook_costs_number(
	const struct hook_costs *c, bool is_64, enum hook_method method, enum hook_action action)
{
	uint32_t kind = HOOK_COST_CALL;

	if (!method || method == HOOK_METHOD_BYTECODE ||
		(action != HOOK_ACTION_CALL && action != HOOK_ACTION_AMOUNT))
		return 0;
	if (action == HOOK_ACTION_AMOUNT) {
		if (method == HOOK_METHOD_INT3 || method == HOOK_METHOD_CYGPROF)
			return 0;
		kind = HOOK_COST_AMOUNT;
	} else if (method == HOOK_METHOD_INT3) {
		kind = HOOK_COST_TRAP;
	} else if (method == HOOK_METHOD_CYGPROF) {
		kind = HOOK_COST_INSTRUMENT;
	}
	return c->of[is_64][kind].n ? number_of(is_64, kind) : 0;
}

static uint64_t picoseconds(double ticks, double hz)
{
	return ticks > 0 ? (uint64_t)(ticks / SCALE / hz * 1e12 + 0.5) : 0;
}

struct mean {
	double inner, outer, deviation; /* in 16ths of a tick */
};

static double total(uint64_t data)
{
	return (double)HOOK_COST_INNER(data) + (double)HOOK_COST_OUTER(data);
}

static int by_total(const void *a, const void *b)
{
	return ORDER(total(*(const uint64_t *)a), total(*(const uint64_t *)b));
}

/* Of a single measurement nobody knows how far it is off: a busy neighbour on the same core adds that much. */
static double deviation_of(double mean, double mean_square, double n)
{
	double variance = mean_square - mean * mean;

	if (n < 2)
		return mean / 2;
	return variance > 0 ? sqrt(variance * n / (n - 1)) : 0;
}

/* What was interrupted is far too large: the fortieth at either end counts as its neighbour. All others count. Where
 * a core is shared some are twice as large, and so are the program's own calls then. */
static struct mean mean_of_seen(const struct hook_cost_sum *sum)
{
	size_t n = sum->seen.n, cut = n / CUT_PART;
	uint64_t *sorted = mem_dup(sum->seen.v, n * sizeof(*sorted));
	struct mean m = {0};
	double mean_square = 0;

	qsort(sorted, n, sizeof(*sorted), by_total);
	for (size_t i = 0; i < n; i++) {
		uint64_t data = sorted[i < cut ? cut : i < n - cut ? i : n - cut - 1];

		m.inner += HOOK_COST_INNER(data) / (double)n;
		m.outer += HOOK_COST_OUTER(data) / (double)n;
		mean_square += total(data) * total(data) / (double)n;
	}
	m.deviation = deviation_of(m.inner + m.outer, mean_square, (double)n);
	free(sorted);
	return m;
}

static struct mean mean_of(const struct hook_cost_sum *sum)
{
	double n = (double)sum->n;

	if (sum->seen.n)
		return mean_of_seen(sum);
	if (!sum->n)
		return (struct mean){0};
	return (struct mean){sum->inner / n, sum->outer / n,
		deviation_of((sum->inner + sum->outer) / n, sum->squares / n, n)};
}

static void write_one(const struct hook_cost_sum *sum, const struct hook_cost_sum *slow,
	struct trace_writer *w, uint32_t stream, uint64_t time, double hz, uint32_t number,
	const char *name)
{
	struct mean m = mean_of(sum), more = mean_of(slow);

	trace_writer_numbers(w, stream, time, RECORD_MAJOR_HOOK, RECORD_HOOK_COST,
		(uint64_t[]){number, trace_writer_string(w, name), sum->n,
			picoseconds(m.inner + more.inner, hz),
			picoseconds(m.outer + more.outer, hz),
			picoseconds(m.deviation + more.deviation, hz)},
		6);
}

void hook_costs_write(const struct hook_costs *c, struct trace_writer *w, uint32_t stream,
	uint64_t time, double hz, bool is_tree)
{
	static const char *const names[HOOK_COST_N] = {
		[HOOK_COST_CALL] = "jump, nop or mcount",
		[HOOK_COST_TRAP] = "int3",
		[HOOK_COST_AMOUNT] = "jump, with the bytes asked for",
		[HOOK_COST_INSTRUMENT] = "instrument",
	};

	for (uint32_t i = 0; i < 2 * HOOK_COST_N && hz > 0; i++) {
		bool is_64 = i >= HOOK_COST_N;
		uint32_t kind = i % HOOK_COST_N;
		char name[120];

		if (!c->of[is_64][kind].n || kind == HOOK_COST_SLOW)
			continue;
		snprintf(name, sizeof(name), "%s, %s-bit, %s", names[kind], is_64 ? "64" : "32",
			is_tree ? "tree" : "events");
		write_one(&c->of[is_64][kind], &c->of[is_64][HOOK_COST_SLOW], w, stream, time, hz,
			number_of(is_64, kind), name);
	}
}
