/* SPDX-License-Identifier: MIT */
/* Events of calls and returns, with trees that were worked out by hand. */
#include "calls_world.h"

#include <stdlib.h>

#include "translate/counts_internal.h"

static void calls(void)
{
	world_open();
	enter(3, 'a', TOP);
	enter(10, 'b', TOP - 32);
	leave(20, TOP - 32);
	enter(5, 'b', TOP - 32);
	enter(7, 'c', TOP - 64);
	leave(1, TOP - 64);
	leave(9, TOP - 32);
	leave(2, TOP);
	finish(4);
	CHECK_TREE(3);
	CHECK_NODE("", 0, 7);
	CHECK_NODE("a", 1, 17);
	CHECK_NODE("ab", 2, 36);
	CHECK_NODE("abc", 1, 1);
	CHECK_EQ(node_at("ab")->min, 16);
	CHECK_EQ(node_at("ab")->max, 20);
	CHECK_EQ(node_at("a")->min, 17);
	CHECK(node_at("")->min > node_at("")->max);
	world_close();
}

static void recursion(void)
{
	world_open();
	enter(0, 'a', TOP);
	enter(1, 'a', TOP - 16);
	enter(2, 'a', TOP - 32);
	leave(3, TOP - 32);
	leave(4, TOP - 16);
	enter(5, 'a', TOP - 16);
	leave(6, TOP - 16);
	leave(7, TOP);
	finish(0);
	CHECK_TREE(3);
	CHECK_NODE("a", 1, 13);
	CHECK_NODE("aa", 2, 12);
	CHECK_NODE("aaa", 1, 3);
	CHECK_EQ(node_at("aa")->min, 6);
	world_close();
}

static void tail_calls(void)
{
	world_open();
	enter(0, 'a', TOP);
	enter(1, 'b', TOP - 32);
	enter(2, 'c', TOP - 32); /* b has jumped to c */
	enter(4, 'd', TOP - 64);
	leave(8, TOP - 64);
	leave(16, TOP - 32);
	leave(32, TOP);
	finish(0);
	CHECK_TREE(4);
	CHECK_NODE("a", 1, 33);
	CHECK_NODE("ab", 1, 2);
	CHECK_NODE("abc", 1, 20);
	CHECK_NODE("abcd", 1, 8);
	CHECK_EQ(node_at("ab")->max, 2);
	CHECK_EQ(node_at("abc")->max, 20);
	world_close();
}

static void round_jumps(void)
{
	world_open();
	enter(0, 'a', TOP);
	enter(1, 'b', TOP - 32);
	for (int i = 0; i < 100; i++) { /* b and c jump to each other, c to itself */
		enter(1, 'c', TOP - 32);
		enter(2, 'c', TOP - 32);
		enter(3, 'b', TOP - 32);
	}
	leave(10, TOP - 32);
	leave(1, TOP);
	finish(0);
	CHECK_TREE(3);
	CHECK_NODE("ab", 101, 110);
	CHECK_NODE("abc", 100, 500);
	world_close();
}

static void longjmps(void)
{
	world_open();
	enter(0, 'a', TOP);
	enter(1, 'b', TOP - 32);
	enter(2, 'c', TOP - 64);
	enter(3, 'd', TOP - 96);
	land(4, TOP - 48); /* into b, whose frame reaches below its return address */
	enter(5, 'e', TOP - 64);
	leave(6, TOP - 64);
	leave(7, TOP - 32);
	leave(8, TOP);
	finish(0);
	CHECK_TREE(5);
	CHECK_NODE("a", 1, 9);
	CHECK_NODE("ab", 1, 14);
	CHECK_NODE("abc", 1, 3);
	CHECK_NODE("abcd", 1, 4);
	CHECK_NODE("abe", 1, 6);
	world_close();
}

/* setjmp's arguments are on the stack still: b was called without any, from above where it lands. */
static void longjmps_among_arguments(void)
{
	const struct translate_block row = {.flags = COUNTS_BLOCK_I386};

	world_open();
	counts_blocks(world, 0, &row, 1);
	enter(1, 'a', TOP);
	enter(2, 'b', TOP - 36);
	enter(3, 'c', TOP - 64);
	land(4, TOP - 48);
	enter(5, 'b', TOP - 36);
	leave(6, TOP - 36);
	leave(7, TOP);
	finish(0);
	CHECK_TREE(3);
	CHECK_NODE("a", 1, 2 + 5 + 7);
	CHECK_NODE("ab", 2, 3 + 6);
	CHECK_NODE("abc", 1, 4);
	world_close();
}

