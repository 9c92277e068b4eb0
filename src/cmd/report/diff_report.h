/* SPDX-License-Identifier: MIT */
/* What weir diff prints: a table or a JSON object of kind "diff", or folded stacks with two columns. */
#ifndef WEIR_CMD_REPORT_DIFF_REPORT_H
#define WEIR_CMD_REPORT_DIFF_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "query/diff/run_diff.h"

struct diff_report_options {
	bool json, human, color, plain;
	bool callers; /* more and dearer calls by caller, too */
	struct query query;
};

void diff_report(const struct run_diff *d, const struct diff_report_options *options, FILE *out);
/* STACK BEFORE AFTER, with means of runs as whole numbers. */
void diff_report_folded(const struct run_diff *d, const struct query *query, FILE *out);

#endif
