/* SPDX-License-Identifier: MIT */
/*
 * The arcs model (callers and callees): one stanza for each routine with the routines that call it
 * and those that it calls. Rows of the recursive instances of Self (RL > 1) are kept apart, which
 * makes the sums come out exactly:
 *
 * 1. Calls and base of all parents = Self's (a thread's root has no parents).
 * 2. Cum of the parent rows that are not recursive = Self's cum; of all parent rows = cum2.
 * 3. Cum of all children = cum2 - base.
 *
 * They hold twice, for the figures by events and for those by samples. Base and cum of the rows of
 * a stanza are of the kind that Self's are of: by events when events measured Self. A row without
 * such figures (Self was traced, the other only sampled) has is_measured false.
 */
#ifndef WEIR_CALLTREE_ARCS_H
#define WEIR_CALLTREE_ARCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "calltree/calltree.h"
#include "calltree/flat.h"

struct arc_row {
	uint32_t routine;  /* the parent or child */
	uint32_t site;	   /* the place of the call in the caller (calltree_site), 0 = any */
	bool is_recursive; /* of instances of Self with RL > 1 */
	bool has_events;   /* else calls were not measured */
	bool is_exact;	   /* base and cum are by events, as Self's */
	bool is_measured;  /* else base and cum are 0, for want of figures of Self's kind */
	uint64_t calls, base, cum;
	uint64_t sampled_base, sampled_cum; /* by samples */
};

struct arc_stanza {
	struct flat_row self;
	size_t first_row; /* in arcs.rows: the parents, then the children */
	size_t n_parents, n_children;
};

struct arcs {
	struct arc_stanza *stanzas; /* in the order of the flat model */
	size_t n_stanzas;
	VEC(struct arc_row) rows;
};

/* `flat` must be that of `t`. O(n log n). */
void arcs_init(struct arcs *arcs, const struct calltree *t, const struct flat *flat);
void arcs_release(struct arcs *arcs);

/* True when every stanza keeps the sums above; O(rows). Otherwise *broken (may be NULL) is the
 * first stanza that does not. */
bool arcs_check(const struct arcs *arcs, const struct calltree *t, size_t *broken);

#endif
