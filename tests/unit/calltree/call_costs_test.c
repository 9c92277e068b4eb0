/* SPDX-License-Identifier: MIT */
/* What hooks cost, in traces and in profiles. */
#define WORLD_TRACE "call_costs_test.weir"
#include "profile_world.h"

/* A function that was hooked, whose calls have the cost of this number. */
static void hook(uint32_t frame, uint64_t hits, uint64_t number)
{
	numbers(life_stream, 1000, RECORD_MAJOR_HOOK, RECORD_HOOK_FUNCTION, 6, U(frame), U(1), U(0),
		hits, U(0), number);
}

static void cost(uint64_t number, uint64_t inner_ps, uint64_t outer_ps)
{
	numbers(life_stream, 1000, RECORD_MAJOR_HOOK, RECORD_HOOK_COST, 6, number,
		U(trace_writer_string(w, "jump")), U(5), inner_ps, outer_ps, U(500));
}

/* main calls f, which calls g twice; a call of g takes 12 and 20 ns, one of them the hook's, and 3 more
 * around it. */
static void three_calls(uint32_t f, uint32_t g)
{
	uint32_t stream = trace_writer_stream(w, STREAM_KIND_THREAD, thread);

	enter(stream, 100, f, false);
	enter(stream, 110, g, false);
	enter(stream, 122, g, true);
	enter(stream, 130, g, false);
	enter(stream, 150, g, true);
	enter(stream, 200, f, true);
}

static void arcs_hold(void)
{
	struct flat flat;
	struct arcs arcs;

	flat_init(&flat, profile->tree);
	arcs_init(&arcs, profile->tree, &flat);
	CHECK(arcs_check(&arcs, profile->tree, NULL));
	arcs_release(&arcs);
	flat_release(&flat);
}

static void what_hooks_cost_is_taken_out(void)
{
	struct build_options o = BUILD_OPTIONS_ALL;
	uint32_t f, g;

	begin();
	f = named("f", FRAME_KIND_NATIVE);
	g = named("g", FRAME_KIND_NATIVE);
	three_calls(f, g);
	cost(7, 1000, 3000);
	hook(f, 1, 7);
	hook(g, 2, 7);
	build_all();
	CHECK(row("g").base == 30 && row("g").min == 11 && row("g").max == 19);
	CHECK(row("f").base == 68 - 1 - 6 && row("f").cum == 91 && row("f").max == 91);
	CHECK(row("f").elapsed == 100 && row("g").elapsed == 32);
	/* That of the call of f would be in the time before it, which was not recorded. */
	CHECK(profile->cost_sums.taken == 9 && profile->cost_sums.left == 3);
	CHECK(profile->n_without_cost == 0 && profile->cost_error == 1);
	arcs_hold();
	o.keeps_cost = true;
	CHECK_EQ(build(&o), 0);
	CHECK(row("g").base == 32 && row("g").min == 12 && row("f").base == 68);
	CHECK(profile->cost_sums.taken == 0 && profile->keeps_cost);
	arcs_hold();
	o = BUILD_OPTIONS_ALL;
	o.metric = "calls";
	CHECK_EQ(build(&o), 0);
	CHECK(row("g").base == 2 && row("f").cum == 3);
	o.metric = NULL;
	o.from = 25; /* since the first record: the second call of g, within f */
	CHECK_EQ(build(&o), 0);
	CHECK(row("g").calls == 1 && row("g").base == 19); /* f is open */
	arcs_hold();
	end();
}

static void no_time_becomes_negative(void)
{
	uint32_t f, g;

	begin();
	f = named("f", FRAME_KIND_NATIVE);
	g = named("g", FRAME_KIND_NATIVE);
	three_calls(f, g);
	cost(1, 17000, 40000);
	hook(f, 1, 0); /* its own is not known */
	hook(g, 2, 1);
	build_all();
	CHECK(row("g").base == 0 && row("g").min == 0 && row("g").max == 3);
	CHECK(row("f").base == 0 && row("f").cum == 0);
	CHECK(profile->cost_sums.taken == 100 && profile->cost_sums.left == 14);
	CHECK_EQ(profile->n_without_cost, 1);
	arcs_hold();
	end();
}

static void traces_without_costs_keep_their_times(void)
{
	uint32_t f, g;

	begin();
	f = named("f", FRAME_KIND_NATIVE);
	g = named("g", FRAME_KIND_NATIVE);
	three_calls(f, g);
	numbers(life_stream, 1000, RECORD_MAJOR_HOOK, RECORD_HOOK_FUNCTION, 5, U(g), U(1), U(0),
		U(2), U(0)); /* of an older version */
	cost(0, 1, 1);
	cost(3, UINT64_MAX, 1);
	build_all();
	CHECK(row("g").base == 32 && row("f").base == 68 && profile->n_costs == 0);
	CHECK_EQ(reason("a record of a hook is damaged"), 2);
	end();
}

static void costs_in_kept_trees(void)
{
	uint32_t f, g;

	begin();
	f = named("f", FRAME_KIND_NATIVE);
	g = named("g", FRAME_KIND_NATIVE);
	node(50, 1, 0, f, 1, 100);
	node(50, 2, 1, g, 10, 60);
	node(50, 5, 0, 0, 4, 0); /* the branch of calls that have no place */
	node(50, 6, 5, g, 4, 0);
	cost(1, 2000, 3000);
	hook(f, 1, 1);
	hook(g, 14, 1);
	build_all();
	CHECK_STR(profile->metric, "wall");
	CHECK(row("g").calls == 14 && row("g").base == 60 - 20);
	CHECK(row("f").base == 40 - 2 - 30 && row("f").cum == 48 && row("f").elapsed == 100);
	CHECK(row("g").max == 9 - 2);
	CHECK(profile->cost_sums.taken == 52 && profile->cost_sums.left == 20); /* of four calls */
	arcs_hold();
	end();
}

static void samples_of_hooks_are_nobodys(void)
{
	struct build_options o = BUILD_OPTIONS_ALL;
	uint32_t f, hooked, syscall;

	begin();
	f = named("f", FRAME_KIND_NATIVE);
	hooked = named("[hook]", FRAME_KIND_NATIVE);
	syscall = named("futex", FRAME_KIND_KERNEL);
	numbers(life_stream, 1, RECORD_MAJOR_HOOK, RECORD_HOOK_FRAME, 1, U(hooked));
	cost(1, 1000, 1000);
	hook(f, 1, 1);
	sample(10, STACK(f), 5);
	sample(20, STACK(f, hooked), 5);
	sample(30, STACK(f, hooked, syscall), 7);
	sample(40, STACK(f, hooked, f), 9); /* a signal handler in a hook */
	build_all();
	CHECK(profile->n_samples == 2 && profile->n_hook_samples == 2 &&
		profile->hook_weight == 12);
	CHECK(row("f").base == 14 && profile->total == 14);
	o.keeps_cost = true;
	CHECK_EQ(build(&o), 0);
	CHECK(profile->n_samples == 4 && row("[hook]").cum == 21 && profile->total == 26);
	end();
}

static const struct test tests[] = {
	{"what hooks cost is taken out of base, cum, minimum and maximum",
		what_hooks_cost_is_taken_out},
	{"no time becomes negative, and what is left is counted", no_time_becomes_negative},
	{"a trace without costs keeps its times", traces_without_costs_keep_their_times},
	{"costs are taken out of kept trees", costs_in_kept_trees},
	{"samples of hooks are charged to nobody", samples_of_hooks_are_nobodys},
};

int main(void)
{
	return RUN_TESTS(tests);
}
