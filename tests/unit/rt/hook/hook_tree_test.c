/* SPDX-License-Identifier: MIT */
/*
 * The tree that a traced thread keeps of itself, against a model that keeps every path in a map and
 * never forgets anything.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/map.h"
#include "base/mem.h"
#include "check.h"
#include "rt/hook/tree.c" /* runs inside traced programs, so it is in no library of ours */

#define SMALL_BYTES (64u << 10)
#define LARGE_BYTES (16u << 20)
#define IDS_MAX	    4096

/* --- the model ---------------------------------------------------------------------------- */

struct model_node {
	uint32_t parent, id;
	uint64_t calls, ticks, min, max;
	uint32_t n_open;
	uint64_t open_starts;
};

struct model_call {
	uint32_t node; /* of the model */
	uint32_t real; /* of the tree */
	uint64_t entered;
};

struct world {
	struct hook_tree *tree;
	uint64_t now;
	struct map index; /* parent << 32 | id -> node of the model */
	VEC(struct model_node) nodes;
	VEC(struct model_call) stack;
	uint64_t calls_by_id[IDS_MAX];
	uint64_t n_calls;
};

static void world_init(struct world *w, uint32_t bytes, uint32_t permille)
{
	memset(w, 0, sizeof(*w));
	w->tree = aligned_alloc(64, bytes);
	memset(w->tree, 0, bytes);
	w->now = 1000000;
	CHECK(hook_tree_init(w->tree, bytes, permille, w->now));
	vec_push(&w->nodes, ((struct model_node){0}));
	vec_push(&w->nodes, ((struct model_node){0})); /* the root, as in the tree */
	vec_push(&w->stack, ((struct model_call){1, HOOK_TREE_ROOT, 0}));
}

static void world_release(struct world *w)
{
	free(w->tree);
	map_release(&w->index);
	vec_release(&w->nodes);
	vec_release(&w->stack);
}

static uint32_t enter(struct hook_tree *t, uint32_t current, uint32_t id, uint64_t now)
{
	struct hook_entry e[2] = {{.node = current}};
	uint32_t i = hook_tree_enter(t, &e[1], id, now);

	return i ? i : hook_tree_enter_late(t, current, id, now);
}

static void world_enter(struct world *w, uint32_t id)
{
	struct model_call *top = &w->stack.v[w->stack.n - 1];
	uint64_t *at = map_ensure(&w->index, HOOK_TREE_KEY(top->node, id), NULL);
	struct model_call call = {.entered = ++w->now};

	if (!*at) {
		*at = w->nodes.n;
		vec_push(&w->nodes,
			((struct model_node){.parent = top->node, .id = id, .min = UINT64_MAX}));
	}
	call.node = (uint32_t)*at;
	call.real = enter(w->tree, top->real, id, w->now);
	w->nodes.v[call.node].calls++;
	w->nodes.v[call.node].n_open++;
	w->nodes.v[call.node].open_starts += w->now;
	w->calls_by_id[id]++;
	w->n_calls++;
	vec_push(&w->stack, call);
}

static void world_leave(struct world *w, uint64_t spent)
{
	struct model_call call = w->stack.v[--w->stack.n];
	struct model_node *n = &w->nodes.v[call.node];
	uint64_t elapsed;

	w->now += spent;
	elapsed = w->now - call.entered;
	hook_tree_leave_late(w->tree, call.real, call.entered, w->now);
	n->ticks += elapsed;
	n->n_open--;
	n->open_starts -= call.entered;
	if (elapsed < n->min)
		n->min = elapsed;
	if (elapsed > n->max)
		n->max = elapsed;
}

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 11) % n;
}

/* Calls and returns at random, at most `depth` deep, then everything returns but `n_left_open`. */
static void world_run(
	struct world *w, uint32_t n_steps, uint32_t n_ids, uint32_t depth, uint32_t n_left_open)
{
	for (uint32_t i = 0; i < n_steps; i++) {
		if (w->stack.n > 1 && (w->stack.n > depth || random_below(2)))
			world_leave(w, random_below(100));
		else
			world_enter(w, 1 + random_below(n_ids));
	}
	while (w->stack.n > 1 + n_left_open)
		world_leave(w, random_below(100));
}

