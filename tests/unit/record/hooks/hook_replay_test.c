/* SPDX-License-Identifier: MIT */
#include "record/hooks/replay.h"

#include <stdlib.h>

#include "check.h"
#include "record/hooks/budget.h"
#include "record/hooks/hook_layout.h"
#include "rt/hook/hook_abi.h"

#define REGION	     0x7f0000000000u
#define REGION_BYTES 0x10000000u
#define BLOCK(n)     (REGION + (uint64_t)(n)*HOOK_BLOCK_BYTES)

/* As the library puts it on the stack. */
static uint64_t slot(uint64_t block, uint32_t i)
{
	return block + (uint64_t)i * HOOK_SLOT_BYTES + HOOK_RETURN_OFFSET;
}

/* Behind the call in a slot: where the leaving stub returns to. */
static uint64_t in_leave_stub(uint64_t block, uint32_t i)
{
	return block + (uint64_t)i * HOOK_SLOT_BYTES + 7;
}

static struct replay_walk walk_of(struct replay *r)
{
	return (struct replay_walk){
		.replay = r, .region_start = REGION, .region_bytes = REGION_BYTES};
}

static uint64_t ask(struct replay_walk *w, uint64_t pc)
{
	return replay_walk_return(w, pc, true);
}

/* Calls `n` functions inside each other: id i + 1 returns to 0x1000 + i. */
static void enter_many(struct replay *r, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		replay_enter(r, i + 1, 0x1000 + i, i);
}

static void a_walk_meets_the_true_return_addresses(void)
{
	struct replay r = {0};
	struct replay_walk w;

	enter_many(&r, 3);
	w = walk_of(&r);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 3)), 0x1002);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 2)), 0x1001);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 1)), 0x1000);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 1)), 0);
	replay_release(&r);
}

static void an_exit_ends_what_was_inside(void)
{
	struct replay r = {0};
	struct replay_call left;

	enter_many(&r, 4);
	CHECK_EQ(replay_leave(&r, 2, &left), 3);
	CHECK_EQ(left.id, 2);
	CHECK_EQ(left.ticks, 1);
	CHECK_EQ(replay_depth(&r), 1);
	CHECK_EQ(replay_leave(&r, 77, &left), 0);
	CHECK_EQ(r.n_unmatched_leaves, 1);
	CHECK_EQ(replay_depth(&r), 1);
	replay_release(&r);
}

static void recursion_leaves_the_innermost(void)
{
	struct replay r = {0};
	struct replay_call left;

	for (uint64_t i = 0; i < 3; i++)
		replay_enter(&r, 9, 0x2000 + i, i);
	CHECK_EQ(replay_leave(&r, 9, &left), 1);
	CHECK_EQ(left.ret, 0x2002);
	CHECK_EQ(replay_depth(&r), 2);
	replay_release(&r);
}

/* The sample was taken before the entry, but by its clock after it. */
static void an_entry_too_many_is_passed_over(void)
{
	struct replay r = {0};
	struct replay_walk w;

	enter_many(&r, 3);
	w = walk_of(&r);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 2)), 0x1001);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 1)), 0x1000);
	replay_release(&r);
}

static void an_entry_that_comes_next_is_known_already(void)
{
	struct replay r = {0};
	struct replay_walk w;

	enter_many(&r, 2);
	w = walk_of(&r);
	w.has_pending = true;
	w.pending_ret = 0xabc;
	CHECK_EQ(ask(&w, slot(BLOCK(5), 3)), 0xabc);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 2)), 0x1001);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 1)), 0x1000);
	replay_release(&r);
}

/* The exit's record is written while the stub still runs. */
static void a_call_on_its_way_out_is_still_known(void)
{
	struct replay r = {0};
	struct replay_call left;
	struct replay_walk w;

	enter_many(&r, 3);
	replay_leave(&r, 3, &left);
	w = walk_of(&r);
	CHECK_EQ(ask(&w, in_leave_stub(BLOCK(5), 3)), 0x1002);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 2)), 0x1001);
	replay_release(&r);
}

static void tail_calls_are_followed_to_the_first_caller(void)
{
	struct replay r = {0};
	struct replay_walk w;

	replay_enter(&r, 1, 0x1000, 0);
	replay_enter(&r, 2, slot(BLOCK(5), 1), 1); /* jumped to */
	replay_enter(&r, 3, slot(BLOCK(5), 2), 2);
	w = walk_of(&r);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 3)), 0x1000);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 1)), 0);
	replay_release(&r);
}

static void deep_calls_span_blocks(void)
{
	uint32_t n = 5000, a_block = HOOK_BLOCK_SLOTS - 1;
	struct replay r = {0};
	struct replay_walk w;

	enter_many(&r, n);
	w = walk_of(&r);
	for (uint32_t i = n; i--;)
		CHECK_EQ(ask(&w, slot(BLOCK(10 + i / a_block), i % a_block + 1)), 0x1000 + i);
	replay_release(&r);
}

