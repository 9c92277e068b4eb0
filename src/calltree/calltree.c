/* SPDX-License-Identifier: MIT */
/*
 * The tree itself: routines, nodes, the sums. Children have greater ids than their parents, so one
 * pass backwards over the array adds up cum and one pass forwards gives the levels; nothing here
 * recurses, since a tree may be as deep as the program's stack.
 */
#include "calltree/tree_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"

#define CHILDREN_CAP_FIRST 256
#define NODES_CAP_FIRST	   64
#define CACHE_LINE	   64

static void grow_nodes(struct calltree *t)
{
	size_t cap = t->cap_nodes ? t->cap_nodes * 2 : NODES_CAP_FIRST;
	char *block = mem_alloc(cap * sizeof(*t->nodes) + CACHE_LINE);
	struct calltree_node *nodes =
		(struct calltree_node *)(block + CACHE_LINE - (uintptr_t)block % CACHE_LINE);

	static_assert(sizeof(*nodes) == 2 * CACHE_LINE, "a node is two cache lines");
	if (t->n_nodes)
		memcpy(nodes, t->nodes, t->n_nodes * sizeof(*nodes));
	free(t->nodes_block);
	t->nodes_block = block;
	t->nodes = nodes;
	t->cap_nodes = cap;
}

static uint32_t push_node(struct calltree *t, struct calltree_node node)
{
	assert(t->n_nodes < UINT32_MAX);
	if (t->n_nodes == t->cap_nodes)
		grow_nodes(t);
	t->nodes[t->n_nodes] = node;
	vec_push(&t->seen, t->time);
	return (uint32_t)t->n_nodes++;
}

struct calltree *calltree_new(void)
{
	struct calltree *t = mem_zalloc(sizeof(*t));
	struct calltree_routine no_routine = {.name = "", .image = ""};

	vec_push(&t->routines, no_routine);
	push_node(t, (struct calltree_node){.min = UINT64_MAX});
	return t;
}

void calltree_free(struct calltree *t)
{
	if (!t)
		return;
	vec_release(&t->routines);
	free(t->nodes_block);
	vec_release(&t->seen);
	intern_release(&t->keys);
	free(t->children);
	buf_release(&t->key);
	vec_release(&t->last_instance);
	intern_release(&t->sites);
	vec_release(&t->site_of);
	free(t->costs);
	free(t);
}

static uint32_t routine_of_class(
	struct calltree *t, const char *name, const char *image, uint8_t class)
{
	struct calltree_routine routine = {.name = NULL};
	uint32_t id;

	buf_reset(&t->key);
	buf_put(&t->key, name, strlen(name) + 1);
	buf_put(&t->key, image, strlen(image) + 1);
	buf_put_u8(&t->key, class);
	id = intern_bytes(&t->keys, t->key.p, t->key.n) + 1;
	if (id < t->routines.n)
		return id;
	assert(id == t->routines.n);
	routine.name = intern_get(&t->keys, id - 1);
	routine.image = routine.name + strlen(name) + 1;
	vec_push(&t->routines, routine);
	vec_ensure_zero(&t->last_instance, t->routines.n);
	return id;
}

uint32_t calltree_routine(
	struct calltree *t, const char *name, const char *image, enum frame_kind kind)
{
	bool is_native = kind == FRAME_KIND_NATIVE || kind == FRAME_KIND_INLINE;
	uint32_t id =
		routine_of_class(t, name, image, is_native ? FRAME_KIND_NATIVE : (uint8_t)kind);
	struct calltree_routine *routine = &t->routines.v[id];

	if (!routine->kind || kind == FRAME_KIND_NATIVE)
		routine->kind = kind;
	return id;
}

static uint32_t new_node(struct calltree *t, uint32_t parent, uint32_t routine)
{
	uint32_t id = push_node(t,
		(struct calltree_node){
			.routine = routine, .parent = parent, .sampled = true, .min = UINT64_MAX});
	uint32_t *last = parent ? &t->nodes[parent].last_child : &t->last_root;

	if (*last)
		t->nodes[*last].next_sibling = id;
	else if (parent)
		t->nodes[parent].first_child = id;
	else
		t->first_root = id;
	*last = id;
	if (t->routines.v[routine].first_instance)
		t->nodes[t->last_instance.v[routine]].next_instance = id;
	else
		t->routines.v[routine].first_instance = id;
	t->last_instance.v[routine] = id;
	t->is_unsorted |= t->time < t->seen.v[id - 1];
	return id;
}

