/* SPDX-License-Identifier: MIT */
/* Literals, operators and constants; everything else is handed on. */
#include <string.h>

#include "probe/compile/checker.h"

uint64_t check_text_bytes(const struct type *type)
{
	return type->n ? type->n : 1;
}

bool check_text_fits(struct check_clause *c, const struct type *type, struct place place)
{
	if (!type_is_text(type) || type->n <= CHECK_STRING_MAX)
		return true;
	check_error(c, place, "size", "a %s is too long for a string, which has at most %d bytes",
		type_text(c, type), CHECK_STRING_MAX);
	check_hint(c, "str(&x, %d) takes its beginning", CHECK_STRING_MAX);
	return false;
}

const struct type *check_set_constant(
	struct check_clause *c, struct expr *e, const struct type *type, uint64_t value)
{
	e->type[c->mode] = type;
	e->is_constant[c->mode] = true;
	e->constant[c->mode] = fold_convert(type, value);
	return type;
}

struct meaning *check_mean(struct check_clause *c, struct expr *e, enum meaning_kind kind)
{
	struct meaning *m = arena_zalloc(c->session->arena, sizeof(*m));

	m->kind = kind;
	e->meaning[c->mode] = m;
	return m;
}

static const struct type *check_string(struct check_clause *c, struct expr *e)
{
	if (e->text_n > CHECK_STRING_MAX)
		return check_refuse(c, e->place, "range",
			"a text of %zu bytes; at most %d are possible", e->text_n,
			CHECK_STRING_MAX);
	return types_string(check_types(c), e->text_n ? e->text_n : 1);
}

/* --- kinds that an operand may have ----------------------------------------------------------- */

/* A structure that was passed in registers or on the stack: only its fields can be taken. */
static bool is_passed_by_value(struct check_clause *c, const struct expr *e)
{
	const struct type *type = e->type[c->mode];
	const struct meaning *m = e->meaning[c->mode];

	if (e->kind == EXPR_BLOCK)
		return e->a && is_passed_by_value(c, e->a);
	if (!type || (type->kind != TYPE_STRUCT && type->kind != TYPE_ARRAY))
		return false;
	if (e->kind == EXPR_BLOCK)
		return e->a && is_passed_by_value(c, e->a);
	if (m)
		return m->kind == MEANING_VALUE && m->value->kind == USE_PLACE;
	return (e->kind == EXPR_MEMBER || e->kind == EXPR_INDEX) && is_passed_by_value(c, e->a);
}

const struct type *check_value(struct check_clause *c, struct expr *e)
{
	const struct type *type = check_expr(c, e);

	if (is_passed_by_value(c, e)) {
		check_error(c, e->place, "type", "a %s that is passed by value cannot be copied",
			type_text(c, type));
		check_hint(c, "take its fields one by one");
	} else if (type->kind == TYPE_VOID || type->kind == TYPE_FUNCTION) {
		check_error(c, e->place, "type", "%s%s has no value",
			e->name && e->kind == EXPR_CALL ? e->name : "this",
			e->name && e->kind == EXPR_CALL ? "()" : "");
	} else if (type->kind == TYPE_AGGREGATION) {
		check_error(
			c, e->place, "aggregation", "an aggregation can only be assigned to a map");
		check_hint(c, "write @x = %s(...);", e->name ? e->name : "count");
	} else {
		return type;
	}
	e->type[c->mode] = check_bad(c);
	return e->type[c->mode];
}

static bool check_is(struct check_clause *c, struct expr *e, const char *what, bool pointers_too)
{
	const struct type *type = check_value(c, e);

	if (type->kind == TYPE_BAD)
		return false;
	if (type->kind == TYPE_INT || (pointers_too && type->kind == TYPE_POINTER))
		return true;
	if (type->kind == TYPE_FLOAT)
		check_error(c, e->place, "float", "%s cannot be a %s: it can only be printed", what,
			type_text(c, type));
	else
		check_error(c, e->place, "type", "%s must be an integer, and this is a %s", what,
			type_text(c, type));
	return false;
}

bool check_integer(struct check_clause *c, struct expr *e, const char *what)
{
	return check_is(c, e, what, false);
}

bool check_scalar(struct check_clause *c, struct expr *e, const char *what)
{
	return check_is(c, e, what, true);
}

