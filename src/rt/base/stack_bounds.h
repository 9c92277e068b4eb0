/* SPDX-License-Identifier: MIT */
/*
 * Where a stack begins and ends, for the three kinds of stack of which that is known: the kernel
 * knows the signal stack of a thread and the program's first stack, glibc that of a thread it made.
 * What else code may run on, coroutines' stacks, is for the caller to guess.
 */
#ifndef WEIR_RT_BASE_STACK_BOUNDS_H
#define WEIR_RT_BASE_STACK_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "proc_text.h"

#pragma GCC visibility push(hidden)

struct stack_bounds {
	uintptr_t low, high;
};

/* The signal stack of this thread (sigaltstack), if `sp` is on it. */
bool stack_find_signal(uintptr_t sp, struct stack_bounds *b);
/* The program's first stack, of which this is the mapping; what is below it ends at `below`. */
void stack_bounds_of_main(const struct maps_line *line, uintptr_t below, struct stack_bounds *b);
bool stack_find_main(struct stack_bounds *b); /* that stack, wherever this thread is */
/* By a thread's control block, which is in the mapping `line`; `sp` may be on another stack. False:
 * glibc did not make the thread, or it is the first one. */
bool stack_find_by_control_block(
	uintptr_t block, uintptr_t sp, const struct maps_line *line, struct stack_bounds *b);

#pragma GCC visibility pop

#endif