/* The tree's node for a node of the model; 0 when it was pruned. */
static uint32_t real_node(const struct world *w, uint32_t node)
{
	uint32_t parent;

	if (node == 1)
		return HOOK_TREE_ROOT;
	parent = real_node(w, w->nodes.v[node].parent);
	return parent ? hook_tree_find(w->tree, HOOK_TREE_KEY(parent, w->nodes.v[node].id)) : 0;
}

static void check_node(const struct world *w, uint32_t node, uint32_t real)
{
	const struct model_node *m = &w->nodes.v[node];
	const struct hook_node *n = &hook_tree_nodes(w->tree)[real];

	CHECK_EQ(n->calls, m->calls);
	CHECK_EQ(n->n_open, m->n_open);
	CHECK_EQ((uint32_t)n->calls, n->n_open + n->n_left);
	CHECK_EQ(n->ticks, m->ticks - m->open_starts - m->n_open * HOOK_TREE_BIAS);
	CHECK_EQ(n->min, m->min);
	CHECK_EQ(n->max, m->max);
}

static uint32_t n_nodes_in_use(const struct hook_tree *t)
{
	return t->n_used - t->n_free - HOOK_TREE_FOLDED - 1;
}

/* Every node is in its parent's list and in its bucket, once; calls by function as in the model. */
static void check_whole(const struct world *w)
{
	const struct hook_node *nodes = hook_tree_nodes(w->tree);
	uint64_t *calls = mem_calloc(IDS_MAX, sizeof(*calls));
	uint32_t n_listed = 0, n_keyed = 0;
	uint64_t total = 0;

	for (uint32_t i = HOOK_TREE_ROOT; i < w->tree->n_used; i++) {
		if (i != HOOK_TREE_ROOT && !nodes[i].key)
			continue;
		for (uint32_t k = nodes[i].first_child; k; k = nodes[k].next_sibling) {
			CHECK_EQ(HOOK_TREE_KEY_PARENT(nodes[k].key), i);
			n_listed++;
		}
		if (i <= HOOK_TREE_FOLDED)
			continue;
		n_keyed++;
		CHECK_EQ(hook_tree_find(w->tree, nodes[i].key), i);
		calls[HOOK_TREE_KEY_ID(nodes[i].key) % IDS_MAX] += nodes[i].calls;
		total += nodes[i].calls;
	}
	CHECK_EQ(n_listed, n_keyed);
	CHECK_EQ(n_keyed, n_nodes_in_use(w->tree));
	CHECK_EQ(total + nodes[HOOK_TREE_FOLDED].calls, w->n_calls);
	for (uint32_t id = 1; id < IDS_MAX && !nodes[HOOK_TREE_FOLDED].calls; id++)
		CHECK_EQ(calls[id], w->calls_by_id[id]);
	free(calls);
}

/* --- counting ------------------------------------------------------------------------------ */

static void test_same_as_model(void)
{
	for (uint32_t seed = 1; seed <= 20; seed++) {
		struct world w;

		random_state = seed * 0x9e3779b97f4a7c15u;
		world_init(&w, LARGE_BYTES, 100);
		world_run(&w, 20000, 1 + seed, 2 + seed % 12, seed % 3);
		check_whole(&w);
		CHECK_EQ(n_nodes_in_use(w.tree), w.nodes.n - 2);
		for (uint32_t i = 2; i < w.nodes.n; i++)
			check_node(&w, i, real_node(&w, i));
		CHECK_EQ(w.tree->last_ticks, w.now);
		CHECK_EQ(w.tree->n_pruned + w.tree->folded_calls, 0);
		world_release(&w);
	}
}

