/* SPDX-License-Identifier: MIT */
/*
 * Values into the places where they are kept: variables, keys and values of maps, records.
 *
 * A place has a type of its own, which may be wider than that of the value: a longer text, a tuple
 * with longer texts in it, 64 bits instead of 8. So everything is stored with the offsets and sizes of
 * the place, part by part, and what the value does not fill is zero: two equal values are equal bytes.
 * Each part begins at a multiple of 8 and integers in it are 64 bits wide, as in shapes.
 */
#include <string.h>

#include "probe/compile/lower.h"

/* --- layout ----------------------------------------------------------------------------------- */

uint32_t lower_size(const struct type *type)
{
	uint32_t n = 0;

	switch (type->kind) {
	case TYPE_STRING:
		return (uint32_t)type->n;
	case TYPE_BYTES:
		return (uint32_t)type->n + 8;
	case TYPE_USTACK:
	case TYPE_USYM:
	case TYPE_TIME:
	case TYPE_NAME:
		return 16;
	case TYPE_INET:
		return 24;
	case TYPE_TUPLE:
		for (uint32_t i = 0; i < type->n_fields; i++)
			n += lower_padded_size(type->fields[i].type);
		return n;
	case TYPE_STRUCT:
	case TYPE_ARRAY:
		return (uint32_t)type->size;
	default:
		return 8;
	}
}

uint32_t lower_tuple_offset(const struct type *tuple, uint32_t i)
{
	uint32_t at = 0;

	for (uint32_t k = 0; k < i; k++)
		at += lower_padded_size(tuple->fields[k].type);
	return at;
}

/* --- one value -------------------------------------------------------------------------------- */

ir_value lower_convert(struct lower *l, ir_value v, const struct type *from, const struct type *to)
{
	if (!type_is_scalar(to) || type_is_same(from, to))
		return v;
	if (to->is_bool)
		return from->is_bool ? v : ir_set_imm(&l->ir, BPF_JNE, v, 0);
	if (to->size >= 8 || (from->kind == TYPE_POINTER && to->kind == TYPE_POINTER))
		return v;
	return ir_extend(&l->ir, v, (uint32_t)to->size, to->kind == TYPE_INT && to->is_signed);
}

static void store_value(struct lower *l, ir_value v, const struct type *from, struct destination to)
{
	ir_store(&l->ir, to.mem, (int32_t)to.at, 8, lower_convert(l, v, from, to.type));
}

/* --- what lies in memory already --------------------------------------------------------------- */

/* As many bytes as both have, zeros behind them. */
static void copy_padded(
	struct lower *l, const struct object *o, const struct type *from, struct destination to)
{
	uint32_t has = lower_size(from), room = lower_padded_size(to.type);
	uint32_t n = has < lower_size(to.type) ? has : lower_size(to.type);

	lower_copy_object(l, o, n, to.mem, to.at);
	ir_zero(&l->ir, to.mem, (int32_t)(to.at + n), room - n);
}

static void store_parts(
	struct lower *l, const struct object *o, const struct type *from, struct destination to);

static void store_part(
	struct lower *l, const struct object *o, const struct type *from, struct destination to)
{
	if (lower_is_value(to.type))
		store_value(l, lower_read(l, o, 8, false), from, to);
	else if (to.type->kind == TYPE_TUPLE)
		store_parts(l, o, from, to);
	else
		copy_padded(l, o, from, to);
}

static void store_parts(
	struct lower *l, const struct object *o, const struct type *from, struct destination to)
{
	const struct type *tuple = to.type;
	struct object part = *o;
	struct destination at = to;

	if (type_is_same(from, tuple)) {
		copy_padded(l, o, from, to);
		return;
	}
	for (uint32_t i = 0; i < tuple->n_fields && i < from->n_fields; i++) {
		uint32_t k = type_tuple_find(from, tuple->fields[i].name, i);

		part.offset = o->offset + lower_tuple_offset(from, k);
		at.type = tuple->fields[i].type;
		at.at = to.at + lower_tuple_offset(tuple, i);
		store_part(l, &part, from->fields[k].type, at);
	}
}

/* --- expressions ------------------------------------------------------------------------------ */

