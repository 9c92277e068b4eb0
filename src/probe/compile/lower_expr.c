/* SPDX-License-Identifier: MIT */
/* Expressions. Which of the functions an expression takes follows from its type: one 64-bit value,
 * or an object in memory. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "probe/compile/lower.h"
#include "probe/script/tree_search.h"

bool lower_is_value(const struct type *type)
{
	switch (type->kind) {
	case TYPE_INT:
	case TYPE_POINTER:
	case TYPE_FLOAT:
	case TYPE_KSTACK:
	case TYPE_KSYM:
	case TYPE_PROBE:
	case TYPE_FUNC:
	case TYPE_VOID:
	case TYPE_BAD:
		return true;
	default:
		return false;
	}
}

/* --- arithmetic ------------------------------------------------------------------------------- */

static ir_value negate(struct lower *l, ir_value v)
{
	return ir_alu_imm(&l->ir, BPF_MUL, v, -1);
}

static ir_value absolute(struct lower *l, ir_value v)
{
	ir_value result = ir_new_value(&l->ir);
	ir_label done = ir_new_label(&l->ir);

	ir_copy(&l->ir, result, v);
	ir_branch_imm(&l->ir, BPF_JSGE, v, 0, done);
	ir_copy(&l->ir, result, negate(l, v));
	ir_place_label(&l->ir, done);
	return result;
}

/* BPF divides unsigned numbers only (until its fourth version): signs are put back afterwards. */
static ir_value divide_signed(struct lower *l, int op, ir_value a, ir_value b)
{
	ir_value result = ir_new_value(&l->ir), sign, abs_a, abs_b;
	ir_label done = ir_new_label(&l->ir);

	abs_a = absolute(l, a);
	abs_b = absolute(l, b);
	ir_copy(&l->ir, result, ir_alu(&l->ir, op, abs_a, abs_b));
	sign = op == BPF_DIV ? ir_alu(&l->ir, BPF_XOR, a, b) : a;
	ir_branch_imm(&l->ir, BPF_JSGE, sign, 0, done);
	ir_copy(&l->ir, result, negate(l, result));
	ir_place_label(&l->ir, done);
	return result;
}

static ir_value divide(struct lower *l, int op, ir_value a, ir_value b, bool unsigned_)
{
	ir_label ok = ir_new_label(&l->ir);

	ir_branch_imm(&l->ir, BPF_JNE, b, 0, ok);
	lower_fail(l, FAILURE_OTHER, EDOM);
	ir_place_label(&l->ir, ok);
	return unsigned_ ? ir_alu(&l->ir, op, a, b) : divide_signed(l, op, a, b);
}

/* What an operator is in BPF. */
static const struct {
	uint8_t alu;		     /* arithmetic */
	uint8_t jump, jump_unsigned; /* comparisons */
	enum op opposite;
} codes[] = {
	[OP_ADD] = {.alu = BPF_ADD},
	[OP_SUB] = {.alu = BPF_SUB},
	[OP_MUL] = {.alu = BPF_MUL},
	[OP_DIV] = {.alu = BPF_DIV},
	[OP_MOD] = {.alu = BPF_MOD},
	[OP_AND] = {.alu = BPF_AND},
	[OP_OR] = {.alu = BPF_OR},
	[OP_XOR] = {.alu = BPF_XOR},
	[OP_SHL] = {.alu = BPF_LSH},
	[OP_SHR] = {.alu = BPF_RSH},
	[OP_EQ] = {0, BPF_JEQ, BPF_JEQ, OP_NE},
	[OP_NE] = {0, BPF_JNE, BPF_JNE, OP_EQ},
	[OP_LT] = {0, BPF_JSLT, BPF_JLT, OP_GE},
	[OP_LE] = {0, BPF_JSLE, BPF_JLE, OP_GT},
	[OP_GT] = {0, BPF_JSGT, BPF_JGT, OP_LE},
	[OP_GE] = {0, BPF_JSGE, BPF_JGE, OP_LT},
};

