/* SPDX-License-Identifier: MIT */
/*
 * What is different between two trees: both become trees of one shape, in which each node is a path of
 * functions, so that their figures stand side by side.
 *
 * A function is the same in both when its name and the last part of its image's path are: programs are
 * installed elsewhere, and addresses say nothing from one build to the next. Threads are not told apart,
 * since their number and their ids change from run to run; but those that events measured and those that
 * samples alone know stay two roots when one of the trees has both kinds, as the figures of the one are
 * not part of the other's (calltree.h). Figures of a side are made as those of any tree: exact ones and
 * estimates are never added up.
 */
#ifndef WEIR_QUERY_TREE_DIFF_H
#define WEIR_QUERY_TREE_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calltree/calltree.h"
#include "calltree/flat.h"

enum tree_diff_side { DIFF_BEFORE, DIFF_AFTER, N_DIFF_SIDES };

/* A function, or the threads. */
struct tree_diff_row {
	struct flat_row sides[N_DIFF_SIDES]; /* zeros where it is not there */
	uint64_t samples[N_DIFF_SIDES];	     /* in it and all that it calls; once in recursions */
	bool is_there[N_DIFF_SIDES];
};

struct tree_diff {
	/* Nodes and routines have the same numbers in these three. A node that is not in a side has no
	 * figures there. */
	struct calltree *sides[N_DIFF_SIDES];
	/* Its cum is as wide as it has to be to hold what is in either: the greater one of the parts that
	 * are its own (calltree_split_bases), and the same of all below it. It is for drawing alone. */
	struct calltree *both;
	struct tree_diff_node {
		uint64_t samples[N_DIFF_SIDES]; /* in it and all below it */
		bool is_there[N_DIFF_SIDES];
	} * nodes;
	struct tree_diff_row *rows; /* by routine */
};

/* Both must be finished; nothing of them is kept. O(n). */
void tree_diff_init(
	struct tree_diff *d, const struct calltree *before, const struct calltree *after);
void tree_diff_release(struct tree_diff *d);

#endif
