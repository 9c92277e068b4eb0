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

static const char *default_metric(const struct trace_reader *r)
{
	static const char *const order[] = {"instructions", "cpu", "samples"};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (find_metric(r, order[i]))
			return order[i];
	if (trace_reader_n_metrics(r) > 1)
		return trace_reader_string(r, trace_reader_metric(r, 1)->name);
	return "samples";
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
	if (b->kind == METRIC_KIND_WALL && !b->metric_id && find_metric(b->reader, "wait")) {
		b->metric_id = find_metric(b->reader, "cpu");
		b->wait_id = find_metric(b->reader, "wait");
	}
	if (!b->metric_id && (b->kind == METRIC_KIND_TIME || b->kind == METRIC_KIND_COUNT))
		return no_metric(b->reader, name, err);
	p->metric = name;
	if (b->metric_id)
		p->unit = trace_reader_string(
			b->reader, trace_reader_metric(b->reader, b->metric_id)->unit);
	else
		p->unit = b->kind == METRIC_KIND_WALL ? "ns" : "1";
	p->is_time = b->kind == METRIC_KIND_TIME || b->kind == METRIC_KIND_WALL;
	return 0;
}

/* Metrics that every trace has, if it has what they count. */
static int check_metric(const struct builder *b, const char *wanted, struct err *err)
{
	const struct profile *p = b->profile;

	if (!wanted || b->metric_id)
		return 0;
	if (b->kind == METRIC_KIND_SAMPLES ? p->n_samples : p->n_events)
		return 0;
	return no_metric(b->reader, wanted, err);
}

/* ---- events ---- */

uint32_t build_root(struct builder *b, uint32_t thread)
{
	struct profile_thread *t = &b->profile->threads[thread];

	if (!t->root)
		t->root = calltree_root(b->tree, t->root_name);
	return t->root;
}

static bool passes_time(const struct builder *b)
{
	return b->kind == METRIC_KIND_TIME || b->kind == METRIC_KIND_WALL;
}

static void enter(struct builder *b, struct thread_state *state, uint64_t time, uint32_t routine)
{
	calltree_enter(state->calls, time, routine);
	if (b->kind == METRIC_KIND_CALLS)
		calltree_add_resource(state->calls, 1);
}

/* The thread's calls, begun at its first event in the window with what was open by then. */
static struct calltree_thread *calls_of(struct builder *b, uint32_t thread, uint64_t time)
{
	struct thread_state *state = &b->threads[thread];

	if (state->calls)
		return state->calls;
	if (state->open.n)
		time = b->from;
	state->calls = calltree_thread_new(b->tree, build_root(b, thread), time);
	calltree_thread_charge_time(state->calls, passes_time(b));
	for (size_t i = 0; i < state->open.n; i++)
		enter(b, state, time, state->open.v[i]);
	state->open.n = 0;
	state->last_event = time;
	if ((state->is_out || state->interrupts) && b->kind == METRIC_KIND_TIME)
		calltree_suspend(state->calls, time);
	return state->calls;
}

/* The function that has the code; what is inlined into it has no entry of its own. */
static uint32_t routine_of_frame(struct builder *b, uint32_t frame)
{
	const struct trace_frame *f = trace_reader_frame(b->reader, frame);
	size_t n;

	if (f->image)
		b->profile->image_is_used[f->image] = true;
	return frame_routines_get(&b->names, frame, &n)[0];
}

/* Before the window only the stack of open routines matters. */
static void track_open(struct thread_state *state, bool is_exit, uint32_t routine)
{
	size_t i = state->open.n;

	if (!is_exit) {
		vec_push(&state->open, routine);
		return;
	}
	while (i > 0 && routine && state->open.v[i - 1] != routine)
		i--;
	if (i > 0)
		state->open.n = i - 1;
}

static void routine_record(struct builder *b, const struct trace_record *record, uint32_t thread)
{
	struct thread_state *state = &b->threads[thread];
	bool is_exit = record->minor & RECORD_MINOR_EXIT;
	uint32_t routine = 0;
	uint64_t frame;

	if (trace_record_numbers(b->reader, record, &frame, 1, NULL) < 0 ||
		frame >= trace_reader_n_frames(b->reader) || (!frame && !is_exit)) {
		loss_add_reason(&b->profile->loss, "an event record is damaged", 1);
		return;
	}
	if (frame)
		routine = routine_of_frame(b, (uint32_t)frame);
	if (record->time < b->from) {
		track_open(state, is_exit, routine);
		return;
	}
	b->profile->n_events++;
	b->profile->threads[thread].events++;
	calls_of(b, thread, record->time);
	if (!is_exit)
		enter(b, state, record->time, routine);
	else if (routine)
		calltree_leave(state->calls, record->time, routine);
	else
		calltree_leave_innermost(state->calls, record->time);
	state->last_event = record->time;
}

