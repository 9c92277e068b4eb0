/* SPDX-License-Identifier: MIT */
#include "calltree/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "calltree/sample_walk.h"
#include "calltree/timeline_busy.h"
#include "trace/step_records.h"

struct open_span {
	uint64_t from;
	uint32_t frame;
};

/* One stack of the thread; it has several when it runs coroutines. */
struct open_stack {
	VEC(struct open_span) open;
};

struct walker {
	struct timeline *t;
	const struct profile *p;
	const struct trace_reader *r;
	VEC(struct open_stack) stacks;
	struct map stack_of; /* chain -> index in stacks */
	size_t stack_i;
	uint32_t *last_of_row; /* index of its last span + 1 */
	uint64_t last;	       /* time of the last record of the thread */
	uint32_t wait_metric;  /* samples of it are waits; 0: there are none */
	uint64_t out_since; /* the thread has been off the CPU since then, plus 1; 0: it has not */
	bool is_preempted, is_over;
	bool is_part;	/* records behind the window are not looked at */
	uint64_t *told; /* by thread: until when its steps are told */
	uint32_t last_mark
		[STEP_N_MARKS]; /* by kind: index of its last one in steps + 1; 0: the run */
};

static uint64_t column_ns(const struct timeline *t)
{
	uint64_t ns = (t->to - t->from) / t->n_columns;

	return ns ? ns : 1;
}

/* ---- calls ---- */

static void add_span(struct walker *w, uint32_t row, uint32_t frame, uint64_t from, uint64_t to)
{
	struct timeline *t = w->t;
	uint64_t narrow = column_ns(t);
	struct timeline_span *last;

	if (to < t->from || from >= t->to)
		return;
	if (row >= TIMELINE_ROWS_MAX) {
		t->n_too_deep++;
		return;
	}
	from = from < t->from ? t->from : from;
	to = to > t->to ? t->to : to;
	last = w->last_of_row[row] ? &t->spans.v[w->last_of_row[row] - 1] : NULL;
	/* A column's worth of short ones, and no more, so that gaps stay to be seen. */
	if (last && to - from < narrow && from - last->to < narrow &&
		to - last->from < 2 * narrow) {
		last->to = to;
		last->n++;
		return;
	}
	vec_push(&t->spans, ((struct timeline_span){from, to, row, frame, 1}));
	w->last_of_row[row] = (uint32_t)t->spans.n;
}

static void enter(struct walker *w, uint64_t time, uint32_t frame)
{
	vec_push(&w->stacks.v[w->stack_i].open, ((struct open_span){time, frame}));
}

/* What is open above the one that ends has ended with it; 0: whatever was entered last. */
static void leave(struct walker *w, uint64_t time, uint32_t frame)
{
	struct open_stack *s = &w->stacks.v[w->stack_i];
	size_t i = s->open.n;

	while (i > 0 && frame && s->open.v[i - 1].frame != frame)
		i--;
	if (!i)
		return;
	while (s->open.n >= i) {
		const struct open_span *o = &s->open.v[--s->open.n];

		add_span(w, (uint32_t)s->open.n, o->frame, o->from, time);
	}
}

static void change_stack(struct walker *w, uint64_t chain)
{
	bool is_new;
	uint64_t *i = map_ensure(&w->stack_of, chain, &is_new);

	if (is_new) {
		*i = w->stacks.n;
		vec_push(&w->stacks, (struct open_stack){0});
	}
	w->stack_i = (size_t)*i;
}

static void end_open(struct walker *w)
{
	uint64_t end = w->is_part && w->last < w->t->to ? w->t->to : w->last;

	for (size_t k = 0; k < w->stacks.n; k++) {
		struct open_stack *s = &w->stacks.v[k];

		while (s->open.n) {
			const struct open_span *o = &s->open.v[--s->open.n];

			add_span(w, (uint32_t)s->open.n, o->frame, o->from, end);
		}
	}
}

/* ---- waits ---- */

/* A sample says where it waited, a switch says when: both are of one wait, in any order. */
static void add_wait(struct walker *w, uint64_t from, uint64_t to, uint32_t frame, bool is_ready)
{
	struct timeline *t = w->t;
	struct timeline_wait *last = t->waits.n ? &t->waits.v[t->waits.n - 1] : NULL;
	uint64_t narrow = column_ns(t);

	if (to <= t->from || from >= t->to || to <= from)
		return;
	from = from < t->from ? t->from : from;
	to = to > t->to ? t->to : to;
	if (last && from < last->to) {
		last->to = to > last->to ? to : last->to;
		last->frame = last->n == 1 && frame ? frame : last->frame;
		last->is_ready |= last->n == 1 && is_ready;
		return;
	}
	if (last && last->is_ready == is_ready && to - from < narrow && from - last->to < narrow &&
		to - last->from < 2 * narrow) {
		last->to = to;
		last->n++;
		return;
	}
	vec_push(&t->waits, ((struct timeline_wait){from, to, frame, 1, is_ready}));
}

