/* SPDX-License-Identifier: MIT */
/*
 * What the translator's decoder says of an instruction, compared with what Zydis says: for its unit test and
 * its fuzz target. The one says less than the other, on the safe side only.
 */
#ifndef WEIR_TESTS_INSN_COMPARE_H
#define WEIR_TESTS_INSN_COMPARE_H

#include "arch/x86_zydis.h"

/* It runs inside other programs, so it is in no library of ours. */
#include "rt/translate/insn_effects.c"
#include "rt/translate/insn.c"

enum insn_verdict {
	VERDICT_SAME,
	VERDICT_NONE,	 /* neither knows it */
	VERDICT_UNKNOWN, /* the decoder does not, and need not: see is_exotic */
	VERDICT_MORE,	 /* Zydis does not: newer than it, or refused for its operands */
	VERDICT_WRONG,
};

struct insn_comparison {
	enum insn_verdict verdict;
	const char *why;	/* of VERDICT_WRONG */
	struct insn insn;	/* as decoded */
	struct x86_decoded zydis;
};

static bool is_far(const ZydisDecodedInstruction *d)
{
	return d->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
}

static enum insn_kind expected_kind(const struct x86_decoded *x)
{
	const ZydisDecodedInstruction *d = &x->d;
	bool is_direct = d->operand_count && x->operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
		return INSN_COUNTED;
	case ZYDIS_MNEMONIC_JMP:
		return is_direct ? INSN_JUMP : INSN_JUMP_INDIRECT;
	case ZYDIS_MNEMONIC_CALL:
		return is_direct ? INSN_CALL : INSN_CALL_INDIRECT;
	case ZYDIS_MNEMONIC_RET:
		return INSN_RETURN;
	case ZYDIS_MNEMONIC_SYSCALL:
		return INSN_SYSCALL;
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
		return INSN_INT;
	case ZYDIS_MNEMONIC_XBEGIN:
		return INSN_XBEGIN;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_IN:
	case ZYDIS_MNEMONIC_OUT:
	case ZYDIS_MNEMONIC_CLI:
	case ZYDIS_MNEMONIC_STI:
	case ZYDIS_MNEMONIC_XSETBV:
	case ZYDIS_MNEMONIC_LGDT: /* privileged, but Zydis has no mark at them */
	case ZYDIS_MNEMONIC_ENQCMDS:
		return INSN_STOP;
	case ZYDIS_MNEMONIC_RDPMC:
	case ZYDIS_MNEMONIC_XEND:
		return INSN_PLAIN;
	default:
		break;
	}
	if (d->meta.category == ZYDIS_CATEGORY_COND_BR)
		return INSN_BRANCH;
	if (d->meta.category == ZYDIS_CATEGORY_IOSTRINGOP || d->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED)
		return INSN_STOP;
	return INSN_PLAIN;
}

/* Extensions that no program outside of a kernel, a hypervisor or firmware uses, and dead ones. */
static bool is_exotic_extension(const ZydisDecodedInstruction *d)
{
	switch (d->meta.isa_ext) {
	case ZYDIS_ISA_EXT_AMD3DNOW:
	case ZYDIS_ISA_EXT_AMD_INVLPGB:
	case ZYDIS_ISA_EXT_AMX_BF16:
	case ZYDIS_ISA_EXT_AMX_INT8:
	case ZYDIS_ISA_EXT_AMX_TILE:
	case ZYDIS_ISA_EXT_HRESET:
	case ZYDIS_ISA_EXT_KEYLOCKER:
	case ZYDIS_ISA_EXT_KEYLOCKER_WIDE:
	case ZYDIS_ISA_EXT_KNC:
	case ZYDIS_ISA_EXT_KNCE:
	case ZYDIS_ISA_EXT_KNCV:
	case ZYDIS_ISA_EXT_MCOMMIT:
	case ZYDIS_ISA_EXT_PADLOCK:
	case ZYDIS_ISA_EXT_PCONFIG:
	case ZYDIS_ISA_EXT_SGX:
	case ZYDIS_ISA_EXT_SGX_ENCLV:
	case ZYDIS_ISA_EXT_SMX:
	case ZYDIS_ISA_EXT_SNP:
	case ZYDIS_ISA_EXT_SVM:
	case ZYDIS_ISA_EXT_TDX:
	case ZYDIS_ISA_EXT_UINTR:
	case ZYDIS_ISA_EXT_VMFUNC:
	case ZYDIS_ISA_EXT_VTX:
		return true;
	default:
		return false;
	}
}