static ir_value arithmetic(struct lower *l, enum op op, const struct type *ta,
	const struct type *tb, ir_value a, ir_value b)
{
	int code = codes[op].alu;

	assert(op >= OP_ADD && op <= OP_SHR);
	if (op == OP_DIV || op == OP_MOD)
		return divide(l, code, a, b, type_is_unsigned64(ta) || type_is_unsigned64(tb));
	if (op == OP_SHR && ta->kind == TYPE_INT && ta->is_signed)
		code = BPF_ARSH;
	if (op == OP_SHL || op == OP_SHR)
		b = ir_alu_imm(&l->ir, BPF_AND, b, 63);
	return ir_alu(&l->ir, code, a, b);
}

static uint64_t step_of(struct lower *l, const struct type *pointer)
{
	const struct type *of = lower_completed(l, pointer->of);

	return of->size ? of->size : 1;
}

static ir_value scaled(struct lower *l, ir_value v, uint64_t by)
{
	return by == 1 ? v : ir_alu_imm(&l->ir, BPF_MUL, v, (int64_t)by);
}

/* Pointer + integer steps by elements; pointer - pointer counts them. */
static ir_value binary(struct lower *l, enum op op, const struct type *ta, const struct type *tb,
	ir_value a, ir_value b)
{
	const struct type *pointer = ta->kind == TYPE_POINTER	? ta
				     : tb->kind == TYPE_POINTER ? tb
								: NULL;
	ir_value v;

	if (!pointer || (op != OP_ADD && op != OP_SUB))
		return arithmetic(l, op, ta, tb, a, b);
	if (ta->kind == TYPE_POINTER && tb->kind == TYPE_POINTER) {
		v = ir_alu(&l->ir, BPF_SUB, a, b);
		return step_of(l, ta) == 1 ? v
					   : divide_signed(l, BPF_DIV, v,
						     ir_const(&l->ir, (int64_t)step_of(l, ta)));
	}
	if (ta->kind == TYPE_POINTER)
		b = scaled(l, b, step_of(l, ta));
	else
		a = scaled(l, a, step_of(l, tb));
	v = ir_alu(&l->ir, op == OP_ADD ? BPF_ADD : BPF_SUB, a, b);
	return ir_extend(&l->ir, v, (uint32_t)pointer->size, false);
}

/* --- conditions ------------------------------------------------------------------------------- */

/* Whether a variable may have another value behind the expression. */
static bool assigns(const struct expr *e)
{
	if (!e)
		return false;
	if (e->kind == EXPR_ASSIGN || e->kind == EXPR_STEP || e->kind == EXPR_BLOCK ||
		assigns(e->a) || assigns(e->b) || assigns(e->c))
		return true;
	for (const struct expr *a = e->args; a; a = a->next)
		if (assigns(a))
			return true;
	return false;
}

/* The left side has the value from before the right side: $i + $i++. */
static ir_value left_value(struct lower *l, const struct expr *a, const struct expr *b)
{
	ir_value v = lower_value(l, a), kept;

	if (!assigns(b))
		return v;
	kept = ir_new_value(&l->ir);
	ir_copy(&l->ir, kept, v);
	return kept;
}

static bool is_value_comparison(struct lower *l, const struct expr *e)
{
	return e->kind == EXPR_BINARY && op_is_comparison(e->op) &&
	       lower_is_value(type_of(l, e->a)) && lower_is_value(type_of(l, e->b));
}

/* Goes to `label` when `a op b` holds. */
static void branch_if(
	struct lower *l, enum op op, const struct expr *a, const struct expr *b, ir_label label)
{
	bool is_unsigned = type_is_unsigned64(type_of(l, a)) || type_is_unsigned64(type_of(l, b));
	int code = is_unsigned ? codes[op].jump_unsigned : codes[op].jump;
	ir_value va = left_value(l, a, b);

	if (b->is_constant[l->mode])
		ir_branch_imm(&l->ir, code, va, (int64_t)b->constant[l->mode], label);
	else
		ir_branch(&l->ir, code, va, lower_value(l, b), label);
}

