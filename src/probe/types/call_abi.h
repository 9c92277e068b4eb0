/* SPDX-License-Identifier: MIT */
/*
 * Where arguments and results are when a function is entered and left: System V i386 (cdecl) and
 * x86-64. Positions in the kernel's struct pt_regs of x86-64, which BPF programs see for programs
 * of either mode.
 */
#ifndef WEIR_PROBE_TYPES_CALL_ABI_H
#define WEIR_PROBE_TYPES_CALL_ABI_H

#include <stdbool.h>
#include <stdint.h>

#include "probe/types/type.h"

/* Byte offsets in struct pt_regs. */
enum pt_reg {
	PT_R15 = 0,
	PT_R14 = 8,
	PT_R13 = 16,
	PT_R12 = 24,
	PT_BP = 32,
	PT_BX = 40,
	PT_R11 = 48,
	PT_R10 = 56,
	PT_R9 = 64,
	PT_R8 = 72,
	PT_AX = 80,
	PT_CX = 88,
	PT_DX = 96,
	PT_SI = 104,
	PT_DI = 112,
	PT_ORIG_AX = 120,
	PT_IP = 128,
	PT_CS = 136,
	PT_FLAGS = 144,
	PT_SP = 152,
	PT_SS = 160
};
#define CS_32 0x23 /* code segment of 32-bit user code */
#define CS_64 0x33

enum value_place_kind {
	VALUE_IN_REGISTER,    /* reg[0]; of 64 bits in i386 edx:eax: reg[0] low, reg[1] high */
	VALUE_IN_REGISTERS,   /* a structure of up to 16 bytes: 8 bytes in each of reg[0], reg[1] */
	VALUE_ON_STACK,	      /* at sp + offset, `bytes` long */
	VALUE_BEHIND_POINTER, /* the register holds its address (results in memory) */
	VALUE_IN_VECTOR,      /* xmm or x87 register: BPF cannot read it */
	VALUE_IN_PARTS,	      /* as debug information says: parts, one behind the other */
	VALUE_UNKNOWN	      /* it cannot be told: why */
};

enum value_part_kind {
	PART_REGISTER, /* reg + offset */
	PART_MEMORY,   /* at reg + offset; with is_behind at (the pointer at reg + offset) + next */
	PART_CONSTANT, /* value: known without looking */
	PART_LINKED    /* value is an address as the linker gave it */
};

struct value_part {
	enum value_part_kind kind;
	uint16_t reg; /* enum pt_reg */
	bool is_behind;
	int32_t offset, next;
	uint64_t value;
	uint32_t bytes;
};

#define VALUE_PARTS_MAX 8

struct value_place {
	enum value_place_kind kind;
	uint16_t reg[2]; /* enum pt_reg */
	uint8_t n_regs;
	int32_t offset; /* from the stack pointer at the first instruction (the return address is at
			   0) */
	uint32_t bytes;
	uint32_t n_parts; /* IN_PARTS */
	struct value_part parts[VALUE_PARTS_MAX];
	const char *why; /* UNKNOWN: a literal; what cannot be told, behind "'x' " */
};

/* What debug information says of a function at one of its instructions. */
struct call_facts {
	const struct type *function; /* TYPE_FUNCTION */
	struct value_place *places;  /* of its parameters */
	bool is_unusual;	     /* some are not where the convention has them */
	const char *result_trouble; /* why its result cannot be told, behind "'retval' "; or NULL */
};

/* Argument `i` of a function with this type (TYPE_FUNCTION), at its first instruction. */
struct value_place call_argument(enum mode mode, const struct type *function, uint32_t i);
/* argN of a function of which nothing is known: word-sized integers. */
struct value_place call_raw_argument(enum mode mode, uint32_t i);
/* Whether b, as debug information says it, begins where a is, as the convention says it. */
bool call_is_place_same(const struct value_place *a, const struct value_place *b);
/* The result, when it has returned. */
struct value_place call_result(enum mode mode, const struct type *returns);
/* A register's name as scripts and USDT notes write it ("ax", "rdi", "eax", "r10d", "sp"): offset
 * in pt_regs, and how many of its bytes are meant and where (al: 1 at 0, ah: 1 at 1). */
bool pt_reg_find(const char *name, uint16_t *offset, uint8_t *first_byte, uint8_t *bytes);

#endif
