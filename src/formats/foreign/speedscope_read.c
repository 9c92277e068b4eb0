/* SPDX-License-Identifier: MIT */
/*
 * Frames are read in a first pass, since profiles may come before them. Each profile is a thread. Keys come in any
 * order: the samples of a profile are kept until its weights and its unit are known.
 */
#include "formats/foreign/speedscope_read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "formats/foreign/foreign_calls.h"
#include "formats/foreign/json_reader.h"

#define FRAMES_MAX  ((size_t)1 << 22)
#define SAMPLES_MAX ((size_t)1 << 23) /* of a profile */
#define VALUE_MAX   ((double)(UINT64_C(1) << 62))

struct scope {
	struct json_reader json;
	struct foreign_trace *trace;
	struct foreign_calls calls;
	VEC(uint32_t) frames;
	uint32_t n_profiles;
	bool has_metric, has_frames;
	uint64_t n_more, n_wrong, n_fractions;
	double rest; /* of a unit, carried on so that the sum is right */
};

/* One profile, as far as it is known. */
struct part {
	struct buf name, unit;
	double start;
	VEC(uint32_t) stacks; /* of its samples */
	VEC(double) weights;
	VEC(double) times;     /* of its events */
	VEC(uint32_t) entered; /* their frames */
	VEC(bool) is_end;
};

bool speedscope_is(struct span first)
{
	static const char schema[] = "speedscope.app/file-format-schema.json";

	return first.n && first.p[0] == '{' &&
	       (memmem(first.p, first.n, schema, sizeof(schema) - 1) ||
		       memmem(first.p, first.n, "\"startValue\"", 12));
}

/* ---- frames ---- */

static void take_frame(struct scope *s)
{
	struct buf name = {0}, file = {0};
	struct foreign_level level = {.line = 0};
	struct foreign_frame frame = {.kind = FRAME_KIND_NATIVE, .levels = &level, .n_levels = 1};
	struct span key, text;
	double line = 0;

	while (json_next_key(&s->json, &key)) {
		struct buf *to = json_key_is(key, "name")   ? &name
				 : json_key_is(key, "file") ? &file
							    : NULL;

		if (to) {
			text = json_take_text(&s->json);
			buf_reset(to);
			buf_put(to, text.p, text.n);
		} else if (json_key_is(key, "line")) {
			line = json_take_number(&s->json, 0);
		} else {
			json_skip(&s->json);
		}
	}
	level.name = buf_span(&name);
	level.file = buf_span(&file);
	level.line = line > 0 && line < UINT32_MAX ? (uint32_t)line : 0;
	vec_push(&s->frames, foreign_trace_frame(s->trace, &frame));
	buf_release(&name);
	buf_release(&file);
}

static void take_frames(struct scope *s)
{
	s->has_frames = true;
	while (json_next_item(&s->json)) {
		if (s->frames.n == FRAMES_MAX)
			json_reader_wrong(&s->json, "has too many frames");
		if (json_enter(&s->json, JSON_OBJECT))
			take_frame(s);
	}
}

static void take_shared(struct scope *s)
{
	struct span key;

	while (json_next_key(&s->json, &key)) {
		if (json_key_is(key, "frames") && json_enter(&s->json, JSON_ARRAY))
			take_frames(s);
		else if (!json_key_is(key, "frames"))
			json_skip(&s->json);
	}
}

/* ---- profiles ---- */

static uint32_t frame_of(struct scope *s, double number)
{
	if (number >= 0 && number < (double)s->frames.n)
		return s->frames.v[(size_t)number];
	s->n_wrong++;
	return foreign_trace_name(
		s->trace, FRAME_KIND_NATIVE, (struct span){(const uint8_t *)"[damaged]", 9});
}

static void take_samples(struct scope *s, struct part *p)
{
	while (json_next_item(&s->json)) {
		uint32_t stack = 0;

		if (!json_enter(&s->json, JSON_ARRAY))
			continue;
		while (json_next_item(&s->json))
			stack = foreign_trace_stack(
				s->trace, stack, frame_of(s, json_take_number(&s->json, -1)));
		if (p->stacks.n == SAMPLES_MAX)
			s->n_more++;
		else
			vec_push(&p->stacks, stack);
	}
}

