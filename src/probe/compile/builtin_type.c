/* SPDX-License-Identifier: MIT */
/* What an expression is: for macros, which are handed things of all types. Known before it runs. */
#include "probe/compile/builtin.h"

enum question { IS_TEXT, IS_INTEGER, IS_UNSIGNED, IS_POINTER, IS_ARRAY };

static bool answer(enum question question, const struct type *type)
{
	switch (question) {
	case IS_TEXT:
		return type_is_text(type);
	case IS_INTEGER:
		return type->kind == TYPE_INT && !type->is_bool;
	case IS_UNSIGNED:
		return type->kind == TYPE_INT && !type->is_bool && !type->is_signed;
	case IS_POINTER:
		return type->kind == TYPE_POINTER;
	case IS_ARRAY:
		return type->kind == TYPE_ARRAY && !type_is_text(type);
	}
	return false;
}

static const struct type *check_is(struct check_clause *c, struct expr *e)
{
	const struct type *type = check_value(c, e->args);

	if (type->kind == TYPE_BAD)
		return type;
	return check_set_constant(
		c, e, check_bool(c), answer((enum question)check_row(c, e)->detail, type));
}

static const struct type *check_is_literal(struct check_clause *c, struct expr *e)
{
	const struct expr *a = e->args;

	if (check_value(c, e->args)->kind == TYPE_BAD)
		return check_bad(c);
	return check_set_constant(
		c, e, check_bool(c), a->kind == EXPR_INT || a->kind == EXPR_STRING);
}

#define IS(question) .check = check_is, .detail = question

const struct builtin type_builtins[] = {
	{"is_str", "is_str(VALUE)", 1, 1, IS(IS_TEXT)},
	{"is_integer", "is_integer(VALUE)", 1, 1, IS(IS_INTEGER)},
	{"is_unsigned_integer", "is_unsigned_integer(VALUE)", 1, 1, IS(IS_UNSIGNED)},
	{"is_ptr", "is_ptr(VALUE)", 1, 1, IS(IS_POINTER)},
	{"is_array", "is_array(VALUE)", 1, 1, IS(IS_ARRAY)},
	{"is_literal", "is_literal(VALUE)", 1, 1, .check = check_is_literal},
	{.name = NULL},
};
