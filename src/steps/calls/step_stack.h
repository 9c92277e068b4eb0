/* SPDX-License-Identifier: MIT */
/* The open calls of a thread and the nodes that they are counted in. Inside of step_calls.c, which
 * has the rules when to do what; there is no other user. */
#ifndef WEIR_STEPS_CALLS_STEP_STACK_H
#define WEIR_STEPS_CALLS_STEP_STACK_H

#include "steps/calls/step_calls.h"

/* NULL when no call is open. */
static inline struct step_frame *step_stack_top(struct step_calls *c)
{
	return c->frames.n ? &c->frames.v[c->frames.n - 1] : NULL;
}

/* `ret` 0: where it returns to is not known. */
void step_stack_push(
	struct step_calls *c, uint64_t ret, uint32_t function, bool is_call, bool is_signal);
void step_stack_pop(struct step_calls *c);
void step_stack_unwind(struct step_calls *c, size_t n_left);
/* All frames are dropped; nobody saw their calls end. */
void step_stack_forget(struct step_calls *c);
/* The top frame's function goes on in another one. */
void step_stack_replace(struct step_calls *c, uint32_t function, bool is_call);

/* Number of frames up to and with the topmost one of a function that is open. */
size_t step_stack_find_open(const struct step_calls *c, uint32_t function);
/* Number of frames below the topmost one that returns there, into this function; 0: none does, or
 * the search took too long. */
size_t step_stack_find_return(struct step_calls *c, uint64_t addr, uint32_t function);

/* The open calls now are those that this process begins with. */
void step_stack_keep_fork(struct step_calls *c, uint32_t pid, uint32_t tid);
/* Opens them in a thread that has none; true when there are any. They are no calls of its own. */
bool step_stack_begin_forked(struct step_calls *c, uint32_t pid, uint32_t tid);

#endif
