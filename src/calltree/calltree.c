/* SPDX-License-Identifier: MIT */
/*
 * The tree itself: routines, nodes, the sums. Children have greater ids than their parents, so one
 * pass backwards over the array adds up cum and one pass forwards gives the levels; nothing here
 * recurses, since a tree may be as deep as the program's stack.
 */
#include "calltree/calltree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "calltree/thread.h"

#define CHILDREN_CAP_FIRST 256

struct calltree {
	VEC(struct calltree_routine) routines;
	VEC(struct calltree_node) nodes;
	struct intern keys;	 /* name NUL image NUL class; dense id + 1 = routine */
	uint32_t *children;	 /* hash table of nodes by (parent, routine); 0 = empty */
	size_t cap_children;	 /* 0 or a power of two */
	struct buf key;		 /* the key being looked up */
	uint32_t *last_instance; /* by routine: the end of its chain */
	size_t cap_last_instance;
	uint32_t first_root, last_root;
	bool has_events, has_samples;
};

struct calltree *calltree_new(void)
{
	struct calltree *t = mem_zalloc(sizeof(*t));
	struct calltree_routine no_routine = {.name = "", .image = ""};
	struct calltree_node no_node = {.min = UINT64_MAX};

	vec_push(&t->routines, no_routine);
	vec_push(&t->nodes, no_node);
	return t;
}

void calltree_free(struct calltree *t)
{
	if (!t)
		return;
	vec_release(&t->routines);
	vec_release(&t->nodes);
	intern_release(&t->keys);
	free(t->children);
	buf_release(&t->key);
	free(t->last_instance);
	free(t);
}

static uint32_t routine_of_class(
	struct calltree *t, const char *name, const char *image, uint8_t class)
{
	struct calltree_routine routine = {.name = NULL};
	uint32_t id;

	buf_reset(&t->key);
	buf_put(&t->key, name, strlen(name) + 1);
	buf_put(&t->key, image, strlen(image) + 1);
	buf_put_u8(&t->key, class);
	id = intern_bytes(&t->keys, t->key.p, t->key.n) + 1;
	if (id < t->routines.n)
		return id;
	assert(id == t->routines.n);
	routine.name = intern_get(&t->keys, id - 1);
	routine.image = routine.name + strlen(name) + 1;
	vec_push(&t->routines, routine);
	if (t->routines.n > t->cap_last_instance)
		mem_grow((void **)&t->last_instance, &t->cap_last_instance, t->routines.n,
			sizeof(*t->last_instance));
	return id;
}

uint32_t calltree_routine(
	struct calltree *t, const char *name, const char *image, enum frame_kind kind)
{
	bool is_native = kind == FRAME_KIND_NATIVE || kind == FRAME_KIND_INLINE;
	uint32_t id =
		routine_of_class(t, name, image, is_native ? FRAME_KIND_NATIVE : (uint8_t)kind);
	struct calltree_routine *routine = &t->routines.v[id];

	if (!routine->kind || kind == FRAME_KIND_NATIVE)
		routine->kind = kind;
	return id;
}

static uint32_t new_node(struct calltree *t, uint32_t parent, uint32_t routine)
{
	struct calltree_node node = {
		.routine = routine, .parent = parent, .sampled = true, .min = UINT64_MAX};
	uint32_t id = (uint32_t)t->nodes.n;
	uint32_t *last = parent ? &t->nodes.v[parent].last_child : &t->last_root;

	assert(t->nodes.n < UINT32_MAX);
	if (*last)
		t->nodes.v[*last].next_sibling = id;
	else if (parent)
		t->nodes.v[parent].first_child = id;
	else
		t->first_root = id;
	*last = id;
	if (t->routines.v[routine].first_instance)
		t->nodes.v[t->last_instance[routine]].next_instance = id;
	else
		t->routines.v[routine].first_instance = id;
	t->last_instance[routine] = id;
	vec_push(&t->nodes, node);
	return id;
}

uint32_t calltree_root(struct calltree *t, const char *name)
{
	uint32_t id = routine_of_class(t, name, "", 0);
	struct calltree_routine *routine = &t->routines.v[id];

	routine->is_root = true;
	return routine->first_instance ? routine->first_instance : new_node(t, 0, id);
}

/* The slot of the child, or the empty one where it belongs. Keys are in the nodes themselves. */
static uint32_t *child_slot(struct calltree *t, uint32_t parent, uint32_t routine)
{
	size_t mask = t->cap_children - 1;
	size_t i = map_hash((uint64_t)parent << 32 | routine) & mask;

	for (; t->children[i]; i = (i + 1) & mask) {
		const struct calltree_node *node = &t->nodes.v[t->children[i]];

		if (node->parent == parent && node->routine == routine)
			break;
	}
	return &t->children[i];
}