/* Threads wait in the kernel, for which the program's own frame below it asked. */
static uint32_t waiting_frame(const struct trace_reader *r, uint32_t stack)
{
	uint32_t innermost = stack ? trace_reader_stack(r, stack)->frame : 0;

	for (; stack; stack = trace_reader_stack(r, stack)->parent) {
		uint32_t frame = trace_reader_stack(r, stack)->frame;
		enum frame_kind kind = trace_reader_frame(r, frame)->kind;

		if (kind != FRAME_KIND_KERNEL && kind != FRAME_KIND_MARKER)
			return frame;
	}
	return innermost;
}

static void wait_sample(struct walker *w, uint64_t time, const struct trace_sample *s)
{
	uint64_t ns = s->weight < time ? s->weight : time;

	if (s->thread == w->t->thread)
		add_wait(w, time - ns, time, waiting_frame(w->r, s->stack), false);
}

static void switch_record(struct walker *w, const struct trace_record *record)
{
	bool is_out = record->minor == RECORD_SWITCH_OUT;
	uint64_t numbers[2] = {0}; /* thread, preempted? */

	if (trace_record_numbers(w->r, record, numbers, is_out ? 2 : 1, NULL) < 0 ||
		numbers[0] != w->t->thread)
		return;
	if (!is_out && w->out_since)
		add_wait(w, w->out_since - 1, record->time, 0, w->is_preempted);
	w->out_since = is_out ? record->time + 1 : 0;
	w->is_preempted = numbers[1] != 0;
}

/* A thread that has ended does not wait. */
static void end_waits(struct walker *w)
{
	if (w->out_since && !w->is_over)
		add_wait(w, w->out_since - 1, w->t->to, 0, w->is_preempted);
}

static void thread_record(struct walker *w, const struct trace_record *record)
{
	uint64_t thread;

	if (record->minor == RECORD_THREAD_ENDED &&
		trace_record_numbers(w->r, record, &thread, 1, NULL) >= 0 && thread == w->t->thread)
		w->is_over = true;
}

/* ---- executed instructions ---- */

static void spread_busy(struct walker *w, uint32_t thread, uint64_t from, uint64_t to, uint64_t n)
{
	struct timeline *t = w->t;
	uint32_t *busy = t->busy + (size_t)thread * t->n_columns;
	uint32_t first, last;
	uint64_t share;

	if (to < t->from || from >= t->to)
		return;
	first = timeline_column(t, from < t->from ? t->from : from);
	last = timeline_column(t, to >= t->to ? t->to - 1 : to);
	share = n / (last - first + 1);
	share = share ? share : 1;
	for (uint32_t k = first; k <= last; k++)
		busy[k] = busy[k] + share < UINT32_MAX ? busy[k] + (uint32_t)share : UINT32_MAX;
}

static void add_step(struct walker *w, const struct timeline_step *step)
{
	struct timeline *t = w->t;
	uint64_t narrow = column_ns(t);
	uint32_t *last_i = &w->last_mark[step->kind];
	struct timeline_step *last = *last_i ? &t->steps.v[*last_i - 1] : NULL;

	if (step->to < t->from || step->from >= t->to)
		return;
	if (last && step->to - step->from < narrow && step->from - last->to < narrow &&
		step->to - last->from < (step->kind ? narrow : 2 * narrow)) {
		last->to = step->to;
		last->n += step->n;
		return;
	}
	vec_push(&t->steps, *step);
	*last_i = (uint32_t)t->steps.n;
}

/* Instructions lie between the record before of their thread and this one. */
static void told_record(struct walker *w, const struct trace_record *record, uint32_t thread)
{
	uint64_t numbers[3]; /* kind, how many, string */
	struct timeline_step step = {record->time, record->time, 0, 0, 0};

	if (record->minor != RECORD_STEP_TOLD ||
		trace_record_numbers(w->r, record, numbers, 3, NULL) < 0 ||
		numbers[0] >= STEP_N_MARKS || numbers[2] >= trace_reader_n_strings(w->r))
		return;
	step.kind = (uint32_t)numbers[0];
	step.n = numbers[1];
	step.words = (uint32_t)numbers[2];
	if (!step.kind) {
		step.from = w->told[thread] ? w->told[thread] : record->time;
		spread_busy(w, thread, step.from, step.to, step.n);
	}
	w->told[thread] = record->time;
	if (thread == w->t->thread)
		add_step(w, &step);
}