/* A return takes whatever is open below it; so does a call, if nobody has said before that frames are gone. */
static void longjmps_seen_late(void)
{
	world_open();
	enter(0, 'a', TOP);
	enter(1, 'b', TOP - 32);
	enter(2, 'c', TOP - 64);
	leave(3, TOP - 32);
	enter(4, 'd', TOP - 32);
	enter(5, 'e', TOP - 64);
	enter(6, 'f', TOP - 32 + 8); /* d and e are gone */
	leave(7, TOP - 32 + 8);
	leave(8, TOP);
	finish(0);
	CHECK_TREE(6);
	CHECK_NODE("a", 1, 13);
	CHECK_NODE("abc", 1, 3);
	CHECK_NODE("ad", 1, 5);
	CHECK_NODE("ade", 1, 6);
	CHECK_NODE("af", 1, 7);
	world_close();
}

static void jumps_into_the_midst(void)
{
	struct translate_block midst[] = {{.pc = CODE + BLOCK_BYTES + 12, .bytes = 6, .n_insns = 2},
		{.pc = CODE + 3 * BLOCK_BYTES + 12, .bytes = 6, .n_insns = 2}};
	struct translate_function functions[] = {
		{CODE, 40, 0}, {CODE + BLOCK_BYTES, 40, 0}, {CODE + 3 * BLOCK_BYTES, 40, 0}};

	world_open();
	counts_functions(world, functions, 3);
	counts_blocks(world, N_LETTERS, midst, 2);
	enter(0, 'a', TOP);
	event(1, TRANSLATE_EVENT_ENTER, TOP - 32, N_LETTERS); /* into b, which nobody has called */
	event(2, TRANSLATE_EVENT_ENTER, TOP - 64, N_LETTERS); /* "call next" in b: nothing */
	leave(4, TOP - 32);
	enter(8, 'c', TOP - 32);
	event(16, TRANSLATE_EVENT_ENTER, TOP - 32, N_LETTERS); /* c jumps there */
	leave(32, TOP - 32);
	enter(0, 'd', TOP - 32);
	event(1, TRANSLATE_EVENT_ENTER, TOP - 64, N_LETTERS); /* out of d */
	event(2, TRANSLATE_EVENT_ENTER, TOP - 64, N_LETTERS + 1); /* and back */
	event(4, TRANSLATE_EVENT_ENTER, TOP - 64, N_LETTERS);
	event(8, TRANSLATE_EVENT_ENTER, TOP - 56, N_LETTERS + 1);
	leave(16, TOP - 32);
	leave(64, TOP);
	finish(0);
	CHECK_TREE(6);
	CHECK_NODE("ad", 1, 1 + 4 + 16);
	CHECK_NODE("adb", 0, 10);
	CHECK_NODE("a", 1, 1 + 8 + 64);
	CHECK_NODE("ab", 0, 6);
	CHECK_NODE("ac", 1, 16);
	CHECK_NODE("acb", 0, 32);
	CHECK(node_at("ab")->min > node_at("ab")->max);
	world_close();
}

/* --- signals ----------------------------------------------------------------------------------- */

static void handlers(void)
{
	world_open();
	enter(0, 'a', TOP);
	enter(1, 'b', TOP - 32);
	signal_at(2, TOP - 64);
	enter(0, 'h', TOP - 1024);
	enter(3, 'i', TOP - 1056);
	leave(4, TOP - 1056);
	leave(5, TOP - 1024);
	sigreturn_to(1, TOP - 64); /* the code that makes the call is nobody's */
	enter(6, 'c', TOP - 96);
	leave(7, TOP - 96);
	leave(8, TOP - 32);
	leave(9, TOP);
	finish(0);
	CHECK_TREE(5);
	CHECK_NODE("a", 1, 10);
	CHECK_NODE("ab", 1, 2 + 1 + 6 + 8);
	CHECK_NODE("abh", 1, 8);
	CHECK_NODE("abhi", 1, 4);
	CHECK_NODE("abc", 1, 7);
	CHECK_EQ(node_at("ab")->max, 17);
	CHECK_EQ(node_at("ab")->min, 17);
	world_close();
}

