/* SPDX-License-Identifier: MIT */
/* The numbers of a chunk: columns of unsigned LEB128, one behind the other. */
#ifndef WEIR_SYMBOLS_CATALOG_CATALOG_COLUMNS_H
#define WEIR_SYMBOLS_CATALOG_CATALOG_COLUMNS_H

#include "base/leb128.h"
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

#endif
