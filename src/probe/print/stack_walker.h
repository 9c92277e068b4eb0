/* SPDX-License-Identifier: MIT */
/*
 * Walks the copies of stacks that the code of a stream could not walk by itself, and teaches it the
 * rules that it lacked (stream/stack_copy.h). Equal stacks have one id, whoever walked them.
 */
#ifndef WEIR_PROBE_PRINT_STACK_WALKER_H
#define WEIR_PROBE_PRINT_STACK_WALKER_H

#include "probe/print/user_names.h"
#include "probe/run/probe_session.h"
#include "unwind/unwind.h"

struct stack_walker;
/* Borrows `names`, whose changes it listens to from now on. */
struct stack_walker *stack_walker_new(struct user_names *names);
void stack_walker_free(struct stack_walker *w);

/* `n` bytes; rules go to the session, which may be NULL when another process is traced no more. */
void stack_walker_take(struct stack_walker *w, struct probe_session *session,
	const struct stack_copy *copy, size_t n);

/* The id that a walked stack has had in the code, or would have; the same for what is no copy's id,
 * or not known. */
uint64_t stack_walker_id(const struct stack_walker *w, uint64_t id);
/* Addresses of a stack that it has walked, innermost first, at most `max`, and why there are no more;
 * false when it has not. */
bool stack_walker_stack(const struct stack_walker *w, uint64_t id, uint64_t *addresses, size_t max,
	size_t *n, enum unwind_end *end);

#endif