uint32_t calltree_root(struct calltree *t, const char *name)
{
	uint32_t id = routine_of_class(t, name, "", 0);
	struct calltree_routine *routine = &t->routines.v[id];

	routine->is_root = true;
	return routine->first_instance ? routine->first_instance : new_node(t, 0, id);
}

uint32_t calltree_site(const struct calltree *t, uint32_t node)
{
	return node < t->site_of.n ? t->site_of.v[node] : 0;
}

const char *calltree_site_label(const struct calltree *t, uint32_t site)
{
	return site ? intern_get(&t->sites, site - 1) : "";
}

static void set_site(struct calltree *t, uint32_t node, uint32_t site)
{
	if (!site)
		return;
	vec_ensure_zero(&t->site_of, node + (size_t)1);
	t->site_of.v[node] = site;
}

/* The slot of the child, or the empty one where it belongs. Keys are in the nodes themselves. */
static uint32_t *child_slot(
	const struct calltree *t, uint32_t parent, uint32_t routine, uint32_t site)
{
	size_t mask = t->cap_children - 1;
	uint64_t key = (uint64_t)parent << 32 | routine;
	size_t i = (site ? map_hash_mix(map_hash(key), site) : map_hash(key)) & mask;

	for (; t->children[i]; i = (i + 1) & mask) {
		const struct calltree_node *node = &t->nodes[t->children[i]];

		if (node->parent == parent && node->routine == routine &&
			calltree_site(t, t->children[i]) == site)
			break;
	}
	return &t->children[i];
}

uint32_t calltree_look_up(const struct calltree *t, uint32_t parent, uint32_t routine)
{
	return t->cap_children ? *child_slot(t, parent, routine, 0) : 0;
}

/* At most half full: the table is small beside the nodes. */
static void grow_children(struct calltree *t)
{
	free(t->children);
	t->cap_children = t->cap_children ? t->cap_children * 2 : CHILDREN_CAP_FIRST;
	t->children = mem_calloc(t->cap_children, sizeof(*t->children));
	for (uint32_t id = 1; id < t->n_nodes; id++) {
		const struct calltree_node *node = &t->nodes[id];

		if (node->parent)
			*child_slot(t, node->parent, node->routine, calltree_site(t, id)) = id;
	}
}

uint32_t calltree_find_child(struct calltree *t, uint32_t parent, uint32_t routine, uint32_t site)
{
	uint32_t *slot;

	assert(parent && parent < t->n_nodes && routine && routine < t->routines.n);
	if (t->n_nodes * 2 >= t->cap_children)
		grow_children(t);
	slot = child_slot(t, parent, routine, site);
	if (!*slot) {
		*slot = new_node(t, parent, routine);
		set_site(t, *slot, site);
	}
	if (t->nodes[parent].last_used)
		t->nodes[t->nodes[parent].last_used].after = *slot;
	t->nodes[parent].last_used = *slot;
	return *slot;
}

uint32_t calltree_child(struct calltree *t, uint32_t parent, uint32_t routine)
{
	return tree_child(t, parent, routine);
}

uint32_t calltree_child_at(struct calltree *t, uint32_t parent, uint32_t routine, const char *site)
{
	return calltree_find_child(
		t, parent, routine, *site ? intern_text(&t->sites, site) + 1 : 0);
}

void calltree_set_time(struct calltree *t, uint64_t time)
{
	t->time = time;
}

void calltree_add_sample(struct calltree *t, uint32_t node, uint64_t weight, uint64_t n_samples)
{
	t->nodes[node].sampled_base += weight;
	t->nodes[node].samples += n_samples;
	t->has_samples = true;
	t->has_estimates |= weight != 0;
}

void calltree_measure_by_samples(struct calltree *t)
{
	t->is_by_samples = true;
}

void calltree_add_calls(
	struct calltree *t, uint32_t id, const struct calltree_calls *calls, bool timed)
{
	struct calltree_node *node = &t->nodes[id];

