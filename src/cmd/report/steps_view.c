/* SPDX-License-Identifier: MIT */
#include "cmd/report/steps_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Data belong to the run before them. A run that is longer has none, or its data are not found. */
#define DATA_AHEAD_MAX (UINT64_C(1) << 20)

/* ---- which threads ---- */

static int select_threads(struct steps_view *v, struct err *err)
{
	const struct report *report = v->report;
	const char *wanted = report->selection->thread;
	uint32_t n = steps_n_threads(report->steps);
	uint64_t longest = 0;
	bool found = false;

	v->sources = mem_calloc((size_t)n + 1, sizeof(*v->sources));
	v->source_of = mem_calloc((size_t)n + 1, sizeof(*v->source_of));
	for (uint32_t i = 0; i < n; i++) {
		const struct step_thread *t = steps_thread(report->steps, i);

		if (wanted && !step_thread_is(t, wanted))
			continue;
		found = true;
		longest = t->n_steps > longest ? t->n_steps : longest;
		if (report->options->at && report->options->at >= t->n_steps)
			continue;
		v->source_of[i] = (uint32_t)v->n_sources;
		v->sources[v->n_sources++] = (struct steps_source){.thread = t, .thread_i = i};
	}
	if (!found && !wanted)
		return err_set(err, ERR_NOT_FOUND, "'%s': has no steps of any thread",
			trace_reader_name(report->reader));
	if (!found)
		return err_set(err, ERR_NOT_FOUND, "'%s': has no steps of a thread '%s'",
			trace_reader_name(report->reader), wanted);
	if (!v->n_sources)
		return err_set(err, ERR_NOT_FOUND,
			"'%s': --at: there is no step %" PRIu64 " (%" PRIu64 " steps)",
			trace_reader_name(report->reader), report->options->at, longest);
	return 0;
}

/* ---- where they begin ---- */

static uint64_t add_times(uint64_t start, uint64_t time)
{
	return time > UINT64_MAX - start ? UINT64_MAX : start + time;
}

static void begin_merge(struct steps_view *v)
{
	uint32_t *threads = mem_calloc(v->n_sources, sizeof(*threads));

	for (size_t i = 0; i < v->n_sources; i++)
		threads[i] = v->sources[i].thread_i;
	v->merge = step_merge_new(v->report->steps, threads, (uint32_t)v->n_sources);
	if (v->from > v->start)
		step_merge_seek_time(v->merge, v->from);
	free(threads);
}

int steps_view_open(struct steps_view *v, const struct report *report, struct err *err)
{
	int rc;

	memset(v, 0, sizeof(*v));
	v->report = report;
	v->start = trace_reader_start(report->reader);
	v->from = add_times(v->start, report->selection->from);
	v->to = add_times(v->start, report->selection->to);
	v->has_data = !report->options->fold &&
		      trace_reader_has_kind(report->reader, RECORD_MAJOR_STEP, RECORD_STEP_DATA);
	rc = select_threads(v, err);
	if (rc < 0)
		steps_view_close(v);
	else if (report->options->interleave)
		begin_merge(v);
	return rc;
}

static int open_cursor(const struct steps_view *v, const struct steps_source *source,
	struct step_cursor **cursor, struct err *err)
{
	const struct report_options *o = v->report->options;
	int rc = step_cursor_open(cursor, v->report->steps, source->thread_i, err);

	if (rc < 0)
		return rc;
	if (o->at)
		step_cursor_seek(*cursor, o->at > o->back ? o->at - o->back : 0);
	else if (v->from > v->start)
		step_cursor_seek_time(*cursor, v->from);
	return 0;
}

static int source_open(struct steps_view *v, struct steps_source *source, struct err *err)
{
	int rc = open_cursor(v, source, &source->cursor, err);

	if (rc == 0 && v->has_data)
		rc = open_cursor(v, source, &source->data.cursor, err);
	return rc;
}

static void source_close(struct steps_source *source)
{
	step_cursor_close(source->cursor);
	step_cursor_close(source->data.cursor);
	source->cursor = source->data.cursor = NULL;
}

void steps_view_close(struct steps_view *v)
{
	for (size_t i = 0; i < v->n_sources; i++)
		source_close(&v->sources[i]);
	free(v->sources);
	free(v->source_of);
	step_merge_free(v->merge);
	memset(v, 0, sizeof(*v));
}

/* ---- walking ---- */

static bool is_behind(const struct steps_view *v, const struct step_item *item)
{
	return item->time >= v->to && v->to != UINT64_MAX;
}

/* 1: source->item is the next one. */
static int source_next(struct steps_view *v, struct steps_source *source, struct err *err)
{
	int rc = source->cursor ? 0 : source_open(v, source, err);

	if (rc == 0)
		rc = step_cursor_next(source->cursor, &source->item);
	return rc == 1 && is_behind(v, &source->item) ? 0 : rc;
}

