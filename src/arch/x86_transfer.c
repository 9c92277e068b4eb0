/* SPDX-License-Identifier: MIT */
#include "arch/x86_transfer.h"

#include "arch/x86_zydis.h"

#define RSP 4

/* The number of a whole 64-bit register. */
static int whole_register(const ZydisDecodedOperand *o)
{
	if (o->type != ZYDIS_OPERAND_TYPE_REGISTER || o->size != 64)
		return X86_NO_REGISTER;
	return x86_general_number(o->reg.value);
}

/* Memory at a register plus a number, and nothing else. */
static bool is_plain(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.index == ZYDIS_REGISTER_NONE &&
	       o->mem.segment != ZYDIS_REGISTER_FS && o->mem.segment != ZYDIS_REGISTER_GS &&
	       x86_general_number(o->mem.base) >= 0 &&
	       ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, o->mem.base) == 64;
}

static uint16_t written_registers(const struct x86_decoded *x)
{
	uint16_t writes = 0;

	for (size_t i = 0; i < x->d.operand_count; i++) {
		const ZydisDecodedOperand *o = &x->operands[i];
		int number = o->type == ZYDIS_OPERAND_TYPE_REGISTER &&
					     o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE
				     ? x86_general_number(o->reg.value)
				     : X86_NO_REGISTER;

		if (number >= 0)
			writes |= (uint16_t)(1u << number);
	}
	return writes;
}

static void decode_move(struct x86_transfer *t, const struct x86_decoded *x)
{
	const ZydisDecodedOperand *to = &x->operands[0], *from = &x->operands[1];
	int target = whole_register(to), source = whole_register(from);

	if (target >= 0 && source >= 0)
		*t = (struct x86_transfer){X86_TRANSFER_SUM, target, source, 0, 0};
	else if (target >= 0 && is_plain(from))
		*t = (struct x86_transfer){X86_TRANSFER_LOAD, target,
			x86_general_number(from->mem.base), from->mem.disp.value, 0};
	else if (is_plain(to) && to->size == 64)
		*t = (struct x86_transfer){X86_TRANSFER_STORE, x86_general_number(to->mem.base),
			source, to->mem.disp.value, 0};
}

static void decode_sum(struct x86_transfer *t, const struct x86_decoded *x, int sign)
{
	int target = whole_register(&x->operands[0]);

	if (target >= 0 && x->operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		*t = (struct x86_transfer){
			X86_TRANSFER_SUM, target, target, sign * x->operands[1].imm.value.s, 0};
}

static void decode_lea(struct x86_transfer *t, const struct x86_decoded *x)
{
	int target = whole_register(&x->operands[0]);
	const ZydisDecodedOperand *o = &x->operands[1];

	if (target >= 0 && o->mem.index == ZYDIS_REGISTER_NONE &&
		x86_general_number(o->mem.base) >= 0 &&
		ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, o->mem.base) == 64)
		*t = (struct x86_transfer){X86_TRANSFER_SUM, target,
			x86_general_number(o->mem.base), o->mem.disp.value, 0};
}

bool x86_decode_transfer(
	struct x86_insn *insn, struct x86_transfer *t, struct span code, uint64_t addr)
{
	struct x86_decoded x;
	const ZydisDecodedOperand *first = &x.operands[0];

	if (!x86_decode_all(&x, code, true))
		return false;
	x86_insn_describe(insn, &x.d, code.p, addr);
	*t = (struct x86_transfer){
		X86_TRANSFER_OTHER, X86_NO_REGISTER, X86_NO_REGISTER, 0, written_registers(&x)};
	switch (x.d.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		decode_move(t, &x);
		break;
	case ZYDIS_MNEMONIC_LEA:
		decode_lea(t, &x);
		break;
	case ZYDIS_MNEMONIC_ADD:
		decode_sum(t, &x, 1);
		break;
	case ZYDIS_MNEMONIC_SUB:
		decode_sum(t, &x, -1);
		break;
	case ZYDIS_MNEMONIC_PUSH:
		*t = (struct x86_transfer){X86_TRANSFER_PUSH, RSP, whole_register(first), 0, 0};
		break;
	case ZYDIS_MNEMONIC_POP:
		*t = (struct x86_transfer){X86_TRANSFER_POP, whole_register(first), RSP, 0, 0};
		break;
	case ZYDIS_MNEMONIC_PUSHFQ:
		*t = (struct x86_transfer){X86_TRANSFER_PUSH, RSP, X86_NO_REGISTER, 0, 0};
		break;
	case ZYDIS_MNEMONIC_POPFQ:
		*t = (struct x86_transfer){X86_TRANSFER_POP, X86_NO_REGISTER, RSP, 0, 0};
		break;
	case ZYDIS_MNEMONIC_LEAVE:
		t->kind = X86_TRANSFER_LEAVE;
		break;
	case ZYDIS_MNEMONIC_JMP:
		if (whole_register(first) >= 0) {
			t->kind = X86_TRANSFER_JUMP;
			t->from = whole_register(first);
		}
		break;
	default:
		break;
	}
	return true;
}
