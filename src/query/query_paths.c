/* SPDX-License-Identifier: MIT */
/* Places are rows that refer to the place of their caller; place 0 is where threads begin. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "query/query.h"

struct place {
	uint32_t caller, routine;
	bool is_recursive;
	uint64_t weight;
};

struct places {
	const struct calltree *tree;
	struct intern keys; /* caller, routine -> number - 1 */
	VEC(struct place) v;
};

/* Where programs and threads begin, before the first function that somebody wrote for this one. */
static bool is_start(const struct calltree_routine *r)
{
	static const char *const names[] = {"_start", "__libc_start_main", "__libc_start_main_impl",
		"__libc_start_call_main", "clone", "__clone", "clone3", "__clone3", "start_thread",
		"thread_start"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i]);

		/* "__libc_start_main@@GLIBC_2.34" is one, too. */
		if (!strncmp(r->name, names[i], n) && (!r->name[n] || r->name[n] == '@'))
			return r->kind == FRAME_KIND_NATIVE;
	}
	return false;
}

static uint32_t ensure_place(struct places *p, uint32_t caller, uint32_t routine)
{
	uint32_t key[2] = {caller, routine};
	uint32_t id = intern_bytes(&p->keys, key, sizeof(key)) + 1;

	if (id == p->v.n)
		vec_push(&p->v, ((struct place){.caller = caller, .routine = routine}));
	return id;
}

/* The place of a node that is called from this one: an outer one when its routine is there already. Twice
 * in a row may be a function and what was inlined into it under the same name, which is no recursion. */
static uint32_t called_place(struct places *p, uint32_t caller, const struct calltree_node *node)
{
	for (uint32_t at = caller; at; at = p->v.v[at].caller)
		if (p->v.v[at].routine == node->routine) {
			p->v.v[at].is_recursive |= at != caller || node->rl > 2;
			return at;
		}
	return ensure_place(p, caller, node->routine);
}

/* By node; 0 for what belongs to the start. */
static uint32_t *find_places(struct places *p)
{
	size_t n = calltree_n_nodes(p->tree);
	uint32_t *place_of = mem_calloc(n, sizeof(*place_of));

	for (uint32_t id = 1; id < n; id++) { /* callers come first */
		const struct calltree_node *node = calltree_get(p->tree, id);
		uint32_t caller = place_of[node->parent];

		if (!node->parent ||
			(!caller && is_start(calltree_get_routine(p->tree, node->routine))))
			continue;
		place_of[id] = called_place(p, caller, node);
	}
	return place_of;
}

static void weigh(struct places *p, bool by_waiter)
{
	uint64_t *weights = calltree_split_bases(p->tree);
	uint32_t *place_of = find_places(p);

	for (uint32_t id = 1; id < calltree_n_nodes(p->tree); id++) {
		uint32_t at = id, place;

		if (!weights[id] || !calltree_get(p->tree, id)->parent)
			continue;
		if (by_waiter)
			at = query_waiter(p->tree, id);
		place = place_of[at];
		if (!place) /* the start itself took time */
			place = ensure_place(p, 0, calltree_get(p->tree, at)->routine);
		p->v.v[place].weight += weights[id];
	}
	free(place_of);
	free(weights);
}

static void fill_path(const struct places *p, uint32_t place, struct query_path *path)
{
	size_t n = 0;

	for (uint32_t at = place; at; at = p->v.v[at].caller)
		n++;
	*path = (struct query_path){.weight = p->v.v[place].weight,
		.n = n,
		.routines = mem_calloc(n, sizeof(*path->routines)),
		.is_recursive = mem_calloc(n, sizeof(*path->is_recursive))};
	for (uint32_t at = place; at; at = p->v.v[at].caller) {
		path->routines[--n] = p->v.v[at].routine;
		path->is_recursive[n] = p->v.v[at].is_recursive;
	}
}

/* Those of the same weight in order of first sight. */
static size_t find_top(const struct places *p, uint32_t *top, size_t max)
{
	size_t n = 0;

	for (uint32_t id = 1; id < p->v.n; id++) {
		size_t at = n;

		while (at > 0 && p->v.v[top[at - 1]].weight < p->v.v[id].weight)
			at--;
		if (!p->v.v[id].weight || at == max)
			continue;
		n = n < max ? n + 1 : max;
		memmove(top + at + 1, top + at, (n - 1 - at) * sizeof(*top));
		top[at] = id;
	}
	return n;
}

void query_paths_init(
	struct query_paths *paths, const struct calltree *tree, bool by_waiter, size_t max)
{
	struct places p = {.tree = tree};
	uint32_t *top = mem_calloc(max, sizeof(*top));

	vec_push(&p.v, (struct place){0});
	weigh(&p, by_waiter);
	paths->n = find_top(&p, top, max);
	paths->v = mem_calloc(paths->n, sizeof(*paths->v));
	for (size_t i = 0; i < paths->n; i++)
		fill_path(&p, top[i], &paths->v[i]);
	free(top);
	intern_release(&p.keys);
	vec_release(&p.v);
}

void query_paths_release(struct query_paths *paths)
{
	for (size_t i = 0; i < paths->n; i++) {
		free(paths->v[i].routines);
		free(paths->v[i].is_recursive);
	}
	free(paths->v);
	*paths = (struct query_paths){0};
}