static int next_in_turn(struct steps_view *v, struct steps_source **out, struct err *err)
{
	while (v->source_i < v->n_sources) {
		int rc = source_next(v, &v->sources[v->source_i], err);

		if (rc != 0) {
			*out = &v->sources[v->source_i];
			return rc;
		}
		source_close(&v->sources[v->source_i++]);
	}
	return 0;
}

static int next_by_time(struct steps_view *v, struct steps_source **out, struct err *err)
{
	struct step_item item;
	uint32_t thread;
	int rc = step_merge_next(v->merge, &thread, &item);

	if (rc != 1 || is_behind(v, &item))
		return 0;
	*out = &v->sources[v->source_of[thread]];
	(*out)->item = item;
	if (v->has_data && !(*out)->data.cursor)
		rc = open_cursor(v, *out, &(*out)->data.cursor, err);
	return rc < 0 ? rc : 1;
}

int steps_view_next(
	struct steps_view *v, struct steps_source **source, struct step_item *item, struct err *err)
{
	int rc = v->merge ? next_by_time(v, source, err) : next_in_turn(v, source, err);

	if (rc == 1)
		*item = (*source)->item;
	return rc;
}

/* ---- data ---- */

/* The feed has a datum of the step or a later one, unless there is none near. */
static bool feed_reach(struct step_data_feed *f, uint64_t step)
{
	struct step_item item;

	while (!f->has_datum || f->datum.at < step) {
		f->has_datum = f->has_walk && step_data_next(&f->walk, &f->datum) == 1;
		if (f->has_datum)
			continue;
		f->has_walk = false;
		if (f->is_ended || f->seen > step + DATA_AHEAD_MAX)
			return false;
		f->is_ended = step_cursor_next(f->cursor, &item) != 1;
		if (f->is_ended)
			return false;
		if (item.kind == STEP_ITEM_STEPS) {
			f->seen = item.first + item.n;
			f->space = item.space;
		}
		f->time = item.time;
		f->has_walk = item.kind == STEP_ITEM_DATA && step_data_open(&f->walk, item.data);
	}
	return true;
}

bool steps_view_datum(struct steps_source *source, uint64_t step, struct step_datum *datum)
{
	struct step_data_feed *f = &source->data;

	if (!f->cursor || !feed_reach(f, step) || f->datum.at != step)
		return false;
	*datum = f->datum;
	f->has_datum = false;
	return true;
}

bool steps_view_where(const struct steps_view *v, const struct steps_source *source,
	const struct step_datum *datum, struct step_where *where)
{
	return steps_where(
		v->report->steps, source->data.space, datum->addr, source->data.time, where);
}

void steps_view_note_opening(const struct report *report)
{
	const char *sentence;
	uint32_t n = steps_n_damaged(report->steps, &sentence);

	report->loss->is_cut = n || trace_reader_is_recovered(report->reader, NULL) ||
			       trace_reader_n_damaged_tables(report->reader, NULL);
	if (n)
		loss_add_reason(report->loss, sentence, n);
}

void steps_view_note_item(struct loss *loss, const struct step_item *item)
{
	uint64_t n;

	if (item->kind == STEP_ITEM_DAMAGE) {
		loss->is_cut = true;
		loss_add_reason(loss, item->sentence, 1);
	} else if (item->kind == STEP_ITEM_MARK && item->mark.kind == STEP_MARK_LOST) {
		n = item->mark.a > 0 ? (uint64_t)item->mark.a : 1;
		loss->events_lost += n;
		loss_add_reason(loss, "steps that were executed are not in the trace", n);
	}
}

/* ---- branches ---- */

static int walk_branches(struct branch_table *t, struct steps_view *view, struct err *err)
{
	struct steps_source *source = NULL, *last = NULL;
	struct step_item item;
	int rc;

	while ((rc = steps_view_next(view, &source, &item, err)) > 0) {
		if (source != last)
			branch_table_begin_thread(t);
		last = source;
		branch_table_add(t, &item);
		steps_view_note_item(view->report->loss, &item);
	}
	return rc;
}

int branches_read(struct branch_table *t, const struct report *report, struct err *err)
{
	struct report_options options = *report->options;
	struct report in_turn = *report;
	struct steps_view view;
	int rc;

	options.interleave = false; /* the table follows one thread at a time */
	in_turn.options = &options;
	rc = steps_view_open(&view, &in_turn, err);
	if (rc < 0)
		return rc;
	steps_view_note_opening(report);
	branch_table_init_steps(t, report->steps, report->options->returns);
	rc = walk_branches(t, &view, err);
	steps_view_close(&view);
	loss_sort_reasons(report->loss);
	if (rc < 0)
		branch_table_release(t);
	else
		branch_table_finish_steps(t, report->steps);
	return rc;
}

void branches_print_loss(const struct report *report)
{
	const struct loss *loss = report->loss;
	const char *why;

	if (trace_reader_is_recovered(report->reader, &why))
		fprintf(report->out, "the end of the trace is missing: %s\n", why);
	for (size_t i = 0; i < loss->n_reasons; i++)
		fprintf(report->out, "missing: %s (%" PRIu64 ")\n", loss->reasons[i].phrase,
			loss->reasons[i].n);
}
