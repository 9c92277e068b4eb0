/* SPDX-License-Identifier: MIT */
#include "cmd/diff_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/word_list.h"

#define NOISE_PERCENT_MAX 1000.0

#define AT(member) offsetof(struct diff_arguments, member)
const struct option_spec diff_options[] = {
	{0, "by", OPTION_TEXT, "WHAT", "rows are of function (default), stack, line or image",
		AT(by)},
	{0, "cum", OPTION_FLAG, NULL, "with all that is called; else what each used itself",
		AT(question.with_callees)},
	{0, "per", OPTION_TEXT, "WHAT",
		"figures of a run (default), or per wall or cpu second, call, sample", AT(per)},
	{0, "noise", OPTION_DECIMAL, "PCT",
		"single runs: so much a function varies from run to run (20; kernel: 50)",
		AT(noise)},
	{0, "metric", OPTION_TEXT, "NAME", "what to compare: cpu, samples, calls, ...",
		AT(build.metric)},
	{0, "thread", OPTION_TEXT, "ID|NAME", "only this thread: TID, PID_TID or its name",
		AT(build.thread)},
	{0, "map", OPTION_TEXT, "FILE", "functions with another name now: lines OLD NEW",
		AT(map_path)},
	{0, "any-program", OPTION_FLAG, NULL, "compares runs of different programs, too",
		AT(question.is_of_any_program)},
	{0, "fail-on", OPTION_TEXTS, "LIMIT",
		"exit status 4 when surely over it: +5%, NAME:+5%, total:+2%; each one counts",
		AT(fail_on)},
	{0, "callers", OPTION_FLAG, NULL, "more and dearer calls by caller, too",
		AT(report.callers)},
	{0, "sort", OPTION_TEXT, "COLUMN", "order of the rows", AT(report.query.sort)},
	{0, "limit", OPTION_NUMBER, "N", "at most N rows", AT(report.query.limit)},
	{0, "filter", OPTION_TEXT, "REGEX", "only rows whose name matches", AT(filter)},
	{0, "json", OPTION_FLAG, NULL, "one JSON object instead of text", AT(report.json)},
	{0, "folded", OPTION_FLAG, NULL, "stacks with both figures, for flame graphs: STACK A B",
		AT(is_folded)},
	{0, "html", OPTION_TEXT, "FILE",
		"both traces in the page of weir view as one file ('-': standard output)",
		AT(html)},
	OPEN_TRACE_OPTIONS(struct diff_arguments, open),
	{0, "human", OPTION_FLAG, NULL, "1.20 ms instead of plain numbers", AT(report.human)},
	{0, "color", OPTION_FLAG, NULL, "colours, as for a terminal", AT(report.color)},
	{0, "plain", OPTION_FLAG, NULL, "on a terminal the same as in a pipe", AT(report.plain)},
	{0},
};

static int choose_words(const struct command *command, struct diff_arguments *a)
{
	static const char *const bys[] = {"function", "stack", "line", "image", NULL};
	static const char *const pers[] = {"run", "wall", "cpu", "call", "sample", NULL};
	size_t by = DIFF_BY_FUNCTION, per = DIFF_PER_RUN;

	if (a->by && options_choose(command, "--by", a->by, bys, &by))
		return STATUS_USAGE;
	if (a->per && options_choose(command, "--per", a->per, pers, &per))
		return STATUS_USAGE;
	if (a->is_folded && a->by && by != DIFF_BY_STACK)
		return options_usage_error(
			command, "--folded has stacks, not a row for each %s", a->by);
	if (per == DIFF_PER_CALL && by != DIFF_BY_FUNCTION)
		return options_usage_error(
			command, "--per call: functions are called (--by function)");
	if (a->is_folded && a->question.with_callees)
		return options_usage_error(
			command, "--folded has what each stack used itself, not --cum");
	for (size_t i = 0; per == DIFF_PER_CALL && i < a->fail_on.n; i++)
		if (a->limits[i].name && a->limits[i].name_n == 5 &&
			!memcmp(a->limits[i].name, "total", 5))
			return options_usage_error(
				command, "--fail-on: there is no total of figures per call");
	a->question.by = a->is_folded ? DIFF_BY_STACK : (enum diff_by)by;
	a->question.per = (enum diff_per)per;
	return 0;
}

