/* SPDX-License-Identifier: MIT */
#include "arch/x86_memory.h"

#include "arch/x86_zydis.h"

/* As much of a number as so many bits hold. */
static uint64_t cut(uint64_t value, unsigned bits)
{
	return bits == 64 ? value : bits == 32 ? (uint32_t)value : (uint16_t)value;
}

/* False when it is a vector register. */
static bool value_of(
	ZydisRegister reg, uint64_t next, const struct x86_registers *regs, uint64_t *value)
{
	int number = x86_general_number(reg);

	if (number >= 0)
		*value = cut(regs->general[number],
			ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg));
	else if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP)
		*value = next;
	else if (reg == ZYDIS_REGISTER_NONE)
		*value = 0;
	else
		return false;
	return true;
}

static uint64_t segment_base(ZydisRegister segment, const struct x86_registers *regs)
{
	return segment == ZYDIS_REGISTER_FS   ? regs->fs_base
	       : segment == ZYDIS_REGISTER_GS ? regs->gs_base
					      : 0;
}

/* push, call and enter write below the stack pointer; Zydis names the register alone. */
static bool is_pushed(const ZydisDecodedOperand *o)
{
	return o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
	       o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
	       (o->mem.base == ZYDIS_REGISTER_RSP || o->mem.base == ZYDIS_REGISTER_ESP);
}

static bool address_of(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *o,
	uint64_t addr, const struct x86_registers *regs, uint64_t *result)
{
	uint64_t base, index, sum;

	if (!value_of(o->mem.base, addr + d->length, regs, &base) ||
		!value_of(o->mem.index, 0, regs, &index))
		return false;
	sum = base + index * o->mem.scale + (uint64_t)o->mem.disp.value;
	if (is_pushed(o))
		sum -= o->size / 8;
	/* pop [rsp + 8] means the stack pointer behind the pop. */
	else if (d->mnemonic == ZYDIS_MNEMONIC_POP &&
		 o->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
		 (o->mem.base == ZYDIS_REGISTER_RSP || o->mem.base == ZYDIS_REGISTER_ESP))
		sum += o->size / 8;
	*result = cut(sum, d->address_width) + segment_base(o->mem.segment, regs);
	return true;
}

/* Padding and hints name memory and do not access it: it need not be there. */
static bool is_idle(const ZydisDecodedInstruction *d)
{
	return d->meta.category == ZYDIS_CATEGORY_NOP ||
	       d->meta.category == ZYDIS_CATEGORY_WIDENOP ||
	       d->meta.category == ZYDIS_CATEGORY_PREFETCH ||
	       d->meta.category == ZYDIS_CATEGORY_PREFETCHWT1;
}

/* A repeated string instruction whose counter is zero touches nothing. */
static bool is_skipped(const ZydisDecodedInstruction *d, const struct x86_registers *regs)
{
	return d->attributes &
		       (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE) &&
	       !cut(regs->general[1], d->address_width);
}

size_t x86_accesses(struct x86_access accesses[X86_ACCESSES_MAX], struct span code, uint64_t addr,
	bool is_64, const struct x86_registers *before)
{
	struct x86_decoded x;
	size_t n = 0;

	if (!x86_decode_all(&x, code, is_64) || is_idle(&x.d) || is_skipped(&x.d, before))
		return 0;
	for (size_t i = 0; i < x.d.operand_count && n < X86_ACCESSES_MAX; i++) {
		const ZydisDecodedOperand *o = &x.operands[i];
		struct x86_access *a = &accesses[n];

		if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.type != ZYDIS_MEMOP_TYPE_MEM ||
			!o->size || !address_of(&x.d, o, addr, before, &a->addr))
			continue;
		a->bytes = o->size / 8;
		a->is_read = o->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
		a->is_written = o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
		n += a->is_read || a->is_written;
	}
	return n;
}
