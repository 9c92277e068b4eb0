/* SPDX-License-Identifier: MIT */
/*
 * Texts: n bytes padded with NULs, so that two are equal when all their bytes are, and one can be a
 * key. Everything is unrolled: n is known and small.
 */
#include <string.h>

#include "probe/compile/lower.h"

static const struct expr *literal(const struct expr *e)
{
	return e->kind == EXPR_STRING ? e : NULL;
}

/* A text ends at its NUL, also a literal that goes on behind it. */
static uint32_t literal_bytes(const struct expr *text)
{
	return (uint32_t)strlen(text->text);
}

static uint32_t capacity(struct lower *l, const struct expr *e)
{
	const struct type *t = type_of(l, e);

	return t->kind == TYPE_ARRAY || t->kind == TYPE_STRING ? (uint32_t)t->n : 0;
}

/* Compares `n` bytes of memory with a literal, or with the memory `b`; goes to `differ` when they
 * do. */
static void compare(
	struct lower *l, ir_mem a, ir_mem b, const struct expr *text, uint32_t n, ir_label differ)
{
	uint32_t n_text = text ? literal_bytes(text) : 0, step;

	for (uint32_t i = 0; i < n; i += step) {
		uint64_t word = 0;
		ir_value va;

		step = n - i >= 8 ? 8 : 1;
		va = ir_load(&l->ir, a, (int32_t)i, step, false);
		for (uint32_t k = 0; text && k < step && i + k < n_text; k++)
			word |= (uint64_t)(uint8_t)text->text[i + k] << 8 * k;
		if (text)
			ir_branch_imm(&l->ir, BPF_JNE, va, (int64_t)word, differ);
		else
			ir_branch(&l->ir, BPF_JNE, va, ir_load(&l->ir, b, (int32_t)i, step, false),
				differ);
	}
}

/* What is longer than the other text must end where that one's room does. */
static void must_end(struct lower *l, ir_mem a, uint32_t room, uint32_t at, ir_label differ)
{
	if (at < room)
		ir_branch_imm(
			&l->ir, BPF_JNE, ir_load(&l->ir, a, (int32_t)at, 1, false), 0, differ);
}

/* No more of a text is read than tells it from the literal that it is compared with: as much as the
 * literal has, and whether it goes on. The helper ends what it cuts with a NUL: one more byte. */
static ir_mem text_beside(
	struct lower *l, const struct expr *e, const struct expr *text, int64_t n, uint32_t *room)
{
	uint32_t all = literal_bytes(text), has = n >= 0 && (uint64_t)n < all ? (uint32_t)n : all;
	bool is_read =
		e->kind == EXPR_CALL && !e->args->next && lower_is_value(type_of(l, e->args));
	ir_mem mem;

	if (!is_read || has + 2 >= *room)
		return lower_text(l, e);
	*room = has + 2;
	mem = ir_new_memory(&l->ir, *room);
	lower_into(l, e, mem, 0, *room);
	return mem;
}

/* 1 when the first n bytes (n < 0: all) are equal. */
ir_value lower_text_equal(struct lower *l, const struct expr *a, const struct expr *b, int64_t n)
{
	ir_label differ = ir_new_label(&l->ir), done = ir_new_label(&l->ir);
	ir_value is_equal = ir_new_value(&l->ir);
	const struct expr *text = literal(b);
	uint32_t room_a, room_b, common;
	ir_mem ma, mb;

	if (!text && literal(a)) {
		const struct expr *swap = a;

		a = b, b = swap, text = literal(b);
	}
	room_a = capacity(l, a);
	room_b = text ? literal_bytes(text) : capacity(l, b);
	ma = text ? text_beside(l, a, text, n, &room_a) : lower_text(l, a);
	common = room_a < room_b ? room_a : room_b;
	if (n >= 0 && (uint64_t)n <= common) {
		common = (uint32_t)n;
		room_a = room_b = common;
	}
	if (text) {
		compare(l, ma, 0, text, common, differ);
		if (room_b > common) /* the literal is longer than the text can be */
			ir_jump(&l->ir, differ);
	} else {
		mb = lower_text(l, b);
		compare(l, ma, mb, NULL, common, differ);
		must_end(l, mb, room_b, common, differ);
	}
	must_end(l, ma, room_a, common, differ);
	ir_set_const(&l->ir, is_equal, 1);
	ir_jump(&l->ir, done);
	ir_place_label(&l->ir, differ);
	ir_set_const(&l->ir, is_equal, 0);
	ir_place_label(&l->ir, done);
	return is_equal;
}

/* The kernel's function for texts says how long they are, its copy is not used: a branch for each
 * byte would be as many ways for the verifier to follow. */
ir_value lower_text_length(struct lower *l, const struct expr *call)
{
	const struct expr *e = call->args;
	uint32_t room = capacity(l, e);
	ir_mem mem, copy;
	ir_value with_nul;

	if (literal(e))
		return ir_const(&l->ir, (int64_t)strlen(e->text));
	mem = lower_text(l, e);
	copy = ir_new_memory(&l->ir, room + 1);
	with_nul = IR_CALL_(&l->ir, BPF_FUNC_probe_read_kernel_str, IR_M(copy, 0), IR_I(room + 1),
		IR_M(mem, 0));
	return ir_alu_imm(&l->ir, BPF_SUB, with_nul, 1);
}
