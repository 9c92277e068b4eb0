/* SPDX-License-Identifier: MIT */
/*
 * How the CFA is found while inserted code keeps the register that it is counted from elsewhere (moved.h). Where it is
 * a register and an offset, it becomes another one; else an expression says it (DWARF 5 section 2.5), in which
 * every mention of the register is replaced.
 */
#include "insert/eh_frame.h"

#define OP_DEREF       0x06
#define OP_PLUS	       0x22
#define OP_PLUS_UCONST 0x23
#define OP_CONSTS      0x11
#define OP_BREG0       0x70
#define OP_BREG31      0x8f
#define EXPRESSION_MAX 256

/* register + n, for a register whose value is elsewhere */
static void put_sum(struct buf *out, const struct moved_value *v, int64_t n)
{
	buf_put_u8(out, (uint8_t)(OP_BREG0 + v->holder));
	if (v->where == MOVED_SUM) {
		buf_put_sleb(out, (int64_t)((uint64_t)n + v->offset));
		return;
	}
	buf_put_sleb(out, v->offset);
	buf_put_u8(out, OP_DEREF);
	if (n >= 0) {
		buf_put_u8(out, OP_PLUS_UCONST);
		buf_put_uleb(out, (uint64_t)n);
	} else {
		buf_put_u8(out, OP_CONSTS);
		buf_put_sleb(out, n);
		buf_put_u8(out, OP_PLUS);
	}
}

/* The bytes of operands of operations that may come from assemblers, but for those that jump; -1: not known.
 * LEB128 numbers are skipped here. */
static int operand_bytes(struct cursor *c, uint8_t op)
{
	static const uint8_t constants[] = {1, 1, 2, 2, 4, 4, 8, 8};

	if (op >= 0x08 && op <= 0x0f)
		return constants[op - 0x08];
	if (op == 0x10 || op == OP_CONSTS || op == OP_PLUS_UCONST) {
		while (cursor_u8(c) & 0x80)
			;
		return 0;
	}
	if (op == 0x15 || op == 0x94) /* pick, deref_size */
		return 1;
	if (op == OP_DEREF || (op >= 0x12 && op <= 0x27) || (op >= 0x29 && op <= 0x2e) ||
		(op >= 0x30 && op <= 0x4f) || op == 0x96)
		return 0;
	return -1;
}

/* The expression with the register replaced; *is_about is whether it was there. False: it is not understood. */
static bool replace_register(
	struct buf *out, struct span expression, const struct moved_value *v, bool *is_about)
{
	struct cursor c = cursor_of(expression);

	*is_about = false;
	while (cursor_left(&c)) {
		size_t at = expression.n - cursor_left(&c);
		uint8_t op = cursor_u8(&c);
		int64_t n;

		if (op >= OP_BREG0 && op <= OP_BREG31) {
			n = cursor_sleb(&c);
			if (op == OP_BREG0 + v->reg) {
				if (v->where == MOVED_NOWHERE)
					return false;
				put_sum(out, v, n);
				*is_about = true;
				continue;
			}
		} else {
			int bytes = operand_bytes(&c, op);

			if (bytes < 0)
				return false;
			cursor_skip(&c, (uint64_t)bytes);
		}
		if (c.failed)
			return false;
		buf_put(out, expression.p + at, expression.n - cursor_left(&c) - at);
	}
	return !c.failed && out->n <= EXPRESSION_MAX;
}

/* Behind it the rules are those in front of it again. */
static void put_expression(struct frame_elsewhere *f, struct span expression)
{
	buf_put_u8(&f->away, FRAME_CFA_REMEMBER_STATE);
	buf_put_u8(&f->away, FRAME_CFA_DEF_CFA_EXPRESSION);
	buf_put_uleb(&f->away, expression.n);
	buf_put(&f->away, expression.p, expression.n);
	buf_put_u8(&f->back, FRAME_CFA_RESTORE_STATE);
}

static void put_rule(struct buf *out, uint8_t reg, int64_t offset)
{
	buf_put_u8(out, FRAME_CFA_DEF_CFA);
	buf_put_u8(out, reg);
	buf_put_uleb(out, (uint64_t)offset);
}

bool frame_elsewhere_find(
	struct frame_elsewhere *f, const struct frame_rules *r, const struct moved_value *v)
{
	struct buf expression = {0};
	bool is_about = true, is_known = true;

	buf_reset(&f->away);
	buf_reset(&f->back);
	if (r->is_by_register && r->cfa_register != v->reg)
		return true;
	if (r->is_by_register && v->where == MOVED_NOWHERE)
		return false;
	if (r->is_by_register && r->cfa_offset >= 0 && r->cfa_offset <= INT32_MAX &&
		v->where == MOVED_SUM) {
		put_rule(&f->away, v->holder, r->cfa_offset + v->offset);
		put_rule(&f->back, v->reg, r->cfa_offset);
		return true;
	}
	if (r->is_by_register)
		put_sum(&expression, v, r->cfa_offset);
	else
		is_known = replace_register(&expression, r->cfa_expression, v, &is_about);
	if (is_known && is_about)
		put_expression(f, buf_span(&expression));
	buf_release(&expression);
	return is_known;
}

void frame_elsewhere_release(struct frame_elsewhere *f)
{
	buf_release(&f->away);
	buf_release(&f->back);
}
