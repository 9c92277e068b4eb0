/* SPDX-License-Identifier: MIT */
/* Turns ranges that overlap into pieces that do not: each range paints over the earlier ones. */
#ifndef WEIR_SYMBOLS_RANGE_PAINT_H
#define WEIR_SYMBOLS_RANGE_PAINT_H

#include <stddef.h>
#include <stdint.h>

struct range {
	uint64_t start, end; /* end is one past the last address; empty when not above start */
};

struct range_piece {
	uint64_t start, end;
	uint32_t range_i; /* which range shows here */
};

/* The pieces in address order, in memory the caller frees; their number is returned. A range that
 * is painted over in its middle gives two pieces, one that is painted over completely none. At most
 * 2^30 ranges. O(n log n); O(n) when the ranges come sorted and do not overlap. */
size_t range_paint(const struct range *ranges, size_t n, struct range_piece **out);
/* The same, but each range paints over the later ones. */
size_t range_paint_first_wins(const struct range *ranges, size_t n, struct range_piece **out);

#endif
