/* SPDX-License-Identifier: MIT */
/*
 * Expressions of places (DWARF 5 section 2.5). Nearly all are a register, a sum of a register and a
 * constant, or pieces of these; anything that computes more is refused.
 */
#include "dwarf/attr_form.h"
#include "probe/types/dwarf_place.h"

#define STACK_MAX      8
#define EXPRESSION_MAX 512 /* bytes that are looked at */

enum {
	DW_OP_ADDR = 0x03,
	DW_OP_DEREF = 0x06,
	DW_OP_CONST1U = 0x08,
	DW_OP_CONST1S,
	DW_OP_CONST2U,
	DW_OP_CONST2S,
	DW_OP_CONST4U,
	DW_OP_CONST4S,
	DW_OP_CONST8U,
	DW_OP_CONST8S,
	DW_OP_CONSTU,
	DW_OP_CONSTS,
	DW_OP_DUP,
	DW_OP_DROP,
	DW_OP_MINUS = 0x1c,
	DW_OP_PLUS = 0x22,
	DW_OP_PLUS_UCONST = 0x23,
	DW_OP_LIT0 = 0x30,
	DW_OP_REG0 = 0x50,
	DW_OP_BREG0 = 0x70,
	DW_OP_REGX = 0x90,
	DW_OP_FBREG = 0x91,
	DW_OP_BREGX = 0x92,
	DW_OP_PIECE = 0x93,
	DW_OP_NOP = 0x96,
	DW_OP_CALL_FRAME_CFA = 0x9c,
	DW_OP_IMPLICIT_VALUE = 0x9e,
	DW_OP_STACK_VALUE = 0x9f,
	DW_OP_IMPLICIT_POINTER = 0xa0,
	DW_OP_ADDRX = 0xa1,
	DW_OP_CONSTX = 0xa2,
	DW_OP_ENTRY_VALUE = 0xa3,
	DW_OP_GNU_IMPLICIT_POINTER = 0xf2,
	DW_OP_GNU_ENTRY_VALUE = 0xf3,
	DW_OP_GNU_ADDR_INDEX = 0xfb,
	DW_OP_GNU_CONST_INDEX = 0xfc
};

static const char computed[] = "is computed in a way that is not understood";
static const char broken[] = "has damaged debug information";

struct reading {
	struct place_finder *f;
	struct expression_result *out;
	struct cursor c;
	struct term stack[STACK_MAX];
	uint32_t depth;
	struct piece piece; /* without DW_OP_piece behind it yet */
};

static void fail(struct reading *r, const char *why)
{
	if (!r->out->why)
		r->out->why = why;
}

static void push(struct reading *r, struct term t)
{
	if (r->depth == STACK_MAX)
		fail(r, computed);
	else
		r->stack[r->depth++] = t;
}

static struct term pop(struct reading *r)
{
	if (!r->depth) {
		fail(r, broken);
		return (struct term){0};
	}
	return r->stack[--r->depth];
}

static void push_constant(struct reading *r, int64_t value)
{
	push(r, (struct term){.kind = TERM_CONSTANT, .offset = value});
}

static void push_register(struct reading *r, uint64_t reg, int64_t offset)
{
	if (reg > 16)
		fail(r, computed);
	push(r, (struct term){.kind = TERM_REGISTER, .reg = (uint8_t)reg, .offset = offset});
}

static void push_frame_base(struct reading *r, int64_t offset)
{
	struct term base = {0};

	if (!dwarf_frame_base(r->f, &base))
		fail(r, "is in the frame of the function, which is not known here");
	base.offset += offset;
	push(r, base);
}

static void deref(struct reading *r)
{
	struct term t = pop(r);

	if (t.kind != TERM_REGISTER && t.kind != TERM_FRAME)
		fail(r, computed);
	push(r, (struct term){.kind = TERM_BEHIND,
			.is_frame = t.kind == TERM_FRAME,
			.reg = t.reg,
			.inner = t.offset});
}

static void add(struct reading *r, int sign)
{
	struct term b = pop(r), a = pop(r);

	if (b.kind != TERM_CONSTANT && sign > 0 && a.kind == TERM_CONSTANT) {
		struct term swap = a;

		a = b;
		b = swap;
	}
	if (b.kind != TERM_CONSTANT)
		fail(r, computed);
	a.offset = (int64_t)((uint64_t)a.offset + (uint64_t)sign * (uint64_t)b.offset);
	push(r, a);
}

static void push_indexed(struct reading *r, enum term_kind kind)
{
	uint64_t v = 0;

	if (!debug_unit_addr(r->f->function.unit, FORM_ADDRX, cursor_uleb(&r->c), &v))
		fail(r, broken);
	push(r, (struct term){.kind = kind, .offset = (int64_t)v});
}

/* What a register had at the first instruction: known there, and lost further on. */
static void entry_value(struct reading *r)
{
	struct span inner = cursor_bytes(&r->c, cursor_uleb(&r->c));
	struct cursor c = cursor_of(inner);
	uint8_t op = cursor_u8(&c);
	uint64_t reg = op == DW_OP_REGX ? cursor_uleb(&c) : (uint64_t)(op - DW_OP_REG0);

	if (r->f->addr != r->f->entry)
		fail(r, "is not kept up to here");
	if (c.failed || cursor_left(&c) ||
		(op != DW_OP_REGX && (op < DW_OP_REG0 || op >= DW_OP_BREG0)))
		fail(r, computed);
	push_register(r, reg, 0);
}

static void set_register(struct reading *r, uint64_t reg)
{
	r->piece = (struct piece){.kind = PIECE_REGISTER, .reg = (uint8_t)(reg > 255 ? 255 : reg)};
}

