/* SPDX-License-Identifier: MIT */
/*
 * The tables of insn.c, which alone includes this: which opcodes there are, and what operands they have.
 * Bits only: nothing in them has to be relocated.
 */
#ifndef WEIR_RT_TRANSLATE_INSN_TABLES_H
#define WEIR_RT_TRANSLATE_INSN_TABLES_H

#include <stdint.h>

#include "insn_reading.h"

/* Prefixes that are a part of the opcode: N none, P 66, S F3, D F2 (packed, single, double, as most of
 * them mean), with W 0, with W 1, with either. */
enum insn_prefix {
	N0 = 1 << 0,
	P0 = 1 << 1,
	S0 = 1 << 2,
	D0 = 1 << 3,
	N1 = N0 << 4,
	P1 = P0 << 4,
	S1 = S0 << 4,
	D1 = D0 << 4,
	N = N0 | N1,
	P = P0 | P1,
	S = S0 | S1,
	D = D0 | D1,
	NP = N | P,
	NPS = N | P | S,
	SD = S | D,
	ANY = N | P | S | D,
};

/* With which of them an opcode is one: Intel SDM volume 2, appendix A, and AMD APM volume 3, appendix A.
 * Left out is what no program outside of a kernel or a hypervisor executes, and AMX. */
static const uint8_t insn_prefixes[N_MAPS][256] = {
	/* clang-format off: ranges, many a line */
	[MAP_0F] = {
		[0x00 ... 0x03] = ANY, [0x05 ... 0x09] = ANY, [0x0b] = ANY,
		[0x0d ... 0x0e] = ANY, [0x10 ... 0x12] = ANY, [0x13 ... 0x15] = NP, [0x16] = NPS,
		[0x17] = NP, [0x18 ... 0x23] = ANY, [0x28 ... 0x29] = NP, [0x2a ... 0x2d] = ANY,
		[0x2e ... 0x2f] = NP, [0x30 ... 0x35] = ANY, [0x40 ... 0x4f] = ANY, [0x50] = NP,
		[0x51] = ANY, [0x52 ... 0x53] = N | S, [0x54 ... 0x57] = NP,
		[0x58 ... 0x5a] = ANY, [0x5b] = NPS, [0x5c ... 0x5f] = ANY, [0x60 ... 0x6b] = NP,
		[0x6c ... 0x6d] = P, [0x6e] = NP, [0x6f] = NPS, [0x70] = ANY,
		[0x71 ... 0x76] = NP, [0x77] = N, [0x78 ... 0x79] = P | D,
		[0x7c ... 0x7d] = P | D, [0x7e ... 0x7f] = NPS, [0x80 ... 0xa5] = ANY,
		[0xa8 ... 0xb7] = ANY, [0xb8] = S, [0xb9 ... 0xc2] = ANY, [0xc3] = N,
		[0xc4 ... 0xc6] = NP, [0xc7 ... 0xcf] = ANY, [0xd0] = P | D,
		[0xd1 ... 0xd5] = NP, [0xd6] = P | S | D, [0xd7 ... 0xe5] = NP,
		[0xe6] = P | S | D, [0xe7 ... 0xef] = NP, [0xf0] = D, [0xf1 ... 0xfe] = NP,
		[0xff] = ANY,
	},
	[MAP_0F38] = {
		[0x00 ... 0x0b] = NP, [0x10] = P, [0x14 ... 0x15] = P, [0x17] = P,
		[0x1c ... 0x1e] = NP, [0x20 ... 0x25] = P, [0x28 ... 0x2b] = P,
		[0x30 ... 0x35] = P, [0x37 ... 0x41] = P, [0x82] = P, [0xc8 ... 0xcd] = N,
		[0xcf] = P, [0xdb ... 0xdf] = P, [0xf0 ... 0xf1] = N | P | D, [0xf5] = P,
		[0xf6] = NPS, [0xf8] = P | S | D, [0xf9] = N, [0xfc] = ANY,
	},
	[MAP_0F3A] = {
		[0x08 ... 0x0e] = P, [0x0f] = NP, [0x14 ... 0x17] = P, [0x20 ... 0x22] = P,
		[0x40 ... 0x42] = P, [0x44] = P, [0x60 ... 0x63] = P, [0xcc] = N,
		[0xce ... 0xcf] = P, [0xdf] = P,
	},
	[MAP_VEX1] = {
		[0x10 ... 0x12] = ANY, [0x13 ... 0x15] = NP, [0x16] = NPS, [0x17] = NP,
		[0x28 ... 0x29] = NP, [0x2a] = SD, [0x2b] = NP, [0x2c ... 0x2d] = SD,
		[0x2e ... 0x2f] = NP, [0x41 ... 0x42] = NP, [0x44 ... 0x47] = NP, [0x4a] = NP,
		[0x4b] = N | P0, [0x50] = NP, [0x51] = ANY, [0x52 ... 0x53] = N | S,
		[0x54 ... 0x57] = NP, [0x58 ... 0x5a] = ANY, [0x5b] = NPS, [0x5c ... 0x5f] = ANY,
		[0x60 ... 0x6e] = P, [0x6f] = P | S, [0x70] = P | S | D, [0x71 ... 0x76] = P,
		[0x77] = N, [0x7c ... 0x7d] = P | D, [0x7e ... 0x7f] = P | S,
		[0x90 ... 0x91] = NP, [0x92 ... 0x93] = N0 | P0 | D, [0x98 ... 0x99] = NP,
		[0xae] = N, [0xc2] = ANY, [0xc4 ... 0xc5] = P, [0xc6] = NP, [0xd0] = P | D,
		[0xd1 ... 0xe5] = P, [0xe6] = P | S | D, [0xe7 ... 0xef] = P, [0xf0] = D,
		[0xf1 ... 0xfe] = P,
	},
	[MAP_VEX2] = {
		[0x00 ... 0x0b] = P, [0x0c ... 0x0f] = P0, [0x13] = P0, [0x16] = P0, [0x17] = P,
		[0x18 ... 0x1a] = P0, [0x1c ... 0x1e] = P, [0x20 ... 0x25] = P,
		[0x28 ... 0x2b] = P, [0x2c ... 0x2f] = P0, [0x30 ... 0x35] = P, [0x36] = P0,
		[0x37 ... 0x41] = P, [0x45] = P, [0x46] = P0, [0x47] = P,
		[0x50 ... 0x51] = N0 | P0 | S0 | D0, [0x52 ... 0x53] = P0, [0x58 ... 0x5a] = P0,
		[0x72] = S0, [0x78 ... 0x79] = P0, [0x8c] = P, [0x8e] = P, [0x90 ... 0x93] = P,
		[0x96 ... 0x9f] = P, [0xa6 ... 0xaf] = P, [0xb0] = N0 | P0 | S0 | D0,
		[0xb1] = P0 | S0, [0xb4 ... 0xb5] = P1, [0xb6 ... 0xbf] = P,
		[0xcb ... 0xcd] = D0, [0xcf] = P0, [0xd2 ... 0xd3] = N0 | P0 | S0,
		[0xda] = N0 | P0 | S0 | D0, [0xdb ... 0xef] = P, [0xf2 ... 0xf3] = N,
		[0xf5] = N | S | D, [0xf6] = D, [0xf7] = ANY,
	},
	[MAP_VEX3] = {
		[0x00 ... 0x01] = P1, [0x02] = P0, [0x04 ... 0x06] = P0, [0x08 ... 0x0f] = P,
		[0x14 ... 0x17] = P, [0x18 ... 0x19] = P0, [0x1d] = P0, [0x20 ... 0x22] = P,
		[0x30 ... 0x33] = P, [0x38 ... 0x39] = P0, [0x40 ... 0x42] = P, [0x44] = P,
		[0x46] = P0, [0x48 ... 0x49] = P, [0x4a ... 0x4c] = P0, [0x5c ... 0x63] = P,
		[0x68 ... 0x6f] = P, [0x78 ... 0x7f] = P, [0xce ... 0xcf] = P1, [0xde] = P0,
		[0xdf] = P, [0xf0] = D,
	},
	[MAP_EVEX1] = {
		[0x10 ... 0x12] = N0 | P1 | S0 | D1, [0x13 ... 0x15] = N0 | P1,
		[0x16] = N0 | P1 | S0, [0x17] = N0 | P1, [0x28 ... 0x29] = N0 | P1, [0x2a] = SD,
		[0x2b] = N0 | P1, [0x2c ... 0x2d] = SD, [0x2e ... 0x2f] = N0 | P1,
		[0x51] = N0 | P1 | S0 | D1, [0x54 ... 0x57] = N0 | P1,
		[0x58 ... 0x5a] = N0 | P1 | S0 | D1, [0x5b] = N | P0 | S0,
		[0x5c ... 0x5f] = N0 | P1 | S0 | D1, [0x60 ... 0x61] = P, [0x62] = P0,
		[0x63 ... 0x65] = P, [0x66] = P0, [0x67 ... 0x69] = P, [0x6a ... 0x6b] = P0,
		[0x6c ... 0x6d] = P1, [0x6e] = P, [0x6f] = P | S | D, [0x70] = P0 | S | D,
		[0x71 ... 0x75] = P, [0x76] = P0, [0x78 ... 0x79] = ANY,
		[0x7a ... 0x7b] = P | S | D, [0x7e] = P | S1, [0x7f] = P | S | D,
		[0xc2] = N0 | P1 | S0 | D1, [0xc4 ... 0xc5] = P, [0xc6] = N0 | P1, [0xd1] = P,
		[0xd2] = P0, [0xd3 ... 0xd4] = P1, [0xd5] = P, [0xd6] = P1, [0xd8 ... 0xe5] = P,
		[0xe6] = P1 | S | D1, [0xe7] = P0, [0xe8 ... 0xef] = P, [0xf1] = P, [0xf2] = P0,
		[0xf3 ... 0xf4] = P1, [0xf5 ... 0xf6] = P, [0xf8 ... 0xf9] = P, [0xfa] = P0,
		[0xfb] = P1, [0xfc ... 0xfd] = P, [0xfe] = P0,
	},
	[MAP_EVEX2] = {
		[0x00] = P, [0x04] = P, [0x0b] = P, [0x0c] = P0, [0x0d] = P1,
		[0x10 ... 0x12] = P1 | S0, [0x13] = P0 | S0, [0x14 ... 0x15] = P | S0,
		[0x16] = P, [0x18] = P0, [0x19 ... 0x1d] = P, [0x1e] = P0, [0x1f] = P1,
		[0x20 ... 0x24] = P | S0, [0x25] = P0 | S0, [0x26 ... 0x27] = P | S,
		[0x28 ... 0x29] = P1 | S, [0x2a] = P0 | S1, [0x2b] = P0, [0x2c ... 0x2d] = P,
		[0x30 ... 0x34] = P | S0, [0x35] = P0 | S0, [0x36] = P, [0x37] = P1,
		[0x38 ... 0x39] = P | S, [0x3a] = P | S0, [0x3b ... 0x40] = P,
		[0x42 ... 0x47] = P, [0x4c ... 0x4f] = P, [0x50 ... 0x51] = P0,
		[0x52] = P0 | S0 | D0, [0x53] = P0 | D0, [0x54 ... 0x55] = P, [0x58] = P0,
		[0x59 ... 0x5b] = P, [0x62 ... 0x66] = P, [0x68] = D, [0x70] = P1, [0x71] = P,
		[0x72] = P1 | S0 | D0, [0x73] = P, [0x75 ... 0x77] = P, [0x78 ... 0x7b] = P0,
		[0x7c ... 0x7f] = P, [0x83] = P1, [0x88 ... 0x8b] = P, [0x8d] = P, [0x8f] = P0,
		[0x90 ... 0x93] = P, [0x96 ... 0x99] = P, [0x9a ... 0x9b] = P | D0,
		[0x9c ... 0xa3] = P, [0xa6 ... 0xa9] = P, [0xaa ... 0xab] = P | D0,
		[0xac ... 0xaf] = P, [0xb4 ... 0xb5] = P1, [0xb6 ... 0xbf] = P, [0xc4] = P,
		[0xc6 ... 0xc8] = P, [0xca ... 0xcd] = P, [0xcf] = P0, [0xdc ... 0xdf] = P,
	},
	[MAP_EVEX3] = {
		[0x00 ... 0x01] = P1, [0x03] = P, [0x04] = P0, [0x05] = P1, [0x08] = N0 | P0,
		[0x09] = P1, [0x0a] = N0 | P0, [0x0b] = P1, [0x0f] = P, [0x14 ... 0x1b] = P,
		[0x1d] = P0, [0x1e ... 0x20] = P, [0x21] = P0, [0x22 ... 0x23] = P, [0x25] = P,
		[0x26 ... 0x27] = N0 | P, [0x38 ... 0x3b] = P, [0x3e ... 0x3f] = P, [0x42] = P0,
		[0x43 ... 0x44] = P, [0x50 ... 0x51] = P, [0x54 ... 0x55] = P,
		[0x56 ... 0x57] = N0 | P, [0x66 ... 0x67] = N0 | P, [0x70] = P1, [0x71] = P,
		[0x72] = P1, [0x73] = P, [0xc2] = N0 | S0, [0xce ... 0xcf] = P1,
	},
	[MAP_EVEX5] = {
		[0x10 ... 0x11] = S0, [0x1d] = N0 | P0, [0x2a] = S, [0x2c ... 0x2d] = S,
		[0x2e ... 0x2f] = N0, [0x51] = N0 | S0, [0x58 ... 0x59] = N0 | S0,
		[0x5a] = N0 | P1 | S0 | D1, [0x5b] = N | P0 | S0, [0x5c ... 0x5f] = N0 | S0,
		[0x6e] = P, [0x78 ... 0x79] = N0 | P0 | S, [0x7a] = P0 | D, [0x7b] = P0 | S,
		[0x7c] = N0 | P0, [0x7d] = N0 | P0 | S0 | D0, [0x7e] = P,
	},
	[MAP_EVEX6] = {
		[0x13] = N0 | P0, [0x2c ... 0x2d] = P0, [0x42 ... 0x43] = P0,
		[0x4c ... 0x4f] = P0, [0x56 ... 0x57] = S0 | D0, [0x96 ... 0x9f] = P0,
		[0xa6 ... 0xaf] = P0, [0xb6 ... 0xbf] = P0, [0xd6 ... 0xd7] = S0 | D0,
	},
	[MAP_XOP8] = {
		[0x85 ... 0x87] = N0, [0x8e ... 0x8f] = N0, [0x95 ... 0x97] = N0,
		[0x9e ... 0x9f] = N0, [0xa2 ... 0xa3] = N, [0xa6] = N0, [0xb6] = N0,
		[0xc0 ... 0xc3] = N0, [0xcc ... 0xcf] = N0, [0xec ... 0xef] = N0,
	},
	[MAP_XOP9] = {
		[0x01 ... 0x02] = N, [0x12] = N, [0x80 ... 0x83] = N0, [0x90 ... 0x9b] = N,
		[0xc1 ... 0xc3] = N0, [0xc6 ... 0xc7] = N0, [0xcb] = N0, [0xd1 ... 0xd3] = N0,
		[0xd6 ... 0xd7] = N0, [0xdb] = N0, [0xe1 ... 0xe3] = N0,
	},
	[MAP_XOPA] = {
		[0x10] = N, [0x12] = N,
	},
	/* clang-format on */
};

