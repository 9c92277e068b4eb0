/* SPDX-License-Identifier: MIT */
/* Zydis, for the files that need more of an instruction than x86_code.h tells. */
#ifndef WEIR_ARCH_X86_ZYDIS_H
#define WEIR_ARCH_X86_ZYDIS_H

#include <Zydis/Zydis.h>

#include "arch/x86_code.h"
#include "arch/x86_effects.h"

struct x86_decoded {
	ZydisDecodedInstruction d;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT]; /* d.operand_count are filled in */
};

/* The instruction at the start of `code` with all its operands; false when it is none. */
bool x86_decode_all(struct x86_decoded *x, struct span code, bool is_64);
/* The number in encodings (rax 0, rcx 1, ...) of the general register that this is or is a part of;
 * -1 when it is none. */
int x86_general_number(ZydisRegister reg);

/* Fills in what x86_decode says of an instruction that is decoded already; its bytes are `code`. */
void x86_insn_describe(struct x86_insn *insn, const ZydisDecodedInstruction *d, const uint8_t *code,
	uint64_t addr);
/* x86_decode_effects through Zydis alone. */
bool x86_zydis_decode(
	struct x86_insn *insn, struct x86_effects *e, struct span code, uint64_t addr);

#endif