void lower_condition(struct lower *l, const struct expr *e, ir_label no)
{
	ir_label yes;

	if (e->is_constant[l->mode]) {
		if (!e->constant[l->mode])
			ir_jump(&l->ir, no);
	} else if (is_value_comparison(l, e)) {
		branch_if(l, codes[e->op].opposite, e->a, e->b, no);
	} else if (e->kind == EXPR_BINARY && e->op == OP_LOGICAL_AND) {
		lower_condition(l, e->a, no);
		lower_condition(l, e->b, no);
	} else if (e->kind == EXPR_BINARY && e->op == OP_LOGICAL_OR) {
		ir_label second = ir_new_label(&l->ir);

		yes = ir_new_label(&l->ir);
		lower_condition(l, e->a, second);
		ir_jump(&l->ir, yes);
		ir_place_label(&l->ir, second);
		lower_condition(l, e->b, no);
		ir_place_label(&l->ir, yes);
	} else if (e->kind == EXPR_UNARY && e->op == OP_NOT) {
		yes = ir_new_label(&l->ir);
		lower_condition(l, e->a, yes);
		ir_jump(&l->ir, no);
		ir_place_label(&l->ir, yes);
	} else if (e->kind == EXPR_BLOCK) {
		lower_block(l, e);
		lower_condition(l, e->a, no);
	} else {
		ir_branch_imm(&l->ir, BPF_JEQ, lower_value(l, e), 0, no);
	}
}

/* A condition as 0 or 1. */
static ir_value condition_value(struct lower *l, const struct expr *e)
{
	ir_value v = ir_new_value(&l->ir);
	ir_label no = ir_new_label(&l->ir);

	ir_set_const(&l->ir, v, 0);
	lower_condition(l, e, no);
	ir_set_const(&l->ir, v, 1);
	ir_place_label(&l->ir, no);
	return v;
}

static ir_value binary_value(struct lower *l, const struct expr *e)
{
	const struct type *ta, *tb;
	ir_value a, v;

	if (e->op == OP_LOGICAL_AND || e->op == OP_LOGICAL_OR)
		return condition_value(l, e);
	ta = type_of(l, e->a), tb = type_of(l, e->b);
	if (type_is_text(ta) && (e->op == OP_EQ || e->op == OP_NE)) {
		v = lower_text_equal(l, e->a, e->b, -1);
		return e->op == OP_EQ ? v : ir_alu_imm(&l->ir, BPF_XOR, v, 1);
	}
	if (meaning_of(l, e) && meaning_of(l, e)->kind == MEANING_JOINED) {
		v = lower_equal(l, e->a, e->b, meaning_of(l, e)->joined);
		return e->op == OP_EQ ? v : ir_alu_imm(&l->ir, BPF_XOR, v, 1);
	}
	if (op_is_comparison(e->op))
		return condition_value(l, e);
	a = left_value(l, e->a, e->b);
	return binary(l, e->op, ta, tb, a, lower_value(l, e->b));
}

static ir_value address_value(struct lower *l, const struct expr *e)
{
	struct object o;

	if (e->kind == EXPR_MAP) /* 0 where there is no such key */
		return lower_map_find(
			l, meaning_of(l, e)->map, lower_map_read_key(l, meaning_of(l, e)->map, e->args));
	o = lower_object(l, e);
	if (o.kind == OBJECT_MEMORY)
		return ir_address(&l->ir, o.mem, (int32_t)o.offset);
	return lower_address(l, &o);
}

static ir_value unary_value(struct lower *l, const struct expr *e)
{
	struct object o;

	switch (e->op) {
	case OP_NEGATE:
		return negate(l, lower_value(l, e->a));
	case OP_COMPLEMENT:
		return ir_alu_imm(&l->ir, BPF_XOR, lower_value(l, e->a), -1);
	case OP_NOT:
		return condition_value(l, e);
	case OP_ADDRESS:
		return address_value(l, e->a);
	default:
		o = lower_object(l, e);
		return lower_load_object(l, &o, type_of(l, e));
	}
}

