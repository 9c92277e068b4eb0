/* SPDX-License-Identifier: MIT */
/* What lies in memory: structures and arrays of the program, texts and other longer values of ours.
 */
#include <errno.h>
#include <string.h>

#include "probe/compile/lower.h"

/* --- objects ---------------------------------------------------------------------------------- */

/* What a pointer points to. */
static struct object pointed(struct lower *l, const struct expr *e)
{
	struct object o = {.kind = OBJECT_ADDRESS, .space = type_of(l, e)->space};

	o.address = lower_value(l, e);
	return o;
}

/* A copy in the scratch area: the address of what lies on the stack cannot be kept over a loop. */
static struct object in_scratch(struct lower *l, const struct object *o, uint32_t n)
{
	struct object copy = {.kind = OBJECT_MEMORY};

	if (!l->ir.memories.v[o->mem].is_on_stack)
		return *o;
	copy.mem = ir_new_scratch(&l->ir, n);
	lower_copy_memory(l, o->mem, (uint32_t)o->offset, copy.mem, 0, n);
	return copy;
}

/* Memory of ours at an offset that is found when it runs: the kernel reads it for us. */
static struct object element_at(struct lower *l, const struct object *o, ir_value i, uint64_t step)
{
	struct object element = {.kind = OBJECT_ADDRESS, .space = SPACE_KERNEL};

	if (step != 1)
		i = ir_alu_imm(&l->ir, BPF_MUL, i, (int64_t)step);
	element.address =
		ir_alu(&l->ir, BPF_ADD, ir_address(&l->ir, o->mem, (int32_t)o->offset), i);
	return element;
}

/* Of an array: there is nothing behind its end. The verifier wants to see the bound. */
static struct object element_object(
	struct lower *l, const struct object *o, ir_value index, uint64_t n, uint64_t step)
{
	ir_label ok = ir_new_label(&l->ir);
	ir_value i = ir_new_value(&l->ir);
	struct object copy;

	ir_copy(&l->ir, i, index);
	ir_branch_imm(&l->ir, BPF_JLT, i, (int64_t)n, ok);
	lower_fail(l, FAILURE_OTHER, ERANGE);
	ir_place_label(&l->ir, ok);
	copy = in_scratch(l, o, (uint32_t)(n * step));
	return element_at(l, &copy, i, step);
}

/* Of a text: behind its end are NULs. */
static struct object character_object(
	struct lower *l, const struct expr *e, const struct object *text)
{
	uint32_t n = (uint32_t)type_of(l, e->a)->n;
	struct object copy = {.kind = OBJECT_MEMORY,
		.mem = ir_new_scratch(&l->ir, lower_padded_size(type_of(l, e->a)) + 8)};
	ir_label inside = ir_new_label(&l->ir);
	ir_value i = ir_new_value(&l->ir);

	lower_copy_object(l, text, n, copy.mem, 0);
	ir_zero(&l->ir, copy.mem, (int32_t)n, 8);
	if (e->b->is_constant[l->mode]) {
		copy.offset = e->b->constant[l->mode] < n ? (int64_t)e->b->constant[l->mode] : n;
		return copy;
	}
	ir_copy(&l->ir, i, lower_value(l, e->b));
	ir_branch_imm(&l->ir, BPF_JLT, i, n, inside);
	ir_set_const(&l->ir, i, n);
	ir_place_label(&l->ir, inside);
	return element_at(l, &copy, i, 1);
}

static struct object index_object(struct lower *l, const struct expr *e)
{
	const struct type *ta = type_of(l, e->a);
	const struct type *of = ta->of ? lower_completed(l, ta->of) : ta;
	uint64_t step = of->size ? of->size : 1;
	struct object o;
	ir_value i;

	o = ta->kind == TYPE_POINTER ? pointed(l, e->a) : lower_object(l, e->a);
	if (ta->kind == TYPE_TUPLE) {
		o.offset += lower_tuple_offset(ta, check_tuple_index(e, ta, l->mode));
		return o;
	}
	if (ta->kind == TYPE_STRING)
		return character_object(l, e, &o);
	if (e->b->is_constant[l->mode]) {
		o.offset += (int64_t)(e->b->constant[l->mode] * step);
		return o;
	}
	if (o.kind == OBJECT_MEMORY)
		return element_object(l, &o, lower_value(l, e->b), ta->n, step);
	if (o.kind != OBJECT_ADDRESS) {
		diag_error(l->diags, e->b->place, "constant",
			"the index of an array that was copied must be a constant");
		return o;
	}
	i = lower_value(l, e->b);
	if (ta->kind == TYPE_ARRAY && ta->n > 1) {
		ir_label inside = ir_new_label(&l->ir);

		ir_branch_imm(&l->ir, BPF_JLT, i, (int32_t)ta->n, inside);
		lower_fail(l, FAILURE_OTHER, ERANGE);
		ir_place_label(&l->ir, inside);
	}
	if (step != 1)
		i = ir_alu_imm(&l->ir, BPF_MUL, i, (int64_t)step);
	o.address = ir_alu(&l->ir, BPF_ADD, o.address, i);
	if (o.space == SPACE_USER && l->mode == MODE_32)
		o.address = ir_extend(&l->ir, o.address, 4, false);
	return o;
}

