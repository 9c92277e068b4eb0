/* SPDX-License-Identifier: MIT */
/* weir diff: the runs of both sides, one after the other, the model, a renderer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/commands.h"
#include "cmd/diff_options.h"
#include "cmd/report/report.h"
#include "cmd/html_file.h"

#define STATUS_OVER_LIMIT 4

/* The runs of a trace are read and closed one by one: what is kept of them are rows. */
static int add_run(struct run_diff *d, struct diff_arguments *a, enum run_side side,
	const char *path, bool *has_losses, struct err *err)
{
	struct build_options build = a->build;
	struct trace_reader *reader;
	struct profile *profile;
	int rc = open_trace(&reader, path, &a->open, err);

	if (rc < 0)
		return rc;
	if (!build.metric)
		build.metric = run_diff_metric(d);
	rc = profile_build(&profile, reader, &build, err);
	if (rc == 0) {
		rc = run_diff_add(d, side, profile, err);
		if (rc == 0 && loss_is_real(&profile->loss)) {
			*has_losses = true;
			loss_say(path, &profile->loss);
		}
		profile_free(profile);
	}
	trace_reader_close(reader);
	return rc;
}

static int add_runs(struct run_diff *d, struct diff_arguments *a, bool *has_losses, struct err *err)
{
	int rc = 0;

	for (int side = 0; side < N_RUN_SIDES; side++)
		for (size_t i = 0; rc == 0 && i < a->n_runs[side]; i++)
			rc = add_run(d, a, (enum run_side)side, a->runs[side][i], has_losses, err);
	return rc;
}

/* 1 when a row is over a limit, 0 when none is; what is over is said. */
static int check_limits(const struct run_diff *d, const struct diff_arguments *a, struct err *err)
{
	const struct run_diff_row *all;
	struct buf name = {0};
	int over = 0, rc = 0;

	run_diff_rows(d, &all);
	for (size_t i = 0; rc == 0 && i < a->fail_on.n; i++) {
		size_t *rows = NULL, n = 0;

		rc = fail_limit_find(&a->limits[i], d, &rows, &n, err);
		for (size_t j = 0; j < n; j++)
			fprintf(stderr, "weir: %s is surely over %s\n",
				run_diff_name(d,
					rows[j] == SIZE_MAX ? run_diff_total(d) : &all[rows[j]],
					&name),
				a->fail_on.v[i]);
		over |= rc == 0 && n > 0;
		free(rows);
	}
	buf_release(&name);
	return rc < 0 ? rc : over;
}

static void say_notes(const struct run_diff *d)
{
	for (size_t i = 0; i < run_diff_n_notes(d); i++)
		fprintf(stderr, "weir: note: %s\n", run_diff_note(d, i));
}

static int write_diff(const struct run_diff *d, struct diff_arguments *a)
{
	const struct terminal terminal = terminal_of(stdout);

	if (terminal.is_there && !a->report.json && !a->report.plain && !a->is_folded) {
		a->report.color |= terminal.has_color;
		a->report.human = true;
	}
	if (a->is_folded)
		diff_report_folded(d, &a->report.query, stdout);
	else
		diff_report(d, &a->report, stdout);
	return 0;
}

/* The exit status, or a failure. */
static int compare(struct diff_arguments *a, struct err *err)
{
	struct run_diff *d = run_diff_new(&a->question);
	bool has_losses = false;
	int over = 0, rc = add_runs(d, a, &has_losses, err);

	if (rc == 0) {
		run_diff_finish(d);
		say_notes(d);
		rc = over = check_limits(d, a, err);
	}
	if (rc >= 0)
		rc = write_diff(d, a);
	run_diff_free(d);
	return rc < 0 ? rc : over ? STATUS_OVER_LIMIT : has_losses ? STATUS_LOSSES : STATUS_DONE;
}

static int write_page(struct diff_arguments *a, struct err *err)
{
	int rc;

	a->open.steps = OPEN_STEPS_TOLD;
	rc = html_file_write(
		a->html, a->runs[RUNS_BEFORE][0], a->runs[RUNS_AFTER][0], &a->open, err);
	return rc < 0 ? rc : rc ? STATUS_LOSSES : STATUS_DONE;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct diff_arguments a = {0};
	struct err err = {0};
	int status;

	if (diff_arguments_read(command, &a, argc, argv, &status)) {
		a.open.steps = a.question.by == DIFF_BY_LINE ? OPEN_STEPS_COUNTS : OPEN_STEPS_TREES;
		status = a.html ? write_page(&a, &err) : compare(&a, &err);
		if (status < 0)
			status = command_fail(&err);
	}
	diff_arguments_release(&a);
	return status;
}

const struct command command_diff = {
	.name = "diff",
	.synopsis = "A B [OPTIONS]\n[OPTIONS] A... -- B...",
	.summary = "what differs between two traces or sides of runs, and how sure that is",
	.options = diff_options,
	.details =
		"A is before, B after: traces, count files, or files of other tools; several runs of a side\n"
		"show how much runs differ, which one run does not. Each row has what it used before and after,\n"
		"the difference with its 95 % interval, and a verdict: more, less, same, or cannot tell, with\n"
		"what would tell. Exact counts have no interval.\n"
		"Columns: " RUN_DIFF_COLUMNS ".\n"
		"Exit status 3: done, but data was lost; 4: something is over a limit of --fail-on.\n",
	.run = run,
};
