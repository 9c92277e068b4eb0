/* SPDX-License-Identifier: MIT */
/*
 * How far a walk through a trace is. Whoever waits for it looks from another thread, and may end it there: then what was
 * being made is of no use to anybody, and fails with a sentence.
 */
#ifndef WEIR_TRACE_PROGRESS_H
#define WEIR_TRACE_PROGRESS_H

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

/* `p` may be NULL: nobody looks. */
void progress_begin(struct progress *p, uint64_t whole);
void progress_add(struct progress *p, uint64_t n);
void progress_end(struct progress *p);
bool progress_is_unwanted(const struct progress *p);
/* For who waits. */
void progress_get(const struct progress *p, uint64_t *done, uint64_t *whole);

#endif
