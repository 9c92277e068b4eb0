/* SPDX-License-Identifier: MIT */
/*
 * Reading memory: of the traced program, of the kernel, of the context and of our own. What cannot
 * be read ends the clause and is counted; nothing is made up in its place.
 */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "probe/compile/lower.h"
#include "probe/points/point_kind.h"

#define PAGE_LAST 4095

/* --- failing --------------------------------------------------------------------------------- */

static ir_label failure_label(const struct lower *l, enum failure why)
{
	return l->is_in_error ? l->end : l->failed[why];
}

static void note_error(struct lower *l, ir_value address)
{
	uint32_t line, column;

	if (!l->error[ERROR_NUMBER] || l->is_in_error)
		return;
	place_line(&l->stream->sources, l->ir.place, &line, &column);
	if (address)
		ir_copy(&l->ir, l->error[ERROR_ADDRESS], address);
	else
		ir_set_const(&l->ir, l->error[ERROR_ADDRESS], 0);
	ir_set_const(&l->ir, l->error[ERROR_LINE], line);
}

void lower_fail_unless_ok(
	struct lower *l, ir_value result, bool negative_only, enum failure why, ir_value address)
{
	ir_label ok;

	if (!l->error[ERROR_NUMBER] || l->is_in_error) {
		ir_branch_imm(&l->ir, negative_only ? BPF_JSLT : BPF_JNE, result, 0,
			failure_label(l, why));
		return;
	}
	ok = ir_new_label(&l->ir);
	ir_branch_imm(&l->ir, negative_only ? BPF_JSGE : BPF_JEQ, result, 0, ok);
	ir_copy(&l->ir, l->error[ERROR_NUMBER], ir_alu_imm(&l->ir, BPF_MUL, result, -1));
	note_error(l, address);
	ir_jump(&l->ir, failure_label(l, why));
	ir_place_label(&l->ir, ok);
}

void lower_fail(struct lower *l, enum failure why, int error_number)
{
	if (l->error[ERROR_NUMBER] && !l->is_in_error) {
		ir_set_const(&l->ir, l->error[ERROR_NUMBER], error_number);
		note_error(l, 0);
	}
	ir_jump(&l->ir, failure_label(l, why));
}

ir_mem lower_index(struct lower *l, uint32_t index)
{
	ir_mem mem = ir_new_memory(&l->ir, 8);

	ir_store_imm(&l->ir, mem, 0, 8, index);
	return mem;
}

void lower_count_loss(struct lower *l, uint32_t field)
{
	struct ir_memory_mark mark = ir_memory_mark(&l->ir);
	ir_mem key = lower_index(l, l->clause->clause_i);
	ir_label none = ir_new_label(&l->ir);
	ir_value p;

	p = IR_CALL_(&l->ir, BPF_FUNC_map_lookup_elem, IR_MAP(STREAM_MAP_LOSS), IR_M(key, 0));
	ir_branch_imm(&l->ir, BPF_JEQ, p, 0, none);
	ir_add_atomic(&l->ir, p, (int32_t)field, ir_const(&l->ir, 1));
	ir_place_label(&l->ir, none);
	ir_memory_release(&l->ir, mark);
}

void lower_end_lost(struct lower *l, ir_label lost, ir_label done)
{
	ir_jump(&l->ir, done);
	ir_place_label(&l->ir, lost);
	lower_count_loss(l, offsetof(struct clause_loss, map_full));
	ir_place_label(&l->ir, done);
}

/* --- reading --------------------------------------------------------------------------------- */

ir_value lower_address(struct lower *l, const struct object *o)
{
	return o->offset ? ir_alu_imm(&l->ir, BPF_ADD, o->address, o->offset) : o->address;
}

static int read_helper(struct lower *l, enum space space)
{
	if (space != SPACE_USER)
		return BPF_FUNC_probe_read_kernel;
	l->reads_user = true;
	return BPF_FUNC_copy_from_user;
}

static void read_bytes(struct lower *l, const struct object *o, uint32_t n, ir_mem mem, uint32_t at)
{
	ir_value address = lower_address(l, o);
	ir_value rc =
		IR_CALL_(&l->ir, read_helper(l, o->space), IR_M(mem, at), IR_I(n), IR_V(address));

	lower_fail_unless_ok(l, rc, false, FAILURE_READ, address);
}

