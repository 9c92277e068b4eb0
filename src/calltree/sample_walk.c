/* SPDX-License-Identifier: MIT */
#include "calltree/sample_walk.h"

int sample_walk_open(struct sample_walk *walk, const struct profile *profile, struct err *err)
{
	walk->profile = profile;
	return trace_cursor_open(
		&walk->cursor, profile->reader, TRACE_ALL_STREAMS, profile->from, profile->to, err);
}

void sample_walk_close(struct sample_walk *walk)
{
	trace_cursor_close(walk->cursor);
}

static bool view_stack(
	const struct trace_reader *r, const struct trace_record *record, struct sample_view *sample)
{
	struct trace_sample s;

	if (trace_record_sample(r, record, &s, NULL) < 0)
		return false;
	*sample = (struct sample_view){.kind = record->major == RECORD_MAJOR_STACK_EVENT
						       ? SAMPLE_KIND_EVENT
						       : SAMPLE_KIND_SAMPLE,
		.thread = s.thread,
		.stack = s.stack,
		.metric = s.metric,
		.weight = s.weight};
	return true;
}

bool sample_view_tick(
	const struct trace_reader *r, const struct trace_record *record, struct sample_view *sample)
{
	uint64_t numbers[4]; /* thread, frame, metric, weight */

	if (trace_record_numbers(r, record, numbers, 4, NULL) < 0 || !numbers[0] ||
		numbers[0] >= trace_reader_n_threads(r) || !numbers[1] ||
		numbers[1] >= trace_reader_n_frames(r) || numbers[2] >= trace_reader_n_metrics(r))
		return false;
	*sample = (struct sample_view){.kind = SAMPLE_KIND_TICK,
		.thread = (uint32_t)numbers[0],
		.frame = (uint32_t)numbers[1],
		.metric = (uint32_t)numbers[2],
		.weight = numbers[3]};
	return true;
}

bool sample_walk_next(struct sample_walk *walk, struct sample_view *sample)
{
	const struct trace_reader *r = walk->profile->reader;
	struct trace_record record;
	struct err err;
	int rc;

	while ((rc = trace_cursor_next(walk->cursor, &record, &err)) != 0) {
		const struct trace_stream *stream;
		bool is_sample = false;

		if (rc < 0) /* costs that chunk alone */
			continue;
		stream = trace_reader_stream(r, record.stream);
		if ((record.major == RECORD_MAJOR_STACK_SAMPLE ||
			    record.major == RECORD_MAJOR_STACK_EVENT) &&
			record.minor == RECORD_MINOR_STACK)
			is_sample = view_stack(r, &record, sample);
		else if (record.major == RECORD_MAJOR_THREAD && record.minor == RECORD_THREAD_TICK)
			is_sample = sample_view_tick(r, &record, sample);
		if (!is_sample || !walk->profile->threads[sample->thread].is_wanted)
			continue;
		sample->time = record.time;
		sample->cpu = stream->kind == STREAM_KIND_CPU ? (int64_t)stream->number : -1;
		return true;
	}
	return false;
}

bool sample_view_counts(const struct profile *p, const struct sample_view *sample)
{
	return sample->kind != SAMPLE_KIND_EVENT &&
	       sample_is_selected(&p->weighing, sample->metric) &&
	       !sample_is_of_hook(&p->weighing, p->reader, sample->stack);
}

int sample_frames_sum(struct map *weights, const struct profile *profile, struct err *err)
{
	struct sample_view sample;
	struct sample_walk walk;
	int rc = sample_walk_open(&walk, profile, err);

	if (rc < 0)
		return rc;
	while (sample_walk_next(&walk, &sample)) {
		uint32_t frame = sample.frame;

		if (!sample_view_counts(profile, &sample))
			continue;
		if (!frame && sample.stack)
			frame = trace_reader_stack(profile->reader, sample.stack)->frame;
		if (frame)
			*map_ensure(weights, frame, NULL) +=
				sample_weight(&profile->weighing, sample.metric, sample.weight);
	}
	sample_walk_close(&walk);
	return 0;
}
