/* SPDX-License-Identifier: MIT */
/* What became of the functions asked for, what was lost, and the budget. */
#include <stdio.h>
#include <stdlib.h>

#include "record/hooks/budget.h"
#include "record/hooks/transcript_internal.h"

#define BUDGET_INTERVAL_NS 100000000u

/* --- the budget ------------------------------------------------------------------------- */

static void unhook(struct transcript *t, uint32_t id, uint64_t now_ns)
{
	struct hooks *h = t->h;

	transcript_function(t, id)->is_off = true;
	transcript_function(t, id)->off_ns = now_ns;
	HOLD(&h->lock);
	vec_push(&h->off, id);
	for (size_t i = 0; i < h->processes.n; i++)
		if (!h->processes.v[i]->has_ended)
			hook_area_turn_off(&h->processes.v[i]->area, id);
}

static double pair_ns(struct transcript *t, uint32_t id)
{
	const struct planned_function *f = hooks_planned(t->h, id, NULL);

	return budget_pair_ns(f ? f->method : 0, t->h->trap_ns);
}

/* How long the threads ran that had events since the last look. */
static uint64_t running_ns(struct transcript *t, uint64_t interval)
{
	uint64_t n = 0;

	for (size_t i = 0; i < t->threads.n; i++) {
		n += t->threads.v[i]->n_events ? interval : 0;
		t->threads.v[i]->n_events = 0;
	}
	return n;
}

void transcript_keep_budget(struct transcript *t, uint64_t now_ns)
{
	VEC(struct budget_function) functions = {0};
	uint64_t interval = now_ns - t->budget_ns, running;
	double hz = tick_clock_hz(&t->clock);
	size_t n;

	if (interval < BUDGET_INTERVAL_NS || hz <= 0)
		return;
	t->budget_ns = now_ns;
	running =
		t->h->options.tree ? transcript_count_trees(t) * interval : running_ns(t, interval);
	for (uint32_t id = 1; id < t->functions.n; id++) {
		struct hooked_function *f = &t->functions.v[id];

		if (f->calls && !f->is_off)
			vec_push(&functions,
				((struct budget_function){id, f->calls,
					(uint64_t)((double)f->ticks / hz * 1e9), pair_ns(t, id)}));
		f->calls = f->ticks = 0;
	}
	n = budget_choose(functions.v, functions.n, running, t->h->options.budget_percent);
	for (size_t i = 0; i < n && t->h->off.n < HOOK_OFF_MAX; i++)
		unhook(t, functions.v[i].id, now_ns);
	vec_release(&functions);
}

/* --- the end ---------------------------------------------------------------------------- */

static void write_function(struct transcript *t, uint32_t id, uint64_t time)
{
	const struct planned_image *image = NULL;
	const struct planned_function *planned = hooks_planned(t->h, id, &image);
	const struct hooked_function *f;
	struct hook_outcome outcome = {0, 0, 0};
	uint32_t frame = transcript_frame(t, id);
	const char *reason;
	uint8_t method;

	if (!planned || !frame)
		return;
	f = transcript_function(t, id);
	if (id < t->h->outcomes.n)
		outcome = t->h->outcomes.v[id];
	method = planned->method;
	reason = planned->reason;
	if (method && !outcome.n_hooked && outcome.refusal) {
		method = 0;
		reason = hook_refusal_phrase(outcome.refusal);
	} else if (method && !outcome.n_hooked && !f->hits) {
		method = 0;
		reason = transcript_unhooked_reason(t, id);
		reason = reason ? reason : "the program ended before it could be hooked";
	}
	trace_writer_numbers(t->world.w, t->world.life_stream, time, RECORD_MAJOR_HOOK,
		RECORD_HOOK_FUNCTION,
		(uint64_t[]){frame, method, reason ? trace_writer_string(t->world.w, reason) : 0,
			f->hits, f->is_off ? f->off_ns - t->began_ns + 1 : 0,
			hook_costs_number(&t->costs, image->is_64, method, planned->action)},
		6);
}

