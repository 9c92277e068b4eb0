/* SPDX-License-Identifier: MIT */
/*
 * The file format of speedscope (https://www.speedscope.app/file-format-schema.json). A thread is a profile
 * of its samples with their weights ("sampled"), and one more of its calls, to the nanosecond ("evented"),
 * when it has such; a stack that a coroutine runs on is a profile of its own. A frame is a function, since
 * speedscope takes each frame for one.
 *
 * Profiles come one after another and the trace comes in order of time, so the trace is walked
 * once and its rows are put away by thread.
 */
#include "formats/exports.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "formats/number_text.h"
#include "formats/row_spool.h"
#include "formats/timed_walk.h"

enum sample_row { SAMPLE_NODE, SAMPLE_WEIGHT, SAMPLE_ROW };
enum event_row { EVENT_AFTER_NS, EVENT_FUNCTION, EVENT_IS_CLOSE, EVENT_ROW };

/* The calls of one stack of a thread. */
struct call_lane {
	uint32_t thread, chain;
	uint64_t first, last; /* of its events */
	bool is_used;
};

struct scope {
	const struct profile *profile;
	struct export_stacks stacks;
	struct row_spool samples; /* by thread */
	struct row_spool events;  /* by lane */
	VEC(struct call_lane) lanes;
	uint64_t *weights;	 /* by thread */
	VEC(uint32_t) frame_of;	 /* by function: its frame + 1 */
	VEC(uint32_t) frames;	 /* functions */
	VEC(const char *) files; /* of them; NULL: not known */
	VEC(uint32_t) path;
	struct json json;
};

/* ---- the walk ---- */

static void add_weight(void *to, uint32_t thread, uint32_t node, uint64_t weight)
{
	struct scope *s = to;
	uint64_t row[SAMPLE_ROW] = {node, weight};

	row_spool_put(&s->samples, thread, row);
	s->weights[thread] += weight;
}

static void add_sample(void *to, const struct sample_view *sample, uint64_t weight)
{
	struct scope *s = to;

	add_weight(to, sample->thread, export_stacks_node(&s->stacks, sample), weight);
}

static void add_event(struct scope *s, const struct timed_call *call, uint64_t time, bool is_close)
{
	struct call_lane *lane;
	uint64_t row[EVENT_ROW];

	vec_ensure_zero(&s->lanes, call->lane + (size_t)1);
	lane = &s->lanes.v[call->lane];
	if (!lane->is_used)
		*lane = (struct call_lane){call->thread, call->chain, time, time, true};
	row[EVENT_AFTER_NS] = time - lane->last;
	row[EVENT_FUNCTION] = call->function;
	row[EVENT_IS_CLOSE] = is_close;
	lane->last = time;
	row_spool_put(&s->events, call->lane, row);
}

static void enter(void *to, const struct timed_call *call)
{
	add_event(to, call, call->from, false);
}

static void leave(void *to, const struct timed_call *call)
{
	add_event(to, call, call->to, true);
}

/* ---- frames ---- */

static uint32_t frame_of(struct scope *s, uint32_t function, const char *file)
{
	vec_ensure_zero(&s->frame_of, function + (size_t)1);
	if (!s->frame_of.v[function]) {
		vec_push(&s->frames, function);
		vec_push(&s->files, NULL);
		s->frame_of.v[function] = (uint32_t)s->frames.n;
	}
	if (!s->files.v[s->frame_of.v[function] - 1])
		s->files.v[s->frame_of.v[function] - 1] = file;
	return s->frame_of.v[function] - 1;
}

static void put_frames(struct scope *s)
{
	json_object_begin(&s->json, "shared");
	json_array_begin(&s->json, "frames");
	for (size_t i = 0; i < s->frames.n; i++) {
		const struct calltree_routine *routine =
			export_stacks_routine(&s->stacks, s->frames.v[i]);
		const char *file = s->files.v[i] ? s->files.v[i] : routine->image;

		json_object_begin(&s->json, NULL);
		json_string(&s->json, "name", routine->name);
		if (*file)
			json_string(&s->json, "file", file);
		json_object_end(&s->json);
	}
	json_array_end(&s->json);
	json_object_end(&s->json);
}

/* ---- profiles ---- */

static const char *unit_name(const char *unit)
{
	if (!strcmp(unit, "ns"))
		return "nanoseconds";
	return !strcmp(unit, "bytes") ? "bytes" : "none";
}

static void put_title(struct scope *s, uint32_t thread, const char *what, uint32_t chain)
{
	const struct profile_thread *t = &s->profile->threads[thread];
	char *title;

	if (chain)
		title = mem_printf("%s (%s, stack %u): %s", t->name, t->root_name, chain, what);
	else if (*t->name)
		title = mem_printf("%s (%s): %s", t->name, t->root_name, what);
	else
		title = mem_printf("%s: %s", t->root_name, what);
	json_string(&s->json, "name", title);
	free(title);
}

/* The frames of a node, outermost first. */
static void put_stack(struct scope *s, uint32_t node)
{
	FILE *out = s->json.out;
	bool is_next = false;

	s->path.n = 0;
	for (; node; node = s->stacks.nodes.v[node].parent)
		vec_push(&s->path, node);
	putc_unlocked('[', out);
	while (s->path.n) {
		const struct export_node *n = &s->stacks.nodes.v[s->path.v[--s->path.n]];
		const struct export_place *place = &s->stacks.places.v[n->place];

		put_comma(out, &is_next);
		put_number(out, frame_of(s, place->function, place->file));
	}
	putc_unlocked(']', out);
}

