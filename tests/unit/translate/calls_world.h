/* SPDX-License-Identifier: MIT */
/*
 * A thread of a translated program, event by event. Functions are letters: block 0 begins a, block 1 b, and so on;
 * each has ten instructions. Times are instructions: begin(5, ...) says that five ran before the event.
 */
#ifndef WEIR_TESTS_CALLS_WORLD_H
#define WEIR_TESTS_CALLS_WORLD_H

#include <string.h>

#include "../check.h"
#include "translate/counts.h"

#define N_LETTERS   26
#define BLOCK_BYTES 64
#define INSNS	    10
#define CODE	    0x400000u
#define TOP	    0x7ffd00001000u /* of the stack */

static struct counts *world;
static uint64_t world_cost, world_faults;
static uint64_t world_thread;

static inline void world_open(void)
{
	struct translate_block rows[N_LETTERS];

	memset(rows, 0, sizeof(rows));
	for (unsigned i = 0; i < N_LETTERS; i++) {
		rows[i].pc = CODE + i * BLOCK_BYTES;
		rows[i].bytes = INSNS * 3;
		rows[i].n_insns = INSNS;
		rows[i].flags = TRANSLATE_BLOCK_ENTRY;
	}
	world = counts_new(1);
	world_cost = world_faults = 0;
	world_thread = 1;
	counts_blocks(world, 0, rows, N_LETTERS);
}

static inline void world_close(void)
{
	counts_free(world);
}

static inline void event(uint64_t ran, enum translate_event_kind kind, uint64_t sp, uint32_t block)
{
	struct translate_event e = {.sp = sp, .block = block, .kind = kind};

	world_cost += ran;
	e.cost = world_cost;
	counts_events(world, world_thread, 100, &e, 1);
}

/* A call of the function whose return address is at sp, after so many instructions. */
static inline void enter(uint64_t ran, char function, uint64_t sp)
{
	event(ran, TRANSLATE_EVENT_ENTER, sp, (uint32_t)(function - 'a'));
}

static inline void leave(uint64_t ran, uint64_t sp)
{
	event(ran, TRANSLATE_EVENT_RETURN, sp, 0);
}

static inline void land(uint64_t ran, uint64_t sp)
{
	event(ran, TRANSLATE_EVENT_LAND, sp, 0);
}

static inline void signal_at(uint64_t ran, uint64_t sp)
{
	event(ran, TRANSLATE_EVENT_SIGNAL, sp, TRANSLATE_NO_BLOCK);
}

static inline void sigreturn_to(uint64_t ran, uint64_t sp)
{
	event(ran, TRANSLATE_EVENT_SIGRETURN, sp, TRANSLATE_NO_BLOCK);
}

/* The thread's end, after so many more instructions. */
static inline void finish(uint64_t ran)
{
	world_cost += ran;
	counts_thread(world, world_thread, 100, "thread", world_cost, NULL, 0);
	counts_settle(world);
}

static inline size_t child_of(size_t parent, char function)
{
	struct counts_node n;

	for (size_t i = 1; i < counts_n_nodes(world, 0); i++) {
		counts_get_node(world, 0, i, &n);
		if (n.parent == parent && n.function == CODE + (uint64_t)(function - 'a') * BLOCK_BYTES)
			return i;
	}
	return SIZE_MAX;
}

/* "abc": c called by b called by a; "" the thread. NULL: there is no such node. */
static inline const struct counts_node *node_at(const char *path)
{
	static struct counts_node n;
	size_t at = 0;

	for (; *path; path++) {
		at = child_of(at, *path);
		if (at == SIZE_MAX)
			return NULL;
	}
	counts_get_node(world, 0, at, &n);
	return &n;
}

static inline uint64_t sum_of_nodes(void)
{
	struct counts_node n;
	uint64_t sum = 0;

	for (size_t i = 0; i < counts_n_nodes(world, 0); i++) {
		counts_get_node(world, 0, i, &n);
		sum += n.cost;
	}
	return sum;
}

#define CHECK_NODE(path, expected_calls, expected_cost)                                            \
	do {                                                                                       \
		const struct counts_node *node_ = node_at(path);                                   \
		CHECK(node_);                                                                      \
		if (node_) {                                                                       \
			CHECK_EQ(node_->calls, expected_calls);                                    \
			CHECK_EQ(node_->cost, expected_cost);                                      \
		}                                                                                  \
	} while (0)

/* So many beside the thread, and nothing got lost. */
#define CHECK_TREE(n_nodes)                                                                        \
	do {                                                                                       \
		CHECK_EQ(counts_n_nodes(world, 0), (n_nodes) + 1);                                 \
		CHECK_EQ(sum_of_nodes(), world_cost - world_faults);                               \
	} while (0)

#endif