struct end {
	struct transcript *t;
	uint64_t time;
};

static void write_unmatched(void *ctx, const char *wish, const char *near)
{
	struct end *e = ctx;
	struct trace_writer *w = e->t->world.w;
	uint32_t frame = trace_writer_frame(w, &(struct trace_frame){.kind = FRAME_KIND_NATIVE,
						       .name = trace_writer_string(w, wish)});

	const char *reason =
		e->t->h->unread_program
			? "no such function is known, but a program was not hooked whose file cannot be read"
			: "no such function";

	(void)near;
	trace_writer_numbers(w, e->t->world.life_stream, e->time, RECORD_MAJOR_HOOK,
		RECORD_HOOK_FUNCTION, (uint64_t[]){frame, 0, trace_writer_string(w, reason), 0, 0},
		5);
}

static void write_losses(struct transcript *t, uint64_t time)
{
	const struct hooks *h = t->h;
	const struct {
		uint64_t n;
		enum record_minor_loss what;
		const char *text;
	} rows[] = {
		{t->totals.n_dropped, RECORD_LOSS_EVENTS, "hook ring full"},
		{h->n_missed, RECORD_LOSS_EVENTS, "call of a thread that was not recorded"},
		{h->n_threadless, RECORD_LOSS_NOTE,
			"thread not recorded, because too many others ran at the same time"},
		{h->n_memoryless, RECORD_LOSS_NOTE,
			"thread not recorded, because its process had no address space left for its records"},
		{t->totals.n_unhooked, RECORD_LOSS_EVENTS, "call too deep to follow"},
		{h->lost.n_unheard[HOOK_HELLO_FORK], RECORD_LOSS_EVENTS,
			"forked process that could not reach the recorder"},
		{h->lost.n_unheard[HOOK_HELLO_MODULES], RECORD_LOSS_EVENTS,
			"libraries loaded by a process that could not reach the recorder"},
		{h->lost.n_unheard[HOOK_HELLO_CLASSES], RECORD_LOSS_EVENTS,
			"Java class that was loaded without an answer of the recorder: not hooked"},
		{h->n_classes_left, RECORD_LOSS_EVENTS,
			"Java class that could not be changed: not hooked"},
		{h->n_jvms_left, RECORD_LOSS_EVENTS,
			"Java virtual machine whose methods could not be hooked"},
		{h->n_archives, RECORD_LOSS_EVENTS,
			"Java virtual machine that writes its classes to an archive: its methods are not hooked, changed ones would get into it"},
		{h->n_virtual, RECORD_LOSS_NOTE,
			"Java virtual machine with virtual threads: their calls are counted, times and callers are those of the threads that carried them"},
		{h->n_without_bytes, RECORD_LOSS_EVENTS,
			"Java virtual machine that does not tell what its threads allocate: the bytes of its methods are missing"},
		{t->n_open_counted, RECORD_LOSS_EVENTS,
			"call of a Java method whose end was not seen: its bytecodes are missing"},
		{h->n_unread_classes, RECORD_LOSS_EVENTS,
			"Java class that cannot be read: not hooked"},
		{t->n_unread, RECORD_LOSS_EVENTS, "hook record that cannot be read"},
		{t->n_unknown, RECORD_LOSS_EVENTS, "hook record of an unknown function"},
		{t->n_unmatched_leaves, RECORD_LOSS_NOTE,
			"exit of a call whose entry is not known"},
		{t->totals.n_jumped, RECORD_LOSS_NOTE,
			"call that was left by a jump or an exception; or it went on, unseen, on a stack made by hand"},
		{t->n_stacks_cut, RECORD_LOSS_NOTE, "stack at an entry could not be used"},
		{t->totals.n_stalls, RECORD_LOSS_NOTE,
			"a thread waited for the recorder to empty its ring"},
		{h->n_unread_modules, RECORD_LOSS_NOTE,
			"module whose file cannot be read: not hooked"},
		{h->n_filtered, RECORD_LOSS_NOTE,
			"process that installs a system call filter: unhooked from then on"},
		{h->n_bad_hellos, RECORD_LOSS_NOTE,
			"hook library that could not be understood, or was not invited"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].n)
			trace_writer_loss(t->world.w, t->world.life_stream, time, rows[i].what,
				rows[i].n, rows[i].text);
}

