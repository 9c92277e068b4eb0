/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#define INTERN_BLOCK_BYTES (64 * 1024)

uint64_t map_hash(uint64_t key)
{
	key ^= key >> 32;
	key *= 0xd6e8feb86659fd93u;
	key ^= key >> 32;
	key *= 0xd6e8feb86659fd93u;
	key ^= key >> 32;
	return key;
}

uint64_t map_hash_mix(uint64_t hash, uint64_t word)
{
	return map_hash(hash * 0x9e3779b97f4a7c15u + word);
}

uint64_t map_hash_bytes(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t h = 0x9e3779b97f4a7c15u ^ n;
	uint64_t word;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&word, p, 8);
		h = (h ^ word) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	if (n) {
		word = 0;
		memcpy(&word, p, n);
		h = (h ^ word) * 0xff51afd7ed558ccdu;
	}
	return map_hash(h);
}

void map_release(struct map *m)
{
	free(m->slots);
	*m = (struct map){NULL, 0, 0};
}

void map_reset(struct map *m)
{
	if (m->cap)
		memset(m->slots, 0, m->cap * sizeof(*m->slots));
	m->n = 0;
}

static struct map_slot *slot_for(const struct map *m, uint64_t key)
{
	size_t i = map_hash(key) & (m->cap - 1);

	while (m->slots[i].used && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

uint64_t *map_find(const struct map *m, uint64_t key)
{
	struct map_slot *s;

	if (!m->cap)
		return NULL;
	s = slot_for(m, key);
	return s->used ? &s->value : NULL;
}

static void grow(struct map *m)
{
	struct map old = *m;

	m->cap = old.cap ? old.cap * 2 : 16;
	m->slots = mem_calloc(m->cap, sizeof(*m->slots));
	for (size_t i = 0; i < old.cap; i++)
		if (old.slots[i].used)
			*slot_for(m, old.slots[i].key) = old.slots[i];
	free(old.slots);
}

uint64_t *map_ensure(struct map *m, uint64_t key, bool *created)
{
	struct map_slot *s;

	if ((m->n + 1) * 4 > m->cap * 3)
		grow(m);
	s = slot_for(m, key);
	if (created)
		*created = !s->used;
	if (!s->used) {
		*s = (struct map_slot){key, 0, true};
		m->n++;
	}
	return &s->value;
}

void intern_release(struct intern *t)
{
	vec_release_all(&t->blocks);
	free(t->items);
	free(t->slots);
	memset(t, 0, sizeof(*t));
}

static char *store(struct intern *t, const void *p, size_t n)
{
	char *copy;

	if (n + 1 > t->block_left) {
		size_t bytes = n + 1 > INTERN_BLOCK_BYTES ? n + 1 : INTERN_BLOCK_BYTES;

		t->block = mem_alloc(bytes);
		vec_push(&t->blocks, t->block);
		t->block_left = bytes;
	}
	copy = t->block;
	if (n)
		memcpy(copy, p, n);
	copy[n] = 0;
	t->block += n + 1;
	t->block_left -= n + 1;
	return copy;
}

static void intern_grow(struct intern *t)
{
	size_t cap = t->cap_slots ? t->cap_slots * 2 : 64;

	free(t->slots);
	t->slots = mem_calloc(cap, sizeof(*t->slots));
	t->cap_slots = cap;
	for (size_t id = 0; id < t->n_items; id++) {
		size_t i = t->items[id].hash & (cap - 1);

		while (t->slots[i])
			i = (i + 1) & (cap - 1);
		t->slots[i] = (uint32_t)id + 1;
	}
}

uint32_t intern_bytes(struct intern *t, const void *p, size_t n)
{
	uint64_t hash = map_hash_bytes(p, n);
	size_t i;

	if ((t->n_items + 1) * 2 > t->cap_slots)
		intern_grow(t);
	for (i = hash & (t->cap_slots - 1); t->slots[i]; i = (i + 1) & (t->cap_slots - 1)) {
		const struct intern_item *item = &t->items[t->slots[i] - 1];

		if (item->hash == hash && item->n == n && (!n || !memcmp(item->p, p, n)))
			return t->slots[i] - 1;
	}
	if (t->n_items == t->cap_items)
		mem_grow((void **)&t->items, &t->cap_items, t->n_items + 1, sizeof(*t->items));
	t->items[t->n_items] = (struct intern_item){store(t, p, n), (uint32_t)n, hash};
	t->slots[i] = (uint32_t)++t->n_items;
	return (uint32_t)t->n_items - 1;
}

uint32_t intern_text(struct intern *t, const char *s)
{
	return intern_bytes(t, s, strlen(s));
}
