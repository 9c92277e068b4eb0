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
static uint16_t reg_bit(ZydisRegister reg, bool *is_wide)
{
	*is_wide = reg >= ZYDIS_REGISTER_EAX && reg <= ZYDIS_REGISTER_R15;
	if (reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15)
		return (uint16_t)(1u << (reg - ZYDIS_REGISTER_RAX));
	if (reg >= ZYDIS_REGISTER_EAX && reg <= ZYDIS_REGISTER_R15D)
		return (uint16_t)(1u << (reg - ZYDIS_REGISTER_EAX));
	if (reg >= ZYDIS_REGISTER_AX && reg <= ZYDIS_REGISTER_R15W)
		return (uint16_t)(1u << (reg - ZYDIS_REGISTER_AX));
	if (reg >= ZYDIS_REGISTER_AL && reg <= ZYDIS_REGISTER_BL)
		return (uint16_t)(1u << (reg - ZYDIS_REGISTER_AL));
	if (reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_R15B)
		return (uint16_t)(1u << (reg - ZYDIS_REGISTER_AH)); /* ah = 4 - 4, spl = 4 */
	return 0;
}