static bool constant(struct reading *r, uint8_t op)
{
	switch (op) {
	case DW_OP_CONST1U:
		push_constant(r, cursor_u8(&r->c));
		return true;
	case DW_OP_CONST1S:
		push_constant(r, (int8_t)cursor_u8(&r->c));
		return true;
	case DW_OP_CONST2U:
		push_constant(r, cursor_u16(&r->c));
		return true;
	case DW_OP_CONST2S:
		push_constant(r, (int16_t)cursor_u16(&r->c));
		return true;
	case DW_OP_CONST4U:
		push_constant(r, cursor_u32(&r->c));
		return true;
	case DW_OP_CONST4S:
		push_constant(r, (int32_t)cursor_u32(&r->c));
		return true;
	case DW_OP_CONST8U:
	case DW_OP_CONST8S:
		push_constant(r, (int64_t)cursor_u64(&r->c));
		return true;
	case DW_OP_CONSTU:
		push_constant(r, (int64_t)cursor_uleb(&r->c));
		return true;
	case DW_OP_CONSTS:
		push_constant(r, cursor_sleb(&r->c));
		return true;
	default:
		if (op < DW_OP_LIT0 || op >= DW_OP_REG0)
			return false;
		push_constant(r, op - DW_OP_LIT0);
		return true;
	}
}

/* Operations on the stack. */
static bool arithmetic(struct reading *r, uint8_t op)
{
	struct term t;

	switch (op) {
	case DW_OP_NOP:
		return true;
	case DW_OP_DEREF:
		deref(r);
		return true;
	case DW_OP_DUP:
		t = pop(r);
		push(r, t);
		push(r, t);
		return true;
	case DW_OP_DROP:
		pop(r);
		return true;
	case DW_OP_PLUS:
	case DW_OP_MINUS:
		add(r, op == DW_OP_PLUS ? 1 : -1);
		return true;
	case DW_OP_PLUS_UCONST:
		push_constant(r, (int64_t)cursor_uleb(&r->c));
		add(r, 1);
		return true;
	default:
		return constant(r, op);
	}
}

static bool address(struct reading *r, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case DW_OP_ADDR:
		push(r, (struct term){.kind = TERM_LINKED,
				.offset = (int64_t)(r->f->function.unit->sizes.addr == 8
							    ? cursor_u64(&r->c)
							    : cursor_u32(&r->c))});
		return true;
	case DW_OP_ADDRX:
	case DW_OP_GNU_ADDR_INDEX:
		push_indexed(r, TERM_LINKED);
		return true;
	case DW_OP_CONSTX:
	case DW_OP_GNU_CONST_INDEX:
		push_indexed(r, TERM_CONSTANT);
		return true;
	case DW_OP_FBREG:
		push_frame_base(r, cursor_sleb(&r->c));
		return true;
	case DW_OP_CALL_FRAME_CFA:
		push(r, (struct term){.kind = TERM_FRAME});
		return true;
	case DW_OP_BREGX:
		reg = cursor_uleb(&r->c);
		push_register(r, reg, cursor_sleb(&r->c));
		return true;
	case DW_OP_ENTRY_VALUE:
	case DW_OP_GNU_ENTRY_VALUE:
		entry_value(r);
		return true;
	default:
		if (op < DW_OP_BREG0 || op >= DW_OP_REGX)
			return false;
		push_register(r, (uint64_t)(op - DW_OP_BREG0), cursor_sleb(&r->c));
		return true;
	}
}

/* What ends the description of a place. */
static bool place(struct reading *r, uint8_t op)
{
	switch (op) {
	case DW_OP_REGX:
		set_register(r, cursor_uleb(&r->c));
		return true;
	case DW_OP_STACK_VALUE:
		r->piece = (struct piece){.kind = PIECE_VALUE, .term = pop(r)};
		return true;
	case DW_OP_IMPLICIT_VALUE:
		r->piece = (struct piece){
			.kind = PIECE_BYTES, .bytes = cursor_bytes(&r->c, cursor_uleb(&r->c))};
		return true;
	default:
		if (op < DW_OP_REG0 || op >= DW_OP_BREG0)
			return false;
		set_register(r, (uint64_t)(op - DW_OP_REG0));
		return true;
	}
}

static void end_piece(struct reading *r, uint64_t n)
{
	struct expression_result *out = r->out;

	if (r->piece.kind == PIECE_NOWHERE && r->depth)
		r->piece = (struct piece){.kind = PIECE_MEMORY, .term = pop(r)};
	r->piece.n = n;
	if (out->n == VALUE_PARTS_MAX)
		fail(r, "is in too many pieces");
	else
		out->pieces[out->n++] = r->piece;
	r->piece = (struct piece){.kind = PIECE_NOWHERE};
}

static void step(struct reading *r)
{
	uint8_t op = cursor_u8(&r->c);

	if (op == DW_OP_PIECE)
		end_piece(r, cursor_uleb(&r->c));
	else if (op == DW_OP_IMPLICIT_POINTER || op == DW_OP_GNU_IMPLICIT_POINTER)
		fail(r, "points to something that is nowhere in memory");
	else if (!arithmetic(r, op) && !address(r, op) && !place(r, op))
		fail(r, computed);
}

void dwarf_expression_read(
	struct place_finder *f, struct span expression, struct expression_result *out)
{
	struct reading r = {.f = f, .out = out, .c = cursor_of(expression)};

	*out = (struct expression_result){0};
	if (expression.n > EXPRESSION_MAX)
		fail(&r, computed);
	while (!out->why && !r.c.failed && cursor_left(&r.c))
		step(&r);
	if (r.c.failed)
		fail(&r, broken);
	if (!out->why && (r.depth || r.piece.kind != PIECE_NOWHERE))
		end_piece(&r, 0);
}
