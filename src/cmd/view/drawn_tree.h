/* SPDX-License-Identifier: MIT */
/* A tree as boxes side by side: which boxes there are, depth first, and where they lie. */
#ifndef WEIR_CMD_VIEW_DRAWN_TREE_H
#define WEIR_CMD_VIEW_DRAWN_TREE_H

#include "base/mem.h"
#include "calltree/calltree.h"
#include "cmd/view/question.h"
#include "cmd/view/view_arrays.h"

enum drawn_order { DRAWN_BY_CUM, DRAWN_BY_NAME, DRAWN_BY_TIME }; /* of siblings */

struct drawn_tree {
	enum drawn_order order;
	const struct calltree *t;
	uint64_t *width;     /* by node: its part of the whole and those of all below it */
	VEC(uint32_t) nodes; /* depth first */
	VEC(uint32_t) pending;
};

/* The key `order` of a question; into a drawn tree of zeros, before drawn_tree_init. */
int drawn_tree_take_order(struct drawn_tree *d, const struct question *q, struct err *err);
/* The tree is borrowed. */
void drawn_tree_init(struct drawn_tree *d, const struct calltree *t);
void drawn_tree_release(struct drawn_tree *d);

/* The arrays node, routine, depth, left, width, end. */
#define DRAWN_TREE_ARRAYS 6
void drawn_tree_put(const struct drawn_tree *d, struct buf *out);

#endif
