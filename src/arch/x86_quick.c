/* SPDX-License-Identifier: MIT */
/*
 * A general decoder takes most of the time of insertion, and nine of ten instructions are a move,
 * an addition, a comparison or a branch. Those are described here, by opcode, in a few bits.
 *
 * 1. What is not described is left to Zydis, and so is whatever is odd about what is: prefixes but
 *    fs, one of 66 f3 f2, and REX behind them.
 * 2. What is described comes out as Zydis and x86_effects.c have it, to the bit. A test compares
 *    both over every encoding that this accepts (tests/unit/arch/x86_quick_test.c).
 */
#include "arch/x86_effects.h"

/* Fewer bytes are left to Zydis, so that nothing here has to look where the code ends. */
#define QUICK_BYTES_MIN 16

enum quick_bits {
	Q_MODRM = 1 << 0,
	Q_IMM8 = 1 << 1,
	Q_IMMZ = 1 << 2, /* 4 bytes, 2 with 66 */
	Q_IMMV = 1 << 3, /* the same, 8 with REX.W */
	Q_REG_R =
		1 << 4, /* the register of ModRM.reg or, without ModRM, of the opcode's low bits */
	Q_REG_W = 1 << 5,
	Q_RM_R = 1 << 6, /* ModRM.rm, when it is a register */
	Q_RM_W = 1 << 7,
	Q_RAX_R = 1 << 8,
	Q_RAX_W = 1 << 9,
	Q_REG_BYTE = 1 << 10, /* 8 bits wide */
	Q_RM_BYTE = 1 << 11,
	Q_64 = 1 << 12,	    /* 64 bits wide without REX.W */
	Q_SSE = 1 << 13,    /* 66 is a part of the opcode */
	Q_STACK = 1 << 14,  /* pushes or pops */
	Q_GROUP = 1 << 15,  /* ModRM.reg chooses among `groups` */
	Q_ZERO = 1 << 16,   /* does not depend on a register that it has twice */
	Q_KEEP = 1 << 17,   /* may leave the register of ModRM.reg as it was */
	Q_MEMORY = 1 << 18, /* with a register it is none, or something else */
	Q_NOP = 1 << 19,
	Q_SHIFT = 1 << 20, /* leaves the flags alone when the immediate is 0 */
	Q_REL8 = 1 << 21,
	Q_REL32 = 1 << 22,
	Q_ALL = 1 << 23,   /* everything may be read and written */
	Q_PLAIN = 1 << 24, /* no prefix at all but REX */
	Q_RDX_W = 1 << 25,
	Q_BYTE = Q_REG_BYTE | Q_RM_BYTE,
};

/* Prefixes that an opcode may have. */
enum quick_prefix {
	P_NONE = 1,
	P_66 = 2,
	P_F3 = 4,
	P_F2 = 8,
	P_V = P_NONE | P_66, /* operands of 16, 32 and 64 bits, or MMX and SSE */
	P_S = P_F3 | P_F2,   /* SSE, single values */
	P_ANY = 15,
};

#define F_CF	 0x01
#define F_STATUS X86_FLAGS_STATUS
#define F_NOT_CF (X86_FLAGS_STATUS & ~F_CF)
#define F_TURN	 0x21 /* CF, OF */

struct quick {
	uint32_t bits;
	uint8_t prefixes;      /* 0: not described */
	uint8_t flags_read;    /* X86_FLAG* */
	uint8_t flags_written; /* and killed */
	uint8_t flow;	       /* enum x86_flow */
	uint8_t group;
};

#define MOVES(bits, prefixes) SETS(bits, prefixes, 0, 0)
#define SETS(bits, prefixes, in, out)                                                              \
	{                                                                                          \
		(bits), (prefixes), (in), (out), X86_FLOW_NEXT, 0                                  \
	}
#define GOES(bits, flow)                                                                           \
	{                                                                                          \
		(bits) | Q_PLAIN, P_NONE, 0, 0, (flow), 0                                          \
	}
