/* SPDX-License-Identifier: MIT */
/*
 * The call tree: a node is a routine under its parent. Built from events (enter, leave), from
 * samples (stacks), or both. Nodes are rows of one array and refer to each other by index, so a
 * tree can be copied, written or walked without chasing pointers.
 *
 *      root "pid_tid"                  parent, first_child, next_sibling,
 *        |-- main                      next_instance (of the same routine)
 *        |     |-- parse               per node: calls, and base, cum, elapsed in the metric
 *        |     `-- eval
 *
 * Invariants, once calltree_finish has run:
 * 1. cum = base + sum of the children's cum.
 * 2. rl = number of instances of the routine on the path from the root, itself included.
 * 3. Siblings are in order of first sight; children of one parent differ in routine (or, with
 *    call sites kept apart, in routine and site).
 */
#ifndef WEIR_CALLTREE_CALLTREE_H
#define WEIR_CALLTREE_CALLTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/defs.h"

#define CALLTREE_NONE 0 /* node 0 and routine 0 are reserved */

/* A routine is a name, the image it lives in, and what kind of code it is. */
struct calltree_routine {
	const char *name;  /* owned by the tree */
	const char *image; /* file name or path; "" when not known */
	enum frame_kind kind;
	bool is_root;		 /* a thread, not a function */
	uint32_t first_instance; /* node; chain through next_instance, in order of creation */
};

struct calltree_node {
	uint32_t routine;
	uint32_t parent, first_child, last_child, next_sibling, next_instance;
	uint32_t level;
	uint32_t rl;
	bool sampled;	      /* no event ever entered it: it is known from samples alone */
	uint64_t calls;	      /* from events */
	uint64_t samples;     /* samples in which it was the innermost frame */
	uint64_t occurrences; /* merged samples that put it below an event */
	uint64_t base, cum;
	uint64_t elapsed;  /* only meaningful for nodes with events */
	uint64_t min, max; /* cum of the cheapest and the dearest call; min > max: no call ended */
};

struct calltree;

struct calltree *calltree_new(void);
void calltree_free(struct calltree *t);

/* Code that is inlined in one place and called in another is one routine: FRAME_KIND_INLINE and
 * FRAME_KIND_NATIVE are not kept apart, and native wins. */
uint32_t calltree_routine(
	struct calltree *t, const char *name, const char *image, enum frame_kind kind);
/* A thread's root; level 0. The same name gives the same root. */
uint32_t calltree_root(struct calltree *t, const char *name);
/* The child of `parent` for the routine, created when absent. O(1) expected. */
uint32_t calltree_child(struct calltree *t, uint32_t parent, uint32_t routine);

/* Samples: each node on the path gains cum (by calltree_finish), the last gains base. */
void calltree_add_sample(struct calltree *t, uint32_t node, uint64_t weight, uint64_t n_samples);

/*
 * Events of one thread. Time is charged to the current node until the next event; while the thread
 * is suspended (switched out, interrupted) base and cum stand still and elapsed does not.
 */
struct calltree_thread;
struct calltree_thread *calltree_thread_new(struct calltree *t, uint32_t root, uint64_t time);
void calltree_thread_free(struct calltree_thread *thread);
void calltree_enter(struct calltree_thread *thread, uint64_t time, uint32_t routine);
/* Leaves the innermost instance of the routine; what is still open above it is left too and
 * counted. False when the routine is not open at all (nothing happens, it is counted). */
bool calltree_leave(struct calltree_thread *thread, uint64_t time, uint32_t routine);
/* Leaves whatever was entered last; false (counted) when nothing is open. */
bool calltree_leave_innermost(struct calltree_thread *thread, uint64_t time);
void calltree_suspend(struct calltree_thread *thread, uint64_t time);
void calltree_resume(struct calltree_thread *thread, uint64_t time);
/* A counted resource instead of time: charged to the current node. */
void calltree_add_resource(struct calltree_thread *thread, uint64_t amount);
/* With `charge_time` false only calltree_add_resource charges base. Default true. */
void calltree_thread_charge_time(struct calltree_thread *thread, bool charge_time);
/*
 * A sample of a thread that has events: `routines` outermost first. Each run of frames that no open
 * event accounts for becomes a chain of sampled nodes below the open event that encloses it; the
 * innermost node gains `n_samples`, and `weight` as base. Each sampled node passed counts an
 * occurrence. Returns the innermost node.
 */
uint32_t calltree_merge_sample(struct calltree_thread *thread, const uint32_t *routines, size_t n,
	uint64_t weight, uint64_t n_samples);
/* Ends everything that is open. */
void calltree_thread_end(struct calltree_thread *thread, uint64_t time);
/* Leaves without enter, and enters that were closed by an outer leave or the end. */
uint64_t calltree_thread_unmatched(const struct calltree_thread *thread);

/* Computes cum, levels, recursion levels. Must be called before the getters below; O(n). */
void calltree_finish(struct calltree *t);

size_t calltree_n_nodes(const struct calltree *t); /* valid ids: 1 .. n-1 */
const struct calltree_node *calltree_get(const struct calltree *t, uint32_t node);
size_t calltree_n_routines(const struct calltree *t); /* valid ids: 1 .. n-1 */
const struct calltree_routine *calltree_get_routine(const struct calltree *t, uint32_t routine);
uint32_t calltree_first_root(const struct calltree *t); /* chain through next_sibling */
/* The node that follows depth first, roots in their order; CALLTREE_NONE behind the last. */
uint32_t calltree_next(const struct calltree *t, uint32_t node);
/* Sum of cum over all roots. */
uint64_t calltree_total(const struct calltree *t);
bool calltree_has_events(const struct calltree *t);
bool calltree_has_samples(const struct calltree *t);

/* The first sampled node of a chain: its parent was entered by an event. */
bool calltree_begins_chain(const struct calltree *t, uint32_t node);

#endif