static void store_tuple(struct lower *l, const struct expr *e, struct destination to)
{
	struct destination part = to;
	struct object o;
	uint32_t i = 0;

	if (e->kind != EXPR_TUPLE) {
		o = lower_object(l, e);
		store_parts(l, &o, type_of(l, e), to);
		return;
	}
	for (const struct expr *a = e->args; a; a = a->next, i++) {
		uint32_t k = type_tuple_find(to.type, a->label, i);

		part.type = to.type->fields[k].type;
		part.at = to.at + lower_tuple_offset(to.type, k);
		lower_store(l, a, part);
	}
}

static void store_ternary(struct lower *l, const struct expr *e, struct destination to)
{
	ir_label no = ir_new_label(&l->ir), done = ir_new_label(&l->ir);

	if (e->a->is_constant[l->mode]) {
		lower_store(l, e->a->constant[l->mode] ? e->b : e->c, to);
		return;
	}
	lower_condition(l, e->a, no);
	lower_store(l, e->b, to);
	ir_jump(&l->ir, done);
	ir_place_label(&l->ir, no);
	lower_store(l, e->c, to);
	ir_place_label(&l->ir, done);
}

/* A text or buffer. The room is cleared first where less than all of it is written. */
static void store_bytes(struct lower *l, const struct expr *e, struct destination to)
{
	uint32_t n = lower_size(to.type), padded = lower_padded_size(to.type);

	if (to.type->kind == TYPE_BYTES) {
		ir_zero(&l->ir, to.mem, (int32_t)to.at, padded);
		n = lower_size(type_of(l, e));
	} else {
		ir_zero(&l->ir, to.mem, (int32_t)(to.at + n), padded - n);
	}
	lower_into(l, e, to.mem, to.at, n);
}

/* A copy of a structure is padded to 8 bytes; what is behind it must be zero in keys. */
static void store_struct(struct lower *l, const struct expr *e, struct destination to)
{
	struct object o;

	ir_zero(&l->ir, to.mem, (int32_t)to.at, lower_padded_size(to.type));
	if (lower_builtin_into(l, e, to.mem, to.at, lower_size(to.type)))
		return;
	o = lower_object(l, e);
	lower_copy_object(l, &o, lower_size(to.type), to.mem, to.at);
}

void lower_store(struct lower *l, const struct expr *e, struct destination to)
{
	if (e->kind == EXPR_NAME && meaning_of(l, e) && meaning_of(l, e)->record)
		e = meaning_of(l, e)->record; /* args */
	if (e->kind == EXPR_BLOCK) {
		lower_block(l, e);
		lower_store(l, e->a, to);
	} else if (type_is_scalar(to.type) && e->is_constant[l->mode]) {
		ir_store_imm(&l->ir, to.mem, (int32_t)to.at, 8,
			(int64_t)fold_convert(to.type, e->constant[l->mode]));
	} else if (lower_is_value(to.type)) {
		store_value(l, lower_value(l, e), type_of(l, e), to);
	} else if (e->kind == EXPR_TERNARY) {
		store_ternary(l, e, to);
	} else if (to.type->kind == TYPE_TUPLE) {
		store_tuple(l, e, to);
	} else if (type_is_text(to.type) || type_is_special(to.type) ||
		   to.type->kind == TYPE_BYTES) {
		store_bytes(l, e, to);
	} else {
		store_struct(l, e, to);
	}
}

ir_value lower_equal(
	struct lower *l, const struct expr *a, const struct expr *b, const struct type *type)
{
	uint32_t n = lower_padded_size(type);
	ir_mem ma = ir_new_memory(&l->ir, n), mb = ir_new_memory(&l->ir, n);
	ir_label differ = ir_new_label(&l->ir);
	ir_value is_equal = ir_new_value(&l->ir);

	lower_store(l, a, (struct destination){type, ma, 0});
	lower_store(l, b, (struct destination){type, mb, 0});
	ir_set_const(&l->ir, is_equal, 0);
	for (uint32_t i = 0; i < n; i += 8)
		ir_branch(&l->ir, BPF_JNE, ir_load(&l->ir, ma, (int32_t)i, 8, false),
			ir_load(&l->ir, mb, (int32_t)i, 8, false), differ);
	ir_set_const(&l->ir, is_equal, 1);
	ir_place_label(&l->ir, differ);
	return is_equal;
}
