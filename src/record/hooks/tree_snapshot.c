/* SPDX-License-Identifier: MIT */
#include "record/hooks/tree_snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/map.h"
#include "record/hooks/tick_clock.h"
#include "rt/hook/hook_tree.h"
#include "trace/records.h"

#define NODE_TRIES    64 /* until a node is found at rest */
#define TREE_TRIES    8	 /* until nothing is pruned meanwhile */
#define PRUNE_WAIT_NS 200000
/* A sum of durations is less; what is not lacks half of a pair (HOOK_TREE_BIAS). */
#define TICKS_MAX ((uint64_t)1 << 61)

#define LOAD(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)

void tree_copy_release(struct tree_copy *c)
{
	vec_release(&c->nodes);
	*c = (struct tree_copy){0};
}

/* --- one node -------------------------------------------------------------------------------- */

struct raw_node {
	uint64_t key, calls, ticks, min, max;
	uint32_t n_open, n_left;
};

static bool read_once(const struct hook_node *n, struct raw_node *r)
{
	r->key = LOAD(n->key);
	r->calls = LOAD(n->calls);
	r->n_open = LOAD(n->n_open);
	r->n_left = LOAD(n->n_left);
	r->ticks = LOAD(n->ticks);
	r->min = LOAD(n->min);
	r->max = LOAD(n->max);
	return (uint32_t)r->calls == r->n_open + r->n_left && LOAD(n->n_open) == r->n_open &&
	       LOAD(n->n_left) == r->n_left && LOAD(n->calls) == r->calls && LOAD(n->key) == r->key;
}

/* Ticks with open calls up to now. A call whose entry or exit is half done adds or lacks one time
 * stamp; time stamps are so large that it shows. */
static uint64_t elapsed_of(const struct raw_node *r, uint64_t now)
{
	uint64_t stamp = now + HOOK_TREE_BIAS;
	uint64_t ticks = r->ticks + r->n_open * stamp;

	if (ticks < TICKS_MAX)
		return ticks;
	if (ticks - stamp < TICKS_MAX)
		return ticks - stamp;
	if (ticks + stamp < TICKS_MAX)
		return ticks + stamp;
	return 0; /* entered since `now`, or nonsense */
}

static void fill_node(struct tree_node *to, uint32_t index, const struct raw_node *r, uint64_t now)
{
	to->number = index - HOOK_TREE_ROOT;
	to->parent = HOOK_TREE_KEY_PARENT(r->key) - HOOK_TREE_ROOT;
	to->id = HOOK_TREE_KEY_ID(r->key);
	to->is_folded =
		index == HOOK_TREE_FOLDED || HOOK_TREE_KEY_PARENT(r->key) == HOOK_TREE_FOLDED;
	to->is_open = r->n_open != 0;
	to->calls = r->calls;
	to->elapsed = to->is_folded ? 0 : elapsed_of(r, now);
	to->min = r->min < TICKS_MAX ? r->min : TICKS_MAX;
	to->max = r->max < TICKS_MAX ? r->max : TICKS_MAX;
	if (r->min > r->max) { /* none has returned */
		to->max = r->n_open ? to->elapsed / r->n_open : 0;
		to->min = to->max;
	}
}

/* --- the whole tree -------------------------------------------------------------------------- */

enum { PLACE_UNKNOWN, PLACE_WALKED, PLACE_GOOD, PLACE_BAD };

struct reading {
	struct raw_node *raw; /* by index */
	uint8_t *places;      /* PLACE_, by index */
	uint32_t n;
	VEC(uint32_t) path;
};

static void read_nodes(struct reading *r, const struct hook_node *nodes)
{
	for (uint32_t i = 0; i < r->n; i++)
		for (int k = 0; k < NODE_TRIES && !read_once(&nodes[i], &r->raw[i]); k++)
			;
	r->raw[HOOK_TREE_FOLDED].key = HOOK_TREE_KEY(HOOK_TREE_ROOT, 0);
}

