/* SPDX-License-Identifier: MIT */
/* Statements. A branch behind a constant condition that never takes it is not looked at. */
#include <string.h>

#include "probe/compile/builtin.h"

#define UNROLL_MAX 100

static void check_block(struct check_clause *c, struct stmt *body)
{
	c->scope++;
	check_stmts(c, body);
	check_close_block(c);
}

const struct type *check_block_value(struct check_clause *c, struct expr *e)
{
	const struct type *type;

	c->scope++;
	check_stmts(c, e->body);
	/* Before the variables of the block go out of sight. */
	type = e->a ? check_expr(c, e->a) : check_void(c);
	check_close_block(c);
	return type;
}

static void check_loop_body(struct check_clause *c, struct stmt *body)
{
	c->n_loops++;
	check_block(c, body);
	c->n_loops--;
}

static bool has_effect(const struct check_clause *c, const struct expr *e)
{
	if (e->kind == EXPR_TERNARY)
		return has_effect(c, e->b) || has_effect(c, e->c);
	if (e->kind == EXPR_BINARY && (e->op == OP_LOGICAL_AND || e->op == OP_LOGICAL_OR))
		return has_effect(c, e->b);
	if (e->kind == EXPR_CALL && check_meaning(c, e))
		return check_row(c, e)->has_effect;
	return e->kind == EXPR_ASSIGN || e->kind == EXPR_STEP || e->kind == EXPR_BLOCK;
}

static void check_expr_stmt(struct check_clause *c, struct stmt *s)
{
	const struct type *type = check_expr(c, s->a);

	if (type->kind == TYPE_AGGREGATION) {
		check_error(c, s->a->place, "aggregation",
			"an aggregation can only be assigned to a map");
		check_hint(c, "write @x = %s(...);", s->a->name ? s->a->name : "count");
	} else if (type->kind != TYPE_VOID && type->kind != TYPE_BAD && !s->is_discarded &&
		   !has_effect(c, s->a)) {
		check_warning(c, s->a->place, "unused", "this value is not used");
	}
}

static void check_if(struct check_clause *c, struct stmt *s)
{
	bool ok = check_scalar(c, s->a, "a condition");

	if (ok && s->a->is_constant[c->mode]) {
		check_block(c, s->a->constant[c->mode] ? s->body : s->other);
		return;
	}
	check_block(c, s->body);
	check_block(c, s->other);
}

static void check_while(struct check_clause *c, struct stmt *s)
{
	if (check_scalar(c, s->a, "a condition") && s->a->is_constant[c->mode] &&
		!s->a->constant[c->mode])
		return;
	check_loop_body(c, s->body);
}

/* A loop with a variable that belongs to it. */
static void check_loop(struct check_clause *c, struct stmt *s, const struct type *type)
{
	struct variable *v;

	c->scope++;
	v = check_declare(c, s->name, s->place, s);
	v->type[c->mode] = type;
	v->is_assigned = v->is_declared = v->is_loop = true;
	check_loop_body(c, s->body);
	check_close_block(c);
}

static void check_for(struct check_clause *c, struct stmt *s)
{
	check_integer(c, s->a, "the start of a range");
	check_integer(c, s->b, "the end of a range");
	check_loop(c, s, check_int(c, 8, true));
}

/* $kv is (key, value). */
static const struct type *entry_type(struct check_clause *c, struct stmt *s, struct map_use *m)
{
	const struct type *of[2];

	if (!m || !m->key || !m->value)
		return check_bad(c); /* not learned yet */
	if (m->key->kind == SHAPE_NONE)
		return check_refuse(c, s->a->place, "key", "%s has no keys to go through", m->name);
	if (shape_is_aggregation(m->value) && !shape_is_readable(m->value)) {
		check_error(
			c, s->a->place, "aggregation", "the values of %s are not numbers", m->name);
		return check_hint(c, "print(%s) prints it", m->name);
	}
	of[0] = check_shape_type(check_types(c), m->key);
	of[1] = check_map_value_type(c, m);
	return types_tuple(check_types(c), of, 2);
}

