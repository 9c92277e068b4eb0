/* SPDX-License-Identifier: MIT */
/*
 * How far a walk through a trace is. Whoever waits for it looks from another thread, and may end it there: then what was
 * being made is of no use to anybody, and fails with a sentence.
 */
#ifndef WEIR_CALLTREE_PROGRESS_H
#define WEIR_CALLTREE_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct progress {
	/* Written by the walk, read by who waits; a picture of the moment, ordered with nothing. */
	_Atomic uint64_t done, whole; /* records; `whole` 0: no walk is under way */
	/* Written by who waits, read by the walk; NULL: it goes to its end. */
	const atomic_bool *is_unwanted;
};

/* Records that are read before it is told. */
#define PROGRESS_STEP 4096

/* `p` may be NULL in all of these. */
static inline void progress_begin(struct progress *p, uint64_t whole)
{
	if (!p)
		return;
	atomic_store_explicit(&p->done, 0, memory_order_relaxed);
	atomic_store_explicit(&p->whole, whole, memory_order_relaxed);
}

static inline void progress_end(struct progress *p)
{
	progress_begin(p, 0);
}

static inline void progress_add(struct progress *p, uint64_t n)
{
	if (p)
		atomic_fetch_add_explicit(&p->done, n, memory_order_relaxed);
}

static inline bool progress_is_unwanted(const struct progress *p)
{
	return p && p->is_unwanted && atomic_load_explicit(p->is_unwanted, memory_order_relaxed);
}

#endif
