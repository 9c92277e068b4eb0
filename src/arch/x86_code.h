/* SPDX-License-Identifier: MIT */
/*
 * Instructions of x86 code, 32- and 64-bit, as far as code that moves or follows them needs to know
 * (over Zydis). Nothing here reads outside the span it is given.
 */
#ifndef WEIR_ARCH_X86_CODE_H
#define WEIR_ARCH_X86_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

#define X86_INSN_BYTES_MAX 15

/* Where control goes behind an instruction. */
enum x86_flow {
	X86_FLOW_NEXT,	   /* to the next one */
	X86_FLOW_JUMP,	   /* jmp target */
	X86_FLOW_BRANCH,   /* jcc, loop, jrcxz target, else to the next one */
	X86_FLOW_CALL,	   /* call target */
	X86_FLOW_JUMP_FAR, /* jmp through a register or memory */
	X86_FLOW_CALL_FAR, /* call through a register or memory */
	X86_FLOW_RETURN,   /* ret, iret */
	X86_FLOW_STOP,	   /* ud2, hlt, int3 */
	X86_FLOW_SYSCALL,  /* syscall, sysenter, int */
};

/* Whether a block ends behind such an instruction: a call comes back. */
static inline bool x86_ends_block(enum x86_flow flow)
{
	return flow == X86_FLOW_JUMP || flow == X86_FLOW_BRANCH || flow == X86_FLOW_JUMP_FAR ||
	       flow == X86_FLOW_RETURN || flow == X86_FLOW_STOP;
}

struct x86_insn {
	uint8_t length;
	uint8_t flow; /* enum x86_flow */
	bool has_target;
	uint64_t target; /* of a direct jump, branch or call */
	bool is_nop;	 /* any nop, of any length */
	bool is_endbr;
	bool is_padding;	   /* nop, int3 or zero bytes between functions */
	uint8_t disp_at;	   /* offset of a rip-relative 32-bit displacement; 0 = none */
	uint64_t disp_target;	   /* the address that it means */
	uint8_t rel_at, rel_bytes; /* the offset field of a direct jump, branch or call; 0 = none */
	uint8_t opcode; /* the opcode byte of a short branch (0x70..0x7f, 0xe0..0xe3, 0xeb), else 0
			 */
	uint8_t modrm_at; /* offset of the ModRM byte; 0 = it has none */
	bool is_bound;	  /* means its own address in a way that a 32-bit distance cannot mend: an
			     operand relative to eip, a 16-bit offset, xbegin */
};

/* The instruction at the start of `code`, which lies at `addr`. False when it is none. */
bool x86_decode(struct x86_insn *insn, struct span code, uint64_t addr, bool is_64);
/* Whether it is a string instruction (movs, stos, ...) with a prefix that repeats it. */
bool x86_is_repeated_string(struct span code);

/* The bytes of a function's code up to the end of the first instruction that sets the stack pointer to
 * something else than a sum (mov, and, xchg); all of them when there is none. */
size_t x86_past_stack_write(struct span code, bool is_64);

/* Whether the code does nothing but end the thread, by a system call with the value that was just
 * returned: what stands behind the first call of a thread. */
bool x86_ends_thread(struct span code, bool is_64);

/* The longest call instruction that counts, without prefixes. */
#define X86_CALL_BYTES_MAX 7

/* Whether the bytes that end at `end` (of which `n` may be looked at) can be a near call: what
 * stands before every true return address, and before few other values that a stack holds. */
bool x86_follows_call(const uint8_t *end, size_t n);

#endif
