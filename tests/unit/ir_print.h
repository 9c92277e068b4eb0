/* SPDX-License-Identifier: MIT */
/* Intermediate code as text, one instruction a line. */
#ifndef WEIR_TESTS_IR_PRINT_H
#define WEIR_TESTS_IR_PRINT_H

#include <inttypes.h>

#include "probe/compile/ir.h"

static const char *alu_word(int op)
{
	switch (op) {
	case BPF_ADD:
		return "+";
	case BPF_SUB:
		return "-";
	case BPF_MUL:
		return "*";
	case BPF_DIV:
		return "/";
	case BPF_MOD:
		return "%";
	case BPF_AND:
		return "&";
	case BPF_OR:
		return "|";
	case BPF_XOR:
		return "^";
	case BPF_LSH:
		return "<<";
	case BPF_RSH:
		return ">>";
	case BPF_ARSH:
		return "s>>";
	}
	return "?";
}

static const char *cond_word(int op)
{
	switch (op) {
	case BPF_JEQ:
		return "==";
	case BPF_JNE:
		return "!=";
	case BPF_JGT:
		return ">";
	case BPF_JGE:
		return ">=";
	case BPF_JLT:
		return "<";
	case BPF_JLE:
		return "<=";
	case BPF_JSGT:
		return "s>";
	case BPF_JSGE:
		return "s>=";
	case BPF_JSLT:
		return "s<";
	case BPF_JSLE:
		return "s<=";
	}
	return "?";
}

static void print_right(const struct ir_insn *i, struct buf *out)
{
	if (i->has_imm)
		buf_printf(out, "%" PRId64, i->imm);
	else
		buf_printf(out, "v%u", i->b);
}

static void print_where(const struct ir_insn *i, struct buf *out)
{
	if (i->mem)
		buf_printf(out, "mem%u[%d]", i->mem, i->offset);
	else
		buf_printf(out, "*(v%u + %d)", i->a, i->offset);
}

static void print_call(const struct ir_insn *i, struct buf *out)
{
	buf_printf(out, "call %" PRId64 "(", i->imm);
	for (int k = 0; k < i->n_args; k++) {
		const struct ir_arg *a = &i->args[k];

		if (k)
			buf_put_cstr(out, ", ");
		switch (a->kind) {
		case IR_ARG_VALUE:
			buf_printf(out, "v%u", a->n);
			break;
		case IR_ARG_IMM:
			buf_printf(out, "%" PRId64, a->imm);
			break;
		case IR_ARG_MEM:
			buf_printf(out, "&mem%u[%" PRId64 "]", a->n, a->imm);
			break;
		case IR_ARG_MAP:
			buf_printf(out, "map %" PRId64, a->imm);
			break;
		case IR_ARG_CONTEXT:
			buf_put_cstr(out, "context");
			break;
		case IR_ARG_FUNCTION:
			buf_printf(out, "function %u", a->n);
			break;
		case IR_ARG_FRAME:
			buf_put_cstr(out, "frame");
			break;
		}
	}
	buf_put_cstr(out, ")");
}

static void print_insn(const struct ir_insn *i, struct buf *out)
{
	if (i->d)
		buf_printf(out, "v%u = ", i->d);
	switch (i->op) {
	case IR_CONST:
		buf_printf(out, "%" PRId64, i->imm);
		break;
	case IR_COPY:
		buf_printf(out, "v%u", i->a);
		break;
	case IR_ALU:
		buf_printf(out, "v%u %s ", i->a, alu_word(i->sub));
		print_right(i, out);
		break;
	case IR_EXTEND:
		buf_printf(out, "%c%u v%u", i->is_signed ? 's' : 'u', i->bytes * 8, i->a);
		break;
	case IR_SWAP:
		buf_printf(out, "swap%u v%u", i->bytes * 8, i->a);
		break;
	case IR_SET:
		buf_printf(out, "v%u %s ", i->a, cond_word(i->sub));
		print_right(i, out);
		break;
	case IR_LABEL:
		buf_printf(out, "L%u:", i->label);
		break;
	case IR_JUMP:
		buf_printf(out, "goto L%u", i->label);
		break;
	case IR_BRANCH:
		buf_printf(out, "if v%u %s ", i->a, cond_word(i->sub));
		print_right(i, out);
		buf_printf(out, " goto L%u", i->label);
		break;
	case IR_CONTEXT:
		buf_printf(out, "context[%d]", i->offset);
		break;
	case IR_CONTEXT_ADDRESS:
		buf_put_cstr(out, "&context");
		break;
	case IR_WORD:
		buf_printf(out, "word[%d]", i->offset);
		break;
	case IR_ADDRESS:
		buf_printf(out, "&mem%u[%d]", i->mem, i->offset);
		break;
	case IR_LOAD:
		buf_printf(out, "%c%u ", i->is_signed ? 's' : 'u', i->bytes * 8);
		print_where(i, out);
		break;
	case IR_STORE:
		print_where(i, out);
		buf_printf(out, " = u%u ", i->bytes * 8);
		print_right(i, out);
		break;
	case IR_ADD_ATOMIC:
		print_where(i, out);
		buf_printf(out, " += v%u", i->b);
		break;
	case IR_ZERO:
		buf_printf(out, "zero mem%u[%d], %" PRId64, i->mem, i->offset, i->imm);
		break;
	case IR_CALL:
		print_call(i, out);
		break;
	case IR_LOOP:
		buf_put_cstr(out, "loop");
		break;
	case IR_LOOP_END:
		buf_put_cstr(out, "end of loop");
		break;
	case IR_MAY_TURN:
		buf_printf(out, "if v%u turns are too many goto L%u", i->a, i->label);
		break;
	case IR_UNKNOWN:
		buf_put_cstr(out, "unknown");
		break;
	case IR_CALL_FUNCTION:
		buf_printf(out, "call function %" PRId64, i->imm);
		break;
	case IR_FUNCTION:
		buf_printf(out, "function %" PRId64, i->imm);
		break;
	case IR_PARAMETER:
		buf_printf(out, "parameter %" PRId64, i->imm);
		break;
	case IR_RETURN:
		buf_printf(out, "return %" PRId64, i->imm);
		break;
	case IR_FUNCTION_END:
		buf_put_cstr(out, "end of function");
		break;
	}
	buf_put_u8(out, '\n');
}

static inline void ir_print(const struct ir *ir, struct buf *out)
{
	for (size_t i = 0; i < ir->insns.n; i++)
		print_insn(&ir->insns.v[i], out);
}

#endif