static void check_for_map(struct check_clause *c, struct stmt *s)
{
	struct map_use *m = check_map_of(c, s->a);

	if (m)
		m->is_read = true;
	s->a->type[c->mode] = check_void(c);
	check_loop(c, s, entry_type(c, s, m));
}

static void check_unroll(struct check_clause *c, struct stmt *s)
{
	int64_t n;

	if (check_constant(c, s->a, "the count of unroll", &n) && (n < 1 || n > UNROLL_MAX))
		check_error(c, s->a->place, "range", "unroll %s value is %d",
			n < 1 ? "minimum" : "maximum", n < 1 ? 1 : UNROLL_MAX);
	check_loop_body(c, s->body);
}

static const struct type *declared_type(struct check_clause *c, struct stmt *s)
{
	const struct type *type = check_declared(c, s->decl, check_space(c));

	if (type->kind == TYPE_BAD || type_is_scalar(type) || type->kind == TYPE_STRING ||
		type->kind == TYPE_STRUCT || type->kind == TYPE_ARRAY ||
		s->decl->kind == DECL_TYPEOF)
		return type;
	check_error(c, s->decl->place, "type", "a variable cannot be declared as %s",
		type_text(c, type));
	return check_hint(c, "integers, pointers and string[N] can");
}

static void check_let(struct check_clause *c, struct stmt *s)
{
	const struct type *type = NULL, *value = s->b ? check_value(c, s->b) : NULL;
	struct variable *v = check_declare(c, s->a->name, s->a->place, s);

	if (v->is_loop)
		return;			   /* reported: the name is taken */
	v->is_let = v->is_assigned = true; /* 0 without a value */
	if (s->decl) {
		/* A string without a length is as long as what is assigned to it. */
		bool is_open = s->decl->kind == DECL_STRING && !s->decl->n;

		type = is_open ? types_string(check_types(c), 1) : declared_type(c, s);
		v->is_declared = !is_open;
		/* A pointer may have learned which memory it is for. */
		is_open |= type->kind == TYPE_POINTER;
		if (!is_open || !v->type[c->mode])
			v->type[c->mode] = type->kind == TYPE_BAD ? NULL : type;
	}
	if (value && (!type || type->kind != TYPE_BAD))
		check_assign_variable(c, v, value, s->b, s->place, false);
	check_mean(c, s->a, MEANING_VARIABLE)->variable = v;
	s->a->type[c->mode] = v->type[c->mode];
}

static void check_jump(struct check_clause *c, struct stmt *s)
{
	if (!c->n_loops)
		check_error(c, s->place, "loop", "%s outside of a loop",
			s->kind == STMT_BREAK ? "break" : "continue");
}

static void check_return(struct check_clause *c, struct stmt *s)
{
	if (s->a)
		check_expr(c, s->a);
}

static void check_nested(struct check_clause *c, struct stmt *s)
{
	check_block(c, s->body);
}

static void (*const checks[STMT_LET + 1])(struct check_clause *c, struct stmt *s) = {
	[STMT_EXPR] = check_expr_stmt,
	[STMT_IF] = check_if,
	[STMT_WHILE] = check_while,
	[STMT_FOR] = check_for,
	[STMT_FOR_MAP] = check_for_map,
	[STMT_UNROLL] = check_unroll,
	[STMT_BREAK] = check_jump,
	[STMT_CONTINUE] = check_jump,
	[STMT_RETURN] = check_return,
	[STMT_BLOCK] = check_nested,
	[STMT_LET] = check_let,
};

void check_stmts(struct check_clause *c, struct stmt *s)
{
	for (; s; s = s->next) {
		if (!check_enter(c, s->place))
			return;
		if (checks[s->kind])
			checks[s->kind](c, s);
		check_leave(c);
	}
}