static void put_sample_column(struct scope *s, uint32_t thread, const char *key, bool of_stacks)
{
	struct row_reader reader;
	uint64_t row[SAMPLE_ROW];
	bool is_next = false;

	json_array_begin(&s->json, key);
	row_reader_open(&reader, &s->samples, thread);
	while (row_reader_next(&reader, row)) {
		put_comma(s->json.out, &is_next);
		if (of_stacks)
			put_stack(s, (uint32_t)row[SAMPLE_NODE]);
		else
			put_number(s->json.out, row[SAMPLE_WEIGHT]);
	}
	row_reader_close(&reader);
	json_array_end(&s->json);
}

static void put_sampled(struct scope *s, uint32_t thread)
{
	json_object_begin(&s->json, NULL);
	json_string(&s->json, "type", "sampled");
	put_title(s, thread, s->profile->metric, 0);
	json_string(&s->json, "unit", unit_name(s->profile->unit));
	json_u64(&s->json, "startValue", 0);
	json_u64(&s->json, "endValue", s->weights[thread]);
	put_sample_column(s, thread, "samples", true);
	put_sample_column(s, thread, "weights", false);
	json_object_end(&s->json);
	json_newline(&s->json);
}

static void put_events(struct scope *s, uint32_t lane, uint64_t at)
{
	FILE *out = s->json.out;
	struct row_reader reader;
	uint64_t row[EVENT_ROW];
	bool is_next = false;

	json_array_begin(&s->json, "events");
	row_reader_open(&reader, &s->events, lane);
	while (row_reader_next(&reader, row)) {
		at += row[EVENT_AFTER_NS];
		put_comma(out, &is_next);
		fputs_unlocked(row[EVENT_IS_CLOSE] ? "{\"type\":\"C\",\"frame\":"
						   : "{\"type\":\"O\",\"frame\":",
			out);
		put_number(out, frame_of(s, (uint32_t)row[EVENT_FUNCTION], NULL));
		fputs_unlocked(",\"at\":", out);
		put_number(out, at);
		putc_unlocked('}', out);
	}
	row_reader_close(&reader);
	json_array_end(&s->json);
}

/* Imported events have times in units of their own. */
static const char *time_unit(const struct trace_reader *r)
{
	for (uint32_t id = 1; id < trace_reader_n_metrics(r); id++) {
		const struct trace_metric *metric = trace_reader_metric(r, id);

		if (!strcmp(trace_reader_string(r, metric->name), "time"))
			return unit_name(trace_reader_string(r, metric->unit));
	}
	return "nanoseconds";
}

static void put_evented(struct scope *s, uint32_t lane_i)
{
	const struct call_lane *lane = &s->lanes.v[lane_i];
	uint64_t start = s->profile->start;

	json_object_begin(&s->json, NULL);
	json_string(&s->json, "type", "evented");
	put_title(s, lane->thread, "calls", lane->chain);
	json_string(&s->json, "unit", time_unit(s->profile->reader));
	json_u64(&s->json, "startValue", lane->first - start);
	json_u64(&s->json, "endValue", lane->last - start);
	put_events(s, lane_i, lane->first - start);
	json_object_end(&s->json);
	json_newline(&s->json);
}

/* The one that is shown first is that of the thread with most of the metric. */
static uint32_t put_profiles(struct scope *s)
{
	uint32_t n = 0, best = 0;
	uint64_t most = 0;

	json_array_begin(&s->json, "profiles");
	for (uint32_t id = 1; id < s->profile->n_threads; id++) {
		if (row_spool_n_rows(&s->samples, id)) {
			if (s->weights[id] > most) {
				most = s->weights[id];
				best = n;
			}
			put_sampled(s, id);
			n++;
		}
	}
	for (uint32_t lane = 1; lane < s->lanes.n; lane++)
		if (s->lanes.v[lane].is_used)
			put_evented(s, lane);
	json_array_end(&s->json);
	return best;
}

static void put_file(struct scope *s)
{
	const char *command = trace_reader_meta(s->profile->reader, "command");
	uint32_t active;

	json_object_begin(&s->json, NULL);
	json_string(&s->json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_string(&s->json, "exporter", "weir " WEIR_VERSION);
	json_string(&s->json, "name", command ? command : trace_reader_name(s->profile->reader));
	active = put_profiles(s);
	put_frames(s);
	json_u64(&s->json, "activeProfileIndex", active);
	json_object_end(&s->json);
}

int export_speedscope(const struct profile *profile, FILE *out, struct err *err)
{
	static const struct timed_visitor visitor = {
		.sample = add_sample, .enter = enter, .leave = leave};
	struct scope s = {.profile = profile};
	int rc = 0;

	export_stacks_init(&s.stacks, profile);
	row_spool_init(&s.samples, SAMPLE_ROW);
	row_spool_init(&s.events, EVENT_ROW);
	s.weights = mem_calloc(profile->n_threads, sizeof(*s.weights));
	json_init(&s.json, out);
	if (export_has_tree_alone(profile))
		export_stacks_of_tree(&s.stacks, add_weight, &s);
	else
		rc = timed_walk(&s.stacks, &visitor, &s, err);
	if (rc == 0) {
		put_file(&s);
		rc = row_spool_check(&s.samples, err);
		rc = rc < 0 ? rc : row_spool_check(&s.events, err);
	}
	export_stacks_release(&s.stacks);
	row_spool_release(&s.samples);
	row_spool_release(&s.events);
	vec_release(&s.lanes);
	free(s.weights);
	vec_release(&s.frame_of);
	vec_release(&s.frames);
	vec_release(&s.files);
	vec_release(&s.path);
	return rc;
}
