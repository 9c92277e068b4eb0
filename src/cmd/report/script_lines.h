/* SPDX-License-Identifier: MIT */
/* What scripts printed and counted beside the recording (records 0x56), in order of time. */
#ifndef WEIR_CMD_REPORT_SCRIPT_LINES_H
#define WEIR_CMD_REPORT_SCRIPT_LINES_H

#include "base/mem.h"
#include "cmd/report/report.h"

/* A line or, at the end, a map; texts are borrowed from the trace. */
struct script_line {
	bool is_map;
	uint64_t time_ns; /* since the trace began */
	uint64_t pid, tid, clause;
	const char *text;	 /* ends in a newline, as a rule */
	const char *name, *json; /* of maps */
};

struct script_lines {
	struct script_line *v;
	size_t n, cap;
};

/* Those that the report's filter lets through; vec_release releases them. Empty when no script
 * ran. */
int script_lines_read(struct script_lines *lines, const struct report *report, struct err *err);

/* Its text without the newline at its end; to be freed. */
char *script_line_text(const struct script_line *line);

#endif
