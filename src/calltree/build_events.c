/* SPDX-License-Identifier: MIT */
/*
 * Events of threads. Threads do not concern each other, so each thread's own stream is played by
 * itself, in long runs: only what other streams have to say about the same thread (switches,
 * samples) must come at the right place, and before such a record is handled the thread is played
 * up to it. The loop over a run is where the time of a report goes when there are events.
 */
#include "calltree/build_internal.h"

#include <stdlib.h>
#include <string.h>

#include "calltree/tree_internal.h"

/* Fewer records are read before a second thread is of use. */
#define AHEAD_RECORDS_MIN 500000

enum play_action {
	PLAY_OTHER, /* by build_record */
	PLAY_ENTER,
	PLAY_LEAVE
};

/* ---- one thread ---- */

static bool is_suspended(const struct thread_state *state)
{
	return state->is_out || state->interrupts;
}

static bool passes_time(const struct builder *b)
{
	return b->kind == METRIC_KIND_TIME || b->kind == METRIC_KIND_WALL;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* When a thread that is first seen running at `time` began to run: had it been switched in since
 * then, a record would say so. */
static void see(struct builder *b, uint32_t thread, uint64_t time)
{
	struct thread_state *state = &b->threads[thread];
	uint64_t alive = b->alive_since[thread];

	if (state->is_seen)
		return;
	state->is_seen = true;
	if (b->has_switches && alive && alive - 1 < time)
		time = alive - 1;
	state->begun = state->since = later(time, b->from);
}

void build_thread_runs(struct builder *b, uint32_t thread, uint64_t time)
{
	struct thread_state *state = &b->threads[thread];

	see(b, thread, time);
	state->last = later(state->last, time);
}

/* What was open when the window opened is entered again, each stack for itself. */
static void enter_early(struct thread_state *state, uint64_t time)
{
	for (size_t i = 0; i < state->early.n; i++) {
		struct early_calls *early = &state->early.v[i];

		calltree_change_stack(state->calls, time, early->chain);
		for (size_t k = 0; k < early->open.n; k++)
			calltree_enter(state->calls, time, early->open.v[k]);
		early->open.n = 0;
	}
	if (state->early.n || state->chain)
		calltree_change_stack(state->calls, time, state->chain);
}

static bool has_early(const struct thread_state *state)
{
	for (size_t i = 0; i < state->early.n; i++)
		if (state->early.v[i].open.n)
			return true;
	return false;
}

/* The thread's calls, begun when it was first seen to run, with what was open by then. */
static struct calltree_thread *calls_of(struct builder *b, uint32_t thread, uint64_t time)
{
	struct thread_state *state = &b->threads[thread];

	if (state->calls)
		return state->calls;
	see(b, thread, has_early(state) ? b->from : time);
	if (has_early(state))
		state->begun = time = b->from;
	calltree_set_time(b->tree, time);
	state->calls = calltree_thread_new(b->tree, build_root(b, thread), state->begun);
	calltree_thread_charge_time(state->calls, passes_time(b));
	calltree_thread_charge_calls(state->calls, b->kind == METRIC_KIND_CALLS);
	if (b->kind == METRIC_KIND_TIME)
		calltree_suspend(state->calls, state->begun);
	enter_early(state, state->begun);
	if (b->kind == METRIC_KIND_TIME) {
		calltree_add_resource(state->calls, state->ran);
		if (!is_suspended(state))
			calltree_resume(state->calls, state->since);
	}
	return state->calls;
}

struct calltree_thread *build_open_calls(struct builder *b, uint32_t thread, uint64_t time)
{
	struct thread_state *state = &b->threads[thread];

	if (!state->calls && has_early(state))
		calls_of(b, thread, time);
	return state->calls;
}

/* ---- before the window ---- */

static struct early_calls *early_stack(struct thread_state *state)
{
	bool created;
	uint64_t *i;

	if (state->early.n && state->early.v[state->early_i].chain == state->chain)
		return &state->early.v[state->early_i];
	i = map_ensure(&state->early_of, state->chain, &created);
	if (created) {
		*i = state->early.n;
		vec_push(&state->early, (struct early_calls){.chain = state->chain});
	}
	state->early_i = (size_t)*i;
	return &state->early.v[state->early_i];
}

/* Only the stack of open routines matters. */
static void track_open(struct thread_state *state, bool is_exit, uint32_t routine)
{
	struct early_calls *early = early_stack(state);
	size_t i = early->open.n;

	if (!is_exit) {
		vec_push(&early->open, routine);
		return;
	}
	while (i > 0 && routine && early->open.v[i - 1] != routine)
		i--;
	if (i > 0)
		early->open.n = i - 1;
}

/* ---- records ---- */

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
		routine = b->routine_of[frame] = build_routine(b, (uint32_t)frame);
	if (record->time < b->from) {
		track_open(state, is_exit, routine);
		return;
	}
	b->profile->n_events++;
	b->profile->threads[thread].events++;
	calls_of(b, thread, record->time);
	if (record->minor == RECORD_ROUTINE_OPEN)
		calltree_enter_open(state->calls, record->time, routine);
	else if (!is_exit)
		calltree_enter(state->calls, record->time, routine);
	else if (routine)
		calltree_leave(state->calls, record->time, routine);
	else
		calltree_leave_innermost(state->calls, record->time);
	state->last = later(state->last, record->time);
}

