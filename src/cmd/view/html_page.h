/* SPDX-License-Identifier: MIT */
/*
 * The page of `weir view` as one file that needs no server and asks nobody: the engine as WebAssembly, the
 * trace itself, and source lines of its hottest functions are in it.
 */
#ifndef WEIR_CMD_VIEW_HTML_PAGE_H
#define WEIR_CMD_VIEW_HTML_PAGE_H

#include <stdio.h>

#include "base/err.h"
#include "trace/reader.h"

#define HTML_TRACE_BYTES_MAX ((size_t)256 << 20) /* unpacked; larger ones are for weir view */
#define HTML_SOURCES_MAX     100		 /* functions */

/* Takes the readers over. `before`: a trace to compare with, in the page, too; NULL: none. `exe`: as of
 * reports. 1 when the trace has losses, which the page and a line on stderr say. */
int html_page_write(FILE *out, struct trace_reader *reader, struct trace_reader *before,
	const char *exe, struct err *err);

#endif
