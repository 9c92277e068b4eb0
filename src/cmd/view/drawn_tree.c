/* SPDX-License-Identifier: MIT */
#include "cmd/view/drawn_tree.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

int drawn_tree_take_order(struct drawn_tree *d, const struct question *q, struct err *err)
{
	const char *text = question_text(q, "order");

	if (!text || !strcmp(text, "cum"))
		d->order = DRAWN_BY_CUM;
	else if (!strcmp(text, "name"))
		d->order = DRAWN_BY_NAME;
	else if (!strcmp(text, "time"))
		d->order = DRAWN_BY_TIME;
	else
		return err_set(err, ERR_FORMAT, "order: '%s' is none of cum, name, time", text);
	return 0;
}

static int compare_siblings(const void *a, const void *b, void *context)
{
	const struct drawn_tree *d = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int by = 0;

	if (d->order == DRAWN_BY_NAME)
		by = strcmp(calltree_get_routine(d->t, calltree_get(d->t, y)->routine)->name,
			calltree_get_routine(d->t, calltree_get(d->t, x)->routine)->name);
	else if (d->order == DRAWN_BY_CUM)
		by = ORDER(d->width[x], d->width[y]);
	return by ?: ORDER(y, x);
}

/* The first of them comes last, since the last is taken first. */
static void push_siblings(struct drawn_tree *d, uint32_t first)
{
	size_t from = d->pending.n, n;

	for (uint32_t id = first; id; id = calltree_get(d->t, id)->next_sibling)
		vec_push(&d->pending, id);
	n = d->pending.n - from;
	if (n > 1)
		qsort_r(d->pending.v + from, n, sizeof(uint32_t), compare_siblings, d);
}

void drawn_tree_init(struct drawn_tree *d, const struct calltree *t)
{
	d->t = t;
	d->width = calltree_split_bases(d->t);
	for (size_t id = calltree_n_nodes(d->t); id-- > 1;)
		d->width[calltree_get(d->t, (uint32_t)id)->parent] += d->width[id];
	push_siblings(d, calltree_first_root(d->t));
	while (d->pending.n) {
		uint32_t id = d->pending.v[--d->pending.n];

		vec_push(&d->nodes, id);
		push_siblings(d, calltree_get(d->t, id)->first_child);
	}
}

void drawn_tree_release(struct drawn_tree *d)
{
	free(d->width);
	vec_release(&d->nodes);
	vec_release(&d->pending);
}

/* Where boxes begin and end: a box follows its elder siblings, from the beginning of its parent on. */
static void put_places(const struct drawn_tree *d, struct buf *out)
{
	size_t n = d->nodes.n;
	double *left = view_array(out, "left", VIEW_F64, n);
	double *next =
		mem_calloc(calltree_n_nodes(d->t), sizeof(*next)); /* where a child may begin */

	for (size_t i = 0; i < n; i++) {
		uint32_t id = d->nodes.v[i], parent = calltree_get(d->t, id)->parent;

		left[i] = next[id] = next[parent];
		next[parent] += (double)d->width[id];
	}
	free(next);
}

static void put_ends(const struct drawn_tree *d, struct buf *out)
{
	size_t n = d->nodes.n;
	uint32_t *end = view_array(out, "end", VIEW_U32, n);
	uint32_t *at =
		mem_calloc(calltree_n_nodes(d->t), sizeof(*at)); /* by node: where it stands */

	for (size_t i = 0; i < n; i++)
		at[d->nodes.v[i]] = (uint32_t)i;
	for (size_t i = n; i-- > 0;) {
		uint32_t parent = calltree_get(d->t, d->nodes.v[i])->parent;

		if (!end[i])
			end[i] = (uint32_t)i + 1;
		if (parent && end[i] > end[at[parent]])
			end[at[parent]] = end[i];
	}
	free(at);
}

static void put_u32(const struct drawn_tree *d, struct buf *out, const char *name, size_t offset)
{
	uint32_t *to = view_array(out, name, VIEW_U32, d->nodes.n);

	for (size_t i = 0; i < d->nodes.n; i++)
		memcpy(&to[i], (const char *)calltree_get(d->t, d->nodes.v[i]) + offset,
			sizeof(*to));
}

void drawn_tree_put(const struct drawn_tree *d, struct buf *out)
{
	size_t n = d->nodes.n;
	uint32_t *node = view_array(out, "node", VIEW_U32, n);
	double *width;

	for (size_t i = 0; i < n; i++)
		node[i] = d->nodes.v[i];
	put_u32(d, out, "routine", offsetof(struct calltree_node, routine));
	put_u32(d, out, "depth", offsetof(struct calltree_node, level));
	put_places(d, out);
	width = view_array(out, "width", VIEW_F64, n);
	for (size_t i = 0; i < n; i++)
		width[i] = (double)d->width[d->nodes.v[i]];
	put_ends(d, out);
}
