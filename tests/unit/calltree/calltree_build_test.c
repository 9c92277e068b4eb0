/* SPDX-License-Identifier: MIT */
/* From traces to profiles: traces are written with the writer, then read back. */
#define WORLD_TRACE "calltree_build_test.weir"
#include "profile_world.h"

static enum frame_kind kind(const char *name)
{
	return calltree_get_routine(profile->tree, row(name).routine)->kind;
}

static void samples_are_weighed(void)
{
	uint32_t f, g;
	struct build_options o = BUILD_OPTIONS_ALL;

	begin();
	f = named("f", FRAME_KIND_NATIVE);
	g = named("g", FRAME_KIND_NATIVE);
	sample(10, STACK(f, g), 1000);
	sample(20, STACK(f, g), 500);
	sample(30, STACK(f), 7);
	build_all();
	CHECK_STR(profile->metric, "cpu");
	CHECK_STR(profile->unit, "ns");
	CHECK_EQ(profile->total, 1507);
	CHECK_EQ(row("f").cum, 1507);
	CHECK_EQ(row("f").base, 7);
	CHECK_EQ(row("g").base, 1500);
	CHECK_EQ(row("g").samples, 2);
	CHECK_EQ(row("100_101").cum, 1507);
	o.metric = "samples";
	CHECK_EQ(build(&o), 0);
	CHECK_EQ(profile->total, 3);
	CHECK_EQ(row("g").base, 2);
	o.metric = "calls";
	CHECK_EQ(build(&o), ERR_NOT_FOUND);
	CHECK(strstr(err.text, "has no metric 'calls'"));
	o.metric = "cycles";
	CHECK_EQ(build(&o), ERR_NOT_FOUND);
	CHECK(strstr(err.text, "it has: cpu"));
	end();
}

static void incomplete_stacks_stand_apart(void)
{
	uint32_t f, k, marker;

	begin();
	f = named("f", FRAME_KIND_NATIVE);
	k = named("do_syscall", FRAME_KIND_KERNEL);
	marker = named("stack deeper than the copy", FRAME_KIND_MARKER);
	sample(1, STACK(f), 1);
	sample(2, STACK(f, k), 1);
	sample(3, STACK(marker, f), 1);
	sample(4, STACK(marker, f, k), 1);
	sample(5, STACK(k), 1); /* a kernel thread: no user part */
	build_all();
	CHECK_EQ(profile->loss.stacks, 4);
	CHECK_EQ(profile->loss.stacks_complete, 2);
	CHECK_EQ(profile->loss.frames, 7);
	CHECK_EQ(profile->loss.frames_unresolved, 0);
	CHECK_EQ(reason("stack deeper than the copy"), 2);
	CHECK_EQ(row("[stack deeper than the copy]").cum, 2);
	CHECK_EQ(row("[stack deeper than the copy]").base, 0);
	CHECK_EQ(kind("do_syscall"), FRAME_KIND_KERNEL);
	CHECK(!loss_is_real(&profile->loss));
	end();
}