/* Until a pass in which nothing was pruned; the last one is taken as it is, which may be that of a
 * program that was killed in the midst of it. */
static void read_tree(struct reading *r, const struct hook_tree *t, uint32_t capacity)
{
	const struct timespec pause = {0, PRUNE_WAIT_NS};

	for (int i = 0; i < TREE_TRIES; i++) {
		uint32_t seq = LOAD(t->prune_seq), n = LOAD(t->n_used);

		n = n > capacity ? capacity : n <= HOOK_TREE_FOLDED ? HOOK_TREE_FOLDED + 1 : n;
		if (n > r->n)
			r->raw = mem_realloc(r->raw, n * sizeof(*r->raw));
		r->n = n;
		read_nodes(r, (const struct hook_node *)(const void *)(t + 1));
		if (!(seq & 1) && LOAD(t->prune_seq) == seq)
			return;
		nanosleep(&pause, NULL);
	}
}

static bool has_parent(const struct reading *r, uint32_t i)
{
	uint32_t parent = HOOK_TREE_KEY_PARENT(r->raw[i].key), id = HOOK_TREE_KEY_ID(r->raw[i].key);

	return parent && parent < r->n && id <= HOOK_ID_MAX && (id || i == HOOK_TREE_FOLDED);
}

/* Walks to the first node whose place is known and puts those it passed behind it. Each node is
 * passed once, so cycles end, and all of it takes linear time. */
static void place_node(struct reading *r, uint32_t i, struct tree_copy *c, uint64_t now)
{
	uint8_t verdict;

	r->path.n = 0;
	while (r->places[i] == PLACE_UNKNOWN) {
		r->places[i] = PLACE_WALKED;
		vec_push(&r->path, i);
		if (!has_parent(r, i))
			break;
		i = HOOK_TREE_KEY_PARENT(r->raw[i].key);
	}
	verdict = r->places[i] == PLACE_GOOD ? PLACE_GOOD : PLACE_BAD;
	while (r->path.n) {
		struct tree_node node;

		i = r->path.v[--r->path.n];
		r->places[i] = verdict;
		if (verdict == PLACE_BAD) {
			c->n_torn++;
			continue;
		}
		fill_node(&node, i, &r->raw[i], now);
		vec_push(&c->nodes, node);
	}
}

bool tree_copy_read(
	struct tree_copy *c, const void *tree, size_t bytes, uint64_t now_ticks, bool is_over)
{
	const struct hook_tree *t = tree;
	struct reading r = {0};
	struct hook_tree_layout l;

	tree_copy_release(c);
	if (!hook_tree_layout(bytes, &l) || LOAD(t->magic) != HOOK_TREE_MAGIC)
		return false;
	read_tree(&r, t, l.capacity);
	if (is_over)
		now_ticks = LOAD(t->last_ticks);
	else if (now_ticks == TREE_NOW)
		now_ticks = tick_clock_read();
	r.places = mem_zalloc(r.n);
	r.places[HOOK_TREE_ROOT] = PLACE_GOOD;
	for (uint32_t i = HOOK_TREE_FOLDED; i < r.n; i++)
		if (r.raw[i].key) /* 0: free */
			place_node(&r, i, c, now_ticks);
	c->n_pruned = LOAD(t->n_pruned);
	c->pruned_calls = LOAD(t->pruned_calls);
	c->folded_calls = LOAD(t->folded_calls);
	memcpy(c->costs, t->costs, sizeof(c->costs));
	free(r.raw);
	free(r.places);
	vec_release(&r.path);
	return true;
}

/* --- pruning what is written ------------------------------------------------------------------ */

struct pruning {
	struct map kept;   /* number -> elapsed of a node that stays */
	struct map folded; /* id -> position of the function's folded node */
	uint32_t next_number;
};

