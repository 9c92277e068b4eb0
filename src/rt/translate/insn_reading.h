/* SPDX-License-Identifier: MIT */
/* What insn.c, which reads an instruction, and insn_effects.c, which tells what it does, share. */
#ifndef WEIR_RT_TRANSLATE_INSN_READING_H
#define WEIR_RT_TRANSLATE_INSN_READING_H

#include "insn.h"

#define BIT(n) (1u << (n))
#define RAX    BIT(0)
#define RCX    BIT(1)
#define RDX    BIT(2)
#define RBX    BIT(3)
#define RSP    BIT(4)
#define RBP    BIT(5)
#define RSI    BIT(6)
#define RDI    BIT(7)
#define R_ALL  0xffffu

/* Opcodes of more than one byte, by what stands in front of the last one. */
enum insn_map {
	MAP_0F,
	MAP_0F38,
	MAP_0F3A,
	MAP_VEX1,
	MAP_VEX2,
	MAP_VEX3,
	MAP_EVEX1,
	MAP_EVEX2,
	MAP_EVEX3,
	MAP_EVEX5,
	MAP_EVEX6,
	MAP_XOP8,
	MAP_XOP9,
	MAP_XOPA,
	N_MAPS,
	MAP_ONE_BYTE = N_MAPS, /* these have no table of prefixes */
};

/* What an opcode of one byte, or one behind 0F, has. */
enum insn_form {
	FORM_KNOWN = 1 << 0,
	FORM_MODRM = 1 << 1,
	FORM_REG = 1 << 2,	     /* ModRM.reg is a general register */
	FORM_RM = 1 << 3,	     /* ModRM.rm is one, or memory */
	FORM_BYTE = 1 << 4,     /* these are 8 bits wide: 4..7 are ah, ch, dh, bh without REX */
	FORM_OPCODE = 1 << 5,   /* the low three bits are a general register */
	FORM_IMM8 = 1 << 6,
	FORM_IMM16 = 1 << 7,
	FORM_IMMZ = 1 << 8,     /* 4 bytes, 2 with 66 */
	FORM_IMMV = 1 << 9,     /* the same, 8 with REX.W */
	FORM_RAX = 1 << 10,     /* uses it without naming it; so the others */
	FORM_RCX = 1 << 11,
	FORM_RDX = 1 << 12,
	FORM_RSP = 1 << 13,
	FORM_STRING = 1 << 14,  /* rsi, rdi */
	FORM_LOCK = 1 << 15,    /* may have the prefix, with memory */
};

/* One that is being read. */
struct reading {
	const uint8_t *p;
	uint8_t n, at;	 /* bytes that may be read, are read */
	uint8_t map;	 /* enum insn_map */
	uint8_t opcode;
	uint8_t prefix;	 /* that is a part of the opcode: 0 none, 1 66, 2 F3, 3 F2 */
	uint8_t repeat;	 /* F3, F2 or 0: the last one */
	uint8_t segment; /* 64, 65 or 0: the last one */
	uint8_t rex;	 /* or what stands for it in VEX, EVEX, XOP, as bits: W 8, R 4, X 2, B 1 */
	uint8_t vvvv;	 /* the register of VEX, EVEX, XOP */
	uint8_t mod, reg, rm; /* of ModRM, 3 bits at most; `mod` is 3 without one */
	bool has_66, has_67, has_lock, has_rex;
	bool has_memory; /* that ModRM names */
	uint16_t form;	 /* enum insn_form; 0: not known */
};

static inline bool has_w(const struct reading *r)
{
	return r->rex & 8;
}

static inline bool is_16_bits(const struct reading *r)
{
	return r->has_66 && !has_w(r);
}

/* Fills in what follows from the opcode: kind, target, flags, registers that are implied. The reading has
 * come to the end of the instruction, whose first byte stands at `address`. */
void insn_describe(const struct reading *r, struct insn *insn, uint64_t address);

#endif