/* A handler on a signal stack: same chain, but slots of a block of its own. */
static void a_signal_stack_has_slots_of_its_own(void)
{
	struct replay r = {0};
	struct replay_walk w;

	enter_many(&r, 5);
	w = walk_of(&r);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 5)), 0x1004); /* the block is known from here on */
	replay_enter(&r, 20, 0x5000, 9);
	replay_enter(&r, 21, 0x5001, 9);
	w = walk_of(&r);
	CHECK_EQ(ask(&w, slot(BLOCK(8), 2)), 0x5001);
	CHECK_EQ(ask(&w, slot(BLOCK(8), 1)), 0x5000);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 5)), 0x1004);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 4)), 0x1003);
	replay_release(&r);
}

static void chains_are_kept_apart(void)
{
	struct replay r = {0};
	struct replay_call left;
	struct replay_walk w;

	enter_many(&r, 2);
	w = walk_of(&r);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 2)), 0x1001);
	replay_switch(&r, 7);
	replay_enter(&r, 30, 0x7000, 1);
	replay_enter(&r, 31, 0x7001, 1);
	CHECK_EQ(replay_leave(&r, 1, &left), 0); /* not on this one */
	w = walk_of(&r);
	CHECK_EQ(ask(&w, slot(BLOCK(6), 2)), 0x7001);
	replay_switch(&r, 0);
	w = walk_of(&r);
	CHECK_EQ(ask(&w, slot(BLOCK(9), 2)), 0); /* whose block this is was never seen */
	CHECK_EQ(replay_depth(&r), 2);
	CHECK_EQ(replay_chain_number(&r), 0);
	CHECK_EQ(replay_leave(&r, 2, &left), 1);
	replay_switch(&r, 7);
	CHECK_EQ(replay_depth(&r), 2);
	replay_release(&r);
}

/* The thread went back to its own stack without an event. */
static void a_block_that_is_known_names_the_chain(void)
{
	struct replay r = {0};
	struct replay_walk w;

	enter_many(&r, 3);
	w = walk_of(&r);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 3)), 0x1002);
	replay_switch(&r, 1);
	replay_enter(&r, 40, 0x8000, 1);
	w = walk_of(&r);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 3)), 0x1002);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 2)), 0x1001);
	replay_release(&r);
}

static void a_coroutine_that_begins_is_not_taken_for_its_maker(void)
{
	struct replay r = {0};
	struct replay_walk w;

	enter_many(&r, 1);
	w = walk_of(&r);
	w.has_pending = true;
	w.pending_chain = 1;
	w.pending_ret = 0x9000;
	CHECK_EQ(ask(&w, slot(BLOCK(6), 1)), 0x9000);
	CHECK_EQ(ask(&w, slot(BLOCK(6), 1)), 0); /* nothing is below it */
	replay_release(&r);
}

static void a_child_has_its_parents_calls(void)
{
	struct replay r = {0}, child = {0};
	struct replay_call left;
	struct replay_walk w;

	enter_many(&r, 3);
	replay_switch(&r, 4);
	replay_enter(&r, 50, 0x6000, 1);
	replay_copy(&child, &r);
	CHECK_EQ(replay_leave(&r, 50, &left), 1);
	CHECK_EQ(replay_chain_number(&child), 4);
	CHECK_EQ(replay_depth(&child), 1);
	replay_switch(&child, 0);
	w = walk_of(&child);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 3)), 0x1002);
	replay_release(&r);
	replay_release(&child);
}

static void addresses_that_are_no_slots_are_not_known(void)
{
	struct replay r = {0};
	struct replay_walk w;

	enter_many(&r, 2);
	w = walk_of(&r);
	CHECK_EQ(ask(&w, BLOCK(5)), 0); /* the first slot is none */
	CHECK_EQ(ask(&w, BLOCK(5) + HOOK_HEADER_OFFSET), 0);
	CHECK_EQ(ask(&w, BLOCK(5) + HOOK_ENTRY_OFFSET + 64), 0);
	replay_release(&r);
}

/* A program can write what it likes into its ring. */
static void nonsense_ends(void)
{
	struct replay r = {0};
	struct replay_walk w;

	replay_enter(&r, 1, slot(BLOCK(5), 1), 0); /* leads to itself */
	replay_enter(&r, 2, slot(BLOCK(5), 2), 0);
	w = walk_of(&r);
	CHECK_EQ(ask(&w, slot(BLOCK(5), 2)), 0);
	for (uint32_t i = 0; i < 20000; i++)
		replay_switch(&r, i * 3);
	CHECK(r.chains.n < 20000);
	replay_release(&r);
}