	t->has_events = true;
	node->sampled = false;
	node->timed |= timed;
	node->calls += calls->calls;
	node->elapsed += calls->elapsed;
	if (timed)
		node->base += calls->base;
	t->ranges_are_raw = true;
	if (calls->min > calls->max)
		return;
	node->min = calls->min < node->min ? calls->min : node->min;
	node->max = calls->max > node->max ? calls->max : node->max;
}

/* ---- trees out of trees ---- */

struct calltree *calltree_new_like(const struct calltree *from)
{
	struct calltree *t = calltree_new();

	t->has_events = from->has_events;
	t->has_samples = from->has_samples;
	t->has_estimates = from->has_estimates;
	t->is_by_samples = from->is_by_samples;
	t->cost_sums = from->cost_sums;
	return t;
}

/* Of a node that is an estimate, base is sampled_base once more. */
void calltree_add_figures(struct calltree *t, uint32_t id, const struct calltree_node *figures,
	enum calltree_share share)
{
	struct calltree_node *node = &t->nodes[id];

	if (share == CALLTREE_SHARE_NONE)
		return;
	if (share != CALLTREE_SHARE_SELF) {
		node->sampled &= figures->sampled;
		node->timed |= figures->timed;
		node->stack_kinds |= figures->stack_kinds;
	}
	if (share == CALLTREE_SHARE_KIND)
		return;
	node->base += figures->exact ? figures->base : 0;
	node->sampled_base += figures->sampled_base;
	node->samples += figures->samples;
	if (share == CALLTREE_SHARE_SELF)
		return;
	node->calls += figures->calls;
	node->occurrences += figures->occurrences;
	node->stack_events += figures->stack_events;
	node->elapsed += share == CALLTREE_SHARE_ALL ? figures->elapsed : 0;
	node->min = figures->min < node->min ? figures->min : node->min;
	node->max = figures->max > node->max ? figures->max : node->max;
}

/* ---- order of first sight ---- */

/* Takes the nodes apart and creates them again in order: the links follow by themselves. */
static void create_again(struct calltree *t, const struct sort_pair *order, size_t n)
{
	struct calltree_node *old = mem_dup(t->nodes, n * sizeof(*old));
	uint32_t *new_of = mem_calloc(n, sizeof(*new_of));
	uint32_t *old_sites = t->site_of.v;
	size_t n_sites = t->site_of.n;

	memset(&t->site_of, 0, sizeof(t->site_of));
	for (size_t i = 1; i < t->routines.n; i++)
		t->routines.v[i].first_instance = 0;
	free(t->children);
	t->children = NULL;
	t->cap_children = 0;
	t->n_nodes = t->seen.n = 1;
	t->first_root = t->last_root = 0;
	for (size_t i = 1; i < n; i++) {
		const struct calltree_node *from = &old[order[i].i];
		struct calltree_node links, *to;
		uint32_t id;

		t->time = order[i].key;
		id = new_node(t, new_of[from->parent], from->routine);
		new_of[order[i].i] = id;
		set_site(t, id, order[i].i < n_sites ? old_sites[order[i].i] : 0);
		to = &t->nodes[id];
		links = *to;
		*to = *from;
		to->parent = links.parent;
		to->last_used = to->after = 0;
		to->first_child = to->last_child = to->next_sibling = to->next_instance = 0;
	}
	free(new_of);
	free(old_sites);
	free(old);
}

/* Threads are built one after another, or in turns; the order of ids shall not depend on that. A
 * parent is never seen after its child, so it stays in front of it. */
static void sort_nodes(struct calltree *t)
{
	size_t n = t->n_nodes;
	struct sort_pair *order; /* time of first sight, node */

	if (!t->is_unsorted)
		return;
	order = mem_calloc(n, sizeof(*order));
	for (uint32_t id = 1; id < n; id++) {
		uint64_t seen = t->seen.v[id], parents = order[t->nodes[id].parent].key;

		if (seen < parents) /* of a trace whose times are wrong */
			seen = parents;
		order[id] = (struct sort_pair){seen, id};
	}
	sort_pairs(order + 1, n - 1);
	create_again(t, order, n);
	free(order);
	t->is_unsorted = false;
}

/* ---- sums ---- */

