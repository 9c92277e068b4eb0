/* SPDX-License-Identifier: MIT */
/*
 * Ranges laid over each other like paint: where several cover an address, the one added last is
 * seen. Entries of debug information are added parents first, so what is seen is the innermost one,
 * and ranges that stick out of their parent's, or overlap a sibling's, do no harm.
 */
#ifndef WEIR_DWARF_INTERVAL_PAINT_H
#define WEIR_DWARF_INTERVAL_PAINT_H

#include <stdint.h>

#include "base/mem.h"
#include "base/sort.h"

#define PAINT_NONE UINT32_MAX /* nothing covers the address */

struct paint_range {
	uint64_t start, end; /* start < end */
	uint32_t value;
};

/* From `addr` on this value is seen, up to the next change. */
struct paint_change {
	uint64_t addr;
	uint32_t value; /* or PAINT_NONE */
};

struct paint_layer {
	uint64_t end;
	uint32_t order; /* of its range; higher is nearer to the eye */
	uint32_t value;
};

/* Zero-initialise; painter_reset keeps the memory. */
struct painter {
	VEC(struct paint_range) ranges; /* as added */
	VEC(struct sort_pair) by_start;
	VEC(struct paint_layer) heap; /* highest order first; those that ended may linger inside */
	VEC(struct paint_change) changes;
};

static inline void painter_reset(struct painter *p)
{
	p->ranges.n = p->changes.n = 0;
}

static inline void painter_add(struct painter *p, uint64_t start, uint64_t end, uint32_t value)
{
	vec_push(&p->ranges, ((struct paint_range){start, end, value}));
}

/* Fills `changes`: by address, neighbours differ, the last one is PAINT_NONE. O(n log n). */
void painter_run(struct painter *p);
void painter_release(struct painter *p);

#endif
