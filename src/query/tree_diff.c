/* SPDX-License-Identifier: MIT */
/*
 * The three trees grow together: whatever becomes a node of one becomes a node of all, at the same time,
 * so that its number is the same. Parents come before their children, so where a node goes follows from
 * where its parent went.
 */
#include "query/tree_diff.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/path_name.h"

#define N_TREES (N_DIFF_SIDES + 1)

struct differ {
	struct calltree *trees[N_TREES]; /* the sides, then both */
	struct intern keys;		 /* of functions: name, NUL, last part of the path */
	VEC(uint32_t) routine_of;	 /* by key */
	VEC(struct tree_diff_node) nodes;
	bool has_two_roots;
};

/* ---- the shape ---- */

static uint32_t function_of(struct differ *m, const struct calltree_routine *r)
{
	const char *image = path_base_name(r->image);
	struct buf key = {0};
	uint32_t id, routine = 0;

	buf_put_text(&key, r->name);
	buf_put(&key, image, path_plain_bytes(image));
	id = intern_bytes(&m->keys, key.p, key.n);
	buf_release(&key);
	if (id < m->routine_of.n)
		return m->routine_of.v[id];
	for (int i = 0; i < N_TREES; i++)
		routine = calltree_routine(m->trees[i], r->name, r->image, r->kind);
	vec_push(&m->routine_of, routine);
	return routine;
}

static uint32_t root_of(struct differ *m, bool is_exact)
{
	const char *name = !m->has_two_roots ? "all threads"
			   : is_exact	     ? "threads with events"
					     : "threads with samples alone";
	uint32_t id = 0;

	for (int i = 0; i < N_TREES; i++)
		id = calltree_root(m->trees[i], name);
	return id;
}

static uint32_t child_of(struct differ *m, uint32_t parent, const struct calltree_routine *r)
{
	uint32_t routine = function_of(m, r), id = calltree_child(m->trees[0], parent, routine);

	for (int i = 1; i < N_TREES; i++) {
		uint32_t same = calltree_child(m->trees[i], parent, routine);

		assert(same == id);
		(void)same;
	}
	return id;
}

/* A thread of which nothing is known is of neither kind, and shall not make the others so. */
static bool is_empty(const struct calltree_node *root)
{
	return !root->parent && !root->first_child && !root->cum && !root->sampled_cum &&
	       !root->samples;
}

static void add_tree(struct differ *m, const struct calltree *from, enum tree_diff_side side)
{
	size_t n = calltree_n_nodes(from);
	uint32_t *place = mem_calloc(n, sizeof(*place)); /* by node of `from` */

	for (uint32_t id = 1; id < n; id++) {
		const struct calltree_node *node = calltree_get(from, id);
		const struct calltree_routine *routine = calltree_get_routine(from, node->routine);
		uint32_t at;

		if (is_empty(node))
			continue;
		at = node->parent ? child_of(m, place[node->parent], routine)
				  : root_of(m, node->exact);
		while (m->nodes.n <= at)
			vec_push(&m->nodes, (struct tree_diff_node){0});
		m->nodes.v[at].is_there[side] = true;
		m->nodes.v[at].samples[side] += node->samples;
		calltree_add_figures(m->trees[side], at, node, CALLTREE_SHARE_ALL);
		place[id] = at;
	}
	free(place);
}

static bool has_both_kinds(const struct calltree *t)
{
	bool has[2] = {false, false};

	for (uint32_t id = calltree_first_root(t); id; id = calltree_get(t, id)->next_sibling) {
		const struct calltree_node *root = calltree_get(t, id);

		has[root->exact] |= !is_empty(root);
	}
	return has[false] && has[true];
}

/* ---- figures ---- */

static void weigh_both(struct tree_diff *d)
{
	uint64_t *parts[N_DIFF_SIDES] = {calltree_split_bases(d->sides[DIFF_BEFORE]),
		calltree_split_bases(d->sides[DIFF_AFTER])};

	for (uint32_t id = 1; id < calltree_n_nodes(d->both); id++) {
		uint64_t before = parts[DIFF_BEFORE][id], after = parts[DIFF_AFTER][id];

		calltree_add_sample(d->both, id, before > after ? before : after, 0);
	}
	calltree_finish(d->both);
	free(parts[DIFF_BEFORE]);
	free(parts[DIFF_AFTER]);
}

static void add_up_samples(struct tree_diff *d)
{
	for (size_t id = calltree_n_nodes(d->both); id-- > 1;) {
		uint32_t parent = calltree_get(d->both, (uint32_t)id)->parent;

		for (int side = 0; parent && side < N_DIFF_SIDES; side++)
			d->nodes[parent].samples[side] += d->nodes[id].samples[side];
	}
}

static void make_rows(struct tree_diff *d)
{
	d->rows = mem_calloc(calltree_n_routines(d->both), sizeof(*d->rows));
	for (int side = 0; side < N_DIFF_SIDES; side++) {
		struct flat flat;

		flat_init(&flat, d->sides[side]);
		for (size_t i = 0; i < flat.n_rows; i++)
			d->rows[flat.rows[i].routine].sides[side] = flat.rows[i];
		flat_release(&flat);
	}
	for (uint32_t id = 1; id < calltree_n_nodes(d->both); id++) {
		const struct calltree_node *node = calltree_get(d->both, id);
		struct tree_diff_row *row = &d->rows[node->routine];

		for (int side = 0; side < N_DIFF_SIDES; side++) {
			row->is_there[side] |= d->nodes[id].is_there[side];
			row->samples[side] += node->rl == 1 ? d->nodes[id].samples[side] : 0;
		}
	}
}

void tree_diff_init(
	struct tree_diff *d, const struct calltree *before, const struct calltree *after)
{
	struct differ m = {.has_two_roots = has_both_kinds(before) || has_both_kinds(after)};

	memset(d, 0, sizeof(*d));
	d->sides[DIFF_BEFORE] = m.trees[DIFF_BEFORE] = calltree_new_like(before);
	d->sides[DIFF_AFTER] = m.trees[DIFF_AFTER] = calltree_new_like(after);
	d->both = m.trees[N_DIFF_SIDES] = calltree_new();
	add_tree(&m, before, DIFF_BEFORE);
	add_tree(&m, after, DIFF_AFTER);
	d->nodes = m.nodes.v;
	calltree_finish(d->sides[DIFF_BEFORE]);
	calltree_finish(d->sides[DIFF_AFTER]);
	weigh_both(d);
	add_up_samples(d);
	make_rows(d);
	intern_release(&m.keys);
	vec_release(&m.routine_of);
}

void tree_diff_release(struct tree_diff *d)
{
	for (int side = 0; side < N_DIFF_SIDES; side++)
		calltree_free(d->sides[side]);
	calltree_free(d->both);
	free(d->nodes);
	free(d->rows);
	memset(d, 0, sizeof(*d));
}
