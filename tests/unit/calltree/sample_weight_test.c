/* SPDX-License-Identifier: MIT */
/* What samples say of places adds up to what they say of functions, in every metric. */
#define WORLD_TRACE "sample_weight_test.weir"
#include "profile_world.h"

#include "calltree/sample_walk.h"

static uint32_t f_main, f_a, f_hook, wait, faults;

static void other(uint64_t time, uint32_t metric, uint32_t stack, uint64_t weight)
{
	struct trace_sample s = {thread, stack, metric, weight};

	trace_writer_sample(w, cpu_stream, time, &s);
}

/* main > a: 30 ns of CPU in 2 samples, 200 ns of waiting, 3 faults in one sample; main 10 ns of CPU; and a hook of
 * a's calls, whose time is in no function. */
static void begin_samples(void)
{
	uint32_t in_a;

	begin();
	wait = trace_writer_metric(w, "wait", "ns");
	faults = trace_writer_metric(w, "page-faults", "1");
	f_main = named("main", FRAME_KIND_NATIVE);
	f_a = named("a", FRAME_KIND_NATIVE);
	f_hook = named("[hooks]", FRAME_KIND_NATIVE);
	in_a = STACK(f_main, f_a);
	sample(1000, in_a, 10);
	sample(1010, in_a, 20);
	sample(1020, STACK(f_main), 10);
	other(1300, wait, in_a, 200);
	other(1400, faults, in_a, 3);
	sample(1500, STACK(f_main, f_a, f_hook), 40);
	numbers(life_stream, 1600, RECORD_MAJOR_HOOK, RECORD_HOOK_FRAME, 1, U(f_hook));
	numbers(life_stream, 1600, RECORD_MAJOR_HOOK, RECORD_HOOK_COST, 6, U(1),
		U(trace_writer_string(w, "jump")), U(5), U(1000), U(1000), U(10));
}

static uint64_t weight_at(const struct map *weights, uint32_t frame)
{
	const uint64_t *weight = map_find(weights, frame);

	return weight ? *weight : 0;
}

static void check_metric(const char *metric, uint64_t of_main, uint64_t of_a)
{
	struct build_options o = BUILD_OPTIONS_ALL;
	struct map weights = {0};

	o.metric = metric;
	CHECK_EQ(build(&o), 0);
	CHECK_EQ(sample_frames_sum(&weights, profile, &err), 0);
	CHECK_EQ(row("main").base, of_main);
	CHECK_EQ(row("a").base, of_a);
	CHECK_EQ(weight_at(&weights, f_main), of_main);
	CHECK_EQ(weight_at(&weights, f_a), of_a);
	CHECK_EQ(weight_at(&weights, f_hook), 0);
	map_release(&weights);
}

static void places_add_up_to_functions(void)
{
	begin_samples();
	check_metric("cpu", 10, 30);
	check_metric("wait", 0, 200);
	check_metric("wall", 10, 230);
	check_metric("page-faults", 0, 3);
	check_metric("samples", 1, 2);
	end();
}

static const struct test tests[] = {
	{"what samples say of places adds up to what they say of functions",
		places_add_up_to_functions},
};

int main(void)
{
	return RUN_TESTS(tests);
}