#define CHOOSES(prefixes, group)                                                                   \
	{                                                                                          \
		Q_MODRM | Q_GROUP, (prefixes), 0, 0, X86_FLOW_NEXT, (group)                        \
	}

#define ALU(at, flags_in, same)                                                                    \
	[at] = SETS(Q_MODRM | Q_REG_R | Q_RM_R | Q_RM_W | Q_BYTE | (same), P_NONE, flags_in,       \
		F_STATUS),                                                                         \
	[(at) + 1] = SETS(Q_MODRM | Q_REG_R | Q_RM_R | Q_RM_W | (same), P_V, flags_in, F_STATUS),  \
	[(at) + 2] = SETS(Q_MODRM | Q_REG_R | Q_REG_W | Q_RM_R | Q_BYTE | (same), P_NONE,          \
		flags_in, F_STATUS),                                                               \
	[(at) + 3] = SETS(Q_MODRM | Q_REG_R | Q_REG_W | Q_RM_R | (same), P_V, flags_in, F_STATUS), \
	[(at) + 4] = SETS(Q_IMM8 | Q_RAX_R | Q_RAX_W | Q_REG_BYTE, P_NONE, flags_in, F_STATUS),    \
	[(at) + 5] = SETS(Q_IMMZ | Q_RAX_R | Q_RAX_W, P_V, flags_in, F_STATUS)

/* The flags that a condition, the opcode's low four bits, depends on. */
#define COND_O	0x20
#define COND_B	0x01
#define COND_Z	0x08
#define COND_BE 0x09
#define COND_S	0x10
#define COND_P	0x02
#define COND_L	0x30
#define COND_LE 0x38
#define PAIR(at, what, prefixes, cond, flow)                                                       \
	[at] = {what, prefixes, cond, 0, flow, 0}, [(at) + 1] = {what, prefixes, cond, 0, flow, 0}
#define CONDITIONS(at, what, prefixes, flow)                                                       \
	PAIR(at, what, prefixes, COND_O, flow), PAIR((at) + 2, what, prefixes, COND_B, flow),      \
		PAIR((at) + 4, what, prefixes, COND_Z, flow),                                      \
		PAIR((at) + 6, what, prefixes, COND_BE, flow),                                     \
		PAIR((at) + 8, what, prefixes, COND_S, flow),                                      \
		PAIR((at) + 10, what, prefixes, COND_P, flow),                                     \
		PAIR((at) + 12, what, prefixes, COND_L, flow),                                     \
		PAIR((at) + 14, what, prefixes, COND_LE, flow)

enum quick_group { G_80, G_83, G_81, G_C0, G_C1, G_D0, G_D1, G_F6, G_F7, G_FE, G_FF, G_C6, G_C7 };

