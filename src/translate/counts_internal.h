/* SPDX-License-Identifier: MIT */
/*
 * What the files behind counts.h share.
 *
 *	counts.c	the object: blocks, functions, threads and their counters
 *	count_calls.c	events, by the rules
 *	call_nodes.c	the tree: which node a call has
 *	call_stacks.c	which stack an event is on
 */
#ifndef WEIR_TRANSLATE_COUNTS_INTERNAL_H
#define WEIR_TRANSLATE_COUNTS_INTERNAL_H

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "symbols/addrspace.h"
#include "translate/counts.h"

/* Limits: what comes from the program may be anything. */
#define COUNTS_BLOCKS_MAX  (1u << 22)
#define COUNTS_THREADS_MAX (1u << 16)
#define COUNTS_NODES_MAX   (1u << 23) /* of all threads of an object */
#define COUNTS_FRAMES_MAX  (1u << 22) /* of a stack */
#define COUNTS_STACKS_MAX  4096	      /* of a thread */
#define COUNTS_CODE_MAX	   (1u << 30) /* bytes */
#define COUNTS_LOSSES_MAX  256	      /* different sentences */

#define COUNTS_NO_IMAGE UINT32_MAX

struct counts_row {
	uint64_t pc;
	uint64_t bias;	   /* pc - address in the image; 0: no image */
	uint32_t image;	   /* number of struct images; COUNTS_NO_IMAGE */
	uint32_t bytes;
	uint16_t n_insns, flags;
	uint32_t function; /* number, not 0, once it has begun a call; see row_functions */
	size_t code;	   /* place in `code`, plus 1; 0: not kept */
	uint64_t count;	   /* over all threads, by counts_settle() */
};

/* A block that was left before its end. */
struct counts_fault {
	uint32_t block;
	uint32_t n_left; /* of its instructions were not executed */
	uint64_t count;
};

/* What begins calls: a number for each address, image and time. */
struct call_function {
	uint64_t address, bias;
	uint32_t image;
	uint32_t block; /* the first that was seen */
};
/* Of a block, in row_functions: beside the function's number. */
#define ROW_IS_MIDST 0x80000000u

struct call_node {
	uint32_t parent, function;
	/* The child that was entered last, for the next time, and the one before it. */
	uint32_t child_function, child;
	uint32_t second_function, second;
	uint64_t calls, cost, min, max;
	uint64_t unused; /* a cache line: found by a shift */
};
_Static_assert(sizeof(struct call_node) == 64, "a shift");

enum call_frame_kind {
	CALL_FRAME_CALL,
	CALL_FRAME_OPEN,   /* it was jumped into, or its parent process has called it: not a call that ends */
	CALL_FRAME_FIRST,  /* the stack itself */
	CALL_FRAME_SIGNAL, /* a handler came in, on the stack that it interrupted */
	CALL_FRAME_AWAY,   /* the same, and its stack is another one */
};

struct call_frame {
	uint64_t sp; /* at its entry; of a signal that of what was interrupted; UINT64_MAX: FIRST, AWAY */
	uint64_t self; /* cost so far */
	uint32_t node;
	uint32_t kind; /* enum call_frame_kind */
	/* Of AWAY: */
	uint64_t entry; /* the handler's first sp */
	uint64_t back;	/* sp of what was interrupted */
};

struct call_stack {
	uint64_t low, high; /* high is exclusive */
	uint64_t used;	    /* when it was switched to last */
	bool is_guessed;    /* its bounds */
	VEC(struct call_frame) frames; /* [0] is CALL_FRAME_FIRST; of the current stack `n` is not kept */
};

struct call_count {
	uint32_t block;
	uint64_t count;
};

struct call_slot {
	uint64_t key; /* parent << 32 | function; 0: free */
	uint32_t node;
};

struct call_thread {
	uint64_t key;
	pid_t tid;
	char *name; /* NULL: not known */
	struct counts *counts;
	uint64_t last_cost;  /* what is charged already */
	uint64_t final_cost; /* as the thread itself said last */
	bool has_final;

	VEC(struct call_node) nodes; /* [0] is the thread */
	struct call_slot *slots;     /* parent and function -> node */
	size_t n_slots, n_used_slots;
	bool is_folded, is_folded_by_any;

	/* The current stack's, while events are looked at: */
	struct call_frame *top, *limit; /* limit: the last place there is */
	uint64_t low, size;		/* bounds of the stack */
	uint32_t stack;
	uint64_t n_switches;
	VEC(struct call_stack) stacks;
	VEC(uint32_t) by_low; /* stacks in order of their bounds, which do not overlap */
	VEC(uint32_t) free_stacks;

	/* A signal whose handler has done nothing yet. */
	bool has_signal;
	uint64_t signal_sp;

	VEC(struct call_count) counters; /* those that are not 0 */
	VEC(struct counts_fault) faults;
	struct map fault_of; /* block << 32 | n_left -> index + 1 */
};

struct counts_loss {
	char *sentence;
	uint64_t n;
	bool is_loss;
};

struct counts {
	pid_t pid;
	struct addrspace *const *space;
	counts_stack_bounds *bounds;
	void *bounds_ctx;

	VEC(struct counts_row) rows;
	VEC(uint32_t) row_functions; /* by row, for events: number of the function, ROW_IS_MIDST; 0: not known */
	VEC(uint8_t) code;
	VEC(struct translate_function) functions; /* by start, without overlaps of regions */
	struct intern function_keys;		  /* id + 1 = number */
	VEC(struct call_function) by_number;	  /* [0]: not known */
	VEC(struct call_thread *) threads;
	struct map thread_of; /* key -> index in threads */
	struct call_thread *last_thread;
	uint64_t n_nodes;
	VEC(struct counts_loss) losses;

	/* Events that make no sense, calls that found no room. */
	uint64_t n_bad_events, n_bad_blocks, n_back_costs, n_bad_faults;
	uint64_t n_without_frame, n_without_node, n_without_thread;
};

/* counts.c */
struct call_thread *counts_thread_of(struct counts *c, uint64_t key, pid_t tid); /* NULL: too many */
/* Number of the function that the block is of, ROW_IS_MIDST with it; 0: there is no such block. */
uint32_t counts_row_function(struct counts *c, uint32_t block);

/* count_calls.c */
void call_thread_charge(struct call_thread *t, uint64_t cost);

/* call_nodes.c */
void call_nodes_init(struct call_thread *t);
void call_nodes_release(struct call_thread *t);
/* Slower than its use by the child that was entered last. The parent itself when there is no room. */
uint32_t call_nodes_child(struct call_thread *t, uint32_t parent, uint32_t function);

/* call_stacks.c */
void call_stacks_init(struct call_thread *t);
void call_stacks_release(struct call_thread *t);
/* Goes to the stack that has sp, which may be new. */
void call_stacks_switch(struct call_thread *t, uint64_t sp);
/* Goes to a stack with these bounds, in a thread that has none. */
void call_stacks_copy(struct call_thread *t, uint64_t low, uint64_t size);
/* Makes room for one more frame; false: there are too many. */
bool call_stacks_grow(struct call_thread *t);

static inline struct call_stack *call_stack_now(struct call_thread *t)
{
	return &t->stacks.v[t->stack];
}

#endif