static void inlined_levels_are_routines(void)
{
	struct trace_image image = {.kind = IMAGE_KIND_ELF};
	struct trace_symbol_level levels[2];
	struct trace_symbol symbol = {.n_levels = 2, .levels = levels};
	uint32_t id;

	begin();
	image.path = trace_writer_string(w, "/usr/lib/libx.so");
	id = trace_writer_image(w, &image);
	levels[0] = (struct trace_symbol_level){.name = trace_writer_string(w, "small"), .line = 3};
	levels[1] = (struct trace_symbol_level){.name = trace_writer_string(w, "large"), .line = 9};
	symbol.frame = at(id, 0x1000);
	trace_writer_symbol(w, &symbol);
	sample(1, STACK(symbol.frame), 1);
	sample(2, STACK(at(id, 0x2345)), 1);
	sample(3, STACK(at(0, 0x77)), 1);
	symbol = (struct trace_symbol){.frame = at(id, 0x3000),
		.reason = trace_writer_string(w, "stripped"),
		.n_levels = 1,
		.levels = levels + 1};
	trace_writer_symbol(w, &symbol);
	sample(4, STACK(symbol.frame), 1);
	build_all();
	CHECK_EQ(row("large").cum, 2);
	CHECK_EQ(row("large").base, 1);
	CHECK_EQ(row("small").base, 1);
	CHECK_EQ(kind("small"), FRAME_KIND_INLINE);
	CHECK_EQ(kind("large"), FRAME_KIND_NATIVE);
	CHECK_EQ(row("libx.so+0x2345").base, 1);
	CHECK_EQ(row("[unknown] 0x77").base, 1);
	CHECK_EQ(profile->loss.frames, 4);
	CHECK_EQ(profile->loss.frames_unresolved, 3);
	CHECK_EQ(reason("stripped"), 1);
	CHECK_EQ(reason("no symbol covers the address"), 1);
	CHECK_EQ(reason("the address is in no known module"), 1);
	CHECK(profile->image_is_used[id]);
	end();
}

static void losses_are_counted_with_reasons(void)
{
	uint64_t numbers[] = {1};

	begin();
	trace_writer_loss(w, life_stream, 1, RECORD_LOSS_SAMPLES, 5, "ring full");
	trace_writer_loss(w, cpu_stream, 2, RECORD_LOSS_EVENTS, 3, "ring full");
	trace_writer_loss(w, life_stream, 3, RECORD_LOSS_RECORDS, 2, "too slow");
	trace_writer_loss(w, life_stream, 4, RECORD_LOSS_NOTE, 9, "odd");
	trace_writer_numbers(w, life_stream, 5, 0x7777, 1, numbers, 1);
	trace_writer_numbers(w, cpu_stream, 6, RECORD_MAJOR_STACK_SAMPLE, 12, numbers, 1);
	build_all();
	CHECK_EQ(profile->loss.samples_lost, 5);
	CHECK_EQ(profile->loss.events_lost, 3);
	CHECK_EQ(profile->loss.records_lost, 2);
	CHECK_EQ(profile->loss.records_unknown, 2);
	CHECK_EQ(reason("ring full"), 8);
	CHECK_EQ(reason("odd"), 9);
	CHECK_STR(profile->loss.reasons[0].phrase, "odd"); /* the most frequent first */
	CHECK(loss_is_real(&profile->loss));
	end();
}

static void threads_are_found_by_number_and_name(void)
{
	struct build_options o = BUILD_OPTIONS_ALL;
	struct trace_thread other = {.pid = 100, .tid = 102}, again = {100, 101, 555};
	static const char *const ids[] = {"102", "100_102", "worker"};
	uint64_t named_record[4] = {0, 0, 0, 0};
	uint32_t first, f;

	begin();
	first = thread;
	f = named("f", FRAME_KIND_NATIVE);
	sample(1, STACK(f), 10);
	thread = trace_writer_thread(w, &other);
	sample(2, STACK(f), 20);
	named_record[0] = thread;
	named_record[3] = trace_writer_string(w, "old");
	trace_writer_numbers(
		w, life_stream, 1, RECORD_MAJOR_THREAD, RECORD_THREAD_NAMED, named_record, 4);
	named_record[3] = trace_writer_string(w, "worker");
	trace_writer_numbers(
		w, life_stream, 2, RECORD_MAJOR_THREAD, RECORD_THREAD_NAMED, named_record, 4);
	thread = trace_writer_thread(w, &again);
	sample(3, STACK(f), 40);
	build_all();
	CHECK_EQ(profile->total, 70);
	CHECK_STR(profile->threads[2].name, "worker");
	CHECK_STR(profile->threads[first].root_name, "100_101");
	CHECK_STR(profile->threads[thread].root_name, "100_101#2"); /* the pid was used again */
	for (size_t i = 0; i < 3; i++) {
		o.thread = ids[i];
		CHECK_EQ(build(&o), 0);
		CHECK_EQ(profile->total, 20);
	}
	o.thread = "101";
	CHECK_EQ(build(&o), 0);
	CHECK_EQ(profile->total, 50);
	o.thread = "old";
	CHECK_EQ(build(&o), ERR_NOT_FOUND);
	CHECK(strstr(err.text, "has no thread 'old'"));
	end();
}

