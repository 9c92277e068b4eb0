/* SPDX-License-Identifier: MIT */
/*
 * A small stack machine. Values are as wide as the image's addresses. Operations that need the
 * debug information of a function (fbreg, call_frame_cfa, ...) or the image's place in memory
 * (addr) are refused: call-frame information has no use for them.
 */
#include "unwind/step.h"

#include "dwarf/cfi_program.h"

#define CFI_EXPR_STACK_MAX 64
#define CFI_EXPR_STEPS_MAX 1000 /* branches can loop */

enum dw_op {
	DW_OP_DEREF = 0x06,
	DW_OP_CONST1U = 0x08,
	DW_OP_CONST1S = 0x09,
	DW_OP_CONST2U = 0x0a,
	DW_OP_CONST2S = 0x0b,
	DW_OP_CONST4U = 0x0c,
	DW_OP_CONST4S = 0x0d,
	DW_OP_CONST8U = 0x0e,
	DW_OP_CONST8S = 0x0f,
	DW_OP_CONSTU = 0x10,
	DW_OP_CONSTS = 0x11,
	DW_OP_DUP = 0x12,
	DW_OP_DROP = 0x13,
	DW_OP_OVER = 0x14,
	DW_OP_PICK = 0x15,
	DW_OP_SWAP = 0x16,
	DW_OP_ROT = 0x17,
	DW_OP_ABS = 0x19,
	DW_OP_AND = 0x1a,
	DW_OP_DIV = 0x1b,
	DW_OP_MINUS = 0x1c,
	DW_OP_MOD = 0x1d,
	DW_OP_MUL = 0x1e,
	DW_OP_NEG = 0x1f,
	DW_OP_NOT = 0x20,
	DW_OP_OR = 0x21,
	DW_OP_PLUS = 0x22,
	DW_OP_PLUS_UCONST = 0x23,
	DW_OP_SHL = 0x24,
	DW_OP_SHR = 0x25,
	DW_OP_SHRA = 0x26,
	DW_OP_XOR = 0x27,
	DW_OP_BRA = 0x28,
	DW_OP_EQ = 0x29,
	DW_OP_GE = 0x2a,
	DW_OP_GT = 0x2b,
	DW_OP_LE = 0x2c,
	DW_OP_LT = 0x2d,
	DW_OP_NE = 0x2e,
	DW_OP_SKIP = 0x2f,
	DW_OP_LIT0 = 0x30,
	DW_OP_LIT31 = 0x4f,
	DW_OP_BREG0 = 0x70,
	DW_OP_BREG31 = 0x8f,
	DW_OP_BREGX = 0x92,
	DW_OP_DEREF_SIZE = 0x94,
	DW_OP_NOP = 0x96
};

struct evaluation {
	struct span expr;
	struct cursor c;
	const struct cpu_regs *regs;
	struct stack_reader *reader;
	uint64_t mask;
	size_t n;
	uint64_t stack[CFI_EXPR_STACK_MAX];
};

static bool push(struct evaluation *e, uint64_t value)
{
	if (e->n == CFI_EXPR_STACK_MAX)
		return false;
	e->stack[e->n++] = value & e->mask;
	return true;
}

static bool pick(struct evaluation *e, size_t depth)
{
	return depth < e->n && push(e, e->stack[e->n - 1 - depth]);
}

static bool push_register(struct evaluation *e, uint64_t dwarf_number)
{
	int reg = cfi_register(!e->regs->is_64, dwarf_number);
	int64_t offset = cursor_sleb(&e->c);

	return reg >= 0 && e->regs->known >> reg & 1 && push(e, e->regs->r[reg] + (uint64_t)offset);
}

