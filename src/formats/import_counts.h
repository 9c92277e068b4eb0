/* SPDX-License-Identifier: MIT */
/*
 * A count file (docs/format/count.md), as programs linked by `weir count` leave it, into a trace.
 * The program it came from is read for lines and modelled cycles when it is still the same file.
 */
#ifndef WEIR_FORMATS_IMPORT_COUNTS_H
#define WEIR_FORMATS_IMPORT_COUNTS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/span.h"

struct trace_writer;

bool import_counts_is(struct span bytes); /* by its first bytes */

struct import_counts_options {
	const char *cpu; /* model for cycles; NULL: this machine's */
	const char *exe; /* the program's file; NULL: where the count file says */
};

/* Everything in the file is checked: it may be half-written (SIGKILL) or hostile. What does not fit
 * is left out and told in a loss record. */
int import_counts(struct span bytes, const struct import_counts_options *options,
	struct trace_writer *w, struct err *err);

#endif
