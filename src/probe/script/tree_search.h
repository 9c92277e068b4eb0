/* SPDX-License-Identifier: MIT */
/* Whether something is anywhere in a tree: in statements, their expressions, and the blocks in those. */
#ifndef WEIR_PROBE_SCRIPT_TREE_SEARCH_H
#define WEIR_PROBE_SCRIPT_TREE_SEARCH_H

#include "probe/script/ast.h"

/* What is looked for; either function may be NULL. */
struct tree_search {
	bool (*is_expr)(void *ctx, const struct expr *e);
	bool (*is_stmt)(void *ctx, const struct stmt *s);
	void *ctx;
};

bool expr_has(const struct expr *e, const struct tree_search *what);
/* In `s` and the statements behind it; in `s` alone. */
bool stmts_have(const struct stmt *s, const struct tree_search *what);
bool stmt_has(const struct stmt *s, const struct tree_search *what);

/* A block expression. */
bool expr_has_block(const struct expr *e);
/* A loop that code has to go through at run time. */
bool stmts_have_loop(const struct stmt *s);

#endif
