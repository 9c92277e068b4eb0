/* SPDX-License-Identifier: MIT */
/*
 * Events of one thread on their way into the tree: the stacks of open calls, and the clock that
 * charges the current node. At each event what has passed since the last one is charged to the
 * node that was current, then the event moves. Entering and leaving is in tree_internal.h.
 *
 * A thread has one stack of open calls, and one more for each stack (coroutine) that it has changed
 * to; what is not current rests in `chains`. Each counts what was charged while it was current, so
 * that the cum of a call does not contain what ran on other stacks in the meantime.
 */
#include "calltree/tree_internal.h"

#include <stdlib.h>
#include <string.h>

/* Stacks of a thread; further ones are taken as one. */
#define CHAINS_MAX (1u << 20)
/* The search for the call that a leave without an enter belongs to stops after this many steps:
 * only a forged trace gets there. */
#define SCAN_MAX (1ull << 32)

void calltree_grow_calls(struct calltree_thread *thread)
{
	mem_grow((void **)&thread->calls, &thread->cap_calls, thread->n_calls + 1,
		sizeof(*thread->calls));
}

/* The root is the bottom of every stack. */
static void begin_stack(struct calltree_thread *thread, uint32_t root, uint32_t routine)
{
	thread->calls = NULL;
	thread->n_calls = thread->cap_calls = 0;
	calltree_grow_calls(thread);
	thread->calls[thread->n_calls++] =
		(struct open_call){root, routine, thread->time, thread->charged, thread->cost};
}

struct calltree_thread *calltree_thread_new(struct calltree *t, uint32_t root, uint64_t time)
{
	struct calltree_thread *thread = mem_zalloc(sizeof(*thread));

	thread->tree = t;
	thread->time = time;
	thread->charges_time = thread->is_running = true;
	begin_stack(thread, root, calltree_get(t, root)->routine);
	t->nodes[root].sampled = false;
	t->nodes[root].timed = true;
	t->nodes[root].calls++;
	t->has_events = true;
	return thread;
}

void calltree_thread_free(struct calltree_thread *thread)
{
	if (!thread)
		return;
	for (size_t i = 0; i < thread->chains.n; i++)
		if (i != thread->chain_i)
			free(thread->chains.v[i].calls);
	free(thread->calls);
	vec_release(&thread->chains);
	map_release(&thread->chain_of);
	vec_release(&thread->n_left);
	free(thread);
}

void calltree_enter(struct calltree_thread *thread, uint64_t time, uint32_t routine)
{
	if (!thread->ended)
		thread_enter(thread, time, routine);
}

void calltree_enter_open(struct calltree_thread *thread, uint64_t time, uint32_t routine)
{
	struct calltree_node *node;

	if (thread->ended)
		return;
	thread_enter(thread, time, routine);
	node = &thread->tree->nodes[thread->calls[thread->n_calls - 1].node];
	node->calls--;
	node->base -= thread->per_call;
	thread->charged -= thread->per_call;
}

bool calltree_leave_outer(struct calltree_thread *thread, uint32_t routine)
{
	size_t i = thread->n_calls;

	if (thread->n_scanned > SCAN_MAX)
		i = 1;
	while (i > 1 && thread->calls[i - 1].routine != routine)
		i--;
	if (i <= 1) {
		thread->n_scanned += thread->n_calls;
		thread->unmatched++;
		return false;
	}
	thread->unmatched += thread->n_calls - i;
	while (thread->n_calls >= i)
		thread_pop(thread);
	return true;
}

bool calltree_leave(struct calltree_thread *thread, uint64_t time, uint32_t routine)
{
	return !thread->ended && thread_leave(thread, time, routine);
}

bool calltree_leave_innermost(struct calltree_thread *thread, uint64_t time)
{
	if (thread->ended)
		return false;
	thread_advance(thread, time);
	if (thread->n_calls == 1) {
		thread->unmatched++;
		return false;
	}
	thread_pop(thread);
	return true;
}