static void take_weights(struct scope *s, struct part *p)
{
	while (json_next_item(&s->json)) {
		double weight = json_take_number(&s->json, 0);

		if (p->weights.n < SAMPLES_MAX)
			vec_push(&p->weights, weight);
	}
}

static void take_event(struct scope *s, struct part *p)
{
	struct span key, text;
	double at = 0, frame = -1;
	bool is_end = false;

	while (json_next_key(&s->json, &key)) {
		if (json_key_is(key, "type")) {
			text = json_take_text(&s->json);
			is_end = text.n == 1 && text.p[0] == 'C';
		} else if (json_key_is(key, "at")) {
			at = json_take_number(&s->json, 0);
		} else if (json_key_is(key, "frame")) {
			frame = json_take_number(&s->json, -1);
		} else {
			json_skip(&s->json);
		}
	}
	if (p->times.n == SAMPLES_MAX) {
		s->n_more++;
		return;
	}
	vec_push(&p->times, at);
	vec_push(&p->entered, frame_of(s, frame));
	vec_push(&p->is_end, is_end);
}

static void take_events(struct scope *s, struct part *p)
{
	while (json_next_item(&s->json))
		if (json_enter(&s->json, JSON_OBJECT))
			take_event(s, p);
}

static void take_part(struct scope *s, struct part *p)
{
	struct span key;

	while (json_next_key(&s->json, &key)) {
		struct buf *to = json_key_is(key, "name")   ? &p->name
				 : json_key_is(key, "unit") ? &p->unit
							    : NULL;

		if (to) {
			struct span text = json_take_text(&s->json);

			buf_reset(to);
			buf_put(to, text.p, text.n);
		} else if (json_key_is(key, "startValue")) {
			p->start = json_take_number(&s->json, 0);
		} else if (json_key_is(key, "samples")) {
			if (json_enter(&s->json, JSON_ARRAY))
				take_samples(s, p);
		} else if (json_key_is(key, "weights")) {
			if (json_enter(&s->json, JSON_ARRAY))
				take_weights(s, p);
		} else if (json_key_is(key, "events")) {
			if (json_enter(&s->json, JSON_ARRAY))
				take_events(s, p);
		} else {
			json_skip(&s->json);
		}
	}
}

static const struct unit {
	const char *name, *metric, *of_trace;
	double scale;
	bool is_time;
} units[] = {
	{"none", "samples", "1", 1, false},
	{"bytes", "bytes", "bytes", 1, false},
	{"nanoseconds", "time", "ns", 1, true},
	{"microseconds", "time", "ns", 1e3, true},
	{"milliseconds", "time", "ns", 1e6, true},
	{"seconds", "time", "ns", 1e9, true},
};

static const struct unit *unit_of(const struct part *p)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (json_key_is(buf_span(&p->unit), units[i].name))
			return &units[i];
	return &units[0];
}

/* Whole units; the rest is carried on. */
static uint64_t whole(struct scope *s, double value)
{
	double all = value + s->rest, units_n = floor(all + 1e-6);

	if (!(value >= 0 && value < VALUE_MAX)) {
		s->n_wrong++;
		return 0;
	}
	s->n_fractions += floor(value) != value;
	s->rest = all - units_n;
	return (uint64_t)units_n;
}

static uint64_t time_of(struct scope *s, double value)
{
	if (value >= 0 && value < VALUE_MAX)
		return (uint64_t)(value + 0.5);
	s->n_wrong++;
	return 0;
}

static uint32_t metric_of(struct scope *s, const struct unit *unit)
{
	bool is_first = !s->has_metric;

	s->has_metric = true;
	return is_first ? foreign_trace_main_metric(s->trace, unit->metric, unit->of_trace)
			: foreign_trace_metric(s->trace, unit->metric, unit->of_trace);
}

