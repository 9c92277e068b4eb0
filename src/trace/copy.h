/* SPDX-License-Identifier: MIT */
/* A trace once more, with the same ids, so that records can be left out and others added. */
#ifndef WEIR_TRACE_COPY_H
#define WEIR_TRACE_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/reader.h"
#include "trace/writer.h"

/*
 * Writes everything that `r` defines into `w`, into which nothing has been written yet; what was
 * added to `r` in memory (names) included. Function tables are read for it, so one thread at a
 * time. ERR_FORMAT when the trace defines one thing twice: no writer of ours does, and ids would
 * differ; or where what is damaged would be defined twice.
 */
int trace_copy_definitions(struct trace_writer *w, struct trace_reader *r, struct err *err);

/* Which records are copied: it says no to those that it leaves out, or has written another one for. */
struct trace_copy_filter {
	bool (*wants)(void *ctx, const struct trace_record *record);
	void *ctx;
};

/* The records that the filter accepts (NULL: all); their definitions are there already. What of `r`
 * cannot be read, or is missing at its end, is told in loss records. */
int trace_copy_records(struct trace_writer *w, const struct trace_reader *r,
	const struct trace_copy_filter *filter, struct err *err);

#endif
