/* SPDX-License-Identifier: MIT */
/*
 * 1. frames[i].node is frames[i - 1].node's child, or below it by a chain of tail jumps.
 * 2. open[f] is the number of frames of function f; so a search for one ends with it.
 */
#include "steps/calls/step_stack.h"

/* Limits: a trace may be damaged or made up. */
#define FRAMES_MAX	(1u << 20)
#define NODES_MAX	(1u << 24)
#define FORK_FRAMES_MAX (1u << 20)
#define TAIL_STEPS	64 /* back along a chain of tail jumps, for one that comes round */

/* ---- nodes ---- */

static uint32_t child_of(struct step_calls *c, uint32_t parent, uint32_t function)
{
	struct step_node *p = &c->nodes.v[parent];
	struct step_node node = {.parent = parent, .function = function, .min = 1};
	bool created;
	uint64_t *at;

	if (p->child && p->child_function == function)
		return p->child;
	if (c->nodes.n >= NODES_MAX) {
		at = map_find(&c->children, (uint64_t)parent << 32 | function);
		if (!at) { /* it is counted in its caller */
			c->n_without_node++;
			return parent;
		}
	} else {
		at = map_ensure(&c->children, (uint64_t)parent << 32 | function, &created);
		if (created) {
			*at = c->nodes.n;
			vec_push(&c->nodes, node);
		}
	}
	p = &c->nodes.v[parent];
	p->child_function = function;
	p->child = (uint32_t)*at;
	return p->child;
}

/* ---- frames ---- */

static void ended(struct step_calls *c, const struct step_frame *f)
{
	struct step_node *node = &c->nodes.v[f->node];

	if (node->min > node->max) {
		node->min = node->max = f->self;
		return;
	}
	if (f->self < node->min)
		node->min = f->self;
	if (f->self > node->max)
		node->max = f->self;
}

void step_stack_pop(struct step_calls *c)
{
	const struct step_frame *f = step_stack_top(c);

	ended(c, f);
	c->open[f->function]--;
	c->frames.n--;
}

void step_stack_unwind(struct step_calls *c, size_t n_left)
{
	while (c->frames.n > n_left)
		step_stack_pop(c);
}

void step_stack_forget(struct step_calls *c)
{
	while (c->frames.n)
		c->open[c->frames.v[--c->frames.n].function]--;
}

void step_stack_push(
	struct step_calls *c, uint64_t ret, uint32_t function, bool is_call, bool is_signal)
{
	uint32_t parent = c->frames.n ? step_stack_top(c)->node : 0;
	struct step_frame f = {
		.ret = ret, .function = function, .serial = c->serial++, .is_signal = is_signal};

	if (c->frames.n >= FRAMES_MAX) {
		c->n_without_frame++;
		return;
	}
	f.node = child_of(c, parent, function);
	c->nodes.v[f.node].calls += is_call;
	c->open[function]++;
	vec_push(&c->frames, f);
}

void step_stack_replace(struct step_calls *c, uint32_t function, bool is_call)
{
	struct step_frame *f = step_stack_top(c);
	uint32_t below = c->frames.n > 1 ? f[-1].node : 0, node = f->node;

	for (int i = 0; i < TAIL_STEPS && node != below && node; i++) {
		if (c->nodes.v[node].function == function)
			break;
		node = c->nodes.v[node].parent;
	}
	if (node == below || !node || c->nodes.v[node].function != function)
		node = child_of(c, f->node, function);
	ended(c, f);
	c->open[f->function]--;
	c->open[function]++;
	c->nodes.v[node].calls += is_call;
	f->function = function;
	f->node = node;
	f->self = 0;
	f->serial = c->serial++;
}

size_t step_stack_find_open(const struct step_calls *c, uint32_t function)
{
	size_t n = c->frames.n;

	while (c->frames.v[n - 1].function != function)
		n--;
	return n;
}

size_t step_stack_find_return(struct step_calls *c, uint64_t addr, uint32_t function)
{
	if (!c->open[function])
		return 0;
	for (size_t n = c->frames.n; n > 1; n--) {
		if (c->frames.v[n - 1].ret == addr && c->frames.v[n - 2].function == function)
			return n - 1;
		if (!c->search_left)
			return 0;
		c->search_left--;
	}
	return 0;
}

/* ---- forks ---- */

void step_stack_keep_fork(struct step_calls *c, uint32_t pid, uint32_t tid)
{
	struct step_fork fork = {.first_frame = (uint32_t)c->fork_frames.n,
		.n_frames = (uint32_t)c->frames.n,
		.first_path = (uint32_t)c->fork_paths.n};
	size_t frame = c->frames.n;

	if (!frame)
		return;
	for (uint32_t node = step_stack_top(c)->node; node && c->search_left;
		node = c->nodes.v[node].parent) {
		fork.n_path++;
		c->search_left--;
	}
	if (!c->search_left || c->fork_frames.n + fork.n_frames > FORK_FRAMES_MAX ||
		c->fork_paths.n + fork.n_path > FORK_FRAMES_MAX) {
		c->n_without_fork++;
		return;
	}
	for (size_t i = 0; i < frame; i++)
		vec_push(&c->fork_frames, c->frames.v[i]);
	for (uint32_t i = 0; i < fork.n_path; i++)
		vec_push(&c->fork_paths, 0);
	for (uint32_t node = step_stack_top(c)->node, at = fork.n_path; node;
		node = c->nodes.v[node].parent) {
		c->fork_paths.v[fork.first_path + --at] = c->nodes.v[node].function;
		for (; frame && c->frames.v[frame - 1].node == node; frame--)
			c->fork_frames.v[fork.first_frame + frame - 1].node = at;
	}
	if (frame) { /* there were no nodes left for them */
		c->fork_frames.n = fork.first_frame;
		c->fork_paths.n = fork.first_path;
		c->n_without_fork++;
		return;
	}
	*map_ensure(&c->fork_of, (uint64_t)pid << 32 | tid, NULL) = c->forks.n + 1;
	vec_push(&c->forks, fork);
}

bool step_stack_begin_forked(struct step_calls *c, uint32_t pid, uint32_t tid)
{
	uint64_t *at = map_find(&c->fork_of, (uint64_t)pid << 32 | tid);
	const struct step_fork *fork;
	uint32_t node = 0, n_frames = 0;

	if (!at || !*at)
		return false;
	fork = &c->forks.v[*at - 1];
	*at = 0; /* a tid may be used again */
	for (uint32_t i = 0; i < fork->n_path; i++) {
		node = child_of(c, node, c->fork_paths.v[fork->first_path + i]);
		while (n_frames < fork->n_frames &&
			c->fork_frames.v[fork->first_frame + n_frames].node == i) {
			struct step_frame f = c->fork_frames.v[fork->first_frame + n_frames++];

			f.node = node;
			f.self = 0;
			f.serial = c->serial++;
			c->open[f.function]++;
			vec_push(&c->frames, f);
		}
	}
	return true;
}
