/* SPDX-License-Identifier: MIT */
/* Spans and points of a thread over time; all places are by hand. */
#define WORLD_TRACE "timeline_test.weir"
#include "profile_world.h"

#include "calltree/timeline.h"

static struct timeline t;
static uint32_t own, f_main, f_a, f_b;

static void begin_calls(void)
{
	begin();
	own = trace_writer_stream(w, STREAM_KIND_THREAD, thread);
	f_main = named("main", FRAME_KIND_NATIVE);
	f_a = named("a", FRAME_KIND_NATIVE);
	f_b = named("b", FRAME_KIND_NATIVE);
}

static void draw_picture(const struct timeline_picture *picture)
{
	CHECK_EQ(timeline_init(&t, profile, picture, &err), 0);
	CHECK_EQ(t.thread, thread);
	CHECK(!t.is_cut);
}

static void draw(uint32_t n_columns)
{
	struct timeline_picture picture = TIMELINE_PICTURE_ALL;

	picture.n_columns = n_columns;
	draw_picture(&picture);
}

static void end_calls(void)
{
	timeline_release(&t);
	end();
}

static void check_span(
	size_t i, uint32_t frame, uint32_t row, uint64_t from, uint64_t to, uint32_t n)
{
	CHECK(i < t.spans.n);
	if (i >= t.spans.n)
		return;
	CHECK_EQ(t.spans.v[i].frame, frame);
	CHECK_EQ(t.spans.v[i].row, row);
	CHECK_EQ(t.spans.v[i].from, from);
	CHECK_EQ(t.spans.v[i].to, to);
	CHECK_EQ(t.spans.v[i].n, n);
}

static void write_nested(void)
{
	begin_calls();
	enter(own, 1000, f_main, false);
	enter(own, 1010, f_a, false);
	enter(own, 1030, f_a, true);
	enter(own, 1040, f_b, false);
	enter(own, 1050, f_a, false); /* never left: it ends with b */
	enter(own, 1090, f_b, true);
	enter(own, 1100, f_main, true);
}

static void calls_lie_above_their_callers(void)
{
	write_nested();
	build_all();
	draw(0);
	CHECK_EQ(t.from, 1000);
	CHECK_EQ(t.to, 1101);
	CHECK_EQ(t.spans.n, 4);
	check_span(0, f_a, 1, 1010, 1030, 1);
	check_span(1, f_a, 2, 1050, 1090, 1);
	check_span(2, f_b, 1, 1040, 1090, 1);
	check_span(3, f_main, 0, 1000, 1100, 1);
	end_calls();
}

static void a_window_cuts_what_begins_before_and_ends_behind_it(void)
{
	struct build_options o = BUILD_OPTIONS_ALL;

	o.from = 20;
	o.to = 91;
	write_nested();
	CHECK_EQ(build(&o), 0);
	draw(0);
	CHECK_EQ(t.from, 1020);
	CHECK_EQ(t.to, 1091);
	CHECK_EQ(t.spans.n, 4);
	check_span(0, f_a, 1, 1020, 1030, 1);
	check_span(1, f_a, 2, 1050, 1090, 1);
	check_span(2, f_b, 1, 1040, 1090, 1);
	check_span(3, f_main, 0, 1020, 1091, 1);
	end_calls();
}

static void a_window_in_which_nothing_happens_has_what_is_open(void)
{
	struct build_options o = BUILD_OPTIONS_ALL;

	o.from = 52;
	o.to = 60;
	write_nested();
	CHECK_EQ(build(&o), 0);
	draw(0);
	CHECK_EQ(t.from, 1052);
	CHECK_EQ(t.to, 1060);
	CHECK_EQ(t.spans.n, 3);
	check_span(0, f_a, 2, 1052, 1060, 1);
	check_span(1, f_b, 1, 1052, 1060, 1);
	check_span(2, f_main, 0, 1052, 1060, 1);
	end_calls();
}