/* Goes through the tree in depth-first order with a count of open instances for each routine. */
static void number_recursion(struct calltree *t)
{
	uint32_t *open = mem_calloc(t->routines.n, sizeof(*open));
	uint32_t id = t->first_root;

	while (id) {
		struct calltree_node *node = &t->nodes[id];

		node->rl = ++open[node->routine];
		if (node->first_child) {
			id = node->first_child;
			continue;
		}
		for (;;) {
			open[node->routine]--;
			id = node->next_sibling;
			if (id || !node->parent)
				break;
			node = &t->nodes[node->parent];
		}
	}
	free(open);
}

void calltree_finish(struct calltree *t)
{
	sort_nodes(t);
	calltree_take_costs(t);
	for (size_t i = 1; i < t->n_nodes; i++) {
		struct calltree_node *node = &t->nodes[i];

		node->exact = node->timed && !t->is_by_samples;
		node->cum = node->exact ? node->base : 0;
		node->sampled_cum = node->sampled_base;
		node->level = node->parent ? t->nodes[node->parent].level + 1 : 0;
		t->routines.v[node->routine].has_events |= !node->sampled;
	}
	for (size_t i = t->n_nodes - 1; i > 0; i--) {
		struct calltree_node *node = &t->nodes[i];
		struct calltree_node *parent = &t->nodes[node->parent];

		if (!node->exact) { /* its own sum is complete: all children came before */
			node->base = node->sampled_base;
			node->cum = node->sampled_cum;
		}
		parent->sampled_cum += node->sampled_cum;
		if (node->exact && parent->exact)
			parent->cum += node->cum;
	}
	t->nodes[0].sampled_cum = 0;
	calltree_widen_ranges(t);
	number_recursion(t);
}

uint64_t *calltree_split_bases(const struct calltree *t)
{
	size_t n = t->n_nodes;
	uint64_t *weights = mem_calloc(n, sizeof(*weights));
	uint64_t *claimed =
		mem_calloc(n, sizeof(*claimed)); /* by event node: what chains ask for */
	uint32_t *enclosing = mem_calloc(n, sizeof(*enclosing)); /* event node; 0 = none */

	for (size_t i = 1; i < n; i++) {
		const struct calltree_node *node = &t->nodes[i];
		uint32_t parent = node->parent;

		weights[i] = node->base;
		if (node->exact)
			continue;
		enclosing[i] = t->nodes[parent].exact ? parent : enclosing[parent];
		claimed[enclosing[i]] += node->sampled_base;
	}
	for (size_t i = 1; i < n; i++) {
		uint64_t base = t->nodes[enclosing[i]].base, wanted = claimed[enclosing[i]];

		if (!enclosing[i])
			continue;
		if (wanted > base)
			weights[i] = (uint64_t)((long double)weights[i] * base / wanted);
		if (weights[i] > weights[enclosing[i]]) /* by rounding */
			weights[i] = weights[enclosing[i]];
		weights[enclosing[i]] -= weights[i];
	}
	free(claimed);
	free(enclosing);
	return weights;
}

size_t calltree_n_nodes(const struct calltree *t)
{
	return t->n_nodes;
}

const struct calltree_node *calltree_get(const struct calltree *t, uint32_t node)
{
	return &t->nodes[node];
}

size_t calltree_n_routines(const struct calltree *t)
{
	return t->routines.n;
}

const struct calltree_routine *calltree_get_routine(const struct calltree *t, uint32_t routine)
{
	return &t->routines.v[routine];
}

uint32_t calltree_first_root(const struct calltree *t)
{
	return t->first_root;
}

uint32_t calltree_next(const struct calltree *t, uint32_t node)
{
	if (t->nodes[node].first_child)
		return t->nodes[node].first_child;
	while (node && !t->nodes[node].next_sibling)
		node = t->nodes[node].parent;
	return node ? t->nodes[node].next_sibling : CALLTREE_NONE;
}

uint64_t calltree_total(const struct calltree *t)
{
	uint64_t total = 0;

	for (uint32_t id = t->first_root; id; id = t->nodes[id].next_sibling)
		total += t->nodes[id].cum;
	return total;
}

bool calltree_has_events(const struct calltree *t)
{
	return t->has_events;
}

bool calltree_has_samples(const struct calltree *t)
{
	return t->has_samples;
}

bool calltree_has_estimates(const struct calltree *t)
{
	return t->has_estimates;
}

bool calltree_begins_chain(const struct calltree *t, uint32_t id)
{
	const struct calltree_node *node = &t->nodes[id];

	return node->sampled && node->parent && !t->nodes[node->parent].sampled;
}