/* What may be INSN_UNKNOWN though Zydis knows it. */
static bool is_exotic(const struct x86_decoded *x)
{
	const ZydisDecodedInstruction *d = &x->d;
	bool has_67 = d->attributes & ZYDIS_ATTRIB_HAS_ADDRESSSIZE;

	for (int i = 0; i < d->operand_count; i++)
		if (x->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
			(x->operands[i].mem.base == ZYDIS_REGISTER_EIP ||
				(x->operands[i].mem.base == ZYDIS_REGISTER_RIP && has_67)))
			return true;
	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_RSM:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_FEMMS:
	case ZYDIS_MNEMONIC_SETSSBSY:
	case ZYDIS_MNEMONIC_CLRSSBSY:
	case ZYDIS_MNEMONIC_SAVEPREVSSP:
		return true;
	default:
		break;
	}
	/* 66 makes other branches of them on some CPUs. */
	if (d->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE && !d->raw.rex.W &&
		(d->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || d->mnemonic == ZYDIS_MNEMONIC_XBEGIN))
		return true;
	return is_far(d) || is_exotic_extension(d);
}

static uint16_t zydis_registers(const struct x86_decoded *x)
{
	uint16_t set = 0;

	for (int i = 0; i < x->d.operand_count; i++) {
		const ZydisDecodedOperand *o = &x->operands[i];
		ZydisRegister regs[2] = {ZYDIS_REGISTER_NONE, ZYDIS_REGISTER_NONE};

		if (o->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			regs[0] = o->reg.value;
		} else if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			regs[0] = o->mem.base;
			regs[1] = o->mem.index;
		}
		/* A SIB byte without base has none with REX.B either (SDM, table 2-5). */
		if (x->d.raw.sib.offset && x->d.raw.sib.base == 5 && !x->d.raw.modrm.mod)
			regs[0] = o->type == ZYDIS_OPERAND_TYPE_MEMORY ? ZYDIS_REGISTER_NONE : regs[0];
		for (int k = 0; k < 2; k++)
			if (x86_general_number(regs[k]) >= 0)
				set |= (uint16_t)(1 << x86_general_number(regs[k]));
	}
	return set;
}

static bool has_register(const struct x86_decoded *x, ZydisRegister reg)
{
	for (int i = 0; i < x->d.operand_count; i++)
		if (x->operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER && x->operands[i].reg.value == reg)
			return true;
	return false;
}

static const ZydisDecodedOperand *memory_in(const struct x86_decoded *x, ZydisRegister segment)
{
	for (int i = 0; i < x->d.operand_count; i++) {
		const ZydisDecodedOperand *o = &x->operands[i];

		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
			o->mem.segment == segment)
			return o;
	}
	return NULL;
}

static bool is_rip_relative(const struct x86_decoded *x)
{
	for (int i = 0; i < x->d.operand_count; i++)
		if (x->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
			x->operands[i].mem.base == ZYDIS_REGISTER_RIP)
			return true;
	return false;
}

static const char *compare_places(const struct insn *insn, const struct x86_decoded *x, const uint8_t *bytes)
{
	const ZydisDecodedInstruction *d = &x->d;
	bool has_modrm = d->attributes & ZYDIS_ATTRIB_HAS_MODRM;

	if (insn->disp_at != (is_rip_relative(x) ? d->raw.disp.offset : 0))
		return "another place of the displacement";
	/* Zydis reads no more than it must of the instructions whose ModRM byte means nothing. */
	if (insn->modrm_at != (has_modrm ? d->raw.modrm.offset : 0))
		return "another place of ModRM";
	if (bytes[insn->opcode_at] != d->opcode ||
		(has_modrm && insn->modrm_at != insn->opcode_at + 1))
		return "another place of the opcode";
	if (d->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && insn->n_prefixes != d->raw.prefix_count)
		return "another number of prefixes";
	return NULL;
}