/* The handler's stack is above what it interrupted, in the same memory as far as anybody knows. */
static void handlers_above(void)
{
	world_open();
	enter(0, 'a', TOP);
	enter(1, 'b', TOP - 65536);
	signal_at(2, TOP - 65600);
	enter(0, 'h', TOP - 1024);
	enter(3, 'i', TOP - 1056);
	leave(4, TOP - 1056);
	leave(5, TOP - 1024);
	sigreturn_to(1, TOP - 65600);
	leave(8, TOP - 65536);
	leave(9, TOP);
	finish(0);
	CHECK_TREE(4);
	CHECK_NODE("a", 1, 10);
	CHECK_NODE("ab", 1, 11);
	CHECK_NODE("abh", 1, 8);
	CHECK_NODE("abhi", 1, 4);
	world_close();
}

#define ELSEWHERE 0x7f0000010000u

static void handlers_on_stacks_of_their_own(void)
{
	world_open();
	enter(0, 'a', TOP);
	for (int i = 0; i < 2; i++) {
		enter(1, 'b', TOP - 32);
		signal_at(2, TOP - 64);
		enter(0, 'h', ELSEWHERE);
		signal_at(3, ELSEWHERE - 64); /* another one, while it runs */
		enter(0, 'i', ELSEWHERE - 512);
		leave(4, ELSEWHERE - 512);
		sigreturn_to(0, ELSEWHERE - 64);
		leave(5, ELSEWHERE);
		sigreturn_to(1, TOP - 64);
		leave(8, TOP - 32);
	}
	leave(9, TOP);
	finish(0);
	CHECK_TREE(4);
	CHECK_NODE("a", 1, 11);
	CHECK_NODE("ab", 2, 22);
	CHECK_NODE("abh", 2, 16);
	CHECK_NODE("abhi", 2, 8);
	world_close();
}

static void handlers_left_by_longjmp(void)
{
	world_open();
	enter(0, 'a', TOP);
	enter(1, 'b', TOP - 32);
	signal_at(2, TOP - 64);
	enter(0, 'h', TOP - 1024);
	land(3, TOP - 16); /* into a */
	enter(4, 'c', TOP - 32);
	signal_at(5, TOP - 64);
	enter(0, 'h', ELSEWHERE);
	land(6, TOP - 16);
	enter(7, 'd', TOP - 32);
	signal_at(8, TOP - 64); /* the same stack, where the last one has left its frames */
	enter(0, 'h', ELSEWHERE);
	leave(9, ELSEWHERE);
	sigreturn_to(0, TOP - 64);
	leave(10, TOP - 32);
	leave(11, TOP);
	finish(0);
	CHECK_TREE(7);
	CHECK_NODE("a", 1, 1 + 4 + 7 + 11);
	CHECK_NODE("ab", 1, 2);
	CHECK_NODE("abh", 1, 3);
	CHECK_NODE("ac", 1, 5);
	CHECK_NODE("ach", 1, 6);
	CHECK_NODE("ad", 1, 18);
	CHECK_NODE("adh", 1, 9);
	world_close();
}

/* Two signals at once: the second handler runs first, and goes back to the beginning of the first. */
static void two_signals_at_once(void)
{
	world_open();
	enter(0, 'a', TOP);
	signal_at(2, TOP - 64);
	signal_at(0, TOP - 1024);
	enter(0, 'i', TOP - 2048);
	leave(3, TOP - 2048);
	sigreturn_to(0, TOP - 1024);
	enter(0, 'h', TOP - 1024);
	leave(4, TOP - 1024);
	sigreturn_to(0, TOP - 64);
	leave(5, TOP);
	finish(0);
	CHECK_TREE(3);
	CHECK_NODE("a", 1, 7);
	CHECK_NODE("ai", 1, 3);
	CHECK_NODE("ah", 1, 4);
	world_close();
}

/* --- stacks ------------------------------------------------------------------------------------ */