static void events_in_a_window(void)
{
	struct build_options o = BUILD_OPTIONS_ALL;
	uint32_t stream, f, g;

	begin();
	stream = trace_writer_stream(w, STREAM_KIND_THREAD, thread);
	f = named("f", FRAME_KIND_NATIVE);
	g = named("g", FRAME_KIND_NATIVE);
	enter(stream, 1000, f, false);
	enter(stream, 1010, g, false);
	enter(stream, 1030, g, true);
	enter(stream, 1040, g, false);
	enter(stream, 1070, 0, true); /* the innermost one */
	enter(stream, 1100, f, true);
	build_all();
	CHECK_EQ(profile->total, 100);
	CHECK_EQ(row("g").base, 50);
	CHECK_EQ(row("g").min, 20);
	CHECK_EQ(row("g").max, 30);
	o.from = 20;
	o.to = 60;
	CHECK_EQ(build(&o), 0);
	CHECK_EQ(profile->total, 40);
	CHECK_EQ(row("g").base, 30); /* 1020 to 1030 and 1040 to 1060 */
	CHECK_EQ(row("g").calls, 2);
	CHECK_EQ(row("f").cum, 40);
	o = BUILD_OPTIONS_ALL;
	o.from = 75; /* no event of g is left */
	CHECK_EQ(build(&o), 0);
	CHECK_EQ(profile->total, 25);
	CHECK_EQ(row("f").base, 25);
	o.metric = "calls";
	o.from = 0;
	CHECK_EQ(build(&o), 0);
	CHECK_EQ(profile->total, 3);
	CHECK_EQ(row("g").base, 2);
	end();
}

static void switches_and_interrupts_stop_the_clock(void)
{
	struct build_options o = BUILD_OPTIONS_ALL;
	uint64_t numbers[2], depth = 1;
	uint32_t stream, f;

	begin();
	numbers[0] = thread;
	numbers[1] = 0;
	stream = trace_writer_stream(w, STREAM_KIND_THREAD, thread);
	f = named("f", FRAME_KIND_NATIVE);
	enter(stream, 100, f, false);
	trace_writer_numbers(
		w, cpu_stream, 110, RECORD_MAJOR_SWITCH, RECORD_SWITCH_OUT, numbers, 2);
	trace_writer_numbers(w, cpu_stream, 130, RECORD_MAJOR_SWITCH, RECORD_SWITCH_IN, numbers, 1);
	trace_writer_numbers(w, cpu_stream, 140, RECORD_MAJOR_INTERRUPT, 3, &depth, 1);
	trace_writer_numbers(
		w, cpu_stream, 145, RECORD_MAJOR_INTERRUPT, 3 | RECORD_MINOR_EXIT, &depth, 1);
	enter(stream, 200, f, true);
	build_all();
	CHECK_EQ(row("f").cum, 75);
	CHECK_EQ(row("f").elapsed, 100);
	CHECK_EQ(profile->threads[thread].switches, 1);
	o.metric = "wall";
	CHECK_EQ(build(&o), 0);
	CHECK_EQ(row("f").cum, 100);
	end();
}

