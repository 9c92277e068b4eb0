/* SPDX-License-Identifier: MIT */
/*
 * A difference of something whose calls are known has two parts, for each caller:
 *
 *   more calls     (calls after - calls before) * cost of a call before
 *   dearer calls   calls after * (cost of a call after - cost before)
 *
 * Their sum is the difference. What calls that were added cost more than those before is dearer calls', not more
 * calls'. Of a caller that is new all is more calls, of one that is gone all is fewer.
 */
#include "query/diff/run_diff_internal.h"

static struct call_split split_of(const struct run_diff_caller *c)
{
	double calls = c->calls[RUNS_BEFORE], value = c->values[RUNS_BEFORE];
	struct call_split split = {.more_calls = c->values[RUNS_AFTER] - value};

	if (calls > 0 && c->calls[RUNS_AFTER] > 0)
		split.more_calls = (c->calls[RUNS_AFTER] - calls) * (value / calls);
	split.dearer_calls = c->values[RUNS_AFTER] - value - split.more_calls;
	return split;
}

static void add_run(
	struct run_diff *d, struct map *caller_of, enum run_side side, const struct diff_run *run)
{
	for (size_t i = 0; i < run->arcs.n; i++) {
		const struct diff_arc *arc = &run->arcs.v[i];
		bool created;
		uint64_t *place;

		if (!arc->has_calls)
			continue;
		place = map_ensure(caller_of, (uint64_t)arc->callee << 32 | arc->caller, &created);
		if (created) {
			*place = d->callers.n;
			vec_push(&d->callers, ((struct run_diff_caller){.key = arc->caller}));
		}
		d->callers.v[*place].calls[side] += arc->calls / (double)d->sides[side].n;
		d->callers.v[*place].values[side] +=
			arc->value * run->scale / (double)d->sides[side].n;
	}
}

/* Callers of one callee become neighbours. */
struct placed_caller {
	uint32_t callee;
	struct run_diff_caller caller;
};

static int by_callee(const void *a, const void *b)
{
	const struct placed_caller *x = a, *y = b;

	if (x->callee != y->callee)
		return x->callee < y->callee ? -1 : 1;
	return x->caller.key < y->caller.key ? -1 : x->caller.key > y->caller.key;
}

static void sort_callers(struct run_diff *d, const struct map *caller_of, uint32_t *callees)
{
	VEC(struct placed_caller) placed = {0};

	for (size_t i = 0; i < caller_of->cap; i++) {
		const struct map_slot *slot = &caller_of->slots[i];

		if (slot->used)
			vec_push(&placed, ((struct placed_caller){(uint32_t)(slot->key >> 32),
						  d->callers.v[slot->value]}));
	}
	vec_sort(&placed, by_callee);
	for (size_t i = 0; i < placed.n; i++) {
		d->callers.v[i] = placed.v[i].caller;
		d->callers.v[i].split = split_of(&placed.v[i].caller);
		callees[i] = placed.v[i].callee;
	}
	vec_release(&placed);
}

/* Both are in the order of callees. */
static void give_callers(struct run_diff *d, const uint32_t *callees)
{
	size_t at = 0;

	for (size_t i = 0; i < d->rows.n; i++) {
		struct run_diff_row *row = &d->rows.v[i];

		while (at < d->callers.n && callees[at] < row->id)
			at++;
		row->first_caller = at;
		for (; at < d->callers.n && callees[at] == row->id; at++) {
			row->n_callers++;
			row->split.more_calls += d->callers.v[at].split.more_calls;
			row->split.dearer_calls += d->callers.v[at].split.dearer_calls;
		}
	}
}

void run_diff_split_calls(struct run_diff *d)
{
	struct map caller_of = {0}; /* callee << 32 | caller */
	uint32_t *callees;

	for (int side = 0; side < N_RUN_SIDES; side++)
		for (size_t i = 0; i < d->sides[side].n; i++)
			add_run(d, &caller_of, (enum run_side)side, &d->sides[side].v[i]);
	callees = mem_calloc(d->callers.n + 1, sizeof(*callees));
	sort_callers(d, &caller_of, callees);
	give_callers(d, callees);
	free(callees);
	map_release(&caller_of);
}