static int check_numbers(const struct command *command, struct diff_arguments *a)
{
	const char *sort = a->report.query.sort;

	if (a->noise > NOISE_PERCENT_MAX)
		return options_usage_error(
			command, "--noise: must be at most %.0f percent", NOISE_PERCENT_MAX);
	if (a->noise >= 0 && a->n_runs[RUNS_BEFORE] + a->n_runs[RUNS_AFTER] > N_RUN_SIDES)
		return options_usage_error(
			command, "--noise is for one run a side: several runs show theirs");
	a->question.noise = a->noise / 100;
	if (sort && !word_list_has(RUN_DIFF_COLUMNS, sort))
		return options_usage_error(command, "--sort: there is no column '%s' (but %s)",
			sort, RUN_DIFF_COLUMNS);
	if (a->report.json + a->is_folded + (a->html != NULL) > 1)
		return options_usage_error(
			command, "--json, --folded and --html: only one of them");
	if (a->html && (a->filter || a->report.query.limit || a->fail_on.n || a->map_path))
		return options_usage_error(command,
			"--html has all of both traces in it: the page itself filters and compares");
	return 0;
}

static int read_limits(const struct command *command, struct diff_arguments *a)
{
	struct err err = {0};

	a->limits = mem_calloc(a->fail_on.n + 1, sizeof(*a->limits));
	for (size_t i = 0; i < a->fail_on.n; i++)
		if (fail_limit_parse(&a->limits[i], a->fail_on.v[i], &err) < 0)
			return options_usage_error(command, "--fail-on: %s", err.text);
	return 0;
}

static int read_filter(const struct command *command, struct diff_arguments *a)
{
	if (!a->filter)
		return 0;
	if (regcomp(&a->regex, a->filter, REG_EXTENDED | REG_NOSUB))
		return options_usage_error(
			command, "--filter: '%s' is not a regular expression", a->filter);
	a->has_regex = true;
	a->report.query.filter = &a->regex;
	return 0;
}

static int read_map(struct diff_arguments *a)
{
	struct file_map file = {0};
	struct err err = {0};
	int rc;

	if (!a->map_path)
		return 0;
	rc = file_map_open(&file, a->map_path, &err);
	if (rc == 0)
		rc = name_map_parse(&a->map, file.bytes, a->map_path, &err);
	file_map_release(&file);
	a->question.map = a->map;
	return rc < 0 ? command_fail(&err) : 0;
}

/* "A B", or any number of both with a "--" between. */
static int take_runs(
	const struct command *command, struct diff_arguments *a, int n, char **runs, int n_behind)
{
	if (n_behind < 0 && n != 2)
		return options_usage_error(
			command, n < 2 ? "needs two traces"
				       : "more than two traces need a -- between both sides");
	if (n_behind < 0)
		n_behind = 1;
	if (n_behind == 0 || n_behind >= n)
		return options_usage_error(command, "needs a trace on both sides of the --");
	a->n_runs[RUNS_BEFORE] = (size_t)(n - n_behind);
	a->n_runs[RUNS_AFTER] = (size_t)n_behind;
	a->runs[RUNS_BEFORE] = (const char *const *)runs;
	a->runs[RUNS_AFTER] = (const char *const *)runs + (n - n_behind);
	if (a->html && n != 2)
		return options_usage_error(command, "--html: the page compares two traces");
	return 0;
}

/* How many words are behind the first "--"; -1: there is none. */
static int words_behind(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--"))
			return argc - i - 1;
	return -1;
}

bool diff_arguments_read(
	const struct command *command, struct diff_arguments *a, int argc, char **argv, int *status)
{
	int n_behind = words_behind(argc, argv);

	a->noise = -1;
	a->build = BUILD_OPTIONS_ALL;
	if (!options_begin(command, a, &argc, &argv, status))
		return false;
	*status = take_runs(command, a, argc, argv, n_behind);
	if (!*status)
		*status = read_limits(command, a);
	if (!*status)
		*status = choose_words(command, a);
	if (!*status)
		*status = check_numbers(command, a);
	if (!*status)
		*status = read_filter(command, a);
	if (!*status)
		*status = read_map(a);
	return !*status;
}

void diff_arguments_release(struct diff_arguments *a)
{
	if (a->has_regex)
		regfree(&a->regex);
	name_map_free(a->map);
	free(a->limits);
	free(a->fail_on.v);
}
