/* SPDX-License-Identifier: MIT */
#include "calltree/timeline_busy.h"

#include <stdlib.h>

#include "trace/record_run.h"

uint32_t timeline_column(const struct timeline *t, uint64_t time)
{
	double column = (double)(time - t->from) * t->n_columns / (double)(t->to - t->from);

	return column < t->n_columns ? (uint32_t)column : t->n_columns - 1;
}

void timeline_note(struct timeline *t, uint32_t thread, uint64_t time, uint64_t n)
{
	uint32_t *busy;

	if (time < t->from || time >= t->to)
		return;
	busy = &t->busy[(size_t)thread * t->n_columns + timeline_column(t, time)];
	*busy = *busy + n < UINT32_MAX ? *busy + (uint32_t)n : UINT32_MAX;
}

static bool is_call(const struct trace_kind *kind)
{
	return kind->major == RECORD_MAJOR_ROUTINE || kind->major == RECORD_MAJOR_INTERPRETED;
}

/* Records that may lie in the stream of a thread and are no calls: then each record is looked at. */
static bool has_calls_alone(const struct trace_reader *r)
{
	return !trace_reader_has_kind(r, RECORD_MAJOR_RESOURCE, 0) &&
	       !trace_reader_has_kind(r, RECORD_MAJOR_HOOK, RECORD_HOOK_CHAIN) &&
	       !trace_reader_has_kind(r, RECORD_MAJOR_STACK_EVENT, 0) &&
	       !trace_reader_has_kind(r, RECORD_MAJOR_TREE, 0) &&
	       !trace_reader_has_kind(r, RECORD_MAJOR_COUNT, 0);
}

bool *timeline_counted_streams(const struct timeline *t, const struct profile *p)
{
	const struct trace_reader *r = p->reader;
	bool *is_counted = mem_calloc(trace_reader_n_streams(r), sizeof(*is_counted));

	/* How much was executed between two times is spread over all columns between them. */
	if (trace_reader_has_kind(r, RECORD_MAJOR_STEP, 0))
		return is_counted;
	for (uint32_t id = 1; id < trace_reader_n_streams(r); id++) {
		const struct trace_stream *s = trace_reader_stream(r, id);

		is_counted[id] = s->kind == STREAM_KIND_THREAD && s->number &&
				 s->number < p->n_threads && s->number != t->thread;
	}
	return is_counted;
}

static void count_run(
	struct timeline *t, const struct trace_reader *r, struct trace_run *run, uint32_t thread)
{
	struct trace_run_record record;
	const uint8_t *behind;

	while (run->n_left && run->time < t->to) {
		behind = trace_run_peek(run, &record);
		if (!behind) {
			t->is_cut = true;
			return;
		}
		trace_run_take(run, &record, behind);
		if (is_call(trace_reader_kind(r, record.kind)))
			timeline_note(t, thread, record.time, 1);
	}
}

/* True when all of the chunk is in one column, or in none. */
static bool is_in_one(const struct timeline *t, uint64_t first, uint64_t last)
{
	return last < t->from || (first >= t->from && last < t->to &&
					 timeline_column(t, first) == timeline_column(t, last));
}

static void count_stream(struct timeline *t, const struct trace_reader *r, struct trace_runs *runs,
	uint32_t thread, struct progress *progress)
{
	bool has_plain = has_calls_alone(r);

	for (uint32_t i = 0; i < trace_runs_n_chunks(runs); i++) {
		struct trace_chunk chunk = trace_runs_chunk(runs, i);
		struct trace_run run;

		if (chunk.first_time >= t->to || progress_is_unwanted(progress))
			return;
		progress_add(progress, chunk.n_records);
		if (chunk.last_time < t->from)
			continue;
		if (has_plain && is_in_one(t, chunk.first_time, chunk.last_time)) {
			timeline_note(t, thread, chunk.first_time, chunk.n_records);
			continue;
		}
		trace_runs_seek(runs, i);
		if (trace_run_next(runs, &run, NULL) > 0)
			count_run(t, r, &run, thread);
		else
			t->is_cut = true;
	}
}

void timeline_count(struct timeline *t, const struct profile *p, const bool *is_counted,
	struct progress *progress)
{
	const struct trace_reader *r = p->reader;

	for (uint32_t id = 1; id < trace_reader_n_streams(r); id++) {
		uint32_t thread = trace_reader_stream(r, id)->number;
		struct trace_runs *runs;

		if (!is_counted[id] || !p->threads[thread].is_wanted)
			continue;
		if (trace_runs_open(&runs, r, id, NULL, NULL) < 0) {
			t->is_cut = true;
			continue;
		}
		count_stream(t, r, runs, thread, progress);
		trace_runs_close(runs);
	}
}