static const struct quick one_byte[256] = {
	ALU(0x00, 0, 0),
	ALU(0x08, 0, 0),
	ALU(0x10, F_CF, 0),
	ALU(0x18, F_CF, Q_ZERO),
	ALU(0x20, 0, 0),
	ALU(0x28, 0, Q_ZERO),
	ALU(0x30, 0, Q_ZERO),
	/* cmp */
	[0x38] = SETS(Q_MODRM | Q_REG_R | Q_RM_R | Q_BYTE, P_NONE, 0, F_STATUS),
	[0x39] = SETS(Q_MODRM | Q_REG_R | Q_RM_R, P_V, 0, F_STATUS),
	[0x3a] = SETS(Q_MODRM | Q_REG_R | Q_RM_R | Q_BYTE, P_NONE, 0, F_STATUS),
	[0x3b] = SETS(Q_MODRM | Q_REG_R | Q_RM_R, P_V, 0, F_STATUS),
	[0x3c] = SETS(Q_IMM8 | Q_RAX_R, P_NONE, 0, F_STATUS),
	[0x3d] = SETS(Q_IMMZ | Q_RAX_R, P_V, 0, F_STATUS),
	[0x50 ... 0x57] = MOVES(Q_REG_R | Q_64 | Q_STACK | Q_PLAIN, P_NONE),
	[0x58 ... 0x5f] = MOVES(Q_REG_W | Q_64 | Q_STACK | Q_PLAIN, P_NONE),
	[0x63] = MOVES(Q_MODRM | Q_REG_W | Q_RM_R, P_NONE), /* movsxd */
	[0x68] = MOVES(Q_IMMZ | Q_STACK | Q_PLAIN, P_NONE),
	[0x69] = SETS(Q_MODRM | Q_REG_W | Q_RM_R | Q_IMMZ, P_V, 0, F_STATUS), /* imul */
	[0x6a] = MOVES(Q_IMM8 | Q_STACK | Q_PLAIN, P_NONE),
	[0x6b] = SETS(Q_MODRM | Q_REG_W | Q_RM_R | Q_IMM8, P_V, 0, F_STATUS),
	CONDITIONS(0x70, Q_REL8 | Q_PLAIN, P_NONE, X86_FLOW_BRANCH),
	[0x80] = CHOOSES(P_NONE, G_80),
	[0x81] = CHOOSES(P_V, G_81),
	[0x83] = CHOOSES(P_V, G_83),
	[0x84] = SETS(Q_MODRM | Q_REG_R | Q_RM_R | Q_BYTE, P_NONE, 0, F_STATUS), /* test */
	[0x85] = SETS(Q_MODRM | Q_REG_R | Q_RM_R, P_V, 0, F_STATUS),
	[0x88] = MOVES(Q_MODRM | Q_REG_R | Q_RM_W | Q_BYTE, P_NONE), /* mov */
	[0x89] = MOVES(Q_MODRM | Q_REG_R | Q_RM_W, P_V),
	[0x8a] = MOVES(Q_MODRM | Q_REG_W | Q_RM_R | Q_BYTE, P_NONE),
	[0x8b] = MOVES(Q_MODRM | Q_REG_W | Q_RM_R, P_V),
	[0x8d] = MOVES(Q_MODRM | Q_REG_W | Q_MEMORY, P_V), /* lea */
	[0x90] = MOVES(Q_NOP | Q_PLAIN, P_NONE),
	[0x98] = MOVES(Q_RAX_R | Q_RAX_W, P_V), /* cwde, cdqe */
	[0x99] = MOVES(Q_RAX_R | Q_RDX_W, P_V), /* cdq, cqo */
	[0xa8] = SETS(Q_IMM8 | Q_RAX_R, P_NONE, 0, F_STATUS),
	[0xa9] = SETS(Q_IMMZ | Q_RAX_R, P_V, 0, F_STATUS),
	[0xb0 ... 0xb7] = MOVES(Q_IMM8 | Q_REG_W | Q_REG_BYTE, P_NONE),
	[0xb8 ... 0xbf] = MOVES(Q_IMMV | Q_REG_W, P_V),
	[0xc0] = CHOOSES(P_NONE, G_C0),
	[0xc1] = CHOOSES(P_V, G_C1),
	[0xc3] = GOES(Q_ALL, X86_FLOW_RETURN),
	[0xc6] = CHOOSES(P_NONE, G_C6),
	[0xc7] = CHOOSES(P_V, G_C7),
	[0xd0] = CHOOSES(P_NONE, G_D0),
	[0xd1] = CHOOSES(P_V, G_D1),
	[0xe8] = GOES(Q_REL32 | Q_ALL, X86_FLOW_CALL),
	[0xe9] = GOES(Q_REL32, X86_FLOW_JUMP),
	[0xeb] = GOES(Q_REL8, X86_FLOW_JUMP),
	[0xf6] = CHOOSES(P_NONE, G_F6),
	[0xf7] = CHOOSES(P_V, G_F7),
	[0xfe] = CHOOSES(P_NONE, G_FE),
	[0xff] = CHOOSES(P_V, G_FF),
};

