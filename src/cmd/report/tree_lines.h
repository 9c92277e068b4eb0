/* SPDX-License-Identifier: MIT */
/*
 * The lines of a tree that is drawn on a terminal. A function that is the only one below its caller
 * stands right below it, without a line: paths may be deep, and only where they part is there
 * something to see.
 *
 *      main
 *      run
 *      |- parse
 *      |  lex
 *      `- eval
 */
#ifndef WEIR_CMD_REPORT_TREE_LINES_H
#define WEIR_CMD_REPORT_TREE_LINES_H

#include "base/mem.h"
#include "calltree/calltree.h"
#include "cmd/report/terminal.h"

struct tree_lines {
	const struct terminal *terminal;
	struct tree_line {
		uint32_t level;
		bool has_line; /* its caller has others below it */
		bool is_last;  /* of those below its caller */
	} * rows;
	struct buf before; /* what stands before the functions below the row that was put last */
	VEC(size_t) before_bytes; /* of it, by level of the caller */
};

/* The nodes are as they are shown: depth first, callers before what they call. */
void tree_lines_init(struct tree_lines *lines, const struct terminal *terminal,
	const struct calltree *tree, const uint32_t *nodes, size_t n);
void tree_lines_release(struct tree_lines *lines);
/* What stands before the name in row i; rows are asked for one after the other. */
void tree_lines_put(struct tree_lines *lines, size_t i, struct buf *to);

#endif