/* At most half full: the table is small beside the nodes. */
static void grow_children(struct calltree *t)
{
	free(t->children);
	t->cap_children = t->cap_children ? t->cap_children * 2 : CHILDREN_CAP_FIRST;
	t->children = mem_calloc(t->cap_children, sizeof(*t->children));
	for (uint32_t id = 1; id < t->nodes.n; id++) {
		const struct calltree_node *node = &t->nodes.v[id];

		if (node->parent)
			*child_slot(t, node->parent, node->routine) = id;
	}
}

uint32_t calltree_child(struct calltree *t, uint32_t parent, uint32_t routine)
{
	uint32_t last = t->nodes.v[parent].last_child;
	uint32_t *slot;

	assert(parent && parent < t->nodes.n && routine && routine < t->routines.n);
	if (t->nodes.v[last].routine == routine && last)
		return last;
	if (t->nodes.n * 2 >= t->cap_children)
		grow_children(t);
	slot = child_slot(t, parent, routine);
	if (!*slot)
		*slot = new_node(t, parent, routine);
	return *slot;
}

void calltree_add_sample(struct calltree *t, uint32_t node, uint64_t weight, uint64_t n_samples)
{
	t->nodes.v[node].base += weight;
	t->nodes.v[node].samples += n_samples;
	t->has_samples = true;
}

struct calltree_node *calltree_edit(struct calltree *t, uint32_t node)
{
	return &t->nodes.v[node];
}

void calltree_mark_entered(struct calltree *t, uint32_t node)
{
	t->nodes.v[node].sampled = false;
	t->nodes.v[node].calls++;
	t->has_events = true;
}

/* Goes through the tree in depth-first order with a count of open instances for each routine. */
static void number_recursion(struct calltree *t)
{
	uint32_t *open = mem_calloc(t->routines.n, sizeof(*open));
	uint32_t id = t->first_root;

	while (id) {
		struct calltree_node *node = &t->nodes.v[id];

		node->rl = ++open[node->routine];
		if (node->first_child) {
			id = node->first_child;
			continue;
		}
		for (;;) {
			open[node->routine]--;
			id = node->next_sibling;
			if (id || !node->parent)
				break;
			node = &t->nodes.v[node->parent];
		}
	}
	free(open);
}

void calltree_finish(struct calltree *t)
{
	for (size_t i = 1; i < t->nodes.n; i++) {
		struct calltree_node *node = &t->nodes.v[i];

		node->cum = node->base;
		node->level = node->parent ? t->nodes.v[node->parent].level + 1 : 0;
	}
	for (size_t i = t->nodes.n - 1; i > 0; i--)
		t->nodes.v[t->nodes.v[i].parent].cum += t->nodes.v[i].cum;
	t->nodes.v[0].cum = 0;
	number_recursion(t);
}

size_t calltree_n_nodes(const struct calltree *t)
{
	return t->nodes.n;
}

const struct calltree_node *calltree_get(const struct calltree *t, uint32_t node)
{
	return &t->nodes.v[node];
}

size_t calltree_n_routines(const struct calltree *t)
{
	return t->routines.n;
}

const struct calltree_routine *calltree_get_routine(const struct calltree *t, uint32_t routine)
{
	return &t->routines.v[routine];
}

uint32_t calltree_first_root(const struct calltree *t)
{
	return t->first_root;
}

uint32_t calltree_next(const struct calltree *t, uint32_t node)
{
	if (t->nodes.v[node].first_child)
		return t->nodes.v[node].first_child;
	while (node && !t->nodes.v[node].next_sibling)
		node = t->nodes.v[node].parent;
	return node ? t->nodes.v[node].next_sibling : CALLTREE_NONE;
}

uint64_t calltree_total(const struct calltree *t)
{
	uint64_t total = 0;

	for (uint32_t id = t->first_root; id; id = t->nodes.v[id].next_sibling)
		total += t->nodes.v[id].cum;
	return total;
}

bool calltree_has_events(const struct calltree *t)
{
	return t->has_events;
}

bool calltree_has_samples(const struct calltree *t)
{
	return t->has_samples;
}

bool calltree_begins_chain(const struct calltree *t, uint32_t id)
{
	const struct calltree_node *node = &t->nodes.v[id];

	return node->sampled && node->parent && !t->nodes.v[node->parent].sampled;
}