#define ALU_GROUP(more)                                                                            \
	{                                                                                          \
		[0 ... 1] = SETS(Q_RM_R | Q_RM_W | (more), P_V, 0, F_STATUS),                      \
		       [2 ... 3] = SETS(Q_RM_R | Q_RM_W | (more), P_V, F_CF, F_STATUS),            \
		       [4 ... 6] = SETS(Q_RM_R | Q_RM_W | (more), P_V, 0, F_STATUS),               \
		       [7] = SETS(Q_RM_R | (more), P_V, 0, F_STATUS),                              \
	}
/* rcl, rcr and the second name of shl are left out. */
#define SHIFT_GROUP(more)                                                                          \
	{                                                                                          \
		[0 ... 1] = SETS(Q_RM_R | Q_RM_W | (more), P_V, 0, F_TURN),                        \
		       [4 ... 5] = SETS(Q_RM_R | Q_RM_W | (more), P_V, 0, F_STATUS),               \
		       [7] = SETS(Q_RM_R | Q_RM_W | (more), P_V, 0, F_STATUS),                     \
	}

static const struct quick groups[][8] = {
	[G_80] = ALU_GROUP(Q_IMM8 | Q_RM_BYTE),
	[G_81] = ALU_GROUP(Q_IMMZ),
	[G_83] = ALU_GROUP(Q_IMM8),
	[G_C0] = SHIFT_GROUP(Q_IMM8 | Q_RM_BYTE | Q_SHIFT),
	[G_C1] = SHIFT_GROUP(Q_IMM8 | Q_SHIFT),
	[G_D0] = SHIFT_GROUP(Q_RM_BYTE),
	[G_D1] = SHIFT_GROUP(0),
	[G_F6] = {[0] = SETS(Q_RM_R | Q_IMM8 | Q_RM_BYTE, P_V, 0, F_STATUS), /* test, not, neg */
		[2] = MOVES(Q_RM_R | Q_RM_W | Q_RM_BYTE, P_V),
		[3] = SETS(Q_RM_R | Q_RM_W | Q_RM_BYTE, P_V, 0, F_STATUS)},
	[G_F7] = {[0] = SETS(Q_RM_R | Q_IMMZ, P_V, 0, F_STATUS),
		[2] = MOVES(Q_RM_R | Q_RM_W, P_V),
		[3] = SETS(Q_RM_R | Q_RM_W, P_V, 0, F_STATUS)},
	[G_FE] = {[0 ... 1] = SETS(Q_RM_R | Q_RM_W | Q_RM_BYTE, P_V, 0, F_NOT_CF)}, /* inc, dec */
	[G_FF] = {[0 ... 1] = SETS(Q_RM_R | Q_RM_W, P_V, 0, F_NOT_CF),
		[2] = GOES(Q_ALL, X86_FLOW_CALL_FAR),
		[4] = GOES(Q_RM_R | Q_64, X86_FLOW_JUMP_FAR),
		[6] = MOVES(Q_RM_R | Q_64 | Q_STACK | Q_PLAIN, P_NONE)},
	[G_C6] = {[0] = MOVES(Q_RM_W | Q_IMM8 | Q_RM_BYTE, P_V)}, /* mov */
	[G_C7] = {[0] = MOVES(Q_RM_W | Q_IMMZ, P_V)},
};

#define VEC Q_MODRM | Q_SSE

