/* SPDX-License-Identifier: MIT */
/*
 * What translated threads did, as counts of a trace: blocks with their counters, and call trees made of
 * events (rt/translate/translate_abi.h). One object for each program of a process, from its start (or exec,
 * or fork) to its end (or exec); it knows nothing of ptrace. Everything in it came out of another process's
 * memory and is not trusted. translate/count_trace.h makes a trace of it.
 *
 * Rules of the tree, as of weir count's linked programs (docs/format/count.md, "Frames", "Calls that do
 * not come back"), and of callgrind:
 *	ENTER	frames with sp below this one are gone. If the innermost one has this very sp, the function has
 *		jumped here (a tail call): the new frame takes its place, and is a child of the function that jumped.
 *		One that is in this chain of jumps already is gone on in instead, so that chains end. Else it was
 *		called. Node: child of the current node, for the function that the block begins.
 *		A block that stands in the midst of its function (counts_functions) was jumped into: the same, but no
 *		call is counted.
 *		That may be by a return, too: coroutines are begun so.
 *	RETURN	frames with sp up to this one are gone.
 *	LAND	frames with sp below this one are gone (longjmp). In 32-bit code, whose arguments lie on the stack, also
 *		the few above it that the function which it lands in has called.
 *	SIGNAL	the handler runs on top of what was interrupted, wherever its stack is; what is above is out of
 *		reach of the rules until SIGRETURN, or until an event on the interrupted stack says that the handler
 *		was left by longjmp. The handler's own call is the ENTER that comes behind it.
 *	FAULT	`sp` instructions of the block were not executed: taken from the current node and from the block.
 * The cost since the event before is the current node's; node 0, the thread itself, has what ran outside of all
 * functions that were entered.
 *
 * Stacks that are switched to (coroutines, signal stacks) have frames of their own, whose calls hang below the
 * thread, a handler's below what it interrupted. Which stack an sp is on is known from memory (counts_set_stacks).
 * Where it cannot be asked, what is more than 8 MiB away from the frames of the current stack is another one; where it
 * does not know (in the heap, say), what is little below, or between, stack pointers seen so far belongs to them.
 *
 * Recursion may have as many contexts as calls: from COUNTS_FOLD_NODES nodes of a thread on, a recursive call has no
 * new node, but that of the nearest open call of the same function by the same caller; from twice as many on, whoever
 * called it.
 */
#ifndef WEIR_TRANSLATE_COUNTS_H
#define WEIR_TRANSLATE_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rt/translate/translate_abi.h"

struct addrspace;
struct counts;

struct counts *counts_new(pid_t pid);
void counts_free(struct counts *c);

/* What is mapped now, borrowed: blocks that are handed over from here on are in that image and at that address of it.
 * So rows are handed over before a mapping takes the place of another. Without it they are in no image. */
void counts_set_space(struct counts *c, struct addrspace *const *space);
/* Tells where the stack around `sp` begins and ends, as memory is now; false: it is not known, or several stacks may be
 * there. Asked once for each stack. */
typedef bool counts_stack_bounds(void *ctx, uint64_t sp, uint64_t *low, uint64_t *high);
void counts_set_stacks(struct counts *c, counts_stack_bounds *bounds, void *ctx);

/* Rows [first, first + n) of the block table, as they are now; those known already only change their flags. */
void counts_blocks(struct counts *c, uint32_t first, const struct translate_block *rows, size_t n);
#define COUNTS_BLOCK_I386 0x8000u /* of a row's flags, beside the translator's: 32-bit code */
/* The code of a block that may be gone later (generated, changed): kept by number. `n` is the row's bytes. */
void counts_code(struct counts *c, uint32_t block, const uint8_t *bytes, size_t n);
/* Functions of a region, by start: all that were told to the translator. Before blocks of the region. */
void counts_functions(struct counts *c, const struct translate_function *f, size_t n);
/* The one of them that an address is in; NULL: none is known there. Good until others are told. */
const struct translate_function *counts_function_at(const struct counts *c, uint64_t pc);

/* Events of a thread, in their order; `thread` is any number that tells threads of the process apart (its area's
 * address and life), `tid` the kernel's. */
void counts_events(struct counts *c, uint64_t thread, pid_t tid, const struct translate_event *e, size_t n);
/* At its end, or whenever the thread was looked at last: its sums and counters. May be called again with newer ones.
 * `name` NULL: as before. */
void counts_thread(struct counts *c, uint64_t thread, pid_t tid, const char *name, uint64_t cost,
	const uint64_t *counters, size_t n);
/* A child of fork begins as a copy of its parent: its blocks, functions, and what the thread that forked has open. The
 * two numbers are that thread's in `parent` and the child's only one. Before anything else is handed to `c`. */
void counts_fork(struct counts *c, uint64_t thread, pid_t tid, const struct counts *parent, uint64_t by);
/* Something that makes the figures incomplete: told in the trace as a loss (is_loss) or a note. */
void counts_tell(struct counts *c, bool is_loss, uint64_t n, const char *sentence);

/* --- to read, when nothing more is to come ------------------------------------------------------------ */

#define COUNTS_NO_NODE	  UINT32_MAX
#define COUNTS_FOLD_NODES 65536u

struct counts_node {
	uint32_t parent;   /* node 0 is the thread itself; parents come before their children */
	uint32_t block;	   /* that begins the function, or one in it; TRANSLATE_NO_BLOCK: node 0, or not known */
	uint64_t function; /* address of the function's first instruction */
	uint64_t calls;
	uint64_t cost;	   /* self, in instructions */
	uint64_t min, max; /* self cost of the cheapest and dearest call that ended; min > max: none */
};

/* Charges what ran since the last events. */
void counts_settle(struct counts *c);
pid_t counts_pid(const struct counts *c);
size_t counts_n_threads(const struct counts *c); /* in order of their first sight */
size_t counts_n_nodes(const struct counts *c, size_t thread);
void counts_get_node(const struct counts *c, size_t thread, size_t node, struct counts_node *out);

#endif
