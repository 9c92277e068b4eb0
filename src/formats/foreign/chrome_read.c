/* SPDX-License-Identifier: MIT */
/*
 * An object with "traceEvents", or the array alone, whose end may be missing: tracers are killed. Begins, ends and
 * whole calls become calls of their threads; samples are in lists of their own (chrome_samples.c). Times are
 * microseconds with fractions.
 */
#include "formats/foreign/chrome_read.h"

#include <math.h>
#include <string.h>

#include "base/map.h"
#include "formats/foreign/chrome_samples.h"
#include "formats/foreign/foreign_calls.h"
#include "formats/foreign/json_reader.h"
#include "formats/text_lines.h"

#define NS_MAX ((double)(UINT64_C(1) << 62))

struct chrome {
	struct json_reader json;
	struct foreign_trace *trace;
	struct foreign_calls calls;
	struct chrome_samples samples;
	struct intern names; /* of threads and processes that are no numbers */
	uint64_t n_other, n_wrong;
};

struct event {
	char phase;
	struct buf name, said; /* said: args.name, of metadata */
	double ts, length;
	uint64_t pid, tid;
	bool has_name, has_time;
};

bool chrome_is(struct span first)
{
	struct span sought = {(const uint8_t *)"\"traceEvents\"", 13};

	if (first.n && first.p[0] == '{')
		return memmem(first.p, first.n, sought.p, sought.n) != NULL;
	return first.n && first.p[0] == '[' && memmem(first.p, first.n, "\"ph\"", 4);
}

/* Numbers of threads may be texts, too. */
static uint64_t take_id(struct chrome *c)
{
	enum json_kind kind = json_begin(&c->json);
	struct span text;
	double number;
	uint64_t id;

	if (kind == JSON_NUMBER) {
		number = json_number(&c->json);
		return number > 0 && number <= UINT32_MAX ? (uint64_t)number : 0;
	}
	if (kind != JSON_TEXT) {
		json_skip_begun(&c->json, kind);
		return 0;
	}
	text = json_text(&c->json);
	if (text_word_number(text, UINT32_MAX, &id))
		return id;
	return intern_bytes(&c->names, text.p, text.n) + (uint64_t)1;
}

static void take_args(struct chrome *c, struct event *e)
{
	struct span key, text;

	if (!json_enter(&c->json, JSON_OBJECT))
		return;
	while (json_next_key(&c->json, &key)) {
		if (!json_key_is(key, "name")) {
			json_skip(&c->json);
			continue;
		}
		text = json_take_text(&c->json);
		buf_reset(&e->said);
		buf_put(&e->said, text.p, text.n);
	}
}

static void take_event(struct chrome *c, struct event *e)
{
	struct span key, text;

	while (json_next_key(&c->json, &key)) {
		if (json_key_is(key, "ph")) {
			text = json_take_text(&c->json);
			e->phase = text.n == 1 ? (char)text.p[0] : 0;
		} else if (json_key_is(key, "name")) {
			text = json_take_text(&c->json);
			buf_put(&e->name, text.p, text.n);
			e->has_name = text.n > 0;
		} else if (json_key_is(key, "ts")) {
			e->ts = json_take_number(&c->json, NAN);
			e->has_time = isfinite(e->ts);
		} else if (json_key_is(key, "dur")) {
			e->length = json_take_number(&c->json, 0);
		} else if (json_key_is(key, "pid")) {
			e->pid = take_id(c);
		} else if (json_key_is(key, "tid")) {
			e->tid = take_id(c);
		} else if (json_key_is(key, "args")) {
			take_args(c, e);
		} else {
			json_skip(&c->json);
		}
	}
}

static void put_metadata(struct chrome *c, const struct event *e)
{
	if (json_key_is(buf_span(&e->name), "thread_name"))
		foreign_trace_thread(
			c->trace, (uint32_t)e->pid, (uint32_t)e->tid, buf_span(&e->said));
	else if (json_key_is(buf_span(&e->name), "process_name"))
		foreign_trace_process(c->trace, (uint32_t)e->pid, buf_span(&e->said));
}