static void time_is_not_counted_twice(void)
{
	struct build_options o = BUILD_OPTIONS_ALL;
	uint32_t stream, f, g;

	begin();
	stream = trace_writer_stream(w, STREAM_KIND_THREAD, thread);
	f = named("f", FRAME_KIND_NATIVE);
	g = named("g", FRAME_KIND_NATIVE);
	sample(5, STACK(f, g), 1000); /* before the first event: it ran since then */
	enter(stream, 10, f, false);
	sample(15, STACK(f, g), 1000);
	enter(stream, 30, f, true);
	build_all();
	CHECK_EQ(profile->total, 25); /* of the events; samples only show where */
	CHECK_EQ(row("f").cum, 20);
	CHECK(row("f").exact && row("f").sampled.cum == 2000);
	CHECK_EQ(row("g").samples, 2);
	CHECK(!row("g").exact && row("g").cum == 2000); /* what the samples say */
	CHECK(calltree_get(profile->tree,
		calltree_get_routine(profile->tree, row("g").routine)->first_instance)
			->sampled);
	CHECK(profile->is_merged);
	o.metric = "samples";
	CHECK_EQ(build(&o), 0);
	CHECK_EQ(profile->total, 2);
	CHECK_EQ(row("g").base, 2);
	CHECK_EQ(row("f").calls, 1);
	o.metric = "calls";
	CHECK_EQ(build(&o), 0);
	CHECK_EQ(profile->total, 1);
	CHECK_EQ(row("g").base, 0);
	CHECK(!calltree_has_estimates(profile->tree));
	end();
}

static void switch_thread(uint64_t time, uint32_t id, bool is_out)
{
	if (is_out)
		numbers(cpu_stream, time, RECORD_MAJOR_SWITCH, RECORD_SWITCH_OUT, 2, U(id), U(0));
	else
		numbers(cpu_stream, time, RECORD_MAJOR_SWITCH, RECORD_SWITCH_IN, 1, U(id));
}

/* Streams of their own for two threads, samples and switches of both on a CPU. */
static void threads_are_played_beside_the_cpus(void)
{
	struct trace_thread other = {.pid = 100, .tid = 102};
	struct build_options o = BUILD_OPTIONS_ALL;
	uint32_t one, two, second, f, g, h;

	begin();
	second = trace_writer_thread(w, &other);
	one = trace_writer_stream(w, STREAM_KIND_THREAD, thread);
	two = trace_writer_stream(w, STREAM_KIND_THREAD, second);
	f = named("f", FRAME_KIND_NATIVE);
	g = named("g", FRAME_KIND_NATIVE);
	h = named("h", FRAME_KIND_NATIVE);
	enter(one, 100, f, false);
	enter(one, 120, g, false);
	enter(one, 180, g, true);
	enter(one, 200, f, true);
	enter(two, 140, g, false);
	enter(two, 190, g, true);
	switch_thread(130, thread, true);
	switch_thread(130, second, false);
	switch_thread(160, second, true);
	switch_thread(160, thread, false);
	switch_thread(185, thread, true);
	switch_thread(185, second, false);
	switch_thread(195, second, true);
	switch_thread(195, thread, false);
	sample(110, STACK(f, h), 7);
	sample(170, STACK(f, g, h), 7);
	thread = second;
	sample(150, STACK(g, h), 7);
	build_all();
	/* f: 100-120, 180-185, 195-200; g: 120-130, 160-180 and, of the other, 140-160, 185-190 */
	CHECK_EQ(row("f").base, 30);
	CHECK_EQ(row("g").base, 55);
	CHECK_EQ(row("g").calls, 2);
	CHECK_EQ(row("g").elapsed, 110);
	CHECK_EQ(row("h").samples, 3);
	CHECK_EQ(row("100_102").base, 15); /* it ran from 130 on, and to 195 */
	CHECK_EQ(profile->total, 100);
	CHECK_EQ(profile->n_events, 6);
	CHECK_EQ(profile->threads[second].events, 2);
	for (uint32_t id = calltree_get_routine(profile->tree, row("h").routine)->first_instance;
		id; id = calltree_get(profile->tree, id)->next_instance) {
		const struct calltree_node *node = calltree_get(profile->tree, id);

		CHECK_EQ(node->samples, 1); /* below f, below f > g, below the other's g */
		CHECK(calltree_begins_chain(profile->tree, id));
	}
	o.thread = "102";
	CHECK_EQ(build(&o), 0);
	CHECK_EQ(row("g").base, 25);
	CHECK_EQ(profile->n_events, 2);
	o.thread = NULL;
	o.metric = "wall";
	CHECK_EQ(build(&o), 0);
	CHECK_EQ(row("g").base, 110);
	end();
}

