/* SPDX-License-Identifier: MIT */
/* Arguments, results and globals of the traced program: from where they are to values. */
#include <errno.h>

#include "probe/compile/lower.h"
#include "probe/points/syscalls.h"

static const uint16_t syscall_regs[N_MODES][6] = {
	[MODE_32] = {PT_BX, PT_CX, PT_DX, PT_SI, PT_DI, PT_BP},
	[MODE_64] = {PT_DI, PT_SI, PT_DX, PT_R10, PT_R8, PT_R9},
};

/* An integer of `type` in a register may have anything above its own bits. */
static ir_value cut(struct lower *l, ir_value v, const struct type *type)
{
	return ir_extend(&l->ir, v, type->size > 8 ? 8 : (uint32_t)type->size,
		type->kind == TYPE_INT && type->is_signed);
}

/* --- places that debug information tells ------------------------------------------------------- */

static ir_value word_extended(struct lower *l, ir_value v)
{
	return ir_extend(&l->ir, v, l->mode == MODE_32 ? 4 : 8, false);
}

static ir_value plus(struct lower *l, ir_value v, int64_t offset)
{
	return offset ? word_extended(l, ir_alu_imm(&l->ir, BPF_ADD, v, offset)) : v;
}

static struct object part_object(struct lower *l, const struct value_part *p)
{
	struct object o = {.kind = OBJECT_ADDRESS, .space = SPACE_USER};
	ir_value address = plus(l, lower_register(l, p->reg), p->offset);

	if (p->is_behind) {
		o.address = address;
		address = plus(l, lower_read(l, &o, l->mode == MODE_32 ? 4 : 8, false), p->next);
	}
	o.address = address;
	return o;
}

static ir_value part_value(struct lower *l, const struct value_part *p)
{
	struct global_use linked = {.iaddr = p->value};
	struct object o;

	switch (p->kind) {
	case PART_CONSTANT:
		return ir_const(&l->ir, (int64_t)p->value);
	case PART_LINKED:
		return lower_global_address(l, &linked);
	case PART_REGISTER:
		return plus(l, lower_register(l, p->reg), p->offset);
	default:
		o = part_object(l, p);
		return lower_read(l, &o, p->bytes > 8 ? 8 : p->bytes, false);
	}
}

