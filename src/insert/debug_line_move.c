/* SPDX-License-Identifier: MIT */
/*
 * Line programs (DWARF 5 section 6.2) of code that has moved.
 *
 * A program is taken apart into groups of opcodes, each up to the one that adds a row, ends a
 * sequence or sets an address. A group that advances as far as before is copied byte by byte. In
 * the others the opcodes that advance are left out, and one is put where the row is added;
 * everything else stays in its order. Headers stay as they are, but for the length of the unit.
 */
#include "insert/debug_stage.h"

enum {
	LNS_COPY = 1,
	LNS_ADVANCE_PC = 2,
	LNS_ADVANCE_LINE = 3,
	LNS_CONST_ADD_PC = 8,
	LNS_FIXED_ADVANCE_PC = 9,
	LNS_LAST = 12
};
enum { LNE_END_SEQUENCE = 1, LNE_SET_ADDRESS = 2 };

enum line_op_kind {
	LINE_OP_OTHER, /* has nothing to do with addresses */
	LINE_OP_ADVANCE,
	LINE_OP_ROW,	 /* DW_LNS_copy */
	LINE_OP_SPECIAL, /* advances and adds a row */
	LINE_OP_END,	 /* of the sequence */
	LINE_OP_ADDRESS
};

struct line_op {
	size_t start, end; /* in the section */
	enum line_op_kind kind;
	uint64_t advance; /* bytes of code */
	unsigned lines;	  /* LINE_OP_SPECIAL: how many lines above line_base */
	size_t operand;	  /* LINE_OP_ADDRESS: where the address is */
};

/* A line program being moved. */
struct line_move {
	struct debug_mover *d;
	struct debug_stage *s;
	uint8_t line_range, opcode_base;
	const uint8_t *opcode_lengths; /* of opcode 1 and up */
	struct code_place old;	       /* address of the last row */
	uint64_t now;		       /* and where it is in the new program */
};

static bool read_extended(struct line_op *op, struct cursor *c, const uint8_t *base)
{
	struct cursor body;
	uint64_t n = cursor_uleb(c);

	body = cursor_of(cursor_bytes(c, n));
	if (c->failed || !n)
		return false;
	switch (cursor_u8(&body)) {
	case LNE_END_SEQUENCE:
		op->kind = LINE_OP_END;
		break;
	case LNE_SET_ADDRESS:
		op->kind = LINE_OP_ADDRESS;
		op->operand = (size_t)(body.p - base);
		return n == 9;
	}
	return true;
}

/* False when the opcode is not there as a whole. */
static bool read_op(const struct line_move *m, struct line_op *op, size_t at, size_t end)
{
	const uint8_t *base = m->s->in.p;
	struct cursor c = {base + at, base + end, false};
	unsigned opcode = cursor_u8(&c), const_advance = (255u - m->opcode_base) / m->line_range;

	*op = (struct line_op){.start = at};
	if (opcode >= m->opcode_base) {
		op->kind = LINE_OP_SPECIAL;
		op->advance = (opcode - m->opcode_base) / m->line_range;
		op->lines = (opcode - m->opcode_base) % m->line_range;
	} else if (!opcode) {
		if (!read_extended(op, &c, base))
			return false;
	} else if (opcode == LNS_COPY) {
		op->kind = LINE_OP_ROW;
	} else if (opcode == LNS_ADVANCE_PC || opcode == LNS_CONST_ADD_PC) {
		op->kind = LINE_OP_ADVANCE;
		op->advance = opcode == LNS_ADVANCE_PC ? cursor_uleb(&c) : const_advance;
	} else if (opcode == LNS_FIXED_ADVANCE_PC) {
		op->kind = LINE_OP_ADVANCE;
		op->advance = cursor_u16(&c);
	} else {
		/* LEB128 numbers, signed or not, are of the same size. */
		for (unsigned n = m->opcode_lengths[opcode - 1]; n && !c.failed; n--)
			while (cursor_u8(&c) & 0x80)
				;
	}
	op->end = (size_t)(c.p - base);
	return !c.failed;
}

static void put_advance(const struct line_move *m, uint64_t advance)
{
	if (!advance)
		return;
	buf_put_u8(&m->s->out, LNS_ADVANCE_PC);
	buf_put_uleb(&m->s->out, advance);
}

/* A row with as many more lines as the special opcode had. */
static void put_special(const struct line_move *m, unsigned lines, uint64_t advance)
{
	uint64_t const_advance = (255u - m->opcode_base) / m->line_range;
	uint64_t most = (255u - m->opcode_base - lines) / m->line_range;

	if (advance > most && m->opcode_base > LNS_CONST_ADD_PC && advance >= const_advance &&
		advance - const_advance <= most) {
		buf_put_u8(&m->s->out, LNS_CONST_ADD_PC);
		advance -= const_advance;
	} else if (advance > most) {
		put_advance(m, advance);
		advance = 0;
	}
	buf_put_u8(&m->s->out, (uint8_t)(m->opcode_base + lines + m->line_range * advance));
}

