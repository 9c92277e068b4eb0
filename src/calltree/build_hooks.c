/* SPDX-License-Identifier: MIT */
/*
 * What a trace says of hooks: the functions that were asked for with what became of them, what the
 * hooks have cost, which samples are theirs. All of it is read with the life of the processes, before
 * the walk, so that the costs are known when calls end.
 */
#include "calltree/build_internal.h"

#include <math.h>
#include <stdlib.h>

/* An empty function in a loop stands for all: so much of the cost may be otherwise elsewhere. */
#define MODEL_ERROR_PART 10
#define ERROR_NS_MAX	 1e15
#define JUDGES_MIN	 16 /* samples in hooks that say something of their time */
#define CHANCE_SIGMAS	 2

static void damaged(struct builder *b)
{
	loss_add_reason(&b->profile->loss, "a record of a hook is damaged", 1);
}

static void add_function(struct builder *b, const struct trace_record *record)
{
	struct profile *p = b->profile;
	uint64_t n[6] = {0}; /* frame, method, reason, hits, off time + 1, cost */
	struct profile_hook hook;

	if (trace_record_numbers(b->reader, record, n, 5, NULL) < 0 || !n[0] ||
		n[0] >= trace_reader_n_frames(b->reader) || n[1] >= PROFILE_HOOK_N_METHODS ||
		n[2] >= trace_reader_n_strings(b->reader)) {
		damaged(b);
		return;
	}
	if (trace_record_numbers(b->reader, record, n, 6, NULL) < 0 || n[5] > UINT32_MAX)
		n[5] = 0; /* of a version that did not measure it */
	hook = (struct profile_hook){.frame = (uint32_t)n[0],
		.method = (enum profile_hook_method)n[1],
		.reason = trace_reader_string(b->reader, (uint32_t)n[2]),
		.hits = n[3],
		.is_off = n[4] != 0,
		.off_time = n[4] ? n[4] - 1 : 0,
		.cost = (uint32_t)n[5]};
	if (p->n_hooks == p->cap_hooks)
		mem_grow((void **)&p->hooks, &p->cap_hooks, p->n_hooks + 1, sizeof(*p->hooks));
	p->hooks[p->n_hooks++] = hook;
}

static void add_cost(struct builder *b, const struct trace_record *record)
{
	struct profile *p = b->profile;
	uint64_t n[6]; /* number, name, measurements, inner, outer, deviation */

	if (trace_record_numbers(b->reader, record, n, 6, NULL) < 0 || !n[0] || n[0] > UINT32_MAX ||
		n[1] >= trace_reader_n_strings(b->reader) || n[3] > PROFILE_COST_PS_MAX ||
		n[4] > PROFILE_COST_PS_MAX || n[5] > PROFILE_COST_PS_MAX) {
		damaged(b);
		return;
	}
	if (p->n_costs == p->cap_costs)
		mem_grow((void **)&p->costs, &p->cap_costs, p->n_costs + 1, sizeof(*p->costs));
	p->costs[p->n_costs++] = (struct profile_cost){.number = (uint32_t)n[0],
		.name = trace_reader_string(b->reader, (uint32_t)n[1]),
		.n = n[2],
		.inner_ps = n[3],
		.outer_ps = n[4],
		.deviation_ps = n[5]};
}

void build_hook_record(struct builder *b, const struct trace_record *record)
{
	uint64_t frame;

	if (record->minor == RECORD_HOOK_FUNCTION)
		add_function(b, record);
	else if (record->minor == RECORD_HOOK_COST)
		add_cost(b, record);
	else if (trace_record_numbers(b->reader, record, &frame, 1, NULL) < 0 || !frame ||
		 frame >= trace_reader_n_frames(b->reader))
		damaged(b);
	else
		b->hook_frame = (uint32_t)frame;
}

const struct profile_cost *profile_cost_find(const struct profile *p, uint32_t number)
{
	for (size_t i = 0; i < p->n_costs; i++)
		if (p->costs[i].number == number)
			return &p->costs[i];
	return NULL;
}

uint64_t profile_cost_error_ps(const struct profile_cost *cost)
{
	return cost->deviation_ps + (cost->inner_ps + cost->outer_ps) / MODEL_ERROR_PART;
}

/* ---- costs ---- */