/* Time stands still for a thread that is switched out or interrupted. */
static void set_suspended(struct builder *b, uint32_t thread, uint64_t time, bool was_suspended)
{
	struct thread_state *state = &b->threads[thread];
	bool is_suspended = state->is_out || state->interrupts;

	if (!state->calls || is_suspended == was_suspended || b->kind != METRIC_KIND_TIME)
		return;
	if (is_suspended)
		calltree_suspend(state->calls, time);
	else
		calltree_resume(state->calls, time);
	if (time > state->last_event)
		state->last_event = time;
}

static void switch_record(struct builder *b, const struct trace_record *record)
{
	struct thread_state *state;
	bool was_suspended;
	uint64_t thread;

	if (trace_record_numbers(b->reader, record, &thread, 1, NULL) < 0 || !thread ||
		thread >= b->profile->n_threads) {
		loss_add_reason(&b->profile->loss, "a switch record is damaged", 1);
		return;
	}
	if (!b->profile->threads[thread].is_wanted)
		return;
	state = &b->threads[thread];
	was_suspended = state->is_out || state->interrupts;
	state->is_out = record->minor == RECORD_SWITCH_OUT;
	state->interrupts = 0;
	b->cpu_thread[record->stream] = state->is_out ? 0 : (uint32_t)thread;
	if (record->time >= b->from && state->is_out) {
		b->profile->n_switches++;
		b->profile->threads[thread].switches++;
	}
	set_suspended(b, (uint32_t)thread, record->time, was_suspended);
}

static void interrupt_record(struct builder *b, const struct trace_record *record)
{
	uint32_t thread = b->cpu_thread[record->stream];
	struct thread_state *state = &b->threads[thread];
	bool was_suspended = state->is_out || state->interrupts;

	if (!thread)
		return;
	if (!(record->minor & RECORD_MINOR_EXIT))
		state->interrupts++;
	else if (state->interrupts)
		state->interrupts--;
	set_suspended(b, thread, record->time, was_suspended);
}

static void resource_record(struct builder *b, const struct trace_record *record, uint32_t thread)
{
	uint64_t numbers[2]; /* metric, amount */

	if (trace_record_numbers(b->reader, record, numbers, 2, NULL) < 0) {
		loss_add_reason(&b->profile->loss, "a resource record is damaged", 1);
		return;
	}
	if (record->time < b->from || numbers[0] != b->metric_id || b->kind != METRIC_KIND_COUNT)
		return;
	calltree_add_resource(calls_of(b, thread, record->time), numbers[1]);
}

/* ---- samples ---- */

static void sample_record(struct builder *b, const struct trace_record *record)
{
	struct trace_sample sample;

	if (trace_record_sample(b->reader, record, &sample, NULL) < 0 || !sample.thread)
		loss_add_reason(&b->profile->loss, "a sample record is damaged", 1);
	else if (record->time >= b->from && b->profile->threads[sample.thread].is_wanted)
		build_sample(b, &sample);
}

static void tick_record(struct builder *b, const struct trace_record *record)
{
	uint64_t numbers[4]; /* thread, frame, metric, weight */

	if (trace_record_numbers(b->reader, record, numbers, 4, NULL) < 0 || !numbers[0] ||
		numbers[0] >= b->profile->n_threads || !numbers[1] ||
		numbers[1] >= trace_reader_n_frames(b->reader) ||
		numbers[2] >= trace_reader_n_metrics(b->reader))
		loss_add_reason(&b->profile->loss, "a sample record is damaged", 1);
	else if (record->time >= b->from && b->profile->threads[numbers[0]].is_wanted)
		build_tick(b, (uint32_t)numbers[0], (uint32_t)numbers[1], (uint32_t)numbers[2],
			numbers[3]);
}

/* ---- the walk ---- */

/* The thread of a stream of events; 0 when the stream is of another kind. */
static uint32_t thread_of_stream(const struct builder *b, uint32_t stream)
{
	const struct trace_stream *s = trace_reader_stream(b->reader, stream);

	return s->kind == STREAM_KIND_THREAD && s->number < b->profile->n_threads ? s->number : 0;
}

static void event_record(struct builder *b, const struct trace_record *record)
{
	uint32_t thread = thread_of_stream(b, record->stream);

	if (!thread)
		loss_add_reason(&b->profile->loss, "an event is not in a thread's stream", 1);
	else if (!b->profile->threads[thread].is_wanted)
		return;
	else if (record->major == RECORD_MAJOR_RESOURCE)
		resource_record(b, record, thread);
	else
		routine_record(b, record, thread);
}

