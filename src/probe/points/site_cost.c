/* SPDX-License-Identifier: MIT */
/*
 * The kernel looks at prefixes and at one opcode byte. Two of its habits decide many cases:
 *	1. The byte 0x0f counts as good, so its table of two-byte opcodes is never asked: syscall
 *	   and lfence are taken.
 *	2. Behind VEX and EVEX prefixes the byte that is looked up is the opcode itself, in the
 *	   table of one-byte opcodes: vpxor (ef) and vmovdqa (6f) are refused because in and outs
 *	   would be. Others it takes for what they are not: vpbroadcastb (7a) would be emulated as jp,
 *	   vzeroupper (77) as ja, vcmpps (c2) would be stepped as ret. Such a probe breaks the
 *	   program.
 */
#include "probe/points/site_cost.h"

#include <string.h>

#include "arch/x86_code.h"

#define PAGE_BYTES	4096
#define NOP_BYTES_MAX	8 /* longer ones are single-stepped */
#define NOP5_BYTES	5
#define PROLOGUE_INSNS	16 /* instructions looked at for a cheaper site */
#define MODRM_IS_REG(b) (((b)&0xc0) == 0xc0)
#define MODRM_REG(b)	(((b) >> 3) & 7)
#define REG_SP		4u
#define REG_BP		5u
/* Registers of arguments, by their numbers in encodings: rdi rsi rdx rcx r8 r9. */
#define ARGUMENTS_64 (1u << 7 | 1u << 6 | 1u << 2 | 1u << 1 | 1u << 8 | 1u << 9)
#define KEPT_64	     (ARGUMENTS_64 | 1u << REG_SP | 1u << REG_BP)
#define KEPT_32	     (1u << REG_SP | 1u << REG_BP)

/* Where the parts of an instruction are, as the kernel's decoder tells them. */
struct parts {
	bool has_bad_prefix; /* es cs ss ds lock */
	bool has_lock;
	bool has_66, has_rep;
	bool is_vex, is_endbr;
	uint8_t rex;
	uint8_t opcode[3];
	uint8_t n_opcode;
	uint8_t modrm;
	bool has_modrm;
	uint8_t length;
};

/* A set bit: the opcode byte may be single-stepped. Rows of 16 opcodes, lowest first. */
static const uint16_t good_32[16] = {0xff7f, 0x7f7f, 0xffff, 0xffff, 0xffff, 0xffff, 0x0fff, 0xffff,
	0xffff, 0xffff, 0xffff, 0xffff, 0x0fff, 0xffff, 0x0f0f, 0xf3ed};
static const uint16_t good_64[16] = {0xbf3f, 0x3f3f, 0x7f7f, 0x7f7f, 0xffff, 0xffff, 0x0ff8, 0xffff,
	0xfffb, 0xfbff, 0xffff, 0xffff, 0x0fff, 0xff8f, 0x0b0f, 0xf3ed};

static bool is_good(enum mode mode, uint8_t opcode)
{
	const uint16_t *rows = mode == MODE_64 ? good_64 : good_32;

	return rows[opcode >> 4] >> (opcode & 15) & 1;
}

static bool take_prefix(struct parts *p, uint8_t b)
{
	switch (b) {
	case 0xf0:
		p->has_lock = true;
		return true;
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
		p->has_bad_prefix = true;
		return true;
	case 0x66:
		p->has_66 = true;
		return true;
	case 0xf2:
	case 0xf3:
		p->has_rep = true;
		return true;
	case 0x64:
	case 0x65:
	case 0x67:
		return true;
	default:
		return false;
	}
}

/* c4 c5 62; in 32-bit code only when what would be ModRM has two set bits on top. */
static size_t vex_bytes(const uint8_t *b, size_t left, enum mode mode)
{
	if (left < 2 || (mode == MODE_32 && !MODRM_IS_REG(b[1])))
		return 0;
	return b[0] == 0xc5 ? 2 : b[0] == 0xc4 ? 3 : b[0] == 0x62 ? 4 : 0;
}