/* So many parts, of which a share has this cost. */
static uint64_t mix(uint64_t parts, uint64_t ps, double share)
{
	double cost = (double)ps * CALLTREE_COST_UNIT / PROFILE_PS_A_NS;

	return (uint64_t)((double)parts * (1 - share) + cost * share + 0.5);
}

/* Functions of one name are one routine: where they are hooked in different ways, each counts by its
 * calls. */
static void add_to_routine(
	struct calltree_cost *to, uint64_t *n_calls, const struct profile_cost *cost, uint64_t hits)
{
	double whole = (double)*n_calls + (double)hits, share;

	if (!hits)
		return;
	share = (double)hits / whole;
	to->inner = mix(to->inner, cost->inner_ps, share);
	to->outer = mix(to->outer, cost->outer_ps, share);
	*n_calls += hits;
}

/* Costs by routine, of those that were measured. */
static struct calltree_cost *find_costs(struct builder *b, uint32_t *n)
{
	static const struct profile_cost none = {0};
	const struct profile *p = b->profile;
	struct calltree_cost *costs;
	uint64_t *n_calls;
	size_t n_names;

	for (size_t i = 0; i < p->n_hooks; i++)
		frame_routines_get(&b->names, p->hooks[i].frame, &n_names);
	*n = (uint32_t)calltree_n_routines(b->tree);
	costs = mem_calloc(*n, sizeof(*costs));
	n_calls = mem_calloc(*n, sizeof(*n_calls));
	for (size_t i = 0; i < p->n_hooks; i++) {
		const struct profile_cost *cost = profile_cost_find(p, p->hooks[i].cost);
		uint32_t routine = frame_routines_get(&b->names, p->hooks[i].frame, &n_names)[0];

		add_to_routine(
			&costs[routine], &n_calls[routine], cost ? cost : &none, p->hooks[i].hits);
	}
	free(n_calls);
	return costs;
}

void build_hooks_begin(struct builder *b, bool keeps_cost)
{
	bool is_time = b->kind == METRIC_KIND_TIME || b->kind == METRIC_KIND_WALL;
	struct calltree_cost *costs;
	uint32_t n;

	for (size_t i = 0; i < b->profile->n_hooks; i++)
		if (b->profile->hooks[i].method == PROFILE_HOOK_BYTECODE)
			frame_routines_add_hooked(&b->names, b->profile->hooks[i].frame);
	b->profile->keeps_cost = keeps_cost;
	if (!b->profile->n_costs || keeps_cost)
		return;
	b->profile->weighing.hook_frame = b->hook_frame;
	if (!is_time)
		return;
	costs = find_costs(b, &n);
	calltree_set_costs(b->tree, costs, n);
}

/* In ns, of so many calls; of a forged number no more than makes sense. */
static uint64_t error_of(const struct profile_cost *cost, uint64_t n_calls)
{
	double ns = (double)n_calls * (double)profile_cost_error_ps(cost) / PROFILE_PS_A_NS;

	return ns < ERROR_NS_MAX ? (uint64_t)ns : (uint64_t)ERROR_NS_MAX;
}

/* The samples of the same run are another measure of it: beside busy neighbours hooks cost more than what was
 * measured of them. As far as the two differ by more than chance, the cost is not known better than that. */
static uint64_t error_by_samples(const struct profile *p)
{
	double taken = (double)p->cost_sums.taken, sampled = (double)p->hook_weight;
	double off = fabs(sampled - taken);

	if (!taken || p->n_hook_samples < JUDGES_MIN ||
		off <= CHANCE_SIGMAS * sampled / sqrt((double)p->n_hook_samples))
		return 0;
	return off < ERROR_NS_MAX ? (uint64_t)off : (uint64_t)ERROR_NS_MAX;
}

/* The calls that were seen, by what is known of their cost. */
void build_hooks_end(struct builder *b)
{
	struct profile *p = b->profile;

	p->cost_sums = calltree_cost_sums(b->tree);
	for (size_t i = 0; i < p->n_hooks; i++) {
		const struct profile_cost *cost = profile_cost_find(p, p->hooks[i].cost);

		if (!cost && p->hooks[i].hits)
			p->n_without_cost++;
		if (cost)
			p->cost_error += error_of(cost, p->hooks[i].hits);
	}
	if (error_by_samples(p) > p->cost_error)
		p->cost_error = error_by_samples(p);
}
