/* SPDX-License-Identifier: MIT */
#include "cmd/steps_run.h"

#include <stdio.h>
#include <string.h>

#include "cmd/keeper.h"
#include "cmd/options.h"
#include "steps/record/step_engine.h"

_Static_assert(sizeof(struct step_result) <= KEEPER_RESULT_MAX, "a result is in one packet");

static int record(struct keeper *k, void *result, struct err *err)
{
	struct step_options o = *(const struct step_options *)k->options;

	o.parent_fd = k->fd;
	o.ctx = k;
	o.note = keeper_note;
	o.complain = keeper_complain;
	o.progress = k->has_progress ? keeper_progress : NULL;
	return step_record(&o, result, err);
}

static void show_result(const char *path, const struct step_result *r)
{
	bool is_default = !strcmp(path, "trace.weir");

	fprintf(stderr, "weir: '%s': %lu step%s in %.2f s (%lu process%s, %lu thread%s) by %s",
		path, r->n_steps, r->n_steps == 1 ? "" : "s", (double)r->wall_ns / 1e9,
		r->n_processes, r->n_processes == 1 ? "" : "es", r->n_threads,
		r->n_threads == 1 ? "" : "s", r->engine ? r->engine : "?");
	fprintf(stderr, ", %lu bytes", r->trace_bytes);
	if (r->n_steps)
		fprintf(stderr, " (%.2f a step)", (double)r->trace_bytes / (double)r->n_steps);
	if (r->n_lost)
		fprintf(stderr, ", %lu steps lost (weir report loss says why)", r->n_lost);
	fprintf(stderr, "; 'weir report steps%s%s' lists them\n", is_default ? "" : " ",
		is_default ? "" : path);
}

static void show_engines(void)
{
	for (size_t i = 0; step_engines[i]; i++) {
		const char *hindrance = step_engines[i]->hindrance();

		fprintf(stderr, "weir: engine %s: %s\n", step_engines[i]->name,
			hindrance ? hindrance : "works here");
	}
}

int steps_run(const struct step_options *options, enum record_talk talk)
{
	struct keeper k = {.record = record,
		.options = options,
		.result_bytes = sizeof(struct step_result),
		.output = options->output,
		.has_command = options->command,
		.talk = talk,
		.unit = "steps"};
	struct step_result r;
	int status;

	if (talk == RECORD_VERBOSE)
		show_engines();
	if (!keeper_run(&k, &r, &status))
		return status;
	if (r.write_error.code)
		command_fail(&r.write_error);
	else if (talk != RECORD_QUIET)
		show_result(options->output, &r);
	return record_status(r.has_status ? &r.wait_status : NULL, r.n_unmatched, r.n_lost,
		r.write_error.code);
}
