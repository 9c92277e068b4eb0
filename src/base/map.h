/* SPDX-License-Identifier: MIT */
/* Hash tables: 64-bit key -> 64-bit value, and bytes -> dense id. Open addressing, no deletion
 * except reset. Zero-initialise; release when done. */
#ifndef WEIR_BASE_MAP_H
#define WEIR_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct map_slot {
	uint64_t key;
	uint64_t value;
	bool used;
};

struct map {
	struct map_slot *slots;
	size_t n, cap; /* cap is 0 or a power of two */
};

void map_release(struct map *m);
void map_reset(struct map *m);
/* NULL when absent; the pointer is valid until the next insertion. */
uint64_t *map_find(const struct map *m, uint64_t key);
/* The value's place, created as 0 when absent (*created says which; may be NULL). */
uint64_t *map_ensure(struct map *m, uint64_t key, bool *created);
uint64_t map_hash(uint64_t key);
/* Mixes a further word into a hash, for keys of several words. */
uint64_t map_hash_mix(uint64_t hash, uint64_t word);
uint64_t map_hash_bytes(const void *p, size_t n);

/*
 * Interned byte strings: the same bytes get the same id; ids are dense from 0 in order of first
 * sight. The copy kept has a NUL behind it.
 */
struct intern_item {
	const char *p; /* NUL-terminated copy, owned */
	uint32_t n;
	uint64_t hash;
};

struct intern {
	struct intern_item *items;
	size_t n_items, cap_items;
	uint32_t *slots; /* id + 1, 0 = empty */
	size_t cap_slots;
	char *block; /* storage being filled */
	size_t block_left;
	VEC(char *) blocks;
};

void intern_release(struct intern *t);
uint32_t intern_bytes(struct intern *t, const void *p, size_t n);
uint32_t intern_text(struct intern *t, const char *s);
static inline const char *intern_get(const struct intern *t, uint32_t id)
{
	return t->items[id].p;
}

#endif