static void time_before_the_first_event_counts(void)
{
	uint32_t stream, f;

	begin();
	stream = trace_writer_stream(w, STREAM_KIND_THREAD, thread);
	f = named("f", FRAME_KIND_NATIVE);
	numbers(life_stream, 10, RECORD_MAJOR_THREAD, RECORD_THREAD_CREATED, 3, U(thread), U(0),
		U(0));
	switch_thread(30, thread, true); /* so it ran from 10 to 30 */
	switch_thread(100, thread, false);
	enter(stream, 140, f, false);
	enter(stream, 150, f, true);
	switch_thread(155, thread, true);
	build_all();
	CHECK_EQ(row("f").cum, 10);
	CHECK_EQ(row("100_101").base, 20 + 40 + 5);
	CHECK_EQ(row("100_101").elapsed, 145);
	end();
}

static void amounts_go_to_the_routine_that_asks(void)
{
	struct build_options o = BUILD_OPTIONS_ALL;
	uint32_t stream, f, g, bytes, faults;

	begin();
	bytes = trace_writer_metric(w, "bytes", "bytes");
	faults = trace_writer_metric(w, "faults", "1");
	stream = trace_writer_stream(w, STREAM_KIND_THREAD, thread);
	f = named("f", FRAME_KIND_NATIVE);
	g = named("malloc", FRAME_KIND_NATIVE);
	enter(stream, 10, f, false);
	numbers(stream, 11, RECORD_MAJOR_RESOURCE, RECORD_RESOURCE_ADD, 2, U(faults), U(2));
	enter(stream, 12, g, false);
	numbers(stream, 12, RECORD_MAJOR_RESOURCE, RECORD_RESOURCE_ADD, 2, U(bytes), U(4000));
	enter(stream, 13, g, true);
	enter(stream, 14, f, true);
	sample(13, STACK(f, g), 1000);
	o.metric = "bytes";
	CHECK_EQ(build(&o), 0);
	CHECK_STR(profile->unit, "bytes");
	CHECK(row("malloc").base == 4000 && row("f").cum == 4000 && row("f").base == 0);
	o.metric = "faults";
	CHECK_EQ(build(&o), 0);
	CHECK(row("f").base == 2 && row("malloc").cum == 0);
	build_all();
	CHECK_EQ(profile->total, 4);
	end();
}

static void stacks_of_a_thread_in_a_window(void)
{
	struct build_options o = BUILD_OPTIONS_ALL;
	uint32_t stream, f, g, h;

	begin();
	stream = trace_writer_stream(w, STREAM_KIND_THREAD, thread);
	f = named("f", FRAME_KIND_NATIVE);
	g = named("g", FRAME_KIND_NATIVE);
	h = named("h", FRAME_KIND_NATIVE);
	enter(stream, 100, f, false);
	numbers(stream, 110, RECORD_MAJOR_HOOK, RECORD_HOOK_CHAIN, 1, U(1));
	enter(stream, 110, g, false);
	enter(stream, 115, h, false);
	enter(stream, 120, h, true);
	numbers(stream, 130, RECORD_MAJOR_HOOK, RECORD_HOOK_CHAIN, 1, U(0));
	numbers(stream, 150, RECORD_MAJOR_HOOK, RECORD_HOOK_CHAIN, 1, U(1));
	enter(stream, 160, g, true);
	numbers(stream, 160, RECORD_MAJOR_HOOK, RECORD_HOOK_CHAIN, 1, U(0));
	enter(stream, 170, f, true);
	build_all();
	CHECK(row("f").base == 40 && row("f").elapsed == 70);
	CHECK(row("g").base == 25 && row("h").base == 5);
	CHECK_EQ(reason("enter and leave events do not match"), 0);
	o.from = 40; /* both are open by then, f is current */
	CHECK_EQ(build(&o), 0);
	CHECK(row("f").base == 20 && row("f").calls == 1);
	CHECK(row("g").base == 10 && row("g").elapsed == 20);
	CHECK_EQ(profile->total, 30);
	CHECK_EQ(reason("enter and leave events do not match"), 0);
	end();
}

