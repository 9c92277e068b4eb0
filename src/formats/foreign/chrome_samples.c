/* SPDX-License-Identifier: MIT */
#include "formats/foreign/chrome_samples.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define NS_MAX ((double)(UINT64_C(1) << 62))

static void keep_text(struct buf *to, struct span text)
{
	buf_reset(to);
	buf_put(to, text.p, text.n);
}

void chrome_samples_take_about(struct chrome_samples *s)
{
	struct span key;

	if (!json_enter(s->json, JSON_OBJECT))
		return;
	while (json_next_key(s->json, &key)) {
		if (json_key_is(key, "weirMetric"))
			keep_text(&s->metric, json_take_text(s->json));
		else if (json_key_is(key, "weirUnit"))
			keep_text(&s->unit, json_take_text(s->json));
		else
			json_skip(s->json);
	}
}

/* ---- frames ---- */

static uint32_t frame_number(struct chrome_samples *s, struct span key)
{
	uint32_t number = intern_bytes(&s->keys, key.p, key.n);

	if (number == s->frames.n)
		vec_push(&s->frames, ((struct chrome_frame){0}));
	return number;
}

/* Keys are texts, and names of them texts or numbers. 0: it names none; else the number + 1. */
static uint32_t take_frame_name(struct chrome_samples *s)
{
	enum json_kind kind = json_begin(s->json);
	char digits[24];
	double number;
	int n;

	if (kind == JSON_TEXT)
		return frame_number(s, json_text(s->json)) + 1;
	if (kind != JSON_NUMBER) {
		json_skip_begun(s->json, kind);
		return 0;
	}
	number = json_number(s->json);
	if (!(number >= 0 && number <= NS_MAX))
		return 0;
	n = snprintf(digits, sizeof(digits), "%" PRIu64, (uint64_t)number);
	return frame_number(s, (struct span){(const uint8_t *)digits, (size_t)n}) + 1;
}

static void take_frame(
	struct chrome_samples *s, uint32_t number, struct buf *name, struct buf *image)
{
	struct foreign_level level = {0};
	struct foreign_frame frame = {.kind = FRAME_KIND_NATIVE, .levels = &level, .n_levels = 1};
	uint32_t parent = 0;
	struct span key;

	buf_reset(name);
	buf_reset(image);
	if (!json_enter(s->json, JSON_OBJECT))
		return;
	while (json_next_key(s->json, &key)) {
		if (json_key_is(key, "name"))
			keep_text(name, json_take_text(s->json));
		else if (json_key_is(key, "category"))
			keep_text(image, json_take_text(s->json));
		else if (json_key_is(key, "parent"))
			parent = take_frame_name(s);
		else
			json_skip(s->json);
	}
	level.name = buf_span(name);
	frame.image = buf_span(image);
	if (json_key_is(frame.image, "[kernel]"))
		frame.kind = FRAME_KIND_KERNEL;
	s->frames.v[number] = (struct chrome_frame){.frame = foreign_trace_frame(s->trace, &frame),
		.parent = parent,
		.is_there = name->n > 0};
}

void chrome_samples_take_frames(struct chrome_samples *s)
{
	struct buf name = {0}, image = {0};
	struct span key;

	if (!json_enter(s->json, JSON_OBJECT))
		return;
	while (json_next_key(s->json, &key))
		take_frame(s, frame_number(s, key), &name, &image);
	buf_release(&name);
	buf_release(&image);
}

/* The stack that ends with the frame; 0: some frame of it is not there, or it calls itself. Frames whose callers are
 * not known yet wait for them in a row. */
