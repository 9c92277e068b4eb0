/* SPDX-License-Identifier: MIT */
#include "formats/import_events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "formats/text_lines.h"

struct import_thread {
	uint32_t id, stream;
	uint64_t time; /* of its last line */
};

/* `writer` is NULL while the text is only checked. */
struct import {
	struct trace_writer *writer;
	uint32_t time_metric; /* of events */
	struct text_lines lines;
	VEC(struct import_thread) threads;
	struct map thread_of; /* tid -> index in threads */
};

static void import_init(
	struct import *in, struct span text, const char *name, struct trace_writer *w)
{
	*in = (struct import){.writer = w};
	text_lines_init(&in->lines, text, name);
}

static void import_release(struct import *in)
{
	vec_release(&in->threads);
	map_release(&in->thread_of);
}

/* Valid until the next new thread. */
static struct import_thread *import_thread(struct import *in, uint64_t tid)
{
	bool created;
	uint64_t *index = map_ensure(&in->thread_of, tid, &created);

	if (created) {
		struct import_thread fresh = {0};

		if (in->writer) {
			struct trace_thread thread = {.tid = (uint32_t)tid};

			fresh.id = trace_writer_thread(in->writer, &thread);
			fresh.stream =
				trace_writer_stream(in->writer, STREAM_KIND_THREAD, fresh.id);
		}
		*index = in->threads.n;
		vec_push(&in->threads, fresh);
	}
	return &in->threads.v[*index];
}

/* The frame that is known by this name; 0 while only checking. */
static uint32_t import_frame(struct import *in, struct span name)
{
	struct trace_frame frame = {.kind = FRAME_KIND_NATIVE};

	if (!in->writer)
		return 0;
	frame.name = trace_writer_string_n(in->writer, (const char *)name.p, name.n);
	return trace_writer_frame(in->writer, &frame);
}

/* The rest of the line as a stack, outermost first: [TID ':'] NAME { NAME } */
static int import_stack(struct import *in, uint64_t *tid, uint32_t *stack, struct err *err)
{
	struct span word = text_lines_word(&in->lines);
	struct span number = word;
	int rc;

	*tid = 0;
	*stack = 0;
	if (word.n > 1 && word.p[word.n - 1] == ':') {
		number.n--;
		if (text_word_number(number, UINT32_MAX, tid))
			word = text_lines_word(&in->lines);
	}
	if (!word.n)
		return text_lines_fail(&in->lines, err, "the stack is empty");
	for (; word.n; word = text_lines_word(&in->lines)) {
		rc = text_word_check_name(&in->lines, word, err);
		if (rc < 0)
			return rc;
		if (in->writer)
			*stack = trace_writer_stack(in->writer, *stack, import_frame(in, word));
	}
	return 0;
}

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

/* NUMBER [TID]: the thread goes on on this stack of its */
static int stack_line(struct import *in, uint64_t time, struct err *err)
{
	struct import_thread *thread;
	uint64_t chain;
	int rc;

	if (!text_word_number(text_lines_word(&in->lines), UINT64_MAX, &chain))
		return text_lines_fail(&in->lines, err, "'stack' needs the number of a stack");
	rc = finish_line(in, time, &thread, err);
	if (rc < 0 || !in->writer)
		return rc;
	trace_writer_numbers(
		in->writer, thread->stream, time, RECORD_MAJOR_HOOK, RECORD_HOOK_CHAIN, &chain, 1);
	return 0;
}

/* [TID:] NAME...; a sample (0x40) or the stack at a routine (0x41). Without a weight it is a mere
 * occurrence. */
static int sample_line(
	struct import *in, uint64_t time, uint32_t major, uint64_t weight, struct err *err)
{
	uint64_t numbers[4] = {0, 0, 0, 0}; /* thread, stack, metric, weight */
	struct import_thread *thread;
	uint32_t stack;
	uint64_t tid;
	int rc = import_stack(in, &tid, &stack, err);

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
	numbers[0] = thread->id;
	numbers[1] = stack;
	numbers[2] = weight ? in->time_metric : 0;
	numbers[3] = weight ? weight : 1;
	trace_writer_numbers(
		in->writer, thread->stream, time, major, RECORD_MINOR_STACK, numbers, 4);
	return 0;
}

/* NUMBER PARENT NAME CALLS ELAPSED MIN MAX [TID] */
static int node_line(struct import *in, uint64_t time, struct err *err)
{
	uint64_t n[8]; /* thread, node, parent, frame, calls, elapsed, minimum, maximum */
	struct import_thread *thread;
	struct span name = {0};
	int rc;

	for (size_t i = 1; i < 8; i++) {
		struct span word = text_lines_word(&in->lines);

		if (i == 3 && word.n)
			name = word;
		else if (!text_word_number(word, UINT64_MAX, &n[i]))
			return text_lines_fail(&in->lines, err,
				"'node' needs a number, a parent, a name and four more numbers");
	}
	rc = text_word_check_name(&in->lines, name, err);
	if (rc == 0)
		rc = finish_line(in, time, &thread, err);
	if (rc < 0 || !in->writer)
		return rc;
	n[0] = thread->id;
	n[3] = import_frame(in, name);
	trace_writer_numbers(
		in->writer, thread->stream, time, RECORD_MAJOR_TREE, RECORD_TREE_NODE, n, 8);
	return 0;
}

