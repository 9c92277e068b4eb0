/* SPDX-License-Identifier: MIT */
/*
 * From the instructions of a thread to its call tree: a shadow stack that follows calls, returns,
 * tail jumps, longjmp, exceptions and signals by what the addresses say. Every instruction is one
 * unit of the function that it is in, below the calls that are open then.
 *
 * What is a call:
 * 1. A call instruction is one unless execution goes on right behind it ("call next; pop").
 * 2. A return closes the call that it returns from. One that goes elsewhere closes all calls down
 *    to the function that it goes to (an exception's landing pad), or is a jump.
 * 3. A jump to the first instruction of another function is a tail call, as `weir count` has it:
 *    the callee stands below the function that jumped, whose call is over; one that jumped before
 *    in this chain is entered again instead, so that chains end.
 * 4. An indirect jump into the midst of a function that is open further out is a longjmp: all calls
 *    above it are over. Any other jump into the midst of a function goes on there without a call.
 * 5. A signal handler is called by the function that it interrupts.
 */
#ifndef WEIR_STEPS_CALLS_STEP_CALLS_H
#define WEIR_STEPS_CALLS_STEP_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/mem.h"
#include "steps/read/steps.h"

/* What the shadow stack has to know of an instruction. */
struct step_call_insn {
	uint64_t addr;	   /* where the process had it */
	uint32_t function; /* parts are their owners */
	uint32_t target; /* number of the instruction that a direct call or jump goes to; 0: none */
	uint8_t length;
	uint8_t flow;	  /* enum x86_flow */
	bool is_start;	  /* the first instruction of a function */
	bool is_transfer; /* what follows it has to be looked at: calls and returns */
};

struct step_node {
	uint32_t parent; /* its number; 0: the thread */
	uint32_t function;
	uint64_t calls;
	uint64_t base;	   /* instructions */
	uint64_t min, max; /* of the calls that ended; min > max: none did */
	/* The child that was entered last, for the next time. */
	uint32_t child_function, child;
};

struct step_frame {
	uint64_t ret; /* where it returns to; 0: not known */
	uint64_t self;
	uint32_t node, function;
	uint32_t serial;
	bool is_signal; /* the kernel called it; rt_sigreturn ends it */
};

/* A place that a longjmp may come to, in a frame that is open as long as its serial is there. */
struct step_landing {
	uint64_t addr;
	uint32_t depth, serial;
};

/* What a forked process begins with: the open calls of its parent. */
struct step_fork {
	uint32_t first_frame, n_frames; /* in fork_frames; `node` is the place in the path */
	uint32_t first_path, n_path;	/* in fork_paths: functions from the thread inwards */
};

struct step_calls {
	const struct step_call_insn *insns;
	const bool *is_setjmp; /* by function */
	uint64_t *executed;    /* by instruction: how often, over all threads */
	/* Whether an exception lands at an instruction when it leaves the call that returns to
	 * `ret`: 1, 0, or -1 when that is not known. May be NULL. */
	int (*lands)(void *ctx, uint32_t insn, uint64_t ret);
	void *lands_ctx;

	/* Of the thread. */
	VEC(struct step_node) nodes; /* [0] is the thread */
	VEC(struct step_frame) frames;
	struct map children; /* parent, function -> node */
	uint64_t n_steps;
	uint32_t serial;

	/* Where it is. */
	uint32_t function; /* of the last step; STEP_NO_FUNCTION: none */
	uint32_t last;	   /* instruction of the last step; 0: none */
	bool is_pending;   /* the next step has to be looked at */
	bool has_gap;	   /* steps are missing in front of the next one */
	enum step_why why;
	uint32_t n_signals; /* to be handled from the next step on */
	uint32_t n_handlers_due;
	bool is_sigreturn;

	uint32_t *open; /* by function: its open frames */
	VEC(struct step_landing) landings;
	uint64_t search_left; /* frames that may be looked at in vain */

	/* Of all threads. */
	VEC(struct step_fork) forks;
	struct map fork_of; /* pid, tid -> index + 1; 0: it has begun */
	VEC(struct step_frame) fork_frames;
	VEC(uint32_t) fork_paths;
	uint64_t n_without_frame, n_without_node, n_without_fork;
};
#define STEP_NO_FUNCTION UINT32_MAX

/* Zero-initialised but for what stands before the thread, which is borrowed. */
void step_calls_init(struct step_calls *c, uint32_t n_functions);
void step_calls_release(struct step_calls *c);
/* A new thread: its tree is empty but for the calls that a fork left it. */
void step_calls_begin(struct step_calls *c, uint32_t pid, uint32_t tid);
void step_calls_steps(struct step_calls *c, const struct step *steps, uint32_t n);
void step_calls_mark(struct step_calls *c, const struct step_mark *mark);

#endif