static uint32_t stack_of(struct chrome_samples *s, uint32_t number)
{
	VEC(uint32_t) row = {0};
	uint32_t stack = 0, at = number;
	bool is_wrong = false;

	for (;;) {
		struct chrome_frame *f = &s->frames.v[at];

		if (f->state == STACK_KNOWN) {
			stack = f->stack;
			is_wrong = !stack;
			break;
		}
		is_wrong = f->state == STACK_ASKED || !f->is_there;
		f->state = STACK_ASKED;
		vec_push(&row, at);
		if (is_wrong || !f->parent)
			break;
		at = f->parent - 1;
	}
	for (size_t i = row.n; i--;) {
		struct chrome_frame *f = &s->frames.v[row.v[i]];

		stack = is_wrong ? 0 : foreign_trace_stack(s->trace, stack, f->frame);
		f->stack = stack;
		f->state = STACK_KNOWN;
	}
	vec_release(&row);
	return stack;
}

/* ---- samples ---- */

static void take_sample(struct chrome_samples *s)
{
	double pid = 0, tid = 0, ts = NAN, weight = 1;
	struct chrome_sample sample = {.order = s->v.n};
	struct span key;

	while (json_next_key(s->json, &key)) {
		if (json_key_is(key, "ts"))
			ts = json_take_number(s->json, NAN) * 1000;
		else if (json_key_is(key, "pid"))
			pid = json_take_number(s->json, 0);
		else if (json_key_is(key, "tid"))
			tid = json_take_number(s->json, 0);
		else if (json_key_is(key, "sf"))
			sample.frame = take_frame_name(s);
		else if (json_key_is(key, "weight")) {
			weight = json_take_number(s->json, 1);
			s->has_weights = true;
		} else
			json_skip(s->json);
	}
	if (s->json->failed)
		return;
	if (!(ts >= 0 && ts <= NS_MAX) || !(weight >= 0 && weight <= NS_MAX) ||
		!(pid >= 0 && pid <= UINT32_MAX) || !(tid >= 0 && tid <= UINT32_MAX)) {
		s->n_wrong++;
	} else if (s->v.n == CHROME_SAMPLES_MAX) {
		s->n_more++;
	} else {
		sample.time_ns = (uint64_t)(ts + 0.5);
		sample.weight = (uint64_t)(weight + 0.5);
		sample.thread = foreign_trace_thread(
			s->trace, (uint32_t)pid, (uint32_t)tid, (struct span){0});
		vec_push(&s->v, sample);
	}
}

void chrome_samples_take(struct chrome_samples *s)
{
	if (!json_enter(s->json, JSON_ARRAY))
		return;
	while (json_next_item(s->json)) {
		enum json_kind kind = json_begin(s->json);

		if (kind == JSON_OBJECT)
			take_sample(s);
		else
			json_skip_begun(s->json, kind);
	}
}

static int compare(const void *a, const void *b)
{
	const struct chrome_sample *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static uint32_t metric_of(struct chrome_samples *s)
{
	if (s->metric.n)
		return foreign_trace_main_metric(
			s->trace, buf_text(&s->metric), s->unit.n ? buf_text(&s->unit) : "1");
	return foreign_trace_main_metric(s->trace, s->has_weights ? "weight" : "samples", "1");
}

void chrome_samples_write(struct chrome_samples *s)
{
	struct trace_sample to = {0};

	vec_sort(&s->v, compare);
	if (s->v.n)
		to.metric = metric_of(s);
	for (size_t i = 0; i < s->v.n; i++) {
		const struct chrome_sample *from = &s->v.v[i];

		to.thread = from->thread;
		to.weight = from->weight;
		to.stack = from->frame ? stack_of(s, from->frame - 1) : 0;
		if (to.stack)
			foreign_trace_sample_beside(s->trace, from->time_ns, &to);
		else
			s->n_frameless++;
	}
	if (s->n_more)
		foreign_trace_lost(s->trace, s->n_more, "the file has more samples than are read");
	if (s->n_wrong)
		foreign_trace_lost(
			s->trace, s->n_wrong, "samples with a wrong time, thread or weight");
	if (s->n_frameless)
		foreign_trace_lost(s->trace, s->n_frameless,
			"samples whose stack is not in the list of stack frames");
}

void chrome_samples_release(struct chrome_samples *s)
{
	intern_release(&s->keys);
	vec_release(&s->frames);
	vec_release(&s->v);
	buf_release(&s->metric);
	buf_release(&s->unit);
}
