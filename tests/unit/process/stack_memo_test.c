/* SPDX-License-Identifier: MIT */
#include "process/stack_memo.h"

#include <stdlib.h>

#include "check.h"

/* A walk's frames are innermost first. */
static void fill(struct unwind_frame *frames, const char *pcs_innermost_first)
{
	for (size_t i = 0; pcs_innermost_first[i]; i++)
		frames[i] = (struct unwind_frame){
			.pc = {(uint64_t)pcs_innermost_first[i]}, .is_caller = i > 0};
}

/* Interns as a session does, with ids 100, 101, ... for new levels; returns how many were new. */
static size_t intern(struct stack_memo *memo, uint64_t generation, uint32_t base, const char *pcs,
	uint32_t *next, uint32_t *stack)
{
	struct unwind_frame frames[16];
	size_t n = strlen(pcs), fresh;

	fill(frames, pcs);
	fresh = n - stack_memo_match(memo, generation, base, frames, n, stack);
	for (size_t i = fresh; i--;) {
		*stack = (*next)++;
		stack_memo_add(memo, &frames[i], *stack);
	}
	return fresh;
}

static void shared_outer_frames_keep_their_ids(void)
{
	struct stack_memo memo = {0};
	uint32_t next = 100, stack;

	CHECK_EQ(intern(&memo, 1, 0, "cba", &next, &stack), 3);
	CHECK_EQ(stack, 102);
	CHECK_EQ(intern(&memo, 1, 0, "cba", &next, &stack), 0);
	CHECK_EQ(stack, 102);
	CHECK_EQ(intern(&memo, 1, 0, "edba", &next, &stack), 2);
	CHECK_EQ(stack, 104);
	CHECK_EQ(intern(&memo, 1, 0, "xa", &next, &stack), 1);
	CHECK_EQ(stack, 105);
	vec_release(&memo.levels);
}

static void the_same_pc_as_leaf_and_as_caller_differs(void)
{
	struct stack_memo memo = {0};
	uint32_t next = 100, stack;

	intern(&memo, 1, 0, "cba", &next, &stack);		 /* c is exact */
	CHECK_EQ(intern(&memo, 1, 0, "dcba", &next, &stack), 2); /* c is a return address */
	vec_release(&memo.levels);
}

static void another_address_space_or_marker_voids_it(void)
{
	struct stack_memo memo = {0};
	uint32_t next = 100, stack;

	intern(&memo, 1, 0, "cba", &next, &stack);
	CHECK_EQ(intern(&memo, 2, 0, "cba", &next, &stack), 3);
	CHECK_EQ(intern(&memo, 2, 7, "cba", &next, &stack), 3);
	CHECK_EQ(intern(&memo, 2, 7, "", &next, &stack), 0);
	CHECK_EQ(stack, 7);
	vec_release(&memo.levels);
}

int main(void)
{
	static const struct test tests[] = {
		{"frames that two stacks share keep their ids", shared_outer_frames_keep_their_ids},
		{"an address as leaf and as caller are two frames",
			the_same_pc_as_leaf_and_as_caller_differs},
		{"another address space or marker makes the memo void",
			another_address_space_or_marker_voids_it},
	};

	return RUN_TESTS(tests);
}