static void trees_kept_in_the_program(void)
{
	struct build_options o = BUILD_OPTIONS_ALL;
	uint32_t f, g, h;

	begin();
	f = named("f", FRAME_KIND_NATIVE);
	g = named("g", FRAME_KIND_NATIVE);
	h = named("h", FRAME_KIND_NATIVE);
	node(10, 1, 0, f, 1, 20);
	node(10, 7, 1, h, 1, 20); /* folded into f before the next snapshot */
	node(50, 3, 2, g, 10, 30);
	node(50, 1, 0, f, 1, 100);
	node(50, 2, 1, f, 4, 60);
	node(50, 5, 0, 0, 3, 5);
	numbers(life_stream, 50, RECORD_MAJOR_TREE, RECORD_TREE_PRUNED, 2, U(thread), U(3));
	sample(20, STACK(f, h, f, g, h), 7);
	build_all();
	CHECK_STR(profile->metric, "wall");
	CHECK(row("f").cum == 100 && row("f").cum2 == 160 && row("f").base == 70);
	CHECK(row("f").calls == 5 && row("g").base == 30 && row("g").calls == 10);
	CHECK(row("g").elapsed == 30 && row("g").min == 1 && row("g").max == 9);
	CHECK(row("[pruned]").calls == 3 && profile->n_pruned == 3);
	CHECK_EQ(profile->total, 105);
	CHECK(!row("h").has_events && row("h").samples == 1);
	CHECK_EQ(calltree_get_routine(profile->tree, row("g").routine)->has_events, true);
	o.metric = "cpu"; /* which the tree does not know */
	CHECK_EQ(build(&o), 0);
	CHECK(row("g").calls == 10 && row("g").cum == 7 && !row("g").exact);
	CHECK_EQ(profile->total, 7);
	o.metric = "calls";
	CHECK_EQ(build(&o), 0);
	CHECK(row("g").base == 10 && profile->total == 18);
	CHECK_EQ(profile->loss.n_reasons, 0);
	o.from = 45; /* sums of the whole run: that it means nothing for them is said */
	CHECK_EQ(build(&o), 0);
	CHECK_EQ(profile->total, 18);
	CHECK_EQ(
		reason("trees that were kept in the program have no times: a window (--from, --to) does not "
		       "apply to them"),
		1);
	end();
}

static void trees_before_and_after_an_exec(void)
{
	uint32_t f, g;

	begin();
	f = named("f", FRAME_KIND_NATIVE);
	g = named("g", FRAME_KIND_NATIVE);
	node(10, 1, 0, f, 5, 40);
	node(10, 2, 1, g, 2, 10);
	numbers(life_stream, 10, RECORD_MAJOR_TREE, RECORD_TREE_PRUNED, 2, U(thread), U(3));
	numbers(life_stream, 10, RECORD_MAJOR_TREE, RECORD_TREE_OVER, 1, U(thread));
	node(10, 1, 0, g, 7, 60); /* the same time, the same number, and another tree */
	node(50, 1, 0, g, 8, 70);
	numbers(life_stream, 50, RECORD_MAJOR_TREE, RECORD_TREE_PRUNED, 2, U(thread), U(4));
	build_all();
	CHECK(row("f").calls == 5 && row("f").base == 30 && row("f").cum == 40);
	CHECK(row("g").calls == 10 && row("g").base == 80);
	CHECK(profile->n_pruned == 7 && profile->n_kept_nodes == 3);
	CHECK_EQ(profile->total, 110);
	end();
}