/* The same figures as of a window of the profile, which would be another profile. */
static void a_picture_of_a_part_cuts_what_begins_before_and_ends_behind_it(void)
{
	struct timeline_picture part = {.from = 1020, .to = 1091};

	write_nested();
	CHECK_EQ(build(&BUILD_OPTIONS_ALL), 0);
	draw_picture(&part);
	CHECK_EQ(t.from, 1020);
	CHECK_EQ(t.to, 1091);
	CHECK_EQ(t.spans.n, 4);
	check_span(0, f_a, 1, 1020, 1030, 1);
	check_span(1, f_a, 2, 1050, 1090, 1);
	check_span(2, f_b, 1, 1040, 1090, 1);
	check_span(3, f_main, 0, 1020, 1091, 1);
	end_calls();
}

static void a_picture_reaches_no_further_than_the_window(void)
{
	struct timeline_picture before = {.from = 1, .to = 1050},
				behind = {.from = 5000, .to = 6000};
	struct build_options o = BUILD_OPTIONS_ALL;

	o.from = 20;
	o.to = 91;
	write_nested();
	CHECK_EQ(build(&o), 0);
	draw_picture(&before);
	CHECK_EQ(t.from, 1020);
	CHECK_EQ(t.to, 1050);
	timeline_release(&t);
	draw_picture(&behind);
	CHECK_EQ(t.from, 1020);
	CHECK_EQ(t.to, 1091);
	end_calls();
}

static void coroutines_have_stacks_of_their_own(void)
{
	begin_calls();
	enter(own, 1000, f_main, false);
	numbers(own, 1010, RECORD_MAJOR_HOOK, RECORD_HOOK_CHAIN, 1, U(1));
	enter(own, 1010, f_a, false);
	numbers(own, 1020, RECORD_MAJOR_HOOK, RECORD_HOOK_CHAIN, 1, U(0));
	enter(own, 1040, f_main, true);
	numbers(own, 1050, RECORD_MAJOR_HOOK, RECORD_HOOK_CHAIN, 1, U(1));
	enter(own, 1060, f_a, true);
	build_all();
	draw(0);
	CHECK_EQ(t.spans.n, 2);
	check_span(0, f_main, 0, 1000, 1040, 1);
	check_span(1, f_a, 0, 1010, 1060, 1);
	end_calls();
}

/* Columns of 100 ns: three calls lie in one, the fourth is far from them, the fifth as wide as a column. */
static void short_calls_are_one_span(void)
{
	static const uint64_t calls[][2] = {{10, 12}, {14, 16}, {20, 22}, {400, 402}, {410, 520}};

	begin_calls();
	enter(own, 1000, f_main, false);
	for (size_t i = 0; i < 5; i++) {
		enter(own, 1000 + calls[i][0], f_a, false);
		enter(own, 1000 + calls[i][1], f_a, true);
	}
	enter(own, 11000, f_main, true);
	build_all();
	draw(100);
	CHECK_EQ(t.spans.n, 4);
	check_span(0, f_a, 1, 1010, 1022, 3);
	check_span(1, f_a, 1, 1400, 1402, 1);
	check_span(2, f_a, 1, 1410, 1520, 1);
	check_span(3, f_main, 0, 1000, 11000, 1);
	CHECK_EQ(t.busy[(size_t)thread * 100], 7); /* main and three calls, in and out */
	CHECK_EQ(t.busy[(size_t)thread * 100 + 1], 0);
	end_calls();
}

/* Calls of two threads, in bursts and with pauses, of many chunks. */
#define N_BUSY_CALLS 150000
static uint32_t write_two_threads(bool has_more)
{
	struct trace_thread second = {.pid = 100, .tid = 102};
	uint32_t other, streams[2];
	uint64_t time[2] = {1000, 1500};

	begin_calls();
	other = trace_writer_thread(w, &second);
	streams[0] = own;
	streams[1] = trace_writer_stream(w, STREAM_KIND_THREAD, other);
	for (uint64_t i = 0; i < N_BUSY_CALLS; i++) {
		for (size_t k = 0; k < 2; k++) {
			enter(streams[k], time[k], f_a, false);
			enter(streams[k], time[k] += i % 13 + k, f_a, true);
			time[k] += i % 977 ? i % 5 : 9999;
			if (has_more && i % 3 == 0)
				numbers(streams[k], time[k], RECORD_MAJOR_RESOURCE,
					RECORD_RESOURCE_ADD, 2, U(cpu_metric), U(7));
		}
	}
	return other;
}

