/* SPDX-License-Identifier: MIT */
#include "record/hooks/tick_clock.h"

#include <time.h>

#include "base/clock.h"
#include "check.h"

static void between_two_points_time_is_linear(void)
{
	struct tick_clock c = {0};

	tick_clock_add(&c, 1000, 500);
	tick_clock_add(&c, 3000, 1500);
	CHECK_EQ(tick_clock_ns(&c, 1000), 500);
	CHECK_EQ(tick_clock_ns(&c, 2000), 1000);
	CHECK_EQ(tick_clock_ns(&c, 2999), 999 + 500);
	CHECK_EQ(tick_clock_ns(&c, 3000), 1500);
}

static void beyond_the_points_it_goes_on(void)
{
	struct tick_clock c = {0};

	tick_clock_add(&c, 1000, 5000);
	tick_clock_add(&c, 3000, 6000);
	CHECK_EQ(tick_clock_ns(&c, 5000), 7000);
	CHECK_EQ(tick_clock_ns(&c, 0), 4500);
	CHECK_EQ(tick_clock_ns(&c, 3000), 6000);
}

/* The kernel steers its clock: each stretch has a rate of its own, and no time goes back. */
static void rates_change_and_nothing_goes_back(void)
{
	const uint64_t distance = 60000000; /* ns */
	struct tick_clock c = {0};
	uint64_t ticks = 0, ns = 1000, before = 0;

	for (int i = 0; i < 50; i++) {
		tick_clock_add(&c, ticks, ns);
		ticks += 2 * distance + (uint64_t)(i % 7) * 1000;
		ns += distance;
	}
	for (uint64_t t = 0; t < ticks; t += 1234567) {
		uint64_t now = tick_clock_ns(&c, t);

		CHECK(now >= before);
		before = now;
	}
	CHECK_EQ(tick_clock_ns(&c, 0), 1000);
	/* An older time is asked for again: another thread is behind. */
	CHECK_EQ(tick_clock_ns(&c, 2 * distance), 1000 + distance);
}

static void old_points_are_forgotten_but_the_first(void)
{
	const uint64_t distance = 100000000;
	struct tick_clock c = {0};
	uint64_t n = 3 * TICK_POINTS_MAX;

	for (uint64_t i = 0; i < n; i++)
		tick_clock_add(&c, i * distance * 3, i * distance);
	CHECK(c.n <= TICK_POINTS_MAX);
	CHECK_EQ(c.points[0].ticks, 0);
	CHECK_EQ(tick_clock_ns(&c, (n - 2) * distance * 3), (n - 2) * distance);
	CHECK(tick_clock_ns(&c, (n - 1) * distance * 3 - 30) + 1 - ((n - 1) * distance - 10) <= 1);
	CHECK(tick_clock_hz(&c) > 2.999e9 && tick_clock_hz(&c) < 3.001e9);
}

static void points_that_go_back_or_are_too_close_do_no_harm(void)
{
	struct tick_clock c = {0};

	tick_clock_add(&c, 1000, 1000);
	tick_clock_add(&c, 900, 2000);
	tick_clock_add(&c, 1000, 3000);
	CHECK_EQ(c.n, 1);
	CHECK_EQ(tick_clock_ns(&c, 12345), 1000);
	for (uint64_t i = 1; i <= 1000; i++)
		tick_clock_add(&c, 1000 + i * 1000, 1000 + i * 500);
	CHECK(c.n <= 3);
	CHECK_EQ(tick_clock_ns(&c, 1001000), 501000);
}

/* Against the clock itself, with room for a reading that was interrupted. */
static void the_real_counter_follows_the_real_clock(void)
{
	struct tick_clock c;
	uint64_t ticks, before, after, ns;

	tick_clock_init(&c);
	before = clock_mono_ns();
	ticks = tick_clock_read();
	after = clock_mono_ns();
	nanosleep(&(struct timespec){0, 2000000}, NULL);
	tick_clock_refine(&c);
	ns = tick_clock_ns(&c, ticks);
	CHECK(ns + 100000 > before && ns < after + 100000);
	CHECK(tick_clock_hz(&c) > 1e8);
}

static void a_time_stamp_is_completed(void)
{
	const uint64_t two = (uint64_t)2 << 40, low = ((uint64_t)1 << 40) - 1;

	CHECK_EQ(tick_clock_complete(two + 1000, (two + 900) & low, 40), two + 900);
	CHECK_EQ(tick_clock_complete(two + 1000, (two + 1000) & low, 40), two + 1000);
	/* It was written before the lower bits began anew, and read after that. */
	CHECK_EQ(tick_clock_complete(two + 5, (two - 5) & low, 40), two - 5);
	CHECK_EQ(tick_clock_complete(two + 5, (two - (low >> 1)) & low, 40), two - (low >> 1));
}

/* The reader read its counter before it had the record, or the writer's is ahead. The machine has just
 * begun: there is no earlier time with these bits. */
static void a_time_stamp_may_seem_to_be_of_the_future(void)
{
	const uint64_t two = (uint64_t)2 << 40, low = ((uint64_t)1 << 40) - 1;

	CHECK_EQ(tick_clock_complete(1000, 1001, 40), 1001);
	CHECK_EQ(tick_clock_complete(1000, 900000, 40), 900000);
	CHECK_EQ(tick_clock_complete(two + 1000, (two + 1100) & low, 40), two + 1100);
	CHECK_EQ(tick_clock_complete(two - 5, (two + 5) & low, 40), two + 5);
}

static void a_doubtful_counter_is_said(void)
{
	CHECK(!tick_clock_doubt_of("flags : fpu constant_tsc nonstop_tsc", "tsc\n"));
	CHECK(!tick_clock_doubt_of("flags : fpu constant_tsc nonstop_tsc", "kvm-clock\n"));
	CHECK(tick_clock_doubt_of("flags : fpu nonstop_tsc", "tsc\n") != NULL);
	CHECK(tick_clock_doubt_of("flags : fpu constant_tsc", "tsc\n") != NULL);
	CHECK(tick_clock_doubt_of("flags : fpu constant_tsc nonstop_tsc", "hpet\n") != NULL);
}

int main(void)
{
	static const struct test tests[] = {
		{"between two points time is linear", between_two_points_time_is_linear},
		{"beyond the points it goes on at the same rate", beyond_the_points_it_goes_on},
		{"rates change, and no time goes back", rates_change_and_nothing_goes_back},
		{"old points are forgotten, but for the first",
			old_points_are_forgotten_but_the_first},
		{"points that go back or are too close do no harm",
			points_that_go_back_or_are_too_close_do_no_harm},
		{"the real counter follows the real clock",
			the_real_counter_follows_the_real_clock},
		{"a time stamp is completed from when it was read", a_time_stamp_is_completed},
		{"a time stamp that seems to be of the future is not one of the past",
			a_time_stamp_may_seem_to_be_of_the_future},
		{"a counter that cannot be trusted is said", a_doubtful_counter_is_said},
	};

	return RUN_TESTS(tests);
}
