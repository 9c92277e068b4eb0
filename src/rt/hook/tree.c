/* SPDX-License-Identifier: MIT */
/*
 * The slow part of the call tree: making nodes, and taking away what matters little when memory
 * runs short. Runs with signals blocked, on the thread that owns the tree; the recorder may be
 * reading.
 *
 * 1. A free node has the key 0, and a node gets its key when everything else of it is written.
 * 2. n_open of a free node is not touched: an interrupted hook_tree_enter() may have added to it
 *    what it is about to take back.
 * 3. A sweep that found little is not repeated before a quarter of the capacity in calls has been
 *    folded, so that a full tree costs no more than a few nodes looked at for each call.
 */
#include "hook_tree.h"

#define RESERVE_PART	  8 /* of the capacity is for the folded branch */
#define SWEEP_WANTED_PART 8 /* so much a sweep tries to free */
#define SWEEP_ENOUGH_PART 16
#define FOLD_PART	  4
/* A sum of durations is less; what is not lacks half of a pair (HOOK_TREE_BIAS). */
#define TICKS_MAX ((uint64_t)1 << 61)

static void set32(uint32_t *to, uint32_t n)
{
	__atomic_store_n(to, n, __ATOMIC_RELAXED);
}

/* What was written before is there before it. */
static void set_key(struct hook_node *n, uint64_t key)
{
	__atomic_signal_fence(__ATOMIC_RELEASE); /* x86 keeps the order of stores */
	hook_tree_set(&n->key, key);
}

static void add_seq(struct hook_tree *t)
{
	__atomic_store_n(&t->prune_seq, t->prune_seq + 1, __ATOMIC_SEQ_CST);
}

static void fill_node(struct hook_node *n, uint64_t key)
{
	n->first_child = n->next_sibling = n->next_in_bucket = n->recent = 0;
	set32(&n->n_left, 0);
	hook_tree_set(&n->calls, 0);
	hook_tree_set(&n->ticks, 0);
	hook_tree_set(&n->max, 0);
	hook_tree_set(&n->min, UINT64_MAX);
	set_key(n, key);
}

bool hook_tree_init(void *at, uint64_t bytes, uint32_t prune_permille, uint64_t now)
{
	struct hook_tree *t = at;
	struct hook_node *nodes = hook_tree_nodes(t);
	struct hook_tree_layout l;
	bool is_old = t->magic == HOOK_TREE_MAGIC;

	if (!hook_tree_layout(bytes, &l))
		return false;
	set32(&t->magic, 0);
	t->capacity = l.capacity;
	t->n_buckets = l.n_buckets;
	t->bucket_shift = l.bucket_shift;
	t->buckets_offset = l.buckets_offset;
	if (is_old) /* memory that was never used is not touched: it need not be there */
		for (uint32_t i = 0; i < l.n_buckets; i++)
			((volatile uint32_t *)((uintptr_t)t + l.buckets_offset))[i] = 0;
	t->n_used = HOOK_TREE_FOLDED + 1;
	t->first_free = t->n_free = 0;
	t->n_reserved = l.capacity / RESERVE_PART;
	t->prune_permille = prune_permille;
	t->sweep_at = HOOK_TREE_FOLDED + 1;
	t->n_to_fold = t->prune_seq = t->n_sweeps = 0;
	t->start_ticks = t->last_ticks = now;
	t->n_pruned = t->pruned_calls = t->folded_calls = 0;
	for (uint32_t i = 0; i < HOOK_COST_N; i++)
		t->costs[i] = (struct hook_tree_cost){0, 0, 0, 0};
	for (uint32_t i = 0; i <= HOOK_TREE_FOLDED; i++) {
		nodes[i].n_open = 0;
		fill_node(&nodes[i], i == HOOK_TREE_FOLDED ? HOOK_TREE_KEY(HOOK_TREE_ROOT, 0) : 0);
	}
	__atomic_store_n(&t->magic, HOOK_TREE_MAGIC, __ATOMIC_RELEASE);
	return true;
}

/* --- taking and giving nodes --------------------------------------------------------------- */

