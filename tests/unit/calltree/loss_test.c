/* SPDX-License-Identifier: MIT */
#include "calltree/loss.h"
#include "check.h"

static bool covers(uint64_t sampled_ms, uint64_t cpu_ms)
{
	struct loss loss = {.cpu_ns = cpu_ms * 1000000,
		.sampled_ns = sampled_ms * 1000000,
		.period_ns = 1000000};

	return loss_is_covered(&loss);
}

static void coverage_is_judged_beyond_chance(void)
{
	CHECK(covers(0, 0)); /* not known */
	CHECK(covers(512, 512));
	CHECK(covers(470, 512));
	CHECK(covers(550, 512));
	CHECK(!covers(31, 512));
	CHECK(!covers(1024, 512));
	CHECK(covers(0, 10)); /* by chance */
	CHECK(!covers(0, 20));
	CHECK(covers(9100, 10000));
	CHECK(!covers(8900, 10000));
}

static const struct test tests[] = {
	{"samples that stand for another time than was used are told from chance",
		coverage_is_judged_beyond_chance},
};

int main(void)
{
	return RUN_TESTS(tests);
}