/* What an opcode of one byte, or one behind 0F, has: enum insn_form. */
#define xx 0	/* none, a prefix, or one that is decoded otherwise */
#define NO FORM_KNOWN
#define MR (FORM_KNOWN | FORM_MODRM)
#define EG (MR | FORM_RM | FORM_REG)
#define EB (EG | FORM_BYTE)
#define LG (EG | FORM_LOCK)
#define LB (EB | FORM_LOCK)
#define GI (EG | FORM_IMM8)
#define GZ (EG | FORM_IMMZ)
#define GC (EG | FORM_RCX)
#define GA (LG | FORM_RAX)
#define BA (LB | FORM_RAX)
#define UG (MR | FORM_RM)
#define UB (UG | FORM_BYTE)
#define UI (UG | FORM_IMM8)
#define UZ (UG | FORM_IMMZ)
#define BI (UB | FORM_IMM8)
#define UC (UG | FORM_RCX)
#define BC (UB | FORM_RCX)
#define US (UG | FORM_RSP)
#define XI (UI | FORM_LOCK)
#define XZ (UZ | FORM_LOCK)
#define XB (BI | FORM_LOCK)
#define XU (UG | FORM_LOCK)
#define XS (UG | FORM_LOCK | FORM_RSP)
#define X8 (UB | FORM_LOCK)
#define MU (UG | FORM_LOCK | FORM_RAX | FORM_RDX)
#define M8 (UB | FORM_LOCK | FORM_RAX | FORM_RDX)
#define XA (UG | FORM_RAX | FORM_RDX)
#define X9 (MU | FORM_RCX)
#define VI (MR | FORM_IMM8)
#define AR (NO | FORM_RAX)
#define AB (AR | FORM_IMM8)
#define AZ (AR | FORM_IMMZ)
#define AD (AR | FORM_RDX)
#define AC (AD | FORM_RCX)
#define AO (AR | FORM_OPCODE)
#define OR (NO | FORM_OPCODE)
#define OB (OR | FORM_BYTE | FORM_IMM8)
#define OV (OR | FORM_IMMV)
#define OS (OR | FORM_RSP)
#define PS (NO | FORM_RSP)
#define PI (PS | FORM_IMM8)
#define PZ (PS | FORM_IMMZ)
#define PW (PS | FORM_IMM16)
#define PE (PS | FORM_IMM16 | FORM_IMM8)
#define ST (AD | FORM_RCX | FORM_STRING)
#define IB (NO | FORM_IMM8)
#define IC (IB | FORM_RCX)
#define IA (AB | FORM_RDX)
#define IZ (NO | FORM_IMMZ)

