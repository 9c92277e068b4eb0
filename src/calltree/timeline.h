/* SPDX-License-Identifier: MIT */
/*
 * What happened when: the calls, the samples, the waits and the executed instructions of one thread over time,
 * and how busy all threads were. Made for a picture of so many columns: calls that are shorter than a column
 * and follow each other in a row are one span with their number, and so are waits; samples of a column are
 * one point with theirs, and so are marks of one kind. So it is small, whatever the size of the trace.
 */
#ifndef WEIR_CALLTREE_TIMELINE_H
#define WEIR_CALLTREE_TIMELINE_H

#include "base/mem.h"
#include "calltree/build.h"

#define TIMELINE_COLUMNS_MAX 8192
#define TIMELINE_ROWS_MAX    512 /* deeper calls are counted */

struct timeline_span {
	uint64_t from, to; /* as in the trace */
	uint32_t row;	   /* how many calls are open below it */
	uint32_t frame;	   /* of the first one */
	uint32_t n;	   /* calls */
};

struct timeline_point {
	uint64_t time;
	uint32_t frame; /* innermost, of the first one */
	uint32_t n;	/* samples */
};

/* The thread was off the CPU. */
struct timeline_wait {
	uint64_t from, to;
	uint32_t frame; /* innermost one of the program, of the first wait; 0 = not known */
	uint32_t n;	/* waits */
	bool is_ready;	/* it could have gone on: another thread was given the CPU */
};

/* Instructions of a trace of steps (kind 0), executed from `from` to `to`; or what happened between two of
 * them, at `from`. */
struct timeline_step {
	uint64_t from, to;
	uint32_t kind;	/* else enum step_mark_kind */
	uint32_t words; /* string: of the first mark */
	uint64_t n;	/* instructions or marks */
};

struct timeline {
	uint64_t from, to; /* the window */
	uint32_t thread;   /* whose spans and points these are; 0 = none */
	VEC(struct timeline_span) spans;
	VEC(struct timeline_point) points;
	VEC(struct timeline_wait) waits;
	VEC(struct timeline_step) steps;
	/* By thread and column: samples, calls and instructions, n_columns for each thread. */
	uint32_t *busy;
	uint32_t n_columns, n_threads;
	uint64_t n_too_deep; /* calls that were open below others, and no row was left */
	bool is_cut;	     /* a part of the trace could not be read */
};

/* What is to be drawn of a profile. */
struct timeline_picture {
	uint64_t from,
		to; /* from <= time < to, as in the trace; of it what is in the profile's window */
	uint32_t thread; /* 0: the one with most samples and events */
	uint32_t n_columns;
	struct progress *progress; /* NULL: nobody looks */
};
#define TIMELINE_PICTURE_ALL ((struct timeline_picture){.to = UINT64_MAX})

/* Of the threads that the profile selects. One pass over the trace up to the picture's end. */
int timeline_init(struct timeline *t, const struct profile *p,
	const struct timeline_picture *picture, struct err *err);
void timeline_release(struct timeline *t);

#endif
