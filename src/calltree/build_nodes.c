/* SPDX-License-Identifier: MIT */
/*
 * What was not recorded call by call: the nodes of trees that the program kept (record --tree).
 *
 * A snapshot is all nodes of a thread with one time; the last snapshot of a tree is what counts, and
 * what earlier ones said is forgotten, since nodes may have been folded into their parents since. A
 * thread has another tree in the program that it becomes by exec: both are told.
 */
#include "calltree/build_internal.h"

#include <stdlib.h>

struct kept_node {
	uint32_t thread;
	uint32_t tree;		 /* index in kept_trees */
	uint64_t number, parent; /* in the tree; parent 0 = its root */
	uint32_t frame;		 /* 0: calls of several functions that were folded together */
	struct calltree_calls figures;
	uint64_t children_elapsed;
	uint32_t node; /* in the call tree; 0 = not yet there */
	bool is_pending;
};

struct kept_tree {
	uint32_t thread;
	uint64_t time;	  /* of the snapshot */
	uint64_t elapsed; /* of the nodes below the root */
	uint64_t n_pruned;
	struct map node_of; /* number -> index in kept */
};

/* What a thread has kept. */
struct kept_by {
	uint32_t current; /* index in kept_trees + 1; 0 = none, or it is over */
	bool has_tree;
	uint64_t elapsed; /* of all its trees */
};

bool build_has_kept_tree(const struct builder *b, uint32_t thread)
{
	return b->kept_by && b->kept_by[thread].has_tree;
}

static void damaged(struct builder *b)
{
	loss_add_reason(&b->profile->loss, "a record of a kept tree is damaged", 1);
}

/* The tree that a thread keeps at this time; its index. */
static uint32_t ensure_tree(struct builder *b, uint32_t thread)
{
	struct kept_by *by = &b->kept_by[thread];

	if (!by->current) {
		vec_push(&b->kept_trees, ((struct kept_tree){.thread = thread}));
		by->current = (uint32_t)b->kept_trees.n;
		by->has_tree = true;
	}
	return by->current - 1;
}

static void add_node(struct builder *b, uint64_t time, const uint64_t n[8])
{
	struct kept_node node = {.thread = (uint32_t)n[0],
		.number = n[1],
		.parent = n[2],
		.frame = (uint32_t)n[3],
		.figures = {.calls = n[4], .elapsed = n[5], .min = n[6], .max = n[7]}};
	struct kept_tree *tree;
	bool created;
	uint64_t *at;

	node.tree = ensure_tree(b, node.thread);
	tree = &b->kept_trees.v[node.tree];
	if (time != tree->time)
		map_reset(&tree->node_of);
	tree->time = time;
	at = map_ensure(&tree->node_of, node.number, &created);
	if (created) {
		*at = b->kept.n;
		vec_push(&b->kept, node);
	} else {
		b->kept.v[*at] = node;
	}
}

void build_tree_record(struct builder *b, const struct trace_record *record)
{
	uint64_t n[8]; /* thread, node, parent, frame, calls, elapsed, minimum, maximum */
	size_t n_numbers = record->minor == RECORD_TREE_NODE   ? 8
			   : record->minor == RECORD_TREE_OVER ? 1
							       : 2;

	if (trace_record_numbers(b->reader, record, n, n_numbers, NULL) < 0 || !n[0] ||
		n[0] >= b->profile->n_threads) {
		damaged(b);
		return;
	}
	if (!b->profile->threads[n[0]].is_wanted)
		return;
	if (!b->kept_by)
		b->kept_by = mem_calloc(b->profile->n_threads, sizeof(*b->kept_by));
	if (record->minor == RECORD_TREE_OVER) {
		b->kept_by[n[0]].current = 0;
	} else if (record->minor == RECORD_TREE_PRUNED) {
		size_t tree = ensure_tree(b, (uint32_t)n[0]); /* which may move them */

		b->kept_trees.v[tree].n_pruned = n[1];
	} else if (!n[1] || n[3] >= trace_reader_n_frames(b->reader)) {
		damaged(b);
	} else {
		add_node(b, record->time, n);
	}
}

/* The node's index when it is of the tree's last snapshot, else SIZE_MAX. */
static size_t find_kept(struct builder *b, uint32_t tree, uint64_t number)
{
	const uint64_t *at = map_find(&b->kept_trees.v[tree].node_of, number);

	return at ? (size_t)*at : SIZE_MAX;
}