/* 0 when no more than `keep` are left. */
static uint32_t take_node(struct hook_tree *t, uint32_t keep)
{
	struct hook_node *nodes = hook_tree_nodes(t);
	uint32_t i = t->first_free;

	if (t->capacity - t->n_used + t->n_free <= keep)
		return 0;
	if (i) {
		t->first_free = nodes[i].next_sibling;
		t->n_free--;
		return i;
	}
	i = t->n_used;
	set_key(&nodes[i], 0);
	set32(&nodes[i].n_open, 0);
	__atomic_store_n(&t->n_used, i + 1, __ATOMIC_RELEASE);
	return i;
}

static void link_node(struct hook_tree *t, uint32_t i, uint64_t key)
{
	struct hook_node *nodes = hook_tree_nodes(t);
	struct hook_node *parent = &nodes[HOOK_TREE_KEY_PARENT(key)];
	uint32_t *bucket = hook_tree_bucket(t, key);

	fill_node(&nodes[i], key);
	nodes[i].next_sibling = parent->first_child;
	parent->first_child = i;
	nodes[i].next_in_bucket = *bucket;
	*(volatile uint32_t *)bucket = i;
}

static void take_out_of_bucket(struct hook_tree *t, uint32_t i)
{
	struct hook_node *nodes = hook_tree_nodes(t);
	uint32_t *at = hook_tree_bucket(t, nodes[i].key);

	while (*at && *at != i)
		at = &nodes[*at].next_in_bucket;
	if (*at)
		*(volatile uint32_t *)at = nodes[i].next_in_bucket;
}

static void give_node(struct hook_tree *t, uint32_t i)
{
	struct hook_node *n = &hook_tree_nodes(t)[i];

	take_out_of_bucket(t, i);
	set_key(n, 0);
	n->next_sibling = t->first_free;
	t->first_free = i;
	t->n_free++;
}

/* The node that counts folded calls of the function; that of all functions when there is no memory
 * at all. */
static uint32_t folded_node(struct hook_tree *t, uint32_t id)
{
	uint64_t key = HOOK_TREE_KEY(HOOK_TREE_FOLDED, id);
	uint32_t i = hook_tree_find(t, key);

	if (i)
		return i;
	i = take_node(t, 0);
	if (!i)
		return HOOK_TREE_FOLDED;
	link_node(t, i, key);
	return i;
}

/* --- pruning ------------------------------------------------------------------------------- */

/* The time of a node, that of its open calls up to now. */
static uint64_t node_ticks(const struct hook_node *n, uint64_t now)
{
	return n->ticks + n->n_open * (now + HOOK_TREE_BIAS);
}

/* part * 1000 < whole * permille, without overflow. */
static bool is_under(uint64_t part, uint64_t whole, uint32_t permille)
{
	uint64_t a_low = (part & UINT32_MAX) * 1000, b_low = (whole & UINT32_MAX) * permille;
	uint64_t a_high = (part >> 32) * 1000 + (a_low >> 32);
	uint64_t b_high = (whole >> 32) * permille + (b_low >> 32);

	if (a_high != b_high)
		return a_high < b_high;
	return (uint32_t)a_low < (uint32_t)b_low;
}

/* Calls whose callers are all over: coroutines that were begun under one of them. */
static bool has_open_call(const struct hook_node *nodes, uint32_t top)
{
	uint32_t i = top;

	for (;;) {
		if (nodes[i].n_open)
			return true;
		if (nodes[i].first_child) {
			i = nodes[i].first_child;
			continue;
		}
		while (i != top && !nodes[i].next_sibling)
			i = HOOK_TREE_KEY_PARENT(nodes[i].key);
		if (i == top)
			return false;
		i = nodes[i].next_sibling;
	}
}

