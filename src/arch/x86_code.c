/* SPDX-License-Identifier: MIT */
#include "arch/x86_code.h"

#include "arch/x86_effects.h"
#include "arch/x86_zydis.h"

/* The instructions of lesser frequency; everything that is not named goes on to the next one. */
static enum x86_flow flow_of(const ZydisDecodedInstruction *d)
{
	bool is_direct = d->raw.imm[0].is_relative;

	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
		return is_direct ? X86_FLOW_JUMP : X86_FLOW_JUMP_FAR;
	case ZYDIS_MNEMONIC_CALL:
		return is_direct ? X86_FLOW_CALL : X86_FLOW_CALL_FAR;
	case ZYDIS_MNEMONIC_RET:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_UIRET:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
		return X86_FLOW_RETURN;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
		return X86_FLOW_STOP;
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INTO:
		return X86_FLOW_SYSCALL;
	default:
		return is_direct ? X86_FLOW_BRANCH : X86_FLOW_NEXT;
	}
}

/* "lea 0(%esi),%esi" and "mov %esi,%esi" fill holes in 32-bit code; in 64-bit code they would clear
 * the upper half of the register. */
static bool is_lea_nop(const ZydisDecodedInstruction *d)
{
	uint8_t reg = d->raw.modrm.reg;

	if (d->machine_mode == ZYDIS_MACHINE_MODE_LONG_64 || d->operand_width != 32 ||
		d->address_width != 32 || d->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return false;
	if (d->mnemonic == ZYDIS_MNEMONIC_MOV)
		return (d->opcode == 0x89 || d->opcode == 0x8b) && d->raw.modrm.mod == 3 &&
		       d->raw.modrm.rm == reg;
	if (d->mnemonic != ZYDIS_MNEMONIC_LEA || d->raw.modrm.mod == 3 || d->raw.disp.value)
		return false;
	if (d->raw.modrm.rm == 4)
		return d->raw.sib.base == reg && d->raw.sib.index == 4 &&
		       !(d->raw.modrm.mod == 0 && reg == 5);
	return d->raw.modrm.rm == reg && !(d->raw.modrm.mod == 0 && reg == 5);
}

/* A branch with an operand-size prefix in 64-bit code: Intel ignores the prefix, to AMD it means an
 * offset of 16 bits. */
static bool is_cut_by_amd(const ZydisDecodedInstruction *d)
{
	return d->machine_mode == ZYDIS_MACHINE_MODE_LONG_64 &&
	       d->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE &&
	       !(d->attributes & ZYDIS_ATTRIB_HAS_REX && d->raw.rex.W);
}

static void note_operands(struct x86_insn *insn, const ZydisDecodedInstruction *d, uint64_t addr)
{
	bool is_64 = d->machine_mode == ZYDIS_MACHINE_MODE_LONG_64;
	uint64_t end = addr + d->length;

	if (d->raw.imm[0].is_relative) {
		insn->has_target = true;
		insn->rel_at = d->raw.imm[0].offset;
		insn->rel_bytes = (uint8_t)(d->raw.imm[0].size / 8);
		insn->target = end + (uint64_t)d->raw.imm[0].value.s;
		if (!is_64)
			insn->target = (uint32_t)insn->target;
		if (insn->rel_bytes == 1)
			insn->opcode = d->opcode;
		insn->is_bound = insn->rel_bytes == 2 || d->mnemonic == ZYDIS_MNEMONIC_XBEGIN ||
				 (insn->rel_bytes == 4 && d->operand_width == 16) ||
				 is_cut_by_amd(d);
	}
	if (!(d->attributes & ZYDIS_ATTRIB_HAS_MODRM))
		return;
	insn->modrm_at = d->raw.modrm.offset;
	if (is_64 && d->raw.modrm.mod == 0 && d->raw.modrm.rm == 5 && d->raw.disp.size == 32) {
		insn->disp_at = d->raw.disp.offset;
		insn->disp_target = end + (uint64_t)d->raw.disp.value;
		if (d->address_width == 32)
			insn->is_bound = true;
	}
}

void x86_insn_describe(
	struct x86_insn *insn, const ZydisDecodedInstruction *d, const uint8_t *code, uint64_t addr)
{
	*insn = (struct x86_insn){.length = d->length, .flow = (uint8_t)flow_of(d)};
	insn->is_nop = d->mnemonic == ZYDIS_MNEMONIC_NOP || is_lea_nop(d);
	insn->is_endbr =
		d->mnemonic == ZYDIS_MNEMONIC_ENDBR64 || d->mnemonic == ZYDIS_MNEMONIC_ENDBR32;
	insn->is_padding = insn->is_nop || d->mnemonic == ZYDIS_MNEMONIC_INT3 ||
			   (d->length == 2 && code[0] == 0 && code[1] == 0);
	note_operands(insn, d, addr);
}

bool x86_decode_all(struct x86_decoded *x, struct span code, bool is_64)
{
	ZydisDecoderContext context;
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder,
		is_64 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LONG_COMPAT_32,
		is_64 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
	return code.n &&
	       ZYAN_SUCCESS(
		       ZydisDecoderDecodeInstruction(&decoder, &context, code.p, code.n, &x->d)) &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeOperands(
		       &decoder, &context, &x->d, x->operands, x->d.operand_count));
}

int x86_general_number(ZydisRegister reg)
{
	static const ZydisRegister first[] = {ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_EAX,
		ZYDIS_REGISTER_AX, ZYDIS_REGISTER_AH /* ah 0 ... bh 3, spl 4 */, ZYDIS_REGISTER_AL};
	static const ZydisRegister last[] = {ZYDIS_REGISTER_R15, ZYDIS_REGISTER_R15D,
		ZYDIS_REGISTER_R15W, ZYDIS_REGISTER_R15B, ZYDIS_REGISTER_BL};

	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		if (reg >= first[i] && reg <= last[i])
			return (int)(reg - first[i]);
	return -1;
}

bool x86_is_repeated_string(struct span code)
{
	bool is_repeated = false;

	for (size_t i = 0; i < code.n; i++) {
		uint8_t b = code.p[i];

		if (b == 0xf2 || b == 0xf3)
			is_repeated = true;
		/* ins, outs; movs, cmps; stos, lods, scas */
		else if ((b >= 0x6c && b <= 0x6f) || (b >= 0xa4 && b <= 0xa7) ||
			 (b >= 0xaa && b <= 0xaf))
			return is_repeated;
		/* other prefixes, REX among them (which in 32-bit code is another instruction,
		 * but none that is followed by a string opcode within one instruction) */
		else if (b != 0x66 && b != 0x67 && b != 0x2e && b != 0x36 && b != 0x3e &&
			 b != 0x26 && b != 0x64 && b != 0x65 && (b & 0xf0) != 0x40)
			return false;
	}
	return false;
}

bool x86_decode(struct x86_insn *insn, struct span code, uint64_t addr, bool is_64)
{
	ZydisDecodedInstruction d;
	ZydisDecoderContext context;
	ZydisDecoder decoder;
	struct x86_effects effects;

	if (is_64 && x86_quick_decode(insn, &effects, code, addr))
		return true;
	ZydisDecoderInit(&decoder,
		is_64 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
		is_64 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
	if (!code.n || !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
			       &decoder, &context, code.p, code.n, &d)))
		return false;
	x86_insn_describe(insn, &d, code.p, addr);
	return true;
}