/* ---- records ---- */

static void routine_record(struct walker *w, const struct trace_record *record, uint32_t thread)
{
	uint64_t frame;

	if (trace_record_numbers(w->r, record, &frame, 1, NULL) < 0 ||
		frame >= trace_reader_n_frames(w->r))
		return;
	timeline_note(w->t, thread, record->time, 1);
	if (thread != w->t->thread)
		return;
	w->last = record->time;
	if (record->minor & RECORD_MINOR_EXIT)
		leave(w, record->time, (uint32_t)frame);
	else
		enter(w, record->time, (uint32_t)frame);
}

static void add_point(struct walker *w, uint64_t time, uint32_t thread, uint32_t frame)
{
	struct timeline *t = w->t;
	struct timeline_point *last = t->points.n ? &t->points.v[t->points.n - 1] : NULL;

	if (time < t->from || !w->p->threads[thread].is_wanted)
		return;
	timeline_note(t, thread, time, 1);
	if (thread != t->thread || !frame)
		return;
	if (last && timeline_column(t, last->time) == timeline_column(t, time)) {
		last->n++;
		return;
	}
	vec_push(&t->points, ((struct timeline_point){time, frame, 1}));
}

static void sample_record(struct walker *w, const struct trace_record *record)
{
	struct trace_sample s;

	if (trace_record_sample(w->r, record, &s, NULL) < 0)
		return;
	if (w->wait_metric && s.metric == w->wait_metric)
		wait_sample(w, record->time, &s);
	else
		add_point(w, record->time, s.thread,
			s.stack ? trace_reader_stack(w->r, s.stack)->frame : 0);
}

static void tick_record(struct walker *w, const struct trace_record *record)
{
	struct sample_view tick;

	if (sample_view_tick(w->r, record, &tick))
		add_point(w, record->time, tick.thread, tick.frame);
}

/* Of the stream of a thread; 0: it is another one. */
static void own_record(struct walker *w, const struct trace_record *record, uint32_t thread)
{
	uint64_t chain;

	if (!thread || thread >= w->p->n_threads || !w->p->threads[thread].is_wanted)
		return;
	if (record->major == RECORD_MAJOR_ROUTINE || record->major == RECORD_MAJOR_INTERPRETED)
		routine_record(w, record, thread);
	else if (record->major == RECORD_MAJOR_STEP)
		told_record(w, record, thread);
	else if (record->major == RECORD_MAJOR_HOOK && record->minor == RECORD_HOOK_CHAIN &&
		 thread == w->t->thread && trace_record_numbers(w->r, record, &chain, 1, NULL) >= 0)
		change_stack(w, chain);
}

static void take_record(struct walker *w, const struct trace_record *record)
{
	const struct trace_stream *stream = trace_reader_stream(w->r, record->stream);

	if (record->major == RECORD_MAJOR_STACK_SAMPLE && record->minor == RECORD_MINOR_STACK)
		sample_record(w, record);
	else if (record->major == RECORD_MAJOR_SWITCH)
		switch_record(w, record);
	else if (record->major == RECORD_MAJOR_THREAD && record->minor == RECORD_THREAD_TICK)
		tick_record(w, record);
	else if (record->major == RECORD_MAJOR_THREAD)
		thread_record(w, record);
	else
		own_record(w, record, stream->kind == STREAM_KIND_THREAD ? stream->number : 0);
}

/* In a window without a record calls may be open all the same: the one with the longest stream of its own. */
static uint32_t busiest_of_all(const struct profile *p)
{
	const struct trace_reader *r = p->reader;
	uint32_t best = 0;
	uint64_t most = 0;

	for (uint32_t id = 1; id < trace_reader_n_streams(r); id++) {
		const struct trace_stream *s = trace_reader_stream(r, id);
		uint64_t n = trace_reader_stream_records(r, id);

		if (s->kind == STREAM_KIND_THREAD && s->number < p->n_threads &&
			p->threads[s->number].is_wanted && n > most) {
			most = n;
			best = s->number;
		}
	}
	return best;
}

