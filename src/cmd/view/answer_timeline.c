/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "calltree/frame_names.h"
#include "calltree/timeline.h"
#include "cmd/view/engine.h"
#include "cmd/view/view_arrays.h"

#define COLUMNS 1200

/* Frames by the number that the answer gives them, in order of first use. */
struct used_names {
	const struct trace_reader *r;
	struct map number_of; /* frame -> number + 1 */
	struct buf texts;
	uint32_t n;
};

static uint32_t number_of(struct used_names *u, uint32_t frame)
{
	uint64_t *number = map_ensure(&u->number_of, frame, NULL);

	if (!*number) {
		struct frame_levels levels;

		frame_names_get(u->r, frame, &levels);
		buf_put_text(&u->texts, frame ? levels.v[levels.n - 1].name : "?");
		*number = ++u->n;
	}
	return (uint32_t)*number - 1;
}

static double since(const struct trace_reader *r, uint64_t time)
{
	return (double)(time - trace_reader_start(r));
}

static void put_spans(struct buf *out, const struct timeline *t, struct used_names *u)
{
	size_t n = t->spans.n;
	double *from = view_array(out, "span_from", VIEW_F64, n), *to;
	uint32_t *values;

	for (size_t i = 0; i < n; i++)
		from[i] = since(u->r, t->spans.v[i].from);
	to = view_array(out, "span_to", VIEW_F64, n);
	for (size_t i = 0; i < n; i++)
		to[i] = since(u->r, t->spans.v[i].to);
	values = view_array(out, "span_row", VIEW_U32, n);
	for (size_t i = 0; i < n; i++)
		values[i] = t->spans.v[i].row;
	values = view_array(out, "span_name", VIEW_U32, n);
	for (size_t i = 0; i < n; i++)
		values[i] = number_of(u, t->spans.v[i].frame);
	values = view_array(out, "span_n", VIEW_U32, n);
	for (size_t i = 0; i < n; i++)
		values[i] = t->spans.v[i].n;
}

static void put_points(struct buf *out, const struct timeline *t, struct used_names *u)
{
	size_t n = t->points.n;
	double *time = view_array(out, "sample_time", VIEW_F64, n);
	uint32_t *values;

	for (size_t i = 0; i < n; i++)
		time[i] = since(u->r, t->points.v[i].time);
	values = view_array(out, "sample_name", VIEW_U32, n);
	for (size_t i = 0; i < n; i++)
		values[i] = number_of(u, t->points.v[i].frame);
	values = view_array(out, "sample_n", VIEW_U32, n);
	for (size_t i = 0; i < n; i++)
		values[i] = t->points.v[i].n;
}

static void put_waits(struct buf *out, const struct timeline *t, struct used_names *u)
{
	size_t n = t->waits.n;
	double *from = view_array(out, "wait_from", VIEW_F64, n), *to;
	uint32_t *values;

	for (size_t i = 0; i < n; i++)
		from[i] = since(u->r, t->waits.v[i].from);
	to = view_array(out, "wait_to", VIEW_F64, n);
	for (size_t i = 0; i < n; i++)
		to[i] = since(u->r, t->waits.v[i].to);
	values = view_array(out, "wait_name", VIEW_U32, n);
	for (size_t i = 0; i < n; i++)
		values[i] = number_of(u, t->waits.v[i].frame);
	values = view_array(out, "wait_n", VIEW_U32, n);
	for (size_t i = 0; i < n; i++)
		values[i] = t->waits.v[i].n;
	values = view_array(out, "wait_ready", VIEW_U32, n);
	for (size_t i = 0; i < n; i++)
		values[i] = t->waits.v[i].is_ready;
}

static void put_steps(struct buf *out, const struct timeline *t, const struct trace_reader *r)
{
	size_t n = t->steps.n;
	double *values = view_array(out, "step_from", VIEW_F64, n);
	struct buf words = {0};
	uint32_t *kind;

	for (size_t i = 0; i < n; i++)
		values[i] = since(r, t->steps.v[i].from);
	values = view_array(out, "step_to", VIEW_F64, n);
	for (size_t i = 0; i < n; i++)
		values[i] = since(r, t->steps.v[i].to);
	values = view_array(out, "step_n", VIEW_F64, n);
	for (size_t i = 0; i < n; i++)
		values[i] = (double)t->steps.v[i].n;
	kind = view_array(out, "step_kind", VIEW_U32, n);
	for (size_t i = 0; i < n; i++)
		kind[i] = t->steps.v[i].kind;
	for (size_t i = 0; i < n; i++)
		buf_put_text(&words, trace_reader_string(r, t->steps.v[i].words));
	view_texts(out, "step_words", &words);
	buf_release(&words);
}

