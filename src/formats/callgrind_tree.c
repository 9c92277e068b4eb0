/* SPDX-License-Identifier: MIT */
/*
 * Any call tree. A function is a routine of the tree; its file and line are those of the first of
 * its frames that has some. What samples alone measured goes to their lines. Threads are no
 * functions, but for what they used themselves.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "calltree/frame_names.h"
#include "calltree/sample_walk.h"
#include "formats/callgrind_model.h"

struct tree_export {
	struct callgrind_model *model; /* function i is routine i + 1 */
	const struct profile *profile;
	struct intern keys;	/* name, image */
	struct map function_of; /* key -> function + 1 */
	struct map frames;	/* frame -> weight of samples */
	struct frame_levels *levels;
	struct buf key;
	uint64_t *own;	    /* by function: what its nodes used themselves */
	uint64_t *in_lines; /* by function: what its lines add up to */
};

static uint32_t key_of(struct tree_export *e, const char *name, const char *image)
{
	buf_reset(&e->key);
	buf_put(&e->key, name, strlen(name) + 1);
	buf_put(&e->key, image, strlen(image) + 1);
	return intern_bytes(&e->keys, e->key.p, e->key.n);
}

static void add_functions(struct tree_export *e)
{
	const struct calltree *tree = e->profile->tree;

	for (uint32_t id = 1; id < calltree_n_routines(tree); id++) {
		const struct calltree_routine *r = calltree_get_routine(tree, id);
		struct callgrind_function f = {.name = r->name, .file = "", .object = r->image};

		if (!r->is_root)
			*map_ensure(&e->function_of, key_of(e, r->name, r->image), NULL) = id;
		vec_push(&e->model->functions, f);
	}
}

/* The function of a level + 1, 0 when there is none; it gets its place when it has none yet. */
static uint32_t function_at(struct tree_export *e, const struct frame_level *level)
{
	const uint64_t *id = map_find(&e->function_of, key_of(e, level->name, level->image));
	struct callgrind_function *f = id ? &e->model->functions.v[*id - 1] : NULL;

	if (f && level->file && !*f->file) {
		f->file = level->file;
		f->line = level->line;
	}
	return id ? (uint32_t)*id : 0;
}

static void add_frames(struct tree_export *e)
{
	const struct trace_reader *r = e->profile->reader;

	for (uint32_t frame = 1; frame < trace_reader_n_frames(r); frame++) {
		const uint64_t *weight = map_find(&e->frames, frame);
		struct callgrind_cost cost = {.values = {weight ? *weight : 0}};

		frame_names_get(r, frame, e->levels);
		for (size_t i = e->levels->n; i-- > 0;)
			cost.function = function_at(e, &e->levels->v[i]);
		if (!cost.function-- || !cost.values[0])
			continue;
		cost.file = e->levels->v[0].file ? e->levels->v[0].file : "";
		cost.line = e->levels->v[0].line;
		e->in_lines[cost.function] += cost.values[0];
		vec_push(&e->model->costs, cost);
	}
}

/* Lines count where they are all that the function used: events measure it as a whole. */
static void settle_costs(struct tree_export *e)
{
	struct callgrind_model *m = e->model;
	size_t n = 0;

	for (size_t i = 0; i < m->costs.n; i++)
		if (e->in_lines[m->costs.v[i].function] == e->own[m->costs.v[i].function])
			m->costs.v[n++] = m->costs.v[i];
	m->costs.n = n;
	for (uint32_t i = 0; i < m->functions.n; i++) {
		struct callgrind_cost cost = {.function = i,
			.file = m->functions.v[i].file,
			.line = m->functions.v[i].line,
			.values = {e->own[i]}};

		if (e->own[i] && e->own[i] != e->in_lines[i])
			vec_push(&m->costs, cost);
	}
}

static void add_nodes(struct tree_export *e)
{
	const struct calltree *tree = e->profile->tree;
	size_t n = calltree_n_nodes(tree);
	uint64_t *weights = calltree_split_bases(tree);
	uint64_t *cums = mem_calloc(n + 1, sizeof(*cums));

	/* Children have greater ids than their parents. */
	for (size_t id = n; id-- > 1;) {
		const struct calltree_node *node = calltree_get(tree, (uint32_t)id);
		const struct calltree_node *parent =
			node->parent ? calltree_get(tree, node->parent) : NULL;
		struct callgrind_call call = {.callee = node->routine - 1, .calls = node->calls};

		e->own[node->routine - 1] += weights[id];
		cums[id] += weights[id];
		cums[node->parent] += cums[id];
		call.values[0] = cums[id];
		/* Without calls there are no sums of calls; threads are not callers. */
		if (!parent || !parent->parent || e->profile->counts.is_flat)
			continue;
		call.caller = parent->routine - 1;
		call.line = e->model->functions.v[call.caller].line;
		vec_push(&e->model->calls, call);
	}
	free(cums);
	free(weights);
}

/* An event's name is one word. */
static const char *event_name(struct callgrind_model *m, const char *metric)
{
	char name[64];
	size_t n = 0;

	for (; metric[n] && n + 1 < sizeof(name); n++)
		name[n] = isalnum((unsigned char)metric[n]) ? metric[n] : '_';
	name[n] = 0;
	return intern_get(&m->texts, intern_text(&m->texts, n ? name : "cost"));
}

int callgrind_from_tree(struct callgrind_model *m, const struct profile *p, struct err *err)
{
	size_t n = calltree_n_routines(p->tree);
	struct tree_export e = {.model = m, .profile = p};
	int rc = sample_frames_sum(&e.frames, p, err);

	if (rc == 0) {
		e.levels = mem_alloc(sizeof(*e.levels));
		e.own = mem_calloc(n + 1, sizeof(*e.own));
		e.in_lines = mem_calloc(n + 1, sizeof(*e.in_lines));
		m->events[0] = event_name(m, p->metric);
		m->titles[0] = strcmp(p->unit, "1") ? p->unit : m->events[0];
		m->n_events = 1;
		add_functions(&e);
		add_frames(&e);
		add_nodes(&e);
		settle_costs(&e);
	}
	free(e.levels);
	free(e.own);
	free(e.in_lines);
	intern_release(&e.keys);
	map_release(&e.function_of);
	map_release(&e.frames);
	buf_release(&e.key);
	return rc;
}