static bool take_parts(struct parts *p, struct span code, enum mode mode)
{
	struct x86_insn insn;
	size_t i = 0, n;

	*p = (struct parts){0};
	if (!x86_decode(&insn, code, 0, mode == MODE_64))
		return false;
	n = insn.length;
	p->length = insn.length;
	p->is_endbr = insn.is_endbr;
	while (i < n && take_prefix(p, code.p[i]))
		i++;
	if (mode == MODE_64 && i < n && (code.p[i] & 0xf0) == 0x40)
		p->rex = code.p[i++];
	if (i < n && vex_bytes(code.p + i, n - i, mode)) {
		p->is_vex = true;
		i += vex_bytes(code.p + i, n - i, mode);
	}
	while (i < n && p->n_opcode < 3) {
		uint8_t b = code.p[i++];

		p->opcode[p->n_opcode++] = b;
		if (p->is_vex || (p->n_opcode == 1 && b != 0x0f) ||
			(p->n_opcode == 2 && b != 0x38 && b != 0x3a))
			break;
	}
	if (insn.modrm_at && insn.modrm_at < n) {
		p->has_modrm = true;
		p->modrm = code.p[insn.modrm_at];
	}
	return p->n_opcode > 0;
}

/* Any nop: 90 (pause, f3 90, counts as one for the kernel), 0f 1f /0. endbr is none. */
static bool is_nop(const struct parts *p)
{
	if (p->is_vex)
		return false;
	return (p->n_opcode == 1 && p->opcode[0] == 0x90) ||
	       (p->n_opcode == 2 && p->opcode[1] == 0x1f && p->has_modrm &&
		       MODRM_REG(p->modrm) == 0);
}

/* 90 behind any prefix, else only the spellings that the kernel itself would use. */
static bool is_emulated_nop(const struct parts *p, struct span code)
{
	static const struct {
		uint8_t n, bytes[NOP_BYTES_MAX];
	} nops[] = {
		{3, {0x0f, 0x1f, 0x00}},
		{4, {0x0f, 0x1f, 0x40}},
		{NOP5_BYTES, {0x0f, 0x1f, 0x44}},
		{6, {0x66, 0x0f, 0x1f, 0x44}},
		{7, {0x0f, 0x1f, 0x80}},
		{NOP_BYTES_MAX, {0x0f, 0x1f, 0x84}},
	};

	if (!is_nop(p) || p->n_opcode == 1)
		return is_nop(p);
	for (size_t i = 0; i < sizeof(nops) / sizeof(nops[0]); i++)
		if (p->length == nops[i].n && memcmp(code.p, nops[i].bytes, nops[i].n) == 0)
			return true;
	return false;
}

static bool is_branch(const struct parts *p)
{
	uint8_t a = p->opcode[0];

	if (p->is_vex)
		return false;
	if (p->n_opcode == 2)
		return (p->opcode[1] & 0xf0) == 0x80;
	return p->n_opcode == 1 && (a == 0xeb || a == 0xe9 || a == 0xe8 || (a & 0xf0) == 0x70);
}

/* push of a register: one byte, or two with the REX prefix of r8 to r15. */
static bool is_push(const struct parts *p)
{
	if (p->is_vex || p->n_opcode != 1 || (p->opcode[0] & 0xf8) != 0x50)
		return false;
	return p->length == 1 || (p->length == 2 && p->rex == 0x41);
}

static bool is_nop5(struct span code, struct foff offset)
{
	static const uint8_t nop5[NOP5_BYTES] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

	return code.n >= NOP5_BYTES && memcmp(code.p, nop5, NOP5_BYTES) == 0 &&
	       PAGE_BYTES - offset.v % PAGE_BYTES >= NOP5_BYTES;
}

/* Opcodes of one byte that the kernel emulates, or does not step as others: push, jumps, calls,
 * nop, returns, popf. */
static bool is_handled_specially(uint8_t opcode)
{
	switch (opcode) {
	case 0x50 ... 0x57:
	case 0x70 ... 0x7f:
	case 0x90:
	case 0x9a:
	case 0x9d:
	case 0xc2:
	case 0xc3:
	case 0xca:
	case 0xcb:
	case 0xe8 ... 0xeb:
	case 0xff:
		return true;
	default:
		return false;
	}
}

static const char *refusal(const struct parts *p, enum mode mode)
{
	uint8_t first = p->opcode[0];

	if (p->has_lock)
		return "lock prefix: the kernel refuses it";
	if (p->has_bad_prefix)
		return "segment prefix (or notrack): the kernel refuses it";
	if (first == 0xcc && !p->is_vex)
		return "int3: a breakpoint is there already";
	if (!is_good(mode, first))
		return p->is_vex ? "this vector instruction is one that the kernel refuses"
				 : "system instruction: the kernel refuses it";
	if (p->is_vex && is_handled_specially(first))
		return "the kernel takes this vector instruction for another one, which would "
		       "break the program";
	if (!p->is_vex && first == 0x8e && MODRM_REG(p->modrm) == 2)
		return "it loads the stack segment: the kernel refuses it";
	if (!is_nop(p) && is_branch(p) && p->has_66)
		return "jump with a 16-bit prefix: the kernel refuses it";
	return NULL;
}