/* --- moved code --------------------------------------------------------------------------- */

static const struct planned_function function = {
	.id = 1, .n_moves = 3, .moves = {{0, 0}, {2, 2}, {4, 10}}};

static struct hook_layout *make_layout(void)
{
	struct hook_layout *l = hook_layout_new(NULL);

	l->region_start = REGION;
	l->region_bytes = REGION_BYTES;
	vec_push(&l->moved, ((struct hook_moved){.code = 0x9100,
				    .n_code = 20,
				    .n_patched = 7,
				    .function = 0x4000,
				    .site = 0x4004,
				    .planned = &function}));
	vec_push(&l->moved, ((struct hook_moved){.code = 0x9040,
				    .n_code = 12,
				    .n_patched = 5,
				    .function = 0x5000,
				    .site = 0x5000,
				    .planned = &function}));
	hook_layout_sort(l);
	return l;
}

static uint64_t original(const struct hook_layout *l, uint64_t pc)
{
	uint64_t found = 0;

	return hook_layout_original_pc(l, pc, &found) ? found : 0;
}

static void moved_instructions_are_shown_where_they_were(void)
{
	struct hook_layout *l = make_layout();

	CHECK_EQ(original(l, 0x9100 - HOOK_CALL_BYTES), 0x4000); /* the call of the hook */
	CHECK_EQ(original(l, 0x9100), 0x4000);
	CHECK(hook_layout_is_entry(l, 0x9100));
	CHECK_EQ(original(l, 0x9102), 0x4006);
	CHECK(!hook_layout_is_entry(l, 0x9102));
	CHECK_EQ(original(l, 0x9109), 0x4006); /* within a longer form of the second */
	CHECK_EQ(original(l, 0x910a), 0x4008);
	CHECK_EQ(original(l, 0x9100 + 20), 0);
	CHECK_EQ(original(l, 0x9042), 0x5002);
	CHECK_EQ(original(l, 0x9000), 0);
	CHECK_EQ(original(l, UINT64_MAX), 0);
	hook_layout_free(l);
}

static void a_thread_inside_patched_bytes_goes_on_in_the_moved_ones(void)
{
	struct hook_layout *l = make_layout(), *copy = hook_layout_new(l);

	CHECK_EQ(hook_layout_moved_pc(copy, 0x4006), 0x9102);
	CHECK_EQ(hook_layout_moved_pc(copy, 0x4008), 0x910a);
	CHECK_EQ(hook_layout_moved_pc(copy, 0x4004), 0x4004); /* runs the jump */
	CHECK_EQ(hook_layout_moved_pc(copy, 0x400b), 0x400b); /* behind what was patched */
	CHECK_EQ(hook_layout_moved_pc(copy, 0x5004), 0x9040 + 10);
	CHECK_EQ(hook_layout_moved_pc(copy, 0x1000), 0x1000);
	hook_layout_free(l);
	hook_layout_free(copy);
}

static void only_slots_are_places_to_return_to(void)
{
	struct hook_layout *l = make_layout();

	CHECK(hook_layout_is_slot(l, slot(BLOCK(0), 1)));
	CHECK(hook_layout_is_slot(l, slot(BLOCK(3), HOOK_BLOCK_SLOTS - 1)));
	CHECK(!hook_layout_is_slot(l, BLOCK(3)));
	CHECK(!hook_layout_is_slot(l, BLOCK(3) + HOOK_HEADER_OFFSET));
	CHECK(!hook_layout_is_slot(l, BLOCK(3) + HOOK_ENTRY_OFFSET + 40));
	CHECK(!hook_layout_is_slot(l, REGION - 15));
	CHECK(!hook_layout_is_slot(l, REGION + REGION_BYTES + 17));
	hook_layout_free(l);
}

/* A module was unloaded, and another one is there, or its moved code is. */
static void what_was_replaced_is_dropped(void)
{
	struct hook_layout *l = hook_layout_new(NULL);

	vec_push(&l->modules, ((struct hook_module_at){.start = 0x1000, .end = 0x3000}));
	vec_push(&l->modules, ((struct hook_module_at){.start = 0x5000, .end = 0x6000}));
	vec_push(&l->moved, ((struct hook_moved){.code = 0x9010, .n_code = 10, .site = 0x1800}));
	vec_push(&l->moved, ((struct hook_moved){.code = 0x9040, .n_code = 10, .site = 0x5800}));
	vec_push(&l->moved, ((struct hook_moved){.code = 0x9070, .n_code = 10, .site = 0x5900}));
	hook_layout_sort(l);
	hook_layout_drop(l, 0x2000, 0x4000); /* the first module */
	hook_layout_sort(l);
	CHECK_EQ(l->modules.n, 1);
	CHECK_EQ(l->modules.v[0].start, 0x5000);
	CHECK_EQ(l->moved.n, 3); /* nothing of it was there */
	hook_layout_drop(l, 0x1000, 0x2000);
	CHECK_EQ(l->moved.n, 2);
	hook_layout_drop(l, 0x9049, 0x906a); /* the end of one, up to the call of the next */
	hook_layout_sort(l);
	CHECK_EQ(l->moved.n, 1);
	CHECK_EQ(l->moved.v[0].code, 0x9070);
	CHECK_EQ(l->by_site.n, 1);
	hook_layout_free(l);
}