static void coroutines(void)
{
	world_open();
	enter(0, 'a', TOP);
	for (uint64_t i = 0; i < 3; i++) { /* s switches: it returns on the other stack */
		enter(1, 's', TOP - 32);
		if (i)
			leave(2, ELSEWHERE - 64);
		else
			enter(2, 'c', ELSEWHERE);
		enter(4, 's', ELSEWHERE - 64);
		leave(8, TOP - 32);
	}
	leave(16, TOP);
	finish(0);
	/* What runs in s is s's, on whichever stack it was entered. */
	CHECK_TREE(4);
	CHECK_NODE("a", 1, 3 + 16);
	CHECK_NODE("as", 3, 6);
	CHECK_NODE("c", 1, 12);
	CHECK_NODE("cs", 3, 24);
	world_close();
}

struct known_stacks {
	uint64_t bytes; /* of each, at a multiple of this */
	int n_asked;
};

static bool bounds_by_size(void *ctx, uint64_t sp, uint64_t *low, uint64_t *high)
{
	struct known_stacks *k = ctx;

	k->n_asked++;
	*low = sp - sp % k->bytes;
	*high = *low + k->bytes;
	return true;
}

/* Stacks of 64 KiB behind each other: nothing but their bounds tells them apart. */
static void coroutines_side_by_side(void)
{
	struct known_stacks known = {.bytes = 65536};
	uint64_t first = ELSEWHERE - 16, second = ELSEWHERE + 65536 - 16;

	world_open();
	counts_set_stacks(world, bounds_by_size, &known);
	enter(0, 'a', first);
	enter(1, 's', first - 64);
	enter(0, 'b', second);
	enter(2, 's', second - 64);
	leave(0, first - 64);
	enter(4, 'c', first - 128);
	enter(8, 's', first - 192);
	leave(0, second - 64);
	leave(16, second);
	finish(0);
	CHECK_EQ(known.n_asked, 2);
	CHECK_TREE(6);
	CHECK_NODE("a", 1, 5);
	CHECK_NODE("ac", 1, 8);
	CHECK_NODE("b", 1, 18);
	world_close();
}

/* --- the rest ---------------------------------------------------------------------------------- */

static void faults(void)
{
	uint64_t counters[] = {1, 2};

	world_open();
	enter(0, 'a', TOP);
	enter(10, 'b', TOP - 32);
	event(10, TRANSLATE_EVENT_FAULT, 4, 1); /* six of its ten instructions were executed */
	event(0, TRANSLATE_EVENT_FAULT, 11, 1); /* it has no more than ten */
	event(0, TRANSLATE_EVENT_FAULT, 1, 99);
	world_faults = 4;
	signal_at(0, TOP - 64);
	enter(0, 'h', TOP - 1024);
	leave(5, TOP - 1024);
	sigreturn_to(0, TOP - 64);
	leave(10, TOP - 32);
	counts_thread(world, 1, 100, NULL, world_cost, counters, 2);
	counts_settle(world);
	CHECK_TREE(3);
	CHECK_NODE("a", 1, 10);
	CHECK_NODE("ab", 1, 16);
	CHECK_EQ(node_at("ab")->max, 16);
	CHECK_EQ(world->n_bad_faults, 2);
	CHECK_EQ(world->threads.v[0]->faults.n, 1);
	CHECK_EQ(world->rows.v[1].count, 2);
	world_close();
}

static void folding(void)
{
	const struct counts_node *n;
	uint64_t depth = 0;

	world_open();
	/* Two functions call each other, deeper than there are nodes for. */
	for (; depth < 3 * COUNTS_FOLD_NODES; depth++)
		enter(1, depth % 2 ? 'b' : 'a', TOP - 16 * depth);
	while (depth-- > 0)
		leave(2, TOP - 16 * depth);
	finish(0);
	CHECK_EQ(counts_n_nodes(world, 0), COUNTS_FOLD_NODES);
	CHECK(world->threads.v[0]->is_folded);
	CHECK(!world->threads.v[0]->is_folded_by_any);
	CHECK_EQ(sum_of_nodes(), world_cost);
	n = node_at("abababab");
	CHECK(n && n->calls == 1 && n->cost == 3);
	world_close();
}

