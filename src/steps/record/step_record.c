/* SPDX-License-Identifier: MIT */
/* A recording of steps from its start to its end: engine, trace file, what is said of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "process/host_facts.h"
#include "record/name_frames.h"
#include "steps/record/step_internal.h"

#define FLUSH_NS    1000000000u
#define PROGRESS_NS 250000000u

/* --- while it runs ------------------------------------------------------------------------ */

static bool work(void *ctx)
{
	struct step_session *s = ctx;
	uint64_t now = clock_mono_ns();

	if (now - s->flushed_ns >= FLUSH_NS)
		step_session_flush(s, now, false);
	return true;
}

static int drive(void *ctx, struct err *err)
{
	struct step_session *s = ctx;

	return s->engine->run(s, err);
}

enum step_why step_session_why_over(const struct step_session *s)
{
	return s->options->max && s->n_steps >= s->options->max ? STEP_WHY_MAX : STEP_WHY_END;
}

void step_session_progress(struct step_session *s)
{
	uint64_t now;

	if (!s->options->progress)
		return;
	now = clock_mono_ns();
	if (now - s->progress_ns < PROGRESS_NS)
		return;
	s->progress_ns = now;
	s->options->progress(s->options->ctx, s->n_steps, (double)(now - s->run.began_ns) / 1e9);
}

/* --- one recording ------------------------------------------------------------------------ */

static void write_facts(struct step_session *s)
{
	const struct step_options *o = s->options;

	host_facts_write(s->env.w);
	host_facts_targets(s->env.w, &(struct host_targets){o->command, o->pids, o->n_pids, false});
	trace_writer_meta(s->env.w, "event", "steps");
	trace_writer_meta(s->env.w, "engine", s->engine->name);
	trace_writer_meta(s->env.w, "clock", "CLOCK_MONOTONIC");
}

static int try_engine(struct step_session *s, const struct step_engine *e, struct err *err)
{
	s->engine = e;
	return e->accepts ? e->accepts(s, err) : 0;
}

static int choose_engine(void *ctx, char *const **environment, struct err *err)
{
	struct step_session *s = ctx;
	const struct step_engine *e;
	const char *why = NULL;
	struct err first = {0};

	(void)environment;
	if (s->options->engine) {
		e = step_engine_find(s->options->engine);
		if (!e)
			return err_set(err, ERR_NOT_FOUND, "--engine: '%s' is none of them",
				s->options->engine);
		why = e->hindrance();
		if (why)
			return err_set(err, ERR_UNSUPPORTED, "engine '%s' does not work here: %s",
				e->name, why);
		return try_engine(s, e, err);
	}
	for (size_t i = 0; step_engines[i]; i++)
		if (!step_engines[i]->hindrance() &&
			try_engine(s, step_engines[i], first.code ? err : &first) == 0) {
			s->refused = first;
			return 0;
		}
	s->engine = NULL;
	*err = first;
	return first.code ? first.code : err_set(err, ERR_UNSUPPORTED, "no engine works here");
}

static void complete(struct step_session *s)
{
	uint64_t now = clock_mono_ns();
	struct err err;

	step_session_flush(s, now, true);
	trace_writer_numbers(
		s->env.w, s->life_stream, now, RECORD_MAJOR_PHASE, RECORD_PHASE_ENDED, NULL, 0);
	for (size_t i = 0; i < s->processes->all.n; i++)
		if (s->processes->all.v[i]->n_live)
			module_history_end_snapshot(
				s->env.modules, s->processes->all.v[i], clock_mono_ns());
	module_history_write_index(s->env.modules, now);
	images_drop_changed(s->env.images);
	images_write_facts(s->env.images, s->env.w);
	name_frames(s->env.w, s->env.images, 0, NULL, NULL);
	s->result->wall_ns = now - s->run.began_ns;
	s->result->n_steps = s->n_steps;
	if (trace_writer_flush(s->env.w, &err) == 0)
		s->result->trace_bytes = trace_writer_bytes(s->env.w);
	if (trace_writer_close(s->env.w, &err) < 0 && !s->result->write_error.code)
		s->result->write_error = err;
	s->env.w = NULL;
}