/* Writes a group that advances by another distance. */
static void put_group(const struct line_move *m, size_t start, size_t end, uint64_t advance)
{
	struct line_op op;

	for (size_t at = start; at < end; at = op.end) {
		read_op(m, &op, at, end);
		if (op.kind == LINE_OP_ADVANCE)
			continue;
		relay_mark(m->d, m->s, at);
		if (op.kind == LINE_OP_SPECIAL) {
			put_special(m, op.lines, advance);
			continue;
		}
		if (op.kind != LINE_OP_OTHER)
			put_advance(m, advance);
		relay_copy(m->d, m->s, at, op.end);
	}
}

/* The group [start, last->end), which advances by `advance` in all. */
static void move_group(
	struct line_move *m, size_t start, const struct line_op *last, uint64_t advance)
{
	const struct moved *code = m->d->code;
	uint64_t now;

	if (last->kind == LINE_OP_ADDRESS) {
		relay_copy(m->d, m->s, start, last->end);
		if (!debug_reloc_target(m->d, m->s->section, last->operand, &m->old))
			m->old = (struct code_place){0};
		m->now = moved_label(code, m->old.section, m->old.offset);
		return;
	}
	m->old.offset += advance;
	now = moved_label(code, m->old.section, m->old.offset);
	if (now - m->now == advance)
		relay_copy(m->d, m->s, start, last->end);
	else
		put_group(m, start, last->end, now - m->now);
	m->now = now;
	if (last->kind == LINE_OP_END) {
		m->old = (struct code_place){0};
		m->now = 0;
	}
}

static int move_program(struct line_move *m, size_t start, size_t end, struct err *err)
{
	struct line_op op;
	uint64_t advance = 0;
	size_t group = start;

	for (size_t at = start; at < end; at = op.end) {
		if (!read_op(m, &op, at, end))
			return debug_fail(m->s, at, err, "the line program is damaged");
		advance += op.advance;
		if (op.kind == LINE_OP_OTHER || op.kind == LINE_OP_ADVANCE)
			continue;
		move_group(m, group, &op, advance);
		group = op.end;
		advance = 0;
	}
	relay_copy(m->d, m->s, group, end);
	return 0;
}

/* Standard opcodes have the operands that the standard says; others are stepped over. */
static bool are_lengths_known(const struct line_move *m)
{
	static const uint8_t lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};

	for (int i = 0; i < m->opcode_base - 1 && i < LNS_LAST; i++)
		if (m->opcode_lengths[i] != lengths[i])
			return false;
	return true;
}

/* The unit whose length has been read: `c` ends where it ends. */
static int move_unit(struct line_move *m, struct cursor *c, uint8_t offset_bytes, struct err *err)
{
	const uint8_t *base = m->s->in.p;
	size_t at = (size_t)(c->p - base), program;
	uint64_t header;
	uint16_t version = cursor_u16(c);
	uint8_t min_instruction, max_ops = 1;

	if (c->failed || version < 2 || version > 5)
		return debug_fail(m->s, at, err, "the version of the line table is not known");
	if (version >= 5)
		cursor_skip(c, 2); /* sizes of addresses and segment selectors */
	header = offset_bytes == 8 ? cursor_u64(c) : cursor_u32(c);
	program = (size_t)(c->p - base);
	if (c->failed || header > cursor_left(c))
		return debug_fail(m->s, at, err, "the header of the line table is damaged");
	program += (size_t)header;
	min_instruction = cursor_u8(c);
	if (version >= 4)
		max_ops = cursor_u8(c);
	cursor_skip(c, 2); /* default_is_stmt, line_base */
	m->line_range = cursor_u8(c);
	m->opcode_base = cursor_u8(c);
	m->opcode_lengths = c->p;
	cursor_skip(c, m->opcode_base ? m->opcode_base - 1u : 0);
	if (c->failed || (size_t)(c->p - base) > program)
		return debug_fail(m->s, at, err, "the header of the line table is damaged");
	if (min_instruction != 1 || max_ops != 1 || !m->line_range ||
		m->opcode_base <= LNS_ADVANCE_PC || !are_lengths_known(m))
		return debug_fail(m->s, at, err, "the line table has unusual opcodes");
	m->old = (struct code_place){0};
	m->now = 0;
	relay_copy(m->d, m->s, at, program);
	return move_program(m, program, (size_t)(c->end - base), err);
}

int debug_line_move(struct debug_mover *d, struct debug_stage *s, struct err *err)
{
	struct line_move m = {.d = d, .s = s};
	struct cursor c = cursor_of(s->in);

	while (cursor_left(&c)) {
		size_t at = (size_t)(c.p - s->in.p), out;
		struct cursor unit;
		uint64_t length;
		uint8_t offset_bytes;
		int ret;

		if (!debug_unit_length(&c, &length, &offset_bytes))
			return debug_fail(s, at, err, "the line table does not fit in the section");
		relay_mark(d, s, at);
		out = s->out.n;
		relay_copy(d, s, at, (uint64_t)(c.p - s->in.p));
		unit = cursor_of(cursor_bytes(&c, length));
		ret = move_unit(&m, &unit, offset_bytes, err);
		if (ret < 0)
			return ret;
		if (!relay_put_length(s, out, offset_bytes))
			return debug_fail(s, at, err, "the line table has become too large");
	}
	return 0;
}