static bool is_current(struct builder *b, size_t i)
{
	return find_kept(b, b->kept.v[i].tree, b->kept.v[i].number) == i;
}

static uint32_t routine_of_kept(struct builder *b, uint32_t frame)
{
	return frame ? build_routine(b, frame)
		     : calltree_routine(b->tree, "[pruned]", "", FRAME_KIND_MARKER);
}

/* The node in the call tree, created with those above it. A node whose parent is missing, or is
 * below itself, hangs at the root, and that is said. */
static void place(struct builder *b, size_t i)
{
	VEC(size_t) path = {0};
	uint32_t node = 0;

	while (!node) {
		struct kept_node *kept = &b->kept.v[i];
		size_t parent = kept->parent ? find_kept(b, kept->tree, kept->parent) : SIZE_MAX;

		vec_push(&path, i);
		kept->is_pending = true;
		if (parent != SIZE_MAX && !b->kept.v[parent].is_pending) {
			node = b->kept.v[parent].node;
			i = parent;
			continue;
		}
		if (kept->parent)
			damaged(b);
		kept->parent = 0;
		node = build_root(b, kept->thread);
	}
	while (path.n) {
		struct kept_node *kept = &b->kept.v[path.v[--path.n]];

		node = calltree_child(b->tree, node, routine_of_kept(b, kept->frame));
		kept->node = node;
		kept->is_pending = false;
	}
	vec_release(&path);
}

static void add_figures(struct builder *b, const struct kept_node *kept)
{
	struct calltree_calls figures = kept->figures;
	bool is_timed = b->kind == METRIC_KIND_WALL || b->kind == METRIC_KIND_CALLS;

	if (b->kind == METRIC_KIND_CALLS)
		figures.base = figures.calls;
	else if (figures.elapsed > kept->children_elapsed)
		figures.base = figures.elapsed - kept->children_elapsed;
	if (b->kind != METRIC_KIND_WALL) {
		figures.min = 1; /* shortest and longest are in wall time */
		figures.max = 0;
	}
	calltree_add_calls(b->tree, kept->node, &figures, is_timed);
}

static void add_roots(struct builder *b)
{
	bool is_timed = b->kind == METRIC_KIND_WALL || b->kind == METRIC_KIND_CALLS;

	for (size_t i = 0; i < b->kept_trees.n; i++) {
		const struct kept_tree *tree = &b->kept_trees.v[i];

		b->profile->n_pruned += tree->n_pruned;
		b->kept_by[tree->thread].elapsed += tree->elapsed;
	}
	for (uint32_t id = 1; id < b->profile->n_threads; id++) {
		struct calltree_calls figures = {
			.calls = 1, .min = 1, .elapsed = b->kept_by[id].elapsed};

		if (!b->kept_by[id].has_tree || b->threads[id].calls)
			continue;
		calltree_add_calls(b->tree, build_root(b, id), &figures, is_timed);
	}
}

void build_nodes_end(struct builder *b)
{
	if (!b->kept_by)
		return;
	if (b->from || b->to != UINT64_MAX)
		loss_add_reason(&b->profile->loss,
			"trees that were kept in the program have no times: a window (--from, --to) does not apply to them",
			1);
	calltree_set_time(b->tree, UINT64_MAX);
	for (size_t i = 0; i < b->kept.n; i++)
		if (!b->kept.v[i].node && is_current(b, i))
			place(b, i);
	for (size_t i = 0; i < b->kept.n; i++) {
		const struct kept_node *kept = &b->kept.v[i];
		size_t parent;

		if (!kept->node)
			continue;
		b->profile->n_kept_nodes++;
		parent = kept->parent ? find_kept(b, kept->tree, kept->parent) : SIZE_MAX;
		if (parent == SIZE_MAX)
			b->kept_trees.v[kept->tree].elapsed += kept->figures.elapsed;
		else
			b->kept.v[parent].children_elapsed += kept->figures.elapsed;
	}
	for (size_t i = 0; i < b->kept.n; i++)
		if (b->kept.v[i].node)
			add_figures(b, &b->kept.v[i]);
	add_roots(b);
}

void build_nodes_release(struct builder *b)
{
	for (size_t i = 0; i < b->kept_trees.n; i++)
		map_release(&b->kept_trees.v[i].node_of);
	vec_release(&b->kept_trees);
	free(b->kept_by);
	vec_release(&b->kept);
}