/* Behind 0f. */
static const struct quick two_bytes[256] = {
	[0x10 ... 0x11] = MOVES(VEC, P_ANY), /* movups, movss, ... */
	[0x12] = MOVES(VEC, P_NONE | P_S),
	[0x14 ... 0x15] = MOVES(VEC, P_V),
	[0x16] = MOVES(VEC, P_NONE | P_F3),
	[0x1f] = MOVES(Q_MODRM | Q_NOP, P_V),
	[0x28 ... 0x29] = MOVES(VEC, P_V),
	[0x2a] = MOVES(VEC | Q_RM_R, P_S),	       /* cvtsi2sd */
	[0x2c ... 0x2d] = MOVES(VEC | Q_REG_W, P_S),   /* cvttsd2si */
	[0x2e ... 0x2f] = SETS(VEC, P_V, 0, F_STATUS), /* ucomisd */
	CONDITIONS(0x40, Q_MODRM | Q_REG_R | Q_REG_W | Q_RM_R | Q_KEEP, P_V, X86_FLOW_NEXT),
	[0x51] = MOVES(VEC, P_ANY),
	[0x54 ... 0x57] = MOVES(VEC, P_V),
	[0x58 ... 0x5a] = MOVES(VEC, P_ANY),
	[0x5b] = MOVES(VEC, P_V | P_F3),
	[0x5c ... 0x5f] = MOVES(VEC, P_ANY),
	[0x60 ... 0x6b] = MOVES(VEC, P_V),
	[0x6c ... 0x6d] = MOVES(VEC, P_66),
	[0x6e] = MOVES(VEC | Q_RM_R, P_V), /* movd, movq */
	[0x6f] = MOVES(VEC, P_V | P_F3),
	[0x70] = MOVES(VEC | Q_IMM8, P_ANY),
	[0x74 ... 0x76] = MOVES(VEC, P_V),
	[0x7e] = MOVES(VEC | Q_RM_W, P_V),
	[0x7f] = MOVES(VEC, P_V | P_F3),
	CONDITIONS(0x80, Q_REL32 | Q_PLAIN, P_NONE, X86_FLOW_BRANCH),
	CONDITIONS(0x90, Q_MODRM | Q_RM_W | Q_RM_BYTE, P_NONE, X86_FLOW_NEXT),
	[0xaf] = SETS(Q_MODRM | Q_REG_R | Q_REG_W | Q_RM_R, P_V, 0, F_STATUS), /* imul */
	[0xb6] = MOVES(Q_MODRM | Q_REG_W | Q_RM_R | Q_RM_BYTE, P_V),	       /* movzx */
	[0xb7] = MOVES(Q_MODRM | Q_REG_W | Q_RM_R, P_V),
	[0xbe] = MOVES(Q_MODRM | Q_REG_W | Q_RM_R | Q_RM_BYTE, P_V), /* movsx */
	[0xbf] = MOVES(Q_MODRM | Q_REG_W | Q_RM_R, P_V),
	[0xc2] = MOVES(VEC | Q_IMM8, P_ANY),
	[0xc6] = MOVES(VEC | Q_IMM8, P_V),
	[0xd1 ... 0xd5] = MOVES(VEC, P_V),
	[0xd6] = MOVES(VEC, P_66),
	[0xd8 ... 0xe5] = MOVES(VEC, P_V),
	[0xe8 ... 0xef] = MOVES(VEC, P_V),
	[0xf1 ... 0xf6] = MOVES(VEC, P_V),
	[0xf8 ... 0xfe] = MOVES(VEC, P_V),
};
static const struct quick movq_load = MOVES(VEC, P_F3); /* f3 0f 7e */

/* An instruction on the way. */
struct decoding {
	const uint8_t *p; /* next byte */
	const struct quick *q;
	uint32_t bits;
	uint8_t opcode;
	uint8_t rex;
	bool has_66;	      /* and it is the operands' size */
	uint8_t mod, reg, rm; /* without the bits of REX */
	uint16_t address;     /* registers of the memory operand */
};

static uint8_t operand_bytes(const struct decoding *d)
{
	if (d->rex & 8 || d->bits & Q_64)
		return 8;
	return d->has_66 ? 2 : 4;
}

