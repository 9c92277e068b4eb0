/* SPDX-License-Identifier: MIT */
/* Any bytes as the memory of a thread's tree: read, pruned, written. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "record/hooks/tree_snapshot.h"
#include "rt/hook/hook_tree.h"

#define BYTES_MAX (64u << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const struct tree_copy *c)
{
	struct map seen = {0};

	/* Each node once, behind its parent. */
	for (size_t i = 0; i < c->nodes.n; i++) {
		bool is_new;

		if (c->nodes.v[i].parent && !map_find(&seen, c->nodes.v[i].parent))
			abort();
		*map_ensure(&seen, c->nodes.v[i].number, &is_new) = 1;
		if (!is_new)
			abort();
	}
	map_release(&seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct tree_copy c = {0};
	struct hook_tree *t;

	if (n < 8 || n > BYTES_MAX)
		return 0;
	t = aligned_alloc(64, (n + 63) / 64 * 64);
	if (!t)
		return 0;
	memcpy(t, data, n);
	t->magic = HOOK_TREE_MAGIC;
	/* A program that is in the midst of pruning for ever costs the reader some ms only, but
	 * that is too long here. */
	t->prune_seq = 0;
	if (tree_copy_read(&c, t, n, data[4] * 1000u + 1, data[5] & 1)) {
		check(&c);
		tree_copy_prune(&c, data[6] * 4u);
		check(&c);
	}
	tree_copy_release(&c);
	free(t);
	return 0;
}