/* n bytes of our memory or of the context as one number, whatever their alignment. */
static ir_value load_near(struct lower *l, const struct object *o, uint32_t n, bool is_signed)
{
	ir_value v = 0;

	if (type_is_int_size(n) && o->offset % n == 0)
		return o->kind == OBJECT_MEMORY
			       ? ir_load(&l->ir, o->mem, (int32_t)o->offset, n, is_signed)
			       : ir_context(&l->ir, (int32_t)o->offset, n, is_signed);
	for (uint32_t i = 0; i < n; i++) {
		int32_t at = (int32_t)o->offset + (int32_t)i;
		ir_value byte = o->kind == OBJECT_MEMORY ? ir_load(&l->ir, o->mem, at, 1, false)
							 : ir_context(&l->ir, at, 1, false);

		if (i)
			byte = ir_alu_imm(&l->ir, BPF_LSH, byte, 8 * i);
		v = v ? ir_alu(&l->ir, BPF_OR, v, byte) : byte;
	}
	return type_is_int_size(n) ? ir_extend(&l->ir, v, n, is_signed) : v;
}

ir_value lower_read(struct lower *l, const struct object *o, uint32_t bytes, bool is_signed)
{
	ir_mem mem;

	assert(bytes >= 1 && bytes <= 8);
	if (o->kind != OBJECT_ADDRESS)
		return load_near(l, o, bytes, is_signed);
	mem = ir_new_memory(&l->ir, 8);
	if (!type_is_int_size(bytes))
		ir_zero(&l->ir, mem, 0, 8);
	read_bytes(l, o, bytes, mem, 0);
	return ir_load(&l->ir, mem, 0, type_is_int_size(bytes) ? bytes : 8, is_signed);
}

static ir_value load_bit_field(struct lower *l, const struct object *o, bool is_signed)
{
	uint32_t bits = o->bit_offset + o->bit_size, low_bits = bits > 64 ? 64 : bits;
	struct object rest = *o;
	ir_value v = lower_read(l, o, (low_bits + 7) / 8, false);

	if (o->bit_offset)
		v = ir_alu_imm(&l->ir, BPF_RSH, v, o->bit_offset);
	if (bits > 64) { /* a ninth byte has its last bits */
		rest.offset += 8;
		v = ir_alu(&l->ir, BPF_OR, v,
			ir_alu_imm(&l->ir, BPF_LSH, lower_read(l, &rest, 1, false),
				64 - o->bit_offset));
	}
	if (o->bit_size < 64) {
		v = ir_alu_imm(&l->ir, BPF_LSH, v, 64 - o->bit_size);
		v = ir_alu_imm(&l->ir, is_signed ? BPF_ARSH : BPF_RSH, v, 64 - o->bit_size);
	}
	return v;
}

/* bpftrace 0.17 has no sign in bit-fields. */
static bool has_unsigned_bits(const struct lower *l)
{
	return l->stream->like == STREAM_LIKE_0_17;
}

ir_value lower_load_object(struct lower *l, const struct object *o, const struct type *type)
{
	bool is_signed = type->kind == TYPE_INT && type->is_signed;

	if (o->bit_size)
		return load_bit_field(l, o, is_signed && !has_unsigned_bits(l));
	return lower_read(l, o, type->size > 8 ? 8 : (uint32_t)type->size, is_signed);
}

void lower_copy_memory(
	struct lower *l, ir_mem from, uint32_t from_at, ir_mem to, uint32_t to_at, uint32_t n)
{
	uint32_t step;

	for (uint32_t i = 0; i < n; i += step) {
		step = n - i >= 8 && (from_at + i) % 8 == 0 && (to_at + i) % 8 == 0 ? 8 : 1;
		ir_store(&l->ir, to, (int32_t)(to_at + i), step,
			ir_load(&l->ir, from, (int32_t)(from_at + i), step, false));
	}
}

static void copy_context(struct lower *l, uint32_t offset, uint32_t n, ir_mem mem, uint32_t at)
{
	uint32_t step;

	for (uint32_t i = 0; i < n; i += step) {
		step = n - i >= 8 && (offset + i) % 8 == 0 && (at + i) % 8 == 0	  ? 8
		       : n - i >= 4 && (offset + i) % 4 == 0 && (at + i) % 4 == 0 ? 4
										  : 1;
		ir_store(&l->ir, mem, (int32_t)(at + i), step,
			ir_context(&l->ir, (int32_t)(offset + i), step, false));
	}
}

