/* SPDX-License-Identifier: MIT */
/* Opening what the user calls a trace: a trace, or the count file of a program that counts itself.
 * Reports on call trees and blocks need not know of steps: they are given counts. */
#ifndef WEIR_CMD_OPEN_TRACE_H
#define WEIR_CMD_OPEN_TRACE_H

#include "base/err.h"
#include "formats/import_counts.h"
#include "trace/reader.h"

/* What becomes of executed instructions (`weir steps`). */
enum open_steps {
	OPEN_STEPS_COUNTS,   /* counts: call trees, blocks, lines, what was not executed */
	OPEN_STEPS_COVERAGE, /* the same without libraries that have no source lines */
	OPEN_STEPS_TREES,    /* call trees alone: no file of a program is read for them */
	OPEN_STEPS_PLAIN     /* they stay what they are */
};

struct open_trace_options {
	const char *catalog;		     /* symbols from here first; NULL: the user's own */
	struct import_counts_options counts; /* of a count file */
	enum open_steps steps;
};

/* With all names that can be found (resolver_open_trace). `options` may be NULL. A count file is
 * imported into memory first, and a trace of steps becomes one of counts there. */
int open_trace(struct trace_reader **out, const char *path,
	const struct open_trace_options *options, struct err *err);

/* The same without looking for names. */
int open_trace_plain(struct trace_reader **out, const char *path, struct err *err);

/* A count file into a trace at `output`. */
int open_trace_import(const char *path, const char *output,
	const struct import_counts_options *options, struct err *err);

#endif
