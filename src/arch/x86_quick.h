/* SPDX-License-Identifier: MIT */
/* The instructions that nearly all code is made of, decoded from a table; for src/arch only. */
#ifndef WEIR_ARCH_X86_QUICK_H
#define WEIR_ARCH_X86_QUICK_H

#include "arch/x86_effects.h"

/* What x86_decode_effects says, five times as fast; false for everything that is not in the table,
 * which may be an instruction or not, and near the end of `code`. */
bool x86_quick_decode(
	struct x86_insn *insn, struct x86_effects *e, struct span code, uint64_t addr);

#endif
