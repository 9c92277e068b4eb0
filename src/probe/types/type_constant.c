/* SPDX-License-Identifier: MIT */
/*
 * Constant expressions in declarations: lengths of arrays, widths of bit-fields, values of
 * enumerators. Done in 64 bits, unsigned when an operand is an unsigned number that needs them.
 */
#include <string.h>

#include "probe/types/type_store.h"

#define EXPR_DEPTH_MAX 200

struct evaluation {
	struct types *types;
	struct diags *diags;
	uint32_t depth;
};

static bool evaluate(struct evaluation *v, const struct expr *e, struct constant *out);

static bool not_constant(struct evaluation *v, const struct expr *e)
{
	return diag_error(v->diags, e->place, "constant",
		"a declaration needs a value that is known when the script is compiled");
}

static bool evaluate_name(struct evaluation *v, const struct expr *e, struct constant *out)
{
	const struct declared *d = names_find(&v->types->names, e->name);

	if (!d || d->kind != DECLARED_ENUMERATOR)
		return not_constant(v, e);
	*out = (struct constant){d->value, d->is_unsigned};
	return true;
}

static bool evaluate_unary(struct evaluation *v, const struct expr *e, struct constant *out)
{
	struct constant a;

	if (e->op != OP_NEGATE && e->op != OP_COMPLEMENT && e->op != OP_NOT)
		return not_constant(v, e);
	if (!evaluate(v, e->a, &a))
		return false;
	if (e->op == OP_NEGATE)
		a.value = (int64_t)(0 - (uint64_t)a.value);
	else if (e->op == OP_COMPLEMENT)
		a.value = ~a.value;
	else
		a = (struct constant){!a.value, false};
	*out = a;
	return true;
}

static bool divide(struct evaluation *v, const struct expr *e, struct constant a, struct constant b,
	struct constant *out)
{
	bool is_mod = e->op == OP_MOD, is_unsigned = a.is_unsigned || b.is_unsigned;
	uint64_t x = (uint64_t)a.value, y = (uint64_t)b.value;
	int64_t value;

	if (!b.value)
		return diag_error(v->diags, e->place, "division", "division by zero");
	if (is_unsigned)
		value = (int64_t)(is_mod ? x % y : x / y);
	else if (b.value == -1) /* the one quotient that does not fit wraps */
		value = is_mod ? 0 : (int64_t)(0 - x);
	else
		value = is_mod ? a.value % b.value : a.value / b.value;
	*out = (struct constant){value, is_unsigned};
	return true;
}

static bool shift(struct evaluation *v, const struct expr *e, struct constant a, struct constant b,
	struct constant *out)
{
	if (b.value < 0 || b.value > 63)
		return diag_error(v->diags, e->b->place, "range", "a shift is by 0 to 63 bits");
	if (e->op == OP_SHL)
		a.value = (int64_t)((uint64_t)a.value << b.value);
	else if (a.is_unsigned)
		a.value = (int64_t)((uint64_t)a.value >> b.value);
	else
		a.value >>= b.value;
	*out = a;
	return true;
}

/* -1, 0, 1 */
static int order(struct constant a, struct constant b)
{
	uint64_t x = (uint64_t)a.value, y = (uint64_t)b.value;

	if (a.is_unsigned || b.is_unsigned)
		return (x > y) - (x < y);
	return (a.value > b.value) - (a.value < b.value);
}

static bool compute(struct evaluation *v, const struct expr *e, struct constant a,
	struct constant b, struct constant *out)
{
	uint64_t x = (uint64_t)a.value, y = (uint64_t)b.value;
	bool is_unsigned = a.is_unsigned || b.is_unsigned;

#define NUMBER(n) (*out = (struct constant){(int64_t)(n), is_unsigned}, true)
#define TRUTH(t)  (*out = (struct constant){(t), false}, true)
	switch (e->op) {
	case OP_ADD:
		return NUMBER(x + y);
	case OP_SUB:
		return NUMBER(x - y);
	case OP_MUL:
		return NUMBER(x * y);
	case OP_AND:
		return NUMBER(x & y);
	case OP_OR:
		return NUMBER(x | y);
	case OP_XOR:
		return NUMBER(x ^ y);
	case OP_DIV:
	case OP_MOD:
		return divide(v, e, a, b, out);
	case OP_SHL:
	case OP_SHR:
		return shift(v, e, a, b, out);
	case OP_EQ:
		return TRUTH(x == y);
	case OP_NE:
		return TRUTH(x != y);
	case OP_LT:
		return TRUTH(order(a, b) < 0);
	case OP_LE:
		return TRUTH(order(a, b) <= 0);
	case OP_GT:
		return TRUTH(order(a, b) > 0);
	case OP_GE:
		return TRUTH(order(a, b) >= 0);
	default:
		return not_constant(v, e);
	}
#undef NUMBER
#undef TRUTH
}

