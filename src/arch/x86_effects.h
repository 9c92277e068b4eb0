/* SPDX-License-Identifier: MIT */
/*
 * What a 64-bit instruction does to the general registers and to the flags (over Zydis), for
 * liveness: everything that may be read, and only what is surely overwritten.
 */
#ifndef WEIR_ARCH_X86_EFFECTS_H
#define WEIR_ARCH_X86_EFFECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/x86_code.h"
#include "base/span.h"

/* Bit n is the register with number n in an encoding: rax rcx rdx rbx rsp rbp rsi rdi r8 ... r15.
 */
#define X86_REG_RAX  0u
#define X86_REG_RDX  2u
#define X86_REG_RSP  4u
#define X86_REGS_ALL 0xffffu

/* Bits of the flags that matter: from bit 0 CF PF AF ZF SF OF, and DF. */
#define X86_FLAGS_STATUS 0x3fu
#define X86_FLAG_CF	 0x01u
#define X86_FLAG_DF	 0x40u
#define X86_FLAGS_ALL	 0x7fu

struct x86_effects {
	uint16_t reads;	    /* registers of which any part may be read */
	uint16_t writes;    /* registers of which any part may be written */
	uint16_t kills;	    /* registers that are surely overwritten in full (32-bit writes are) */
	uint8_t flags_read; /* flags that may be read */
	uint8_t flags_written; /* flags that may change */
	uint8_t flags_killed;  /* flags that are surely set or made undefined */
	bool uses_gs;	       /* an operand is relative to gs, or the gs base is changed */
	bool is_rep;	       /* repeats itself */
	bool is_transaction;   /* xbegin, xabort, xend */
	bool is_privileged;    /* cannot run in user mode */
};

/* Of the instruction at the start of `code`, 64-bit code at `addr`, with what x86_decode says of
 * it; both are untouched when it is none. Calls, system calls and returns are given as reading every
 * register and every flag, and as killing none. Shifts by a variable or zero amount, `rep`
 * instructions and cmov kill nothing they might leave alone. */
bool x86_decode_effects(
	struct x86_insn *insn, struct x86_effects *e, struct span code, uint64_t addr);
/* The same, five times as fast, of the instructions that nearly all code is made of, from a table;
 * false for everything that is not in it, which may be an instruction or not, and near the end of
 * `code`. For src/arch only. */
bool x86_quick_decode(
	struct x86_insn *insn, struct x86_effects *e, struct span code, uint64_t addr);

#endif