static const uint16_t insn_forms[256] = {
	/* clang-format off: a row a line */
	LB, LG, EB, EG, AB, AZ, xx, xx,  LB, LG, EB, EG, AB, AZ, xx, xx, /* 00: add, or */
	LB, LG, EB, EG, AB, AZ, xx, xx,  LB, LG, EB, EG, AB, AZ, xx, xx, /* 10: adc, sbb */
	LB, LG, EB, EG, AB, AZ, xx, xx,  LB, LG, EB, EG, AB, AZ, xx, xx, /* 20: and, sub */
	LB, LG, EB, EG, AB, AZ, xx, xx,  EB, EG, EB, EG, AB, AZ, xx, xx, /* 30: xor, cmp */
	xx, xx, xx, xx, xx, xx, xx, xx,  xx, xx, xx, xx, xx, xx, xx, xx, /* 40: REX */
	OS, OS, OS, OS, OS, OS, OS, OS,  OS, OS, OS, OS, OS, OS, OS, OS, /* 50: push, pop */
	xx, xx, xx, EG, xx, xx, xx, xx,  PZ, GZ, PI, GI, ST, ST, ST, ST, /* 60: movsxd; push, imul, ins, outs */
	IB, IB, IB, IB, IB, IB, IB, IB,  IB, IB, IB, IB, IB, IB, IB, IB, /* 70: jcc */
	XB, XZ, xx, XI, EB, EG, LB, LG,  EB, EG, EB, EG, UG, EG, UG, US, /* 80: groups, test, xchg; mov, lea, pop */
	AO, AO, AO, AO, AO, AO, AO, AO,  AD, AD, xx, NO, PS, PS, AR, AR, /* 90: xchg; cwde, cdq, pushf, sahf */
	AR, AR, AR, AR, ST, ST, ST, ST,  AB, AZ, ST, ST, ST, ST, ST, ST, /* a0: mov offset, movs, cmps; stos, .. */
	OB, OB, OB, OB, OB, OB, OB, OB,  OV, OV, OV, OV, OV, OV, OV, OV, /* b0: mov */
	BI, UI, PW, PS, xx, xx, BI, UZ,  PE, PS, PW, PS, NO, IB, xx, PS, /* c0: shifts, ret, mov; enter, leave, int */
	UB, UG, BC, UC, xx, xx, xx, AR,  MR, MR, MR, MR, MR, MR, MR, MR, /* d0: shifts, xlat; x87 */
	IC, IC, IC, IC, IA, IA, IA, IA,  PZ, IZ, xx, IB, AD, AD, AD, AD, /* e0: loop, in, out; call, jmp */
	xx, NO, xx, xx, NO, NO, M8, MU,  NO, NO, NO, NO, NO, NO, X8, XS, /* f0: int1, hlt, groups 3; clc, .., 4, 5 */
	/* clang-format on */
};

