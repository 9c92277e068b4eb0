/* SPDX-License-Identifier: MIT */
/*
 * Zydis lists the operands of an instruction, the implicit ones too, and says of each whether it is
 * read or written, for sure or perhaps. What that does not say is added here:
 *
 * 1. A register is killed only when 32 or 64 bits of it are written whatever happens, on every
 *    processor: tzcnt and rdsspq are bsf and nop on older ones.
 * 2. A flag is killed only when the instruction gives it a value whatever happens: a shift by zero
 *    and a string instruction that repeats zero times leave all of them alone.
 * 3. Whoever may look at the whole state (calls, the system, a hypervisor, a transaction that
 *    takes it back) reads everything and kills nothing.
 */
#include "arch/x86_effects.h"

#include "arch/x86_zydis.h"

static const struct {
	ZydisAccessedFlagsMask of_zydis;
	uint8_t flag;
} flag_bits[] = {
	{ZYDIS_CPUFLAG_CF, 0x01},
	{ZYDIS_CPUFLAG_PF, 0x02},
	{ZYDIS_CPUFLAG_AF, 0x04},
	{ZYDIS_CPUFLAG_ZF, 0x08},
	{ZYDIS_CPUFLAG_SF, 0x10},
	{ZYDIS_CPUFLAG_OF, 0x20},
	{ZYDIS_CPUFLAG_DF, X86_FLAG_DF},
};

static uint8_t flags_of(ZydisAccessedFlagsMask mask)
{
	uint8_t flags = 0;

	for (size_t i = 0; mask && i < sizeof(flag_bits) / sizeof(flag_bits[0]); i++)
		if (mask & flag_bits[i].of_zydis)
			flags |= flag_bits[i].flag;
	return flags;
}

/* The bit of the general register that `reg` is a part of, 0 when it is none. */
static uint16_t reg_bit(ZydisRegister reg)
{
	int number = x86_general_number(reg);

	return number < 0 ? 0 : (uint16_t)(1u << number);
}

/* Somebody else gets to see, or may change, any register: calls, returns, traps, the system. */
static bool is_seen_by_others(const ZydisDecodedInstruction *d)
{
	if (d->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED || d->meta.isa_ext == ZYDIS_ISA_EXT_SVM ||
		d->meta.isa_ext == ZYDIS_ISA_EXT_TDX || d->meta.isa_ext == ZYDIS_ISA_EXT_SMX)
		return true;
	switch (d->meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_SGX:
	case ZYDIS_CATEGORY_VTX:
	case ZYDIS_CATEGORY_PADLOCK:
		return true;
	default:
		break;
	}
	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_UIRET:
	case ZYDIS_MNEMONIC_XBEGIN:
	case ZYDIS_MNEMONIC_XABORT:
	case ZYDIS_MNEMONIC_XEND:
		return true;
	default:
		return false;
	}
}

/* The destination may stay as it was although Zydis calls it written. */
static bool may_keep_destination(const ZydisDecodedInstruction *d)
{
	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_BSF: /* of zero */
	case ZYDIS_MNEMONIC_BSR:
	case ZYDIS_MNEMONIC_TZCNT: /* bsf and bsr to processors that do not have them */
	case ZYDIS_MNEMONIC_LZCNT:
	case ZYDIS_MNEMONIC_RDSSPD: /* nops without shadow stacks */
	case ZYDIS_MNEMONIC_RDSSPQ:
	case ZYDIS_MNEMONIC_LAR: /* of a selector that is no good */
	case ZYDIS_MNEMONIC_LSL:
	case ZYDIS_MNEMONIC_SMSW: /* the upper bits are undefined */
	case ZYDIS_MNEMONIC_SLDT:
	case ZYDIS_MNEMONIC_STR:
		return true;
	default:
		return d->meta.category == ZYDIS_CATEGORY_CMOV;
	}
}

/* Does a shift or rotate leave the flags alone, perhaps? 5 bits of the count are used, 6 with a
 * 64-bit operand. */
static bool may_keep_flags(const ZydisDecodedInstruction *d)
{
	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_ROL:
	case ZYDIS_MNEMONIC_ROR:
	case ZYDIS_MNEMONIC_RCL:
	case ZYDIS_MNEMONIC_RCR:
		if (d->opcode == 0xd0 || d->opcode == 0xd1)
			return false;
		break;
	case ZYDIS_MNEMONIC_SHLD:
	case ZYDIS_MNEMONIC_SHRD:
		break;
	default:
		return false;
	}
	if (!d->raw.imm[0].size)
		return true;
	return !(d->raw.imm[0].value.u & (d->operand_width == 64 ? 63 : 31));
}