/* Of threads that are not drawn calls are only counted: the same numbers, whatever the columns are. */
static void others_are_as_busy_as_when_they_are_drawn(void)
{
	static const uint32_t columns[] = {3, 100, 8000};
	static const uint64_t windows[][2] = {{0, UINT64_MAX}, {200000, 900000}, {1, 1001}};

	for (int has_more = 0; has_more < 2; has_more++) {
		uint32_t other = write_two_threads(has_more);

		build_all();
		for (size_t i = 0; i < 9; i++) {
			struct timeline_picture picture = {.from = windows[i / 3][0],
				.to = windows[i / 3][1],
				.thread = thread,
				.n_columns = columns[i % 3]};
			struct timeline drawn;
			uint64_t sum = 0;

			draw_picture(&picture);
			picture.thread = other;
			CHECK_EQ(timeline_init(&drawn, profile, &picture, &err), 0);
			CHECK(!memcmp(t.busy, drawn.busy,
				(size_t)t.n_threads * t.n_columns * sizeof(*t.busy)));
			for (size_t k = 0; k < (size_t)t.n_threads * t.n_columns; k++)
				sum += t.busy[k];
			if (i < 3)
				CHECK_EQ(sum, 4 * N_BUSY_CALLS);
			timeline_release(&drawn);
			timeline_release(&t);
		}
		end();
	}
}

/* Columns of 100 ns again: the first two samples lie in one. */
static void samples_of_a_column_are_one_point(void)
{
	static const uint64_t times[] = {1000, 1010, 1500, 1999};
	uint32_t stack;

	begin_calls();
	stack = STACK(f_main, f_b);
	for (size_t i = 0; i < 4; i++)
		sample(times[i], stack, 5);
	build_all();
	draw(10);
	CHECK_EQ(t.to, 2000);
	CHECK_EQ(t.points.n, 3);
	for (size_t i = 0; i < 3 && i < t.points.n; i++) {
		CHECK_EQ(t.points.v[i].time, times[i ? i + 1 : 0]);
		CHECK_EQ(t.points.v[i].frame, f_b);
		CHECK_EQ(t.points.v[i].n, i ? 1 : 2);
	}
	CHECK_EQ(t.busy[(size_t)thread * 10], 2);
	CHECK_EQ(t.busy[(size_t)thread * 10 + 5], 1);
	CHECK_EQ(t.busy[(size_t)thread * 10 + 9], 1);
	end_calls();
}

/* 999 ns in 600 columns, in which columns of whole ns would leave two fifths for the last one. */
static void columns_are_equally_wide(void)
{
	static const uint64_t times[] = {1000, 1333, 1500, 1998};
	static const uint32_t columns[] = {0, 200, 300, 599};

	begin_calls();
	for (size_t i = 0; i < 4; i++)
		trace_writer_routine(w, own, times[i], f_a, i & 1);
	CHECK_EQ(build(&BUILD_OPTIONS_ALL), 0);
	draw(600);
	for (size_t i = 0; i < 4; i++)
		CHECK_EQ(t.busy[(size_t)thread * t.n_columns + columns[i]], 1);
	end_calls();
}

static void calls_deeper_than_the_rows_are_counted(void)
{
	begin_calls();
	for (uint32_t i = 0; i < TIMELINE_ROWS_MAX + 3; i++)
		enter(own, 1000 + i, f_a, false);
	for (uint32_t i = 0; i < TIMELINE_ROWS_MAX + 3; i++)
		enter(own, 3000 + i, f_a, true);
	build_all();
	draw(0);
	CHECK_EQ(t.spans.n, TIMELINE_ROWS_MAX);
	CHECK_EQ(t.n_too_deep, 3);
	end_calls();
}

static void switched(uint64_t time, bool is_out, bool is_preempted)
{
	if (is_out)
		numbers(cpu_stream, time, RECORD_MAJOR_SWITCH, RECORD_SWITCH_OUT, 2, U(thread),
			U(is_preempted));
	else
		numbers(cpu_stream, time, RECORD_MAJOR_SWITCH, RECORD_SWITCH_IN, 1, U(thread));
}