enum site_cost site_cost(struct span code, struct foff offset, enum mode mode, const char **why)
{
	struct parts p;

	*why = NULL;
	if (!take_parts(&p, code, mode)) {
		*why = "there is no instruction";
		return SITE_UNKNOWN;
	}
	*why = refusal(&p, mode);
	if (*why)
		return SITE_UNKNOWN;
	if (mode == MODE_64 && is_nop5(code, offset))
		return SITE_NOP5;
	if (is_emulated_nop(&p, code) || is_branch(&p) || is_push(&p))
		return SITE_EMULATED;
	return SITE_SINGLE_STEPPED;
}

/* The register that a simple instruction changes, 16 for none, and false when it may change
 * memory, several registers or the way of control. */
static bool changed_register(const struct parts *p, unsigned *reg)
{
	uint8_t a = p->opcode[0];
	unsigned r = MODRM_REG(p->modrm) | (p->rex & 4 ? 8 : 0);
	unsigned m = (p->modrm & 7) | (p->rex & 1 ? 8 : 0);

	*reg = 16;
	if (p->is_vex || p->n_opcode > 2)
		return false;
	if (p->n_opcode == 2) { /* movzx, movsx */
		*reg = r;
		return p->opcode[1] == 0xb6 || p->opcode[1] == 0xb7 || p->opcode[1] == 0xbe ||
		       p->opcode[1] == 0xbf;
	}
	switch (a) {
	case 0x38 ... 0x3d: /* cmp */
	case 0x84: /* test */
	case 0x85:
	case 0xa8:
	case 0xa9:
		return true;
	case 0x80: /* cmp, of group 1 */
	case 0x81:
	case 0x83:
		return MODRM_REG(p->modrm) == 7;
	case 0xf6: /* test, of group 3 */
	case 0xf7:
		return MODRM_REG(p->modrm) == 0;
	case 0x8b: /* mov from register or memory */
	case 0x8d: /* lea */
	case 0x63: /* movslq; in 32-bit code arpl, which writes what r names last */
		*reg = r;
		return a != 0x63 || p->rex;
	case 0x89: /* mov, xor to a register */
	case 0x31:
	case 0xc7:
		*reg = m;
		return MODRM_IS_REG(p->modrm);
	case 0x33:
		*reg = r;
		return true;
	default:
		*reg = (a & 7u) | (p->rex & 1 ? 8 : 0);
		return a >= 0xb8 && a <= 0xbf; /* mov of a constant */
	}
}

/* Does nothing that a probe behind it could notice. */
static bool leaves_arguments(const struct parts *p, enum mode mode)
{
	unsigned reg;

	if (is_nop(p) || p->is_endbr)
		return true;
	if (p->has_rep || p->has_lock || !changed_register(p, &reg))
		return false;
	return reg == 16 || !((mode == MODE_64 ? KEPT_64 : KEPT_32) >> reg & 1);
}

/* A jump to (0, into] would make a probe there fire again within one call. */
static bool has_jump_to(struct span function, uint32_t into, enum mode mode)
{
	struct x86_insn insn;
	uint64_t at = 0;

	while (at < function.n) {
		struct span rest = span_sub(function, at, function.n - at);

		if (!x86_decode(&insn, rest, at, mode == MODE_64))
			return true; /* data among the code: nothing can be said */
		if (insn.has_target && insn.flow != X86_FLOW_CALL && insn.target > 0 &&
			insn.target <= into)
			return true;
		at += insn.length;
	}
	return false;
}

uint32_t site_cheaper(struct span function, struct foff offset, enum mode mode)
{
	uint32_t at = 0;

	if (function.n > SITE_CHEAPER_SCAN_MAX)
		return 0;
	for (int i = 0; i < PROLOGUE_INSNS && at < function.n; i++) {
		struct span rest = span_sub(function, at, function.n - at);
		enum site_cost cost;
		struct parts p;
		const char *why;

		cost = site_cost(rest, (struct foff){offset.v + at}, mode, &why);
		if (at && (cost == SITE_EMULATED || cost == SITE_NOP5))
			return has_jump_to(function, at, mode) ? 0 : at;
		if (!take_parts(&p, rest, mode) || !leaves_arguments(&p, mode))
			return 0;
		at += p.length;
	}
	return 0;
}

bool site_is_boundary(struct span function, uint64_t into, enum mode mode)
{
	struct x86_insn insn;
	uint64_t at = 0;

	while (at < into) {
		if (!x86_decode(
			    &insn, span_sub(function, at, function.n - at), at, mode == MODE_64))
			return false;
		at += insn.length;
	}
	return at == into;
}
