/* SPDX-License-Identifier: MIT */
/*
 * Chunk by chunk: types and pools first, then the events in the order of the file. Events of a thread are not in the order
 * of time there (each thread has buffers of its own, and the sampler one for all), so the samples of a chunk are sorted.
 */
#include "formats/foreign/jfr_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "formats/foreign/jfr_stacks.h"
#include "formats/text_lines.h"

#define EVENT_MAX      ((size_t)16 << 20) /* a larger one is counted, and not read */
#define EVENT_SIZE_MAX 9		  /* bytes of its size */
#define PENDING_MAX    ((size_t)1 << 22)  /* samples that are sorted at once */
#define SECOND_NS      UINT64_C(1000000000)
#define NAMES_MAX      1000 /* of events that are told by name */
#define NAME_MAX_BYTES 120
#define SECONDS_MAX    (UINT64_C(1) << 33)

/* What is a sample, and of what. */
static const struct kind {
	const char *event, *thread, *weight, *other_weight; /* fields; no weight: 1 each */
	bool is_ticks;
	const char *metric, *unit;
} kinds[] = {
	{"jdk.ExecutionSample", "sampledThread", NULL, NULL, false, "samples", "1"},
	{"profiler.WallClockSample", "sampledThread", "samples", NULL, false, "wall-samples", "1"},
	{"jdk.NativeMethodSample", "sampledThread", NULL, NULL, false, "native-samples", "1"},
	{"jdk.ObjectAllocationSample", "eventThread", "weight", NULL, false, "allocated", "bytes"},
	/* A new TLAB stands for all that was allocated since the one before; async-profiler may not know its size. */
	{"jdk.ObjectAllocationInNewTLAB", "eventThread", "tlabSize", "allocationSize", false,
		"allocated-tlab", "bytes"},
	{"jdk.ObjectAllocationOutsideTLAB", "eventThread", "allocationSize", NULL, false,
		"allocated-tlab", "bytes"},
	{"jdk.JavaMonitorEnter", "eventThread", "duration", NULL, true, "lock-wait", "ns"},
	{"jdk.ThreadPark", "eventThread", "duration", NULL, true, "park", "ns"},
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* What a type of the chunk is here. */
struct role {
	const struct kind *kind; /* NULL: it is counted alone */
	uint64_t n;
};

struct pending {
	uint64_t time_ns, order;
	struct trace_sample sample;
};

struct jfr {
	struct foreign_input *in;
	struct foreign_trace *trace;
	struct jfr_stacks stacks;
	struct jfr_chunk chunk;
	VEC(struct role) roles; /* by place of the type */
	VEC(struct pending) pending;
	uint64_t first_ns; /* of the first chunk */
	uint64_t n_chunks, n_kind[N_KINDS];
	struct intern skipped; /* names of events that are not shown, with their stacks */
	VEC(uint64_t) n_skipped;
	uint64_t n_without_stack, n_other, n_damaged, n_large, n_negative;
};

bool jfr_is(struct span first)
{
	return first.n >= 6 && !memcmp(first.p, "FLR", 4) && !first.p[4];
}

/* ---- samples ---- */

static uint64_t ns_of(const struct jfr_chunk *c, uint64_t ticks)
{
	uint64_t whole = ticks / c->ticks_per_second, rest = ticks % c->ticks_per_second;

	whole = whole < SECONDS_MAX ? whole : SECONDS_MAX;
	return whole * SECOND_NS + (uint64_t)((double)rest * 1e9 / (double)c->ticks_per_second);
}

static uint64_t time_of(const struct jfr *j, uint64_t ticks)
{
	const struct jfr_chunk *c = &j->chunk;
	uint64_t begin = c->start_ns > j->first_ns ? c->start_ns - j->first_ns : 0;

	begin = begin < SECONDS_MAX * SECOND_NS ? begin : 0;
	return begin + (ticks > c->start_ticks ? ns_of(c, ticks - c->start_ticks) : 0);
}

ORDER_BY(by_time, struct pending, time_ns, order)

static void put_pending(struct jfr *j)
{
	vec_sort(&j->pending, by_time);
	for (size_t i = 0; i < j->pending.n; i++)
		foreign_trace_sample(j->trace, j->pending.v[i].time_ns, &j->pending.v[i].sample);
	j->pending.n = 0;
}

static bool number_of(
	struct jfr *j, const struct jfr_value *event, const char *name, uint64_t *number)
{
	struct jfr_value field;

	*number = 0;
	if (!jfr_field(&j->chunk, event, name, &field))
		return false;
	*number = jfr_value_number(&j->chunk, &field);
	return true;
}

static bool weigh(
	struct jfr *j, const struct jfr_value *event, const struct kind *kind, uint64_t *weight)
{
	bool is_known;

	*weight = 1;
	if (!kind->weight)
		return true;
	is_known = number_of(j, event, kind->weight, weight);
	if (kind->other_weight && (!is_known || !*weight))
		is_known = number_of(j, event, kind->other_weight, weight);
	if (!is_known &&
		text_word_is((struct span){(const uint8_t *)kind->unit, strlen(kind->unit)}, "1")) {
		*weight = 1; /* older versions count each one */
		return true;
	}
	if (!is_known || (int64_t)*weight < 0) {
		j->n_negative++;
		return false;
	}
	if (kind->is_ticks)
		*weight = ns_of(&j->chunk, *weight);
	return true;
}

static void take_sample(
	struct jfr *j, const struct jfr_type *type, const struct kind *kind, struct span bytes)
{
	struct jfr_value event = jfr_event(type, bytes), thread, stack;
	struct pending p = {.order = j->pending.n};
	uint64_t ticks;

	if (!number_of(j, &event, "startTime", &ticks) ||
		!jfr_field(&j->chunk, &event, kind->thread, &thread) ||
		!jfr_field(&j->chunk, &event, "stackTrace", &stack)) {
		j->n_damaged++;
		return;
	}
	if (!weigh(j, &event, kind, &p.sample.weight))
		return;
	p.time_ns = time_of(j, ticks);
	p.sample.thread = jfr_thread(&j->stacks, &j->chunk, &thread);
	p.sample.stack = jfr_stack(&j->stacks, &j->chunk, &stack);
	p.sample.metric = foreign_trace_metric(j->trace, kind->metric, kind->unit);
	vec_push(&j->pending, p);
	j->n_kind[kind - kinds]++;
	if (j->pending.n == PENDING_MAX)
		put_pending(j);
}

/* ---- events ---- */

static void assign_roles(struct jfr *j)
{
	j->roles.n = 0;
	vec_ensure_zero(&j->roles, j->chunk.types.types.n);
	for (size_t i = 0; i < j->roles.n; i++)
		for (size_t k = 0; k < N_KINDS; k++)
			if (text_word_is(j->chunk.types.types.v[i].name, kinds[k].event))
				j->roles.v[i].kind = &kinds[k];
}

static bool has_stack(const struct jfr_types *t, const struct jfr_type *type)
{
	for (uint32_t i = 0; i < type->n_fields; i++)
		if (text_word_is(t->fields.v[type->first_field + i].name, "stackTrace"))
			return true;
	return false;
}

/* Whether it is a name of Java's: any other could say anything. */
static bool is_event_name(struct span name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._$";

	for (size_t i = 0; i < name.n; i++)
		if (!name.p[i] || !strchr(allowed, name.p[i]))
			return false;
	return name.n && name.n <= NAME_MAX_BYTES;
}

/* Where a stack could have been shown the name is told. */
static void count_skipped(struct jfr *j)
{
	for (size_t i = 0; i < j->roles.n; i++) {
		const struct jfr_type *type = &j->chunk.types.types.v[i];
		uint32_t id;

		if (!j->roles.v[i].n)
			continue;
		if (!has_stack(&j->chunk.types, type)) {
			j->n_without_stack += j->roles.v[i].n;
			continue;
		}
		if (!is_event_name(type->name) || j->n_skipped.n == NAMES_MAX) {
			j->n_other += j->roles.v[i].n;
			continue;
		}
		id = intern_bytes(&j->skipped, type->name.p, type->name.n);
		vec_ensure_zero(&j->n_skipped, (size_t)id + 1);
		j->n_skipped.v[id] += j->roles.v[i].n;
	}
}

static void take_event(struct jfr *j, struct span bytes)
{
	const struct jfr_types *t = &j->chunk.types;
	struct cursor c = cursor_of(bytes);
	const struct jfr_type *type;
	struct role *role;
	uint64_t id;

	jfr_number(&c, t->is_compressed, 4);
	id = jfr_number(&c, t->is_compressed, 8);
	if (id == JFR_METADATA || id == JFR_POOLS)
		return;
	type = c.failed ? NULL : jfr_type(t, id);
	if (!type) {
		j->n_damaged++;
		return;
	}
	role = &j->roles.v[type - t->types.v];
	if (role->kind)
		take_sample(j, type, role->kind, (struct span){c.p, cursor_left(&c)});
	else
		role->n++;
}

/* All events of the chunk, or those that are there; the input is behind it. */
static int take_events(struct jfr *j, struct err *err)
{
	const struct jfr_chunk *c = &j->chunk;
	uint64_t left = c->bytes_there - JFR_HEADER_BYTES;

	foreign_input_skip(j->in, JFR_HEADER_BYTES);
	while (left) {
		struct span next = foreign_input_peek(j->in, EVENT_SIZE_MAX);
		struct cursor at = cursor_of(next);
		uint64_t n = jfr_number(&at, c->is_compressed, 4);

		if (at.failed || n > left) {
			if (c->bytes_there < c->bytes)
				break;
			return foreign_input_wrong(j->in, err, "has a damaged event");
		}
		if (!n)
			return foreign_input_wrong(j->in, err, "has an event of no bytes");
		if (n > EVENT_MAX) {
			j->n_large++;
			foreign_input_skip(j->in, n);
		} else {
			take_event(j, foreign_input_take(j->in, (size_t)n));
		}
		left -= n;
	}
	return 0;
}

/* ---- chunks ---- */

static void tell_start(struct jfr *j, struct trace_writer *w)
{
	char text[24];

	j->first_ns = j->chunk.start_ns;
	snprintf(text, sizeof(text), "%" PRIu64, j->first_ns);
	trace_writer_meta(w, "start_realtime_ns", text);
}

/* *is_cut: there is nothing more that can be read. */
static int take_chunk(struct jfr *j, struct trace_writer *w, bool *is_cut, struct err *err)
{
	enum jfr_load load = jfr_chunk_load(&j->chunk, j->in, err);
	int rc = load == JFR_WRONG ? ERR_FORMAT : 0;

	*is_cut = load == JFR_CUT;
	if (load == JFR_LOADED) {
		*is_cut = j->chunk.bytes_there < j->chunk.bytes;
		if (!j->n_chunks++)
			tell_start(j, w);
		jfr_stacks_next_chunk(&j->stacks);
		assign_roles(j);
		rc = take_events(j, err);
		put_pending(j);
		count_skipped(j);
	}
	jfr_chunk_release(&j->chunk);
	return rc;
}

static int take_chunks(struct jfr *j, struct trace_writer *w, struct err *err)
{
	bool is_cut = false;
	int rc = 0;

	while (rc == 0 && !is_cut && !foreign_input_is_at_end(j->in))
		rc = take_chunk(j, w, &is_cut, err);
	if (rc == 0)
		rc = foreign_input_failure(j->in, err);
	if (rc == 0 && !j->n_chunks)
		rc = foreign_input_wrong(j->in, err, "ends before its first chunk is complete");
	if (rc == 0 && is_cut)
		foreign_trace_lost_events(
			j->trace, 1, "the last chunk is not complete: events of it are not known");
	return rc;
}

/* ---- the whole ---- */

/* What reports show first: of the kinds that were met the first one. */
static void tell_main_metric(struct jfr *j)
{
	for (size_t i = 0; i < N_KINDS; i++)
		if (j->n_kind[i]) {
			foreign_trace_main_metric(j->trace, kinds[i].metric, kinds[i].unit);
			return;
		}
}

static void tell_skipped(struct jfr *j)
{
	char reason[200];

	for (uint32_t i = 0; i < j->n_skipped.n; i++) {
		snprintf(reason, sizeof(reason), "%s events are not shown",
			intern_get(&j->skipped, i));
		foreign_trace_note(j->trace, j->n_skipped.v[i], reason);
	}
	if (j->n_other)
		foreign_trace_note(j->trace, j->n_other, "events of other types are not shown");
	if (j->n_without_stack)
		foreign_trace_note(j->trace, j->n_without_stack,
			"events without stacks (settings, garbage collections, loads) are not shown");
}

static void tell_imperfections(struct jfr *j)
{
	tell_skipped(j);
	if (j->n_damaged)
		foreign_trace_lost(j->trace, j->n_damaged,
			"events of types that the file does not describe, or without thread, time and stack");
	if (j->n_large)
		foreign_trace_lost_events(j->trace, j->n_large, "events of more than 16 MiB");
	if (j->n_negative)
		foreign_trace_lost(
			j->trace, j->n_negative, "events whose amount is missing or below zero");
	if (j->stacks.n_missing)
		foreign_trace_note(j->trace, j->stacks.n_missing,
			"samples refer to a stack that the file does not have");
	if (j->stacks.n_deep)
		foreign_trace_note(
			j->trace, j->stacks.n_deep, "stacks were cut at their outer end: too deep");
}

int jfr_read(struct foreign_input *in, const char *path, const struct foreign_options *options,
	struct trace_writer *w, struct err *err)
{
	struct jfr j = {.in = in, .trace = foreign_trace_new(w, "jfr")};
	int rc;

	(void)path;
	(void)options;
	jfr_stacks_init(&j.stacks, j.trace);
	rc = take_chunks(&j, w, err);
	if (rc == 0) {
		tell_main_metric(&j);
		tell_imperfections(&j);
	}
	foreign_trace_free(j.trace);
	jfr_stacks_release(&j.stacks);
	vec_release(&j.roles);
	vec_release(&j.pending);
	vec_release(&j.n_skipped);
	intern_release(&j.skipped);
	return rc;
}
