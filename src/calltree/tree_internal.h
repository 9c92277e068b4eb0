/* SPDX-License-Identifier: MIT */
/*
 * The tree and the events of a thread from inside: calltree.c (nodes, sums), thread.c (stacks of
 * open calls) and build_events.c (the loop over records), which handles a hundred million events in
 * some seconds and therefore has enter and leave inline.
 */
#ifndef WEIR_CALLTREE_TREE_INTERNAL_H
#define WEIR_CALLTREE_TREE_INTERNAL_H

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "calltree/calltree.h"

struct calltree {
	VEC(struct calltree_routine) routines;
	struct calltree_node *nodes; /* [0] is reserved; in a block of memory, at a cache line */
	size_t n_nodes, cap_nodes;
	void *nodes_block;
	VEC(uint64_t) seen;	     /* by node: the tree's time when it was created */
	struct intern keys;	     /* name NUL image NUL class; dense id + 1 = routine */
	uint32_t *children;	     /* hash table of nodes by (parent, routine, site); 0 = empty */
	size_t cap_children;	     /* 0 or a power of two */
	struct buf key;		     /* the key being looked up */
	VEC(uint32_t) last_instance; /* by routine: the end of its chain */
	struct intern sites;	     /* labels of call sites; dense id + 1 = site */
	VEC(uint32_t) site_of;	     /* by node; those behind it have none */
	uint32_t first_root, last_root;
	uint64_t time;	  /* given to new nodes as `seen` */
	bool is_unsorted; /* a node was first seen before the one that was created before it */
	bool has_events, has_samples, has_estimates;
	bool is_by_samples;	     /* events do not measure the metric */
	struct calltree_cost *costs; /* by routine, those behind have none; NULL = none has */
	uint32_t n_costs;
	bool ranges_are_raw; /* min and max came with the calls, and have the costs in them */
	struct calltree_cost_sums cost_sums;
};

struct open_call {
	uint32_t node;
	uint32_t routine;
	uint64_t entered; /* time */
	uint64_t charged; /* the chain's `charged` at the entry */
	uint64_t cost;	  /* the chain's `cost` then */
};

/* One stack of a thread while another is current. */
struct call_chain {
	struct open_call *calls; /* NULL: nothing is open on it */
	size_t n, cap;
	uint64_t charged, cost;
};

struct calltree_thread {
	struct calltree *tree;
	/* the current chain */
	struct open_call *calls; /* [0] is the root */
	size_t n_calls, cap_calls;
	uint64_t charged; /* all base so far, of calls on this chain */
	uint64_t cost;	  /* of their hooks, in parts (CALLTREE_COST_UNIT) */
	uint64_t time;	  /* of the last event */
	uint64_t per_call;
	bool is_running; /* charges_time and not is_suspended */
	bool is_suspended;
	bool charges_time;
	bool ended;
	uint64_t unmatched, n_open_at_end;
	uint64_t n_scanned;	       /* calls looked at in vain for a leave */
	VEC(struct call_chain) chains; /* the others; the current one's entry is stale */
	size_t chain_i;		       /* current; 0 until the first change, with no entry */
	struct map chain_of;	       /* number -> index in chains */
	VEC(uint32_t) n_left;	       /* by routine, while a sample is merged; else all 0 */
};

/* calltree_child behind its short cut; site 0: no particular place. */
uint32_t calltree_find_child(struct calltree *t, uint32_t parent, uint32_t routine, uint32_t site);
/* The child, or 0 when there is none. */
uint32_t calltree_look_up(const struct calltree *t, uint32_t parent, uint32_t routine);
/* Leaves a routine that is not the innermost one. */
bool calltree_leave_outer(struct calltree_thread *thread, uint32_t routine);
void calltree_grow_calls(struct calltree_thread *thread);
/* call_costs.c: once ids are final and before the sums. */
void calltree_take_costs(struct calltree *t);
void calltree_widen_ranges(struct calltree *t); /* after the sums */

/* Programs repeat themselves: what was called after the last call, the last time, is right more
 * often than not. Node 0 has no routine and nothing comes after it. */
static inline uint32_t tree_child(struct calltree *t, uint32_t parent, uint32_t routine)
{
	uint32_t guess = t->nodes[t->nodes[parent].last_used].after;

	if (t->nodes[guess].routine != routine)
		return calltree_find_child(t, parent, routine, 0);
	t->nodes[parent].last_used = guess;
	return guess;
}

static inline struct calltree_node *thread_node(const struct calltree_thread *thread)
{
	return &thread->tree->nodes[thread->calls[thread->n_calls - 1].node];
}

static inline void thread_charge(struct calltree_thread *thread, uint64_t amount)
{
	thread_node(thread)->base += amount;
	thread->charged += amount;
}

/* Times that go back charge nothing. `node` is thread_node's, which callers have at hand. */
static inline void thread_advance_in(
	struct calltree_thread *thread, struct calltree_node *node, uint64_t time)
{
	if (time <= thread->time)
		return;
	if (thread->is_running) {
		node->base += time - thread->time;
		thread->charged += time - thread->time;
	}
	thread->time = time;
}

static inline void thread_advance(struct calltree_thread *thread, uint64_t time)
{
	thread_advance_in(thread, thread_node(thread), time);
}

/* The hook of a call begins before the call, and goes on in it. Returns where the call's part begins.
 */
static inline uint64_t thread_pass_cost(struct calltree_thread *thread, uint32_t routine)
{
	const struct calltree *t = thread->tree;
	uint64_t at = thread->cost;

	if (routine >= t->n_costs)
		return at;
	at += t->costs[routine].outer;
	thread->cost = at + t->costs[routine].inner;
	return at;
}

static inline void thread_enter(struct calltree_thread *thread, uint64_t time, uint32_t routine)
{
	uint32_t parent = thread->calls[thread->n_calls - 1].node, id;
	struct calltree_node *node;

	thread_advance_in(thread, &thread->tree->nodes[parent], time);
	thread->tree->time = time;
	id = tree_child(thread->tree, parent, routine);
	if (__builtin_expect(thread->n_calls == thread->cap_calls, 0))
		calltree_grow_calls(thread);
	thread->calls[thread->n_calls++] = (struct open_call){
		id, routine, thread->time, thread->charged, thread_pass_cost(thread, routine)};
	node = &thread->tree->nodes[id];
	node->sampled = false;
	node->timed = true;
	node->calls++;
	node->base += thread->per_call;
	thread->charged += thread->per_call;
}

/* `node` is thread_node's. */
static inline void thread_pop_from(struct calltree_thread *thread, struct calltree_node *node)
{
	const struct open_call *call = &thread->calls[--thread->n_calls];
	uint64_t cum = thread->charged - call->charged;
	uint64_t cost = (thread->cost - call->cost) / CALLTREE_COST_UNIT;

	cum -= cost < cum ? cost : cum;
	node->elapsed += thread->time - call->entered;
	node->min = cum < node->min ? cum : node->min;
	node->max = cum > node->max ? cum : node->max;
}

static inline void thread_pop(struct calltree_thread *thread)
{
	thread_pop_from(thread, thread_node(thread));
}

static inline bool thread_leave(struct calltree_thread *thread, uint64_t time, uint32_t routine)
{
	struct calltree_node *node = thread_node(thread);

	thread_advance_in(thread, node, time);
	if (__builtin_expect(
		    thread->calls[thread->n_calls - 1].routine != routine || thread->n_calls == 1,
		    0))
		return calltree_leave_outer(thread, routine);
	thread_pop_from(thread, node);
	return true;
}

#endif
