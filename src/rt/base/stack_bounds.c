/* SPDX-License-Identifier: MIT */
/* Bounds of stacks that are known to the kernel, or to glibc. */
#include "stack_bounds.h"

#include <sys/resource.h>

#include "inside.h"

#define MAIN_STACK_BYTES    (1u << 30) /* where no limit is set */
#define CONTROL_BLOCK_BYTES 2560u      /* struct pthread of any glibc has less */
#define BLOCK_ABOVE_BYTES   16384u     /* of a thread's stack, above its control block */
/* A pair of words with a pointer, or a thread id, for the size is no stack; nor is one that begins where
 * nothing can be: a null and a pointer, in programs that are low in memory. */
#define THREAD_STACK_MIN       65536u
#define THREAD_STACK_BYTES_MIN 8192u
#define THREAD_STACK_BYTES_MAX ((uintptr_t)1 << (sizeof(long) == 8 ? 40 : 30))

bool stack_find_signal(uintptr_t sp, struct stack_bounds *b)
{
	struct {
		uintptr_t sp;
		int flags;
		uintptr_t bytes;
	} s = {0};

	if (raw_call(SYS_sigaltstack, 0, &s) < 0 || sp - s.sp >= s.bytes)
		return false;
	*b = (struct stack_bounds){s.sp, s.sp + s.bytes};
	return true;
}

/* It grows down to its limit; nothing else is mapped so far. */
void stack_bounds_of_main(const struct maps_line *line, uintptr_t below, struct stack_bounds *b)
{
	uint64_t limit[2] = {MAIN_STACK_BYTES, 0};

	raw_call(SYS_prlimit64, 0, RLIMIT_STACK, 0, limit);
	if (limit[0] > MAIN_STACK_BYTES)
		limit[0] = MAIN_STACK_BYTES;
	b->high = line->end;
	b->low = line->end > limit[0] ? line->end - (uintptr_t)limit[0] : 0;
	b->low = b->low < below ? below : b->low;
	b->low = b->low < line->start ? b->low : line->start;
}

bool stack_find_main(struct stack_bounds *b)
{
	struct maps_line line = {0};
	struct proc_text t;
	uintptr_t below = 0;
	bool found = false;

	if (!maps_open(&t))
		return false;
	while (!found && maps_next(&t, &line)) {
		found = line.is_main_stack;
		if (!found)
			below = line.end;
	}
	proc_text_close(&t);
	if (found)
		stack_bounds_of_main(&line, below, b);
	return found;
}

/*
 * glibc has the control block at the upper end of the thread's stack, wherever that came from, and in
 * it the start and the size of the whole; where in it differs by version.
 */
bool stack_find_by_control_block(
	uintptr_t block, uintptr_t sp, const struct maps_line *line, struct stack_bounds *b)
{
	const uintptr_t *word = (const uintptr_t *)block;
	uintptr_t low = block, end = block + CONTROL_BLOCK_BYTES;

	end = end < line->end ? end : line->end;
	for (; (uintptr_t)(word + 2) <= end; word++) {
		uintptr_t start = word[0], bytes = word[1];
		bool is_aligned = !((start | bytes) & (PAGE_BYTES - 1));

		if (start < THREAD_STACK_MIN || start > block || block - start >= bytes ||
			bytes > THREAD_STACK_BYTES_MAX || bytes < THREAD_STACK_BYTES_MIN ||
			start + bytes - block > BLOCK_ABOVE_BYTES)
			continue;
		if ((sp - start < block - start || is_aligned) && start < low)
			low = start;
	}
	if (low == block)
		return false;
	*b = (struct stack_bounds){low, block};
	return true;
}
