/* SPDX-License-Identifier: MIT */
/* The walk through a trace, in order of time, and the choice of the metric. */
#include "calltree/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calltree/build_internal.h"

/* ---- the metric ---- */

static uint32_t find_metric(const struct trace_reader *r, const char *name)
{
	for (uint32_t id = 1; id < trace_reader_n_metrics(r); id++)
		if (!strcmp(trace_reader_string(r, trace_reader_metric(r, id)->name), name))
			return id;
	return 0;
}

static enum metric_kind kind_of_metric(const char *name)
{
	if (!strcmp(name, "cpu") || !strcmp(name, "time"))
		return METRIC_KIND_TIME;
	if (!strcmp(name, "wall"))
		return METRIC_KIND_WALL;
	if (!strcmp(name, "samples"))
		return METRIC_KIND_SAMPLES;
	if (!strcmp(name, "calls"))
		return METRIC_KIND_CALLS;
	return METRIC_KIND_COUNT;
}

/* A tree that was kept in the program has no CPU time, so that wall time comes first there. */
static const char *default_metric(const struct trace_reader *r)
{
	static const char *const order[] = {"instructions", "cpu", "samples"};
	const char *first = "samples", *told = trace_reader_meta(r, "main_metric");

	if (told && find_metric(r, told))
		return told;
	if (trace_reader_has_kind(r, RECORD_MAJOR_TREE, RECORD_TREE_NODE) &&
		!trace_reader_has_kind(r, RECORD_MAJOR_ROUTINE, 0))
		return "wall";
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (find_metric(r, order[i]))
			return order[i];
	if (trace_reader_n_metrics(r) > 1)
		first = trace_reader_string(r, trace_reader_metric(r, 1)->name);
	if (kind_of_metric(first) == METRIC_KIND_TIME)
		return first;
	/* The time between events is measured along the way. */
	return trace_reader_has_kind(r, RECORD_MAJOR_ROUTINE, 0) ? "cpu" : first;
}

static int no_metric(const struct trace_reader *r, const char *name, struct err *err)
{
	char known[200] = "";
	size_t used = 0;

	for (uint32_t id = 1; id < trace_reader_n_metrics(r) && used < sizeof(known); id++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
			used ? ", " : "", trace_reader_string(r, trace_reader_metric(r, id)->name));
	return err_set(err, ERR_NOT_FOUND, "'%s': has no metric '%s' (it has: %s)",
		trace_reader_name(r), name, used ? known : "none");
}

static int choose_metric(struct builder *b, const char *wanted, struct err *err)
{
	const char *name = wanted ? wanted : default_metric(b->reader);
	struct profile *p = b->profile;

	b->metric_id = find_metric(b->reader, name);
	b->kind = kind_of_metric(name);
	if (b->kind == METRIC_KIND_CALLS && b->metric_id &&
		!trace_reader_has_kind(b->reader, RECORD_MAJOR_COUNT, 0))
		b->kind = METRIC_KIND_COUNT; /* a file of another tool says how many, by samples */
	if (b->kind == METRIC_KIND_WALL && !b->metric_id && find_metric(b->reader, "wait")) {
		b->metric_id = find_metric(b->reader, "cpu");
		b->wait_id = find_metric(b->reader, "wait");
	}
	if (!b->metric_id && b->kind == METRIC_KIND_COUNT)
		return no_metric(b->reader, name, err);
	p->weighing = (struct sample_weighing){
		.kind = b->kind, .metric_id = b->metric_id, .wait_id = b->wait_id};
	p->metric = name;
	if (b->metric_id)
		p->unit = trace_reader_string(
			b->reader, trace_reader_metric(b->reader, b->metric_id)->unit);
	else
		p->unit = b->kind == METRIC_KIND_WALL || b->kind == METRIC_KIND_TIME ? "ns" : "1";
	p->is_time = b->kind == METRIC_KIND_TIME || b->kind == METRIC_KIND_WALL;
	return 0;
}

/* Metrics that every trace has, if it has what they count. */
static int check_metric(const struct builder *b, const char *wanted, struct err *err)
{
	const struct profile *p = b->profile;

	if (!wanted || b->metric_id)
		return 0;
	if (b->kind == METRIC_KIND_CALLS && p->counts.has_calls)
		return 0;
	if (b->kind == METRIC_KIND_SAMPLES ? p->n_samples : p->n_events + p->n_kept_nodes)
		return 0;
	return no_metric(b->reader, wanted, err);
}

/* Whether the tree's figures can be by events at all; else all are those of samples. */
static bool events_measure(const struct builder *b)
{
	return b->kind != METRIC_KIND_SAMPLES &&
	       (b->kind != METRIC_KIND_COUNT || b->has_resource || b->profile->counts.n_nodes);
}

