/* SPDX-License-Identifier: MIT */
#include "formats/folded.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"

/* A longer path shows its ends: a recursion 100,000 deep would make lines of a megabyte. */
#define FOLDED_NAMES_MAX 1024

struct folder {
	const struct profile *profile;
	const char **thread_names; /* by node, for roots */
	struct intern lines;
	VEC(uint64_t) counts; /* by line */
	VEC(uint32_t) path;   /* nodes, innermost first */
	struct buf line;
};

static void put_name(struct buf *b, const char *name)
{
	size_t from = b->n;

	buf_put_cstr(b, name);
	for (size_t i = from; i < b->n; i++) {
		if (b->p[i] == ';')
			b->p[i] = ':';
		else if (b->p[i] == '\n' || b->p[i] == '\r')
			b->p[i] = ' ';
	}
}

static void fold_node(struct folder *f, uint32_t id)
{
	const struct calltree *tree = f->profile->tree;
	uint64_t base = calltree_get(tree, id)->base;
	uint32_t line;

	f->path.n = 0;
	for (uint32_t at = id; at; at = calltree_get(tree, at)->parent)
		vec_push(&f->path, at);
	buf_reset(&f->line);
	for (size_t i = f->path.n; i-- > 0;) {
		uint32_t at = f->path.v[i];

		if (f->path.n > FOLDED_NAMES_MAX && i == f->path.n - 1 - FOLDED_NAMES_MAX / 2) {
			buf_put_cstr(&f->line, ";[...]");
			i = FOLDED_NAMES_MAX / 2;
			continue;
		}
		const struct calltree_node *node = calltree_get(tree, at);

		if (node->parent) {
			buf_put_u8(&f->line, ';');
			put_name(&f->line, calltree_get_routine(tree, node->routine)->name);
		} else {
			put_name(&f->line, f->thread_names[at]);
		}
	}
	line = intern_bytes(&f->lines, f->line.p, f->line.n);
	if (line == f->counts.n)
		vec_push(&f->counts, (uint64_t)0);
	f->counts.v[line] += base;
}

void export_folded(const struct profile *profile, FILE *out)
{
	struct folder f = {.profile = profile};
	size_t n_nodes = calltree_n_nodes(profile->tree);

	f.thread_names = mem_calloc(n_nodes, sizeof(*f.thread_names));
	for (uint32_t id = 1; id < profile->n_threads; id++) {
		const struct profile_thread *thread = &profile->threads[id];

		if (thread->root)
			f.thread_names[thread->root] =
				*thread->name ? thread->name : thread->root_name;
	}
	for (uint32_t id = 1; id < n_nodes; id++)
		if (calltree_get(profile->tree, id)->base)
			fold_node(&f, id);
	for (size_t i = 0; i < f.counts.n; i++)
		fprintf(out, "%s %" PRIu64 "\n", intern_get(&f.lines, (uint32_t)i), f.counts.v[i]);
	free(f.thread_names);
	intern_release(&f.lines);
	vec_release(&f.counts);
	vec_release(&f.path);
	buf_release(&f.line);
}