/* The thread with most samples and events; where none has any, the one that waits most often. */
static uint32_t busiest(const struct profile *p)
{
	uint32_t best = 0, waiting = 0;
	uint64_t most = 0, most_waits = 0;

	for (uint32_t id = 1; id < p->n_threads; id++) {
		const struct profile_thread *thread = &p->threads[id];
		uint64_t n = thread->samples + thread->events;

		if (thread->is_wanted && n > most) {
			most = n;
			best = id;
		}
		if (thread->is_wanted && thread->switches > most_waits) {
			most_waits = thread->switches;
			waiting = id;
		}
	}
	best = best ? best : busiest_of_all(p);
	return best ? best : waiting;
}

/* The records before the window say what was open when it began. Of threads that are not drawn only the number of
 * calls is of interest. */
static int walk(struct walker *w, struct progress *progress, struct err *err)
{
	struct trace_record record;
	struct trace_cursor *cursor;
	struct err damage = {0};
	uint64_t n = 0;
	bool *is_counted = timeline_counted_streams(w->t, w->p);
	int rc = trace_cursor_open_some(&cursor, w->r, is_counted, 0, w->t->to, err);

	if (rc < 0) {
		free(is_counted);
		return rc;
	}
	progress_begin(progress, trace_reader_n_records(w->r));
	timeline_count(w->t, w->p, is_counted, progress);
	free(is_counted);
	while ((rc = trace_cursor_next(cursor, &record, &damage)) != 0) {
		if (rc > 0)
			take_record(w, &record);
		else
			w->t->is_cut = true;
		if (++n % PROGRESS_STEP == 0)
			progress_add(progress, PROGRESS_STEP);
		if (n % PROGRESS_STEP == 0 && progress_is_unwanted(progress))
			break;
	}
	trace_cursor_close(cursor);
	progress_end(progress);
	return progress_is_unwanted(progress)
		       ? err_set(err, ERR_FAILED, "'%s': nobody waits for this picture any more",
				 trace_reader_name(w->r))
		       : 0;
}

static uint32_t find_wait_metric(const struct trace_reader *r)
{
	for (uint32_t id = 1; id < trace_reader_n_metrics(r); id++)
		if (!strcmp(trace_reader_string(r, trace_reader_metric(r, id)->name), "wait"))
			return id;
	return 0;
}

/* True when it is a part of the trace. */
static bool take_window(struct timeline *t, const struct profile *p, uint64_t from, uint64_t to)
{
	uint64_t end = p->to < UINT64_MAX ? p->to : p->end + 1;
	uint64_t start = p->from > p->start ? p->from : p->start;

	t->from = from > start && from < end ? from : start;
	t->to = to < end ? to : end;
	if (t->to <= t->from)
		t->to = t->from + 1;
	return t->to < end || p->to < UINT64_MAX;
}

int timeline_init(struct timeline *t, const struct profile *p,
	const struct timeline_picture *picture, struct err *err)
{
	struct walker w = {.t = t, .p = p, .r = p->reader};
	uint32_t n_columns = picture->n_columns;
	int rc;

	memset(t, 0, sizeof(*t));
	w.is_part = take_window(t, p, picture->from, picture->to);
	t->thread = picture->thread ? picture->thread : busiest(p);
	t->n_columns =
		n_columns && n_columns < TIMELINE_COLUMNS_MAX ? n_columns : TIMELINE_COLUMNS_MAX;
	t->n_threads = p->n_threads;
	t->busy = mem_calloc((size_t)p->n_threads * t->n_columns + 1, sizeof(*t->busy));
	w.last_of_row = mem_calloc(TIMELINE_ROWS_MAX, sizeof(*w.last_of_row));
	w.told = mem_calloc(p->n_threads, sizeof(*w.told));
	w.wait_metric = find_wait_metric(p->reader);
	change_stack(&w, 0);
	rc = walk(&w, picture->progress, err);
	end_open(&w);
	end_waits(&w);
	for (size_t k = 0; k < w.stacks.n; k++)
		vec_release(&w.stacks.v[k].open);
	vec_release(&w.stacks);
	map_release(&w.stack_of);
	free(w.last_of_row);
	free(w.told);
	if (rc < 0)
		timeline_release(t);
	return rc;
}

void timeline_release(struct timeline *t)
{
	vec_release(&t->spans);
	vec_release(&t->points);
	vec_release(&t->waits);
	vec_release(&t->steps);
	free(t->busy);
	memset(t, 0, sizeof(*t));
}
