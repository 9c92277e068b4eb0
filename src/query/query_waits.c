/* SPDX-License-Identifier: MIT */
/* Who waits: a sample of waiting ends in the kernel's scheduler, which says nothing to anybody. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "query/query.h"

bool query_has_waits(const struct profile *p)
{
	return (!strcmp(p->metric, "wall") || !strcmp(p->metric, "wait")) &&
	       calltree_has_samples(p->tree) && !calltree_has_events(p->tree);
}

static const struct calltree_routine *routine_of(const struct calltree *tree, uint32_t node)
{
	return calltree_get_routine(tree, calltree_get(tree, node)->routine);
}

/* Functions of the kernel that give the CPU away, under all names they have had. */
static bool is_scheduler(const struct calltree_routine *r)
{
	static const char *const beginnings[] = {"schedule", "__schedule", "preempt_schedule",
		"io_schedule", "__cond_resched", "do_task_dead"};

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (!strncmp(r->name, beginnings[i], strlen(beginnings[i])))
			return r->kind == FRAME_KIND_KERNEL;
	return false;
}

uint32_t query_waiter(const struct calltree *tree, uint32_t node)
{
	uint32_t at = node, inner = node;

	if (!is_scheduler(routine_of(tree, node)))
		return node;
	for (; calltree_get(tree, at)->parent; at = calltree_get(tree, at)->parent) {
		const struct calltree_routine *r = routine_of(tree, at);

		if (r->kind != FRAME_KIND_KERNEL && r->kind != FRAME_KIND_MARKER)
			return at;
		if (is_scheduler(routine_of(tree, inner)))
			inner = at;
	}
	return inner;
}

void query_charge_waiters(const struct calltree *tree, struct flat *flat)
{
	size_t *row_of = mem_calloc(calltree_n_routines(tree), sizeof(*row_of));

	for (size_t i = 0; i < flat->n_rows; i++)
		row_of[flat->rows[i].routine] = i;
	for (uint32_t id = 1; id < calltree_n_nodes(tree); id++) {
		const struct calltree_node *node = calltree_get(tree, id);
		uint32_t waiter = node->parent ? query_waiter(tree, id) : id;
		struct flat_row *from = &flat->rows[row_of[node->routine]];
		struct flat_row *to = &flat->rows[row_of[calltree_get(tree, waiter)->routine]];

		from->base -= node->base;
		to->base += node->base;
		from->sampled.base -= node->sampled_base;
		to->sampled.base += node->sampled_base;
		from->samples -= node->samples;
		to->samples += node->samples;
	}
	free(row_of);
}