/* xor, sub or sbb of a register with itself: the result does not depend on it. */
static bool is_self_cancelling(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *ops)
{
	if (d->mnemonic != ZYDIS_MNEMONIC_XOR && d->mnemonic != ZYDIS_MNEMONIC_SUB &&
		d->mnemonic != ZYDIS_MNEMONIC_SBB)
		return false;
	return ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER && ops[0].reg.value == ops[1].reg.value;
}

static void note_register(struct x86_effects *e, const ZydisDecodedOperand *op)
{
	uint16_t bit = reg_bit(op->reg.value);
	bool is_wide = op->reg.value >= ZYDIS_REGISTER_EAX && op->reg.value <= ZYDIS_REGISTER_R15;

	if (op->reg.value == ZYDIS_REGISTER_GS)
		e->uses_gs = true;
	if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		e->reads |= bit;
	if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
		e->writes |= bit;
	if (is_wide && op->actions & ZYDIS_OPERAND_ACTION_WRITE)
		e->kills |= bit;
}

static void note_memory(struct x86_effects *e, const ZydisDecodedOperand *op, bool is_string)
{
	uint16_t base = reg_bit(op->mem.base);

	e->reads |= base | reg_bit(op->mem.index);
	if (is_string) /* Zydis forgets that of cmps and scas */
		e->writes |= base;
	if (op->mem.segment == ZYDIS_REGISTER_GS)
		e->uses_gs = true;
}

static void note_flags(struct x86_effects *e, const ZydisDecodedInstruction *d)
{
	const ZydisAccessedFlags *f = d->cpu_flags;

	if (!f)
		return;
	e->flags_read = flags_of(f->tested);
	e->flags_written = flags_of(f->modified | f->set_0 | f->set_1 | f->undefined);
	/* Zydis 4.0 lists two of the six flags that they set. */
	if (d->mnemonic == ZYDIS_MNEMONIC_VTESTPS || d->mnemonic == ZYDIS_MNEMONIC_VTESTPD ||
		d->mnemonic == ZYDIS_MNEMONIC_VPTEST)
		e->flags_written = X86_FLAGS_STATUS;
	if (!e->is_rep && !may_keep_flags(d))
		e->flags_killed = e->flags_written;
}

static void effects_of(
	struct x86_effects *e, const ZydisDecodedInstruction *d, const ZydisDecodedOperand *ops)
{
	bool is_string = d->meta.category == ZYDIS_CATEGORY_STRINGOP ||
			 d->meta.category == ZYDIS_CATEGORY_IOSTRINGOP;

	*e = (struct x86_effects){
		.is_rep = (d->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
						   ZYDIS_ATTRIB_HAS_REPNE)) != 0,
		.is_transaction = d->mnemonic == ZYDIS_MNEMONIC_XBEGIN ||
				  d->mnemonic == ZYDIS_MNEMONIC_XABORT ||
				  d->mnemonic == ZYDIS_MNEMONIC_XEND,
		.is_privileged = (d->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) != 0,
		.uses_gs = (d->attributes & ZYDIS_ATTRIB_HAS_SEGMENT_GS) ||
			   d->mnemonic == ZYDIS_MNEMONIC_RDGSBASE ||
			   d->mnemonic == ZYDIS_MNEMONIC_WRGSBASE ||
			   d->mnemonic == ZYDIS_MNEMONIC_SWAPGS,
	};
	if (d->mnemonic == ZYDIS_MNEMONIC_NOP)
		return; /* its operand means nothing */
	for (size_t i = 0; i < d->operand_count; i++) {
		if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
			note_register(e, &ops[i]);
		else if (ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			note_memory(e, &ops[i], is_string);
	}
	if (is_seen_by_others(d)) {
		e->reads = e->writes = X86_REGS_ALL;
		e->flags_read = e->flags_written = X86_FLAGS_ALL;
		e->kills = 0;
		return;
	}
	note_flags(e, d);
	if (is_self_cancelling(d, ops))
		e->reads = 0;
	if (d->mnemonic == ZYDIS_MNEMONIC_XLAT)
		e->reads |= 1u << X86_REG_RAX; /* no operand to Zydis, but al is added to rbx */
	if (may_keep_destination(d))
		e->reads |= e->writes;
	if (may_keep_destination(d) || e->is_rep)
		e->kills = 0;
}

bool x86_zydis_decode(struct x86_insn *insn, struct x86_effects *e, struct span code, uint64_t addr)
{
	struct x86_decoded x;

	if (!x86_decode_all(&x, code, true))
		return false;
	x86_insn_describe(insn, &x.d, code.p, addr);
	effects_of(e, &x.d, x.operands);
	return true;
}

bool x86_decode_effects(
	struct x86_insn *insn, struct x86_effects *e, struct span code, uint64_t addr)
{
	return x86_quick_decode(insn, e, code, addr) || x86_zydis_decode(insn, e, code, addr);
}
