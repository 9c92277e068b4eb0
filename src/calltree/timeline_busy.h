/* SPDX-License-Identifier: MIT */
/*
 * How busy threads were that are not drawn themselves: of their calls only the number in each column is wanted. So their
 * streams are not merged with others, and a chunk that lies within one column is not even unpacked where the trace
 * has nothing else in such streams: of a thousand million calls of several threads most of the time was spent on those
 * that nobody sees.
 */
#ifndef WEIR_CALLTREE_TIMELINE_BUSY_H
#define WEIR_CALLTREE_TIMELINE_BUSY_H

#include "calltree/timeline.h"

/* The column of a time within the window. */
uint32_t timeline_column(const struct timeline *t, uint64_t time);
/* Something that a thread did, `n` times; outside of the window it is not counted. */
void timeline_note(struct timeline *t, uint32_t thread, uint64_t time, uint64_t n);
/* By stream: those that only have to be counted, of threads that are not drawn. Owned by the caller. */
bool *timeline_counted_streams(const struct timeline *t, const struct profile *p);
/* Counts them. Whatever is damaged sets t->is_cut. */
void timeline_count(struct timeline *t, const struct profile *p, const bool *is_counted,
	struct progress *progress);

#endif
