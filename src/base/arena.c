/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define BLOCK_BYTES 16384

struct block {
	struct block *next;
	size_t n, cap; /* bytes of data */
	_Alignas(16) uint8_t data[];
};

struct arena {
	struct block *first; /* the one that is being filled */
};

struct arena *arena_new(void)
{
	return mem_zalloc(sizeof(struct arena));
}

void arena_free(struct arena *a)
{
	if (!a)
		return;
	for (struct block *b = a->first, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	free(a);
}

static struct block *block_new(size_t bytes)
{
	struct block *b = mem_zalloc(sizeof(*b) + bytes);

	b->cap = bytes;
	return b;
}

void *arena_zalloc(struct arena *a, size_t bytes)
{
	size_t need = (bytes + 15) & ~(size_t)15;

	if (!a->first || a->first->cap - a->first->n < need) {
		struct block *b = block_new(need > BLOCK_BYTES / 4 ? need : BLOCK_BYTES);

		/* A block of its own goes behind the one that still has room. */
		if (a->first && need > BLOCK_BYTES / 4) {
			b->next = a->first->next;
			a->first->next = b;
			b->n = need;
			return b->data;
		}
		b->next = a->first;
		a->first = b;
	}
	a->first->n += need;
	return a->first->data + a->first->n - need;
}

void *arena_dup(struct arena *a, const void *p, size_t bytes)
{
	void *copy = arena_zalloc(a, bytes);

	if (bytes)
		memcpy(copy, p, bytes);
	return copy;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *copy = arena_zalloc(a, n + 1);

	if (n)
		memcpy(copy, s, n);
	return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, fmt);
	n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	text = arena_zalloc(a, n > 0 ? (size_t)n + 1 : 1);
	if (n > 0) {
		va_start(args, fmt);
		vsnprintf(text, (size_t)n + 1, fmt, args);
		va_end(args);
	}
	return text;
}
