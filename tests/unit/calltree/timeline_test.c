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

static void draw(uint32_t n_columns)
{
	CHECK_EQ(timeline_init(&t, profile, 0, n_columns, &err), 0);
	CHECK_EQ(t.thread, thread);
	CHECK(!t.is_cut);
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

static const struct test tests[] = {
	{"calls lie above their callers", calls_lie_above_their_callers},
	{"a window in which nothing happens has what is open",
		a_window_in_which_nothing_happens_has_what_is_open},
	{"a window cuts what begins before and ends behind it",
		a_window_cuts_what_begins_before_and_ends_behind_it},
	{"coroutines have stacks of their own", coroutines_have_stacks_of_their_own},
	{"short calls are one span, gaps stay", short_calls_are_one_span},
	{"samples of a column are one point", samples_of_a_column_are_one_point},
	{"calls deeper than the rows are counted", calls_deeper_than_the_rows_are_counted},
};

int main(void)
{
	return RUN_TESTS(tests);
}