static void chain_record(struct builder *b, const struct trace_record *record, uint32_t thread)
{
	struct thread_state *state = &b->threads[thread];
	uint64_t chain;

	if (trace_record_numbers(b->reader, record, &chain, 1, NULL) < 0) {
		loss_add_reason(&b->profile->loss, "an event record is damaged", 1);
		return;
	}
	if (record->time >= b->from && build_open_calls(b, thread, record->time))
		calltree_change_stack(state->calls, record->time, chain);
	state->chain = chain;
}

static void resource_record(struct builder *b, const struct trace_record *record, uint32_t thread)
{
	uint64_t numbers[2]; /* metric, amount */

	if (trace_record_numbers(b->reader, record, numbers, 2, NULL) < 0) {
		loss_add_reason(&b->profile->loss, "a resource record is damaged", 1);
		return;
	}
	if (numbers[0] != b->metric_id || b->kind != METRIC_KIND_COUNT)
		return;
	b->has_resource = true;
	if (record->time < b->from)
		return;
	calltree_add_resource(calls_of(b, thread, record->time), numbers[1]);
	b->threads[thread].last = later(b->threads[thread].last, record->time);
}

/* The thread of a stream of events; 0 when the stream is of another kind. */
static uint32_t thread_of_stream(const struct builder *b, uint32_t stream)
{
	const struct trace_stream *s = trace_reader_stream(b->reader, stream);

	return s->kind == STREAM_KIND_THREAD && s->number < b->profile->n_threads ? s->number : 0;
}

void build_event_record(struct builder *b, const struct trace_record *record)
{
	uint32_t thread = thread_of_stream(b, record->stream);

	if (!thread) {
		loss_add_reason(&b->profile->loss, "an event is not in a thread's stream", 1);
		return;
	}
	if (!b->profile->threads[thread].is_wanted)
		return;
	build_play_before(b, thread, record);
	if (record->major == RECORD_MAJOR_RESOURCE)
		resource_record(b, record, thread);
	else if (record->major == RECORD_MAJOR_HOOK)
		chain_record(b, record, thread);
	else
		routine_record(b, record, thread);
}

/* ---- time that stands still ---- */

/* Before the first event the time that the thread ran is only added up. */
static void add_up(struct builder *b, struct thread_state *state, uint64_t time, bool now_suspended)
{
	time = later(time, b->from);
	if (!now_suspended) {
		state->since = time;
	} else {
		uint64_t since = later(state->since, b->from);

		state->ran += time > since ? time - since : 0;
	}
}

static void set_suspended(struct builder *b, uint32_t thread, uint64_t time, bool was_suspended)
{
	struct thread_state *state = &b->threads[thread];
	bool now_suspended = is_suspended(state);

	if (time >= b->from)
		state->last = later(state->last, time);
	if (now_suspended == was_suspended)
		return;
	if (!state->calls)
		add_up(b, state, time, now_suspended);
	else if (b->kind != METRIC_KIND_TIME)
		return;
	else if (now_suspended)
		calltree_suspend(state->calls, time);
	else
		calltree_resume(state->calls, time);
}

