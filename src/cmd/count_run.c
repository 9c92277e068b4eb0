/* SPDX-License-Identifier: MIT */
#include "cmd/count_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/keeper.h"
#include "cmd/options.h"
#include "steps/engine/ptrace_counts.h"

_Static_assert(sizeof(struct translate_result) <= KEEPER_RESULT_MAX, "a result is in one packet");

static int record(struct keeper *k, void *result, struct err *err)
{
	struct translate_options o = *(const struct translate_options *)k->options;

	o.parent_fd = k->fd;
	o.ctx = k;
	o.note = keeper_note;
	o.progress = k->has_progress ? keeper_progress : NULL;
	o.stepper = &ptrace_stepper;
	return translate_record(&o, result, err);
}

static void show_result(const char *path, const struct translate_result *r)
{
	bool is_default = !strcmp(path, "trace.weir");

	fprintf(stderr, "weir: '%s': %lu instruction%s, %lu block%s, %lu call%s in %.2f s", path,
		r->n_insns, r->n_insns == 1 ? "" : "s", r->n_blocks, r->n_blocks == 1 ? "" : "s",
		r->n_calls, r->n_calls == 1 ? "" : "s", (double)r->wall_ns / 1e9);
	fprintf(stderr, " (%lu process%s, %lu thread%s), %lu bytes", r->n_processes,
		r->n_processes == 1 ? "" : "es", r->n_threads, r->n_threads == 1 ? "" : "s",
		r->trace_bytes);
	if (r->n_lost)
		fputs(", with losses (weir report loss says which)", stderr);
	if (!r->n_insns) { /* the command's status is passed on all the same */
		fputs("; nothing was counted\n", stderr);
		return;
	}
	fprintf(stderr, "; 'weir report flat%s%s' shows them\n", is_default ? "" : " ",
		is_default ? "" : path);
}

int count_run(const struct translate_options *options, enum record_talk talk)
{
	struct translate_options o = *options;
	struct keeper k = {.record = record,
		.options = &o,
		.result_bytes = sizeof(struct translate_result),
		.output = options->output,
		.has_command = options->command,
		.talk = talk,
		.unit = "instructions"};
	struct translate_result r;
	char *translator = translator_find();
	int status = STATUS_FAILED;

	o.translator = translator;
	if (!translator) {
		fputs("weir: libweirtranslate.so: is not beside the program (make builds it)\n",
			stderr);
	} else if (keeper_run(&k, &r, &status)) {
		if (r.write_error.code)
			command_fail(&r.write_error);
		else if (talk != RECORD_QUIET)
			show_result(options->output, &r);
		status = record_status(
			r.has_status ? &r.wait_status : NULL, false, r.n_lost, r.write_error.code);
	}
	free(translator);
	return status;
}

const char *count_run_hindrance(void)
{
	return translate_hindrance();
}
