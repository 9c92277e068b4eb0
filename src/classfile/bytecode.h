/* SPDX-License-Identifier: MIT */
/* The instructions of the Java virtual machine (JVMS chapter 6), as far as moving them needs it. */
#ifndef WEIR_CLASSFILE_BYTECODE_H
#define WEIR_CLASSFILE_BYTECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

enum bytecode {
	BYTECODE_LCONST_0 = 0x09,
	BYTECODE_LCONST_1 = 0x0a,
	BYTECODE_SIPUSH = 0x11,
	BYTECODE_LDC_W = 0x13,
	BYTECODE_LLOAD = 0x16,
	BYTECODE_LSTORE = 0x37,
	BYTECODE_LADD = 0x61,
	BYTECODE_I2L = 0x85,
	BYTECODE_GOTO = 0xa7,
	BYTECODE_JSR = 0xa8,
	BYTECODE_TABLESWITCH = 0xaa,
	BYTECODE_LOOKUPSWITCH = 0xab,
	BYTECODE_INVOKESPECIAL = 0xb7,
	BYTECODE_INVOKESTATIC = 0xb8,
	BYTECODE_NEW = 0xbb,
	BYTECODE_ATHROW = 0xbf,
	BYTECODE_GOTO_W = 0xc8,
	BYTECODE_JSR_W = 0xc9,
};

/* How many bytes the instruction at `at` has; 0: none is there, or not all of it. */
uint32_t bytecode_length(struct span code, uint32_t at);

static inline bool bytecode_is_return(uint8_t op)
{
	return op >= 0xac && op <= 0xb1;
}

/* With a distance of 16 bits behind it. */
static inline bool bytecode_is_branch(uint8_t op)
{
	return (op >= 0x99 && op <= BYTECODE_JSR) || op == 0xc6 || op == 0xc7;
}

static inline bool bytecode_is_wide_branch(uint8_t op)
{
	return op == BYTECODE_GOTO_W || op == BYTECODE_JSR_W;
}

static inline bool bytecode_is_switch(uint8_t op)
{
	return op == BYTECODE_TABLESWITCH || op == BYTECODE_LOOKUPSWITCH;
}

/* Zeros between a switch's first byte, at `at`, and its numbers. */
static inline uint32_t bytecode_switch_padding(uint32_t at)
{
	return 3 - at % 4;
}

#endif
