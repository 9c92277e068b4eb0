/* SPDX-License-Identifier: MIT */
/* The part of the cycle model that knows the decoder's names. */
#ifndef WEIR_INSERT_COST_CLASSIFY_H
#define WEIR_INSERT_COST_CLASSIFY_H

#include "arch/x86_zydis.h"
#include "insert/cost/model.h"

/* The model's number of a register, COST_REG_NONE for those it does not follow. */
uint8_t cost_reg_of(ZydisRegister reg);

/* `op` has its registers and its memory operand already. */
enum cost_class cost_classify(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *operands,
	const struct cost_op *op);

#endif