/* spl, bpl, sil and dil need a REX prefix; without one these are ah, ch, dh, bh. */
static uint16_t register_bit(const struct decoding *d, unsigned number, bool is_byte)
{
	if (is_byte && !d->rex && number >= 4)
		number -= 4;
	return (uint16_t)(1u << number);
}

/* Prefixes and opcode; false when they are none of ours. */
static bool take_opcode(struct decoding *d)
{
	uint8_t prefix = P_NONE;

	if (*d->p == 0x64)
		d->p++;
	if (*d->p == 0x66)
		prefix = P_66;
	else if (*d->p == 0xf3)
		prefix = P_F3;
	else if (*d->p == 0xf2)
		prefix = P_F2;
	d->p += prefix != P_NONE;
	if ((*d->p & 0xf0) == 0x40)
		d->rex = *d->p++;
	d->opcode = *d->p++;
	d->q = &one_byte[d->opcode];
	if (d->opcode == 0x0f) {
		d->opcode = *d->p++;
		d->q = &two_bytes[d->opcode];
		if (d->opcode == 0x7e && prefix == P_F3)
			d->q = &movq_load;
	}
	d->bits = d->q->bits;
	d->has_66 = prefix == P_66 && !(d->bits & Q_SSE);
	return d->q->prefixes & prefix;
}

/* ModRM, SIB and displacement. */
static void take_modrm(struct decoding *d, struct x86_insn *insn, const uint8_t *start)
{
	uint8_t modrm = *d->p, base;

	insn->modrm_at = (uint8_t)(d->p++ - start);
	d->mod = modrm >> 6;
	d->reg = modrm >> 3 & 7;
	d->rm = base = modrm & 7;
	if (d->mod == 3)
		return;
	if (d->rm == 4) {
		uint8_t sib = *d->p++, index = (uint8_t)((sib >> 3 & 7) | (d->rex & 2) << 2);

		base = sib & 7;
		if (index != 4)
			d->address = (uint16_t)(1u << index);
	}
	if (d->mod == 0 && base == 5) {
		if (d->rm == 5)
			insn->disp_at = (uint8_t)(d->p - start);
		d->p += 4;
		return;
	}
	d->address |= (uint16_t)(1u << (base | (d->rex & 1) << 3));
	d->p += d->mod == 0 ? 0 : d->mod == 1 ? 1 : 4;
}

static void take_immediate(struct decoding *d, struct x86_insn *insn, const uint8_t *start)
{
	if (d->bits & Q_IMM8)
		d->p++;
	else if (d->bits & Q_IMMV && d->rex & 8)
		d->p += 8;
	else if (d->bits & (Q_IMMZ | Q_IMMV))
		d->p += d->has_66 && !(d->rex & 8) ? 2 : 4;
	else if (d->bits & (Q_REL8 | Q_REL32)) {
		insn->has_target = true;
		insn->rel_at = (uint8_t)(d->p - start);
		insn->rel_bytes = d->bits & Q_REL8 ? 1 : 4;
		if (d->bits & Q_REL8)
			insn->opcode = d->opcode;
		d->p += insn->rel_bytes;
	}
}

static int64_t signed_at(const uint8_t *p, uint8_t bytes)
{
	int32_t v;

	if (bytes == 1)
		return (int8_t)*p;
	memcpy(&v, p, 4);
	return v;
}