static void forged_trees_are_hung_somewhere(void)
{
	uint32_t f;

	begin();
	f = named("f", FRAME_KIND_NATIVE);
	node(10, 1, 2, f, 1, 20); /* each the other's parent */
	node(10, 2, 1, f, 1, 20);
	node(10, 3, 3, f, 1, 20);
	node(10, 4, 99, f, 1, UINT64_MAX);
	node(10, 0, 1, f, 1, 20);
	node(10, 5, 1, f + 1000, 1, 20);
	build_all();
	CHECK_EQ(row("f").calls, 4);
	CHECK_EQ(reason("a record of a kept tree is damaged"), 5);
	end();
}

static void hooks_are_listed(void)
{
	uint32_t f;

	begin();
	f = named("f", FRAME_KIND_NATIVE);
	numbers(life_stream, 10, RECORD_MAJOR_HOOK, RECORD_HOOK_FUNCTION, 5, U(f), U(1), U(0),
		U(99), U(51));
	numbers(life_stream, 10, RECORD_MAJOR_HOOK, RECORD_HOOK_FUNCTION, 5, U(f), U(0),
		U(trace_writer_string(w, "too short")), U(0), U(0));
	numbers(life_stream, 10, RECORD_MAJOR_HOOK, RECORD_HOOK_FUNCTION, 5, U(f),
		U(PROFILE_HOOK_N_METHODS), U(0), U(0), U(0));
	numbers(life_stream, 10, RECORD_MAJOR_HOOK, RECORD_HOOK_FUNCTION, 5, U(0), U(1), U(0), U(0),
		U(0));
	build_all();
	CHECK_EQ(profile->n_hooks, 2);
	CHECK(profile->hooks[0].method == PROFILE_HOOK_JUMP && profile->hooks[0].hits == 99);
	CHECK(profile->hooks[0].is_off && profile->hooks[0].off_time == 50);
	CHECK_STR(profile->hooks[1].reason, "too short");
	CHECK_EQ(reason("a record of a hook is damaged"), 2);
	CHECK_EQ(profile->loss.records_unknown, 0);
	end();
}

/* More than one thread's worth of chunks, so that they are unpacked ahead; one of them damaged. */
static void long_streams_are_read_ahead(void)
{
	enum { CALLS = 300000 };
	struct trace_thread other = {.pid = 100, .tid = 102};
	uint32_t streams[2], second, f;
	int fd;

	begin();
	second = trace_writer_thread(w, &other);
	streams[0] = trace_writer_stream(w, STREAM_KIND_THREAD, thread);
	streams[1] = trace_writer_stream(w, STREAM_KIND_THREAD, second);
	f = named("f", FRAME_KIND_NATIVE);
	for (uint64_t i = 0; i < CALLS; i++) {
		enter(streams[i & 1], 10 * i, f, false);
		enter(streams[i & 1], 10 * i + 3 + i % 1000, f, true);
		if (i % 5000 == 0)
			sample(10 * i + 1, STACK(f), 1);
	}
	build_all();
	CHECK_EQ(row("f").calls, CALLS);
	CHECK_EQ(row("f").samples, CALLS / 5000);
	CHECK_EQ(profile->threads[second].events, CALLS);
	CHECK(!profile->loss.is_cut);
	profile_free(profile);
	profile = NULL;
	trace_reader_close(reader);
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0 && pwrite(fd, "damage", 6, lseek(fd, 0, SEEK_END) / 2) == 6);
	close(fd);
	CHECK_EQ(trace_reader_open(&reader, path, &err), 0);
	build_all();
	CHECK(row("f").calls < CALLS);
	CHECK(row("f").calls > CALLS - 30000);
	CHECK(profile->loss.is_cut);
	end();
}

