/* SPDX-License-Identifier: MIT */
/* Which class an instruction is of: by its mnemonic, and where that is not enough by its operands.
 */
#include "insert/cost/classify.h"

static const uint8_t class_of_mnemonic[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
#define ONE(name, class)  [ZYDIS_MNEMONIC_##name] = COST_CLASS_##class,
#define BOTH(name, class) ONE(name, class) ONE(V##name, class)
#include "insert/cost/mnemonics.def"
#undef ONE
#undef BOTH
};

uint8_t cost_reg_of(ZydisRegister r)
{
	int general = x86_general_number(r);

	if (general >= 0)
		return (uint8_t)general;
	if (r >= ZYDIS_REGISTER_XMM0 && r <= ZYDIS_REGISTER_ZMM31)
		return (uint8_t)(COST_REG_VECTOR + (r - ZYDIS_REGISTER_XMM0) % 32);
	if (r >= ZYDIS_REGISTER_K0 && r <= ZYDIS_REGISTER_K7)
		return (uint8_t)(COST_REG_MASK + (r - ZYDIS_REGISTER_K0));
	if (r >= ZYDIS_REGISTER_ST0 && r <= ZYDIS_REGISTER_ST7)
		return (uint8_t)(COST_REG_X87 + (r - ZYDIS_REGISTER_ST0));
	if (r >= ZYDIS_REGISTER_MM0 && r <= ZYDIS_REGISTER_MM7)
		return (uint8_t)(COST_REG_MMX + (r - ZYDIS_REGISTER_MM0));
	return COST_REG_NONE;
}

static enum cost_class class_by_width(
	enum cost_class class, const ZydisDecodedInstruction *d, const ZydisDecodedOperand *o)
{
	bool by_cl = d->operand_count_visible >= 2 &&
		     o[d->operand_count_visible - 1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		     o[d->operand_count_visible - 1].reg.value == ZYDIS_REGISTER_CL;
	uint16_t bits = o[0].size;

	switch (class) {
	case COST_CLASS_MOVE:
		if (o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return COST_CLASS_ALU;
		return bits < 32 ? COST_CLASS_EXTEND : class;
	case COST_CLASS_SHIFT:
		return by_cl ? COST_CLASS_SHIFT_CL : class;
	case COST_CLASS_ROTATE:
		return by_cl ? COST_CLASS_ROTATE_CL : class;
	case COST_CLASS_SHIFT_DOUBLE:
		return by_cl ? COST_CLASS_SHIFT_DOUBLE_CL : class;
	case COST_CLASS_SWAP_32:
		return bits == 64 ? COST_CLASS_SWAP_64 : class;
	case COST_CLASS_MUL:
		if (d->operand_count_visible > 1)
			return class;
		return bits == 64 ? COST_CLASS_MUL_WIDE_64 : COST_CLASS_MUL_WIDE;
	case COST_CLASS_MUL_WIDE:
		return bits == 64 ? COST_CLASS_MUL_WIDE_64 : class;
	case COST_CLASS_DIV_32:
		return bits == 64   ? COST_CLASS_DIV_64
		       : bits == 16 ? COST_CLASS_DIV_16
		       : bits == 8  ? COST_CLASS_DIV_8
				    : class;
	case COST_CLASS_LEA:
		if (o[1].mem.base != ZYDIS_REGISTER_NONE && o[1].mem.index != ZYDIS_REGISTER_NONE &&
			o[1].mem.disp.has_displacement)
			return COST_CLASS_LEA_LONG;
		return class;
	default:
		return class;
	}
}

static enum cost_class class_by_kind(enum cost_class class, const ZydisDecodedInstruction *d,
	const ZydisDecodedOperand *o, const struct cost_op *op)
{
	bool first_is_vector = o[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			       cost_reg_of(o[0].reg.value) >= COST_REG_VECTOR;
	bool second_is_vector = o[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
				cost_reg_of(o[1].reg.value) >= COST_REG_VECTOR;

	switch (class) {
	case COST_CLASS_V_FROM_GENERAL: /* movd, movq: either way, or of two vectors */
		if (first_is_vector && second_is_vector)
			return COST_CLASS_V_MERGE;
		return first_is_vector ? class : COST_CLASS_V_TO_GENERAL;
	case COST_CLASS_V_SHIFT:
		return d->operand_count_visible && o[d->operand_count_visible - 1].type ==
							   ZYDIS_OPERAND_TYPE_IMMEDIATE
			       ? class
			       : COST_CLASS_V_SHIFT_COUNT;
	case COST_CLASS_V_COMPARE:
		return first_is_vector && cost_reg_of(o[0].reg.value) < COST_REG_X87 &&
				       cost_reg_of(o[0].reg.value) >= COST_REG_MASK
			       ? COST_CLASS_MASK_COMPARE
			       : class;
	case COST_CLASS_MASK_MOVE:
		return first_is_vector && second_is_vector ? COST_CLASS_MASK : class;
	case COST_CLASS_V_BROADCAST:
		return second_is_vector || op->is_load ? class : COST_CLASS_V_FROM_GENERAL;
	case COST_CLASS_JUMP:
		return d->raw.imm[0].is_relative ? class : COST_CLASS_JUMP_FAR;
	case COST_CLASS_OTHER:
		return op->is_vector ? COST_CLASS_V_INT : COST_CLASS_ALU;
	default:
		return class;
	}
}

enum cost_class cost_classify(
	const ZydisDecodedInstruction *d, const ZydisDecodedOperand *o, const struct cost_op *op)
{
	enum cost_class class = class_of_mnemonic[d->mnemonic];

	if (d->meta.category == ZYDIS_CATEGORY_STRINGOP)
		class = COST_CLASS_STRING;
	if (class == COST_CLASS_STRING &&
		(d->attributes &
			(ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)))
		return COST_CLASS_STRING_REP;
	if (d->attributes & ZYDIS_ATTRIB_HAS_LOCK || (class == COST_CLASS_EXCHANGE && op->is_store))
		return COST_CLASS_LOCKED;
	if (d->operand_count_visible)
		class = class_by_width(class, d, o);
	return class_by_kind(class, d, o, op);
}
