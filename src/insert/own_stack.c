/* SPDX-License-Identifier: MIT */
/*
 * Whether rsp is a stack pointer all through a function. Compilers know nothing else; hand-written code that is
 * short of registers may load it with something, walk data with it, and restore it in the end: nothing may be
 * written below it then.
 *
 * rsp may be changed by what belongs to stacks, and set to what was computed from it: `mov` and `lea` are
 * followed from register to register, in any order. What sets it right in front of a return restores it.
 */
#include "insert/object_code.h"

#define REX_W 0x48
#define RSP   (1u << X86_REG_RSP)

/* An instruction with 64-bit operands that has a ModRM byte right behind its opcode. */
struct wide_insn {
	uint8_t opcode, modrm;
};

static bool read_wide(
	struct wide_insn *w, const struct code_section *s, const struct code_insn *insn)
{
	const uint8_t *p = s->bytes.p + insn->offset;

	if (insn->length < 3 || (p[0] & 0xf8) != REX_W)
		return false;
	*w = (struct wide_insn){p[1], p[2]};
	return true;
}

/* mov of a register, or lea: what it writes is computed from what it reads. */
static bool is_computed(const struct code_section *s, const struct code_insn *insn)
{
	struct wide_insn w;

	return read_wide(&w, s, insn) &&
	       (w.opcode == 0x8d || ((w.opcode == 0x89 || w.opcode == 0x8b) && w.modrm >= 0xc0));
}

/* push, pop of another register, leave; add, sub, and; lea of rsp and something; a load from the stack. */
static bool is_stack_operation(const struct code_section *s, const struct code_insn *insn)
{
	const uint8_t *p = s->bytes.p + insn->offset;
	struct wide_insn w;
	uint8_t extension;

	if (!read_wide(&w, s, insn)) {
		if ((p[0] & 0xf0) == 0x40 && insn->length > 1)
			return (p[1] & 0xf0) == 0x50 || p[1] == 0xff || p[1] == 0x8f;
		return ((p[0] & 0xf0) == 0x50 && p[0] != 0x5c) || p[0] == 0x68 || p[0] == 0x6a ||
		       p[0] == 0x8f || p[0] == 0x9c || p[0] == 0x9d || p[0] == 0xc8 ||
		       p[0] == 0xc9 || p[0] == 0xff || p[0] == 0x0f /* push %fs */;
	}
	extension = (w.modrm >> 3) & 7;
	switch (w.opcode) {
	case 0x81:
	case 0x83:
		return extension == 0 || extension == 4 || extension == 5;
	case 0x01:
	case 0x03:
	case 0x29:
	case 0x2b:
	case 0x8b:
	case 0x8d:
		return insn->reads & RSP;
	default:
		return false;
	}
}

static bool ends_in_return(
	const struct code_section *s, const struct code_function *f, uint32_t insn_i)
{
	for (; insn_i < f->first_insn + f->n_insns; insn_i++)
		if (s->insns.v[insn_i].flow != X86_FLOW_NEXT)
			return s->insns.v[insn_i].flow == X86_FLOW_RETURN;
	return false;
}

/* The registers that hold what was computed from rsp, anywhere in the function. */
static uint16_t computed_registers(const struct code_section *s, const struct code_function *f)
{
	uint16_t found = RSP, before;

	do {
		before = found;
		for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns; i++) {
			const struct code_insn *insn = &s->insns.v[i];

			if ((insn->reads & found) && is_computed(s, insn))
				found |= insn->kills;
		}
	} while (found != before);
	return found;
}

bool code_keeps_stack(const struct code *c, const struct code_section *s, struct code_function *f)
{
	uint16_t computed;

	if (f->has_asked_stack || c->is_compiled)
		return !f->lacks_stack;
	f->has_asked_stack = true;
	computed = computed_registers(s, f);
	for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns && !f->lacks_stack; i++) {
		const struct code_insn *insn = &s->insns.v[i];

		if (insn->flow != X86_FLOW_NEXT || !(insn->kills & RSP) ||
			is_stack_operation(s, insn))
			continue;
		if (!is_computed(s, insn) || !(insn->reads & computed))
			f->lacks_stack = !ends_in_return(s, f, i + 1);
	}
	return !f->lacks_stack;
}
