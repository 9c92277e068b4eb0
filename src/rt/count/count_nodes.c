/* SPDX-License-Identifier: MIT */
/*
 * A thread's call tree. Nodes lie in one reserved range of addresses, which parts of the count file
 * are mapped into as they are needed, behind the page of struct count_thread; a node never moves.
 * They are found by a hash of parent, key and site (open addressing, in plain memory).
 */
#include <sys/mman.h>

#include "runtime.h"

#define NODES_MAX_BYTES	 (1ull << 30)
#define NODES_MIN_BYTES	 (1ull << 20)
#define FIRST_BYTES	 (COUNT_FIRST_NODES_BYTES - COUNT_PAGE)
#define STEP_MAX_BYTES	 (16ull << 20)
#define HASH_FIRST_BYTES COUNT_PAGE
#define RETRY_CALLS	 4096u
#define FOLD_STEPS	 4096

static uint32_t hash_of(uint32_t parent, uint64_t key, uint64_t site)
{
	uint64_t h = (key + site * 31) * 0x9e3779b97f4a7c15ull + parent;

	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	return (uint32_t)(h >> 32);
}

static void hash_add(struct state *s, uint32_t number)
{
	const struct count_node *n = s->nodes + number;
	uint32_t i = hash_of(n->parent, n->key, n->site) & s->hash_mask;

	while (s->hash[i])
		i = (i + 1) & s->hash_mask;
	s->hash[i] = number;
}

static bool hash_resize(struct slot *slot, struct state *s, uint64_t bytes)
{
	uint32_t *hash = raw_memory(NULL, bytes, PROT_READ | PROT_WRITE, 0);
	uint32_t n = state_thread(s)->n_nodes;

	if (!hash)
		return false;
	if (slot->hash)
		raw_call(SYS_munmap, slot->hash, slot->hash_bytes);
	slot->hash = s->hash = hash;
	slot->hash_bytes = bytes;
	s->hash_mask = (uint32_t)(bytes / sizeof(*hash)) - 1;
	for (uint32_t i = 1; i < n; i++)
		hash_add(s, i);
	return true;
}

static bool hash_has_room(const struct state *s)
{
	return s->hash && state_thread(s)->n_nodes < (s->hash_mask + 1) / 2;
}

/* More of the file behind what there is. */
static bool map_more(struct slot *slot, uint32_t number, uint64_t bytes)
{
	uint64_t offset;

	if (!count_file_extend(slot->nodes + slot->n_places, bytes, &offset) ||
		!count_file_add_area(COUNT_AREA_NODES, number, offset, bytes, slot->n_places))
		return false;
	slot->n_places += (uint32_t)(bytes / sizeof(struct count_node));
	return true;
}

void count_nodes_grow(void *state)
{
	struct state *s = state;
	struct slot *slot = &count_library.slots[s->slot];
	uint64_t used = (uint64_t)slot->n_places * sizeof(struct count_node);
	uint64_t step = used < STEP_MAX_BYTES ? used : STEP_MAX_BYTES;

	if (!hash_has_room(s) && !hash_resize(slot, s, slot->hash_bytes * 2))
		return;
	if (state_thread(s)->n_nodes < slot->n_places)
		return;
	if (used + COUNT_PAGE + step > slot->nodes_bytes)
		step = slot->nodes_bytes - COUNT_PAGE - used;
	while (step >= COUNT_PAGE && !map_more(slot, s->slot, step))
		step = PAGE_DOWN(step / 2);
	s->n_places = slot->n_places;
}

void count_nodes_reserve(struct state *s, uint32_t n)
{
	struct slot *slot = &count_library.slots[s->slot];
	uint64_t hash_bytes = slot->hash_bytes;

	n += state_thread(s)->n_nodes;
	while (hash_bytes / sizeof(*s->hash) / 2 <= n)
		hash_bytes *= 2;
	if (hash_bytes > slot->hash_bytes)
		hash_resize(slot, s, hash_bytes);
	if (slot->n_places < n)
		map_more(slot, s->slot,
			PAGE_UP((n - slot->n_places) * sizeof(struct count_node)));
	s->n_places = slot->n_places;
}

static struct count_node *find(
	struct state *s, const struct count_node *parent, uint64_t key, uint64_t site)
{
	uint32_t p = (uint32_t)(parent - s->nodes);
	uint32_t i = hash_of(p, key, site) & s->hash_mask;