static uint32_t longest_chain(const struct hook_tree *t)
{
	const uint32_t *buckets = (const uint32_t *)((uintptr_t)t + t->buckets_offset);
	uint32_t longest = 0;

	for (uint32_t i = 0; i < t->n_buckets; i++) {
		uint32_t n = 0;

		for (uint32_t k = buckets[i]; k; k = hook_tree_nodes(t)[k].next_in_bucket)
			n++;
		longest = n > longest ? n : longest;
	}
	return longest;
}

static void test_wide(void)
{
	struct world w;

	world_init(&w, LARGE_BYTES, 100);
	world_enter(&w, 1);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t id = 1; id <= 1000; id++) {
			world_enter(&w, id);
			world_leave(&w, id);
		}
	}
	CHECK_EQ(n_nodes_in_use(w.tree), 1001);
	for (uint32_t i = 2; i < w.nodes.n; i++)
		check_node(&w, i, real_node(&w, i));
	CHECK(longest_chain(w.tree) <= 4); /* or finding one of them would be a search */
	check_whole(&w);
	world_release(&w);
}

static void test_full_buckets(void)
{
	struct world w;

	random_state = 77;
	world_init(&w, 1u << 20, 0);
	/* Few functions and many paths, until the memory is used up but for what is reserved. */
	while (w.tree->capacity - w.tree->n_used > w.tree->n_reserved)
		world_run(&w, 100, 30, 12, 0);
	CHECK(longest_chain(w.tree) <= 10);
	check_whole(&w);
	world_release(&w);
}

static void test_clock_goes_back(void)
{
	struct world w;
	uint32_t i;

	world_init(&w, SMALL_BYTES, 100);
	i = enter(w.tree, HOOK_TREE_ROOT, 5, 2000);
	hook_tree_leave_late(w.tree, i, 2000, 1999);
	CHECK_EQ(hook_tree_nodes(w.tree)[i].ticks, 0);
	CHECK_EQ(hook_tree_nodes(w.tree)[i].max, 0);
	CHECK_EQ(hook_tree_nodes(w.tree)[i].min, 0);
	world_release(&w);
}

static void test_adopted(void)
{
	struct world w;
	const struct hook_node *n;
	uint32_t i;

	world_init(&w, SMALL_BYTES, 100);
	i = hook_tree_adopt(w.tree, HOOK_TREE_ROOT, 5, 2000);
	n = &hook_tree_nodes(w.tree)[i];
	CHECK_EQ(n->calls, 0);
	CHECK_EQ((uint32_t)n->calls, n->n_open + n->n_left);
	hook_tree_leave_late(w.tree, i, 2000, 2300);
	CHECK_EQ(n->calls, 0);
	CHECK_EQ((uint32_t)n->calls, n->n_open + n->n_left);
	CHECK_EQ(n->ticks, 300);
	CHECK_EQ(enter(w.tree, HOOK_TREE_ROOT, 5, 2400), i);
	CHECK_EQ(n->calls, 1);
	world_release(&w);
}

static void test_used_again(void)
{
	struct world w;
	struct hook_tree *t;

	random_state = 5;
	world_init(&w, SMALL_BYTES, 100);
	world_run(&w, 3000, 6, 6, 2);
	t = w.tree;
	w.tree = NULL;
	world_release(&w);
	/* Another thread gets the memory. */
	memset(&w, 0, sizeof(w));
	w.tree = t;
	CHECK(hook_tree_init(t, SMALL_BYTES, 100, 5));
	vec_push(&w.nodes, ((struct model_node){0}));
	vec_push(&w.nodes, ((struct model_node){0}));
	vec_push(&w.stack, ((struct model_call){1, HOOK_TREE_ROOT, 0}));
	check_whole(&w);
	CHECK_EQ(n_nodes_in_use(t), 0);
	world_run(&w, 300, 6, 6, 2);
	check_whole(&w);
	for (uint32_t i = 2; i < w.nodes.n; i++)
		check_node(&w, i, real_node(&w, i));
	world_release(&w);
}

