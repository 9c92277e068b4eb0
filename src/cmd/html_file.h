/* SPDX-License-Identifier: MIT */
/* The page of `weir view` as a file: reports of one trace and comparisons of two write the same. */
#ifndef WEIR_CMD_HTML_FILE_H
#define WEIR_CMD_HTML_FILE_H

#include "cmd/open_trace.h"

/* To `path`, '-': standard output. `before`: a trace to compare with; NULL: none. A file that could not be written as a
 * whole does not stay. 1 when the traces have losses. */
int html_file_write(const char *path, const char *before, const char *trace,
	const struct open_trace_options *options, struct err *err);

#endif
