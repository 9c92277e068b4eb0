/* SPDX-License-Identifier: MIT */
/*
 * A thread's tree. A child is found by a hash of parent and function. Where recursion was folded its place in the
 * hash is that of the node that it went to, so that the next time is as fast.
 */
#include "translate/counts_internal.h"

#include <stdlib.h>

#define SLOTS_FIRST 256u
#define SLOTS_MAX   (1u << 24)
#define FOLD_STEPS  4096

void call_nodes_init(struct call_thread *t)
{
	vec_push(&t->nodes, ((struct call_node){.min = UINT64_MAX}));
	t->n_slots = SLOTS_FIRST;
	t->slots = mem_calloc(t->n_slots, sizeof(*t->slots));
}

void call_nodes_release(struct call_thread *t)
{
	vec_release(&t->nodes);
	free(t->slots);
}

static uint64_t key_of(uint32_t parent, uint32_t function)
{
	return (uint64_t)parent << 32 | function; /* function is never 0 */
}

static size_t place_of(const struct call_thread *t, uint64_t key)
{
	uint64_t h = key * 0x9e3779b97f4a7c15u;

	return (size_t)((h ^ h >> 32) & (t->n_slots - 1));
}

static struct call_slot *slot_for(const struct call_thread *t, uint64_t key)
{
	size_t i = place_of(t, key);

	while (t->slots[i].key && t->slots[i].key != key)
		i = (i + 1) & (t->n_slots - 1);
	return &t->slots[i];
}

static bool grow(struct call_thread *t)
{
	struct call_slot *old = t->slots;
	size_t n = t->n_slots;

	if (n >= SLOTS_MAX)
		return false;
	t->n_slots = n * 2;
	t->slots = mem_calloc(t->n_slots, sizeof(*t->slots));
	for (size_t i = 0; i < n; i++)
		if (old[i].key)
			*slot_for(t, old[i].key) = old[i];
	free(old);
	return true;
}

/* The nearest open call of the function, when the tree is large already; 0: there is none. */
static uint32_t fold(struct call_thread *t, uint32_t parent, uint32_t function)
{
	bool is_any = t->nodes.n >= 2 * COUNTS_FOLD_NODES;
	const struct call_node *nodes = t->nodes.v;
	uint32_t n = parent;

	if (t->nodes.n < COUNTS_FOLD_NODES)
		return 0;
	for (int i = 0; i < FOLD_STEPS && n; i++, n = nodes[n].parent)
		if (nodes[n].function == function &&
			(is_any || nodes[nodes[n].parent].function == nodes[parent].function)) {
			t->is_folded = true;
			t->is_folded_by_any |= is_any;
			return n;
		}
	return 0;
}

static uint32_t add_node(struct call_thread *t, uint32_t parent, uint32_t function)
{
	if (t->counts->n_nodes >= COUNTS_NODES_MAX)
		return 0;
	t->counts->n_nodes++;
	vec_push(&t->nodes, ((struct call_node){.parent = parent, .function = function, .min = UINT64_MAX}));
	return (uint32_t)t->nodes.n - 1;
}

uint32_t call_nodes_child(struct call_thread *t, uint32_t parent, uint32_t function)
{
	uint64_t key = key_of(parent, function);
	struct call_slot *slot = slot_for(t, key);
	uint32_t node = slot->node;

	if (!slot->key) {
		if (t->n_used_slots * 2 >= t->n_slots && grow(t))
			slot = slot_for(t, key);
		if (t->n_used_slots * 2 < t->n_slots) {
			node = fold(t, parent, function);
			node = node ? node : add_node(t, parent, function);
		}
		if (!node) {
			t->counts->n_without_node++;
			return parent;
		}
		*slot = (struct call_slot){key, node};
		t->n_used_slots++;
	}
	t->nodes.v[parent].second_function = t->nodes.v[parent].child_function;
	t->nodes.v[parent].second = t->nodes.v[parent].child;
	t->nodes.v[parent].child_function = function;
	t->nodes.v[parent].child = node;
	return node;
}
