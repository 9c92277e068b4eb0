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
 * Two kinds of figure, never mixed: what events measured is exact; what samples say is an estimate.
 * A node that events entered is exact, its base and cum are by events alone. A node that only
 * samples know is an estimate; its time lies within the base of the event node that encloses it,
 * and is not taken out of it. sampled_base and sampled_cum are what the samples say of any node, so
 * that both can be seen side by side. Where events do not measure the metric
 * (calltree_measure_by_samples), all nodes are estimates.
 *
 * Invariants, once calltree_finish has run:
 * 1. cum = base + sum of the cum of those children that are as exact as the node itself. Below a
 *    node that is an estimate all are estimates.
 * 2. sampled_cum = sampled_base + sum of the children's sampled_cum.
 * 3. rl = number of instances of the routine on the path from the root, itself included.
 * 4. Siblings are in order of first sight; children of one parent differ in routine, or in the
 *    place that they are called from when those are kept apart.
 * 5. Ids are in order of first sight, so children have greater ids than their parents.
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
	bool has_events;	 /* events entered an instance; set by calltree_finish */
	uint32_t first_instance; /* node; chain through next_instance, in order of creation */
};

struct calltree_node {
	/* What every event touches is one cache line. */
	uint32_t routine;
	uint32_t parent;
	uint32_t last_used; /* the child that was looked up last */
	uint32_t after;	    /* the sibling that was looked up after this one, when last it was */
	uint64_t calls;	    /* from events */
	uint64_t base;
	uint64_t elapsed;  /* only meaningful for nodes with events */
	uint64_t min, max; /* cum of the cheapest and the dearest call; min > max: none ended */
	bool sampled;	   /* no event ever entered it: it is known from samples alone */
	bool exact;	   /* base and cum are by events, else estimates by samples */
	bool timed; /* events entered it and say how long, in this metric; so for its parent */
	uint8_t stack_kinds; /* CALLTREE_STACK_*: of the stacks that made it, when sampled */
	uint32_t level;

	uint64_t cum;
	uint64_t sampled_base, sampled_cum; /* the metric by samples */
	uint64_t samples;		    /* samples in which it was the innermost frame */
	uint64_t occurrences;		    /* merged stacks that put it below an event */
	uint32_t stack_events;		    /* stacks at its entry (0x41); stays at its maximum */
	uint32_t rl;
	uint32_t first_child, last_child, next_sibling, next_instance;
};

/* Which records a sampled node is from. */
#define CALLTREE_STACK_SAMPLE 1u /* 0x40 */
#define CALLTREE_STACK_EVENT  2u /* 0x41 */

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

/* The same for the routine when it is called from this place: `site` is its label ("A+0x20"), "" =
 * no particular one. A tree that has nodes with sites is built by this function alone. */
uint32_t calltree_child_at(struct calltree *t, uint32_t parent, uint32_t routine, const char *site);
/* A number that is the same for the same label, 0 for "". */
uint32_t calltree_site(const struct calltree *t, uint32_t node);
const char *calltree_site_label(const struct calltree *t, uint32_t site);

/* Nodes that are created from here on are first seen at this time. */
void calltree_set_time(struct calltree *t, uint64_t time);

/* Samples: each node on the path gains cum (by calltree_finish), the last gains base. */
void calltree_add_sample(struct calltree *t, uint32_t node, uint64_t weight, uint64_t n_samples);
/* The metric is one that samples alone measure: all figures but calls and elapsed are estimates. */
void calltree_measure_by_samples(struct calltree *t);

/*
 * Events of one thread. Time is charged to the current node until the next event; while the thread
 * is suspended (switched out, interrupted) base and cum stand still and elapsed does not.
 */
struct calltree_thread;
struct calltree_thread *calltree_thread_new(struct calltree *t, uint32_t root, uint64_t time);
void calltree_thread_free(struct calltree_thread *thread);
void calltree_enter(struct calltree_thread *thread, uint64_t time, uint32_t routine);
/* The routine was entered elsewhere, before: its time counts from here, but not as another call. */
void calltree_enter_open(struct calltree_thread *thread, uint64_t time, uint32_t routine);
/* Leaves the innermost instance of the routine; what is still open above it is left too and
 * counted. False when the routine is not open at all (nothing happens, it is counted). */