static void walk_record(struct builder *b, const struct trace_record *record)
{
	uint32_t minor = record->minor;

	switch (record->major) {
	case RECORD_MAJOR_ROUTINE:
	case RECORD_MAJOR_INTERPRETED:
		if ((minor & ~RECORD_MINOR_EXIT) == RECORD_ROUTINE_ENTER) {
			event_record(b, record);
			return;
		}
		break;
	case RECORD_MAJOR_STACK_SAMPLE:
		if (minor == RECORD_MINOR_STACK) {
			sample_record(b, record);
			return;
		}
		break;
	case RECORD_MAJOR_THREAD:
		if (minor == RECORD_THREAD_TICK) {
			tick_record(b, record);
			return;
		}
		break;
	case RECORD_MAJOR_SWITCH:
		if (minor == RECORD_SWITCH_OUT || minor == RECORD_SWITCH_IN) {
			switch_record(b, record);
			return;
		}
		break;
	case RECORD_MAJOR_RESOURCE:
		if (minor == RECORD_RESOURCE_ADD) {
			event_record(b, record);
			return;
		}
		break;
	case RECORD_MAJOR_INTERRUPT:
		interrupt_record(b, record);
		return;
	}
	if (trace_reader_stream(b->reader, record->stream)->kind != STREAM_KIND_LIFE)
		build_life_record(b, record);
}

/* The window is given from the first record of the trace. */
static void place_window(struct builder *b, const struct build_options *options, uint64_t start)
{
	b->profile->start = start;
	b->from = options->from > UINT64_MAX - start ? UINT64_MAX : start + options->from;
	b->to = options->to > UINT64_MAX - start ? UINT64_MAX : start + options->to;
	if (options->from == 0)
		b->from = 0;
}

static void walk(struct builder *b, const struct build_options *options)
{
	struct trace_cursor *cursor;
	struct trace_record record;
	struct err err = {0};
	bool is_first = true;
	int rc = trace_cursor_open(&cursor, b->reader, TRACE_ALL_STREAMS, 0, UINT64_MAX, &err);

	if (rc < 0) {
		build_note_damage(b, &err);
		return;
	}
	while ((rc = trace_cursor_next(cursor, &record, &err)) != 0) {
		if (rc < 0) { /* costs that chunk alone */
			build_note_damage(b, &err);
			continue;
		}
		if (is_first)
			place_window(b, options, record.time);
		is_first = false;
		if (record.time >= b->to) {
			b->continues = true;
			break;
		}
		b->profile->end = record.time;
		walk_record(b, &record);
	}
	trace_cursor_close(cursor);
}

static void end_threads(struct builder *b)
{
	for (uint32_t id = 1; id < b->profile->n_threads; id++) {
		struct thread_state *state = &b->threads[id];

		if (state->open.n)
			calls_of(b, id, b->from);
		if (!state->calls)
			continue;
		calltree_thread_end(state->calls, b->continues ? b->to : state->last_event);
		if (!b->continues)
			loss_add_reason(&b->profile->loss, "enter and leave events do not match",
				calltree_thread_unmatched(state->calls));
	}
}

static void builder_release(struct builder *b)
{
	for (uint32_t id = 0; id < b->profile->n_threads; id++) {
		calltree_thread_free(b->threads[id].calls);
		vec_release(&b->threads[id].open);
	}
	free(b->threads);
	free(b->cpu_thread);
	free(b->stack_n);
	free(b->frame_n);
	vec_release(&b->sums);
	vec_release(&b->path);
	map_release(&b->sum_of);
	free(b->node_of);
	frame_routines_release(&b->names);
}

static void builder_init(struct builder *b, struct profile *p, const struct trace_reader *r)
{
	memset(b, 0, sizeof(*b));
	b->profile = p;
	b->reader = r;
	b->tree = p->tree;
	b->threads = mem_calloc(p->n_threads, sizeof(*b->threads));
	b->cpu_thread = mem_calloc(trace_reader_n_streams(r), sizeof(*b->cpu_thread));
	b->node_of = mem_calloc(trace_reader_n_stacks(r), sizeof(*b->node_of));
	b->stack_n = mem_calloc(trace_reader_n_stacks(r), sizeof(*b->stack_n));
	b->frame_n = mem_calloc(trace_reader_n_frames(r), sizeof(*b->frame_n));
	frame_routines_init(&b->names, r, p->tree);
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

int profile_build(struct profile **out, const struct trace_reader *r,
	const struct build_options *options, struct err *err)
{
	struct profile *p = profile_new(r);
	struct builder b;
	int rc;

	builder_init(&b, p, r);
	rc = choose_metric(&b, options->metric, err);
	if (rc == 0) {
		build_read_life(&b);
		rc = build_select_threads(&b, options->thread, err);
	}
	if (rc == 0) {
		walk(&b, options);
		end_threads(&b);
		build_samples_end(&b);
		calltree_finish(p->tree);
		p->total = calltree_total(p->tree);
		p->from = b.from;
		p->to = b.to;
		loss_sort_reasons(&p->loss);
		rc = check_metric(&b, options->metric, err);
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
	loss_release(&p->loss);
	free(p);
}