static void test_sizes(void)
{
	struct hook_tree_layout l;

	CHECK(!hook_tree_layout(0, &l));
	CHECK(!hook_tree_layout(4096, &l));
	for (uint64_t bytes = 4096; bytes < (uint64_t)1 << 40; bytes += bytes / 7 + 1) {
		if (!hook_tree_layout(bytes, &l))
			continue;
		CHECK(l.buckets_offset + (uint64_t)l.n_buckets * 4 <= bytes);
		CHECK(l.n_buckets * 2 >= l.capacity);
		CHECK_EQ(l.n_buckets, 1u << (32 - l.bucket_shift));
		CHECK(l.capacity >= HOOK_TREE_NODES_MIN / 2 && l.capacity <= HOOK_TREE_NODES_MAX);
	}
}

/* --- pruning and folding -------------------------------------------------------------------- */

static bool model_has_open(const struct world *w, uint32_t node)
{
	for (uint32_t i = 2; i < w->nodes.n; i++) {
		uint32_t k = i;

		if (!w->nodes.v[i].n_open)
			continue;
		while (k != node && k)
			k = w->nodes.v[k].parent;
		if (k == node)
			return true;
	}
	return false;
}

static bool model_survives(const struct world *w, uint32_t node, uint32_t permille)
{
	for (; w->nodes.v[node].parent != 1; node = w->nodes.v[node].parent) {
		const struct model_node *n = &w->nodes.v[node], *p = &w->nodes.v[n->parent];
		uint64_t whole = p->ticks + p->n_open * w->now - p->open_starts;

		if (n->ticks * 1000 < whole * permille && !model_has_open(w, node))
			return false;
	}
	return true;
}

static uint64_t root_ticks(const struct hook_tree *t, uint64_t now)
{
	const struct hook_node *nodes = hook_tree_nodes(t);
	uint64_t sum = 0;

	for (uint32_t i = nodes[HOOK_TREE_ROOT].first_child; i; i = nodes[i].next_sibling)
		sum += node_ticks(&nodes[i], now);
	return sum;
}

static void test_prune(void)
{
	for (uint32_t seed = 1; seed <= 12; seed++) {
		uint32_t permille = seed * 40, n_survivors = 0;
		uint64_t before;
		struct world w;

		random_state = seed * 0x9e3779b97f4a7c15u;
		world_init(&w, LARGE_BYTES, permille);
		world_run(&w, 4000, 5, 7, seed % 4);
		before = root_ticks(w.tree, w.now);
		hook_tree_prune(w.tree, w.now, UINT32_MAX);
		CHECK_EQ(root_ticks(w.tree, w.now), before);
		for (uint32_t i = 2; i < w.nodes.n; i++) {
			uint32_t real = real_node(&w, i);

			CHECK_EQ(real != 0, model_survives(&w, i, permille));
			n_survivors += real != 0;
			if (real)
				check_node(&w, i, real);
		}
		CHECK(w.tree->n_pruned > 0);
		CHECK_EQ(w.tree->n_pruned, w.nodes.n - 2 - n_survivors);
		check_whole(&w);
		/* What is left does not fall under the threshold a second time. */
		CHECK_EQ(hook_tree_prune(w.tree, w.now, UINT32_MAX), 0);
		while (w.stack.n > 1)
			world_leave(&w, 1);
		world_run(&w, 1000, 5, 7, 0);
		check_whole(&w);
		world_release(&w);
	}
}

static void test_runs_for_days(void)
{
	struct world w;
	uint64_t ticks = 0;

	/* Far more paths than nodes; calls, and the time of what the root calls, are never lost. */
	random_state = 42;
	world_init(&w, SMALL_BYTES, 100);
	world_run(&w, 400000, 40, 8, 3);
	CHECK(w.nodes.n > 20 * w.tree->capacity);
	CHECK(w.tree->n_pruned > w.tree->capacity);
	CHECK(w.tree->n_used <= w.tree->capacity);
	check_whole(&w);
	for (uint32_t i = 2; i < w.nodes.n; i++)
		if (w.nodes.v[i].parent == 1)
			ticks += w.nodes.v[i].ticks + w.nodes.v[i].n_open * w.now -
				 w.nodes.v[i].open_starts;
	CHECK_EQ(root_ticks(w.tree, w.now), ticks);
	/* A sweep pays for itself. */
	CHECK((uint64_t)w.tree->n_sweeps * w.tree->capacity <= 20 * w.n_calls);
	world_release(&w);
}

