/* SPDX-License-Identifier: MIT */
/* With an explicit stack, since a tree may be as deep as the program's. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "query/query.h"

static const struct query_column columns[] = {
	{"calls", offsetof(struct calltree_node, calls)},
	{"base", offsetof(struct calltree_node, base)},
	{"cum", offsetof(struct calltree_node, cum)},
	{"elapsed", offsetof(struct calltree_node, elapsed)},
	{0},
};

struct node_walk {
	const struct query *query;
	const struct calltree *tree;
	bool *is_kept;	       /* by node: it or something below it passes the filter */
	VEC(uint32_t) pending; /* still to be visited, the next one last */
};

static const char *name_of(const struct calltree *tree, uint32_t id)
{
	return calltree_get_routine(tree, calltree_get(tree, id)->routine)->name;
}

/* Children have greater ids than their parents, so one pass backwards reaches all ancestors. */
static void mark_kept(struct node_walk *w)
{
	size_t n = calltree_n_nodes(w->tree);

	w->is_kept = mem_calloc(n, sizeof(*w->is_kept));
	for (size_t id = n; id-- > 1;) {
		if (!w->is_kept[id])
			w->is_kept[id] = query_matches(w->query, name_of(w->tree, (uint32_t)id));
		if (w->is_kept[id])
			w->is_kept[calltree_get(w->tree, (uint32_t)id)->parent] = true;
	}
}

/* The largest, or the first in the alphabet, comes last, since the last is visited first. */
static int compare_siblings(const void *a, const void *b, void *context)
{
	const struct node_walk *w = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const char *sort = w->query->sort;
	int by_name = sort && !strcmp(sort, "name")
			      ? strcmp(name_of(w->tree, y), name_of(w->tree, x))
			      : 0;
	uint64_t p = sort ? query_number(columns, sort, calltree_get(w->tree, x)) : 0;
	uint64_t q = sort ? query_number(columns, sort, calltree_get(w->tree, y)) : 0;

	return by_name ?: ORDER(p, q) ?: ORDER(y, x);
}

static void push_siblings(struct node_walk *w, uint32_t first)
{
	size_t from = w->pending.n, n;

	for (uint32_t id = first; id; id = calltree_get(w->tree, id)->next_sibling)
		if (w->is_kept[id])
			vec_push(&w->pending, id);
	n = w->pending.n - from;
	if (n > 1)
		qsort_r(w->pending.v + from, n, sizeof(uint32_t), compare_siblings, w);
}

size_t query_nodes(const struct query *q, const struct calltree *tree, uint32_t **nodes)
{
	struct node_walk w = {.query = q, .tree = tree};
	VEC(uint32_t) order = {0};

	mark_kept(&w);
	push_siblings(&w, calltree_first_root(tree));
	while (w.pending.n && (!q->limit || order.n < q->limit)) {
		uint32_t id = w.pending.v[--w.pending.n];

		vec_push(&order, id);
		push_siblings(&w, calltree_get(tree, id)->first_child);
	}
	free(w.is_kept);
	vec_release(&w.pending);
	*nodes = order.v;
	return order.n;
}
