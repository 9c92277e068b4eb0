/* SPDX-License-Identifier: MIT */
#include "formats/timed_walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

struct open_calls {
	uint32_t lane, chain;
	VEC(struct timed_call) open;
};

struct thread_walk {
	VEC(struct open_calls) stacks;
	struct map stack_of; /* chain -> index in stacks */
	size_t stack_i;
	uint64_t last;	    /* time of the last record that concerns it */
	uint64_t out_since; /* off the CPU since then, plus 1; 0: it is not */
	bool is_ready;
};

struct walker {
	const struct profile *p;
	const struct trace_reader *r;
	struct export_stacks *stacks;
	const struct timed_visitor *visitor;
	void *to;
	struct thread_walk *threads;
	uint32_t n_lanes;
};

const char *timed_mark_name(enum timed_mark_kind kind)
{
	static const char *const names[TIMED_N_MARKS] = {
		[TIMED_MARK_LOST_SAMPLES] = "samples were lost",
		[TIMED_MARK_LOST_EVENTS] = "events were lost",
		[TIMED_MARK_LOST_RECORDS] = "records were lost",
		[TIMED_MARK_NOTE] = "note",
		[TIMED_MARK_THREAD_ENDED] = "thread ended",
	};

	return names[kind];
}

bool timed_mark_is_loss(enum timed_mark_kind kind)
{
	return kind <= TIMED_MARK_NOTE;
}

static bool is_wanted(const struct walker *w, uint64_t thread)
{
	return thread && thread < w->p->n_threads && w->p->threads[thread].is_wanted;
}

static void note_last(struct walker *w, uint32_t thread, uint64_t time)
{
	struct thread_walk *t = &w->threads[thread];

	t->last = time > t->last ? time : t->last;
}

/* ---- calls ---- */

static void change_stack(struct walker *w, uint32_t thread, uint64_t chain)
{
	struct thread_walk *t = &w->threads[thread];
	bool is_new;
	uint64_t *i = map_ensure(&t->stack_of, chain, &is_new);

	if (is_new) {
		struct open_calls fresh = {.lane = t->stacks.n ? w->n_lanes++ : thread,
			.chain = (uint32_t)t->stacks.n};

		*i = t->stacks.n;
		vec_push(&t->stacks, fresh);
	}
	t->stack_i = (size_t)*i;
}

static struct open_calls *calls_of(struct walker *w, uint32_t thread)
{
	struct thread_walk *t = &w->threads[thread];

	if (!t->stacks.n)
		change_stack(w, thread, 0);
	return &t->stacks.v[t->stack_i];
}

static void enter(struct walker *w, uint32_t thread, uint64_t time, uint32_t frame)
{
	struct open_calls *calls = calls_of(w, thread);
	struct timed_call call = {.thread = thread,
		.lane = calls->lane,
		.chain = calls->chain,
		.function = export_stacks_function(w->stacks, frame),
		.frame = frame,
		.depth = (uint32_t)calls->open.n,
		.from = time};

	vec_push(&calls->open, call);
	if (w->visitor->enter)
		w->visitor->enter(w->to, &call);
}

static void leave_down_to(struct walker *w, struct open_calls *calls, size_t n, uint64_t time)
{
	while (calls->open.n > n) {
		struct timed_call *call = &calls->open.v[--calls->open.n];

		call->to = time;
		if (w->visitor->leave)
			w->visitor->leave(w->to, call);
	}
}

/* Frame 0: whatever was entered last. */
static void leave(struct walker *w, uint32_t thread, uint64_t time, uint32_t frame)
{
	struct open_calls *calls = calls_of(w, thread);
	uint32_t function = frame ? export_stacks_function(w->stacks, frame) : 0;
	size_t i = calls->open.n;

	while (i > 0 && function && calls->open.v[i - 1].function != function)
		i--;
	if (i)
		leave_down_to(w, calls, i - 1, time);
}

static void routine_record(struct walker *w, const struct trace_record *record, uint32_t thread)
{
	bool is_exit = record->minor & RECORD_MINOR_EXIT;
	uint64_t frame;

	if (((record->minor & ~RECORD_MINOR_EXIT) != RECORD_ROUTINE_ENTER &&
		    record->minor != RECORD_ROUTINE_OPEN) ||
		trace_record_numbers(w->r, record, &frame, 1, NULL) < 0 ||
		frame >= trace_reader_n_frames(w->r) || (!frame && !is_exit))
		return;
	note_last(w, thread, record->time);
	if (is_exit)
		leave(w, thread, record->time, (uint32_t)frame);
	else
		enter(w, thread, record->time, (uint32_t)frame);
}

static void chain_record(struct walker *w, const struct trace_record *record, uint32_t thread)
{
	uint64_t chain;

	if (record->minor != RECORD_HOOK_CHAIN ||
		trace_record_numbers(w->r, record, &chain, 1, NULL) < 0)
		return;
	calls_of(w, thread); /* chain 0 is the first of its stacks */
	change_stack(w, thread, chain);
}

/* ---- samples ---- */

static void give_sample(
	struct walker *w, const struct trace_record *record, struct sample_view *sample)
{
	const struct trace_stream *stream = trace_reader_stream(w->r, record->stream);

	if (!is_wanted(w, sample->thread))
		return;
	note_last(w, sample->thread, record->time);
	if (!w->visitor->sample || !sample_view_counts(w->p, sample))
		return;
	sample->time = record->time;
	sample->cpu = stream->kind == STREAM_KIND_CPU ? (int64_t)stream->number : -1;
	w->visitor->sample(
		w->to, sample, sample_weight(&w->p->weighing, sample->metric, sample->weight));
}