static void check_wait(
	size_t i, uint64_t from, uint64_t to, uint32_t frame, uint32_t n, bool is_ready)
{
	CHECK(i < t.waits.n);
	if (i >= t.waits.n)
		return;
	CHECK_EQ(t.waits.v[i].from, from);
	CHECK_EQ(t.waits.v[i].to, to);
	CHECK_EQ(t.waits.v[i].frame, frame);
	CHECK_EQ(t.waits.v[i].n, n);
	CHECK_EQ(t.waits.v[i].is_ready, is_ready);
}

/* Columns of 10 ns. One wait has a sample that says where, one is of another thread's making, two are
 * short, the last one is not over at the end. */
static void waits_are_apart_from_samples(void)
{
	uint32_t stack, f_kernel, wait;

	begin_calls();
	wait = trace_writer_metric(w, "wait", "ns");
	f_kernel = named("schedule", FRAME_KIND_KERNEL);
	stack = STACK(f_main, f_b);
	sample(1000, stack, 5);
	switched(1100, true, false);
	stack = STACK(f_main, f_a, f_kernel);
	trace_writer_sample(w, cpu_stream, 1300, &(struct trace_sample){thread, stack, wait, 200});
	switched(1300, false, false);
	switched(1400, true, true);
	switched(1450, false, false);
	switched(1500, true, false);
	switched(1502, false, false);
	switched(1504, true, false);
	switched(1506, false, false);
	sample(1600, STACK(f_main, f_b), 5);
	switched(1700, true, false);
	numbers(life_stream, 1999, RECORD_MAJOR_PHASE, RECORD_PHASE_ENDED, 0);
	build_all();
	draw(100);
	CHECK_EQ(t.points.n, 2);
	CHECK_EQ(t.waits.n, 4);
	check_wait(0, 1100, 1300, f_a, 1, false);
	check_wait(1, 1400, 1450, 0, 1, true);
	check_wait(2, 1500, 1506, 0, 2, false);
	check_wait(3, 1700, 2000, 0, 1, false);
	CHECK_EQ(t.busy[(size_t)thread * 100 + 30], 0); /* to wait is not to be busy */
	end_calls();
}

static void a_thread_that_only_waits_can_be_drawn(void)
{
	begin_calls();
	switched(1000, true, false);
	switched(1500, false, false);
	numbers(life_stream, 1999, RECORD_MAJOR_PHASE, RECORD_PHASE_ENDED, 0);
	build_all();
	draw(100);
	CHECK_EQ(t.waits.n, 1);
	check_wait(0, 1000, 1500, 0, 1, false);
	end_calls();
}

static void a_thread_that_has_ended_does_not_wait(void)
{
	begin_calls();
	sample(1000, STACK(f_main), 5);
	numbers(life_stream, 1100, RECORD_MAJOR_THREAD, RECORD_THREAD_ENDED, 1, U(thread));
	switched(1101, true, false);
	numbers(life_stream, 1999, RECORD_MAJOR_PHASE, RECORD_PHASE_ENDED, 0);
	build_all();
	draw(100);
	CHECK_EQ(t.waits.n, 0);
	end_calls();
}

/* Without switches a sample of a wait says all. */
static void a_wait_may_be_known_by_its_sample_alone(void)
{
	uint32_t wait;

	begin_calls();
	wait = trace_writer_metric(w, "wait", "ns");
	sample(1000, STACK(f_main), 5);
	trace_writer_sample(
		w, cpu_stream, 1500, &(struct trace_sample){thread, STACK(f_main, f_b), wait, 300});
	build_all();
	draw(100);
	CHECK_EQ(t.points.n, 1);
	CHECK_EQ(t.waits.n, 1);
	check_wait(0, 1200, 1500, f_b, 1, false);
	end_calls();
}

