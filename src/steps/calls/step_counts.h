/* SPDX-License-Identifier: MIT */
/*
 * A trace of steps as a trace of counts: the same trace, with the call trees, functions, blocks and
 * lines (records 0x55) that its steps add up to, instead of the steps. Whatever reads counts of
 * `weir count` then reads these: tree, flat, arcs, source, coverage, callgrind, lcov.
 */
#ifndef WEIR_STEPS_CALLS_STEP_COUNTS_H
#define WEIR_STEPS_CALLS_STEP_COUNTS_H

#include "base/err.h"
#include "trace/reader.h"
#include "trace/writer.h"

/* Which functions, blocks and lines are told of, beside the call trees. */
enum step_counts_code {
	STEP_COUNTS_TREES,    /* none: no file of an image is read */
	STEP_COUNTS_ALL_CODE, /* of everything that was executed, and what could have been */
	STEP_COUNTS_TOLD, /* and when each thread executed how much, and its marks: records 0x57/0x06 */
	STEP_COUNTS_COVERAGE /* the same without libraries that have no source lines */
};

/* `r` has its names (resolver_open_trace); `w` is empty. One instruction counts 1, a repeated
 * string instruction too. What of the steps cannot be read, or is missing, is told in loss records.
 */
int step_counts_write(struct trace_writer *w, struct trace_reader *r, enum step_counts_code code,
	struct err *err);

#endif
