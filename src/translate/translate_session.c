/* SPDX-License-Identifier: MIT */
#include "translate/translate_session.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "process/host_facts.h"
#include "process/own_file.h"
#include "process/proc.h"
#include "record/name_frames.h"
#include "translate/count_session.h"

#define FLUSH_NS 1000000000u

#define TRANSLATOR_BUILT     "lib/x86_64-linux-gnu/libweirtranslate.so"
#define TRANSLATOR_INSTALLED "../lib/weir/lib/x86_64-linux-gnu/libweirtranslate.so"

/* --- while it runs ----------------------------------------------------------------------------- */

static bool work(void *ctx)
{
	struct count_session *s = ctx;
	uint64_t now = clock_mono_ns();
	struct err err;

	translate_look_around(&s->tracer, now);
	if (now - s->flushed_ns < FLUSH_NS)
		return true;
	s->flushed_ns = now;
	if (!s->result->write_error.code && trace_writer_flush(s->w, &err) < 0)
		s->result->write_error = err;
	return true;
}

static int drive(void *ctx, struct err *err)
{
	struct count_session *s = ctx;

	return translate_drive(&s->tracer, err);
}

/* --- one recording ----------------------------------------------------------------------------- */

static int open_translator(void *ctx, char *const **environment, struct err *err)
{
	struct count_session *s = ctx;

	(void)environment;
	return translator_image_open(&s->tracer.image, s->options->translator, err);
}

static void write_facts(struct count_session *s)
{
	const struct translate_options *o = s->options;

	host_facts_write(s->w);
	host_facts_targets(s->w, &(struct host_targets){o->command, o->pids, o->n_pids, false});
	trace_writer_meta(s->w, "event", "instructions");
	trace_writer_meta(s->w, "engine", "translate");
	trace_writer_meta(s->w, "clock", "CLOCK_MONOTONIC");
}

static int start(void *ctx, struct err *err)
{
	static const struct module_options modules = {.all_modules = true};
	struct count_session *s = ctx;
	int rc = trace_writer_open(&s->w, s->options->output, err);

	if (rc < 0)
		return rc;
	s->images = images_new();
	s->life_stream = trace_writer_stream(s->w, STREAM_KIND_LIFE, 0);
	s->processes = processes_new(s->w, s->life_stream);
	s->modules = module_history_new(s->w, s->life_stream, s->images, &modules);
	s->modules->has_started = true;
	s->figures = count_trace_new(s->w, s->life_stream, s->images);
	write_facts(s);
	if (s->options->stepper)
		s->tracer.stepper_ctx = s->options->stepper->open(s);
	s->flushed_ns = clock_mono_ns();
	trace_writer_numbers(s->w, s->life_stream, s->flushed_ns, RECORD_MAJOR_PHASE,
		RECORD_PHASE_STARTED, NULL, 0);
	return trace_writer_flush(s->w, err);
}

static void close_stepper(struct count_session *s)
{
	if (s->tracer.stepper_ctx)
		s->options->stepper->close(s->tracer.stepper_ctx);
	s->tracer.stepper_ctx = NULL;
	s->tracer.stepper = NULL;
}

static struct opened_debug lend_debug(void *files, uint32_t image)
{
	return code_files_debug(files, image);
}

static void complete(struct count_session *s)
{
	uint64_t now = clock_mono_ns();
	struct count_totals totals = {0};
	struct err err;

	trace_writer_numbers(
		s->w, s->life_stream, now, RECORD_MAJOR_PHASE, RECORD_PHASE_ENDED, NULL, 0);
	for (size_t i = 0; i < s->processes->all.n; i++)
		if (s->processes->all.v[i]->n_live)
			module_history_end_snapshot(
				s->modules, s->processes->all.v[i], clock_mono_ns());
	module_history_write_index(s->modules, now);
	images_drop_changed(s->images);
	count_trace_finish(s->figures, clock_mono_ns(), &totals);
	s->result->n_insns = totals.n_insns;
	s->result->n_calls = totals.n_calls;
	s->result->n_blocks = totals.n_blocks;
	s->result->n_lost = totals.n_lost;
	images_write_facts(s->images, s->w);
	name_frames(s->w, s->images, 0, NULL,
		&(struct debug_lender){.lend = lend_debug, .ctx = count_trace_files(s->figures)});
	s->result->wall_ns = now - s->run.began_ns;
	if (trace_writer_flush(s->w, &err) == 0)
		s->result->trace_bytes = trace_writer_bytes(s->w);
	if (trace_writer_close(s->w, &err) < 0 && !s->result->write_error.code)
		s->result->write_error = err;
	s->w = NULL;
}

/* A start that failed leaves no file behind, and the older trace where it was. */
static void release(struct count_session *s, int rc)
{
	if (s->w)
		trace_writer_settle(s->w, rc, NULL);
	translate_tracer_release(&s->tracer);
	count_trace_free(s->figures);
	module_history_free(s->modules);
	processes_free(s->processes);
	images_free(s->images);
}

static void finish(void *ctx, int rc)
{
	close_stepper(ctx);
	if (rc == 0)
		complete(ctx);
	release(ctx, rc);
}

static void goes_on(void *ctx)
{
	struct count_session *s = ctx;

	if (!s->result->write_error.code)
		translate_note(&s->tracer, "'%s': the recording is complete; '%s' goes on running",
			s->options->output, s->options->command[0]);
}

int translate_record(
	const struct translate_options *options, struct translate_result *result, struct err *err)
{
	static const struct run_work translating = {.prepare = open_translator,
		.start = start,
		.work = work,
		.drive = drive,
		.finish = finish,
		.goes_on = goes_on};
	struct count_session s = {.options = options,
		.result = result,
		.run = {.command = options->command,
			.duration_s = options->duration_s,
			.parent_fd = options->parent_fd,
			.work = &translating,
			.ctx = &s},
		.tracer = {.work = &count_work,
			.ctx = &s,
			.run = &s.run,
			.stepper = options->stepper,
			.command = options->command,
			.pids = options->pids,
			.n_pids = options->n_pids}};
	int rc;

	memset(result, 0, sizeof(*result));
	rc = run_live(&s.run, err);
	result->has_status = s.run.has_status;
	result->wait_status = s.run.wait_status;
	return rc;
}

char *translator_find(void)
{
	return own_file_find(TRANSLATOR_BUILT, TRANSLATOR_INSTALLED);
}

const char *translate_hindrance(void)
{
	struct translator_image image;
	char *translator = translator_find();
	const char *why = translator ? NULL : "its translator is not beside weir";
	struct err err;

	if (translator && translator_image_open(&image, translator, &err) < 0)
		why = "the translator's file cannot be used";
	else if (translator)
		translator_image_close(&image);
	free(translator);
	return why;
}