/* ---- the walk ---- */

uint32_t build_root(struct builder *b, uint32_t thread)
{
	struct profile_thread *t = &b->profile->threads[thread];

	if (!t->root)
		t->root = calltree_root(b->tree, t->root_name);
	return t->root;
}

uint32_t build_routine(struct builder *b, uint32_t frame)
{
	uint32_t image = trace_reader_frame(b->reader, frame)->image;
	size_t n;

	if (image)
		b->profile->image_is_used[image] = true;
	return frame_routines_get(&b->names, frame, &n)[0];
}

typedef void record_function(struct builder *b, const struct trace_record *record);

/* Who handles a record; NULL: it is one of life, or not known. */
static record_function *handler_of(uint32_t major, uint32_t minor)
{
	switch (major) {
	case RECORD_MAJOR_ROUTINE:
	case RECORD_MAJOR_INTERPRETED:
		return (minor & ~RECORD_MINOR_EXIT) == RECORD_ROUTINE_ENTER ||
				       minor == RECORD_ROUTINE_OPEN
			       ? build_event_record
			       : NULL;
	case RECORD_MAJOR_STACK_SAMPLE:
		return minor == RECORD_MINOR_STACK ? build_sample_record : NULL;
	case RECORD_MAJOR_STACK_EVENT:
		return minor == RECORD_MINOR_STACK ? build_stack_event_record : NULL;
	case RECORD_MAJOR_THREAD:
		return minor == RECORD_THREAD_TICK ? build_tick_record : NULL;
	case RECORD_MAJOR_SWITCH:
		return minor == RECORD_SWITCH_OUT || minor == RECORD_SWITCH_IN ? build_switch_record
									       : NULL;
	case RECORD_MAJOR_RESOURCE:
		return minor == RECORD_RESOURCE_ADD ? build_event_record : NULL;
	case RECORD_MAJOR_HOOK:
		return minor == RECORD_HOOK_CHAIN ? build_event_record : NULL;
	case RECORD_MAJOR_TREE:
		return minor >= RECORD_TREE_NODE && minor <= RECORD_TREE_OVER ? build_tree_record
									      : NULL;
	case RECORD_MAJOR_COUNT:
		return minor >= RECORD_COUNT_NODE && minor <= RECORD_COUNT_SUM ? build_count_record
									       : NULL;
	case RECORD_MAJOR_INTERRUPT:
		return build_interrupt_record;
	}
	return NULL;
}

bool build_is_of_the_walk(const struct trace_record *record)
{
	return handler_of(record->major, record->minor) != NULL;
}

void build_record(struct builder *b, const struct trace_record *record)
{
	record_function *handle = handler_of(record->major, record->minor);

	if (handle)
		handle(b, record);
	else if (trace_reader_stream(b->reader, record->stream)->kind != STREAM_KIND_LIFE)
		build_life_record(b, record);
}

/* The window is given from the first record of the trace. */
static void place_window(struct builder *b, const struct build_options *options)
{
	uint64_t start = trace_reader_start(b->reader);

	b->profile->start = b->profile->end = start;
	b->from = options->from > UINT64_MAX - start ? UINT64_MAX : start + options->from;
	b->to = options->to > UINT64_MAX - start ? UINT64_MAX : start + options->to;
	if (options->from == 0)
		b->from = 0;
}

/* All streams but those of threads, which are played along. */
static void walk(struct builder *b)
{
	struct trace_cursor *cursor;
	struct trace_record record;
	uint64_t n = 0;
	struct err err = {0};
	int rc = trace_cursor_open_some(&cursor, b->reader, b->is_played, 0, UINT64_MAX, &err);

	if (rc < 0) {
		build_note_damage(b, &err);
		return;
	}
	while ((rc = trace_cursor_next(cursor, &record, &err)) != 0) {
		if (rc < 0) { /* costs that chunk alone */
			build_note_damage(b, &err);
			continue;
		}
		if (record.time >= b->to) {
			b->continues = true;
			break;
		}
		if (++n % PROGRESS_STEP == 0) {
			progress_add(b->progress, PROGRESS_STEP);
			if (progress_is_unwanted(b->progress))
				break;
		}
		if (record.time > b->profile->end)
			b->profile->end = record.time;
		build_record(b, &record);
	}
	trace_cursor_close(cursor);
}

static void builder_release(struct builder *b)
{
	build_events_release(b);
	build_nodes_release(b);
	build_counts_release(b);
	free(b->threads);
	free(b->cpu_thread);
	free(b->alive_since);
	free(b->stack_n);
	free(b->frame_n);
	vec_release(&b->sums);
	vec_release(&b->path);
	map_release(&b->sum_of);
	free(b->node_of);
	frame_routines_release(&b->names);
}