static bool evaluate_binary(struct evaluation *v, const struct expr *e, struct constant *out)
{
	bool is_or = e->op == OP_LOGICAL_OR;
	struct constant a, b;

	if (!evaluate(v, e->a, &a))
		return false;
	if (!is_or && e->op != OP_LOGICAL_AND)
		return evaluate(v, e->b, &b) && compute(v, e, a, b, out);
	/* As in C, what the first side decides is not computed. */
	if ((a.value != 0) == is_or) {
		*out = (struct constant){is_or, false};
		return true;
	}
	if (!evaluate(v, e->b, &b))
		return false;
	*out = (struct constant){b.value != 0, false};
	return true;
}

/* sizeof(type); sizeof(name) of a typedef looks like an expression to the parser. */
static bool evaluate_sizeof(struct evaluation *v, const struct expr *e, struct constant *out)
{
	struct decl_type named = {0};
	const struct decl_type *decl = e->decl;
	const struct type *type;

	if (!decl) {
		if (!e->a || e->a->kind != EXPR_NAME)
			return not_constant(v, e);
		named.kind = DECL_NAMED;
		named.name = e->a->name;
		named.place = e->a->place;
		decl = &named;
	}
	type = types_of_decl(v->types, decl, v->types->space, v->diags);
	if (type->kind == TYPE_BAD)
		return false;
	*out = (struct constant){(int64_t)type->size, false};
	return true;
}

static bool evaluate_offsetof(struct evaluation *v, const struct expr *e, struct constant *out)
{
	const struct type *type = types_of_decl(v->types, e->decl, v->types->space, v->diags);
	const char *path = e->name;
	uint64_t offset = 0;

	if (type->kind == TYPE_BAD)
		return false;
	while (*path) {
		size_t n = strcspn(path, ".");
		char *name = arena_strndup(v->types->arena, path, n);
		struct type_field field;

		if (!type_find_field(type, name, &field))
			return diag_error(v->diags, e->place, "unknown-field",
				"there is no field '%s'", name);
		offset += field.offset;
		type = field.type;
		path += n + (path[n] == '.');
	}
	*out = (struct constant){(int64_t)offset, false};
	return true;
}

static bool evaluate_cast(struct evaluation *v, const struct expr *e, struct constant *out)
{
	const struct type *type = types_of_decl(v->types, e->decl, v->types->space, v->diags);
	struct constant a;
	unsigned unused;

	if (type->kind == TYPE_BAD || !evaluate(v, e->a, &a))
		return false;
	if (type->kind != TYPE_INT || type->size > 8)
		return not_constant(v, e);
	unused = 64 - (unsigned)type->size * 8;
	if (type->is_bool)
		a.value = a.value != 0;
	else if (type->is_signed)
		a.value = (int64_t)((uint64_t)a.value << unused) >> unused;
	else
		a.value = (int64_t)((uint64_t)a.value << unused >> unused);
	*out = (struct constant){a.value, type->size == 8 && !type->is_signed};
	return true;
}

static bool evaluate_kind(struct evaluation *v, const struct expr *e, struct constant *out)
{
	struct constant a;

	switch (e->kind) {
	case EXPR_INT:
		*out = (struct constant){(int64_t)e->value, e->is_unsigned};
		return true;
	case EXPR_NAME:
		return evaluate_name(v, e, out);
	case EXPR_UNARY:
		return evaluate_unary(v, e, out);
	case EXPR_BINARY:
		return evaluate_binary(v, e, out);
	case EXPR_TERNARY:
		return evaluate(v, e->a, &a) && evaluate(v, a.value ? e->b : e->c, out);
	case EXPR_SIZEOF:
		return evaluate_sizeof(v, e, out);
	case EXPR_OFFSETOF:
		return evaluate_offsetof(v, e, out);
	case EXPR_CAST:
		return evaluate_cast(v, e, out);
	default:
		return not_constant(v, e);
	}
}

static bool evaluate(struct evaluation *v, const struct expr *e, struct constant *out)
{
	bool is_good;

	if (v->depth >= EXPR_DEPTH_MAX)
		return diag_error(
			v->diags, e->place, "nesting", "the expression is nested too deeply");
	v->depth++;
	is_good = evaluate_kind(v, e, out);
	v->depth--;
	return is_good;
}

bool constant_of_expr(
	struct types *t, const struct expr *e, struct diags *diags, struct constant *out)
{
	struct evaluation v = {t, diags, 0};

	return evaluate(&v, e, out);
}