void lower_copy_object(struct lower *l, const struct object *o, uint32_t n, ir_mem mem, uint32_t at)
{
	if (!n)
		return;
	if (o->kind == OBJECT_ADDRESS)
		read_bytes(l, o, n, mem, at);
	else if (o->kind == OBJECT_MEMORY)
		lower_copy_memory(l, o->mem, (uint32_t)o->offset, mem, at, n);
	else
		copy_context(l, (uint32_t)o->offset, n, mem, at);
}

/*
 * bpf_probe_read_user_str never waits for a page that is not in memory, and there is no such helper
 * that does. So when it fails, the pages where the text begins and may end are touched by one that
 * can, and it is tried again.
 */
static ir_value read_text_patiently(
	struct lower *l, ir_value address, struct ir_arg n, ir_mem mem, uint32_t at)
{
	ir_mem byte = ir_new_memory(&l->ir, 8);
	ir_label done = ir_new_label(&l->ir);
	ir_value rc = ir_new_value(&l->ir), next;

	ir_copy(&l->ir, rc,
		IR_CALL_(&l->ir, BPF_FUNC_probe_read_user_str, IR_M(mem, at), n, IR_V(address)));
	ir_branch_imm(&l->ir, BPF_JSGE, rc, 0, done);
	IR_CALL_(&l->ir, BPF_FUNC_copy_from_user, IR_M(byte, 0), IR_I(1), IR_V(address));
	next = ir_alu_imm(&l->ir, BPF_ADD, ir_alu_imm(&l->ir, BPF_OR, address, PAGE_LAST), 1);
	IR_CALL_(&l->ir, BPF_FUNC_copy_from_user, IR_M(byte, 0), IR_I(1), IR_V(next));
	ir_copy(&l->ir, rc,
		IR_CALL_(&l->ir, BPF_FUNC_probe_read_user_str, IR_M(mem, at), n, IR_V(address)));
	ir_place_label(&l->ir, done);
	return rc;
}

/* n bytes with the NUL, a constant or a value that the verifier sees bounds of. */
static ir_value read_text(struct lower *l, enum space space, ir_value address, struct ir_arg n,
	ir_mem mem, uint32_t at)
{
	ir_value rc;

	if (space != SPACE_USER) {
		rc = IR_CALL_(
			&l->ir, BPF_FUNC_probe_read_kernel_str, IR_M(mem, at), n, IR_V(address));
	} else {
		l->reads_user = true;
		rc = point_has(l->kind, POINT_IN_FILES)
			     ? read_text_patiently(l, address, n, mem, at)
			     : IR_CALL_(&l->ir, BPF_FUNC_probe_read_user_str, IR_M(mem, at), n,
				       IR_V(address));
	}
	lower_fail_unless_ok(l, rc, true, FAILURE_READ, address);
	return rc;
}

ir_value lower_read_text(
	struct lower *l, enum space space, ir_value address, uint32_t n, ir_mem mem, uint32_t at)
{
	ir_zero(&l->ir, mem, (int32_t)at, n);
	return read_text(l, space, address, IR_I(n), mem, at);
}

/* The helper always ends with a NUL: the last character is read by itself. Gives n when there was one. */
static ir_value read_full_text(
	struct lower *l, enum space space, ir_value address, uint32_t n, ir_mem mem, uint32_t at)
{
	struct object last = {.kind = OBJECT_ADDRESS, .space = space, .address = address};
	ir_value got = lower_read_text(l, space, address, n, mem, at);
	ir_label done = ir_new_label(&l->ir);

	last.offset = n - 1;
	ir_branch_imm(&l->ir, BPF_JNE, got, (int32_t)n, done);
	ir_store(&l->ir, mem, (int32_t)(at + n - 1), 1, lower_read(l, &last, 1, false));
	ir_place_label(&l->ir, done);
	return got;
}

void lower_read_full_text(
	struct lower *l, enum space space, ir_value address, uint32_t n, ir_mem mem, uint32_t at)
{
	read_full_text(l, space, address, n, mem, at);
}