static struct object member_object(struct lower *l, const struct expr *e)
{
	const struct type *ta = type_of(l, e->a);
	const struct meaning *m = meaning_of(l, e);
	struct type_field field = {0};
	struct object o;

	if (m && m->kind == MEANING_VALUE)
		return lower_use_object(l, m->value);
	if (ta->kind == TYPE_TUPLE) {
		o = lower_object(l, e->a);
		o.offset += lower_tuple_offset(ta, check_tuple_index(e, ta, l->mode));
		return o;
	}
	o = ta->kind == TYPE_POINTER ? pointed(l, e->a) : lower_object(l, e->a);
	if (ta->kind == TYPE_POINTER)
		ta = ta->of;
	type_find_field(lower_completed(l, ta), e->name, &field);
	o.offset += (int64_t)field.offset;
	o.bit_offset = field.bit_offset;
	o.bit_size = field.bit_size;
	return o;
}

static struct object into_new_memory(struct lower *l, const struct expr *e)
{
	const struct type *t = type_of(l, e);
	struct object o = {
		.kind = OBJECT_MEMORY, .mem = ir_new_memory(&l->ir, lower_padded_size(t))};

	lower_store(l, e, (struct destination){t, o.mem, 0});
	return o;
}

static struct object name_object(struct lower *l, const struct expr *e)
{
	const struct meaning *m = meaning_of(l, e);

	if (m->kind == MEANING_GLOBAL)
		return (struct object){.kind = OBJECT_ADDRESS,
			.space = SPACE_USER,
			.address = lower_global_address(l, m->global)};
	if (m->kind == MEANING_VALUE && m->value->kind != USE_CONTEXT_DATA)
		return lower_use_object(l, m->value);
	return into_new_memory(l, e);
}

struct object lower_object(struct lower *l, const struct expr *e)
{
	const struct meaning *m = meaning_of(l, e);

	switch (e->kind) {
	case EXPR_UNARY:
		if (e->op == OP_DEREF)
			return pointed(l, e->a);
		break;
	case EXPR_INDEX:
		return index_object(l, e);
	case EXPR_MEMBER:
		if (m && m->kind == MEANING_VALUE && m->value->kind == USE_CONTEXT_DATA)
			break;
		return member_object(l, e);
	case EXPR_NAME:
		return name_object(l, e);
	case EXPR_LOCAL:
		return (struct object){.kind = OBJECT_MEMORY, .mem = m->variable->storage};
	case EXPR_SELF:
		return lower_self_object(l, m->variable);
	case EXPR_MAP:
		return lower_map_object(l, e);
	case EXPR_CAST:
		if (type_of(l, e)->kind == TYPE_ARRAY)
			return lower_cast_object(l, e);
		break;
	case EXPR_BLOCK:
		lower_block(l, e);
		return lower_object(l, e->a);
	default:
		break;
	}
	return into_new_memory(l, e);
}

/* --- texts ------------------------------------------------------------------------------------ */

/* Of our own memory or of the context: the kernel's function for texts reads that too. */
static void near_text(struct lower *l, const struct object *o, uint32_t bytes, ir_mem mem,
	uint32_t at, uint32_t n)
{
	struct ir_arg from = IR_M(o->mem, o->offset);
	struct object last = *o;
	ir_label done = ir_new_label(&l->ir);
	ir_value got;

	if (o->kind == OBJECT_CONTEXT)
		from = IR_V(ir_alu_imm(&l->ir, BPF_ADD, ir_context_address(&l->ir), o->offset));
	ir_zero(&l->ir, mem, (int32_t)at, n);
	got = IR_CALL_(&l->ir, BPF_FUNC_probe_read_kernel_str, IR_M(mem, at),
		IR_I(bytes < n ? bytes + 1 : n), from);
	if (bytes < n)
		return;
	/* It put a NUL where the last character of an array that is full is. */
	last.offset += n - 1;
	ir_branch_imm(&l->ir, BPF_JNE, got, (int32_t)n, done);
	ir_store(&l->ir, mem, (int32_t)(at + n - 1), 1, lower_read(l, &last, 1, false));
	ir_place_label(&l->ir, done);
}