static void set_running(struct calltree_thread *thread)
{
	thread->is_running = thread->charges_time && !thread->is_suspended;
}

void calltree_suspend(struct calltree_thread *thread, uint64_t time)
{
	if (thread->ended)
		return;
	thread_advance(thread, time);
	thread->is_suspended = true;
	set_running(thread);
}

void calltree_resume(struct calltree_thread *thread, uint64_t time)
{
	if (thread->ended)
		return;
	thread_advance(thread, time);
	thread->is_suspended = false;
	set_running(thread);
}

void calltree_add_resource(struct calltree_thread *thread, uint64_t amount)
{
	if (!thread->ended)
		thread_charge(thread, amount);
}

void calltree_thread_charge_time(struct calltree_thread *thread, bool charge_time)
{
	thread->charges_time = charge_time;
	set_running(thread);
}

void calltree_thread_charge_calls(struct calltree_thread *thread, uint64_t amount)
{
	thread->per_call = amount;
}

/* ---- stacks ---- */

/* The index of a chain's entry, created when absent. */
static size_t chain_index(struct calltree_thread *thread, uint64_t number)
{
	bool created;
	uint64_t *i;

	if (!thread->chains.n) { /* the stack that the thread began on */
		vec_push(&thread->chains, (struct call_chain){0});
		*map_ensure(&thread->chain_of, 0, NULL) = 0;
	}
	if (thread->chains.n >= CHAINS_MAX && !map_find(&thread->chain_of, number))
		number = UINT64_MAX;
	i = map_ensure(&thread->chain_of, number, &created);
	if (created) {
		*i = thread->chains.n;
		vec_push(&thread->chains, (struct call_chain){0});
	}
	return (size_t)*i;
}

static void make_current(struct calltree_thread *thread, size_t to)
{
	struct open_call root = thread->calls[0];
	struct call_chain *chain = &thread->chains.v[thread->chain_i];

	if (to == thread->chain_i)
		return;
	*chain = (struct call_chain){
		thread->calls, thread->n_calls, thread->cap_calls, thread->charged, thread->cost};
	if (chain->n == 1 && thread->chain_i) { /* thousands of stacks may be idle */
		free(chain->calls);
		chain->calls = NULL;
	}
	chain = &thread->chains.v[to];
	thread->chain_i = to;
	thread->charged = chain->charged;
	thread->cost = chain->cost;
	if (chain->calls) {
		thread->calls = chain->calls;
		thread->n_calls = chain->n;
		thread->cap_calls = chain->cap;
	} else {
		begin_stack(thread, root.node, root.routine);
	}
}

void calltree_change_stack(struct calltree_thread *thread, uint64_t time, uint64_t chain)
{
	if (thread->ended)
		return;
	thread_advance(thread, time);
	make_current(thread, chain_index(thread, chain));
}

/* ---- the end ---- */

/* Ends the calls of the current stack, but not the root. */
static void end_calls(struct calltree_thread *thread)
{
	thread->n_open_at_end += thread->n_calls - 1;
	while (thread->n_calls > 1)
		thread_pop(thread);
}

void calltree_thread_end(struct calltree_thread *thread, uint64_t time)
{
	uint64_t charged = 0, cost = 0;

	if (thread->ended)
		return;
	thread_advance(thread, time);
	end_calls(thread);
	for (size_t i = 0; i < thread->chains.n; i++) {
		if (i != thread->chain_i && !thread->chains.v[i].calls) {
			charged += thread->chains.v[i].charged;
			cost += thread->chains.v[i].cost;
			continue;
		}
		make_current(thread, i);
		end_calls(thread);
		charged += thread->charged;
		cost += thread->cost;
	}
	if (thread->chains.n) { /* the root has what was charged on any stack */
		make_current(thread, 0);
		thread->charged = charged;
		thread->cost = cost;
	}
	thread_pop(thread);
	thread->ended = true;
}

uint64_t calltree_thread_unmatched(const struct calltree_thread *thread)
{
	return thread->unmatched;
}
