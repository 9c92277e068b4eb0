/* SPDX-License-Identifier: MIT */
#include "calltree/flat.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/order.h"

/* base, cum and cum2 are those of events until finish_row has run. */
static void add_node(struct flat_row *row, const struct calltree_node *node)
{
	row->has_events |= !node->sampled;
	row->calls += node->calls;
	row->samples += node->samples;
	row->sampled.base += node->sampled_base;
	row->sampled.cum2 += node->sampled_cum;
	if (node->rl == 1) {
		row->sampled.cum += node->sampled_cum;
		row->elapsed += node->elapsed;
	}
	if (node->exact) {
		row->exact = true;
		row->base += node->base;
		row->cum2 += node->cum;
		row->cum += node->rl == 1 ? node->cum : 0;
	}
	if (node->min > node->max)
		return;
	if (!row->has_range || node->min < row->min)
		row->min = node->min;
	if (node->max > row->max)
		row->max = node->max;
	row->has_range = true;
}

static void finish_row(struct flat_row *row)
{
	if (row->exact)
		return;
	row->base = row->sampled.base;
	row->cum = row->sampled.cum;
	row->cum2 = row->sampled.cum2;
}

/* What qsort needs to order routines: qsort is not stable and has no context. */
struct rank {
	struct flat_row row;
	uint32_t first_instance;
};

static int compare_ranks(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	return ORDER(y->row.cum, x->row.cum) ?: ORDER(x->first_instance, y->first_instance);
}

/* One pass over the nodes in order, which is kinder to the cache than the chains of instances. */
static struct rank *sum_routines(const struct calltree *t)
{
	struct rank *ranks = mem_calloc(calltree_n_routines(t), sizeof(*ranks));

	for (uint32_t id = 1; id < calltree_n_nodes(t); id++) {
		const struct calltree_node *node = calltree_get(t, id);
		struct rank *rank = &ranks[node->routine];

		if (!rank->first_instance)
			rank->first_instance = id;
		add_node(&rank->row, node);
	}
	return ranks;
}

void flat_init(struct flat *flat, const struct calltree *t)
{
	size_t n = calltree_n_routines(t), n_ranks = 0;
	struct rank *ranks = sum_routines(t);

	for (uint32_t routine = 1; routine < n; routine++) {
		if (!ranks[routine].first_instance)
			continue;
		ranks[routine].row.routine = routine;
		finish_row(&ranks[routine].row);
		ranks[n_ranks++] = ranks[routine];
	}
	if (n_ranks)
		qsort(ranks, n_ranks, sizeof(*ranks), compare_ranks);
	flat->rows = mem_calloc(n_ranks + 1, sizeof(*flat->rows));
	flat->n_rows = n_ranks;
	for (size_t i = 0; i < n_ranks; i++)
		flat->rows[i] = ranks[i].row;
	free(ranks);
}

void flat_release(struct flat *flat)
{
	free(flat->rows);
	*flat = (struct flat){NULL, 0};
}
