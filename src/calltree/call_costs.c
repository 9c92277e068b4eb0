/* SPDX-License-Identifier: MIT */
/*
 * What measuring calls has added to times is taken out of the nodes: a node has its own calls' inner
 * part and the outer part of the calls that it makes. Sums over all calls of a node are compared, not
 * single calls, so that what varies from call to call is not lost at zero.
 */
#include <stdlib.h>

#include "calltree/tree_internal.h"

void calltree_set_costs(struct calltree *t, struct calltree_cost *costs, uint32_t n)
{
	free(t->costs);
	t->costs = costs;
	t->n_costs = n;
}

struct calltree_cost_sums calltree_cost_sums(const struct calltree *t)
{
	return t->cost_sums;
}

/* Calls that are counted apart from where they were made: their time is in other nodes. */
static bool is_displaced(const struct calltree *t, const struct calltree_node *node)
{
	return t->routines.v[t->nodes[node->parent].routine].kind == FRAME_KIND_MARKER;
}

/* Of a node whose calls came with their range: what its calls and all below them cost in the mean. */
static void shorten_range(struct calltree_node *node, uint64_t cost)
{
	uint64_t mean = node->calls ? cost / node->calls / CALLTREE_COST_UNIT : 0;

	if (node->min > node->max)
		return;
	node->min -= mean < node->min ? mean : node->min;
	node->max -= mean < node->max ? mean : node->max;
}

/* By node, in parts: what is to be taken out of its base. */
static uint64_t *add_up(struct calltree *t)
{
	uint64_t *costs = mem_calloc(t->n_nodes, sizeof(*costs));

	for (size_t i = 1; i < t->n_nodes; i++) {
		struct calltree_node *node = &t->nodes[i];
		const struct calltree_cost *cost;
		bool has_root_time = !t->ranges_are_raw ||
				     !t->routines.v[t->nodes[node->parent].routine].is_root;

		if (node->routine >= t->n_costs || node->sampled || !node->timed)
			continue;
		cost = &t->costs[node->routine];
		if (is_displaced(t, node)) {
			t->cost_sums.left +=
				node->calls * (cost->inner + cost->outer) / CALLTREE_COST_UNIT;
			shorten_range(node, node->calls * cost->inner);
			continue;
		}
		costs[i] += node->calls * cost->inner;
		if (has_root_time) /* else what is outside of all calls was not measured */
			costs[node->parent] += node->calls * cost->outer;
	}
	return costs;
}

/* Where base stopped at zero, cum is more than its calls add up to. */
void calltree_widen_ranges(struct calltree *t)
{
	for (size_t i = 1; i < t->n_nodes && t->n_costs; i++) {
		struct calltree_node *node = &t->nodes[i];
		uint64_t mean = node->calls ? (node->cum + node->calls - 1) / node->calls : 0;

		if (node->exact && node->min <= node->max && node->max < mean)
			node->max = mean;
	}
}

void calltree_take_costs(struct calltree *t)
{
	uint64_t *costs;

	if (!t->n_costs || t->is_by_samples)
		return;
	costs = add_up(t);
	for (size_t i = t->n_nodes - 1; i > 0; i--) {
		struct calltree_node *node = &t->nodes[i];
		uint64_t cost = costs[i] / CALLTREE_COST_UNIT,
			 taken = cost < node->base ? cost : node->base;

		t->cost_sums.taken += taken;
		t->cost_sums.left += cost - taken;
		node->base -= taken;
	}
	for (size_t i = t->n_nodes - 1; i > 0 && t->ranges_are_raw; i--) {
		if (t->nodes[i].timed)
			shorten_range(&t->nodes[i], costs[i]);
		costs[t->nodes[i].parent] += costs[i];
	}
	free(costs);
}