static void fold_node(struct hook_tree *t, uint32_t i)
{
	struct hook_node *nodes = hook_tree_nodes(t);
	struct hook_node from = nodes[i];
	struct hook_node *to;

	give_node(t, i); /* so that there is memory for the folded one */
	to = &nodes[folded_node(t, HOOK_TREE_KEY_ID(from.key))];
	hook_tree_add32(&to->n_left, (uint32_t)from.calls);
	hook_tree_add(&to->ticks, from.ticks);
	hook_tree_add(&to->calls, from.calls);
	if (from.min < to->min)
		hook_tree_set(&to->min, from.min);
	if (from.max > to->max)
		hook_tree_set(&to->max, from.max);
	hook_tree_add(&t->n_pruned, 1);
	hook_tree_add(&t->pruned_calls, from.calls);
}

/* The node and everything below it, which is out of its parent's list already. Leaves first. */
static uint32_t drop_subtree(struct hook_tree *t, uint32_t top)
{
	struct hook_node *nodes = hook_tree_nodes(t);
	uint32_t i = top, n = 0;

	for (;;) {
		uint32_t next, parent;

		while (nodes[i].first_child)
			i = nodes[i].first_child;
		next = nodes[i].next_sibling;
		parent = HOOK_TREE_KEY_PARENT(nodes[i].key);
		fold_node(t, i);
		n++;
		if (i == top)
			return n;
		nodes[parent].first_child = next;
		i = next ? next : parent;
	}
}

static uint32_t prune_children(struct hook_tree *t, uint32_t parent, uint64_t now)
{
	struct hook_node *nodes = hook_tree_nodes(t);
	uint64_t whole = node_ticks(&nodes[parent], now);
	uint32_t *at = &nodes[parent].first_child;
	uint32_t n = 0;

	while (*at) {
		uint32_t i = *at;

		if (nodes[i].n_open || !is_under(nodes[i].ticks, whole, t->prune_permille) ||
			has_open_call(nodes, i)) {
			at = &nodes[i].next_sibling;
			continue;
		}
		*at = nodes[i].next_sibling;
		n += drop_subtree(t, i);
	}
	if (n)
		nodes[parent].recent = 0;
	return n;
}

uint32_t hook_tree_prune(struct hook_tree *t, uint64_t now, uint32_t wanted)
{
	struct hook_node *nodes = hook_tree_nodes(t);
	uint32_t before = t->n_free;

	add_seq(t);
	t->n_sweeps++;
	for (uint32_t n = t->n_used - HOOK_TREE_FOLDED - 1; n; n--) {
		uint32_t i = t->sweep_at;

		/* Nodes that are made meanwhile have no children. */
		if (i <= HOOK_TREE_FOLDED || i >= t->n_used)
			i = HOOK_TREE_FOLDED + 1;
		t->sweep_at = i + 1;
		if (nodes[i].key && !hook_tree_is_folded(t, i))
			prune_children(t, i, now);
		/* Folded nodes may have taken some of what was freed. */
		if (t->n_free >= before && t->n_free - before >= wanted)
			break;
	}
	add_seq(t);
	return t->n_free > before ? t->n_free - before : 0;
}

/* --- exits ----------------------------------------------------------------------------------- */

void hook_tree_leave_late(struct hook_tree *t, uint32_t node, uint64_t entered, uint64_t now)
{
	struct hook_node *n = &hook_tree_nodes(t)[node];

	hook_tree_add32(&n->n_left, 1);
	hook_tree_count_exit(t, n, entered, now);
}

/* A time stamp that is missing in the sum shows, since each is greater than any sum of times. */
static void add_missing(struct hook_node *n, uint64_t stamp, uint64_t now)
{
	uint64_t ticks = node_ticks(n, now);

	if (ticks >= TICKS_MAX && ticks + stamp + HOOK_TREE_BIAS < TICKS_MAX)
		hook_tree_add(&n->ticks, stamp + HOOK_TREE_BIAS);
}

/* One half of `ticks` was added to, and the other was not. `has_stamp`: so it is when no time stamp
 * is missing, else when one is. */
static void take_back_half(
	struct hook_node *n, const struct hook_entry *e, uint64_t now, bool has_stamp)
{
#ifdef __x86_64__
	(void)n;
	(void)e;
	(void)now;
	(void)has_stamp;
#else
	if ((uint32_t)n->ticks != (uint32_t)e->ret &&
		(node_ticks(n, now) < TICKS_MAX) == has_stamp)
		hook_tree_set(&n->ticks, (n->ticks & ~(uint64_t)UINT32_MAX) | (uint32_t)e->ret);
#endif
}

