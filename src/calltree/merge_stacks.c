/* SPDX-License-Identifier: MIT */
/*
 * Sampled stacks below events. The frames of a stack and the calls that are open on it are in the
 * same order, so one walk from the outermost in pairs them: a frame whose routine is still to come
 * among the open calls is that call, every other frame is a sampled node below what came before.
 *
 * Which routines are still to come is counted once for a stack (n_left), so that a frame that no
 * call accounts for costs nothing, however deep the stack is.
 */
#include "calltree/tree_internal.h"

static void count_open(struct calltree_thread *thread)
{
	vec_ensure_zero(&thread->n_left, thread->tree->routines.n);
	for (size_t i = 1; i < thread->n_calls; i++)
		thread->n_left.v[thread->calls[i].routine]++;
}

static void uncount_open(struct calltree_thread *thread, size_t from)
{
	for (size_t i = from; i < thread->n_calls; i++)
		thread->n_left.v[thread->calls[i].routine]--;
}

/* Passes the open calls from `from` on up to one of the routine, which must be there. */
static size_t pass_open(struct calltree_thread *thread, size_t from, uint32_t routine)
{
	for (size_t i = from;; i++) {
		uint32_t open = thread->calls[i].routine;

		thread->n_left.v[open]--;
		if (open == routine)
			return i;
	}
}

/* The innermost open call when it is a system call: the kernel's part of the stack is its. */
static size_t find_system_call(const struct calltree_thread *thread, size_t event)
{
	size_t top = thread->n_calls - 1;

	if (top <= event)
		return 0;
	return thread->tree->routines.v[thread->calls[top].routine].kind == FRAME_KIND_KERNEL ? top
											      : 0;
}

static uint32_t merge(struct calltree_thread *thread, const uint32_t *routines, size_t n,
	uint64_t n_occurrences, uint8_t stack_kind)
{
	struct calltree *t = thread->tree;
	size_t event = 0; /* the innermost open call met so far */
	uint32_t id = thread->calls[0].node;
	bool in_kernel = false;

	count_open(thread);
	for (size_t i = 0; i < n; i++) {
		uint32_t routine = routines[i];
		size_t system_call;

		if (!in_kernel && t->routines.v[routine].kind == FRAME_KIND_KERNEL) {
			in_kernel = true;
			system_call = find_system_call(thread, event);
			if (system_call) {
				while (event < system_call)
					thread->n_left.v[thread->calls[++event].routine]--;
				id = thread->calls[event].node;
			}
		}
		if (thread->n_left.v[routine]) {
			event = pass_open(thread, event + 1, routine);
			id = thread->calls[event].node;
		} else {
			struct calltree_node *node;

			id = tree_child(t, id, routine);
			node = &t->nodes[id];
			node->occurrences += n_occurrences;
			node->stack_kinds |= stack_kind;
		}
	}
	uncount_open(thread, event + 1);
	return id;
}

uint32_t calltree_merge_sample(struct calltree_thread *thread, const uint32_t *routines, size_t n,
	uint64_t weight, uint64_t n_samples)
{
	uint32_t node;

	if (thread->ended)
		return CALLTREE_NONE;
	node = merge(thread, routines, n, n_samples, CALLTREE_STACK_SAMPLE);
	calltree_add_sample(thread->tree, node, weight, n_samples);
	return node;
}

uint32_t calltree_merge_stack_event(
	struct calltree_thread *thread, const uint32_t *routines, size_t n)
{
	uint32_t node;

	if (thread->ended)
		return CALLTREE_NONE;
	node = merge(thread, routines, n, 1, CALLTREE_STACK_EVENT);
	if (thread->tree->nodes[node].stack_events < UINT32_MAX)
		thread->tree->nodes[node].stack_events++;
	return node;
}

/* ---- without open calls ---- */

/* The child, as a sampled node of one more stack. */
static uint32_t sampled_child(struct calltree *t, uint32_t parent, uint32_t routine, uint64_t n)
{
	uint32_t id = tree_child(t, parent, routine);

	t->nodes[id].occurrences += n;
	t->nodes[id].stack_kinds |= CALLTREE_STACK_SAMPLE;
	return id;
}

uint32_t calltree_hang_sample(struct calltree *t, uint32_t root, const uint32_t *routines, size_t n,
	uint64_t weight, uint64_t n_samples)
{
	uint32_t id = root;

	for (size_t i = 0; i < n; i++)
		id = sampled_child(t, id, routines[i], n_samples);
	calltree_add_sample(t, id, weight, n_samples);
	return id;
}

/* The child that events entered; 0 when there is none. */
static uint32_t find_entered(const struct calltree *t, uint32_t parent, uint32_t routine)
{
	uint32_t id = calltree_look_up(t, parent, routine);

	return id && !t->nodes[id].sampled ? id : 0;
}

uint32_t calltree_merge_by_shape(struct calltree *t, uint32_t root, const uint32_t *routines,
	size_t n, uint64_t weight, uint64_t n_samples)
{
	uint32_t event = root, id = root;

	for (size_t i = 0; i < n; i++) {
		uint32_t entered = find_entered(t, event, routines[i]);

		if (entered)
			event = id = entered;
		else
			id = sampled_child(t, id, routines[i], n_samples);
	}
	calltree_add_sample(t, id, weight, n_samples);
	return id;
}