static void test_deterministic(void)
{
	uint8_t *first = NULL;

	for (int run = 0; run < 2; run++) {
		struct world w;

		random_state = 99;
		world_init(&w, SMALL_BYTES, 100);
		world_run(&w, 50000, 30, 9, 0);
		if (!run)
			first = mem_dup(w.tree, SMALL_BYTES);
		else
			CHECK(!memcmp(first, w.tree, SMALL_BYTES));
		world_release(&w);
	}
	free(first);
}

static void deep(uint32_t depth, uint32_t n_functions)
{
	struct world w;
	const struct hook_node *nodes;

	world_init(&w, SMALL_BYTES, 100);
	nodes = hook_tree_nodes(w.tree);
	for (uint32_t i = 0; i < depth; i++)
		world_enter(&w, 1 + i % n_functions);
	CHECK_EQ(w.stack.n, depth + 1);
	check_whole(&w);
	CHECK_EQ(w.tree->n_pruned, 0); /* all of them are open */
	CHECK_EQ(w.tree->folded_calls,
		depth - (w.tree->capacity - w.tree->n_reserved - HOOK_TREE_FOLDED - 1));
	while (w.stack.n > 1)
		world_leave(&w, 1);
	check_whole(&w);
	for (uint32_t i = HOOK_TREE_ROOT; i < w.tree->n_used; i++)
		CHECK_EQ(nodes[i].n_open, 0);
	/* The outermost call has all of the time. */
	CHECK_EQ(root_ticks(w.tree, w.now), w.nodes.v[2].ticks);
	world_release(&w);
}

static void test_deep(void)
{
	deep(100000, 1);
	deep(100000, 7);
}

static void test_no_memory_at_all(void)
{
	struct world w;
	uint32_t n_ids = IDS_MAX - 1;

	/* More functions than nodes: those that find none are counted together. */
	world_init(&w, SMALL_BYTES, 100);
	for (uint32_t id = 1; id <= n_ids; id++) {
		world_enter(&w, id);
		world_enter(&w, 1 + id * 7 % n_ids);
		world_leave(&w, 5);
		world_leave(&w, 5);
	}
	CHECK_EQ(w.tree->n_used, w.tree->capacity);
	CHECK(hook_tree_nodes(w.tree)[HOOK_TREE_FOLDED].calls > 0);
	check_whole(&w);
	world_release(&w);
}

static void test_coroutine(void)
{
	struct world w;
	uint32_t f, body;

	/* What was begun under a call that is over stays as long as it is open. */
	world_init(&w, SMALL_BYTES, 500);
	f = enter(w.tree, HOOK_TREE_ROOT, 1, 1000);
	uint32_t g = enter(w.tree, f, 2, 1000);
	body = enter(w.tree, g, 3, 1001);
	hook_tree_leave_late(w.tree, g, 1000, 1002);
	CHECK_EQ(hook_tree_prune(w.tree, 100000, UINT32_MAX), 0);
	CHECK_EQ(hook_tree_find(w.tree, HOOK_TREE_KEY(g, 3)), body);
	hook_tree_leave_late(w.tree, body, 1001, 1003);
	hook_tree_prune(w.tree, 100000, UINT32_MAX);
	CHECK_EQ(w.tree->n_pruned, 2);
	CHECK_EQ(w.tree->pruned_calls, 2);
	world_release(&w);
}

/* --- signal handlers ------------------------------------------------------------------------- */

/* A handler that runs behind a chosen instruction of an entry or exit, by the trap flag. */
static struct world stepped;
static volatile uint32_t n_steps, step_wanted;
static volatile bool step_prunes, step_jumps;
static sigjmp_buf step_place;

