/* SPDX-License-Identifier: MIT */
#include "calltree/flat.h"

#include <stdlib.h>

#include "base/mem.h"

struct flat_row flat_sum_routine(const struct calltree *t, uint32_t routine)
{
	struct flat_row row = {.routine = routine, .min = UINT64_MAX};
	uint32_t id = calltree_get_routine(t, routine)->first_instance;

	while (id) {
		const struct calltree_node *node = calltree_get(t, id);

		row.has_events |= !node->sampled;
		row.calls += node->calls;
		row.base += node->base;
		row.cum2 += node->cum;
		row.samples += node->samples;
		if (node->rl == 1) {
			row.cum += node->cum;
			row.elapsed += node->elapsed;
		}
		if (node->min <= node->max) {
			row.has_range = true;
			row.min = node->min < row.min ? node->min : row.min;
			row.max = node->max > row.max ? node->max : row.max;
		}
		id = node->next_instance;
	}
	return row;
}

/* What qsort needs to order routines: qsort is not stable and has no context. */
struct rank {
	struct flat_row row;
	uint32_t first_instance;
};

static int compare_ranks(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->row.cum != y->row.cum)
		return x->row.cum > y->row.cum ? -1 : 1;
	return x->first_instance < y->first_instance ? -1 : 1;
}

void flat_init(struct flat *flat, const struct calltree *t)
{
	size_t n = calltree_n_routines(t), n_ranks = 0;
	struct rank *ranks = mem_calloc(n, sizeof(*ranks));

	for (uint32_t routine = 1; routine < n; routine++) {
		uint32_t first = calltree_get_routine(t, routine)->first_instance;

		if (first)
			ranks[n_ranks++] = (struct rank){flat_sum_routine(t, routine), first};
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
