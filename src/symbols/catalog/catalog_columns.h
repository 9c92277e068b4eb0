/* SPDX-License-Identifier: MIT */
/* The numbers of a chunk: columns of unsigned LEB128, one behind the other. */
#ifndef WEIR_SYMBOLS_CATALOG_CATALOG_COLUMNS_H
#define WEIR_SYMBOLS_CATALOG_CATALOG_COLUMNS_H

#include "base/span.h"

static inline uint32_t column_u32(struct cursor *c)
{
	uint64_t v;

	if (__builtin_expect(c->p < c->end && !(*c->p & 0x80), 1))
		return *c->p++;
	v = cursor_uleb(c);
	if (v > UINT32_MAX)
		c->failed = true;
	return (uint32_t)v;
}

/* A number that must not be above `max`. */
static inline uint32_t column_up_to(struct cursor *c, uint64_t max)
{
	uint32_t v = column_u32(c);

	if (v > max) {
		c->failed = true;
		return 0;
	}
	return v;
}

/* Signed numbers: 0, -1, 1, -2, ... are 0, 1, 2, 3, ... */
static inline int64_t column_unfold(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static inline uint64_t column_fold(int64_t v)
{
	return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

/* At most 10 bytes. */
static inline uint8_t *column_put(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

#endif