static void handler_calls(struct world *w, uint32_t current, uint32_t first_id)
{
	for (uint32_t id = first_id; id < first_id + 3; id++) {
		uint32_t i = enter(w->tree, current, id, 5000), k = enter(w->tree, i, 9, 5001);

		hook_tree_leave_late(w->tree, k, 5001, 5002);
		hook_tree_leave_late(w->tree, i, 5000, 5003);
		w->n_calls += 2;
		w->calls_by_id[id]++;
		w->calls_by_id[9]++;
	}
}

static void on_trap(int number)
{
	(void)number;
	if (n_steps++ != step_wanted)
		return;
	handler_calls(&stepped, stepped.stack.v[1].real, 1);
	if (step_prunes) {
		hook_tree_prune(stepped.tree, 1u << 30, UINT32_MAX);
		/* The nodes that became free get others. */
		handler_calls(&stepped, HOOK_TREE_ROOT, 20);
	}
	if (step_jumps)
		siglongjmp(step_place, 1);
}

#ifdef __x86_64__
#define TRAPS_ON()  __asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq" : : : "memory", "cc")
#define TRAPS_OFF() __asm__ volatile("pushfq; andl $~0x100, (%%rsp); popfq" : : : "memory", "cc")
#endif

/* A call of 1 that is open, and perhaps one of 2 below it that was. */
static uint32_t step_begin(uint32_t step, bool prunes, bool is_known)
{
	struct world *w = &stepped;

	world_init(w, SMALL_BYTES, 1000);
	world_enter(w, 1);
	if (is_known) {
		world_enter(w, 2);
		world_leave(w, 1);
		world_enter(w, 3); /* so that the entry has to look for it */
		world_leave(w, 1);
	}
	n_steps = 0;
	step_wanted = step;
	step_prunes = prunes;
	return w->stack.v[1].real;
}

static bool step_end(uint32_t step, uint32_t outer)
{
	struct world *w = &stepped;

	check_whole(w);
	for (uint32_t k = 1; k < w->tree->n_used; k++) {
		CHECK_EQ(hook_tree_nodes(w->tree)[k].n_open, k == outer);
		CHECK(k == outer || hook_tree_nodes(w->tree)[k].ticks < 10000);
	}
	CHECK_EQ(hook_tree_nodes(w->tree)[outer].ticks, -(w->stack.v[1].entered + HOOK_TREE_BIAS));
	world_release(w);
	return n_steps > step;
}

/* One call of 2 below 1, with a handler behind instruction `step`; false when there was none. */
static bool step_once(uint32_t step, bool prunes, bool is_known)
{
	struct world *w = &stepped;
	uint32_t outer = step_begin(step, prunes, is_known);
	struct hook_entry entries[2] = {{.node = outer}, {.node = outer, .ticks = 3000, .id = 2}};
	struct hook_entry *e = &entries[1];

	TRAPS_ON();
	hook_tree_note(e, HOOK_TREE_ENTERING, 0);
	if (!hook_tree_enter(w->tree, e, 2, 3000)) {
		TRAPS_OFF(); /* signals would be blocked here */
		e->node = hook_tree_enter_late(w->tree, outer, 2, 3000);
		TRAPS_ON();
	}
	e->ret = 1;
	hook_tree_note(e, HOOK_TREE_LEAVING, 0);
	hook_tree_leave(w->tree, e, 3100);
	TRAPS_OFF();
	w->n_calls++;
	w->calls_by_id[2]++;
	return step_end(step, outer);
}

static struct hook_entry jump_entries[2];
static volatile bool jump_is_in_call;

