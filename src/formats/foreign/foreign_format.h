/* SPDX-License-Identifier: MIT */
/*
 * A format of another tool that can be read: how it is told from others, and what makes a trace of it.
 * The rows are in cmd/foreign_formats.c.
 */
#ifndef WEIR_FORMATS_FOREIGN_FOREIGN_FORMAT_H
#define WEIR_FORMATS_FOREIGN_FOREIGN_FORMAT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/span.h"
#include "formats/foreign/foreign_input.h"
#include "trace/writer.h"

struct foreign_options {
	const char
		*sysroot; /* the files of the machine that was recorded are below it; NULL: "/" */
	const char *kallsyms; /* that machine's; NULL: none */
	const char *catalog;  /* symbols from this merged symbol file first; NULL: the user's own */
	/* Of formats that do not say: what is counted, in which unit, and whether the first name of a stack is a
	 * "thread" or a "function". NULL: as the format has it, or as the file looks. */
	const char *metric, *unit, *first;
};

struct foreign_format {
	const char *name;   /* "pprof" */
	const char *phrase; /* for help */
	/* Whether a file that begins so (unpacked; FOREIGN_FIRST_BYTES, or all that there is) is one. NULL: it
	 * is a folder. */
	bool (*is)(struct span first);
	bool (*is_folder)(const char *path);
	/* Everything in it is checked: it may be cut or hostile. What does not fit is left out and told in a
	 * loss record; what is no file of the format fails with a sentence. `in` is NULL for a folder. */
	int (*read)(struct foreign_input *in, const char *path,
		const struct foreign_options *options, struct trace_writer *w, struct err *err);
	const char *
		import_options; /* names of the options of `weir import` that it knows; NULL: that alone */
};

#endif