static const uint16_t insn_forms_0f[256] = {
	/* clang-format off: a row a line */
	UG, UG, EG, EG, xx, NO, NO, NO,  NO, NO, xx, NO, xx, MR, NO, xx, /* 00: system, syscall; ud2, prefetch */
	MR, MR, MR, MR, MR, MR, MR, MR,  MR, MR, UG, UG, MR, MR, UG, MR, /* 10: movups, ..; nop, MPX */
	EG, EG, EG, EG, xx, xx, xx, xx,  MR, MR, EG, MR, EG, EG, MR, MR, /* 20: mov cr, dr; movaps, conversions */
	AC, AC, AC, AC, NO, NO, xx, xx,  xx, xx, xx, xx, xx, xx, xx, xx, /* 30: wrmsr, rdtsc, rdmsr, rdpmc */
	EG, EG, EG, EG, EG, EG, EG, EG,  EG, EG, EG, EG, EG, EG, EG, EG, /* 40: cmovcc */
	EG, MR, MR, MR, MR, MR, MR, MR,  MR, MR, MR, MR, MR, MR, MR, MR, /* 50: movmskps, sqrtps, .. */
	MR, MR, MR, MR, MR, MR, MR, MR,  MR, MR, MR, MR, MR, MR, EG, MR, /* 60: punpcklbw, .. */
	VI, VI, VI, VI, MR, MR, MR, NO,  MR, MR, xx, xx, MR, MR, EG, MR, /* 70: pshufw, .. */
	IZ, IZ, IZ, IZ, IZ, IZ, IZ, IZ,  IZ, IZ, IZ, IZ, IZ, IZ, IZ, IZ, /* 80: jcc */
	UB, UB, UB, UB, UB, UB, UB, UB,  UB, UB, UB, UB, UB, UB, UB, UB, /* 90: setcc */
	PS, PS, AC, EG, GI, GC, xx, xx,  PS, PS, NO, LG, GI, GC, XA, EG, /* a0: cpuid, bt, shld; bts, shrd, imul */
	BA, GA, EG, LG, EG, EG, EB, EG,  EG, EG, XI, LG, EG, EG, EB, EG, /* b0: cmpxchg, movzx; popcnt, bt, bsf, .. */
	LB, LG, VI, EG, GI, GI, VI, X9,  OR, OR, OR, OR, OR, OR, OR, OR, /* c0: xadd, cmpps, pinsrw, ..; bswap */
	MR, MR, MR, MR, MR, MR, MR, EG,  MR, MR, MR, MR, MR, MR, MR, MR, /* d0: addsubps, .., pmovmskb, .. */
	MR, MR, MR, MR, MR, MR, MR, MR,  MR, MR, MR, MR, MR, MR, MR, MR, /* e0: pavgb, .. */
	MR, MR, MR, MR, MR, MR, MR, MR,  MR, MR, MR, MR, MR, MR, MR, EG, /* f0: lddqu, ..; ud0 */
	/* clang-format on */
};

#endif