static bool push_constant(struct evaluation *e, uint8_t op)
{
	switch (op) {
	case DW_OP_CONST1U:
		return push(e, cursor_u8(&e->c));
	case DW_OP_CONST1S:
		return push(e, (uint64_t)(int8_t)cursor_u8(&e->c));
	case DW_OP_CONST2U:
		return push(e, cursor_u16(&e->c));
	case DW_OP_CONST2S:
		return push(e, (uint64_t)(int16_t)cursor_u16(&e->c));
	case DW_OP_CONST4U:
		return push(e, cursor_u32(&e->c));
	case DW_OP_CONST4S:
		return push(e, (uint64_t)(int32_t)cursor_u32(&e->c));
	case DW_OP_CONST8U:
	case DW_OP_CONST8S:
		return push(e, cursor_u64(&e->c));
	case DW_OP_CONSTU:
		return push(e, cursor_uleb(&e->c));
	case DW_OP_CONSTS:
		return push(e, (uint64_t)cursor_sleb(&e->c));
	default:
		return false;
	}
}

static bool dereference(struct evaluation *e, size_t n_bytes)
{
	if (!e->n || (n_bytes != 1 && n_bytes != 2 && n_bytes != 4 && n_bytes != 8) ||
		n_bytes > e->reader->word_bytes)
		return false;
	return stack_read_named(e->reader, e->stack[e->n - 1], n_bytes, &e->stack[e->n - 1]);
}

/* Sign-extends a value of the image's width. */
static int64_t as_signed(const struct evaluation *e, uint64_t v)
{
	return e->mask == UINT64_MAX ? (int64_t)v : (int32_t)v;
}

static bool divide(const struct evaluation *e, uint64_t a, uint64_t b, uint64_t *result)
{
	if (!b)
		return false;
	*result = as_signed(e, b) == -1 ? 0 - a : (uint64_t)(as_signed(e, a) / as_signed(e, b));
	return true;
}

/* DWARF 5 section 2.5.1.5: comparisons are signed. */
static bool compare(const struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	int64_t x = as_signed(e, a), y = as_signed(e, b);

	switch (op) {
	case DW_OP_EQ:
		return x == y;
	case DW_OP_NE:
		return x != y;
	case DW_OP_GE:
		return x >= y;
	case DW_OP_GT:
		return x > y;
	case DW_OP_LE:
		return x <= y;
	default: /* DW_OP_LT */
		return x < y;
	}
}

static bool calculate(const struct evaluation *e, uint8_t op, uint64_t a, uint64_t b, uint64_t *r)
{
	switch (op) {
	case DW_OP_AND:
		*r = a & b;
		return true;
	case DW_OP_OR:
		*r = a | b;
		return true;
	case DW_OP_XOR:
		*r = a ^ b;
		return true;
	case DW_OP_PLUS:
		*r = a + b;
		return true;
	case DW_OP_MINUS:
		*r = a - b;
		return true;
	case DW_OP_MUL:
		*r = a * b;
		return true;
	case DW_OP_SHL:
		*r = b < 64 ? a << b : 0;
		return true;
	case DW_OP_SHR:
		*r = b < 64 ? a >> b : 0;
		return true;
	case DW_OP_SHRA:
		*r = (uint64_t)(as_signed(e, a) >> (b < 63 ? b : 63));
		return true;
	case DW_OP_DIV:
		return divide(e, a, b, r);
	case DW_OP_MOD: /* unsigned, as in gdb and libgcc */
		*r = b ? a % b : 0;
		return b != 0;
	default:
		return false;
	}
}

static bool run_binary(struct evaluation *e, uint8_t op)
{
	uint64_t a, b, r;

	if (e->n < 2)
		return false;
	b = e->stack[--e->n];
	a = e->stack[--e->n];
	if (op >= DW_OP_EQ && op <= DW_OP_NE)
		r = compare(e, op, a, b);
	else if (!calculate(e, op, a, b, &r))
		return false;
	return push(e, r);
}

