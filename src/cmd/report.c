/* SPDX-License-Identifier: MIT */
/* weir report: options, the trace, the profile, a renderer. */
#include <regex.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/commands.h"
#include "cmd/open_trace.h"
#include "cmd/report/report.h"
#include "steps/read/steps.h"

struct report_arguments {
	struct report_options report;
	struct build_options build;
	struct open_trace_options open;
	const char *filter, *from, *to;
};

static const struct option_spec report_option_table[] = {
	{0, "json", OPTION_FLAG, NULL, "one JSON object instead of text",
		offsetof(struct report_arguments, report.json)},
	{0, "sort", OPTION_TEXT, "COLUMN", "order of the rows (tree: of siblings)",
		offsetof(struct report_arguments, report.sort)},
	{0, "limit", OPTION_NUMBER, "N", "at most N rows",
		offsetof(struct report_arguments, report.limit)},
	{0, "filter", OPTION_TEXT, "REGEX", "only names that match (tree: and their callers)",
		offsetof(struct report_arguments, filter)},
	{0, "metric", OPTION_TEXT, "NAME", "what to add up: cpu, samples, calls, ...",
		offsetof(struct report_arguments, build.metric)},
	{0, "thread", OPTION_TEXT, "ID|NAME", "only this thread: TID, PID_TID or its name",
		offsetof(struct report_arguments, build.thread)},
	{0, "from", OPTION_TEXT, "T", "only from T after the start on (ns, or 1.5s, 20ms, 7us)",
		offsetof(struct report_arguments, from)},
	{0, "to", OPTION_TEXT, "T", "only before T after the start",
		offsetof(struct report_arguments, to)},
	{0, "catalog", OPTION_TEXT, "FILE", "symbols from this merged symbol file first",
		offsetof(struct report_arguments, open.catalog)},
	{0, "cpu", OPTION_TEXT, "NAME", "counts: cycles are those of this processor",
		offsetof(struct report_arguments, open.counts.cpu)},
	{0, "exe", OPTION_TEXT, "FILE", "counts: the program, when it is elsewhere now",
		offsetof(struct report_arguments, open.counts.exe)},
	{0, "human", OPTION_FLAG, NULL, "1.20 ms instead of plain integers",
		offsetof(struct report_arguments, report.human)},
	{0, "percent", OPTION_FLAG, NULL, "further columns with shares of the total",
		offsetof(struct report_arguments, report.percent)},
	{0, "elapsed", OPTION_FLAG, NULL, "a further column: all time between entry and exit",
		offsetof(struct report_arguments, report.elapsed)},
	{0, "blocks", OPTION_FLAG, NULL, "source: each block of a line too",
		offsetof(struct report_arguments, report.blocks)},
	{0, "asm", OPTION_FLAG, NULL, "source: the instructions of each block too",
		offsetof(struct report_arguments, report.assembly)},
	{0, "at", OPTION_NUMBER, "N", "steps: begin with step N of each thread",
		offsetof(struct report_arguments, report.at)},
	{0, "back", OPTION_NUMBER, "N", "steps: and with so many in front of it",
		offsetof(struct report_arguments, report.back)},
	{0, "interleave", OPTION_FLAG, NULL, "steps: all threads by time, not one by one",
		offsetof(struct report_arguments, report.interleave)},
	{0, "fold", OPTION_FLAG, NULL, "steps: loops once, with the number of their rounds",
		offsetof(struct report_arguments, report.fold)},
	{0, "syntax", OPTION_TEXT, "NAME", "steps: of instructions, att (default) or intel",
		offsetof(struct report_arguments, report.syntax)},
	{0, "source", OPTION_FLAG, NULL, "steps: the text of source lines too",
		offsetof(struct report_arguments, report.source_lines)},
	{0, "returns", OPTION_FLAG, NULL, "branches: where returns went, too",
		offsetof(struct report_arguments, report.returns)},
	{0, "color", OPTION_FLAG, NULL, "colours, as for a terminal",
		offsetof(struct report_arguments, report.color)},
	{0},
};

static int check_step_arguments(const struct command *command, const struct report_arguments *a)
{
	const char *syntax = a->report.syntax;

	if (syntax && strcmp(syntax, "att") != 0 && strcmp(syntax, "intel") != 0)
		return options_usage_error(command, "--syntax: '%s' is not att or intel", syntax);
	if (a->report.at && a->report.interleave)
		return options_usage_error(command,
			"--at counts the steps of a thread; with --interleave, --from says "
			"where to begin");
	if (a->report.at && a->from)
		return options_usage_error(command, "--at and --from both say where to begin");
	return 0;
}

/* 0, or STATUS_USAGE with its sentence said. */
static int check_arguments(
	const struct command *command, struct report_arguments *a, const struct report_kind *kind)
{
	if (a->from && !option_parse_time(a->from, &a->build.from))
		return options_usage_error(command, "--from: '%s' is not a time", a->from);
	if (a->to && !option_parse_time(a->to, &a->build.to))
		return options_usage_error(command, "--to: '%s' is not a time", a->to);
	if (a->report.sort && !kind->columns)
		return options_usage_error(command, "%s cannot be sorted", kind->name);
	if (a->report.sort && !report_kind_sorts_by(kind, a->report.sort))
		return options_usage_error(
			command, "--sort: %s has no column '%s'", kind->name, a->report.sort);
	return check_step_arguments(command, a);
}

