/* SPDX-License-Identifier: MIT */
/*
 * The last stack of a thread, frame by frame with the ids it was given. Two samples in a row mostly
 * differ in their innermost frames alone; what they share needs no second look-up.
 */
#ifndef WEIR_PROCESS_STACK_MEMO_H
#define WEIR_PROCESS_STACK_MEMO_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "unwind/unwind.h"

struct stack_memo_level {
	uint64_t pc;
	bool is_caller;
	struct unwind_place place; /* one address is many of these in an interpreter */
	uint32_t stack;		   /* id of the stack up to here */
};

/* Zero-initialise it; vec_release its levels. */
struct stack_memo {
	uint64_t generation; /* of the address space; another one makes all of it void */
	uint32_t base;	     /* the stack below the outermost frame: 0, or a marker */
	VEC(struct stack_memo_level) levels; /* outermost first */
};

/* Keeps what it has in common with the new stack (innermost first, as a walk gives it) and returns
 * how many of its outermost frames that are; *stack is the id up to there. */
size_t stack_memo_match(struct stack_memo *memo, uint64_t generation, uint32_t base,
	const struct unwind_frame *frames, size_t n, uint32_t *stack);
/* The next frame inwards got this id. */
void stack_memo_add(struct stack_memo *memo, const struct unwind_frame *frame, uint32_t stack);

#endif
