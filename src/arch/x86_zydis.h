/* SPDX-License-Identifier: MIT */
/* What the files over Zydis share, so that an instruction is decoded once; for src/arch only. */
#ifndef WEIR_ARCH_X86_ZYDIS_H
#define WEIR_ARCH_X86_ZYDIS_H

#include <Zydis/Zydis.h>

#include "arch/x86_code.h"
#include "arch/x86_effects.h"

/* Fills in what x86_decode says of an instruction that is decoded already; its bytes are `code`. */
void x86_insn_describe(struct x86_insn *insn, const ZydisDecodedInstruction *d, const uint8_t *code,
	uint64_t addr);
/* x86_decode_effects through Zydis alone. */
bool x86_zydis_decode(
	struct x86_insn *insn, struct x86_effects *e, struct span code, uint64_t addr);

#endif
