/* SPDX-License-Identifier: MIT */
/*
 * What a function does with what it was given, in its first instructions: which register or part of
 * the caller's frame each stack slot and register has a copy of. Code without optimisation stores
 * its parameters into its frame at once, and debug information knows no more than these slots.
 *
 * The instructions are followed in a straight line, up to the first branch or call. The frame
 * address is the stack pointer before the call: the return address lies below it.
 */
#ifndef WEIR_ARCH_X86_ENTRY_H
#define WEIR_ARCH_X86_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

#define X86_ENTRY_REGS                                                                             \
	16 /* by their numbers in encodings: rax rcx rdx rbx rsp rbp rsi rdi r8 ... */
#define X86_ENTRY_SP	    4
#define X86_ENTRY_FP	    5
#define X86_ENTRY_SLOTS_MAX 96

enum x86_entry_kind {
	X86_ENTRY_UNKNOWN,
	X86_ENTRY_REGISTER, /* what general register `reg` had at the first instruction */
	X86_ENTRY_VECTOR,   /* likewise a vector register */
	X86_ENTRY_CALLER,   /* what lies at frame address + offset: an argument on the stack */
	X86_ENTRY_ADDRESS   /* the frame address + offset itself */
};

struct x86_entry_value {
	uint8_t kind; /* enum x86_entry_kind */
	uint8_t reg;
	uint8_t bytes; /* as many of its low bytes are meant */
	int64_t offset;
};

struct x86_entry_slot {
	int64_t offset; /* from the frame address */
	uint8_t bytes;
	uint32_t behind; /* bytes of code up to the end of the instruction that wrote it */
	bool is_direct;	 /* the value is that of the register that was stored */
	bool is_push;	 /* by push, which saves registers and makes room, and keeps no parameter */
	struct x86_entry_value value;
};

struct x86_entry {
	struct x86_entry_value regs[X86_ENTRY_REGS];	  /* where following ended */
	struct x86_entry_slot slots[X86_ENTRY_SLOTS_MAX]; /* in the order of the writes */
	uint32_t n_slots;
	uint32_t n_bytes; /* of code that were followed */
	/* What the frame and the stack pointer are in the function's body, from the frame address. */
	bool has_fp, has_sp;
	int64_t fp, sp;
	uint16_t vectors_set; /* vector registers that were written */
	bool is_64;
};

/* Follows the function that begins at `at` of a section's bytes, for at most `stop` bytes. */
void x86_entry_follow(
	struct x86_entry *e, struct span section, uint64_t at, bool is_64, uint32_t stop);
/* What was moved to an offset first; NULL when that was nothing, or something that begins before it. */
const struct x86_entry_slot *x86_entry_first(const struct x86_entry *e, int64_t offset);

#endif