void step_session_release(struct step_session *s)
{
	for (size_t i = 0; i < s->tracks.n; i++) {
		step_run_release(&s->tracks.v[i]->run);
		step_way_release(&s->tracks.v[i]->way);
		vec_release(&s->tracks.v[i]->data);
		free(s->tracks.v[i]);
	}
	vec_release(&s->tracks);
	for (size_t i = 0; i < s->spaces.n; i++)
		step_space_free(s->spaces.v[i]);
	vec_release(&s->spaces);
	step_find_release(s);
}

/* A start that failed leaves no file behind, and the older trace where it was. */
static void release(struct step_session *s, int rc)
{
	if (s->env.w)
		trace_writer_settle(s->env.w, rc, NULL);
	step_session_release(s);
	module_history_free(s->env.modules);
	processes_free(s->processes);
	images_free(s->env.images);
}

static int open_trace_file(struct step_session *s, struct err *err)
{
	int rc = trace_writer_open(&s->env.w, s->options->output, err);
	static const struct module_options modules = {.all_modules = true};

	if (rc < 0)
		return rc;
	s->env.images = images_new();
	s->life_stream = trace_writer_stream(s->env.w, STREAM_KIND_LIFE, 0);
	s->env.code_stream =
		trace_writer_stream(s->env.w, STREAM_KIND_LIFE, RECORD_STEP_CODE_STREAM);
	trace_writer_lead(s->env.w, s->env.code_stream);
	s->processes = processes_new(s->env.w, s->life_stream);
	s->env.modules = module_history_new(s->env.w, s->life_stream, s->env.images, &modules);
	write_facts(s);
	return 0;
}

static void goes_on(void *ctx)
{
	const struct step_session *s = ctx;
	const struct step_options *o = s->options;
	char text[512];

	if (!o->note || s->result->write_error.code)
		return;
	snprintf(text, sizeof(text), "'%s': the recording is complete; '%s' goes on running",
		o->output, o->command[0]);
	o->note(o->ctx, text);
}

static int start(void *ctx, struct err *err)
{
	struct step_session *s = ctx;
	int rc = open_trace_file(s, err);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < s->options->n_pids; i++)
		step_session_process(s, s->options->pids[i], true);
	if (s->options->command)
		step_session_process(s, s->run.child.pid, false);
	s->env.modules->has_started = true;
	if (s->refused.code && s->refused.text[0])
		step_session_note(s, "%s: '%s' is used instead", s->refused.text, s->engine->name);
	s->flushed_ns = s->progress_ns = clock_mono_ns();
	trace_writer_numbers(s->env.w, s->life_stream, s->flushed_ns, RECORD_MAJOR_PHASE,
		RECORD_PHASE_STARTED, NULL, 0);
	return trace_writer_flush(s->env.w, err);
}

static void finish(void *ctx, int rc)
{
	if (rc == 0)
		complete(ctx);
	release(ctx, rc);
}

int step_record(const struct step_options *options, struct step_result *result, struct err *err)
{
	static const struct run_work stepping = {.prepare = choose_engine,
		.start = start,
		.work = work,
		.drive = drive,
		.finish = finish,
		.goes_on = goes_on};
	struct step_session s = {.options = options,
		.result = result,
		.run = {.command = options->command,
			.duration_s = options->duration_s,
			.parent_fd = options->parent_fd,
			.work = &stepping,
			.ctx = &s}};
	int rc;

	memset(result, 0, sizeof(*result));
	rc = run_live(&s.run, err);
	result->engine = s.engine ? s.engine->name : NULL;
	result->has_status = s.run.has_status;
	result->wait_status = s.run.wait_status;
	return rc;
}
