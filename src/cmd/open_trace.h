/* SPDX-License-Identifier: MIT */
/* Opening what the user calls a trace: a trace, the count file of a program that counts itself, or a file of
 * another tool (cmd/foreign_formats.h).
 * Reports on call trees and blocks need not know of steps: they are given counts. */
#ifndef WEIR_CMD_OPEN_TRACE_H
#define WEIR_CMD_OPEN_TRACE_H

#include <stddef.h>

#include "base/err.h"
#include "cmd/options.h"
#include "formats/foreign/foreign_format.h"
#include "formats/import_counts.h"
#include "trace/reader.h"

/* What becomes of executed instructions (`weir steps`). */
enum open_steps {
	OPEN_STEPS_COUNTS,   /* counts: call trees, blocks, lines, what was not executed */
	OPEN_STEPS_TOLD,     /* and what happened when */
	OPEN_STEPS_COVERAGE, /* the same without libraries that have no source lines */
	OPEN_STEPS_TREES,    /* call trees alone: no file of a program is read for them */
	OPEN_STEPS_PLAIN     /* they stay what they are */
};

struct open_trace_options {
	const char *catalog;		     /* symbols from here first; NULL: the user's own */
	struct import_counts_options counts; /* of a count file */
	enum open_steps steps;
	struct foreign_options
		foreign; /* of a file of another tool; its catalog is the one above */
};

/* The rows of an option table for these: `type` has struct import_counts_options, or all of struct
 * open_trace_options, as `member`. */
#define COUNT_FILE_OPTIONS(type, member)                                                           \
	{0, "cpu", OPTION_TEXT, "NAME", "counts: cycles are those of this processor",              \
		offsetof(type, member.cpu)},                                                       \
	{                                                                                          \
		0, "exe", OPTION_TEXT, "FILE", "counts: the program, when it is elsewhere now",    \
			offsetof(type, member.exe)                                                 \
	}
#define OPEN_TRACE_OPTIONS(type, member)                                                           \
	{0, "catalog", OPTION_TEXT_ONCE, "FILE", "symbols from this merged symbol file first",     \
		offsetof(type, member.catalog)},                                                   \
		COUNT_FILE_OPTIONS(type, member.counts)

/* With all names that can be found (resolver_open_trace). A count file, or one of another tool, is imported into
 * memory first, and a trace of steps becomes one of counts there. */
int open_trace(struct trace_reader **out, const char *path,
	const struct open_trace_options *options, struct err *err);

/* The same without looking for names. */
int open_trace_plain(struct trace_reader **out, const char *path, struct err *err);

/* A count file into a trace at `output`. */
int open_trace_import(const char *path, const char *output,
	const struct import_counts_options *options, struct err *err);

/* A file of another tool, of this format. */
int open_trace_import_foreign(const struct foreign_format *format, const char *path,
	const char *output, const struct foreign_options *options, struct err *err);

#endif
