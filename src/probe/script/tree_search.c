/* SPDX-License-Identifier: MIT */
#include "probe/script/tree_search.h"

bool expr_has(const struct expr *e, const struct tree_search *what)
{
	if (!e)
		return false;
	if (what->is_expr && what->is_expr(what->ctx, e))
		return true;
	if (expr_has(e->a, what) || expr_has(e->b, what) || expr_has(e->c, what) ||
		stmts_have(e->body, what))
		return true;
	for (const struct expr *a = e->args; a; a = a->next)
		if (expr_has(a, what))
			return true;
	return false;
}

bool stmt_has(const struct stmt *s, const struct tree_search *what)
{
	return (what->is_stmt && what->is_stmt(what->ctx, s)) || expr_has(s->a, what) ||
	       expr_has(s->b, what) || stmts_have(s->body, what) || stmts_have(s->other, what);
}

bool stmts_have(const struct stmt *s, const struct tree_search *what)
{
	for (; s; s = s->next)
		if (stmt_has(s, what))
			return true;
	return false;
}

static bool is_block(void *ctx, const struct expr *e)
{
	(void)ctx;
	return e->kind == EXPR_BLOCK;
}

bool expr_has_block(const struct expr *e)
{
	static const struct tree_search blocks = {.is_expr = is_block};

	return expr_has(e, &blocks);
}

static bool is_loop(void *ctx, const struct stmt *s)
{
	(void)ctx;
	return s->kind == STMT_WHILE || s->kind == STMT_FOR || s->kind == STMT_FOR_MAP;
}

bool stmts_have_loop(const struct stmt *s)
{
	static const struct tree_search loops = {.is_stmt = is_loop};

	return stmts_have(s, &loops);
}
