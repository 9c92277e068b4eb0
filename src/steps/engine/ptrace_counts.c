/* SPDX-License-Identifier: MIT */
#include "steps/engine/ptrace_counts.h"

#include <stdlib.h>

#include "process/proc.h"
#include "steps/engine/counted_steps.h"
#include "steps/engine/ptrace_engine.h"
#include "translate/count_session.h"

struct stepper {
	struct step_options options;
	struct step_result result;
	struct step_session session;
	struct ptrace_engine engine;
	struct translate_result *counted; /* by both of us */
	bool has_told;			  /* that it is slow */
	bool wants_all;
};

/* So that both ways to count can be compared on any program. */
#define WANTS_ALL "WEIR_COUNT_STEPS"

static void *open_stepper(struct count_session *s)
{
	const struct translate_options *o = s->options;
	struct stepper *p = mem_zalloc(sizeof(*p));

	p->options = (struct step_options){
		.note = o->note, .progress = o->progress, .ctx = o->ctx, .parent_fd = -1};
	p->session = (struct step_session){.options = &p->options,
		.result = &p->result,
		.env = {.w = s->w, .images = s->images, .modules = s->modules},
		.life_stream = s->life_stream,
		.processes = s->processes,
		.sink = &counted_steps_sink,
		.sink_ctx = counted_steps_new(s)};
	p->engine = (struct ptrace_engine){
		.s = &p->session, .o = &p->options, .host = &s->tracer, .cpu = -1};
	p->counted = s->result;
	p->wants_all = getenv(WANTS_ALL);
	sched_getaffinity(0, sizeof(p->engine.own_affinity), &p->engine.own_affinity);
	return p;
}

static void close_stepper(void *ctx)
{
	struct stepper *p = ctx;

	if (p->engine.cpu >= 0)
		sched_setaffinity(0, sizeof(p->engine.own_affinity), &p->engine.own_affinity);
	p->counted->n_processes += p->result.n_processes;
	p->counted->n_threads += p->result.n_threads;
	vec_release_all(&p->engine.tracees);
	map_release(&p->engine.by_tid);
	map_release(&p->engine.early);
	counted_steps_free(p->session.sink_ctx);
	step_session_release(&p->session);
	free(p);
}

static bool wants(const void *ctx, bool is_32)
{
	const struct stepper *p = ctx;

	return is_32 || p->wants_all;
}

static void tell_slowness(struct stepper *p, pid_t pid)
{
	char exe[256];

	if (p->has_told)
		return;
	p->has_told = true;
	proc_exe(pid, exe, sizeof(exe));
	step_session_note(&p->session,
		"'%s' (process %d) is a 32-bit program: such programs are counted exactly, but step by step, at some "
		"50000 instructions a second",
		exe, pid);
}

static void take(void *ctx, pid_t pid)
{
	struct stepper *p = ctx;

	tell_slowness(p, pid);
	p->engine.command = p->engine.host->command_pid;
	p->session.run.began_ns = p->engine.host->run->began_ns;
	engine_take(&p->engine, step_session_adopt(&p->session, pid), pid);
}

bool engine_gives_back(struct ptrace_engine *e, struct tracee *t)
{
	pid_t pid = t->pid;

	if (!e->host || !tracee_read_regs(t) ||
		e->host->stepper->wants(e->host->stepper_ctx, !t->is_64))
		return false;
	tracee_unpin(t);
	tracee_give_mask(t);
	step_session_leave(e->s, t->track);
	engine_forget(e, t);
	translate_adopt(e->host, pid);
	return true;
}

static bool has(const void *ctx, pid_t tid)
{
	const struct stepper *p = ctx;

	return tracee_find(&p->engine, tid);
}

static void stopped(void *ctx, pid_t tid, int status)
{
	struct stepper *p = ctx;

	engine_handle(&p->engine, tid, status);
	step_session_progress(&p->session);
}

static void leave(void *ctx)
{
	struct stepper *p = ctx;

	engine_leave(&p->engine);
}

static size_t n_threads(const void *ctx)
{
	const struct stepper *p = ctx;

	return p->engine.n_live;
}

const struct translate_stepper ptrace_stepper = {.open = open_stepper,
	.close = close_stepper,
	.wants = wants,
	.take = take,
	.has = has,
	.stopped = stopped,
	.leave = leave,
	.n_threads = n_threads};
