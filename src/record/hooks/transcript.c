/* SPDX-License-Identifier: MIT */
/*
 * The inner loop is transcribe_chunk(): millions of records a second pass through it, so it knows
 * nothing but ids, frames and the stack of open calls. What happens once for each function and
 * process (naming its image, telling that its module is used) is in transcript_functions.c.
 */
#include "record/hooks/transcript.h"

#include <string.h>

#include "base/clock.h"
#include "record/hooks/transcript_internal.h"

static inline uint64_t whole_ticks(const struct hook_chunk *c, uint64_t head)
{
	return tick_clock_complete(c->ticks, HOOK_HEAD_TICKS(head), HOOK_TIME_BITS);
}

static void begin_thread(struct transcript *t, struct hooked_thread *thread, uint64_t time)
{
	if (!thread->thread) {
		thread->thread =
			processes_thread(t->world.processes, thread->pid, thread->tid, time);
		thread->stream = trace_writer_stream(
			t->world.w, STREAM_KIND_THREAD, thread->thread->trace_id);
	}
	if (!thread->has_inherited)
		return;
	/* A child is inside the calls that its parent made: its exits need their entries. */
	thread->has_inherited = false;
	for (size_t i = 0; i < replay_depth(&thread->replay); i++) {
		uint32_t id = thread->replay.chains.v[thread->replay.current].calls.v[i].id;

		trace_writer_numbers(t->world.w, thread->stream, thread->inherited_ns,
			RECORD_MAJOR_ROUTINE, RECORD_ROUTINE_OPEN,
			(uint64_t[]){transcript_frame(t, id)}, 1);
	}
	thread->last_ns = thread->inherited_ns;
}

static void write_used(struct transcript *t, struct hooked_thread *thread, uint32_t metric,
	uint64_t amount, uint64_t time)
{
	trace_writer_numbers(t->world.w, thread->stream, time, RECORD_MAJOR_RESOURCE,
		RECORD_RESOURCE_ADD, (uint64_t[]){metric, amount}, 2);
}

static void write_amount(
	struct transcript *t, struct hooked_thread *thread, uint64_t amount, uint64_t time)
{
	if (!t->bytes_metric)
		t->bytes_metric = trace_writer_metric(t->world.w, "bytes", "bytes");
	write_used(t, thread, t->bytes_metric, amount, time);
}

static void write_heap_bytes(
	struct transcript *t, struct hooked_thread *thread, uint64_t amount, uint64_t time)
{
	if (!t->heap_metric)
		t->heap_metric = trace_writer_metric(t->world.w, "heap", "bytes");
	write_used(t, thread, t->heap_metric, amount, time);
}

static void write_bytecodes(
	struct transcript *t, struct hooked_thread *thread, uint64_t n, uint64_t time)
{
	if (!t->bytecodes_metric)
		t->bytecodes_metric = trace_writer_metric(t->world.w, "bytecodes", "1");
	write_used(t, thread, t->bytecodes_metric, n, time);
}

/* From DWARF's order for the program's kind to that of struct cpu_regs. */
static void convert_registers(
	const struct hook_regs *from, bool is_64, uint64_t pc, struct cpu_regs *to)
{
	static const uint8_t order_32[] = {CPU_REG_RAX, CPU_REG_RCX, CPU_REG_RDX, CPU_REG_RBX,
		CPU_REG_RSP, CPU_REG_RBP, CPU_REG_RSI, CPU_REG_RDI};
	size_t n = is_64 ? CPU_REG_RIP : sizeof(order_32);

	*to = (struct cpu_regs){.is_64 = is_64};
	for (size_t i = 0; i < n; i++) {
		size_t reg = is_64 ? i : order_32[i];

		to->r[reg] = from->r[i];
		to->known |= 1u << reg;
	}
	to->r[CPU_REG_RIP] = pc;
	to->known |= 1u << CPU_REG_RIP;
}