/* mem[at .. at + n) = the low bytes of a value */
static void store_bytes(struct lower *l, ir_mem mem, uint32_t at, ir_value v, uint32_t n)
{
	if (type_is_int_size(n) && at % n == 0) {
		ir_store(&l->ir, mem, (int32_t)at, n, v);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		ir_store(&l->ir, mem, (int32_t)(at + i), 1,
			i ? ir_alu_imm(&l->ir, BPF_RSH, v, 8 * i) : v);
}

static struct object parts_object(struct lower *l, const struct value_place *p)
{
	struct object o = {.kind = OBJECT_MEMORY};
	uint32_t bytes = (p->bytes + 7) & ~7u, at = 0;

	if (p->n_parts == 1 && p->parts[0].kind == PART_MEMORY)
		return part_object(l, &p->parts[0]);
	o.mem = ir_new_memory(&l->ir, bytes);
	ir_zero(&l->ir, o.mem, 0, bytes);
	for (uint32_t i = 0; i < p->n_parts; i++) {
		const struct value_part *part = &p->parts[i];
		struct object from;

		if (part->kind == PART_MEMORY) {
			from = part_object(l, part);
			lower_copy_object(l, &from, part->bytes, o.mem, at);
		} else {
			store_bytes(l, o.mem, at, part_value(l, part), part->bytes);
		}
		at += part->bytes;
	}
	return o;
}

static ir_value place_value(struct lower *l, const struct value_use *use)
{
	const struct value_place *p = &use->place;
	struct object o;
	ir_value v;

	switch (p->kind) {
	case VALUE_IN_REGISTER:
	case VALUE_IN_REGISTERS:
		v = lower_register(l, p->reg[0]);
		if (p->n_regs > 1 && l->mode == MODE_32)
			v = ir_alu(&l->ir, BPF_OR, v,
				ir_alu_imm(&l->ir, BPF_LSH, lower_register(l, p->reg[1]), 32));
		return cut(l, v, use->type);
	case VALUE_IN_PARTS:
		if (p->n_parts == 1 && type_is_int_size(p->parts[0].bytes))
			return cut(l, part_value(l, &p->parts[0]), use->type);
		/* fall through */
	case VALUE_ON_STACK:
	case VALUE_BEHIND_POINTER:
		o = lower_use_object(l, use);
		return lower_load_object(l, &o, use->type);
	case VALUE_IN_VECTOR:
	case VALUE_UNKNOWN:
		break;
	}
	lower_fail(l, FAILURE_OTHER, EOPNOTSUPP);
	return ir_const(&l->ir, 0);
}

/* --- results of system calls ------------------------------------------------------------------- */

/* v = low < -4095 (unsigned) ? zero-extended low : sign-extended low */
static void copy_address(struct lower *l, ir_value v, ir_value low)
{
	ir_label is_error = ir_new_label(&l->ir);

	ir_copy(&l->ir, v, ir_extend(&l->ir, low, 4, true));
	ir_branch(&l->ir, BPF_JGE, v, ir_const(&l->ir, -SYSCALL_ERROR_MAX), is_error);
	ir_copy(&l->ir, v, ir_extend(&l->ir, low, 4, false));
	ir_place_label(&l->ir, is_error);
}

/* Where the clause sees several calls: the numbers of those that return addresses. */
struct address_calls {
	struct lower *l;
	ir_value number;
	ir_label found;
	uint32_t n;
};

static void branch_on_call(void *ctx, int number)
{
	struct address_calls *a = ctx;
	const struct point *point = a->l->clause->point->found;
	const uint64_t *numbers = point ? point->numbers[a->l->mode] : NULL;

	if (numbers && !point->is_all_calls && !(numbers[number / 64] >> (number % 64) & 1))
		return;
	ir_branch_imm(&a->l->ir, BPF_JEQ, a->number, number, a->found);
	a->n++;
}

static ir_value result_of_several(struct lower *l, ir_value low)
{
	struct address_calls a = {.l = l, .number = ir_word(&l->ir, STREAM_WORD_CALL)};
	ir_label done = ir_new_label(&l->ir);
	ir_value v = ir_new_value(&l->ir);

	a.found = ir_new_label(&l->ir);
	ir_copy(&l->ir, v, ir_extend(&l->ir, low, 4, true));
	syscall_each_address(l->mode, branch_on_call, &a);
	if (!a.n)
		return v;
	ir_jump(&l->ir, done);
	ir_place_label(&l->ir, a.found);
	copy_address(l, v, low);
	ir_place_label(&l->ir, done);
	return v;
}

static ir_value syscall_value(struct lower *l, const struct value_use *use)
{
	ir_value raw = ir_context(&l->ir, 8, 8, false), v;

	if (use->index == RESULT_OF_NUMBER)
		return cut(l, raw, use->type);
	if (use->index == RESULT_OF_SEVERAL)
		return result_of_several(l, raw);
	v = ir_new_value(&l->ir);
	copy_address(l, v, raw);
	return v;
}

static ir_value usdt_value(struct lower *l, const struct value_use *use)
{
	const struct usdt_operand *op = &use->operand;
	struct object o = {.kind = OBJECT_ADDRESS, .space = SPACE_USER, .offset = 0};
	ir_value v;

	switch (op->kind) {
	case USDT_CONSTANT:
		return ir_const(&l->ir, (int64_t)fold_convert(use->type, (uint64_t)op->value));
	case USDT_REGISTER:
		v = lower_register(l, op->reg);
		if (op->first_byte)
			v = ir_alu_imm(&l->ir, BPF_RSH, v, 8 * op->first_byte);
		return ir_extend(&l->ir, v, op->bytes, op->is_signed);
	case USDT_LINKED:
		o.address =
			lower_global_address(l, &(struct global_use){.iaddr = (uint64_t)op->value});
		return lower_read(l, &o, op->bytes, op->is_signed);
	case USDT_SYMBOL:
	case USDT_UNREADABLE:
		lower_fail(l, FAILURE_OTHER, EOPNOTSUPP);
		return ir_const(&l->ir, 0);
	case USDT_MEMORY:
		break;
	}
	v = op->reg == 0xffff ? ir_const(&l->ir, 0) : lower_register(l, op->reg);
	if (op->index != 0xffff)
		v = ir_alu(&l->ir, BPF_ADD, v,
			ir_alu_imm(&l->ir, BPF_MUL, lower_register(l, op->index), op->scale));
	if (op->value)
		v = ir_alu_imm(&l->ir, BPF_ADD, v, op->value);
	o.address = ir_extend(&l->ir, v, l->mode == MODE_32 ? 4 : 8, false);
	return lower_read(l, &o, op->bytes, op->is_signed);
}

ir_value lower_use_value(struct lower *l, const struct value_use *use)
{
	struct object o = {.kind = OBJECT_CONTEXT, .offset = use->offset};

	switch (use->kind) {
	case USE_PLACE:
		return place_value(l, use);
	case USE_SYSCALL_ARG:
		return cut(l, lower_register(l, syscall_regs[l->mode][use->index]), use->type);
	case USE_SYSCALL_RESULT:
		return syscall_value(l, use);
	case USE_CONTEXT_FIELD:
		return lower_load_object(l, &o, use->type);
	case USE_CONTEXT_WORD:
		return cut(l, ir_context(&l->ir, (int32_t)use->index * 8, 8, false), use->type);
	case USE_USDT:
		return usdt_value(l, use);
	case USE_CONTEXT_DATA:
	case USE_UNREADABLE:
		break;
	}
	lower_fail(l, FAILURE_OTHER, EOPNOTSUPP);
	return ir_const(&l->ir, 0);
}

/* A structure of up to 16 bytes in two registers, put into memory. */
static struct object registers_object(struct lower *l, const struct value_place *p)
{
	struct object o = {.kind = OBJECT_MEMORY, .mem = ir_new_memory(&l->ir, 16)};

	ir_zero(&l->ir, o.mem, 0, 16);
	for (uint32_t i = 0; i < p->n_regs && i < 2; i++)
		ir_store(&l->ir, o.mem, (int32_t)(8 * i), 8, lower_register(l, p->reg[i]));
	return o;
}

struct object lower_use_object(struct lower *l, const struct value_use *use)
{
	struct object o = {.kind = OBJECT_ADDRESS, .space = SPACE_USER};
	const struct value_place *p = &use->place;

	if (use->kind == USE_CONTEXT_FIELD)
		return (struct object){.kind = OBJECT_CONTEXT, .offset = use->offset};
	if (use->kind != USE_PLACE || p->kind == VALUE_IN_VECTOR || p->kind == VALUE_UNKNOWN) {
		lower_fail(l, FAILURE_OTHER, EOPNOTSUPP);
		o.address = ir_const(&l->ir, 0);
	} else if (p->kind == VALUE_ON_STACK) {
		o.address = lower_register(l, PT_SP);
		o.offset = p->offset;
	} else if (p->kind == VALUE_BEHIND_POINTER) {
		o.address = lower_register(l, p->reg[0]);
	} else if (p->kind == VALUE_IN_PARTS) {
		return parts_object(l, p);
	} else {
		return registers_object(l, p);
	}
	return o;
}

ir_value lower_fact(struct lower *l, enum run_fact fact)
{
	ir_mem key = lower_index(l, fact);
	ir_label found = ir_new_label(&l->ir);
	ir_value p;

	p = IR_CALL_(&l->ir, BPF_FUNC_map_lookup_elem, IR_MAP(STREAM_MAP_FACTS), IR_M(key, 0));
	ir_branch_imm(&l->ir, BPF_JNE, p, 0, found);
	lower_fail(l, FAILURE_OTHER, ENOENT);
	ir_place_label(&l->ir, found);
	return ir_load_at(&l->ir, p, 0, 8, false);
}

/* Where the file is loaded follows from where the site is and where the linker put it. */
ir_value lower_global_address(struct lower *l, const struct global_use *g)
{
	ir_mem key = ir_new_memory(&l->ir, 8);
	ir_label found = ir_new_label(&l->ir);
	ir_value p, linked, bias;

	l->uses_site = true;
	ir_store(&l->ir, key, 0, 8, ir_word(&l->ir, STREAM_WORD_SITE));
	p = IR_CALL_(&l->ir, BPF_FUNC_map_lookup_elem, IR_MAP(STREAM_MAP_SITES), IR_M(key, 0));
	ir_branch_imm(&l->ir, BPF_JNE, p, 0, found);
	lower_fail(l, FAILURE_OTHER, ENOENT);
	ir_place_label(&l->ir, found);
	linked = ir_load_at(&l->ir, p, 0, 8, false);
	bias = ir_alu(&l->ir, BPF_SUB, IR_CALL_(&l->ir, BPF_FUNC_get_func_ip, IR_CTX), linked);
	return ir_extend(&l->ir, ir_alu_imm(&l->ir, BPF_ADD, bias, (int64_t)g->iaddr),
		l->mode == MODE_32 ? 4 : 8, false);
}
