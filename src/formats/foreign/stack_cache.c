/* SPDX-License-Identifier: MIT */
#include "formats/foreign/stack_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

#define N_PLACES  ((size_t)1 << 17)
#define BYTES_MAX ((size_t)512) /* longer ones are not kept */

struct place {
	uint8_t *bytes; /* owned; NULL: nothing is kept here */
	uint32_t n, stack;
};

struct stack_cache {
	struct place places[N_PLACES];
};

struct stack_cache *stack_cache_new(void)
{
	return mem_calloc(1, sizeof(struct stack_cache));
}

void stack_cache_free(struct stack_cache *c)
{
	for (size_t i = 0; c && i < N_PLACES; i++)
		free(c->places[i].bytes);
	free(c);
}

static size_t place_of(struct span bytes)
{
	return map_hash(map_hash_bytes(bytes.p, bytes.n)) % N_PLACES;
}

uint32_t stack_cache_find(const struct stack_cache *c, struct span bytes)
{
	const struct place *p =
		bytes.n && bytes.n <= BYTES_MAX ? &c->places[place_of(bytes)] : NULL;

	return p && p->n == bytes.n && !memcmp(p->bytes, bytes.p, bytes.n) ? p->stack : 0;
}

void stack_cache_put(struct stack_cache *c, struct span bytes, uint32_t stack)
{
	struct place *p = bytes.n && bytes.n <= BYTES_MAX ? &c->places[place_of(bytes)] : NULL;

	if (!p)
		return;
	free(p->bytes);
	*p = (struct place){mem_dup(bytes.p, bytes.n), (uint32_t)bytes.n, stack};
}
