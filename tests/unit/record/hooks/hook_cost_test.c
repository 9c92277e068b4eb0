/* SPDX-License-Identifier: MIT */
/* What hook libraries say of their cost, on its way into a trace. */
#include "check.h"

#include <unistd.h>

#include "record/hooks/hook_cost.h"
#include "trace/reader.h"

#define HZ 2e9 /* a tick is 500 ps, a 16th of it 31.25 ps */

static char path[] = "hook_cost_test.weir";

/* The numbers of the only record that is written. */
static void written(const struct hook_costs *c, bool is_tree, uint64_t n[6], char name[80])
{
	struct trace_cursor *cursor;
	struct trace_record record;
	struct trace_reader *r;
	struct trace_writer *w;
	struct err err = {0};

	CHECK_EQ(trace_writer_open(&w, path, &err), 0);
	hook_costs_write(c, w, trace_writer_stream(w, STREAM_KIND_LIFE, 0), 10, HZ, is_tree);
	CHECK_EQ(trace_writer_close(w, &err), 0);
	CHECK_EQ(trace_reader_open(&r, path, &err), 0);
	CHECK_EQ(trace_cursor_open(&cursor, r, 1, 0, UINT64_MAX, &err), 0);
	CHECK_EQ(trace_cursor_next(cursor, &record, &err), 1);
	CHECK(record.major == RECORD_MAJOR_HOOK && record.minor == RECORD_HOOK_COST);
	CHECK_EQ(trace_record_numbers(r, &record, n, 6, &err), 0);
	snprintf(name, 80, "%s", trace_reader_string(r, (uint32_t)n[1]));
	CHECK_EQ(trace_cursor_next(cursor, &record, &err), 0);
	trace_cursor_close(cursor);
	trace_reader_close(r);
	unlink(path);
}

static void records_are_means(void)
{
	struct hook_costs c = {0};
	uint64_t n[6];
	char name[80];

	hook_costs_add(&c, true, HOOK_COST(HOOK_COST_CALL, 320, 640)); /* 10 and 20 ns */
	hook_costs_add(&c, true, HOOK_COST(HOOK_COST_CALL, 640, 640));
	hook_costs_add(&c, true, HOOK_COST(HOOK_COST_SLOW, 32, 64)); /* 1 and 2 ns for each call */
	hook_costs_add(&c, true, HOOK_COST(HOOK_COST_SLOW, 32, 64));
	hook_costs_add(&c, true, HOOK_COST(HOOK_COST_N, 1, 1));	     /* nonsense */
	written(&c, false, n, name);
	CHECK_STR(name, "jump, nop or mcount, 64-bit, events");
	CHECK(n[2] == 2 && n[3] == 16000 && n[4] == 22000 && n[5] == 7071);
	CHECK_EQ(n[0], hook_costs_number(&c, true, HOOK_METHOD_NOP, HOOK_ACTION_CALL));
	hook_costs_release(&c);
}

/* Alone on its core for most of the time, beside a busy neighbour for a fifth of it, interrupted once. */
static void what_neighbours_add_is_in_the_mean_and_in_the_deviation(void)
{
	struct hook_costs c = {0};
	uint64_t n[6];
	char name[80];

	for (int i = 0; i < 80; i++)
		hook_costs_add(&c, true, HOOK_COST(HOOK_COST_CALL, i % 5 ? 320 : 640, 320));
	hook_costs_add(&c, true, HOOK_COST(HOOK_COST_CALL, 1 << 20, 320));
	written(&c, false, n, name);
	CHECK(n[3] > 12000 && n[3] < 12300 && n[4] == 10000);
	CHECK(n[5] > 4000 && n[5] < 4200);
	hook_costs_release(&c);
}

static void one_measurement_is_not_trusted(void)
{
	struct hook_tree_cost tree[HOOK_COST_N] = {{1, 320, 640, 960 * 960}};
	struct hook_costs c = {0};
	uint64_t n[6];
	char name[80];

	hook_costs_add(&c, true, HOOK_COST(HOOK_COST_CALL, 320, 640));
	written(&c, false, n, name);
	CHECK(n[3] == 10000 && n[4] == 20000 && n[5] == 15000);
	hook_costs_release(&c);
	c = (struct hook_costs){0};
	hook_costs_add_tree(&c, true, tree);
	written(&c, true, n, name);
	CHECK(n[3] == 10000 && n[4] == 20000 && n[5] == 15000);
}

static void functions_have_the_cost_of_their_way(void)
{
	struct hook_costs c = {0};

	for (uint32_t kind = 0; kind < HOOK_COST_N; kind++)
		hook_costs_add(&c, false, HOOK_COST(kind, 16, 16));
	CHECK_EQ(hook_costs_number(&c, true, HOOK_METHOD_JUMP, HOOK_ACTION_CALL), 0);
	CHECK(hook_costs_number(&c, false, HOOK_METHOD_JUMP, HOOK_ACTION_CALL) ==
		hook_costs_number(&c, false, HOOK_METHOD_MCOUNT, HOOK_ACTION_CALL));
	CHECK(hook_costs_number(&c, false, HOOK_METHOD_INT3, HOOK_ACTION_CALL) !=
		hook_costs_number(&c, false, HOOK_METHOD_CYGPROF, HOOK_ACTION_CALL));
	CHECK(hook_costs_number(&c, false, HOOK_METHOD_JUMP, HOOK_ACTION_AMOUNT));
	/* Of these nobody knows. */
	CHECK_EQ(hook_costs_number(&c, false, HOOK_METHOD_INT3, HOOK_ACTION_AMOUNT), 0);
	CHECK_EQ(hook_costs_number(&c, false, HOOK_METHOD_JUMP, HOOK_ACTION_STACK), 0);
	CHECK_EQ(hook_costs_number(&c, false, 0, HOOK_ACTION_CALL), 0);
	hook_costs_release(&c);
}

static void forged_trees_cost_nothing(void)
{
	struct hook_tree_cost costs[HOOK_COST_N] = {{4, 4 * 320, 4 * 640, 4ull * 960 * 960},
		{1, UINT64_MAX, 0, 0}, {UINT64_MAX, 1, 1, 1}, {0, 5, 5, 5}};
	struct hook_costs c = {0};
	uint64_t n[6];
	char name[80];

	hook_costs_add_tree(&c, true, costs);
	written(&c, true, n, name);
	CHECK_STR(name, "jump, nop or mcount, 64-bit, tree");
	CHECK(n[2] == 4 && n[3] == 10000 && n[4] == 20000 && n[5] == 0);
}

static const struct test tests[] = {
	{"a record has the means of what was measured", records_are_means},
	{"what neighbours add is in the mean, and how much it varies in the deviation",
		what_neighbours_add_is_in_the_mean_and_in_the_deviation},
	{"one measurement is not trusted", one_measurement_is_not_trusted},
	{"functions have the cost of the way they are hooked",
		functions_have_the_cost_of_their_way},
	{"figures of a tree that make no sense are left out", forged_trees_cost_nothing},
};

int main(void)
{
	return RUN_TESTS(tests);
}
