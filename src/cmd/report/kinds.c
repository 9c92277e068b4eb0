/* SPDX-License-Identifier: MIT */
/* The kinds of report: the one visible list. */
#include <string.h>

#include "cmd/report/report.h"

/* Options of all kinds; of those that show a profile, and its tree alone; of those that walk steps. */
#define OF_ALL	   "json color plain catalog thread from to "
#define OF_PROFILE OF_ALL "metric cpu exe uncorrected "
#define OF_TREE	   OF_PROFILE "transform "
#define OF_STEPS   OF_ALL "filter limit at back "

const struct report_kind report_kinds[REPORT_N_KINDS] = {
	{"summary", OF_TREE "filter limit html", NULL, summary_report, false, true},
	{"flat", OF_TREE "filter limit sort human percent elapsed", QUERY_FUNCTION_COLUMNS,
		flat_report, false, false},
	{"tree", OF_TREE "filter limit sort human percent elapsed", QUERY_NODE_COLUMNS,
		tree_report, false, false},
	{"arcs", OF_TREE "filter limit sort human", QUERY_FUNCTION_COLUMNS, arcs_report, false,
		false},
	{"samples", OF_PROFILE "filter limit", NULL, samples_report, false, false},
	{"threads", OF_TREE "filter limit sort human", QUERY_THREAD_COLUMNS, threads_report,
		false, false},
	{"modules", OF_PROFILE "filter limit", NULL, modules_report, false, false},
	{"hooks", OF_PROFILE "filter limit sort", "function image method reason hits off",
		hooks_report, false, false},
	{"probes", OF_PROFILE "filter limit", NULL, probes_report, false, false},
	{"loss", OF_PROFILE, NULL, loss_report, false, true},
	{"source", OF_PROFILE "limit human blocks asm", NULL, source_report, false, false},
	{"coverage", OF_PROFILE "filter limit", NULL, coverage_report, false, false},
	{"steps", OF_STEPS "interleave fold syntax source", NULL, steps_report, true, false},
	{"branches", OF_STEPS "sort syntax returns",
		"executed taken not-taken unknown exceptions bias targets address symbol image",
		branches_report, true, false},
	{"mix", OF_STEPS, NULL, mix_report, true, false},
};

const struct report_kind *report_kind_find(const char *name)
{
	for (size_t i = 0; i < REPORT_N_KINDS; i++)
		if (!strcmp(report_kinds[i].name, name))
			return &report_kinds[i];
	return NULL;
}