static void samples_without_a_stack_are_points(void)
{
	begin_calls();
	numbers(cpu_stream, 1000, RECORD_MAJOR_THREAD, RECORD_THREAD_TICK, 4, U(thread), U(f_a),
		U(cpu_metric), U(7));
	numbers(cpu_stream, 1900, RECORD_MAJOR_THREAD, RECORD_THREAD_TICK, 4, U(thread), U(f_b),
		U(cpu_metric), U(7));
	build_all();
	draw(10);
	CHECK_EQ(t.points.n, 2);
	if (t.points.n == 2)
		CHECK(t.points.v[0].frame == f_a && t.points.v[1].frame == f_b);
	end_calls();
}

static void told(uint64_t time, uint32_t kind, uint64_t n, const char *words)
{
	numbers(own, time, RECORD_MAJOR_STEP, RECORD_STEP_TOLD, 3, U(kind), n,
		U(trace_writer_string(w, words)));
}

/* Columns of 10.01 ns: two calls at 1200 and 1203 are one mark; the run between them is too short to be alone. */
static void steps_are_runs_with_marks_between_them(void)
{
	static const struct timeline_step expected[] = {{1000, 1000, 7, 0, 1},
		{1000, 1200, 0, 0, 4000}, {1200, 1203, 1, 0, 2}, {1200, 1203, 0, 0, 30},
		{1203, 1600, 0, 0, 70}, {1600, 1600, 2, 0, 1}, {1600, 2000, 0, 0, 5}};

	begin_calls();
	told(1000, 7, 1, "tracing begins (start)");
	told(1200, 0, 4000, "");
	told(1200, 1, 1, "write = 12");
	told(1203, 0, 30, "");
	told(1203, 1, 1, "brk = 0x1000");
	told(1600, 0, 70, "");
	told(1600, 2, 1, "SIGUSR1");
	told(2000, 0, 5, "");
	build_all();
	draw(100);
	CHECK_EQ(t.steps.n, 7);
	for (size_t i = 0; i < 7 && i < t.steps.n; i++) {
		CHECK_EQ(t.steps.v[i].from, expected[i].from);
		CHECK_EQ(t.steps.v[i].to, expected[i].to);
		CHECK_EQ(t.steps.v[i].kind, expected[i].kind);
		CHECK_EQ(t.steps.v[i].n, expected[i].n);
	}
	CHECK_STR(trace_reader_string(reader, t.steps.v[2].words), "write = 12");
	CHECK_EQ(t.busy[(size_t)thread * 100 + 5], 4000 / 20);
	CHECK_EQ(t.busy[(size_t)thread * 100 + 50], 70 / 40);
	CHECK_EQ(profile->loss.records_unknown, 0);
	end_calls();
}

static const struct test tests[] = {
	{"threads that are not drawn are as busy as when they are",
		others_are_as_busy_as_when_they_are_drawn},
	{"waits are apart from samples", waits_are_apart_from_samples},
	{"a thread that only waits can be drawn", a_thread_that_only_waits_can_be_drawn},
	{"a thread that has ended does not wait", a_thread_that_has_ended_does_not_wait},
	{"a wait may be known by its sample alone", a_wait_may_be_known_by_its_sample_alone},
	{"samples without a stack are points, too", samples_without_a_stack_are_points},
	{"steps are runs with marks between them", steps_are_runs_with_marks_between_them},
	{"calls lie above their callers", calls_lie_above_their_callers},
	{"a window in which nothing happens has what is open",
		a_window_in_which_nothing_happens_has_what_is_open},
	{"a window cuts what begins before and ends behind it",
		a_window_cuts_what_begins_before_and_ends_behind_it},
	{"a picture of a part cuts what begins before and ends behind it",
		a_picture_of_a_part_cuts_what_begins_before_and_ends_behind_it},
	{"a picture reaches no further than the window",
		a_picture_reaches_no_further_than_the_window},
	{"columns are equally wide", columns_are_equally_wide},
	{"coroutines have stacks of their own", coroutines_have_stacks_of_their_own},
	{"short calls are one span, gaps stay", short_calls_are_one_span},
	{"samples of a column are one point", samples_of_a_column_are_one_point},
	{"calls deeper than the rows are counted", calls_deeper_than_the_rows_are_counted},
};

int main(void)
{
	return RUN_TESTS(tests);
}