ir_value lower_peek(struct lower *l, enum space space, ir_value address, uint32_t bytes)
{
	ir_mem mem = ir_new_memory(&l->ir, 8);

	ir_zero(&l->ir, mem, 0, 8);
	IR_CALL_(&l->ir, read_helper(l, space), IR_M(mem, 0), IR_I(bytes), IR_V(address));
	return ir_load(&l->ir, mem, 0, 8, false);
}

void lower_read_text_to_limit(
	struct lower *l, enum space space, ir_value address, uint32_t n, ir_mem mem, uint32_t at)
{
	ir_label done = ir_new_label(&l->ir);
	ir_value got = read_full_text(l, space, address, n, mem, at), next;

	ir_branch_imm(&l->ir, BPF_JNE, got, (int32_t)n, done);
	ir_branch_imm(
		&l->ir, BPF_JEQ, ir_load(&l->ir, mem, (int32_t)(at + n - 1), 1, false), 0, done);
	next = lower_peek(l, space, ir_alu_imm(&l->ir, BPF_ADD, address, n), 1);
	ir_branch_imm(&l->ir, BPF_JEQ, next, 0, done);
	lower_count_loss(l, offsetof(struct clause_loss, texts_cut));
	ir_place_label(&l->ir, done);
}

/* Through memory with room for the NUL. */
void lower_read_text_up_to(struct lower *l, enum space space, ir_value address, ir_value length,
	uint32_t n, ir_mem mem, uint32_t at)
{
	ir_value size = ir_new_value(&l->ir);
	ir_label fits = ir_new_label(&l->ir);
	ir_mem text = ir_new_memory(&l->ir, (n + 8) & ~7u);

	ir_copy(&l->ir, size, length);
	ir_branch_imm(&l->ir, BPF_JLE, size, (int32_t)n, fits);
	ir_set_const(&l->ir, size, n);
	ir_place_label(&l->ir, fits);
	ir_zero(&l->ir, text, 0, (n + 8) & ~7u);
	read_text(l, space, address, IR_V(ir_alu_imm(&l->ir, BPF_ADD, size, 1)), text, 0);
	lower_copy_memory(l, text, 0, mem, at, n);
}

void lower_literal(
	struct lower *l, const char *text, size_t text_n, ir_mem mem, uint32_t at, uint32_t n)
{
	lower_bytes(l, text, strnlen(text, text_n), mem, at, n);
}

void lower_bytes(
	struct lower *l, const char *text, size_t text_n, ir_mem mem, uint32_t at, uint32_t n)
{
	if (text_n > n)
		text_n = n;
	for (uint32_t i = 0; i < n; i += 8) {
		uint64_t word = 0;
		uint32_t step = n - i < 8 ? n - i : 8;

		for (uint32_t k = 0; k < step && i + k < text_n; k++)
			word |= (uint64_t)(uint8_t)text[i + k] << 8 * k;
		if (step == 8)
			ir_store_imm(&l->ir, mem, (int32_t)(at + i), 8, (int64_t)word);
		else
			for (uint32_t k = 0; k < step; k++)
				ir_store_imm(&l->ir, mem, (int32_t)(at + i + k), 1,
					(int64_t)(word >> 8 * k & 0xff));
	}
}

/* --- registers -------------------------------------------------------------------------------- */

/* A register of the user program (of the kernel at kernel functions), in pt_regs. */
ir_value lower_register(struct lower *l, uint16_t reg)
{
	struct object regs = {.kind = OBJECT_ADDRESS, .space = SPACE_KERNEL, .offset = reg};

	if (point_has(l->kind, POINT_AT_CODE | POINT_ON_CPUS)) {
		ir_value v = ir_context(&l->ir, reg, 8, false);

		return l->mode == MODE_32 && point_has(l->kind, POINT_IN_FILES)
			       ? ir_extend(&l->ir, v, 4, false)
			       : v;
	}
	if (point_has(l->kind, POINT_OF_CALLS)) {
		regs.address = ir_word(&l->ir, STREAM_WORD_REGS);
	} else {
		ir_value task = ir_call(&l->ir, BPF_FUNC_get_current_task_btf, NULL, 0);

		regs.address = IR_CALL_(&l->ir, BPF_FUNC_task_pt_regs, IR_V(task));
	}
	return lower_read(l, &regs, l->mode == MODE_32 ? 4 : 8, false);
}