static void take_back_entry(struct hook_tree *t, const struct hook_entry *e, uint64_t now)
{
	uint32_t i = hook_tree_note_node(e);
	struct hook_node *n = &hook_tree_nodes(t)[i];
	bool is_uneven = (uint32_t)n->calls != n->n_open + n->n_left;

	/* A folded call may have the node of its caller. */
	if (!i || (!is_uneven && (e->node != i || e[-1].node == i)))
		return;
	hook_tree_add32(&n->n_open, -1u);
	if (!is_uneven)
		hook_tree_add(&n->calls, (uint64_t)-1);
	if (e->node == i)
		take_back_half(n, e, now, true);
	add_missing(n, e->ticks, now);
}

static void complete_exit(struct hook_tree *t, const struct hook_entry *e, uint64_t now)
{
	struct hook_node *n = &hook_tree_nodes(t)[e->node];
	bool is_uneven = (uint32_t)n->calls != n->n_open + n->n_left;
	bool has_left = hook_tree_note_of(e) == HOOK_TREE_LEFT || is_uneven;

	if (!has_left)
		hook_tree_add32(&n->n_left, 1);
	if (!has_left || is_uneven)
		hook_tree_add32(&n->n_open, -1u);
	if (hook_tree_note_of(e) == HOOK_TREE_LEFT)
		take_back_half(n, e, now, false);
	add_missing(n, now, now);
}

void hook_tree_repair(struct hook_tree *t, const struct hook_entry *e, uint64_t now)
{
	if (hook_tree_note_of(e) == HOOK_TREE_ENTERING)
		take_back_entry(t, e, now);
	else
		complete_exit(t, e, now);
}

/* --- entries ------------------------------------------------------------------------------- */

static bool make_room(struct hook_tree *t, uint64_t now)
{
	uint32_t n;

	if (t->n_to_fold)
		return false;
	n = hook_tree_prune(t, now, t->capacity / SWEEP_WANTED_PART);
	if (n < t->capacity / SWEEP_ENOUGH_PART)
		t->n_to_fold = t->capacity / FOLD_PART;
	return n > 0;
}

/* The node for a call, found or made, and opened. */
static struct hook_node *open_child(
	struct hook_tree *t, uint32_t current, uint32_t id, uint64_t now, uint32_t *index)
{
	struct hook_node *nodes = hook_tree_nodes(t);
	uint64_t key = HOOK_TREE_KEY(current, id);
	bool is_folded = hook_tree_is_folded(t, current);
	uint32_t i = is_folded ? 0 : hook_tree_find(t, key);

	if (!i && !is_folded) {
		i = take_node(t, t->n_reserved);
		if (!i && make_room(t, now))
			i = take_node(t, t->n_reserved);
		if (i)
			link_node(t, i, key);
	}
	if (i) {
		nodes[current].recent = i;
	} else {
		i = folded_node(t, id);
		if (t->n_to_fold)
			t->n_to_fold--;
		hook_tree_add(&t->folded_calls, 1);
	}
	hook_tree_add32(&nodes[i].n_open, 1);
	*index = i;
	return &nodes[i];
}

uint32_t hook_tree_enter_late(struct hook_tree *t, uint32_t current, uint32_t id, uint64_t now)
{
	uint32_t i;
	struct hook_node *n = open_child(t, current, id, now, &i);

	hook_tree_count_entry(t, n, now);
	return i;
}

uint32_t hook_tree_adopt(struct hook_tree *t, uint32_t current, uint32_t id, uint64_t now)
{
	uint32_t i;
	struct hook_node *n = open_child(t, current, id, now, &i);

	hook_tree_count_entry(t, n, now);
	if (hook_tree_is_folded(t, i))
		hook_tree_add(&t->folded_calls, (uint64_t)-1);
	/* As if it had never been called here: what n_left owes is paid when the call returns. */
	hook_tree_add32(&n->n_left, -1u);
	hook_tree_add(&n->calls, (uint64_t)-1);
	return i;
}