bool check_constant(struct check_clause *c, struct expr *e, const char *what, int64_t *out)
{
	if (!check_integer(c, e, what))
		return false;
	if (!e->is_constant[c->mode])
		return check_error(c, e->place, "constant", "%s must be a constant", what);
	*out = (int64_t)e->constant[c->mode];
	return true;
}

/* --- arithmetic ------------------------------------------------------------------------------- */

static const struct type *result_type(
	struct check_clause *c, enum op op, const struct type *a, const struct type *b)
{
	bool is_unsigned = type_is_unsigned64(a);

	if (op != OP_SHL && op != OP_SHR)
		is_unsigned |= type_is_unsigned64(b);
	return check_int(c, 8, !is_unsigned);
}

static const struct type *pointer_step(
	struct check_clause *c, struct expr *e, const struct type *pointer)
{
	const struct type *of = types_completed(check_types(c), pointer->of);

	if (of->kind == TYPE_STRUCT && !of->is_complete)
		return check_refuse(c, e->place, "incomplete",
			"the size of %s is not known, so a pointer to it cannot be moved",
			type_text(c, pointer->of));
	return pointer;
}

static const struct type *bad_operands(struct check_clause *c, struct expr *e, const struct type *a,
	const struct type *b, const char *hint)
{
	check_error(c, e->place, "type", "%s and %s do not go together here", type_text(c, a),
		type_text(c, b));
	if (hint)
		check_hint(c, "%s", hint);
	return check_bad(c);
}

static const struct type *refuse_float(
	struct check_clause *c, struct expr *e, const struct type *type)
{
	return check_refuse(c, e->place, "float",
		"BPF has no floating point: a %s can only be printed", type_text(c, type));
}

static const struct type *pointer_arithmetic(struct check_clause *c, struct expr *e, enum op op,
	const struct type *a, const struct type *b)
{
	bool both = a->kind == TYPE_POINTER && b->kind == TYPE_POINTER;

	switch (op) {
	case OP_ADD:
		if (both)
			break;
		return pointer_step(c, e, a->kind == TYPE_POINTER ? a : b);
	case OP_SUB:
		if (!both && b->kind == TYPE_POINTER)
			break;
		if (!both)
			return pointer_step(c, e, a);
		if (a->of->size != b->of->size)
			break;
		if (pointer_step(c, e, a)->kind == TYPE_BAD)
			return check_bad(c);
		return check_int(c, 8, true);
	case OP_AND:
	case OP_OR:
	case OP_XOR:
	case OP_SHR:
	case OP_MOD:
		return check_int(c, 8, false);
	default:
		break;
	}
	return bad_operands(c, e, a, b, "cast the pointer to uint64 to calculate with the address");
}

static void check_constant_right(struct check_clause *c, enum op op, struct expr *b)
{
	if (!b->is_constant[c->mode])
		return;
	if ((op == OP_DIV || op == OP_MOD) && b->constant[c->mode] == 0)
		check_error(c, b->place, "division", "division by zero");
	if ((op == OP_SHL || op == OP_SHR) && b->constant[c->mode] >= 64)
		check_error(c, b->place, "range", "a shift by %lld bits; 0 to 63 are possible",
			(long long)b->constant[c->mode]);
}

const struct type *check_arithmetic(
	struct check_clause *c, struct expr *e, enum op op, struct expr *a, struct expr *b)
{
	const struct type *x = a->type[c->mode], *y = b->type[c->mode];

	if (x->kind == TYPE_BAD || y->kind == TYPE_BAD)
		return check_bad(c);
	if (x->kind == TYPE_FLOAT || y->kind == TYPE_FLOAT)
		return refuse_float(c, e, x->kind == TYPE_FLOAT ? x : y);
	if (!type_is_scalar(x) || !type_is_scalar(y))
		return bad_operands(c, e, x, y, NULL);
	check_constant_right(c, op, b);
	if (x->kind == TYPE_POINTER || y->kind == TYPE_POINTER)
		return pointer_arithmetic(c, e, op, x, y);
	return result_type(c, op, x, y);
}

