/* SPDX-License-Identifier: MIT */
/* The flat model: one row for each routine, threads' roots included. */
#ifndef WEIR_CALLTREE_FLAT_H
#define WEIR_CALLTREE_FLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calltree/calltree.h"

/* One kind of figure (by events, or by samples) of a routine. */
struct flat_figures {
	uint64_t base;
	uint64_t cum;  /* outermost instances only (RL 1), so that recursion counts once */
	uint64_t cum2; /* every instance */
};

/* What events measured and what samples say stand side by side and are never added up: a routine
 * that has instances of both kinds shows, as base and cum, those of events. */
struct flat_row {
	uint32_t routine;
	bool has_events; /* else calls, elapsed, min and max were not measured */
	bool has_range;	 /* a call ended, so that min and max are known */
	bool exact;	 /* base, cum and cum2 are by events; else they are those of samples */
	uint64_t calls;
	uint64_t base, cum, cum2;
	struct flat_figures sampled; /* by samples, over all instances */
	uint64_t elapsed;	     /* outermost instances only */
	uint64_t min, max;	     /* cum of the cheapest and the dearest call */
	uint64_t samples;	     /* with the routine innermost */
};

struct flat {
	struct flat_row *rows; /* by cum, largest first; ties in order of first sight */
	size_t n_rows;
};

/* `t` must be finished. Routines without a node have no row. O(n log n). */
void flat_init(struct flat *flat, const struct calltree *t);
void flat_release(struct flat *flat);

#endif