static bool run_shuffle(struct evaluation *e, uint8_t op)
{
	uint64_t *top = &e->stack[e->n], t; /* one past the top */

	switch (op) {
	case DW_OP_DUP:
		return pick(e, 0);
	case DW_OP_OVER:
		return pick(e, 1);
	case DW_OP_PICK:
		return pick(e, cursor_u8(&e->c));
	case DW_OP_DROP:
		return e->n && e->n--;
	case DW_OP_SWAP:
		if (e->n < 2)
			return false;
		t = top[-1], top[-1] = top[-2], top[-2] = t;
		return true;
	case DW_OP_ROT: /* the top goes below the two others */
		if (e->n < 3)
			return false;
		t = top[-1], top[-1] = top[-2], top[-2] = top[-3], top[-3] = t;
		return true;
	default:
		return false;
	}
}

static bool run_unary(struct evaluation *e, uint8_t op)
{
	uint64_t *top;

	if (!e->n)
		return false;
	top = &e->stack[e->n - 1];
	if (op == DW_OP_ABS)
		*top = as_signed(e, *top) < 0 ? 0 - *top : *top;
	else if (op == DW_OP_NEG)
		*top = 0 - *top;
	else if (op == DW_OP_NOT)
		*top = ~*top;
	else /* DW_OP_PLUS_UCONST */
		*top += cursor_uleb(&e->c);
	*top &= e->mask;
	return true;
}

/* DW_OP_skip and DW_OP_bra: a signed distance from behind the operand. */
static bool branch(struct evaluation *e, bool conditional)
{
	int16_t distance = (int16_t)cursor_u16(&e->c);
	ptrdiff_t at = e->c.p - e->expr.p + distance;

	if (e->c.failed || (conditional && !e->n))
		return false;
	if (conditional && !e->stack[--e->n])
		return true;
	if (at < 0 || (size_t)at > e->expr.n)
		return false;
	e->c.p = e->expr.p + at;
	return true;
}

static bool run_operation(struct evaluation *e)
{
	uint8_t op = cursor_u8(&e->c);

	if (op >= DW_OP_LIT0 && op <= DW_OP_LIT31)
		return push(e, op - DW_OP_LIT0);
	if (op >= DW_OP_BREG0 && op <= DW_OP_BREG31)
		return push_register(e, op - DW_OP_BREG0);
	if (op >= DW_OP_CONST1U && op <= DW_OP_CONSTS)
		return push_constant(e, op);
	if (op >= DW_OP_DUP && op <= DW_OP_ROT)
		return run_shuffle(e, op);
	switch (op) {
	case DW_OP_NOP:
		return true;
	case DW_OP_BREGX:
		return push_register(e, cursor_uleb(&e->c));
	case DW_OP_DEREF:
		return dereference(e, e->reader->word_bytes);
	case DW_OP_DEREF_SIZE:
		return dereference(e, cursor_u8(&e->c));
	case DW_OP_ABS:
	case DW_OP_NEG:
	case DW_OP_NOT:
	case DW_OP_PLUS_UCONST:
		return run_unary(e, op);
	case DW_OP_SKIP:
	case DW_OP_BRA:
		return branch(e, op == DW_OP_BRA);
	default:
		return run_binary(e, op);
	}
}

bool cfi_expr_run(struct span expr, const struct cpu_regs *regs, struct stack_reader *reader,
	const uint64_t *cfa, uint64_t *result)
{
	struct evaluation e; /* the stack stays uninitialised */

	if (!expr.n)
		return false;
	e.expr = expr;
	e.c = cursor_of(expr);
	e.regs = regs;
	e.reader = reader;
	e.mask = reader->mask;
	e.n = 0;
	if (cfa)
		push(&e, *cfa);
	for (int steps = 0; e.c.p < e.c.end; steps++)
		if (steps == CFI_EXPR_STEPS_MAX || !run_operation(&e) || e.c.failed)
			return false;
	if (!e.n)
		return false;
	*result = e.stack[e.n - 1];
	return true;
}