static void builder_init(struct builder *b, struct profile *p, const struct trace_reader *r,
	struct progress *progress)
{
	memset(b, 0, sizeof(*b));
	b->profile = p;
	b->reader = r;
	b->progress = progress;
	b->tree = p->tree;
	b->threads = mem_calloc(p->n_threads, sizeof(*b->threads));
	b->cpu_thread = mem_calloc(trace_reader_n_streams(r), sizeof(*b->cpu_thread));
	b->alive_since = mem_calloc(p->n_threads, sizeof(*b->alive_since));
	b->has_switches = trace_reader_has_kind(r, RECORD_MAJOR_SWITCH, 0);
	b->node_of = mem_calloc(trace_reader_n_stacks(r), sizeof(*b->node_of));
	b->stack_n = mem_calloc(trace_reader_n_stacks(r), sizeof(*b->stack_n));
	b->frame_n = mem_calloc(trace_reader_n_frames(r), sizeof(*b->frame_n));
	frame_routines_init(&b->names, r, p->tree);
	build_events_init(b);
}

static struct profile *profile_new(const struct trace_reader *r)
{
	struct profile *p = mem_zalloc(sizeof(*p));

	p->reader = r;
	p->tree = calltree_new();
	p->n_threads = trace_reader_n_threads(r);
	p->threads = mem_calloc(p->n_threads, sizeof(*p->threads));
	for (uint32_t id = 0; id < p->n_threads; id++)
		p->threads[id].name = "";
	p->image_is_used = mem_calloc(trace_reader_n_images(r), sizeof(*p->image_is_used));
	return p;
}

static uint64_t meta_number(const struct trace_reader *r, const char *key)
{
	const char *text = trace_reader_meta(r, key);

	return text && *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : 0;
}

static void read_coverage(const struct trace_reader *r, struct loss *loss)
{
	uint64_t hz = meta_number(r, "frequency");

	if (!hz || !trace_reader_meta(r, "sampled_ns"))
		return;
	loss->cpu_ns = meta_number(r, "sampleable_ns");
	loss->sampled_ns = meta_number(r, "sampled_ns");
	loss->period_ns = 1000000000u / hz;
}

/* What each function used is known, and who called it is not. */
static bool lacks_call_paths(const struct trace_reader *r)
{
	const char *paths = trace_reader_meta(r, "call_paths");

	return paths && !strcmp(paths, "none");
}

/* Everything was read: the tree gets its sums, the profile its figures. */
static void finish(struct builder *b)
{
	struct profile *p = b->profile;

	build_events_end(b);
	build_nodes_end(b);
	build_counts_end(b);
	build_samples_end(b);
	p->counts.is_flat |= lacks_call_paths(b->reader);
	if (!events_measure(b))
		calltree_measure_by_samples(p->tree);
	calltree_finish(p->tree);
	build_hooks_end(b);
	for (uint32_t id = 1; id < p->n_threads; id++) /* ids of nodes may have changed */
		if (p->threads[id].root)
			p->threads[id].root = calltree_root(p->tree, p->threads[id].root_name);
	p->total = calltree_total(p->tree);
	p->is_merged = calltree_has_events(p->tree) && calltree_has_samples(p->tree);
	p->from = b->from;
	p->to = b->to;
	read_coverage(b->reader, &p->loss);
	loss_sort_reasons(&p->loss);
}

static int nobody_wants(const struct trace_reader *r, struct err *err)
{
	return err_set(err, ERR_FAILED, "'%s': nobody waits for this selection any more",
		trace_reader_name(r));
}

int profile_build(struct profile **out, const struct trace_reader *r,
	const struct build_options *options, struct err *err)
{
	struct profile *p = profile_new(r);
	struct builder b;
	int rc;

	builder_init(&b, p, r, options->progress);
	rc = choose_metric(&b, options->metric, err);
	if (rc == 0) {
		build_read_life(&b);
		rc = build_select_threads(&b, options->thread, err);
	}
	if (rc == 0) {
		build_hooks_begin(&b, options->keeps_cost);
		place_window(&b, options);
		progress_begin(b.progress, trace_reader_n_records(r));
		walk(&b);
		finish(&b);
		progress_end(b.progress);
		rc = progress_is_unwanted(b.progress) ? nobody_wants(r, err)
						      : check_metric(&b, options->metric, err);
	}
	builder_release(&b);
	if (rc < 0)
		profile_free(p);
	else
		*out = p;
	return rc;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	calltree_free(p->tree);
	for (uint32_t id = 0; id < p->n_threads; id++)
		free(p->threads[id].root_name);
	free(p->threads);
	free(p->image_is_used);
	free(p->hooks);
	free(p->costs);
	loss_release(&p->counts.missed);
	loss_release(&p->loss);
	free(p);
}