static ir_value ternary_value(struct lower *l, const struct expr *e)
{
	ir_label no = ir_new_label(&l->ir), done = ir_new_label(&l->ir);
	ir_value v = ir_new_value(&l->ir);

	if (e->a->is_constant[l->mode])
		return lower_value(l, e->a->constant[l->mode] ? e->b : e->c);
	ir_set_const(&l->ir, v, 0);
	lower_condition(l, e->a, no);
	ir_copy(&l->ir, v, lower_value(l, e->b));
	ir_jump(&l->ir, done);
	ir_place_label(&l->ir, no);
	ir_copy(&l->ir, v, lower_value(l, e->c));
	ir_place_label(&l->ir, done);
	return v;
}

/* --- names ------------------------------------------------------------------------------------ */

static ir_value name_value(struct lower *l, const struct expr *e)
{
	const struct meaning *m = meaning_of(l, e);
	struct object o;

	switch (m->kind) {
	case MEANING_BUILTIN:
		return lower_builtin(l, e);
	case MEANING_VALUE:
		return lower_use_value(l, m->value);
	default:
		o = lower_object(l, e);
		return lower_load_object(l, &o, type_of(l, e));
	}
}

/* --- assignments ------------------------------------------------------------------------------ */

static ir_value variable_value(struct lower *l, const struct expr *e)
{
	const struct variable *v = meaning_of(l, e)->variable;

	if (e->kind == EXPR_SELF)
		return lower_self_value(l, v);
	return v->is_addressed ? ir_load(&l->ir, v->storage, 0, 8, false) : v->storage;
}

/* A variable keeps its type: what is assigned is cut to it. Gives what it has afterwards. */
static ir_value set_variable(
	struct lower *l, const struct expr *e, ir_value value, const struct type *from)
{
	struct variable *v = meaning_of(l, e)->variable;

	value = lower_convert(l, value, from, v->type[l->mode]);
	if (e->kind == EXPR_SELF)
		lower_self_set(l, v, value);
	else if (v->is_addressed)
		ir_store(&l->ir, v->storage, 0, 8, value);
	else
		ir_copy(&l->ir, v->storage, value);
	return value;
}

static bool mentions(const struct lower *l, const struct expr *e, const struct variable *v)
{
	if (!e)
		return false;
	if (e->kind == EXPR_BLOCK)
		return true; /* its statements may */
	/* What a constant condition leaves out has no meaning. */
	if (e->kind == EXPR_LOCAL && meaning_of(l, e) && meaning_of(l, e)->variable == v)
		return true;
	if (mentions(l, e->a, v) || mentions(l, e->b, v) || mentions(l, e->c, v))
		return true;
	for (const struct expr *a = e->args; a; a = a->next)
		if (mentions(l, a, v))
			return true;
	return false;
}

/* A local that lies in memory. $t = ($t.1, $t.0) is made elsewhere first. */
static void assign_memory(struct lower *l, const struct variable *v, const struct expr *value)
{
	const struct type *t = v->type[l->mode];
	uint32_t n = lower_padded_size(t);
	ir_mem mem;

	if (!mentions(l, value, v)) {
		lower_store(l, value, (struct destination){t, v->storage, 0});
		return;
	}
	mem = ir_new_memory(&l->ir, n);
	lower_store(l, value, (struct destination){t, mem, 0});
	lower_copy_memory(l, mem, 0, v->storage, 0, n);
}

ir_value lower_assign(struct lower *l, const struct expr *a, const struct expr *b)
{
	if (a->kind == EXPR_MAP) {
		if (type_of(l, b)->kind == TYPE_AGGREGATION)
			lower_aggregate(l, a, b);
		else
			lower_map_assign(l, a, b);
		return 0;
	}
	if (lower_is_value(meaning_of(l, a)->variable->type[l->mode]))
		return set_variable(l, a, lower_value(l, b), type_of(l, b));
	if (a->kind == EXPR_SELF)
		lower_self_assign(l, meaning_of(l, a)->variable, b);
	else
		assign_memory(l, meaning_of(l, a)->variable, b);
	return 0;
}