static void fold_into(struct tree_copy *c, struct pruning *p, const struct tree_node *from)
{
	bool is_new;
	uint64_t *at = map_ensure(&p->folded, from->id, &is_new);
	struct tree_node *to;

	if (is_new) {
		struct tree_node node = {.number = p->next_number++,
			.parent = HOOK_TREE_FOLDED - HOOK_TREE_ROOT,
			.id = from->id,
			.is_folded = true,
			.min = from->min,
			.max = from->max};

		*at = c->nodes.n;
		vec_push(&c->nodes, node);
	}
	to = &c->nodes.v[*at];
	to->calls += from->calls;
	to->min = from->min < to->min ? from->min : to->min;
	to->max = from->max > to->max ? from->max : to->max;
}

/* By permille of the parent, in 128 bits: both may be anything. */
static bool stays(const struct pruning *p, const struct tree_node *n, uint32_t permille)
{
	const uint64_t *parent;

	if (!n->parent || n->is_folded)
		return true;
	parent = map_find(&p->kept, n->parent);
	return parent && (n->is_open || (unsigned __int128)n->elapsed * 1000 >=
						(unsigned __int128)*parent * permille);
}

void tree_copy_prune(struct tree_copy *c, uint32_t permille)
{
	struct pruning p = {0};
	VEC(struct tree_node) gone = {0};
	size_t n = 0;

	for (size_t i = 0; i < c->nodes.n; i++) {
		struct tree_node node = c->nodes.v[i];

		if (node.number >= p.next_number)
			p.next_number = node.number + 1;
		if (!stays(&p, &node, permille)) {
			vec_push(&gone, node);
			continue;
		}
		*map_ensure(&p.kept, node.number, NULL) = node.elapsed;
		if (node.parent == HOOK_TREE_FOLDED - HOOK_TREE_ROOT && node.is_folded)
			*map_ensure(&p.folded, node.id, NULL) = n;
		c->nodes.v[n++] = node;
	}
	c->nodes.n = n;
	for (size_t i = 0; i < gone.n; i++) {
		fold_into(c, &p, &gone.v[i]);
		c->n_pruned++;
		c->pruned_calls += gone.v[i].calls;
	}
	vec_release(&gone);
	map_release(&p.kept);
	map_release(&p.folded);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_node(
	const struct tree_sink *sink, uint32_t stream, uint32_t thread, const struct tree_node *n)
{
	const uint64_t numbers[] = {thread, n->number, n->parent, sink->frame(sink->ctx, n->id),
		n->calls, sink->ns(sink->ctx, n->elapsed), sink->ns(sink->ctx, n->min),
		sink->ns(sink->ctx, n->max)};

	trace_writer_numbers(sink->w, stream, sink->time, RECORD_MAJOR_TREE, RECORD_TREE_NODE,
		numbers, sizeof(numbers) / sizeof(numbers[0]));
}

void tree_copy_write(const struct tree_copy *c, const struct tree_sink *sink, uint32_t tid)
{
	uint32_t thread = sink->thread(sink->ctx, tid);
	uint32_t stream = thread ? trace_writer_stream(sink->w, STREAM_KIND_THREAD, thread) : 0;
	const uint64_t pruned[] = {thread, c->n_pruned, c->pruned_calls, c->folded_calls};
	bool has_folded = c->n_pruned || c->folded_calls;

	if (!thread)
		return;
	for (size_t i = 0; i < c->nodes.n; i++)
		if (c->nodes.v[i].id || has_folded)
			write_node(sink, stream, thread, &c->nodes.v[i]);
	if (has_folded)
		trace_writer_numbers(sink->w, stream, sink->time, RECORD_MAJOR_TREE,
			RECORD_TREE_PRUNED, pruned, sizeof(pruned) / sizeof(pruned[0]));
}

void tree_over_write(const struct tree_sink *sink, uint32_t tid)
{
	uint32_t thread = sink->thread(sink->ctx, tid);

	if (thread)
		trace_writer_numbers(sink->w,
			trace_writer_stream(sink->w, STREAM_KIND_THREAD, thread), sink->time,
			RECORD_MAJOR_TREE, RECORD_TREE_OVER, (uint64_t[]){thread}, 1);
}