static bool method_number(struct span word, uint64_t *number)
{
	static const char *const methods[] = {
		"refused", "jump", "int3", "nop", "mcount", "instrument"};

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (!text_word_is(word, methods[i]))
			continue;
		*number = i;
		return true;
	}
	return false;
}

/* NAME METHOD HITS OFF [REASON...]; OFF is a time or '.' */
static int hook_line(struct import *in, uint64_t time, struct err *err)
{
	struct span name = text_lines_word(&in->lines), method = text_lines_word(&in->lines);
	struct span hits = text_lines_word(&in->lines), off = text_lines_word(&in->lines), word;
	uint64_t n[5] = {0, 0, 0, 0, 0}; /* frame, method, reason, hits, off time + 1 */
	struct import_thread *thread;
	struct buf reason = {0};
	int rc;

	if (!name.n || !method_number(method, &n[1]) ||
		!text_word_number(hits, UINT64_MAX, &n[3]) ||
		(!text_word_is(off, ".") && !text_word_number(off, UINT64_MAX - 1, &n[4])))
		return text_lines_fail(&in->lines, err,
			"'hook' needs a name, a method (refused, jump, int3, nop, mcount, instrument), "
			"the number of hits and a time or '.'");
	n[4] += !text_word_is(off, ".");
	while ((word = text_lines_word(&in->lines)).n) {
		if (reason.n)
			buf_put_u8(&reason, ' ');
		buf_put(&reason, word.p, word.n);
	}
	rc = text_word_check_name(&in->lines, name, err);
	if (rc == 0 && in->writer) {
		thread = import_thread(in, 0);
		n[0] = import_frame(in, name);
		n[2] = reason.n
			       ? trace_writer_string_n(in->writer, (const char *)reason.p, reason.n)
			       : 0;
		trace_writer_numbers(in->writer, thread->stream, time, RECORD_MAJOR_HOOK,
			RECORD_HOOK_FUNCTION, n, 5);
	}
	buf_release(&reason);
	return rc;
}

/* "sample" or "sample=WEIGHT" */
static bool is_sample(struct span word, uint64_t *weight)
{
	static const char prefix[] = "sample=";
	size_t n = sizeof(prefix) - 1;

	*weight = 0;
	if (word.n <= n || memcmp(word.p, prefix, n) != 0)
		return text_word_is(word, "sample");
	return text_word_number((struct span){word.p + n, word.n - n}, UINT64_MAX, weight);
}

static int event_line(struct import *in, struct err *err)
{
	struct span word = text_lines_word(&in->lines);
	uint64_t time, weight;

	if (!text_word_number(word, UINT64_MAX, &time))
		return text_lines_fail(
			&in->lines, err, "'%.*s' is not a time", TEXT_WORD_SHOWN(word));
	word = text_lines_word(&in->lines);
	if (text_word_is(word, "enter"))
		return routine_line(in, time, RECORD_ROUTINE_ENTER, err);
	if (text_word_is(word, "open"))
		return routine_line(in, time, RECORD_ROUTINE_OPEN, err);
	if (text_word_is(word, "leave"))
		return routine_line(in, time, RECORD_ROUTINE_ENTER | RECORD_MINOR_EXIT, err);
	if (text_word_is(word, "switch-out"))
		return switch_line(in, time, RECORD_SWITCH_OUT, err);
	if (text_word_is(word, "switch-in"))
		return switch_line(in, time, RECORD_SWITCH_IN, err);
	if (text_word_is(word, "add"))
		return add_line(in, time, err);
	if (is_sample(word, &weight))
		return sample_line(in, time, RECORD_MAJOR_STACK_SAMPLE, weight, err);
	if (text_word_is(word, "stack-at"))
		return sample_line(in, time, RECORD_MAJOR_STACK_EVENT, 0, err);
	if (text_word_is(word, "stack"))
		return stack_line(in, time, err);
	if (text_word_is(word, "node"))
		return node_line(in, time, err);
	if (text_word_is(word, "hook"))
		return hook_line(in, time, err);
	if (!word.n)
		return text_lines_fail(&in->lines, err, "there is a time, but no event");
	return text_lines_fail(&in->lines, err,
		"'%.*s' is not an event (enter, leave, switch-out, switch-in, add, sample, stack, "
		"stack-at, node, hook)",
		TEXT_WORD_SHOWN(word));
}

int import_events(struct span text, const char *name, struct trace_writer *writer, struct err *err)
{
	struct import in;
	int rc = 0;

	import_init(&in, text, name, writer);
	if (writer)
		in.time_metric = trace_writer_metric(writer, "time", "1");
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
