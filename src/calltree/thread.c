/* SPDX-License-Identifier: MIT */
/*
 * Events of one thread on their way into the tree: the stack of open calls, and the clock that
 * charges the current node. At each event what has passed since the last one is charged to the
 * node that was current, then the event moves.
 */
#include "calltree/thread.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct open_call {
	uint32_t node;
	uint32_t routine;
	uint64_t entered; /* time */
	uint64_t charged; /* the thread's `charged` at the entry */
};

struct calltree_thread {
	struct calltree *tree;
	VEC(struct open_call) stack; /* [0] is the root */
	VEC(uint32_t) n_open;	     /* by routine: how many are on the stack */
	uint64_t time;		     /* of the last event */
	uint64_t charged;	     /* all base so far */
	uint64_t unmatched;
	bool is_suspended;
	bool charges_time;
	bool ended;
};

static void push(struct calltree_thread *thread, uint32_t node, uint32_t routine)
{
	struct open_call call = {node, routine, thread->time, thread->charged};
	size_t had = thread->n_open.n;

	if (routine >= had) {
		vec_reserve(&thread->n_open, routine + 1);
		memset(thread->n_open.v + had, 0, (routine + 1 - had) * sizeof(uint32_t));
		thread->n_open.n = routine + 1;
	}
	thread->n_open.v[routine]++;
	vec_push(&thread->stack, call);
	calltree_mark_entered(thread->tree, node);
}

struct calltree_thread *calltree_thread_new(struct calltree *t, uint32_t root, uint64_t time)
{
	struct calltree_thread *thread = mem_zalloc(sizeof(*thread));

	thread->tree = t;
	thread->time = time;
	thread->charges_time = true;
	push(thread, root, calltree_get(t, root)->routine);
	return thread;
}

void calltree_thread_free(struct calltree_thread *thread)
{
	if (!thread)
		return;
	vec_release(&thread->stack);
	vec_release(&thread->n_open);
	free(thread);
}

static void charge(struct calltree_thread *thread, uint64_t amount)
{
	calltree_edit(thread->tree, thread->stack.v[thread->stack.n - 1].node)->base += amount;
	thread->charged += amount;
}

/* Times that go back charge nothing. */
static void advance(struct calltree_thread *thread, uint64_t time)
{
	if (time <= thread->time)
		return;
	if (thread->charges_time && !thread->is_suspended)
		charge(thread, time - thread->time);
	thread->time = time;
}

void calltree_enter(struct calltree_thread *thread, uint64_t time, uint32_t routine)
{
	uint32_t parent;

	if (thread->ended)
		return;
	parent = thread->stack.v[thread->stack.n - 1].node;
	advance(thread, time);
	push(thread, calltree_child(thread->tree, parent, routine), routine);
}

static void pop(struct calltree_thread *thread)
{
	const struct open_call *call = &thread->stack.v[--thread->stack.n];
	struct calltree_node *node = calltree_edit(thread->tree, call->node);
	uint64_t cum = thread->charged - call->charged;

	node->elapsed += thread->time - call->entered;
	if (cum < node->min || node->min > node->max)
		node->min = cum;
	if (cum > node->max)
		node->max = cum;
	thread->n_open.v[call->routine]--;
}

bool calltree_leave(struct calltree_thread *thread, uint64_t time, uint32_t routine)
{
	if (thread->ended)
		return false;
	advance(thread, time);
	if (routine >= thread->n_open.n || !thread->n_open.v[routine] ||
		routine == thread->stack.v[0].routine) {
		thread->unmatched++;
		return false;
	}
	while (thread->stack.v[thread->stack.n - 1].routine != routine) {
		thread->unmatched++;
		pop(thread);
	}
	pop(thread);
	return true;
}

bool calltree_leave_innermost(struct calltree_thread *thread, uint64_t time)
{
	if (thread->ended)
		return false;
	advance(thread, time);
	if (thread->stack.n == 1) {
		thread->unmatched++;
		return false;
	}
	pop(thread);
	return true;
}

void calltree_suspend(struct calltree_thread *thread, uint64_t time)
{
	if (thread->ended)
		return;
	advance(thread, time);
	thread->is_suspended = true;
}

void calltree_resume(struct calltree_thread *thread, uint64_t time)
{
	if (thread->ended)
		return;
	advance(thread, time);
	thread->is_suspended = false;
}

void calltree_add_resource(struct calltree_thread *thread, uint64_t amount)
{
	if (!thread->ended)
		charge(thread, amount);
}

void calltree_thread_charge_time(struct calltree_thread *thread, bool charge_time)
{
	thread->charges_time = charge_time;
}

void calltree_thread_end(struct calltree_thread *thread, uint64_t time)
{
	if (thread->ended)
		return;
	advance(thread, time);
	thread->unmatched += thread->stack.n - 1;
	while (thread->stack.n)
		pop(thread);
	thread->ended = true;
}

uint64_t calltree_thread_unmatched(const struct calltree_thread *thread)
{
	return thread->unmatched;
}

/* The open event that accounts for the frame: the next one on the stack, from `from` on. */
static size_t find_open(const struct calltree_thread *thread, size_t from, uint32_t routine)
{
	for (size_t i = from; i < thread->stack.n; i++)
		if (thread->stack.v[i].routine == routine)
			return i;
	return 0;
}

uint32_t calltree_merge_sample(struct calltree_thread *thread, const uint32_t *routines, size_t n,
	uint64_t weight, uint64_t n_samples)
{
	size_t event = 0; /* position in the stack of the innermost event met so far */
	uint32_t node;

	if (thread->ended)
		return CALLTREE_NONE;
	node = thread->stack.v[0].node;
	for (size_t i = 0; i < n; i++) {
		uint32_t routine = routines[i];
		size_t match = 0;

		if (routine < thread->n_open.n && thread->n_open.v[routine])
			match = find_open(thread, event + 1, routine);
		if (match) {
			event = match;
			node = thread->stack.v[event].node;
		} else {
			node = calltree_child(thread->tree, node, routine);
			calltree_edit(thread->tree, node)->occurrences += n_samples;
		}
	}
	calltree_add_sample(thread->tree, node, weight, n_samples);
	return node;
}