static void fold(struct check_clause *c, struct expr *e, const struct type *type, bool is_unsigned)
{
	enum mode m = c->mode;

	if (!e->a->is_constant[m] || !e->b->is_constant[m] || type->kind == TYPE_BAD)
		return;
	/* Steps of pointers are left to the code. */
	if (e->a->type[m]->kind == TYPE_POINTER || e->b->type[m]->kind == TYPE_POINTER)
		return;
	check_set_constant(
		c, e, type, fold_binary(e->op, e->a->constant[m], e->b->constant[m], is_unsigned));
}

/* Arrays of integers, tuples and buffers are compared byte by byte, as one type; NULL: neither is. */
static const struct type *joined_type(
	struct check_clause *c, const struct type *a, const struct type *b)
{
	if (a->kind != b->kind)
		return NULL;
	if (a->kind == TYPE_ARRAY && a->of->kind == TYPE_INT && b->of->kind == TYPE_INT)
		return a->size == b->size && a->of->size == b->of->size ? a : NULL;
	return a->kind == TYPE_TUPLE || a->kind == TYPE_BYTES ? check_join(c, a, false, b, NULL)
							      : NULL;
}

static const struct type *compare(struct check_clause *c, struct expr *e)
{
	const struct type *a = e->a->type[c->mode], *b = e->b->type[c->mode], *joined;

	if (a->kind == TYPE_BAD || b->kind == TYPE_BAD)
		return check_bad(c);
	if (type_is_text(a) && type_is_text(b)) {
		if (!check_text_fits(c, a, e->a->place) || !check_text_fits(c, b, e->b->place))
			return check_bad(c);
		if (e->op == OP_EQ || e->op == OP_NE)
			return check_bool(c);
		return check_refuse(
			c, e->place, "type", "strings can only be compared by == and !=");
	}
	if (type_is_scalar(a) && type_is_scalar(b)) {
		fold(c, e, check_bool(c), type_is_unsigned64(a) || type_is_unsigned64(b));
		return check_bool(c);
	}
	joined = joined_type(c, a, b);
	if (joined) {
		check_mean(c, e, MEANING_JOINED)->joined = joined;
		if (e->op == OP_EQ || e->op == OP_NE)
			return check_bool(c);
		return check_refuse(c, e->place, "type",
			"a %s can only be compared by == and !=", type_text(c, a));
	}
	if (a->kind == TYPE_FLOAT || b->kind == TYPE_FLOAT)
		return refuse_float(c, e, a->kind == TYPE_FLOAT ? a : b);
	if ((type_is_text(a) && b->kind == TYPE_POINTER) ||
		(a->kind == TYPE_POINTER && type_is_text(b)))
		return bad_operands(c, e, a, b, "str(POINTER) reads the text that it points to");
	return bad_operands(c, e, a, b, NULL);
}

/* A constant left side decides whether the right one is looked at. */
static const struct type *check_logical(struct check_clause *c, struct expr *e)
{
	enum mode m = c->mode;
	bool ends_when = e->op == OP_LOGICAL_OR, ok;

	ok = check_scalar(c, e->a, "an operand of && or ||");
	if (ok && e->a->is_constant[m] && (e->a->constant[m] != 0) == ends_when) {
		return check_set_constant(c, e, check_bool(c), ends_when);
	}
	if (!check_scalar(c, e->b, "an operand of && or ||") || !ok)
		return check_bad(c);
	if (e->a->is_constant[m] && e->b->is_constant[m])
		check_set_constant(c, e, check_bool(c), e->b->constant[m] != 0);
	return check_bool(c);
}

static const struct type *check_binary(struct check_clause *c, struct expr *e)
{
	const struct type *type;

	if (e->op == OP_LOGICAL_AND || e->op == OP_LOGICAL_OR)
		return check_logical(c, e);
	check_value(c, e->a);
	check_value(c, e->b);
	if (op_is_comparison(e->op))
		return compare(c, e);
	type = check_arithmetic(c, e, e->op, e->a, e->b);
	if (type->kind == TYPE_INT)
		fold(c, e, type, !type->is_signed);
	return type;
}

