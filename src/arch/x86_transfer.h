/* SPDX-License-Identifier: MIT */
/*
 * Where a 64-bit instruction moves values between registers and the stack: what is needed to follow
 * a stack pointer, a frame pointer and a return address through code without CFI (over Zydis).
 * Registers have their numbers in encodings: rax rcx rdx rbx rsp rbp rsi rdi r8 ... r15.
 */
#ifndef WEIR_ARCH_X86_TRANSFER_H
#define WEIR_ARCH_X86_TRANSFER_H

#include "arch/x86_code.h"
#include "base/span.h"

enum x86_transfer_kind {
	X86_TRANSFER_OTHER, /* nothing of these; `writes` says what it changes */
	X86_TRANSFER_SUM,   /* to = from + disp: mov, lea, add, sub, inc, dec */
	X86_TRANSFER_LOAD,  /* to = 8 bytes at from + disp */
	X86_TRANSFER_STORE, /* 8 bytes at to + disp = from */
	X86_TRANSFER_PUSH,  /* of from */
	X86_TRANSFER_POP,   /* to `to` */
	X86_TRANSFER_LEAVE, /* rsp = rbp, pop rbp */
	X86_TRANSFER_JUMP   /* to the address in from */
};

#define X86_NO_REGISTER (-1)

struct x86_transfer {
	enum x86_transfer_kind kind;
	int to, from; /* X86_NO_REGISTER: something else (a constant, memory) */
	int64_t disp;
	uint16_t writes; /* of X86_TRANSFER_OTHER: bit n = it may change register n */
};

/* Of the instruction at the start of `code`, which lies at `addr`, with what x86_decode says of it;
 * false when it is none. */
bool x86_decode_transfer(
	struct x86_insn *insn, struct x86_transfer *t, struct span code, uint64_t addr);

#endif