static void note_operands(const struct decoding *d, struct x86_effects *e)
{
	bool is_wide = operand_bytes(d) >= 4;
	uint16_t reg, rm = 0;

	if (d->bits & Q_MODRM)
		reg = register_bit(d, d->reg | (d->rex & 4) << 1, d->bits & Q_REG_BYTE);
	else
		reg = register_bit(d, (d->opcode & 7) | (d->rex & 1) << 3, d->bits & Q_REG_BYTE);
	if (d->mod == 3)
		rm = register_bit(d, d->rm | (d->rex & 1) << 3, d->bits & Q_RM_BYTE);
	e->reads = d->address | (d->bits & Q_REG_R ? reg : 0) | (d->bits & Q_RM_R ? rm : 0);
	e->writes = (d->bits & Q_REG_W ? reg : 0) | (d->bits & Q_RM_W ? rm : 0);
	e->kills = !is_wide || d->bits & Q_KEEP				    ? 0
		   : d->bits & (d->bits & Q_REG_W ? Q_REG_BYTE : Q_RM_BYTE) ? 0
									    : e->writes;
	if (d->bits & Q_ZERO && d->mod == 3 && d->reg == d->rm && !(d->rex & 4) == !(d->rex & 1))
		e->reads = 0;
}

/* Operands that are not encoded. */
static void note_implicit(const struct decoding *d, struct x86_effects *e)
{
	bool is_wide = operand_bytes(d) >= 4 && !(d->bits & Q_REG_BYTE);
	uint16_t written = (d->bits & Q_RAX_W ? 1u << X86_REG_RAX : 0) |
			   (d->bits & Q_RDX_W ? 1u << X86_REG_RDX : 0);

	if (d->bits & Q_RAX_R)
		e->reads |= 1u << X86_REG_RAX;
	e->writes |= written;
	e->kills |= is_wide ? written : 0;
	if (d->bits & Q_STACK) {
		e->reads |= 1u << X86_REG_RSP;
		e->writes |= 1u << X86_REG_RSP;
		e->kills |= 1u << X86_REG_RSP;
	}
	if (d->bits & Q_ALL) {
		*e = (struct x86_effects){.reads = X86_REGS_ALL,
			.writes = X86_REGS_ALL,
			.flags_read = X86_FLAGS_ALL,
			.flags_written = X86_FLAGS_ALL};
	}
}

static void note_effects(const struct decoding *d, struct x86_effects *e)
{
	*e = (struct x86_effects){.flags_read = d->q->flags_read,
		.flags_written = d->q->flags_written,
		.flags_killed = d->q->flags_written};
	if (d->bits & Q_NOP)
		return;
	if (d->bits & (Q_MODRM | Q_REG_R | Q_REG_W))
		note_operands(d, e);
	note_implicit(d, e);
}

/* Is there anything odd about it after all? */
static bool is_odd(const struct decoding *d, const uint8_t *start)
{
	if (d->bits & Q_MEMORY && d->mod == 3)
		return true;
	if (d->bits & Q_SHIFT && !(d->p[-1] & 31))
		return true;
	return d->bits & Q_PLAIN && (*start == 0x64 || d->has_66);
}

bool x86_quick_decode(struct x86_insn *insn, struct x86_effects *e, struct span code, uint64_t addr)
{
	struct decoding d = {.p = code.p};
	struct x86_insn i = {0};

	if (code.n < QUICK_BYTES_MIN || !take_opcode(&d))
		return false;
	if (d.bits & Q_MODRM)
		take_modrm(&d, &i, code.p);
	if (d.bits & Q_GROUP) {
		d.q = &groups[d.q->group][d.reg];
		d.bits = d.q->bits | Q_MODRM;
		if (!d.q->prefixes)
			return false;
	}
	take_immediate(&d, &i, code.p);
	if (is_odd(&d, code.p) || (d.bits & Q_NOP && d.rex && !(d.bits & Q_MODRM)))
		return false;
	i.length = (uint8_t)(d.p - code.p);
	i.flow = d.q->flow;
	i.is_nop = d.bits & Q_NOP;
	i.is_padding = i.is_nop || (i.length == 2 && !code.p[0] && !code.p[1]);
	if (i.rel_at)
		i.target = addr + i.length + (uint64_t)signed_at(code.p + i.rel_at, i.rel_bytes);
	if (i.disp_at)
		i.disp_target = addr + i.length + (uint64_t)signed_at(code.p + i.disp_at, 4);
	*insn = i;
	note_effects(&d, e);
	return true;
}