/* A function without any hook has its reason in the report of hooks. One that is hooked in one process
 * and not in another has a figure, which lacks the calls of the latter. */
static uint64_t n_partly_hooked(const struct transcript *t, enum hook_refusal refusal)
{
	uint64_t n = 0;

	for (size_t id = 1; id < t->h->outcomes.n; id++) {
		const struct hook_outcome *o = &t->h->outcomes.v[id];

		n += o->n_hooked && o->refusal == refusal ? o->n_refused : 0;
	}
	return n;
}

static void write_partly_hooked(struct transcript *t, uint64_t time)
{
	for (uint32_t refusal = 1; refusal < HOOK_REFUSAL_N; refusal++) {
		uint64_t n = n_partly_hooked(t, refusal);
		char *text = mem_printf(
			"function that was hooked, but not in every process, or not each time it was loaded: %s",
			hook_refusal_phrase(refusal));

		if (n)
			trace_writer_loss(t->world.w, t->world.life_stream, time,
				RECORD_LOSS_EVENTS, n, text);
		free(text);
	}
}

struct transcript_counts transcript_counts(const struct transcript *t)
{
	uint64_t n_partly = 0;

	for (uint32_t refusal = 1; refusal < HOOK_REFUSAL_N; refusal++)
		n_partly += n_partly_hooked(t, refusal);
	return (struct transcript_counts){.n_events = t->n_events,
		.n_lost = t->totals.n_dropped + t->n_unread + t->n_unknown + t->totals.n_unhooked +
			  t->h->n_missed + transcript_n_unheard(t) + n_partly +
			  t->h->n_classes_left + t->h->n_jvms_left + t->h->n_archives +
			  t->h->n_unread_classes,
		.n_jumped = t->totals.n_jumped};
}

static void write_clock(struct transcript *t)
{
	char text[160];

	snprintf(text, sizeof(text),
		"time stamp counter at %.6f GHz, compared with CLOCK_MONOTONIC, error at most %lu ns",
		tick_clock_hz(&t->clock) / 1e9, t->clock.error_ns);
	trace_writer_meta(t->world.w, "hook_clock", text);
	if (tick_clock_doubt())
		trace_writer_meta(t->world.w, "hook_clock_doubt", tick_clock_doubt());
}

void transcript_finish(struct transcript *t, uint64_t time)
{
	struct end e = {t, time};
	uint32_t n;

	hooks_halt(t->h);
	transcript_take(t);
	transcript_advance_all(t, UINT64_MAX);
	for (size_t i = 0; i < t->threads.n; i++) {
		t->n_unmatched_leaves += t->threads.v[i]->replay.n_unmatched_leaves;
		t->threads.v[i]->replay.n_unmatched_leaves = 0;
		transcript_miss_open(t, t->threads.v[i]);
	}
	transcript_judge_programs(t, time);
	hook_costs_write(&t->costs, t->world.w, t->world.life_stream, time,
		tick_clock_hz(&t->clock), t->h->options.tree);
	n = hooks_n_functions(t->h);
	for (uint32_t id = 1; id <= n; id++)
		write_function(t, id, time);
	hooks_each_unmatched(t->h, write_unmatched, &e);
	write_losses(t, time);
	write_partly_hooked(t, time);
	transcript_write_unheard(t, time);
	write_clock(t);
}