static void sample_record(struct walker *w, const struct trace_record *record)
{
	struct sample_view sample = {.kind = SAMPLE_KIND_SAMPLE};
	struct trace_sample s;

	if (record->minor != RECORD_MINOR_STACK || trace_record_sample(w->r, record, &s, NULL) < 0)
		return;
	sample.thread = s.thread;
	sample.stack = s.stack;
	sample.metric = s.metric;
	sample.weight = s.weight;
	give_sample(w, record, &sample);
}

/* ---- waits, and what befell threads ---- */

static void switch_record(struct walker *w, const struct trace_record *record)
{
	bool is_out = record->minor == RECORD_SWITCH_OUT;
	uint64_t numbers[2] = {0}; /* thread, preempted? */
	struct thread_walk *t;

	if ((!is_out && record->minor != RECORD_SWITCH_IN) ||
		trace_record_numbers(w->r, record, numbers, is_out ? 2 : 1, NULL) < 0 ||
		!is_wanted(w, numbers[0]))
		return;
	t = &w->threads[numbers[0]];
	note_last(w, (uint32_t)numbers[0], record->time);
	if (!is_out && t->out_since && w->visitor->wait) {
		struct timed_wait wait = {
			(uint32_t)numbers[0], t->out_since - 1, record->time, t->is_ready};

		w->visitor->wait(w->to, &wait);
	}
	t->out_since = is_out ? record->time + 1 : 0;
	t->is_ready = numbers[1] != 0;
}

static void give_mark(struct walker *w, const struct timed_mark *mark)
{
	if (w->visitor->mark)
		w->visitor->mark(w->to, mark);
}

static void thread_record(struct walker *w, const struct trace_record *record)
{
	struct timed_mark mark = {
		.kind = TIMED_MARK_THREAD_ENDED, .time = record->time, .reason = ""};
	struct sample_view tick;
	uint64_t thread;

	if (record->minor == RECORD_THREAD_TICK) {
		if (sample_view_tick(w->r, record, &tick))
			give_sample(w, record, &tick);
		return;
	}
	if (record->minor != RECORD_THREAD_ENDED ||
		trace_record_numbers(w->r, record, &thread, 1, NULL) < 0 || !is_wanted(w, thread))
		return;
	mark.thread = (uint32_t)thread;
	give_mark(w, &mark);
	w->threads[thread].out_since = 0;
}

static void loss_record(struct walker *w, const struct trace_record *record)
{
	static const enum timed_mark_kind kinds[] = {
		[RECORD_LOSS_SAMPLES] = TIMED_MARK_LOST_SAMPLES,
		[RECORD_LOSS_EVENTS] = TIMED_MARK_LOST_EVENTS,
		[RECORD_LOSS_RECORDS] = TIMED_MARK_LOST_RECORDS,
		[RECORD_LOSS_NOTE] = TIMED_MARK_NOTE,
	};
	struct timed_mark mark = {.time = record->time, .reason = ""};
	uint64_t numbers[2]; /* count, reason */

	if (record->minor < RECORD_LOSS_SAMPLES || record->minor > RECORD_LOSS_NOTE ||
		trace_record_numbers(w->r, record, numbers, 2, NULL) < 0)
		return;
	mark.kind = kinds[record->minor];
	mark.n = numbers[0];
	if (numbers[1] < trace_reader_n_strings(w->r))
		mark.reason = trace_reader_string(w->r, (uint32_t)numbers[1]);
	give_mark(w, &mark);
}

/* ---- the walk ---- */

static void take_record(struct walker *w, const struct trace_record *record)
{
	const struct trace_stream *stream = trace_reader_stream(w->r, record->stream);
	uint32_t thread = stream->kind == STREAM_KIND_THREAD ? stream->number : 0;

	switch (record->major) {
	case RECORD_MAJOR_STACK_SAMPLE:
		sample_record(w, record);
		break;
	case RECORD_MAJOR_ROUTINE:
	case RECORD_MAJOR_INTERPRETED:
		if (is_wanted(w, thread))
			routine_record(w, record, thread);
		break;
	case RECORD_MAJOR_HOOK:
		if (is_wanted(w, thread))
			chain_record(w, record, thread);
		break;
	case RECORD_MAJOR_SWITCH:
		switch_record(w, record);
		break;
	case RECORD_MAJOR_THREAD:
		thread_record(w, record);
		break;
	case RECORD_MAJOR_LOSS:
		loss_record(w, record);
		break;
	}
}

static void end_threads(struct walker *w)
{
	for (uint32_t id = 1; id < w->p->n_threads; id++) {
		struct thread_walk *t = &w->threads[id];

		for (size_t i = 0; i < t->stacks.n; i++) {
			leave_down_to(w, &t->stacks.v[i], 0, t->last);
			vec_release(&t->stacks.v[i].open);
		}
		vec_release(&t->stacks);
		map_release(&t->stack_of);
	}
}

int timed_walk(struct export_stacks *stacks, const struct timed_visitor *visitor, void *to,
	struct err *err)
{
	const struct profile *p = stacks->profile;
	struct walker w = {.p = p,
		.r = p->reader,
		.stacks = stacks,
		.visitor = visitor,
		.to = to,
		.n_lanes = p->n_threads};
	struct trace_record record;
	struct trace_cursor *cursor;
	struct err damage = {0};
	int rc = trace_cursor_open(&cursor, w.r, TRACE_ALL_STREAMS, p->from, p->to, err);

	if (rc < 0)
		return rc;
	w.threads = mem_calloc(p->n_threads, sizeof(*w.threads));
	while ((rc = trace_cursor_next(cursor, &record, &damage)) != 0)
		if (rc > 0)
			take_record(&w, &record);
	trace_cursor_close(cursor);
	end_threads(&w);
	free(w.threads);
	return 0;
}