static const struct type *check_unary(struct check_clause *c, struct expr *e)
{
	enum mode m = c->mode;
	const struct type *type;
	uint64_t v;
	bool is_lowest;

	if (e->op == OP_DEREF)
		return check_deref(c, e);
	if (e->op == OP_ADDRESS)
		return check_address(c, e);
	if (e->op == OP_NOT ? !check_scalar(c, e->a, "the operand of !")
			    : !check_integer(c, e->a, "the operand"))
		return check_bad(c);
	v = e->a->constant[m];
	/* The lowest number of 64 bits has no literal but this one. */
	is_lowest = e->op == OP_NEGATE && e->a->kind == EXPR_INT && v == 1ull << 63;
	/* As in bpftrace, what ~ gives has no sign; once it had that of its operand. */
	type = e->op == OP_NOT ? check_bool(c)
	       : e->op == OP_COMPLEMENT && !check_is_like_0_17(c)
		       ? check_int(c, 8, false)
		       : check_int(c, 8, is_lowest || !type_is_unsigned64(e->a->type[m]));
	if (e->a->is_constant[m])
		check_set_constant(c, e, type,
			e->op == OP_NOT	     ? !v
			: e->op == OP_NEGATE ? 0 - v
					     : ~v);
	return type;
}

static const struct type *check_ternary(struct check_clause *c, struct expr *e)
{
	enum mode m = c->mode;
	const struct type *b, *type;
	bool ok = check_scalar(c, e->a, "a condition");

	if (ok && e->a->is_constant[m]) {
		struct expr *taken = e->a->constant[m] ? e->b : e->c;

		type = check_expr(c, taken);
		if (taken->is_constant[m])
			check_set_constant(c, e, type, taken->constant[m]);
		return type;
	}
	b = check_expr(c, e->b);
	type = check_expr(c, e->c);
	if (!ok || b->kind == TYPE_BAD || type->kind == TYPE_BAD ||
		!check_text_fits(c, b, e->b->place) || !check_text_fits(c, type, e->c->place))
		return check_bad(c);
	if (b->kind == TYPE_VOID && type->kind == TYPE_VOID)
		return b;
	if (b->kind == TYPE_INT && type_is_same(b, type))
		return b->is_bool || b->is_enum ? b : check_int(c, 8, !type_is_unsigned64(b));
	if (b->kind == TYPE_INT && type->kind == TYPE_INT)
		return check_int(c, 8, !type_is_unsigned64(b) && !type_is_unsigned64(type));
	type = b->kind == TYPE_AGGREGATION ? NULL
					   : check_join(c, b, e->b->is_constant[m], type, e->c);
	if (type)
		return type;
	return bad_operands(c, e, b, e->c->type[m], NULL);
}

/* --- all kinds -------------------------------------------------------------------------------- */

static const struct type *check_number(struct check_clause *c, struct expr *e)
{
	return check_set_constant(
		c, e, e->is_bool ? check_bool(c) : check_int(c, 8, !e->is_unsigned), e->value);
}

static check_fn *const checks[N_EXPR_KINDS] = {
	[EXPR_INT] = check_number,
	[EXPR_STRING] = check_string,
	[EXPR_NAME] = check_name,
	[EXPR_LOCAL] = check_local,
	[EXPR_SELF] = check_self,
	[EXPR_MAP] = check_map_read,
	[EXPR_UNARY] = check_unary,
	[EXPR_BINARY] = check_binary,
	[EXPR_TERNARY] = check_ternary,
	[EXPR_CAST] = check_cast,
	[EXPR_SIZEOF] = check_sizeof,
	[EXPR_OFFSETOF] = check_offsetof,
	[EXPR_CALL] = check_call,
	[EXPR_INDEX] = check_index,
	[EXPR_MEMBER] = check_member,
	[EXPR_ASSIGN] = check_assign,
	[EXPR_STEP] = check_step,
	[EXPR_TUPLE] = check_tuple,
	[EXPR_BLOCK] = check_block_value,
};

const struct type *check_expr(struct check_clause *c, struct expr *e)
{
	const struct type *type;

	e->meaning[c->mode] = NULL;
	e->is_constant[c->mode] = false;
	e->constant[c->mode] = 0;
	e->type[c->mode] = check_bad(c);
	if (!check_enter(c, e->place))
		return e->type[c->mode];
	type = checks[e->kind](c, e);
	e->type[c->mode] = type;
	check_leave(c);
	return type;
}
