/* SPDX-License-Identifier: MIT */
/* What is said to weir diff: options, the runs of both sides, the map of names. */
#ifndef WEIR_CMD_DIFF_OPTIONS_H
#define WEIR_CMD_DIFF_OPTIONS_H

#include <regex.h>

#include "base/file.h"
#include "cmd/open_trace.h"
#include "cmd/report/diff_report.h"
#include "query/diff/fail_limit.h"
#include "query/diff/run_diff.h"

struct diff_arguments {
	struct diff_report_options report;
	struct run_diff_question question;
	struct build_options build;
	struct open_trace_options open;
	const char *by, *per, *filter, *map_path, *html;
	double noise; /* percent; negative: not said */
	bool is_folded;
	struct option_texts fail_on;
	/* Made of these: */
	struct fail_limit *limits; /* fail_on.n */
	struct name_map *map;
	regex_t regex;
	bool has_regex;
	const char *const *runs[N_RUN_SIDES];
	size_t n_runs[N_RUN_SIDES];
};

extern const struct option_spec diff_options[];

/* False when nothing is left to do but to return *status; the arguments are to be released in any case. */
bool diff_arguments_read(const struct command *command, struct diff_arguments *a, int argc,
	char **argv, int *status);
void diff_arguments_release(struct diff_arguments *a);

#endif