static const char *compare_flags(const struct insn *insn, const struct x86_decoded *x)
{
	const ZydisAccessedFlags *f = x->d.cpu_flags;
	unsigned written = f ? f->modified | f->set_0 | f->set_1 | f->undefined : 0;

	/* They clear the others, as ptest does; Zydis forgets it. */
	if (x->d.mnemonic == ZYDIS_MNEMONIC_VPTEST || x->d.mnemonic == ZYDIS_MNEMONIC_VTESTPS ||
		x->d.mnemonic == ZYDIS_MNEMONIC_VTESTPD)
		written = INSN_FLAGS;
	if (f && f->tested & INSN_FLAGS & ~insn->flags_read)
		return "reads more flags";
	if (insn->flags_written & ~written)
		return "writes fewer flags";
	return NULL;
}

static const char *compare_effects(const struct insn *insn, const struct x86_decoded *x)
{
	const ZydisDecodedInstruction *d = &x->d;
	bool is_nop = d->mnemonic == ZYDIS_MNEMONIC_NOP || d->mnemonic == ZYDIS_MNEMONIC_ENDBR64 ||
		      d->mnemonic == ZYDIS_MNEMONIC_ENDBR32;

	if (insn->is_nop != is_nop)
		return "a nop or none";
	if (!is_nop && zydis_registers(x) & ~insn->registers)
		return "uses more registers";
	if (insn->has_gs != (memory_in(x, ZYDIS_REGISTER_GS) && !is_nop))
		return "memory in gs";
	if ((has_register(x, ZYDIS_REGISTER_GS) || d->mnemonic == ZYDIS_MNEMONIC_RDGSBASE ||
		    d->mnemonic == ZYDIS_MNEMONIC_WRGSBASE || d->mnemonic == ZYDIS_MNEMONIC_SWAPGS) !=
		insn->reads_segment_base)
		return "gs itself";
	if ((d->meta.category == ZYDIS_CATEGORY_STRINGOP ||
		    d->meta.category == ZYDIS_CATEGORY_IOSTRINGOP) &&
		d->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE) &&
		!insn->is_string_repeated)
		return "a repeated string instruction";
	return compare_flags(insn, x);
}

static const char *compare_kind(const struct insn *insn, const struct x86_decoded *x, uint64_t address)
{
	const ZydisDecodedInstruction *d = &x->d;
	bool is_int = insn->kind == INSN_INT && d->mnemonic != ZYDIS_MNEMONIC_INT1 &&
		      d->mnemonic != ZYDIS_MNEMONIC_INT3;

	if (insn->kind != expected_kind(x))
		return "another kind";
	if (d->attributes & ZYDIS_ATTRIB_IS_RELATIVE && d->raw.imm[0].is_relative &&
		insn->target != address + d->length + (uint64_t)d->raw.imm[0].value.s)
		return "another target";
	if ((is_int || insn->kind == INSN_RETURN) && insn->imm != d->raw.imm[0].value.u)
		return "another number";
	if (insn->kind == INSN_BRANCH && insn->condition != (d->opcode & 15))
		return "another condition";
	if (insn->kind == INSN_COUNTED && insn->condition != d->opcode)
		return "another counting branch";
	return NULL;
}

static void insn_compare(struct insn_comparison *c, const uint8_t *bytes, size_t n, uint64_t address)
{
	bool known = insn_decode(&c->insn, bytes, n, address);
	bool valid = x86_decode_all(&c->zydis, (struct span){bytes, n}, true);

	c->why = NULL;
	if (!valid) {
		c->verdict = known ? VERDICT_MORE : VERDICT_NONE;
		return;
	}
	c->verdict = VERDICT_WRONG;
	if (known != (c->insn.kind != INSN_UNKNOWN))
		c->why = "a result that is not its kind";
	else if ((known || c->insn.length) && c->insn.length != c->zydis.d.length)
		c->why = "another length";
	if (!c->why && !known) {
		if (is_exotic(&c->zydis))
			c->verdict = VERDICT_UNKNOWN;
		else
			c->why = "not known";
		return;
	}
	if (!c->why)
		c->why = compare_places(&c->insn, &c->zydis, bytes);
	if (!c->why)
		c->why = compare_kind(&c->insn, &c->zydis, address);
	if (!c->why)
		c->why = compare_effects(&c->insn, &c->zydis);
	if (!c->why)
		c->verdict = VERDICT_SAME;
}

#endif