static void forks(void)
{
	struct counts *parent;

	world_open();
	enter(0, 'a', TOP);
	enter(1, 'b', TOP - 32);
	enter(2, 'f', TOP - 64);
	parent = world;
	world = counts_new(2);
	counts_fork(world, 9, 200, parent, 1);
	counts_free(parent);
	world_thread = 9;
	world_cost = 0;
	event(0, TRANSLATE_EVENT_CALLED, TOP - 64, 5);
	leave(3, TOP - 64);
	enter(4, 'c', TOP - 64);
	leave(5, TOP - 64);
	leave(6, TOP - 32);
	finish(7);
	CHECK_TREE(4);
	CHECK_NODE("a", 0, 7);
	CHECK_NODE("ab", 0, 10);
	CHECK_NODE("abf", 0, 3);
	CHECK_NODE("abc", 1, 5);
	CHECK(node_at("ab")->min > node_at("ab")->max);
	world_close();
}

static void threads(void)
{
	world_open();
	enter(0, 'a', TOP);
	world_thread = 2;
	enter(5, 'b', TOP - (64u << 20));
	CHECK_EQ(counts_n_threads(world), 2);
	CHECK_EQ(counts_n_nodes(world, 1), 2);
	world_close();
}

/* --- what makes no sense ----------------------------------------------------------------------- */

static void nonsense(void)
{
	static const uint64_t sps[] = {0, 1, 8, TOP, TOP - 8, UINT64_MAX, UINT64_MAX / 2, 1ull << 63,
		(1ull << 63) - 1, ELSEWHERE};
	unsigned n_sps = sizeof(sps) / sizeof(sps[0]), random = 1;
	struct translate_block bad[] = {{.pc = 5}, {.pc = UINT64_MAX, .bytes = 10, .n_insns = 3},
		{.pc = 5, .bytes = 1, .n_insns = 2}, {.pc = 5, .bytes = 100, .n_insns = 2}};

	world_open();
	counts_blocks(world, N_LETTERS, bad, 4);
	counts_blocks(world, UINT32_MAX, bad, 4);
	for (uint32_t i = 0; i < 4; i++)
		counts_code(world, N_LETTERS + i, (const uint8_t *)"abc", 3);
	counts_functions(world, (struct translate_function[]){{9, 9, 9}, {3, 3, 3}}, 2);
	for (int i = 0; i < 200000; i++) {
		random = random * 1103515245 + 12345;
		event(random >> 28, (random >> 8) % 9, sps[(random >> 12) % n_sps] - (random >> 16) % 3 * 8,
			(random >> 20) % 7 ? (random >> 4) % 32 : random);
	}
	finish(0);
	CHECK(world->n_bad_events > 0);
	CHECK(world->n_bad_blocks > 4);
	CHECK(sum_of_nodes() <= world_cost);
	world_close();
}

static void sums_that_go_back(void)
{
	world_open();
	world_cost = 100;
	enter(0, 'a', TOP);
	world_cost = 50;
	leave(0, TOP);
	world_cost = 120;
	finish(0);
	CHECK_EQ(world->n_back_costs, 1);
	CHECK_EQ(sum_of_nodes(), 120);
	CHECK_NODE("a", 1, 0);
	world_close();
}

int main(void)
{
	static const struct test tests[] = {
		{"calls and returns make a tree with own costs", calls},
		{"recursion has a node for each depth", recursion},
		{"a function that was jumped to is a child of the one that jumped", tail_calls},
		{"functions that jump to each other for ever have few nodes", round_jumps},
		{"a landing ends all calls below it", longjmps},
		{"a landing in 32-bit code ends what its function has called, too", longjmps_among_arguments},
		{"a return and a call end what is open below them", longjmps_seen_late},
		{"who jumps into the midst of a function calls nobody", jumps_into_the_midst},
		{"a handler is called by what it interrupted", handlers},
		{"a handler may run above what it interrupted", handlers_above},
		{"a handler may have a stack of its own", handlers_on_stacks_of_their_own},
		{"a handler may be left by longjmp", handlers_left_by_longjmp},
		{"a handler may be interrupted before it begins", two_signals_at_once},
		{"coroutines have frames of their own", coroutines},
		{"stacks side by side are told apart by their bounds", coroutines_side_by_side},
		{"what a fault left out is not counted", faults},
		{"deep recursion is folded into the open calls", folding},
		{"a child of fork begins with its parent's calls", forks},
		{"threads have trees of their own", threads},
		{"nonsense is counted and does no harm", nonsense},
		{"a sum that goes back is not charged", sums_that_go_back},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