/* The same, and the handler jumps away: the call was never made, or it has ended. */
static bool jump_once(uint32_t step, bool prunes, bool is_known)
{
	struct world *w = &stepped;
	volatile uint32_t outer = step_begin(step, prunes, is_known);
	struct hook_entry *e = &jump_entries[1];

	e[-1] = (struct hook_entry){.node = outer};
	*e = (struct hook_entry){.node = outer, .ticks = 3000, .id = 2};
	jump_is_in_call = false;
	if (!sigsetjmp(step_place, 1)) {
		hook_tree_note(e, HOOK_TREE_ENTERING, 0);
		TRAPS_ON();
		if (!hook_tree_enter(w->tree, e, 2, 3000)) {
			TRAPS_OFF();
			e->node = hook_tree_enter_late(w->tree, outer, 2, 3000);
			e->ret = 1; /* as it is filled with signals blocked */
			TRAPS_ON();
		}
		*(volatile uint64_t *)&e->ret = 1;
		jump_is_in_call = true;
		hook_tree_note(e, HOOK_TREE_LEAVING, 0);
		hook_tree_leave(w->tree, e, 3100);
		TRAPS_OFF();
	} else if (hook_tree_note_of(e)) {
		hook_tree_repair(w->tree, e, 3200);
	} else {
		hook_tree_leave_late(w->tree, e->node, 3000, 3200);
	}
	if (jump_is_in_call || !hook_tree_note_of(e)) {
		w->n_calls++;
		w->calls_by_id[2]++;
	}
	return step_end(step, outer);
}

static void test_handlers(void)
{
	struct sigaction action = {.sa_handler = on_trap}, old;
	uint32_t step = 0;

	sigaction(SIGTRAP, &action, &old);
	step_jumps = false;
	for (int how = 0; how < 4; how++)
		for (step = 0; step_once(step, how & 1, how & 2) && step < 20000; step++)
			;
	CHECK(step > 20);
	sigaction(SIGTRAP, &old, NULL);
}

static void test_jumps(void)
{
	struct sigaction action = {.sa_handler = on_trap}, old;
	uint32_t step = 0;

	sigaction(SIGTRAP, &action, &old);
	step_jumps = true;
	for (int how = 0; how < 4; how++)
		for (step = 0; jump_once(step, how & 1, how & 2) && step < 20000; step++)
			;
	CHECK(step > 20);
	sigaction(SIGTRAP, &old, NULL);
}

/* --- speed, printed only --------------------------------------------------------------------- */

static double ns_per_call(uint32_t n_children, uint32_t n)
{
	struct world w;
	struct timespec a, b;
	uint32_t f, id = 1;

	world_init(&w, LARGE_BYTES, 100);
	f = enter(w.tree, HOOK_TREE_ROOT, 1, 1);
	for (uint32_t i = 1; i <= n_children; i++)
		hook_tree_leave_late(w.tree, enter(w.tree, f, i, 1), 1, 2);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = enter(w.tree, f, id, i);

		hook_tree_leave_late(w.tree, k, i, i + 1);
		id = id == n_children ? 1 : id + 1;
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	world_release(&w);
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / n;
}

int main(void)
{
	static const struct test tests[] = {
		{"calls, times, minima and maxima are those of a model that keeps everything",
			test_same_as_model},
		{"a thousand children are found without a search", test_wide},
		{"hash chains stay short in a full tree", test_full_buckets},
		{"a clock that goes back gives no negative time", test_clock_goes_back},
		{"an adopted call is not counted, its time is", test_adopted},
		{"the memory of a thread that ended serves another", test_used_again},
		{"the layout fits into every size of memory", test_sizes},
		{"pruning takes what is under the threshold and nothing else", test_prune},
		{"a tree with more paths than memory loses no call and no time",
			test_runs_for_days},
		{"the same calls make the same tree", test_deterministic},
		{"recursion 100,000 deep in a small tree is counted to the last call", test_deep},
		{"more functions than nodes are counted together", test_no_memory_at_all},
		{"an open call below a call that is over is not pruned", test_coroutine},
		{"a signal handler behind any instruction does no harm", test_handlers},
		{"one that jumps away from any instruction leaves what can be repaired", test_jumps},
	};

	for (uint32_t n = 1; n <= 1000; n = n == 1 ? 2 : n * 500)
		printf("# entry and exit, %u children in turn: %.1f ns\n", n,
			ns_per_call(n, 200000));
	return RUN_TESTS(tests);
}
