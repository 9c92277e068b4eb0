/* SPDX-License-Identifier: MIT */
/* weir report: options, the trace, the profile, a renderer. */
#include <regex.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest_names.h"
#include "base/output.h"
#include "base/word_list.h"
#include "cmd/commands.h"
#include "cmd/open_trace.h"
#include "cmd/report/report.h"
#include "cmd/html_file.h"
#include "query/transform.h"
#include "steps/read/steps.h"

struct report_arguments {
	struct report_options report;
	struct build_options build;
	struct open_trace_options open;
	const char *filter, *from, *to, *transform, *html;
	struct transforms *transforms; /* NULL: none */
};

#define AT(member) offsetof(struct report_arguments, member)

/* Which kinds know which of them: kinds.c. */
static const struct option_spec report_option_table[] = {
	{0, "json", OPTION_FLAG, NULL, "one JSON object instead of text", AT(report.json)},
	{0, "html", OPTION_TEXT, "FILE", "the page of weir view as one file ('-': standard output)",
		AT(html)},
	{0, "sort", OPTION_TEXT, "COLUMN", "order of the rows (tree: of siblings)",
		AT(report.query.sort)},
	{0, "limit", OPTION_NUMBER, "N", "at most N rows", AT(report.query.limit)},
	{0, "filter", OPTION_TEXT, "REGEX", "only names that match (tree: and their callers)",
		AT(filter)},
	{0, "metric", OPTION_TEXT, "NAME", "what to add up: cpu, samples, calls, ...",
		AT(build.metric)},
	{0, "thread", OPTION_TEXT, "ID|NAME", "only this thread: TID, PID_TID or its name",
		AT(build.thread)},
	{0, "from", OPTION_TEXT, "T", "only from T after the start on (ns, or 1.5s, 20ms, 7us)",
		AT(from)},
	{0, "to", OPTION_TEXT, "T", "only before T after the start", AT(to)},
	{0, "transform", OPTION_TEXT, "LIST",
		"the tree without some of it: focus=F;fold=F;drop=F;merge-recursion",
		AT(transform)},
	OPEN_TRACE_OPTIONS(struct report_arguments, open),
	{0, "human", OPTION_FLAG, NULL, "1.20 ms instead of plain integers", AT(report.human)},
	{0, "percent", OPTION_FLAG, NULL, "further columns with shares of the total",
		AT(report.percent)},
	{0, "elapsed", OPTION_FLAG, NULL, "a further column: all time between entry and exit",
		AT(report.elapsed)},
	{0, "uncorrected", OPTION_FLAG, NULL, "times as recorded: with what hooks cost",
		AT(build.keeps_cost)},
	{0, "blocks", OPTION_FLAG, NULL, "source: each block of a line too", AT(report.blocks)},
	{0, "asm", OPTION_FLAG, NULL, "source: the instructions of each block too",
		AT(report.assembly)},
	{0, "at", OPTION_NUMBER, "N", "steps: begin with step N of each thread", AT(report.at)},
	{0, "back", OPTION_NUMBER, "N", "steps: and with so many in front of it", AT(report.back)},
	{0, "interleave", OPTION_FLAG, NULL, "steps: all threads by time, not one by one",
		AT(report.interleave)},
	{0, "fold", OPTION_FLAG, NULL, "steps: loops once, with the number of their rounds",
		AT(report.fold)},
	{0, "syntax", OPTION_TEXT, "NAME", "steps: of instructions, att (default) or intel",
		AT(report.syntax)},
	{0, "source", OPTION_FLAG, NULL, "steps: the text of source lines too",
		AT(report.source_lines)},
	{0, "returns", OPTION_FLAG, NULL, "branches: where returns went, too", AT(report.returns)},
	{0, "color", OPTION_FLAG, NULL, "colours, as for a terminal", AT(report.color)},
	{0, "plain", OPTION_FLAG, NULL, "on a terminal the same as in a pipe", AT(report.plain)},
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

static bool knows_options(
	const struct command *command, uint64_t given, const struct report_kind *kind)
{
	struct option_user users[REPORT_N_KINDS];

	for (size_t i = 0; i < REPORT_N_KINDS; i++)
		users[i] = (struct option_user){report_kinds[i].name, report_kinds[i].options};
	return options_choose_user(
		       command, given, kind->name, "kind of report", users, REPORT_N_KINDS) >= 0;
}

/* 0, or STATUS_USAGE with its sentence said. */
static int check_arguments(const struct command *command, struct report_arguments *a,
	const struct report_kind *kind, uint64_t given)
{
	const char *sort = a->report.query.sort;

	if (a->html && (a->transform || a->filter || a->report.query.limit || a->report.json))
		return options_usage_error(command,
			"--html has all of the trace in it: the page itself filters and transforms");

	if (a->from && !option_parse_time(a->from, &a->build.from))
		return options_usage_error(command, "--from: '%s' is not a time", a->from);
	if (a->to && !option_parse_time(a->to, &a->build.to))
		return options_usage_error(command, "--to: '%s' is not a time", a->to);
	if (sort && !kind->columns)
		return options_usage_error(command, "%s cannot be sorted", kind->name);
	if (sort && !word_list_has(kind->columns, sort))
		return options_usage_error(command, "--sort: %s has no column '%s' (but %s)",
			kind->name, sort, kind->columns);
	return knows_options(command, given, kind) ? check_step_arguments(command, a)
						   : STATUS_USAGE;
}

static int render(const struct report_kind *kind, const struct report *report, struct err *err)
{
	int rc = kind->render(report, err);

	if (rc < 0 || !loss_is_real(report->loss))
		return rc;
	if (!report->options->json && !kind->shows_loss) {
		fflush(report->out);
		loss_say(trace_reader_name(report->reader), report->loss);
	}
	return STATUS_LOSSES;
}

static int render_profile(const struct report_kind *kind, struct report *report,
	const struct transforms *transforms, struct err *err)
{
	struct profile *profile;
	int rc = profile_build(&profile, report->reader, report->selection, err);

	if (rc < 0)
		return rc;
	report->profile = profile;
	report->loss = &profile->loss;
	rc = transforms_apply(transforms, profile, err);
	if (rc >= 0)
		rc = render(kind, report, err);
	profile_free(profile);
	return rc;
}

static int render_steps(const struct report_kind *kind, struct report *report, struct err *err)
{
	struct loss loss = {0};
	struct steps *steps;
	int rc;

	if (!trace_reader_has_steps(report->reader))
		return err_set(err, ERR_NOT_FOUND,
			"'%s': has no steps (nothing of that kind was recorded; weir steps does)",
			trace_reader_name(report->reader));
	steps = steps_open(report->reader);
	report->steps = steps;
	report->loss = &loss;
	rc = render(kind, report, err);
	steps_close(steps);
	loss_release(&loss);
	return rc;
}

/* The exit status, or a failure. */
static int open_and_render(const struct report_arguments *a, const struct report_kind *kind,
	const char *path, FILE *out, struct err *err)
{
	struct report report = {.options = &a->report, .selection = &a->build, .out = out};
	struct trace_reader *reader;
	int rc = open_trace(&reader, path, &a->open, err);

	if (rc < 0)
		return rc;
	report.reader = reader;
	rc = kind->by_steps ? render_steps(kind, &report, err)
			    : render_profile(kind, &report, a->transforms, err);
	trace_reader_close(reader);
	return rc;
}

/* What people like better than what programs read. */
static void suit_terminal(struct report_options *o, const struct report_kind *kind, FILE *out)
{
	struct terminal terminal = terminal_of(out);

	if (!terminal.is_there || o->json || o->plain)
		return;
	o->terminal = terminal;
	o->color |= terminal.has_color;
	o->human |= word_list_has(kind->options, "human");
	o->percent |= word_list_has(kind->options, "percent");
}

int report_summary(const char *trace_path, FILE *out, struct err *err)
{
	struct report_arguments a = {.build = BUILD_OPTIONS_ALL};
	const struct report_kind *kind = report_kind_find("summary");
	int rc;

	suit_terminal(&a.report, kind, out);
	rc = open_and_render(&a, kind, trace_path, out, err);
	return rc < 0 ? rc : 0;
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

/* Takes the kind, and the function that the source is wanted of, from the operands. */
static const struct report_kind *take_kind(struct report_arguments *a, int *argc, char ***argv)
{
	const struct report_kind *kind = report_kind_find(*argc > 0 ? **argv : "summary");

	if (kind && *argc > 0)
		(*argc)--, (*argv)++;
	if (!kind)
		kind = report_kind_find("summary"); /* the operand is a trace */
	if (!strcmp(kind->name, "source") && *argc > 0) {
		a->report.function = **argv;
		(*argc)--, (*argv)++;
	}
	return kind;
}

/* "; is it 'flat'?" */
static const char *near_kind(const char *name, char text[OPTIONS_IS_IT_BYTES])
{
	struct nearest_names near = {.wanted = name};

	for (size_t i = 0; i < REPORT_N_KINDS; i++)
		nearest_names_add(&near, report_kinds[i].name);
	return options_is_it(&near, text);
}

/* What is left of the operands is a trace, or none. */
static int check_operands(
	const struct command *command, const struct report_arguments *a, int argc, char **argv)
{
	const char *function = a->report.function;
	char is_it[OPTIONS_IS_IT_BYTES];

	if (argc > 1 && report_kind_find(argv[0]))
		return options_usage_error(command,
			"two kinds of report are asked for, '%s' and '%s'", argv[0], argv[1]);
	if (argc > 2 && a->html)
		return options_usage_error(command, "--html: more than two traces");
	if (argc > 1 && !a->html)
		return options_usage_error(command,
			"'%s' is not a kind of report%s (nor can two traces be reported: '%s')",
			argv[0], near_kind(argv[0], is_it), argv[1]);
	/* A name that is near a kind is one when no such file is there. */
	if (argc == 1 && access(argv[0], F_OK) < 0 && *near_kind(argv[0], is_it))
		return options_usage_error(command,
			"'%s' is not a kind of report, nor is there a trace of that name%s",
			argv[0], is_it);
	if (function && output_place(function) == OUTPUT_PLACE_OURS &&
		(!argc || access(argv[0], F_OK) < 0))
		return options_usage_error(command,
			"source needs a function, and '%s' is a trace: 'weir report source %s %s'",
			function, argc ? argv[0] : "FUNCTION", function);
	return STATUS_DONE;
}

/* What the filter and the transforms are made of is looked at last, since it has to be given back. */
static int show(const struct command *command, struct report_arguments *a,
	const struct report_kind *kind, const char *trace)
{
	struct err err = {0};
	regex_t filter;
	int status;

	if (a->filter && regcomp(&filter, a->filter, REG_EXTENDED | REG_NOSUB))
		return options_usage_error(
			command, "--filter: '%s' is not a regular expression", a->filter);
	a->report.query.filter = a->filter ? &filter : NULL;
	if (a->transform && transforms_parse(&a->transforms, a->transform, &err) < 0) {
		status = options_usage_error(command, "--transform: %s", err.text);
	} else {
		suit_terminal(&a->report, kind, stdout);
		status = open_and_render(a, kind, trace, stdout, &err);
		status = status < 0 ? command_fail(&err) : status;
	}
	if (a->filter)
		regfree(&filter);
	transforms_free(a->transforms);
	return status;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct report_arguments a = {.build = BUILD_OPTIONS_ALL};
	const struct report_kind *kind;
	struct err err = {0};
	uint64_t given;
	int status;

	if (!options_begin_given(command, &a, &argc, &argv, &status, &given))
		return status;
	kind = take_kind(&a, &argc, &argv);
	if (!strcmp(kind->name, "source") && !a.report.function)
		return options_usage_error(
			command, "source needs a function: 'weir report source FUNCTION [TRACE]'");
	status = check_operands(command, &a, argc, argv);
	if (status)
		return status;
	a.report.exe = a.open.counts.exe;
	a.open.steps = steps_for(kind);
	status = check_arguments(command, &a, kind, given);
	if (status)
		return status;
	if (a.html) {
		a.open.steps = OPEN_STEPS_TOLD;
		status = html_file_write(a.html, argc > 1 ? argv[0] : NULL,
			argc > 0 ? argv[argc - 1] : "trace.weir", &a.open, &err);
		return status < 0 ? command_fail(&err) : status ? STATUS_LOSSES : STATUS_DONE;
	}
	return show(command, &a, kind, argc > 0 ? argv[0] : "trace.weir");
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
		"TRACE is trace.weir unless given, '-' is standard input.\n"
		"Columns for --sort: calls, base, cum, cum2, elapsed, min, max, samples, name, image\n"
		"(tree: calls, base, cum, elapsed, name; threads: base, samples, events,\n"
		"switches, pid, tid, name; hooks: function, image, method, reason, hits, off;\n"
		"branches: executed, taken, not-taken, unknown, exceptions, bias, targets,\n"
		"address, symbol, image).\n"
		"Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but data was lost.\n",
	.run = run,
};
