/* SPDX-License-Identifier: MIT */
#include "cmd/record_run.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/commands.h"

struct talk {
	const struct recorder_options *options;
	enum record_talk level;
	bool has_progress; /* a progress line stands on the terminal */
	void (*after)(const char *path);
	bool after_done;
};

static void clear_progress(struct talk *t)
{
	if (t->has_progress)
		fputs("\r\033[K", stderr);
	t->has_progress = false;
}

static void show_progress(void *ctx, const struct session_counts *c, double seconds)
{
	struct talk *t = ctx;

	fprintf(stderr, "\r\033[Kweir: %.1f s, %lu samples", seconds, c->n_samples);
	if (c->n_events)
		fprintf(stderr, ", %lu events", c->n_events);
	if (c->n_processes > 1)
		fprintf(stderr, ", %lu processes", c->n_processes);
	if (c->n_threads > 1)
		fprintf(stderr, ", %lu threads", c->n_threads);
	if (c->n_lost)
		fprintf(stderr, ", %lu lost", c->n_lost);
	t->has_progress = true;
}

static void show_note(void *ctx, const char *sentence)
{
	struct talk *t = ctx;

	if (t->level != RECORD_QUIET)
		fprintf(stderr, "weir: note: %s\n", sentence);
}

static void show_complaint(void *ctx, const char *sentence)
{
	struct talk *t = ctx;

	clear_progress(t);
	if (t->level != RECORD_QUIET || !t->options->command) /* whose status says nothing of it */
		fprintf(stderr, "weir: %s\n", sentence);
}

static void run_after(struct talk *t)
{
	clear_progress(t);
	if (t->after && !t->after_done)
		t->after(t->options->output);
	t->after_done = true;
}

static void finished_early(void *ctx)
{
	struct talk *t = ctx;

	run_after(t);
	if (t->level != RECORD_QUIET || !t->after)
		fprintf(stderr, "weir: '%s': the recording is complete; '%s' goes on running\n",
			t->options->output, t->options->command[0]);
}

static void show_result(struct talk *t, const struct recorder_result *r)
{
	if (t->level == RECORD_QUIET)
		return;
	fprintf(stderr, "weir: '%s': %lu samples", t->options->output, r->counts.n_samples);
	if (hooks_options_are_used(&t->options->functions) || t->options->allocations)
		fprintf(stderr, " and %lu events", r->counts.n_events);
	fprintf(stderr, " in %.2f s (%lu process%s, %lu thread%s), %lu bytes",
		(double)r->wall_ns / 1e9, r->counts.n_processes,
		r->counts.n_processes == 1 ? "" : "es", r->counts.n_threads,
		r->counts.n_threads == 1 ? "" : "s", r->trace_bytes);
	if (r->counts.n_lost)
		fprintf(stderr, ", %lu %s lost (the kernel's ring was full)", r->counts.n_lost,
			r->counts.lost_are_mixed ? "samples or kernel events" : "samples");
	if (r->counts.n_events_lost)
		fprintf(stderr, ", %lu events lost (weir report loss says why)",
			r->counts.n_events_lost);
	fputs("\n", stderr);
	if (t->level == RECORD_VERBOSE && r->counts.n_stacks)
		fprintf(stderr, "weir: %lu of %lu user stacks reach the thread's start\n",
			r->counts.n_stacks_complete, r->counts.n_stacks);
}

void record_print_summary(const char *path)
{
	struct err err;

	if (report_summary(path, stderr, &err) < 0)
		command_fail(&err);
}

int record_pass_on(int wait_status)
{
	struct rlimit no_core = {0, 0};
	int number;

	if (WIFEXITED(wait_status))
		return WEXITSTATUS(wait_status);
	number = WTERMSIG(wait_status);
	fflush(NULL);
	setrlimit(RLIMIT_CORE, &no_core);
	signal(number, SIG_DFL);
	raise(number);
	return 128 + number;
}

int record_status(const int *wait_status, bool is_short, bool has_losses, bool has_failed)
{
	int status = wait_status ? record_pass_on(*wait_status)
		     : is_short	 ? STATUS_FAILED
		     : has_losses ? STATUS_LOSSES
				 : STATUS_DONE;

	return has_failed && status == STATUS_DONE ? STATUS_FAILED : status;
}

int record_run(const struct recorder_options *options, enum record_talk talk,
	void (*after)(const char *path))
{
	struct recorder_options o = *options;
	struct talk t = {.options = options, .level = talk, .after = after};
	struct recorder_result result;
	struct err err;

	o.ctx = &t;
	o.note = show_note;
	o.complain = show_complaint;
	o.finished_early = finished_early;
	if (isatty(STDERR_FILENO) && talk != RECORD_QUIET)
		o.progress = show_progress;
	if (recorder_run(&o, &result, &err) < 0)
		return command_fail(&err);
	clear_progress(&t);
	if (result.write_error.code)
		command_fail(&result.write_error);
	else
		show_result(&t, &result);
	run_after(&t);
	return record_status(result.has_status ? &result.wait_status : NULL,
		result.n_unmatched, result.counts.n_lost || result.counts.n_events_lost,
		result.write_error.code);
}
