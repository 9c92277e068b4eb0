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
	uint32_t depth;
};

static bool evaluate(struct evaluation *v, const struct expr *e, struct constant *out);

static bool not_constant(struct evaluation *v, const struct expr *e)
{
	return diag_error(v->types->diags, e->place, "constant",
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

static bool compute(struct evaluation *v, const struct expr *e, struct constant a,
	struct constant b, struct constant *out)
{
	bool is_shift = e->op == OP_SHL || e->op == OP_SHR;
	bool is_unsigned = a.is_unsigned || (b.is_unsigned && !is_shift);

	if (e->op < OP_ADD || e->op > OP_GE)
		return not_constant(v, e);
	if ((e->op == OP_DIV || e->op == OP_MOD) && !b.value)
		return diag_error(v->types->diags, e->place, "division", "division by zero");
	if (is_shift && (b.value < 0 || b.value > 63))
		return diag_error(
			v->types->diags, e->b->place, "range", "a shift is by 0 to 63 bits");
	*out = (struct constant){
		(int64_t)fold_binary(e->op, (uint64_t)a.value, (uint64_t)b.value, is_unsigned),
		is_unsigned && e->op < OP_EQ};
	return true;
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
	type = types_of_decl(v->types, decl, v->types->space, v->types->diags);
	if (type->kind == TYPE_BAD)
		return false;
	*out = (struct constant){(int64_t)type->size, false};
	return true;
}

static bool evaluate_offsetof(struct evaluation *v, const struct expr *e, struct constant *out)
{
	const struct type *type =
		types_of_decl(v->types, e->decl, v->types->space, v->types->diags);
	const char *path = e->name;
	uint64_t offset = 0;

	if (type->kind == TYPE_BAD)
		return false;
	while (*path) {
		size_t n = strcspn(path, ".");
		char *name = arena_strndup(v->types->arena, path, n);
		struct type_field field;

		if (!type_find_field(type, name, &field))
			return diag_error(v->types->diags, e->place, "unknown-field",
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
	const struct type *type =
		types_of_decl(v->types, e->decl, v->types->space, v->types->diags);
	struct constant a;

	if (type->kind == TYPE_BAD || !evaluate(v, e->a, &a))
		return false;
	if (type->kind != TYPE_INT || type->size > 8)
		return not_constant(v, e);
	a.value = (int64_t)fold_convert(type, (uint64_t)a.value);
	*out = (struct constant){a.value, type->size == 8 && !type->is_signed};
	return true;
}

static bool evaluate_int(struct evaluation *v, const struct expr *e, struct constant *out)
{
	(void)v;
	*out = (struct constant){(int64_t)e->value, e->is_unsigned};
	return true;
}

static bool evaluate_ternary(struct evaluation *v, const struct expr *e, struct constant *out)
{
	struct constant a;

	return evaluate(v, e->a, &a) && evaluate(v, a.value ? e->b : e->c, out);
}

static bool (*const evaluators[N_EXPR_KINDS])(
	struct evaluation *v, const struct expr *e, struct constant *out) = {
	[EXPR_INT] = evaluate_int,
	[EXPR_NAME] = evaluate_name,
	[EXPR_UNARY] = evaluate_unary,
	[EXPR_BINARY] = evaluate_binary,
	[EXPR_TERNARY] = evaluate_ternary,
	[EXPR_SIZEOF] = evaluate_sizeof,
	[EXPR_OFFSETOF] = evaluate_offsetof,
	[EXPR_CAST] = evaluate_cast,
};

static bool evaluate(struct evaluation *v, const struct expr *e, struct constant *out)
{
	bool is_good;

	if (v->depth >= EXPR_DEPTH_MAX)
		return diag_error(v->types->diags, e->place, "nesting",
			"the expression is nested too deeply");
	v->depth++;
	is_good = evaluators[e->kind] ? evaluators[e->kind](v, e, out) : not_constant(v, e);
	v->depth--;
	return is_good;
}

bool constant_of_expr(struct types *t, const struct expr *e, struct constant *out)
{
	struct evaluation v = {t, 0};

	return evaluate(&v, e, out);
}