static void ticks_have_one_frame(void)
{
	uint64_t numbers[4];

	begin();
	numbers[0] = thread;
	numbers[1] = named("f", FRAME_KIND_NATIVE);
	numbers[2] = cpu_metric;
	numbers[3] = 250;
	trace_writer_numbers(w, cpu_stream, 1, RECORD_MAJOR_THREAD, RECORD_THREAD_TICK, numbers, 4);
	trace_writer_numbers(w, cpu_stream, 2, RECORD_MAJOR_THREAD, RECORD_THREAD_TICK, numbers, 4);
	numbers[1] = 99999;
	trace_writer_numbers(w, cpu_stream, 3, RECORD_MAJOR_THREAD, RECORD_THREAD_TICK, numbers, 4);
	build_all();
	CHECK_EQ(profile->total, 500);
	CHECK_EQ(row("f").base, 500);
	CHECK_EQ(profile->loss.stacks, 0); /* a tick has no stack to be complete */
	CHECK_EQ(profile->loss.frames, 2);
	CHECK_EQ(reason("a sample record is damaged"), 1);
	end();
}

static void a_cut_trace_says_so(void)
{
	uint64_t n_whole;
	uint32_t f;

	begin();
	f = named("f", FRAME_KIND_NATIVE);
	sample(1, STACK(f), 1);
	CHECK_EQ(trace_writer_flush(w, &err), 0);
	n_whole = trace_writer_bytes(w);
	sample(2, STACK(f), 1);
	CHECK_EQ(trace_writer_close(w, &err), 0);
	w = NULL;
	CHECK_EQ(truncate(path, (off_t)n_whole + 5), 0);
	CHECK_EQ(trace_reader_open(&reader, path, &err), 0);
	build_all();
	CHECK_EQ(profile->total, 1);
	CHECK(profile->loss.is_cut && profile->loss.n_reasons == 1);
	CHECK(loss_is_real(&profile->loss));
	end();
}

static const struct test tests[] = {
	{"samples count with their weights", samples_are_weighed},
	{"incomplete stacks stand apart and are counted", incomplete_stacks_stand_apart},
	{"inlined functions are routines, and frames without a symbol have a name",
		inlined_levels_are_routines},
	{"losses and unknown records are counted with their reasons",
		losses_are_counted_with_reasons},
	{"threads are found by number and by their last name",
		threads_are_found_by_number_and_name},
	{"a window cuts calls at its edges", events_in_a_window},
	{"switches and interrupts stop the clock of CPU time",
		switches_and_interrupts_stop_the_clock},
	{"time that events account for is not counted again by samples", time_is_not_counted_twice},
	{"streams of threads and of CPUs are put together", threads_are_played_beside_the_cpus},
	{"the time before a thread's first event counts", time_before_the_first_event_counts},
	{"amounts are charged to the routine that asks for them",
		amounts_go_to_the_routine_that_asks},
	{"a window knows what is open on each stack of a thread", stacks_of_a_thread_in_a_window},
	{"a tree that the program kept is taken from its last snapshot", trees_kept_in_the_program},
	{"a thread's trees before and after an exec both count", trees_before_and_after_an_exec},
	{"a forged tree is hung somewhere and is said so", forged_trees_are_hung_somewhere},
	{"hooks are listed with what became of them", hooks_are_listed},
	{"long streams are read ahead, and damage costs a chunk", long_streams_are_read_ahead},
	{"ticks have one frame and no stack", ticks_have_one_frame},
	{"a trace that was cut says so", a_cut_trace_says_so},
};

int main(void)
{
	return RUN_TESTS(tests);
}