/* --- the budget --------------------------------------------------------------------------- */

static void the_shortest_functions_go_first(void)
{
	double pair = budget_pair_ns(HOOK_METHOD_JUMP, 1400);
	struct budget_function f[] = {{1, 1000000, 1000000000, pair}, {2, 10000000, 50000000, pair},
		{3, 5, 400000000, pair}};

	CHECK_EQ(pair, 40);
	/* 40 ns for a pair: 440 ms of a second. */
	CHECK_EQ(budget_choose(f, 3, 1000000000, 50), 0);
	CHECK_EQ(budget_choose(f, 3, 1000000000, 5), 1);
	CHECK_EQ(f[0].id, 2);
	CHECK_EQ(budget_choose(f, 3, 1000000000, 1), 2);
	CHECK_EQ(f[0].id, 2);
	CHECK_EQ(f[1].id, 1);
}

static void a_function_that_costs_nothing_stays(void)
{
	struct budget_function f[] = {{1, 3, 30, 40}, {2, 10000000, 500000000, 40}};

	CHECK_EQ(budget_choose(f, 2, 1000000000, 5), 1);
	CHECK_EQ(f[0].id, 2);
	CHECK_EQ(budget_choose(f, 0, 1000, 5), 0);
}

static void a_breakpoint_costs_what_it_costs(void)
{
	double trap = budget_pair_ns(HOOK_METHOD_INT3, 1400);
	struct budget_function f[] = {{1, 100000, 50000000, 40}, {2, 30000, 45000000, trap}};

	CHECK_EQ(trap, 1440);
	/* 4 and 43 ms of a second; the calls of the second are three times as long. */
	CHECK_EQ(budget_choose(f, 2, 1000000000, 5), 0);
	CHECK_EQ(budget_choose(f, 2, 1000000000, 1), 1);
	CHECK_EQ(f[0].id, 2);
	/* Two switches into the kernel and back take more than a jump, on any machine. */
	CHECK(budget_measure_trap() > 40);
}

int main(void)
{
	static const struct test tests[] = {
		{"a walk meets the true return addresses, innermost first",
			a_walk_meets_the_true_return_addresses},
		{"an exit ends its call and all that is open inside it",
			an_exit_ends_what_was_inside},
		{"in a recursion an exit ends the innermost call", recursion_leaves_the_innermost},
		{"an entry that is a little too early is passed over",
			an_entry_too_many_is_passed_over},
		{"an entry that comes as the next event is known already",
			an_entry_that_comes_next_is_known_already},
		{"a call on its way out is still known", a_call_on_its_way_out_is_still_known},
		{"tail calls are followed to the first caller",
			tail_calls_are_followed_to_the_first_caller},
		{"calls deeper than a block are found", deep_calls_span_blocks},
		{"a handler on a signal stack, and what it interrupted, are found",
			a_signal_stack_has_slots_of_its_own},
		{"calls of coroutines are kept apart", chains_are_kept_apart},
		{"a block that is known names the chain, whatever ran last",
			a_block_that_is_known_names_the_chain},
		{"a coroutine that begins is not taken for its maker",
			a_coroutine_that_begins_is_not_taken_for_its_maker},
		{"a forked child has the open calls of its parent", a_child_has_its_parents_calls},
		{"addresses in the region that are no slots are not known",
			addresses_that_are_no_slots_are_not_known},
		{"nonsense in a ring ends", nonsense_ends},
		{"moved instructions are shown where they were",
			moved_instructions_are_shown_where_they_were},
		{"a thread inside patched bytes goes on in the moved ones",
			a_thread_inside_patched_bytes_goes_on_in_the_moved_ones},
		{"only slots are places to return to", only_slots_are_places_to_return_to},
		{"what was replaced in memory is dropped", what_was_replaced_is_dropped},
		{"the budget unhooks the shortest functions first",
			the_shortest_functions_go_first},
		{"the budget leaves alone what costs nothing", a_function_that_costs_nothing_stays},
		{"the budget charges a breakpoint for what it costs",
			a_breakpoint_costs_what_it_costs},
	};

	return RUN_TESTS(tests);
}