static int render(const struct report_arguments *a, const struct report_kind *kind,
	const struct trace_reader *reader)
{
	struct report report = {.reader = reader, .options = &a->report, .out = stdout};
	struct profile *profile;
	struct err err = {0};
	int rc, status;

	if (profile_build(&profile, reader, &a->build, &err) < 0)
		return command_fail(&err);
	report.profile = profile;
	rc = a->report.json ? kind->json(&report, &err) : kind->text(&report, &err);
	if (rc < 0)
		status = command_fail(&err);
	else
		status = loss_is_real(&profile->loss) ? STATUS_LOSSES : STATUS_DONE;
	profile_free(profile);
	return status;
}

/* The same for kinds that walk steps. */
static int render_steps(const struct report_arguments *a, const struct report_kind *kind,
	const struct trace_reader *reader)
{
	struct loss loss = {0};
	struct report report = {.reader = reader,
		.options = &a->report,
		.out = stdout,
		.selection = &a->build,
		.loss = &loss};
	struct err err = {0};
	struct steps *steps;
	int rc, status;

	if (!steps_are_in(reader)) {
		err_set(&err, ERR_NOT_FOUND,
			"'%s': has no steps (nothing of that kind was recorded; weir steps does)",
			trace_reader_name(reader));
		return command_fail(&err);
	}
	if (steps_open(&steps, reader, &err) < 0)
		return command_fail(&err);
	report.steps = steps;
	rc = a->report.json ? kind->json(&report, &err) : kind->text(&report, &err);
	if (rc < 0)
		status = command_fail(&err);
	else
		status = loss_is_real(&loss) ? STATUS_LOSSES : STATUS_DONE;
	steps_close(steps);
	loss_release(&loss);
	return status;
}

static int open_and_render(
	const struct report_arguments *a, const struct report_kind *kind, const char *path)
{
	struct trace_reader *reader;
	struct err err = {0};
	int status;

	if (open_trace(&reader, path, &a->open, &err) < 0)
		return command_fail(&err);
	status = kind->by_steps ? render_steps(a, kind, reader) : render(a, kind, reader);
	trace_reader_close(reader);
	return status;
}

/* What a report needs of executed instructions. */
static enum open_steps steps_for(const struct report_kind *kind)
{
	if (!strcmp(kind->name, "source"))
		return OPEN_STEPS_COUNTS;
	if (!strcmp(kind->name, "summary") || !strcmp(kind->name, "coverage"))
		return OPEN_STEPS_COVERAGE;
	return kind->by_steps ? OPEN_STEPS_PLAIN : OPEN_STEPS_TREES;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct report_arguments a = {.build = BUILD_OPTIONS_ALL};
	const struct report_kind *kind;
	const char *path = "trace.weir";
	regex_t filter;
	int status;

	if (!options_begin(command, &a, &argc, &argv, &status))
		return status;
	kind = report_kind_find(argc > 0 ? argv[0] : "summary");
	if (kind && argc > 0) {
		argc--;
		argv++;
	}
	if (!kind)
		kind = report_kind_find("summary"); /* the operand is a trace */
	if (!strcmp(kind->name, "source")) {
		if (argc < 1)
			return options_usage_error(command, "source needs a function");
		a.report.function = argv[0];
		argc--;
		argv++;
	}
	if (argc > 1)
		return options_usage_error(command,
			report_kind_find(argv[0])
				? "two kinds of report are asked for, '%s' and '%s'"
				: "'%s' is not a kind of report (nor can two traces be reported: '%s')",
			argv[0], argv[1]);
	if (argc > 0)
		path = argv[0];
	a.report.exe = a.open.counts.exe;
	a.open.steps = steps_for(kind);
	status = check_arguments(command, &a, kind);
	if (status)
		return status;
	if (!a.filter)
		return open_and_render(&a, kind, path);
	if (regcomp(&filter, a.filter, REG_EXTENDED | REG_NOSUB))
		return options_usage_error(
			command, "--filter: '%s' is not a regular expression", a.filter);
	a.report.filter = &filter;
	status = open_and_render(&a, kind, path);
	regfree(&filter);
	return status;
}

const struct command command_report = {
	.name = "report",
	.synopsis = "[KIND] [TRACE] [OPTIONS]",
	.summary = "answers from a trace: summary, flat, tree, arcs, ...",
	.options = report_option_table,
	.details =
		"KIND is one of\n"
		"  summary   what ran, where the time went, what was lost, what to try next (default)\n"
		"  flat      one row for each function\n"
		"  tree      the call tree\n"
		"  arcs      callers and callees of each function\n"
		"  samples   the stack of each sample in order of time\n"
		"  threads   one row for each thread\n"
		"  modules   the images that were mapped\n"
		"  hooks     the functions that were to be hooked, how, and how often they were called\n"
		"  probes    what a script printed and counted beside the recording (--probe)\n"
		"  loss      what is missing from the trace, and why\n"
		"  source    the function whose name follows, line by line, with its blocks\n"
		"  coverage  functions, blocks and lines that were not executed\n"
		"  steps     the executed instructions in order, with what happened between them\n"
		"  branches  which way branches went, and the targets of indirect ones\n"
		"  mix       what kinds of instruction were executed; the working set of code\n"
		"TRACE is trace.weir unless given. Columns for --sort: calls, base, cum, cum2, elapsed,\n"
		"min, max, samples, name, image (tree: calls, base, cum, elapsed, name; threads: base,\n"
		"samples, events, switches, pid, tid, name; hooks: function, image, method, reason,\n"
		"hits, off; branches: executed, taken, not-taken, unknown, exceptions, bias, targets,\n"
		"address, symbol, image).\n"
		"Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but data was lost.\n",
	.run = run,
};