void build_switch_record(struct builder *b, const struct trace_record *record)
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
	build_play_before(b, (uint32_t)thread, record);
	state = &b->threads[thread];
	was_suspended = is_suspended(state);
	if (record->minor == RECORD_SWITCH_IN && !state->is_seen) { /* it did not run before */
		state->is_seen = true;
		state->begun = state->since = later(record->time, b->from);
	}
	see(b, (uint32_t)thread, record->time);
	state->is_out = record->minor == RECORD_SWITCH_OUT;
	state->interrupts = 0;
	b->cpu_thread[record->stream] = state->is_out ? 0 : (uint32_t)thread;
	if (record->time >= b->from && state->is_out) {
		b->profile->n_switches++;
		b->profile->threads[thread].switches++;
	}
	set_suspended(b, (uint32_t)thread, record->time, was_suspended);
}

void build_interrupt_record(struct builder *b, const struct trace_record *record)
{
	uint32_t thread = b->cpu_thread[record->stream];
	struct thread_state *state = &b->threads[thread];
	bool was_suspended;

	if (!thread)
		return;
	build_play_before(b, thread, record);
	was_suspended = is_suspended(state);
	if (!(record->minor & RECORD_MINOR_EXIT))
		state->interrupts++;
	else if (state->interrupts)
		state->interrupts--;
	set_suspended(b, thread, record->time, was_suspended);
}

/* ---- playing a thread's own stream ---- */

/* Everything that is not a plain enter or leave of a thread whose calls are being followed. */
static void play_other(
	struct builder *b, const struct thread_state *state, const struct trace_run_record *from)
{
	const struct trace_kind *kind = trace_reader_kind(b->reader, from->kind);
	struct trace_record record = {
		from->time, state->stream, kind->major, kind->minor, from->payload};

	build_record(b, &record);
}

/* Plays a record by the short way; false when it must go the long one. */
static inline bool play_quickly(struct builder *b, struct calltree_thread *calls,
	const struct trace_run *run, const struct trace_run_record *record)
{
	enum play_action action = b->action_of[record->kind];
	uint32_t routine;
	uint64_t frame;

	if (action == PLAY_OTHER || !trace_run_number(run, record, &frame) ||
		frame - 1 >= b->n_frames - 1)
		return false;
	routine = b->routine_of[frame];
	if (!routine)
		return false;
	if (action == PLAY_ENTER)
		thread_enter(calls, record->time, routine);
	else
		thread_leave(calls, record->time, routine);
	return true;
}

/* Plays the records of the run up to `bound`; false when it came to a later one. */
static bool play_run(struct builder *b, uint32_t thread, uint64_t bound)
{
	struct thread_state *state = &b->threads[thread];
	struct trace_run run = state->run;
	struct trace_run_record record;
	uint64_t n_events = 0, last = 0;
	bool is_over = true;

	while (run.n_left) {
		const uint8_t *behind = trace_run_peek(&run, &record);

		if (!behind) {
			struct err err = {0};

			trace_run_damage(state->runs, &run, &err);
			build_note_damage(b, &err);
			run.n_left = 0;
			break;
		}
		if (record.time > bound) {
			is_over = false;
			break;
		}
		trace_run_take(&run, &record, behind);
		/* Calls are begun in the window, and times do not go back. */
		if (state->calls && play_quickly(b, state->calls, &run, &record)) {
			n_events++;
			last = record.time;
		} else {
			play_other(b, state, &record);
		}
	}
	state->last = later(state->last, last);
	b->profile->end = later(b->profile->end, run.time);
	b->profile->n_events += n_events;
	b->profile->threads[thread].events += n_events;
	state->run = run;
	return is_over;
}

static void play_until(struct builder *b, uint32_t thread, uint64_t bound)
{
	struct thread_state *state = &b->threads[thread];
	struct err err = {0};

	if (!b->to)
		return;
	if (bound >= b->to)
		bound = b->to - 1;
	for (;;) {
		if (state->run.n_left && !play_run(b, thread, bound))
			break;
		if (trace_runs_next_time(state->runs) > bound || progress_is_unwanted(b->progress))
			break;
		if (trace_run_next(state->runs, &state->run, &err) < 0)
			build_note_damage(b, &err);
		progress_add(b->progress, state->run.n_left);
	}
}

