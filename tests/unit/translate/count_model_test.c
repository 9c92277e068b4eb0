/* SPDX-License-Identifier: MIT */
/*
 * The rules of counts.h for calls, returns, jumps to functions and landings on one stack, once more and as plainly as
 * they are said there: trees of random events are the same, node by node.
 */
#include <stdlib.h>

#include "calls_world.h"

#define N_FUNCTIONS 6
#define N_NODES	    4096
#define N_FRAMES    64
#define N_EVENTS    20000
#define N_ROUNDS    20
#define SLOT	    16u /* bytes of the stack */

struct model_node {
	unsigned parent, function;
	uint64_t calls, cost, min, max;
};

static struct {
	struct model_node nodes[N_NODES];
	unsigned n_nodes;
	struct {
		uint64_t sp, self;
		unsigned node;
	} frames[N_FRAMES]; /* [0] is the thread's */
	unsigned top;
} model;

static void model_open(void)
{
	model.n_nodes = 1;
	model.nodes[0] = (struct model_node){.function = N_FUNCTIONS, .min = UINT64_MAX};
	model.top = 0;
	model.frames[0].sp = UINT64_MAX;
	model.frames[0].self = model.frames[0].node = 0;
}

static unsigned model_child(unsigned parent, unsigned function)
{
	for (unsigned i = 1; i < model.n_nodes; i++)
		if (model.nodes[i].parent == parent && model.nodes[i].function == function)
			return i;
	model.nodes[model.n_nodes] =
		(struct model_node){.parent = parent, .function = function, .min = UINT64_MAX};
	return model.n_nodes++;
}

static void model_ran(uint64_t cost)
{
	model.frames[model.top].self += cost;
	model.nodes[model.frames[model.top].node].cost += cost;
}

static void model_end(void)
{
	struct model_node *n = &model.nodes[model.frames[model.top].node];
	uint64_t self = model.frames[model.top].self;

	n->min = self < n->min ? self : n->min;
	n->max = self > n->max ? self : n->max;
}

/* Frames with an sp below this one are gone. */
static void model_drop(uint64_t sp)
{
	for (; model.frames[model.top].sp < sp; model.top--)
		model_end();
}

static unsigned model_jump(unsigned function)
{
	unsigned below = model.frames[model.top - 1].node, n = model.frames[model.top].node;

	for (; n && n != below; n = model.nodes[n].parent)
		if (model.nodes[n].function == function)
			return n;
	return model_child(model.frames[model.top].node, function);
}

static void model_enter(unsigned function, uint64_t sp)
{
	unsigned node;

	model_drop(sp);
	if (model.frames[model.top].sp != sp) {
		node = model_child(model.frames[model.top].node, function);
		model.frames[++model.top].sp = sp;
	} else if (model.nodes[model.frames[model.top].node].function == function) {
		return;
	} else {
		node = model_jump(function);
		model_end();
	}
	model.frames[model.top].node = node;
	model.frames[model.top].self = 0;
	model.nodes[node].calls++;
}

/* Mostly as programs do it, at times anywhere. */
static void random_event(void)
{
	uint64_t ran = (uint64_t)rand() % 50, top = model.top ? model.frames[model.top].sp : TOP;
	unsigned how = (unsigned)rand() % 100, function = (unsigned)rand() % N_FUNCTIONS;
	uint64_t anywhere = TOP - SLOT * ((unsigned)rand() % 12);

	model_ran(ran);
	if (how < 45 && model.top < 8) {
		model_enter(function, top - SLOT);
		enter(ran, (char)('a' + function), top - SLOT);
	} else if (how < 55 && model.top) {
		model_enter(function, top);
		enter(ran, (char)('a' + function), top);
	} else if (how < 92) {
		model_drop(top + 1);
		leave(ran, top);
	} else if (how < 94) {
		model_enter(function, anywhere);
		enter(ran, (char)('a' + function), anywhere);
	} else if (how < 97) {
		model_drop(anywhere + 1);
		leave(ran, anywhere);
	} else {
		model_drop(anywhere);
		land(ran, anywhere);
	}
}

/* Both trees have as many nodes; this one is at `at` of the other. */
static unsigned compare(unsigned node, size_t at)
{
	const struct model_node *m = &model.nodes[node];
	unsigned n_wrong = 0;
	struct counts_node n;

	if (at == SIZE_MAX)
		return 1;
	counts_get_node(world, 0, at, &n);
	if (n.calls != m->calls || n.cost != m->cost || n.min != m->min || n.max != m->max)
		n_wrong++;
	for (unsigned i = 1; i < model.n_nodes; i++)
		if (model.nodes[i].parent == node)
			n_wrong += compare(i, child_of(at, (char)('a' + model.nodes[i].function)));
	return n_wrong;
}

static void random_events(void)
{
	for (unsigned round = 1; round <= N_ROUNDS; round++) {
		srand(round);
		world_open();
		model_open();
		for (unsigned i = 0; i < N_EVENTS && model.n_nodes < N_NODES - 1; i++)
			random_event();
		finish(0);
		CHECK(model.n_nodes > 100);
		CHECK_EQ(counts_n_nodes(world, 0), model.n_nodes);
		CHECK_EQ(compare(0, 0), 0);
		CHECK_EQ(sum_of_nodes(), world_cost);
		world_close();
	}
}

int main(void)
{
	static const struct test tests[] = {
		{"random events make the tree that the rules make", random_events},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
