/* SPDX-License-Identifier: MIT */
#include "process/stack_memo.h"

size_t stack_memo_match(struct stack_memo *memo, uint64_t generation, uint32_t base,
	const struct unwind_frame *frames, size_t n, uint32_t *stack)
{
	size_t same = 0;

	*stack = base;
	if (memo->generation != generation || memo->base != base)
		memo->levels.n = 0;
	memo->generation = generation;
	memo->base = base;
	while (same < n && same < memo->levels.n) {
		const struct stack_memo_level *level = &memo->levels.v[same];
		const struct unwind_frame *frame = &frames[n - 1 - same];

		if (level->pc != frame->pc.v || level->is_caller != frame->is_caller ||
			level->place.kind != frame->place.kind ||
			level->place.code != frame->place.code ||
			level->place.at != frame->place.at)
			break;
		*stack = level->stack;
		same++;
	}
	memo->levels.n = same;
	return same;
}

void stack_memo_add(struct stack_memo *memo, const struct unwind_frame *frame, uint32_t stack)
{
	vec_push(&memo->levels,
		((struct stack_memo_level){frame->pc.v, frame->is_caller, frame->place, stack}));
}