/* The stack at the entry of the innermost open call: `n` records with registers and bytes. */
static void write_stack(struct transcript *t, struct hooked_thread *thread,
	const struct hook_record *records, uint64_t n_bytes, uint64_t time)
{
	const struct replay_chain *c = &thread->replay.chains.v[thread->replay.current];
	const struct planned_image *image = NULL;
	const struct planned_function *f;
	const struct hook_module_at *at;
	struct hook_regs regs;
	struct cpu_regs cpu;
	uint32_t stack;

	if (n_bytes < sizeof(regs) || !c->calls.n) {
		t->n_stacks_cut++;
		return;
	}
	f = hooks_planned(t->h, c->calls.v[c->calls.n - 1].id, &image);
	at = f ? hook_layout_module(thread->view->layout, image) : NULL;
	if (!at) {
		t->n_stacks_cut++;
		return;
	}
	memcpy(&regs, records, sizeof(regs));
	convert_registers(&regs, thread->view->process->is_64, f->function.v + at->bias, &cpu);
	stack = t->world.stack(t->world.ctx, thread->thread, &cpu,
		(struct span){
			(const uint8_t *)records + sizeof(regs), (size_t)(n_bytes - sizeof(regs))},
		time);
	trace_writer_numbers(t->world.w, thread->stream, time, RECORD_MAJOR_STACK_EVENT,
		RECORD_MINOR_STACK, (uint64_t[]){thread->thread->trace_id, stack, 0, 0}, 4);
}

/* What the library does to measure itself is none of the program's events. */
static void uncount_event(struct transcript *t, struct hooked_thread *thread)
{
	t->n_events--;
	thread->n_events--;
}

/* Returns how many records it took. */
static uint32_t transcribe_more(struct transcript *t, struct hooked_thread *thread,
	const struct hook_chunk *c, uint32_t at, uint64_t time)
{
	const struct hook_record *r = &c->records[at];
	uint64_t n;

	switch (HOOK_HEAD_ID(r->head)) {
	case HOOK_MORE_CHAIN:
		replay_switch(&thread->replay, (uint32_t)r->data);
		trace_writer_numbers(t->world.w, thread->stream, time, RECORD_MAJOR_HOOK,
			RECORD_HOOK_CHAIN, (uint64_t[]){(uint32_t)r->data}, 1);
		return 1;
	case HOOK_MORE_STACK:
		n = (r->data + sizeof(*r) - 1) / sizeof(*r);
		if (n >= c->n - at) /* the drain thread keeps them together */
			return c->n - at;
		if (replay_depth(&thread->replay))
			write_stack(t, thread, r + 1, r->data, time);
		return (uint32_t)n + 1;
	case HOOK_MORE_HEAP:
		write_heap_bytes(t, thread, r->data, time);
		return 1;
	case HOOK_MORE_BYTECODES:
		write_bytecodes(t, thread, r->data, time);
		return 1;
	case HOOK_MORE_COST:
		hook_costs_add(&t->costs, thread->view->process->is_64, r->data);
		uncount_event(t, thread);
		return 1;
	default:
		t->n_unknown++;
		return 1;
	}
}

static inline void transcribe_enter(struct transcript *t, struct hooked_thread *thread,
	const struct hook_record *r, uint64_t ticks, uint64_t time)
{
	uint32_t id = HOOK_HEAD_ID(r->head);
	struct hooked_function *f;

	if (id >= thread->view->seen.n || !thread->view->seen.v[id]) {
		if (id == HOOK_COST_ID) { /* open for walks, in none of the trace's streams */
			replay_enter(&thread->replay, id, r->data, ticks);
			uncount_event(t, thread);
			return;
		}
		if (!transcript_see_function(t, thread, id, time)) {
			t->n_unknown++;
			return;
		}
	}
	f = &t->functions.v[id];
	f->hits++;
	replay_enter(&thread->replay, id, r->data, ticks);
	trace_writer_routine(t->world.w, thread->stream, time, f->frame, false);
}

static inline void transcribe_leave(struct transcript *t, struct hooked_thread *thread,
	const struct hook_record *r, uint64_t ticks, uint64_t time)
{
	uint32_t id = HOOK_HEAD_ID(r->head);
	struct replay_call left;
	struct hooked_function *f;
	size_t n_ended;

	n_ended = replay_leave(&thread->replay, id, &left);
	if (!n_ended)
		return;
	if (n_ended > 1) {
		const struct replay_chain *c = &thread->replay.chains.v[thread->replay.current];

		transcript_miss_bytecodes(t, c, c->calls.n + 1, c->calls.n + n_ended);
	}
	if (id == HOOK_COST_ID) {
		uncount_event(t, thread);
		return;
	}
	f = &t->functions.v[id];
	f->calls += !f->is_method;
	f->ticks += ticks > left.ticks ? ticks - left.ticks : 0;
	trace_writer_routine(t->world.w, thread->stream, time, f->frame, true);
}

