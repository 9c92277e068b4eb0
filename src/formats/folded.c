/* SPDX-License-Identifier: MIT */
#include "formats/exports.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "query/folded_name.h"

struct folder {
	const struct profile *profile;
	const char **thread_names; /* by node, for roots */
	struct intern lines;
	VEC(uint64_t) counts; /* by line */
	VEC(uint32_t) path;   /* by level: the node being folded and its callers */
	struct buf line;
};

static void put_names(struct folder *f, size_t from, size_t to)
{
	const struct calltree *tree = f->profile->tree;

	for (size_t level = from; level < to; level++) {
		const struct calltree_node *node = calltree_get(tree, f->path.v[level]);

		buf_put_u8(&f->line, ';');
		folded_name_put(&f->line, calltree_get_routine(tree, node->routine)->name);
	}
}

/* f->path holds the node and its callers. */
static void fold_node(struct folder *f, const struct calltree_node *node, uint64_t weight)
{
	size_t n = node->level + (size_t)1;
	uint32_t line;

	buf_reset(&f->line);
	folded_name_put(&f->line, f->thread_names[f->path.v[0]]);
	if (n <= FOLDED_NAMES_MAX) {
		put_names(f, 1, n);
	} else {
		put_names(f, 1, FOLDED_NAMES_MAX / 2);
		buf_put_cstr(&f->line, ";[...]");
		put_names(f, n - FOLDED_NAMES_MAX / 2, n);
	}
	line = intern_bytes(&f->lines, f->line.p, f->line.n);
	if (line == f->counts.n)
		vec_push(&f->counts, (uint64_t)0);
	f->counts.v[line] += weight;
}

int export_folded(const struct profile *profile, FILE *out, struct err *err)
{
	struct folder f = {.profile = profile};
	uint64_t *weights = calltree_split_bases(profile->tree);
	size_t n_nodes = calltree_n_nodes(profile->tree);

	(void)err;
	f.thread_names = mem_calloc(n_nodes, sizeof(*f.thread_names));
	for (uint32_t id = 1; id < profile->n_threads; id++) {
		const struct profile_thread *thread = &profile->threads[id];

		if (thread->root)
			f.thread_names[thread->root] =
				*thread->name ? thread->name : thread->root_name;
	}
	for (uint32_t id = calltree_first_root(profile->tree); id;
		id = calltree_next(profile->tree, id)) {
		const struct calltree_node *node = calltree_get(profile->tree, id);

		vec_reserve(&f.path, node->level + (size_t)1);
		f.path.v[node->level] = id;
		if (weights[id])
			fold_node(&f, node, weights[id]);
	}
	for (size_t i = 0; i < f.counts.n; i++)
		fprintf(out, "%s %" PRIu64 "\n", intern_get(&f.lines, (uint32_t)i), f.counts.v[i]);
	free(weights);
	free(f.thread_names);
	intern_release(&f.lines);
	vec_release(&f.counts);
	vec_release(&f.path);
	buf_release(&f.line);
	return 0;
}
