/* SPDX-License-Identifier: MIT */
/* Where the frames of hand-written code end: it leaves the stack, or the thread. */
#include <sys/syscall.h>

#include "arch/x86_code.h"

#define SP_NUMBER  4
#define REX_R	   4
#define REX_B	   1
#define EXIT_INSNS 6   /* looked at for the system call */
#define EXIT_OF_32 1   /* exit of i386 */
#define GROUP_32   252 /* exit_group of i386 */

static bool writes_stack_pointer(struct span code, const struct x86_insn *insn, bool is_64)
{
	unsigned at = insn->modrm_at;
	uint8_t op, modrm, rex = 0;
	bool is_reg_sp, is_rm_sp;

	if (!at)
		return false;
	op = code.p[at - 1];
	modrm = code.p[at];
	if (is_64 && at >= 2 && (code.p[at - 2] & 0xf0) == 0x40)
		rex = code.p[at - 2];
	is_reg_sp = (modrm >> 3 & 7) == SP_NUMBER && !(rex & REX_R);
	is_rm_sp = modrm >> 6 == 3 && (modrm & 7) == SP_NUMBER && !(rex & REX_B);
	switch (op) {
	case 0x8b: /* mov to a register */
		return is_reg_sp;
	case 0x89: /* mov from one */
		return is_rm_sp;
	case 0x87: /* xchg */
		return is_reg_sp || is_rm_sp;
	case 0x81:
	case 0x83: /* and with a constant */
		return is_rm_sp && (modrm >> 3 & 7) == 4;
	default:
		return false;
	}
}

size_t x86_past_stack_write(struct span code, bool is_64)
{
	struct x86_insn insn;
	size_t at = 0;

	while (at < code.n) {
		struct span rest = span_sub(code, at, code.n - at);

		if (!x86_decode(&insn, rest, at, is_64))
			return at;
		at += insn.length;
		if (writes_stack_pointer(rest, &insn, is_64))
			return at;
	}
	return at;
}

/* The few instructions with which musl's clone ends: the number goes into eax, the value where the
 * system call wants it. */
bool x86_ends_thread(struct span code, bool is_64)
{
	struct cursor c = cursor_of(code);
	uint32_t number = 0;

	for (int i = 0; i < EXIT_INSNS; i++) {
		uint8_t op = cursor_u8(&c), operand;

		if (is_64 && op == 0x48)
			op = cursor_u8(&c);
		if (!is_64 && op == 0x40) { /* inc eax */
			number++;
			continue;
		}
		if (op == 0xb8) { /* mov imm32, eax */
			number = cursor_u32(&c);
			continue;
		}
		operand = cursor_u8(&c);
		if (op == 0x31 && operand == 0xc0) /* xor eax, eax */
			number = 0;
		else if (op == 0xb0) /* mov imm8, al */
			number = (number & ~0xffu) | operand;
		else if (is_64 && op == 0x0f && operand == 0x05)
			return !c.failed && (number == SYS_exit || number == SYS_exit_group);
		else if (!is_64 && op == 0xcd && operand == 0x80)
			return !c.failed && (number == EXIT_OF_32 || number == GROUP_32);
		else if (op != 0x89 ||
			 (operand != 0xc7 && operand != 0xc3)) /* mov eax, edi or ebx */
			return false;
	}
	return false;
}