static void put_part(struct scope *s, struct part *p)
{
	const struct unit *unit = unit_of(p);
	uint32_t thread = foreign_trace_thread(s->trace, 0, ++s->n_profiles, buf_span(&p->name));
	double at = p->start * unit->scale;
	struct trace_sample sample = {.thread = thread};

	if (p->stacks.n)
		sample.metric = metric_of(s, unit);
	s->rest = 0;
	for (size_t i = 0; i < p->stacks.n; i++) {
		double weight = (i < p->weights.n ? p->weights.v[i] : 1) * unit->scale;

		sample.stack = p->stacks.v[i];
		sample.weight = whole(s, weight);
		foreign_trace_sample(s->trace, unit->is_time ? time_of(s, at) : 0, &sample);
		at += weight;
	}
	for (size_t i = 0; i < p->times.n; i++)
		foreign_calls_add(&s->calls,
			&(struct foreign_call){.time_ns = time_of(s, p->times.v[i] * unit->scale),
				.thread = thread,
				.frame = p->entered.v[i],
				.kind = p->is_end.v[i] ? FOREIGN_CALL_END : FOREIGN_CALL_BEGIN});
}

static void part_release(struct part *p)
{
	buf_release(&p->name);
	buf_release(&p->unit);
	vec_release(&p->stacks);
	vec_release(&p->weights);
	vec_release(&p->times);
	vec_release(&p->entered);
	vec_release(&p->is_end);
}

static void take_profiles(struct scope *s)
{
	while (json_next_item(&s->json)) {
		struct part p = {.start = 0};

		if (!json_enter(&s->json, JSON_OBJECT))
			continue;
		take_part(s, &p);
		if (!s->json.failed)
			put_part(s, &p);
		part_release(&p);
	}
}

/* The first pass for the frames, the second one for the rest. */
static int take_all(struct scope *s, struct foreign_input *in, bool is_first, struct err *err)
{
	const char *wanted = is_first ? "shared" : "profiles";
	struct span key;
	int rc;

	json_reader_init(&s->json, in);
	if (!json_enter(&s->json, JSON_OBJECT))
		json_reader_wrong(&s->json, "is no object");
	while (json_next_key(&s->json, &key)) {
		if (!json_key_is(key, wanted))
			json_skip(&s->json);
		else if (is_first && json_enter(&s->json, JSON_OBJECT))
			take_shared(s);
		else if (!is_first && json_enter(&s->json, JSON_ARRAY))
			take_profiles(s);
	}
	rc = json_reader_failure(&s->json, err);
	json_reader_release(&s->json);
	return rc;
}

static void tell_imperfections(struct scope *s)
{
	foreign_calls_write(&s->calls, s->trace);
	if (s->n_more)
		foreign_trace_lost(
			s->trace, s->n_more, "samples and events beyond 8 M of a profile");
	if (s->n_wrong)
		foreign_trace_lost(s->trace, s->n_wrong,
			"frames that the file does not have, values below zero or too large ones");
	if (s->n_fractions)
		foreign_trace_note(s->trace, s->n_fractions,
			"numbers with a fraction of a unit: it was added to the next number");
}

int speedscope_read(struct foreign_input *in, const char *path,
	const struct foreign_options *options, struct trace_writer *w, struct err *err)
{
	struct scope s = {.trace = foreign_trace_new(w, "speedscope")};
	int rc = take_all(&s, in, true, err);

	(void)path;
	(void)options;
	if (rc == 0 && !s.has_frames)
		rc = foreign_input_wrong(in, err, "has no frames");
	if (rc == 0 && !foreign_input_restart(in))
		rc = foreign_input_wrong(in, err, "is a pipe, but must be read twice");
	if (rc == 0)
		rc = take_all(&s, in, false, err);
	if (rc == 0)
		tell_imperfections(&s);
	foreign_trace_free(s.trace);
	foreign_calls_release(&s.calls);
	vec_release(&s.frames);
	return rc;
}