void build_play_before(struct builder *b, uint32_t thread, const struct trace_record *record)
{
	const struct thread_state *state = &b->threads[thread];

	if (!state->runs || state->stream == record->stream)
		return;
	/* Records of one time are in order of their streams. */
	if (state->stream < record->stream)
		play_until(b, thread, record->time);
	else if (record->time)
		play_until(b, thread, record->time - 1);
}

static bool is_worth_a_thread(const struct builder *b)
{
	uint64_t n_records = 0;

	for (uint32_t stream = 1; stream < trace_reader_n_streams(b->reader); stream++)
		if (thread_of_stream(b, stream))
			n_records += trace_reader_stream_records(b->reader, stream);
	return n_records >= AHEAD_RECORDS_MIN;
}

/* Gives each thread its stream; further streams of the same thread take part in the merged walk. */
void build_events_init(struct builder *b)
{
	uint32_t n_kinds = trace_reader_n_kinds(b->reader);
	struct err err = {0};

	b->n_frames = trace_reader_n_frames(b->reader);
	b->routine_of = mem_calloc(b->n_frames, sizeof(*b->routine_of));
	b->is_played = mem_calloc(trace_reader_n_streams(b->reader), sizeof(*b->is_played));
	b->action_of = mem_calloc(n_kinds, sizeof(*b->action_of));
	for (uint32_t id = 1; id < n_kinds; id++) {
		const struct trace_kind *kind = trace_reader_kind(b->reader, id);

		if (kind->major != RECORD_MAJOR_ROUTINE && kind->major != RECORD_MAJOR_INTERPRETED)
			continue;
		if (kind->minor == RECORD_ROUTINE_ENTER)
			b->action_of[id] = PLAY_ENTER;
		else if (kind->minor == (RECORD_ROUTINE_ENTER | RECORD_MINOR_EXIT))
			b->action_of[id] = PLAY_LEAVE;
	}
	b->ahead = is_worth_a_thread(b) ? trace_ahead_new() : NULL;
	for (uint32_t stream = 1; stream < trace_reader_n_streams(b->reader); stream++) {
		uint32_t thread = thread_of_stream(b, stream);
		struct thread_state *state = &b->threads[thread];

		if (!thread || state->stream)
			continue;
		if (trace_runs_open(&state->runs, b->reader, stream, b->ahead, &err) < 0) {
			build_note_damage(b, &err);
			return;
		}
		state->stream = stream;
		b->is_played[stream] = true;
	}
}

void build_events_end(struct builder *b)
{
	for (uint32_t id = 1; id < b->profile->n_threads; id++) {
		struct thread_state *state = &b->threads[id];

		if (!state->runs)
			continue;
		play_until(b, id, UINT64_MAX);
		state->continues =
			state->run.n_left || trace_runs_next_time(state->runs) != UINT64_MAX;
		b->continues |= state->continues;
	}
	for (uint32_t id = 1; id < b->profile->n_threads; id++) {
		struct calltree_thread *calls = build_open_calls(b, id, b->from);

		if (!calls)
			continue;
		calltree_thread_end(calls, b->threads[id].continues ? b->to : b->threads[id].last);
		if (!b->continues)
			loss_add_reason(&b->profile->loss, "enter and leave events do not match",
				calltree_thread_unmatched(calls));
	}
}

void build_events_release(struct builder *b)
{
	for (uint32_t id = 0; id < b->profile->n_threads; id++) {
		struct thread_state *state = &b->threads[id];

		calltree_thread_free(state->calls);
		for (size_t i = 0; i < state->early.n; i++)
			vec_release(&state->early.v[i].open);
		vec_release(&state->early);
		map_release(&state->early_of);
		trace_runs_close(state->runs);
	}
	trace_ahead_free(b->ahead);
	free(b->routine_of);
	free(b->is_played);
	free(b->action_of);
}
