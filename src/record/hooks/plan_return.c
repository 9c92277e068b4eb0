/* SPDX-License-Identifier: MIT */
/*
 * Functions that do something else with their return address than return to it: read it, take it off
 * the stack, put it elsewhere. A hook has replaced it by then. Compilers make none but for
 * __builtin_return_address; hand-written and generated code does. Only the instructions up to the
 * first branch are looked at: what moves the address at its end only does no harm.
 */
#include <string.h>

#include "record/hooks/plan_internal.h"

#define INSNS_MAX 24

struct stack_walk {
	bool is_64;
	uint32_t depth; /* bytes pushed since the entry */
};

enum verdict { GO_ON, DONE, TOUCHES_RETURN };

/* Whether the operand in memory is the word that holds the return address. */
static bool is_return_word(const struct stack_walk *w, const uint8_t *modrm)
{
	unsigned mod = modrm[0] >> 6;

	if (mod == 3 || (modrm[0] & 7) != 4 || modrm[1] != 0x24) /* (%rsp), without an index */
		return false;
	if (mod == 0)
		return w->depth == 0;
	return w->depth == (mod == 1 ? (uint32_t)(int8_t)modrm[2] : u32_at(modrm + 2));
}

/* 83 or 81, with the stack pointer and a constant. */
static enum verdict add_or_sub(struct stack_walk *w, const uint8_t *op)
{
	uint32_t n = op[0] == 0x83 ? (uint32_t)(int8_t)op[2] : u32_at(op + 2);

	if (op[1] == 0xec) { /* sub */
		w->depth += n;
		return GO_ON;
	}
	if (op[1] != 0xc4) /* and: the depth is not known any more */
		return DONE;
	if (n > w->depth && !(n >> 31))
		return TOUCHES_RETURN;
	w->depth -= n;
	return GO_ON;
}

static enum verdict pop(struct stack_walk *w, uint32_t word)
{
	if (w->depth < word)
		return TOUCHES_RETURN;
	w->depth -= word;
	return GO_ON;
}

/* `op` is the opcode, behind prefixes; `modrm` NULL when it has none. */
static enum verdict step(struct stack_walk *w, const uint8_t *op, const uint8_t *modrm)
{
	uint32_t word = w->is_64 ? 8 : 4;
	bool is_memory = modrm && modrm[0] >> 6 != 3;

	if (is_memory && op[0] != 0x8d && !(op[0] == 0x0f && op[1] == 0x1f) &&
		is_return_word(w, modrm))
		return TOUCHES_RETURN;
	if (op[0] >= 0x58 && op[0] <= 0x5f)
		return op[0] == 0x5c ? DONE : pop(w, word);
	if (op[0] == 0x8f && modrm == op + 1)
		return pop(w, word);
	if ((op[0] >= 0x50 && op[0] <= 0x57) || op[0] == 0x68 || op[0] == 0x6a ||
		(op[0] == 0xff && (op[1] & 0x38) == 0x30)) {
		w->depth += word;
		return GO_ON;
	}
	if ((op[0] == 0x83 || op[0] == 0x81) && modrm[0] >> 6 == 3 && (modrm[0] & 7) == 4)
		return (modrm[0] & 0x38) == 0x38 ? GO_ON /* cmp */ : add_or_sub(w, op);
	/* enter, leave, pushf, popf, and whatever else has rsp as the register that it changes */
	if (op[0] == 0xc8 || op[0] == 0xc9 || op[0] == 0x9c || op[0] == 0x9d ||
		((op[0] == 0x89 || op[0] == 0x87 || op[0] == 0x01 || op[0] == 0x29) &&
			modrm[0] >> 6 == 3 && (modrm[0] & 7) == 4) ||
		((op[0] == 0x8b || op[0] == 0x8d || op[0] == 0x87 || op[0] == 0x03 ||
			 op[0] == 0x2b) &&
			(modrm[0] & 0x38) == 0x20))
		return DONE;
	return GO_ON;
}

/* Behind prefixes; sets `rex` to the last one of 64-bit code, 0 = none. */
static const uint8_t *opcode_of(const uint8_t *p, const uint8_t *end, bool is_64, uint8_t *rex)
{
	*rex = 0;
	while (p + 1 < end && (*p == 0x66 || *p == 0xf2 || *p == 0xf3 || *p == 0x2e || *p == 0x3e ||
				      *p == 0x64 || *p == 0x65))
		p++;
	if (is_64 && p + 1 < end && (*p & 0xf0) == 0x40)
		*rex = *p++;
	return p;
}

bool touches_return_address(const struct image_facts *f, const struct image_function *fn)
{
	struct stack_walk w = {.is_64 = f->is_64};
	struct x86_insn insn;
	uint64_t at = fn->start;

	for (int i = 0; i < INSNS_MAX && at < fn->end && image_decode(f, at, &insn); i++) {
		/* Room for what is read behind a short instruction. */
		uint8_t bytes[X86_INSN_BYTES_MAX + 8] = {0}, rex;
		const uint8_t *op, *modrm = insn.modrm_at ? bytes + insn.modrm_at : NULL;
		enum verdict v;

		if (insn.flow != X86_FLOW_NEXT)
			return false;
		memcpy(bytes, image_code(f, at).p, insn.length);
		at += insn.length;
		op = opcode_of(bytes, bytes + insn.length, f->is_64, &rex);
		if (insn.is_nop || insn.is_endbr || *op == 0xc4 || *op == 0xc5 || *op == 0x62)
			continue; /* vectors */
		if ((rex & 1) && modrm && modrm[0] >> 6 == 3 && (modrm[0] & 7) == 4)
			continue; /* r12, not rsp */
		if ((rex & 4) && modrm && (modrm[0] & 0x38) == 0x20 && modrm[0] >> 6 == 3)
			continue; /* likewise */
		if ((rex & 1) && modrm && modrm[0] >> 6 != 3)
			continue; /* an address by r8 to r15 */
		if ((rex & 1) && *op == 0x5c)
			v = pop(&w, 8);
		else
			v = step(&w, op, modrm);
		if (v != GO_ON)
			return v == TOUCHES_RETURN;
	}
	return false;
}
