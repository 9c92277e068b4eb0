/* SPDX-License-Identifier: MIT */
/*
 * Jumps through a register that holds nothing but labels: hand-written loops take the address of where to go on
 * (lea) and jump there later. The labels move, and the addresses with them, as long as nobody computes with
 * them: so every instruction that touches the register must be a lea of a label, a push, the pop in front of
 * the return, or such a jump.
 */
#include "insert/object_code.h"

#define REX_B		   1u
#define REX_R		   4u
#define EPILOGUE_INSNS_MAX 32
#define NO_REGISTER	   16u

static bool is_rex(uint8_t byte)
{
	return (byte & 0xf0) == 0x40;
}

/* jmp *%reg: the register. */
static uint32_t jump_register(const struct code_section *s, const struct code_insn *insn)
{
	const uint8_t *p = s->bytes.p + insn->offset;
	uint32_t high = insn->length == 3 && is_rex(p[0]) && (p[0] & REX_B) ? 8 : 0;

	p += insn->length == 3 && is_rex(p[0]);
	if (insn->flow != X86_FLOW_JUMP_FAR || p[0] != 0xff || (p[1] & 0xf8) != 0xe0 ||
		p + 2 != s->bytes.p + insn->offset + insn->length)
		return NO_REGISTER;
	return (p[1] & 7u) + high;
}

/* lea label(%rip),%reg, of an instruction of the function: the register. */
static uint32_t label_register(const struct code *c, const struct code_section *s,
	const struct code_function *f, const struct code_insn *insn)
{
	const uint8_t *p = s->bytes.p + insn->offset;

	if (insn->length != 7 || (p[0] & 0xf8) != 0x48 || p[1] != 0x8d || (p[2] & 0xc7) != 0x05 ||
		insn->to_section != s->number || insn->to < f->start || insn->to >= f->end ||
		!code_insn_at(c, s->number, insn->to))
		return NO_REGISTER;
	return ((p[2] >> 3) & 7u) + (p[0] & REX_R ? 8 : 0);
}

/* push or pop of the register: 0x50 or 0x58; 0: neither. */
static uint8_t stack_opcode(
	const struct code_section *s, const struct code_insn *insn, uint32_t reg)
{
	const uint8_t *p = s->bytes.p + insn->offset;
	uint32_t high = insn->length == 2 && p[0] == 0x41 ? 8 : 0;

	p += insn->length == 2 && p[0] == 0x41;
	if (p + 1 != s->bytes.p + insn->offset + insn->length || (p[0] & 0xf0) != 0x50 ||
		(p[0] & 7u) + high != reg)
		return 0;
	return p[0] & 0xf8;
}

static bool goes_straight_to_return(
	const struct code_section *s, const struct code_function *f, uint32_t insn_i)
{
	for (uint32_t n = 0; n < EPILOGUE_INSNS_MAX && ++insn_i < f->first_insn + f->n_insns; n++)
		if (s->insns.v[insn_i].flow != X86_FLOW_NEXT)
			return s->insns.v[insn_i].flow == X86_FLOW_RETURN;
	return false;
}

static bool keeps_label(const struct code *c, const struct code_section *s,
	const struct code_function *f, uint32_t insn_i, uint32_t reg)
{
	const struct code_insn *insn = &s->insns.v[insn_i];
	uint8_t opcode = stack_opcode(s, insn, reg);

	/* These read all registers, as far as the table of effects knows. */
	if (insn->flow == X86_FLOW_RETURN || insn->flow == X86_FLOW_JUMP ||
		insn->flow == X86_FLOW_BRANCH)
		return true;
	if (insn->flow == X86_FLOW_JUMP_FAR)
		return jump_register(s, insn) == reg;
	if (insn->flow != X86_FLOW_NEXT)
		return false;
	if (!((insn->reads | insn->kills) & (1u << reg)))
		return !insn->disp_at || insn->to_section != s->number ||
		       !code_insn_at(c, s->number, insn->to);
	return label_register(c, s, f, insn) == reg || opcode == 0x50 ||
	       (opcode == 0x58 && goes_straight_to_return(s, f, insn_i));
}

bool code_jumps_to_labels(const struct code *c, const struct code_section *s,
	struct code_function *f, const struct code_insn *jump)
{
	uint32_t reg = jump_register(s, jump);
	bool keeps = true;

	if (reg == NO_REGISTER)
		return false;
	/* Each register once: a function may have any number of jumps. */
	if (f->asked_registers & (1u << reg))
		return f->label_registers & (1u << reg);
	for (uint32_t i = f->first_insn; keeps && i < f->first_insn + f->n_insns; i++)
		keeps = keeps_label(c, s, f, i, reg);
	f->asked_registers |= (uint16_t)(1u << reg);
	f->label_registers |= (uint16_t)(keeps ? 1u << reg : 0);
	return keeps;
}