	for (; s->hash[i]; i = (i + 1) & s->hash_mask) {
		struct count_node *n = s->nodes + s->hash[i];

		if (n->key == key && n->parent == p && n->site == site)
			return n;
	}
	return NULL;
}

/* Recursion in a tree that is large already: the nearest ancestor, or the parent itself, that is of the same
 * function and, while there is still room, has been called by the same one. */
static struct count_node *fold(
	struct state *s, const struct count_node *parent, uint64_t key, uint64_t site)
{
	struct count_thread *t = state_thread(s);
	bool is_any = t->n_nodes >= 2 * COUNT_FOLD_NODES;
	const struct count_node *n = parent;

	if (t->n_nodes < COUNT_FOLD_NODES || (key & COUNT_KEY_LEFT))
		return NULL;
	for (int i = 0; i < FOLD_STEPS && n != s->nodes; i++, n = s->nodes + n->parent)
		if (n->key == key && n->site == site &&
			(is_any || s->nodes[n->parent].key == parent->key)) {
			t->folded |= is_any ? COUNT_FOLDED_CALLERS : COUNT_FOLDED_CALLS;
			return s->nodes + (n - s->nodes);
		}
	return NULL;
}

struct count_node *count_node_enter(
	struct state *s, const struct count_node *parent, uint64_t key, uint64_t site)
{
	struct count_node *n = find(s, parent, key, site);
	struct count_thread *t = state_thread(s);

	if (!n)
		n = fold(s, parent, key, site);
	if (n)
		return n;
	if (t->n_nodes >= s->n_places || !hash_has_room(s)) {
		if (s->retry) {
			s->retry--;
			return NULL;
		}
		if (!count_library.is_confined)
			count_apart(count_nodes_grow, s);
		if (t->n_nodes >= s->n_places || !hash_has_room(s)) {
			s->retry = RETRY_CALLS;
			return NULL;
		}
	}
	n = s->nodes + t->n_nodes;
	n->parent = (uint32_t)(parent - s->nodes);
	n->key = key;
	n->site = site;
	n->calls = n->cost = n->cycles = n->max = 0;
	n->min = UINT64_MAX;
	hash_add(s, t->n_nodes);
	*(volatile uint32_t *)&t->n_nodes = t->n_nodes + 1;
	return n;
}

/* Address space: as much as there may be. */
static bool reserve(struct slot *slot)
{
	uint64_t bytes = NODES_MAX_BYTES;

	while (bytes > count_library.reserve_max && bytes > NODES_MIN_BYTES)
		bytes /= 2;
	for (; bytes >= NODES_MIN_BYTES; bytes /= 4) {
		uint8_t *p = raw_memory(NULL, bytes, PROT_NONE, MAP_NORESERVE);

		if (!p)
			continue;
		slot->nodes = (struct count_node *)(p + COUNT_PAGE);
		slot->nodes_bytes = bytes;
		return true;
	}
	return false;
}

/* One page for struct count_thread, and some nodes. */
static bool map_first(struct slot *slot, uint32_t number)
{
	uint8_t *thread = (uint8_t *)slot->nodes - COUNT_PAGE;
	uint64_t offset;

	if (!count_file_extend(thread, COUNT_PAGE + FIRST_BYTES, &offset))
		return false;
	slot->n_places = FIRST_BYTES / sizeof(struct count_node);
	((struct count_thread *)thread)->n_nodes = 1;
	slot->nodes[0].min = UINT64_MAX;
	return count_file_add_area(
		       COUNT_AREA_THREAD, number, offset, sizeof(struct count_thread), 0) &&
	       count_file_add_area(COUNT_AREA_NODES, number, offset + COUNT_PAGE, FIRST_BYTES, 0);
}

bool count_nodes_open(struct slot *slot, struct state *s)
{
	if (!slot->nodes && !reserve(slot))
		return false;
	if (!slot->n_places && !map_first(slot, (uint32_t)(slot - count_library.slots)))
		return false;
	s->nodes = slot->nodes;
	s->n_places = slot->n_places;
	/* A slot that is used again, or a child of fork: the table is not this tree's. */
	return hash_resize(slot, s, slot->hash_bytes ? slot->hash_bytes : HASH_FIRST_BYTES);
}
