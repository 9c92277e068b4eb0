/* SPDX-License-Identifier: MIT */
#include "calltree/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "calltree/sample_walk.h"

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
};

static uint64_t column_ns(const struct timeline *t)
{
	uint64_t ns = (t->to - t->from) / t->n_columns;

	return ns ? ns : 1;
}

static uint32_t column_of(const struct timeline *t, uint64_t time)
{
	uint64_t column = (time - t->from) / column_ns(t);

	return column < t->n_columns ? (uint32_t)column : t->n_columns - 1;
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
	uint64_t end = w->p->to < UINT64_MAX && w->last < w->t->to ? w->t->to : w->last;

	for (size_t k = 0; k < w->stacks.n; k++) {
		struct open_stack *s = &w->stacks.v[k];

		while (s->open.n) {
			const struct open_span *o = &s->open.v[--s->open.n];

			add_span(w, (uint32_t)s->open.n, o->frame, o->from, end);
		}
	}
}

/* ---- records ---- */

static void note_busy(struct walker *w, uint32_t thread, uint64_t time)
{
	if (time >= w->t->from && time < w->t->to)
		w->t->busy[(size_t)thread * w->t->n_columns + column_of(w->t, time)]++;
}

static void routine_record(struct walker *w, const struct trace_record *record, uint32_t thread)
{
	uint64_t frame;

	if (trace_record_numbers(w->r, record, &frame, 1, NULL) < 0 ||
		frame >= trace_reader_n_frames(w->r))
		return;
	note_busy(w, thread, record->time);
	if (thread != w->t->thread)
		return;
	w->last = record->time;
	if (record->minor & RECORD_MINOR_EXIT)
		leave(w, record->time, (uint32_t)frame);
	else
		enter(w, record->time, (uint32_t)frame);
}

static void sample_record(struct walker *w, const struct trace_record *record)
{
	struct timeline *t = w->t;
	struct timeline_point *last = t->points.n ? &t->points.v[t->points.n - 1] : NULL;
	struct trace_sample s;

	if (record->time < t->from || trace_record_sample(w->r, record, &s, NULL) < 0 ||
		!w->p->threads[s.thread].is_wanted)
		return;
	note_busy(w, s.thread, record->time);
	if (s.thread != t->thread || !s.stack)
		return;
	if (last && column_of(t, last->time) == column_of(t, record->time)) {
		last->n++;
		return;
	}
	vec_push(&t->points, ((struct timeline_point){
				     record->time, trace_reader_stack(w->r, s.stack)->frame, 1}));
}

static void take_record(struct walker *w, const struct trace_record *record)
{
	const struct trace_stream *stream = trace_reader_stream(w->r, record->stream);
	uint32_t thread = stream->kind == STREAM_KIND_THREAD ? stream->number : 0;
	uint64_t chain;

	if (record->major == RECORD_MAJOR_STACK_SAMPLE && record->minor == RECORD_MINOR_STACK) {
		sample_record(w, record);
		return;
	}
	if (!thread || thread >= w->p->n_threads || !w->p->threads[thread].is_wanted)
		return;
	if (record->major == RECORD_MAJOR_ROUTINE || record->major == RECORD_MAJOR_INTERPRETED)
		routine_record(w, record, thread);
	else if (record->major == RECORD_MAJOR_HOOK && record->minor == RECORD_HOOK_CHAIN &&
		 thread == w->t->thread && trace_record_numbers(w->r, record, &chain, 1, NULL) >= 0)
		change_stack(w, chain);
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

static uint32_t busiest(const struct profile *p)
{
	uint32_t best = 0;
	uint64_t most = 0;

	for (uint32_t id = 1; id < p->n_threads; id++) {
		uint64_t n = p->threads[id].samples + p->threads[id].events;

		if (p->threads[id].is_wanted && n > most) {
			most = n;
			best = id;
		}
	}
	return best ? best : busiest_of_all(p);
}

/* The records before the window say what was open when it began. */
static int walk(struct walker *w, struct err *err)
{
	struct trace_record record;
	struct trace_cursor *cursor;
	struct err damage = {0};
	int rc = trace_cursor_open(&cursor, w->r, TRACE_ALL_STREAMS, 0, w->t->to, err);

	if (rc < 0)
		return rc;
	while ((rc = trace_cursor_next(cursor, &record, &damage)) != 0)
		if (rc > 0)
			take_record(w, &record);
		else
			w->t->is_cut = true;
	trace_cursor_close(cursor);
	return 0;
}

int timeline_init(struct timeline *t, const struct profile *p, uint32_t thread, uint32_t n_columns,
	struct err *err)
{
	struct walker w = {.t = t, .p = p, .r = p->reader};
	int rc;

	memset(t, 0, sizeof(*t));
	t->from = p->from > p->start ? p->from : p->start;
	t->to = p->to < UINT64_MAX ? p->to : p->end + 1;
	if (t->to <= t->from)
		t->to = t->from + 1;
	t->thread = thread ? thread : busiest(p);
	t->n_columns =
		n_columns && n_columns < TIMELINE_COLUMNS_MAX ? n_columns : TIMELINE_COLUMNS_MAX;
	t->n_threads = p->n_threads;
	t->busy = mem_calloc((size_t)p->n_threads * t->n_columns + 1, sizeof(*t->busy));
	w.last_of_row = mem_calloc(TIMELINE_ROWS_MAX, sizeof(*w.last_of_row));
	change_stack(&w, 0);
	rc = walk(&w, err);
	end_open(&w);
	for (size_t k = 0; k < w.stacks.n; k++)
		vec_release(&w.stacks.v[k].open);
	vec_release(&w.stacks);
	map_release(&w.stack_of);
	free(w.last_of_row);
	if (rc < 0)
		timeline_release(t);
	return rc;
}

void timeline_release(struct timeline *t)
{
	vec_release(&t->spans);
	vec_release(&t->points);
	free(t->busy);
	memset(t, 0, sizeof(*t));
}
