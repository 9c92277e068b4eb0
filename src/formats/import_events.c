/* SPDX-License-Identifier: MIT */
#include "formats/import_events.h"

#include <inttypes.h>
#include <stdlib.h>

#include "formats/import_threads.h"

/* [TID], then the end of the line; checks that time goes on. */
static int finish_line(
	struct import *in, uint64_t time, struct import_thread **thread, struct err *err)
{
	struct span word = text_lines_word(&in->lines);
	uint64_t tid = 0;

	if (word.n && !text_word_number(word, UINT32_MAX, &tid))
		return text_lines_fail(
			&in->lines, err, "'%.*s' is not a thread number", TEXT_WORD_SHOWN(word));
	word = text_lines_word(&in->lines);
	if (word.n)
		return text_lines_fail(
			&in->lines, err, "'%.*s' is one word too many", TEXT_WORD_SHOWN(word));
	*thread = import_thread(in, tid);
	if (time < (*thread)->time)
		return text_lines_fail(&in->lines, err,
			"time %" PRIu64 " is before %" PRIu64 ", the last one of the thread", time,
			(*thread)->time);
	(*thread)->time = time;
	return 0;
}

/* NAME [TID] */
static int routine_line(struct import *in, uint64_t time, uint32_t minor, struct err *err)
{
	struct span name = text_lines_word(&in->lines);
	struct import_thread *thread;
	uint64_t frame;
	int rc;

	if (!name.n)
		return text_lines_fail(&in->lines, err, "the name of the routine is missing");
	rc = text_word_check_name(&in->lines, name, err);
	if (rc == 0)
		rc = finish_line(in, time, &thread, err);
	if (rc < 0 || !in->writer)
		return rc;
	frame = import_frame(in, name);
	trace_writer_numbers(
		in->writer, thread->stream, time, RECORD_MAJOR_ROUTINE, minor, &frame, 1);
	return 0;
}

/* [TID] */
static int switch_line(struct import *in, uint64_t time, uint32_t minor, struct err *err)
{
	struct import_thread *thread;
	uint64_t numbers[2] = {0, 0}; /* thread, preempted? */
	int rc = finish_line(in, time, &thread, err);

	if (rc < 0 || !in->writer)
		return rc;
	numbers[0] = thread->id;
	trace_writer_numbers(in->writer, thread->stream, time, RECORD_MAJOR_SWITCH, minor, numbers,
		minor == RECORD_SWITCH_OUT ? 2 : 1);
	return 0;
}

/* METRIC AMOUNT [TID] */
static int add_line(struct import *in, uint64_t time, struct err *err)
{
	struct span metric = text_lines_word(&in->lines), amount = text_lines_word(&in->lines);
	struct import_thread *thread;
	uint64_t numbers[2]; /* metric, amount */
	char *name;
	int rc;

	if (!metric.n || !text_word_number(amount, UINT64_MAX, &numbers[1]))
		return text_lines_fail(&in->lines, err, "'add' needs a metric and an amount");
	rc = text_word_check_name(&in->lines, metric, err);
	if (rc == 0)
		rc = finish_line(in, time, &thread, err);
	if (rc < 0 || !in->writer)
		return rc;
	name = mem_strndup((const char *)metric.p, metric.n);
	numbers[0] = trace_writer_metric(in->writer, name, "1");
	free(name);
	trace_writer_numbers(in->writer, thread->stream, time, RECORD_MAJOR_RESOURCE,
		RECORD_RESOURCE_ADD, numbers, 2);
	return 0;
}

/* [TID:] NAME... */
static int sample_line(struct import *in, uint64_t time, struct err *err)
{
	struct import_thread *thread;
	struct trace_sample sample = {.weight = 1};
	uint64_t tid;
	int rc = import_stack(in, &tid, &sample.stack, err);

	if (rc < 0)
		return rc;
	thread = import_thread(in, tid);
	if (time < thread->time)
		return text_lines_fail(&in->lines, err,
			"time %" PRIu64 " is before %" PRIu64 ", the last one of the thread", time,
			thread->time);
	thread->time = time;
	if (!in->writer)
		return 0;
	sample.thread = thread->id;
	trace_writer_sample(in->writer, thread->stream, time, &sample);
	return 0;
}

static int event_line(struct import *in, struct err *err)
{
	struct span word = text_lines_word(&in->lines);
	uint64_t time;

	if (!text_word_number(word, UINT64_MAX, &time))
		return text_lines_fail(
			&in->lines, err, "'%.*s' is not a time", TEXT_WORD_SHOWN(word));
	word = text_lines_word(&in->lines);
	if (text_word_is(word, "enter"))
		return routine_line(in, time, RECORD_ROUTINE_ENTER, err);
	if (text_word_is(word, "leave"))
		return routine_line(in, time, RECORD_ROUTINE_ENTER | RECORD_MINOR_EXIT, err);
	if (text_word_is(word, "switch-out"))
		return switch_line(in, time, RECORD_SWITCH_OUT, err);
	if (text_word_is(word, "switch-in"))
		return switch_line(in, time, RECORD_SWITCH_IN, err);
	if (text_word_is(word, "add"))
		return add_line(in, time, err);
	if (text_word_is(word, "sample"))
		return sample_line(in, time, err);
	if (!word.n)
		return text_lines_fail(&in->lines, err, "there is a time, but no event");
	return text_lines_fail(&in->lines, err,
		"'%.*s' is not an event (enter, leave, switch-out, switch-in, add, sample)",
		TEXT_WORD_SHOWN(word));
}

int import_events(struct span text, const char *name, struct trace_writer *writer, struct err *err)
{
	struct import in;
	int rc = 0;

	import_init(&in, text, name, writer);
	if (writer)
		trace_writer_metric(writer, "time", "1");
	while (rc == 0 && text_lines_next(&in.lines))
		rc = event_line(&in, err);
	import_release(&in);
	return rc;
}

int import_samples(struct span text, const char *name, struct trace_writer *writer, struct err *err)
{
	struct trace_sample sample = {.weight = 1};
	struct import in;
	uint64_t tid, time = 0;
	int rc = 0;

	import_init(&in, text, name, writer);
	if (writer)
		sample.metric = trace_writer_metric(writer, "samples", "1");
	for (; rc == 0 && text_lines_next(&in.lines); time++) {
		struct import_thread *thread;

		rc = import_stack(&in, &tid, &sample.stack, err);
		if (rc < 0 || !writer)
			continue;
		thread = import_thread(&in, tid);
		sample.thread = thread->id;
		trace_writer_sample(writer, thread->stream, time, &sample);
	}
	import_release(&in);
	return rc;
}