bool calltree_leave(struct calltree_thread *thread, uint64_t time, uint32_t routine);
/* Leaves whatever was entered last; false (counted) when nothing is open. */
bool calltree_leave_innermost(struct calltree_thread *thread, uint64_t time);
void calltree_suspend(struct calltree_thread *thread, uint64_t time);
void calltree_resume(struct calltree_thread *thread, uint64_t time);
/* A counted resource instead of time: charged to the current node. */
void calltree_add_resource(struct calltree_thread *thread, uint64_t amount);
/* With `charge_time` false only calltree_add_resource and calls charge base. Default true. */
void calltree_thread_charge_time(struct calltree_thread *thread, bool charge_time);
/* Each call charges so much to the routine that is entered. Default 0. */
void calltree_thread_charge_calls(struct calltree_thread *thread, uint64_t amount);
/*
 * The thread goes on on another of its stacks (a coroutine): what is open on the one stays open
 * there, what is entered from here on is open on the other. The root is the bottom of every stack.
 * Chain 0 is the one that a thread begins on.
 */
void calltree_change_stack(struct calltree_thread *thread, uint64_t time, uint64_t chain);
/*
 * A sample of a thread that has events: `routines` outermost first. Each run of frames that no open
 * event accounts for becomes a chain of sampled nodes below the open event that encloses it; kernel
 * frames are enclosed by the system call that is open. The innermost node gains `n_samples`, and
 * `weight` as sampled_base. Each sampled node passed counts an occurrence. Returns the innermost
 * node.
 */
uint32_t calltree_merge_sample(struct calltree_thread *thread, const uint32_t *routines, size_t n,
	uint64_t weight, uint64_t n_samples);
/* A stack at the entry of a routine (0x41): merged likewise, but it weighs nothing and is no
 * sample. */
uint32_t calltree_merge_stack_event(
	struct calltree_thread *thread, const uint32_t *routines, size_t n);
/* A sample of a thread that has events, at a time when none was open. */
uint32_t calltree_hang_sample(struct calltree *t, uint32_t root, const uint32_t *routines, size_t n,
	uint64_t weight, uint64_t n_samples);
/* A sample where only the tree of the events is known, not their times: each frame that an event
 * child of the innermost event met so far accounts for is that child. */
uint32_t calltree_merge_by_shape(struct calltree *t, uint32_t root, const uint32_t *routines,
	size_t n, uint64_t weight, uint64_t n_samples);
/* Ends everything that is open, on all stacks. */
void calltree_thread_end(struct calltree_thread *thread, uint64_t time);
/* Leaves without enter, and enters that were closed by an outer leave. */
uint64_t calltree_thread_unmatched(const struct calltree_thread *thread);

/* Calls whose figures are known from elsewhere: counts them at the node. With `timed` false base is
 * not in the metric. min > max: no call ended. */
struct calltree_calls {
	uint64_t calls, base, elapsed, min, max;
};
void calltree_add_calls(
	struct calltree *t, uint32_t node, const struct calltree_calls *calls, bool timed);

/*
 * What measuring a call adds to times, when that is known: `inner` to the routine's own, `outer` to its
 * caller's, in parts of a unit of the metric. calltree_finish takes it out of base, cum, min and max; elapsed is what has passed,
 * and stays. No time becomes negative: what cannot be taken out is counted.
 */
#define CALLTREE_COST_UNIT 1024u /* so many parts are one */
struct calltree_cost {
	uint64_t inner, outer;
};
/* By routine, for those that there are; the tree takes them over. Before the first event. */
void calltree_set_costs(struct calltree *t, struct calltree_cost *costs, uint32_t n);
/* Of the metric. */
struct calltree_cost_sums {
	uint64_t taken, left; /* out of base; where base was less than the cost */
};
struct calltree_cost_sums calltree_cost_sums(const struct calltree *t);

/* Trees that are made out of a finished one: an empty tree, with the metric of `from`; and the figures of
 * one of its nodes, added to a node of this one. */
struct calltree *calltree_new_like(const struct calltree *from);
enum calltree_share {
	CALLTREE_SHARE_NONE,
	CALLTREE_SHARE_KIND,  /* only how it is known, exactly or not */
	CALLTREE_SHARE_SELF,  /* what it used itself: the node called it, and now stands for it */
	CALLTREE_SHARE_INNER, /* a call within a call of the same routine: elapsed is in the outer's */
	CALLTREE_SHARE_ALL
};
void calltree_add_figures(struct calltree *t, uint32_t node, const struct calltree_node *figures,
	enum calltree_share share);

/* Puts nodes in order of first sight (ids change), computes cum, levels, recursion levels. Must be
 * called before the getters below; O(n log n). */
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
/* Some sample has a weight in the metric: else estimates were not made, and are 0. */
bool calltree_has_estimates(const struct calltree *t);

/* The first sampled node of a chain: its parent was entered by an event. */
bool calltree_begins_chain(const struct calltree *t, uint32_t node);

/*
 * By node, weights that add up to the total exactly, for exports in which every unit has one place:
 * sampled chains get their estimates (scaled down where they exceed it) out of the base of the
 * event node that encloses them. free() it.
 */
uint64_t *calltree_split_bases(const struct calltree *t);

#endif