/* What arithmetic gives, before it is cut to the type of a variable. */
static const struct type wide = {.kind = TYPE_INT, .is_signed = true, .size = 8};

/* a op= v; gives the value before (is_post) or after it. */
static ir_value change(struct lower *l, const struct expr *a, enum op op, const struct type *tb,
	ir_value v, bool is_post)
{
	const struct type *ta = type_of(l, a);
	ir_value old, now;

	if (a->kind == EXPR_MAP && (op == OP_ADD || op == OP_SUB) && ta->kind != TYPE_POINTER)
		return lower_map_add(l, a, op == OP_SUB ? negate(l, v) : v, is_post);
	if (a->kind == EXPR_MAP) {
		old = lower_map_value(l, a);
		now = binary(l, op, ta, tb, old, v);
		lower_map_store(l, a, now);
		return is_post ? old : now;
	}
	old = ir_new_value(&l->ir);
	ir_copy(&l->ir, old, variable_value(l, a));
	now = binary(l, op, ta, tb, old, v);
	now = set_variable(l, a, now, &wide);
	return is_post ? old : now;
}

static ir_value assign_value(struct lower *l, const struct expr *e)
{
	if (e->op == OP_NONE)
		return lower_assign(l, e->a, e->b);
	return change(l, e->a, e->op, type_of(l, e->b), lower_value(l, e->b), false);
}

static ir_value step_value(struct lower *l, const struct expr *e)
{
	return change(l, e->a, e->op, &wide, ir_const(&l->ir, 1), e->is_post);
}

/* --- all of them ------------------------------------------------------------------------------ */

ir_value lower_value(struct lower *l, const struct expr *e)
{
	const struct type *t = type_of(l, e);
	struct object o;

	if (e->is_constant[l->mode])
		return ir_const(&l->ir, (int64_t)e->constant[l->mode]);
	switch (e->kind) {
	case EXPR_INT:
		return ir_const(&l->ir, (int64_t)e->value);
	case EXPR_NAME:
		if (t->kind != TYPE_ARRAY)
			return name_value(l, e);
		break;
	case EXPR_LOCAL:
	case EXPR_SELF:
		if (lower_is_value(t))
			return variable_value(l, e);
		break;
	case EXPR_MAP:
		return lower_map_value(l, e);
	case EXPR_UNARY:
		if (t->kind != TYPE_ARRAY)
			return unary_value(l, e);
		break;
	case EXPR_BINARY:
		return binary_value(l, e);
	case EXPR_TERNARY:
		return ternary_value(l, e);
	case EXPR_CAST:
		return lower_cast_value(l, e);
	case EXPR_CALL:
		return lower_builtin(l, e);
	case EXPR_ASSIGN:
		return assign_value(l, e);
	case EXPR_STEP:
		return step_value(l, e);
	case EXPR_BLOCK:
		lower_block(l, e);
		return e->a ? lower_value(l, e->a) : 0;
	case EXPR_MEMBER:
		if (meaning_of(l, e) && meaning_of(l, e)->kind == MEANING_VALUE &&
			t->kind != TYPE_ARRAY)
			return lower_use_value(l, meaning_of(l, e)->value);
		break;
	default:
		break;
	}
	o = lower_object(l, e);
	if (t->kind == TYPE_ARRAY) /* decays to the address of its first element */
		return lower_address(l, &o);
	return lower_load_object(l, &o, t);
}

void lower_effect(struct lower *l, const struct expr *e)
{
	const struct type *t = type_of(l, e);

	if (e->is_constant[l->mode])
		return;
	if (e->kind == EXPR_BLOCK) {
		lower_block(l, e);
		if (e->a)
			lower_effect(l, e->a);
		return;
	}
	if (e->kind == EXPR_ASSIGN || e->kind == EXPR_CALL || (t && lower_is_value(t)))
		lower_value(l, e);
	else if (expr_has_block(e))
		lower_object(l, e);
}
