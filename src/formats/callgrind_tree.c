/* SPDX-License-Identifier: MIT */
/*
 * Any call tree. A function is a routine of the tree; its file is that of the first of its frames that
 * has one, and lines are not known. Threads are no functions, but for what they used themselves.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "calltree/frame_names.h"
#include "formats/callgrind_model.h"

static uint32_t key_of(struct intern *keys, struct buf *b, const char *name, const char *image)
{
	buf_reset(b);
	buf_put(b, name, strlen(name) + 1);
	buf_put(b, image, strlen(image) + 1);
	return intern_bytes(keys, b->p, b->n);
}

/* Routine i + 1 is function i. */
static void add_functions(struct callgrind_model *m, const struct profile *p)
{
	size_t n = calltree_n_routines(p->tree);
	struct frame_levels *levels = mem_alloc(sizeof(*levels));
	struct intern keys = {0};
	struct map function_of = {0}; /* key -> function + 1 */
	struct buf b = {0};

	for (uint32_t id = 1; id < n; id++) {
		const struct calltree_routine *r = calltree_get_routine(p->tree, id);
		struct callgrind_function f = {.name = r->name, .file = "", .object = r->image};

		if (!r->is_root)
			*map_ensure(&function_of, key_of(&keys, &b, r->name, r->image), NULL) = id;
		vec_push(&m->functions, f);
	}
	for (uint32_t frame = 1; frame < trace_reader_n_frames(p->reader); frame++) {
		frame_names_get(p->reader, frame, levels);
		for (size_t i = 0; i < levels->n; i++) {
			const struct frame_level *level = &levels->v[i];
			const uint64_t *id;

			if (!level->file)
				continue;
			id = map_find(&function_of, key_of(&keys, &b, level->name, level->image));
			if (id && !*m->functions.v[*id - 1].file)
				m->functions.v[*id - 1].file = level->file;
		}
	}
	buf_release(&b);
	map_release(&function_of);
	intern_release(&keys);
	free(levels);
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

void callgrind_from_tree(struct callgrind_model *m, const struct profile *p)
{
	size_t n = calltree_n_nodes(p->tree);
	uint64_t *weights = calltree_split_bases(p->tree);
	uint64_t *cums = mem_calloc(n, sizeof(*cums));

	m->events[0] = event_name(m, p->metric);
	m->titles[0] = strcmp(p->unit, "1") ? p->unit : m->events[0];
	m->n_events = 1;
	add_functions(m, p);
	/* Children have greater ids than their parents. */
	for (size_t id = n; id-- > 1;) {
		const struct calltree_node *node = calltree_get(p->tree, (uint32_t)id);
		const struct calltree_node *parent =
			node->parent ? calltree_get(p->tree, node->parent) : NULL;
		struct callgrind_cost cost = {
			.function = node->routine - 1, .values = {weights[id]}};
		struct callgrind_call call = {.callee = node->routine - 1, .calls = node->calls};

		cost.file = m->functions.v[cost.function].file;
		if (weights[id])
			vec_push(&m->costs, cost);
		cums[id] += weights[id];
		cums[node->parent] += cums[id];
		call.values[0] = cums[id];
		call.caller = parent ? parent->routine - 1 : 0;
		if (parent && parent->parent && !p->counts.is_flat)
			vec_push(&m->calls, call);
	}
	free(cums);
	free(weights);
}