/* False when the next record is later than `until`. */
static bool transcribe_chunk(struct transcript *t, struct hooked_thread *thread,
	const struct hook_chunk *c, uint64_t until)
{
	uint64_t stop_ticks = t->h->stop_ticks;

	while (thread->at < c->n) {
		const struct hook_record *r = &c->records[thread->at];
		uint64_t ticks = whole_ticks(c, r->head);
		uint64_t time = tick_clock_ns(&t->clock, ticks);

		if (time > until)
			return false;
		if (ticks > stop_ticks) { /* the recording was over */
			thread->at = c->n;
			break;
		}
		/* What a signal handler did in the midst of a hook comes first and is later. */
		if (time < thread->last_ns)
			time = thread->last_ns;
		thread->last_ns = time;
		t->n_events++;
		thread->n_events++;
		switch (HOOK_HEAD_KIND(r->head)) {
		case HOOK_RECORD_ENTER:
			transcribe_enter(t, thread, r, ticks, time);
			thread->at++;
			break;
		case HOOK_RECORD_LEAVE:
			transcribe_leave(t, thread, r, ticks, time);
			thread->at++;
			break;
		case HOOK_RECORD_AMOUNT:
			if (HOOK_HEAD_ID(r->head) == HOOK_COST_ID)
				uncount_event(t, thread);
			else
				write_amount(t, thread, r->data, time);
			thread->at++;
			break;
		case HOOK_RECORD_MORE:
			thread->at += transcribe_more(t, thread, c, thread->at, time);
			break;
		}
	}
	return true;
}

static uint64_t first_time(struct transcript *t, const struct hooked_thread *thread)
{
	const struct hook_chunk *c = thread->sources.v[thread->source_i]->mine;

	return tick_clock_ns(&t->clock, whole_ticks(c, c->records[thread->at].head));
}

static void advance_thread(struct transcript *t, struct hooked_thread *thread, uint64_t until)
{
	bool has_begun = false;

	while (thread->source_i < thread->sources.n) {
		struct hook_source *s = thread->sources.v[thread->source_i];
		struct hook_chunk *c = s->mine;

		if (!c) {
			if (!s->mine_is_over)
				return;
			transcript_finish_source(t, thread);
			continue;
		}
		thread->view = s->view;
		if (!has_begun && thread->at < c->n) {
			uint64_t last;

			if (first_time(t, thread) > until)
				return;
			begin_thread(t, thread, first_time(t, thread));
			/* Others write into the stream, too, by the kernel's clock. */
			last = trace_writer_stream_time(t->world.w, thread->stream);
			if (last > thread->last_ns)
				thread->last_ns = last;
			has_begun = true;
		}
		if (!transcribe_chunk(t, thread, c, until))
			return;
		s->mine = c->next;
		c->next = t->used;
		t->used = c;
		thread->at = 0;
	}
}

uint64_t transcript_take(struct transcript *t)
{
	uint64_t now = clock_mono_ns(), ticks;

	transcript_take_processes(t);
	ticks = hooks_take(t->h, &t->used, transcript_add_source, t);
	tick_clock_refine(&t->clock); /* all that was taken is older than this point */
	if (t->h->options.budget_percent > 0)
		transcript_keep_budget(t, now);
	return t->h->drain_runs ? tick_clock_ns(&t->clock, ticks) : UINT64_MAX;
}

void transcript_advance(struct transcript *t, uint32_t pid, uint32_t tid, uint64_t time)
{
	struct hooked_thread *thread = transcript_find_thread(t, pid, tid);

	if (thread)
		advance_thread(t, thread, time);
}

void transcript_advance_all(struct transcript *t, uint64_t time)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->threads.n; i++) {
		struct hooked_thread *thread = t->threads.v[i];

		advance_thread(t, thread, time);
		if (thread->has_exited && thread->source_i == thread->sources.n)
			transcript_free_thread(t, thread);
		else
			t->threads.v[kept++] = thread;
	}
	t->threads.n = kept;
}
