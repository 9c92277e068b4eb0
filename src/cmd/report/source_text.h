/* SPDX-License-Identifier: MIT */
/* Source files by the path that debug information has, or near the trace when they moved. */
#ifndef WEIR_CMD_REPORT_SOURCE_TEXT_H
#define WEIR_CMD_REPORT_SOURCE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"

/* Zero-initialise; release when done. */
struct source_text {
	struct file_map map;
	size_t *ends;	/* by line, from 0: offset of its end */
	size_t n_lines; /* 0: not found */
	uint64_t mtime_ns;
};

/* False when there is no such file. A relative path, and one that is not there, is looked for in
 * the folder of the trace too: "/src/lib/a.c" as src/lib/a.c, lib/a.c and a.c. */
bool source_text_open(struct source_text *t, const char *path, const char *trace_path);
void source_text_release(struct source_text *t);
/* Without the line's end; empty when the file is shorter. */
struct span source_text_line(const struct source_text *t, uint32_t line);

#endif