/* A part of the time has the lanes of all of it; a thread that only waits has one, too. */
static bool has_lane(const struct timeline *t, const struct profile *p, uint32_t id, bool is_part)
{
	const uint32_t *busy = t->busy + (size_t)id * t->n_columns;

	if (is_part && p->threads[id].is_wanted && p->threads[id].samples + p->threads[id].events)
		return true;
	if (p->threads[id].is_wanted && p->threads[id].switches)
		return true;
	for (uint32_t k = 0; k < t->n_columns; k++)
		if (busy[k])
			return true;
	return false;
}

/* Threads in the order of their ids, those alone of which something is there. */
static void put_threads(
	struct buf *out, const struct timeline *t, const struct profile *p, bool is_part)
{
	struct buf ids = {0}, names = {0};
	uint32_t n = 0, *which = mem_calloc(t->n_threads + 1, sizeof(*which)), *busy;

	for (uint32_t id = 1; id < t->n_threads; id++)
		if (has_lane(t, p, id, is_part))
			which[n++] = id;
	for (uint32_t i = 0; i < n; i++) {
		buf_put_text(
			&ids, p->threads[which[i]].root_name ? p->threads[which[i]].root_name : "");
		buf_put_text(&names, p->threads[which[i]].name);
	}
	view_texts(out, "thread_id", &ids);
	view_texts(out, "thread_name", &names);
	busy = view_array(out, "busy", VIEW_U32, (size_t)n * t->n_columns);
	for (uint32_t i = 0; i < n; i++)
		memcpy(busy + (size_t)i * t->n_columns, t->busy + (size_t)which[i] * t->n_columns,
			t->n_columns * sizeof(*busy));
	buf_release(&ids);
	buf_release(&names);
	free(which);
}

static void put_window(struct buf *out, const struct timeline *t, const struct trace_reader *r)
{
	double *window = view_array(out, "window", VIEW_F64, 4);

	window[0] = since(r, t->from);
	window[1] = since(r, t->to);
	window[2] = (double)t->n_columns;
	window[3] = (double)t->n_too_deep;
}

/* The picture that is asked for; times in the question are since the start. */
static int take_picture(const struct question *q, const struct trace_reader *r,
	struct timeline_picture *out, struct err *err)
{
	uint64_t columns = COLUMNS, from = 0, to = UINT64_MAX, start = trace_reader_start(r);

	if (question_u64(q, "columns", &columns, err) < 0 ||
		question_u64(q, "look-from", &from, err) < 0 ||
		question_u64(q, "look-to", &to, err) < 0)
		return err->code;
	out->from = from < UINT64_MAX - start ? start + from : UINT64_MAX;
	out->to = to < UINT64_MAX - start ? start + to : UINT64_MAX;
	out->thread = 0;
	out->progress = NULL;
	out->n_columns = columns < TIMELINE_COLUMNS_MAX ? (uint32_t)columns : 0;
	return 0;
}

int view_answer_timeline(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err)
{
	struct timeline_picture picture;
	struct used_names u = {0};
	struct buf drawn = {0};
	struct profile *p;
	struct timeline t;

	if (view_profile(e, q, &p, err) < 0 || take_picture(q, p->reader, &picture, err) < 0)
		return err->code;
	picture.progress = view_progress_of(e);
	if (timeline_init(&t, p, &picture, err) < 0)
		return err->code;
	u.r = p->reader;
	view_arrays_begin(out, 24);
	put_window(out, &t, u.r);
	put_threads(out, &t, p, question_text(q, "look-from") || question_text(q, "look-to"));
	buf_put_text(&drawn,
		t.thread && p->threads[t.thread].root_name ? p->threads[t.thread].root_name : "");
	view_texts(out, "thread", &drawn);
	put_spans(out, &t, &u);
	put_points(out, &t, &u);
	put_waits(out, &t, &u);
	put_steps(out, &t, u.r);
	view_texts(out, "name", &u.texts);
	buf_release(&drawn);
	buf_release(&u.texts);
	map_release(&u.number_of);
	timeline_release(&t);
	return 0;
}
