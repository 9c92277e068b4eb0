/* SPDX-License-Identifier: MIT */
#include "arch/x86_memory.h"

#include "arch/x86_zydis.h"

#define RSP 4

/* False when it is a vector register. */
static bool value_of(
	ZydisRegister reg, uint64_t next, const struct x86_registers *regs, uint64_t *value)
{
	if (reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15)
		*value = regs->general[reg - ZYDIS_REGISTER_RAX];
	else if (reg >= ZYDIS_REGISTER_EAX && reg <= ZYDIS_REGISTER_R15D)
		*value = (uint32_t)regs->general[reg - ZYDIS_REGISTER_EAX];
	else if (reg >= ZYDIS_REGISTER_AX && reg <= ZYDIS_REGISTER_R15W)
		*value = (uint16_t)regs->general[reg - ZYDIS_REGISTER_AX];
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
	if (d->address_width == 32)
		sum = (uint32_t)sum;
	else if (d->address_width == 16)
		sum = (uint16_t)sum;
	*result = sum + segment_base(o->mem.segment, regs);
	return true;
}

/* A repeated string instruction whose counter is zero touches nothing. */
static bool is_skipped(const ZydisDecodedInstruction *d, const struct x86_registers *regs)
{
	uint64_t count = regs->general[1];

	if (!(d->attributes &
		    (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)))
		return false;
	return !(d->address_width == 64	  ? count
		 : d->address_width == 32 ? (uint32_t)count
					  : (uint16_t)count);
}

size_t x86_accesses(struct x86_access accesses[X86_ACCESSES_MAX], struct span code, uint64_t addr,
	bool is_64, const struct x86_registers *before)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction d;
	ZydisDecoder decoder;
	size_t n = 0;

	ZydisDecoderInit(&decoder,
		is_64 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LONG_COMPAT_32,
		is_64 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code.p, code.n, &d, operands)) ||
		is_skipped(&d, before))
		return 0;
	for (size_t i = 0; i < d.operand_count && n < X86_ACCESSES_MAX; i++) {
		const ZydisDecodedOperand *o = &operands[i];
		struct x86_access *a = &accesses[n];

		if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.type != ZYDIS_MEMOP_TYPE_MEM ||
			!o->size || !address_of(&d, o, addr, before, &a->addr))
			continue;
		a->bytes = o->size / 8;
		a->is_read = o->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
		a->is_written = o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
		n += a->is_read || a->is_written;
	}
	return n;
}