/* A character array: up to its NUL, and NULs behind it. */
static void array_text(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	uint32_t bytes = (uint32_t)type_of(l, e)->size;
	struct object o = lower_object(l, e);

	if (bytes > n)
		bytes = n;
	if (o.kind == OBJECT_ADDRESS) {
		ir_value address = lower_address(l, &o);

		ir_zero(&l->ir, mem, (int32_t)at, n);
		if (bytes < n)
			lower_read_text(l, o.space, address, bytes + 1, mem, at);
		else
			lower_read_full_text(l, o.space, address, n, mem, at);
		return;
	}
	near_text(l, &o, bytes, mem, at, n);
}

/* The text of a tracepoint's __data_loc field lies in its record, behind the fixed part. */
static void data_text(
	struct lower *l, const struct value_use *use, ir_mem mem, uint32_t at, uint32_t n)
{
	ir_value where = ir_context(&l->ir, (int32_t)use->offset, 4, false);
	ir_value offset = ir_alu_imm(&l->ir, BPF_AND, where, 0xffff);
	ir_value record = ir_context_address(&l->ir);

	lower_read_text(l, SPACE_KERNEL, ir_alu(&l->ir, BPF_ADD, record, offset), n, mem, at);
}

static void copy_text(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	uint32_t has = lower_size(type_of(l, e)), bytes = has < n ? has : n;
	struct object o = lower_object(l, e);

	lower_copy_object(l, &o, bytes, mem, at);
	ir_zero(&l->ir, mem, (int32_t)(at + bytes), n - bytes);
}

static void text_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	const struct meaning *m = meaning_of(l, e);

	if (e->kind == EXPR_STRING) {
		lower_literal(l, e->text, e->text_n, mem, at, n);
	} else if (e->kind == EXPR_CAST && type_of(l, e)->kind == TYPE_STRING) {
		lower_cast_text(l, e, mem, at, n);
	} else if (type_of(l, e)->kind == TYPE_ARRAY) {
		array_text(l, e, mem, at, n);
	} else if (m && m->kind == MEANING_VALUE && m->value->kind == USE_CONTEXT_DATA) {
		data_text(l, m->value, mem, at, n);
	} else {
		copy_text(l, e, mem, at, n);
	}
}

ir_mem lower_text(struct lower *l, const struct expr *e)
{
	const struct type *t = type_of(l, e);
	ir_mem mem;

	if (e->kind == EXPR_LOCAL && t->kind == TYPE_STRING)
		return meaning_of(l, e)->variable->storage;
	mem = ir_new_memory(&l->ir, (uint32_t)t->n);
	lower_into(l, e, mem, 0, (uint32_t)t->n);
	return mem;
}

/* --- into memory ------------------------------------------------------------------------------ */

static void ternary_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	ir_label no = ir_new_label(&l->ir), done = ir_new_label(&l->ir);

	if (e->a->is_constant[l->mode]) {
		lower_into(l, e->a->constant[l->mode] ? e->b : e->c, mem, at, n);
		return;
	}
	lower_condition(l, e->a, no);
	lower_into(l, e->b, mem, at, n);
	ir_jump(&l->ir, done);
	ir_place_label(&l->ir, no);
	lower_into(l, e->c, mem, at, n);
	ir_place_label(&l->ir, done);
}

void lower_user_address(struct lower *l, ir_value address, ir_mem mem, uint32_t at)
{
	ir_value pid;

	ir_store(&l->ir, mem, (int32_t)at, 8, address);
	pid = lower_task_number(l, TASK_PROCESS, NULL);
	/* As one word: see lower_index. */
	ir_store(&l->ir, mem, (int32_t)at + 8, 8,
		ir_alu_imm(&l->ir, BPF_OR, pid, (int64_t)(l->mode == MODE_32 ? 32 : 64) << 32));
}

void lower_name(struct lower *l, ir_value number, enum name_of what, uint32_t detail, ir_mem mem,
	uint32_t at)
{
	ir_store(&l->ir, mem, (int32_t)at, 8, number);
	ir_store_imm(&l->ir, mem, (int32_t)at + 8, 8,
		(int64_t)((uint64_t)detail << 32 | (uint32_t)what));
}

/* Texts, buffers, stacks, symbols, times: what has no parts. */
void lower_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	struct object o;

	if (e->kind == EXPR_TERNARY) {
		ternary_into(l, e, mem, at, n);
	} else if (e->kind == EXPR_BLOCK) {
		lower_block(l, e);
		lower_into(l, e->a, mem, at, n);
	} else if (lower_builtin_into(l, e, mem, at, n)) {
		return;
	} else if (type_is_text(type_of(l, e))) {
		text_into(l, e, mem, at, n);
	} else if (lower_is_value(type_of(l, e))) {
		ir_store(&l->ir, mem, (int32_t)at, 8, lower_value(l, e));
	} else {
		o = lower_object(l, e);
		lower_copy_object(l, &o, n, mem, at);
	}
}