static void put_call(struct chrome *c, const struct event *e, enum foreign_call_kind kind)
{
	double at = e->ts * 1000, length = e->length * 1000;
	struct foreign_call call = {.kind = kind};

	if (!e->has_time || !(at >= 0 && at <= NS_MAX) || !(length >= 0 && length <= NS_MAX) ||
		(kind != FOREIGN_CALL_END && !e->has_name)) {
		c->n_wrong++;
		return;
	}
	call.time_ns = (uint64_t)(at + 0.5);
	/* Not of the length alone: ends that are equal in the file stay so. */
	call.length_ns = (uint64_t)(at + length + 0.5) - call.time_ns;
	call.thread = foreign_trace_thread(
		c->trace, (uint32_t)e->pid, (uint32_t)e->tid, (struct span){0});
	if (e->has_name)
		call.frame = foreign_trace_name(c->trace, FRAME_KIND_NATIVE, buf_span(&e->name));
	foreign_calls_add(&c->calls, &call);
}

static void put_event(struct chrome *c, const struct event *e)
{
	switch (e->phase) {
	case 'B':
		put_call(c, e, FOREIGN_CALL_BEGIN);
		break;
	case 'E':
		put_call(c, e, FOREIGN_CALL_END);
		break;
	case 'X':
		put_call(c, e, FOREIGN_CALL_WHOLE);
		break;
	case 'M':
		put_metadata(c, e);
		break;
	default:
		c->n_other++;
	}
}

static void take_events(struct chrome *c)
{
	struct event e = {0};

	while (json_next_item(&c->json)) {
		enum json_kind kind = json_begin(&c->json);

		buf_reset(&e.name);
		buf_reset(&e.said);
		e = (struct event){.name = e.name, .said = e.said};
		if (kind != JSON_OBJECT) {
			json_skip_begun(&c->json, kind);
			continue;
		}
		take_event(c, &e);
		if (!c->json.failed)
			put_event(c, &e);
	}
	buf_release(&e.name);
	buf_release(&e.said);
}

/* The end of the bare array may be missing. */
static int take_all(struct chrome *c, struct err *err)
{
	enum json_kind kind = json_begin(&c->json);
	struct span key;

	if (kind == JSON_ARRAY) {
		take_events(c);
		if (c->json.failed && foreign_input_is_at_end(c->json.in) &&
			foreign_input_failure(c->json.in, NULL) == 0) {
			foreign_trace_note(c->trace, 1, "the end of the file is missing");
			return 0;
		}
	} else if (kind == JSON_OBJECT) {
		while (json_next_key(&c->json, &key)) {
			if (json_key_is(key, "traceEvents") && json_enter(&c->json, JSON_ARRAY))
				take_events(c);
			else if (json_key_is(key, "otherData"))
				chrome_samples_take_about(&c->samples);
			else if (json_key_is(key, "samples"))
				chrome_samples_take(&c->samples);
			else if (json_key_is(key, "stackFrames"))
				chrome_samples_take_frames(&c->samples);
			else if (!json_key_is(key, "traceEvents"))
				json_skip(&c->json);
		}
	} else {
		json_reader_wrong(&c->json, "is neither an object nor an array");
	}
	return json_reader_failure(&c->json, err);
}

int chrome_read(struct foreign_input *in, const char *path, const struct foreign_options *options,
	struct trace_writer *w, struct err *err)
{
	struct chrome c = {.trace = foreign_trace_new(w, "chrome")};
	int rc;

	(void)path;
	(void)options;
	json_reader_init(&c.json, in);
	c.samples.json = &c.json;
	c.samples.trace = c.trace;
	rc = take_all(&c, err);
	if (rc == 0) {
		foreign_calls_write(&c.calls, c.trace);
		chrome_samples_write(&c.samples);
		if (c.n_other)
			foreign_trace_note(c.trace, c.n_other,
				"events that are no calls (counters, flows, instants, ...) are not shown");
		if (c.n_wrong)
			foreign_trace_lost_events(
				c.trace, c.n_wrong, "events without a name or with a wrong time");
	}
	foreign_trace_free(c.trace);
	json_reader_release(&c.json);
	foreign_calls_release(&c.calls);
	chrome_samples_release(&c.samples);
	intern_release(&c.names);
	return rc;
}
