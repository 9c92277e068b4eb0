/* SPDX-License-Identifier: MIT */
/*
 * One run as rows: what each function, stack, line or image has of the metric, with what it takes to compare that.
 * What events or counts measured is taken from the call tree; all else from the samples one by one, since the
 * squares of their weights are needed. A function that events measured has their figure, as in reports.
 */
#ifndef WEIR_QUERY_DIFF_DIFF_RUN_H
#define WEIR_QUERY_DIFF_DIFF_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "calltree/build.h"
#include "query/diff/compare_figures.h"
#include "query/diff/diff_keys.h"

enum diff_by { DIFF_BY_FUNCTION, DIFF_BY_STACK, DIFF_BY_LINE, DIFF_BY_IMAGE };

struct diff_run_row {
	struct figure figure;
	uint64_t samples; /* that the figure is from */
	double calls;
	bool is_there;
	bool has_calls; /* they were counted */
	bool is_exact;	/* by events or counts */
	bool is_kernel;
};

/* A function below its caller. */
struct diff_arc {
	uint32_t caller, callee; /* keys; caller 0: the thread */
	double calls, value;
	bool has_calls;
};

struct diff_run {
	VEC(struct diff_run_row) rows; /* by key, or by path */
	struct figure total;	       /* threads' own parts included */
	uint64_t samples;
	double grain;		   /* the usual weight of a sample */
	double scale;		   /* of all figures: 1, or by which they are per second, ... */
	bool is_counted;	   /* it has figures by events or counts, and these are no times */
	bool is_measured;	   /* it has figures by events or counts */
	VEC(struct diff_arc) arcs; /* by function */
	struct map arc_of;	   /* caller << 32 | callee -> arc */
	VEC(uint64_t) bytes;	   /* by key: of the function's code; 0 = not known */
};

struct diff_run_question {
	enum diff_by by;
	bool with_callees; /* what is below counts, too */
	bool is_before;
};

int diff_run_init(struct diff_run *run, struct diff_keys *keys, const struct profile *profile,
	const struct diff_run_question *q, struct err *err);
void diff_run_release(struct diff_run *run);
/* The row, created when absent. */
struct diff_run_row *diff_run_row(struct diff_run *run, uint32_t id);

/* The parts; each in a file of its own. */
int diff_run_add_samples(struct diff_run *run, struct diff_keys *keys,
	const struct profile *profile, const struct diff_run_question *q, struct err *err);
int diff_run_add_counted_lines(struct diff_run *run, struct diff_keys *keys,
	const struct profile *profile, const struct diff_run_question *q, struct err *err);

#endif
