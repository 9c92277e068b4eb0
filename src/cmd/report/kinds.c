/* SPDX-License-Identifier: MIT */
/* The kinds of report: the one visible list. */
#include <string.h>

#include "cmd/report/report.h"

const struct report_kind report_kinds[] = {
	{.name = "summary",
		.summary = "what ran, where the time went, what was lost, what to try next",
		.text = summary_text,
		.json = summary_json},
	{.name = "flat",
		.summary = "one row for each function",
		.columns = flat_columns,
		.text = flat_text,
		.json = flat_json},
	{.name = "tree",
		.summary = "the call tree",
		.columns = tree_columns,
		.text = tree_text,
		.json = tree_json},
	{.name = "arcs",
		.summary = "callers and callees of each function",
		.columns = flat_columns,
		.text = arcs_text,
		.json = arcs_json},
	{.name = "samples",
		.summary = "the stack of each sample in order of time",
		.text = samples_text,
		.json = samples_json},
	{.name = "threads",
		.summary = "one row for each thread",
		.columns = threads_columns,
		.text = threads_text,
		.json = threads_json},
	{.name = "modules",
		.summary = "the images that were mapped",
		.text = modules_text,
		.json = modules_json},
	{.name = "hooks",
		.summary =
			"the functions that were to be hooked, how, and how often they were called",
		.columns = hooks_columns,
		.text = hooks_text,
		.json = hooks_json},
	{.name = "probes",
		.summary = "what a script printed and counted beside the recording (--probe)",
		.text = probes_text,
		.json = probes_json},
	{.name = "loss",
		.summary = "what is missing from the trace, and why",
		.text = loss_text,
		.json = loss_json},
	{.name = "source",
		.summary = "a function line by line, with its blocks",
		.text = source_text,
		.json = source_json},
	{.name = "coverage",
		.summary = "functions, blocks and lines that were not executed",
		.text = coverage_text,
		.json = coverage_json},
	{.name = "steps",
		.summary = "the executed instructions in order",
		.text = steps_text,
		.json = steps_json,
		.by_steps = true},
	{.name = "branches",
		.summary = "which way branches went, and the targets of indirect ones",
		.columns = branches_columns,
		.text = branches_text,
		.json = branches_json,
		.by_steps = true},
	{.name = "mix",
		.summary = "what kinds of instruction were executed; the working set of code",
		.text = mix_text,
		.json = mix_json,
		.by_steps = true},
	{.name = NULL},
};

const struct report_kind *report_kind_find(const char *name)
{
	for (const struct report_kind *k = report_kinds; k->name; k++)
		if (!strcmp(k->name, name))
			return k;
	return NULL;
}

bool report_kind_sorts_by(const struct report_kind *kind, const char *column)
{
	for (const char *const *c = kind->columns; c && *c; c++)
		if (!strcmp(*c, column))
			return true;
	return false;
}
