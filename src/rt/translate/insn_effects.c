/* SPDX-License-Identifier: MIT */
/*
 * What an instruction does, as far as insn.h tells it: where control goes, which flags it reads and writes,
 * registers that its form does not show. Most instructions do nothing that matters here, so these are
 * a few switches over opcodes.
 *
 * Flags: too few are written, and too many are read, where it depends on values or on the CPU.
 */
#include "insn_reading.h"

#define FLAGS_NOT_CF  (INSN_FLAGS & ~INSN_FLAG_CF)
#define FLAGS_ROTATED (INSN_FLAG_CF | INSN_FLAG_OF)
#define FLAGS_SAHF    (INSN_FLAGS & ~INSN_FLAG_OF)
#define FLAGS_FCMOV   (INSN_FLAG_CF | INSN_FLAG_ZF | INSN_FLAG_PF)

/* The immediate of `n` bytes that ends the instruction, with its sign. */
static int64_t read_end(const struct reading *r, unsigned n)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < n; i++)
		value |= (uint32_t)r->p[r->at - n + i] << 8 * i;
	return n == 1 ? (int8_t)value : n == 2 ? (int16_t)value : (int32_t)value;
}

/* The flags that a condition, an opcode's low four bits, depends on. */
static uint16_t condition_flags(unsigned condition)
{
	switch (condition >> 1 & 7) {
	case 0:
		return INSN_FLAG_OF;
	case 1:
		return INSN_FLAG_CF;
	case 2:
		return INSN_FLAG_ZF;
	case 3:
		return INSN_FLAG_CF | INSN_FLAG_ZF;
	case 4:
		return INSN_FLAG_SF;
	case 5:
		return INSN_FLAG_PF;
	case 6:
		return INSN_FLAG_SF | INSN_FLAG_OF;
	default:
		return INSN_FLAG_SF | INSN_FLAG_OF | INSN_FLAG_ZF;
	}
}

/* A jump, branch or call by `n` bytes of distance. 66 without REX.W makes it one of 16 bits on some CPUs;
 * 67 and 66 with REX.W are what linkers fill calls up with. */
static void set_target(const struct reading *r, struct insn *insn, unsigned kind, unsigned n,
	uint64_t address)
{
	insn->kind = kind;
	if (is_16_bits(r)) {
		insn->kind = INSN_UNKNOWN;
		insn->length = 0;
	}
	insn->target = address + r->at + (uint64_t)read_end(r, n);
}

static void flags_alu(struct insn *insn, unsigned operation)
{
	insn->flags_written = INSN_FLAGS;
	if (operation == 2 || operation == 3) /* adc, sbb */
		insn->flags_read = INSN_FLAG_CF;
}

/* Shifts and rotations by `count`: -1 when it is in cl. */
static void flags_shift(const struct reading *r, struct insn *insn, int count)
{
	if (r->reg == 2 || r->reg == 3) /* rcl, rcr: by 9 or 17 they may do nothing at all */
		insn->flags_read = INSN_FLAG_CF;
	if (count < 0 || !(count & (has_w(r) ? 63 : 31)))
		return;
	if (r->reg >= 4)
		insn->flags_written = INSN_FLAGS;
	else if (r->reg < 2 || count == 1)
		insn->flags_written = FLAGS_ROTATED;
}

/* x87, by opcode from D8 on: bit n is ModRM.reg n with memory; then, by ModRM.reg, bit n is ModRM.rm n. */
static const uint8_t x87_memory[8] = {0xff, 0xfd, 0xff, 0xaf, 0xff, 0xdf, 0xff, 0xff};
static const uint8_t x87_register[8][8] = {
	{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	{0xff, 0xff, 0x01, 0xff, 0x33, 0x7f, 0xff, 0xff},
	{0xff, 0xff, 0xff, 0xff, 0x00, 0x02, 0x00, 0x00},
	{0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x00},
	{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00},
	{0xff, 0xff, 0xff, 0x02, 0xff, 0xff, 0xff, 0xff},
	{0xff, 0xff, 0xff, 0xff, 0x01, 0xff, 0xff, 0x00},
};

static void describe_x87(const struct reading *r, struct insn *insn)
{
	unsigned row = r->opcode & 7;

	if (r->mod != 3) {
		if (!(x87_memory[row] >> r->reg & 1))
			insn->kind = INSN_UNKNOWN;
		return;
	}
	if (!(x87_register[row][r->reg] >> r->rm & 1))
		insn->kind = INSN_UNKNOWN;
	if ((row == 2 || row == 3) && r->reg < 4)
		insn->flags_read = FLAGS_FCMOV;
	if ((row == 3 || row == 7) && (r->reg == 5 || r->reg == 6)) /* fcomi, fucomi */
		insn->flags_written = FLAGS_FCMOV;
	if (row == 7 && r->reg == 4) /* fnstsw ax */
		insn->registers |= RAX;
}

static void describe_string(const struct reading *r, struct insn *insn)
{
	insn->is_string_repeated = r->repeat != 0;
	if ((r->opcode & 0xfe) == 0xa6 || (r->opcode & 0xfe) == 0xae) { /* cmps, scas: not if rcx is 0 */
		insn->flags_written = r->repeat ? 0 : INSN_FLAGS;
		insn->flags_read = r->repeat ? INSN_FLAG_ZF : 0;
	}
	if ((r->opcode & 0xfc) == 0x6c)
		insn->kind = INSN_STOP;
}

/* 80 .. 8f: operations with an immediate, test, xchg, mov, lea, pop */
static void describe_80(const struct reading *r, struct insn *insn)
{
	switch (r->opcode) {
	case 0x80:
	case 0x81:
	case 0x83:
		flags_alu(insn, r->reg);
		return;
	case 0x84:
	case 0x85:
		insn->flags_written = INSN_FLAGS;
		return;
	case 0x8c:
	case 0x8e:
		insn->reads_segment_base = r->reg == 5;
		if (r->reg > 5 || (r->opcode == 0x8e && r->reg == 1))
			insn->kind = INSN_UNKNOWN;
		return;
	case 0x8d:
		if (r->mod == 3)
			insn->kind = INSN_UNKNOWN;
		return;
	case 0x8f:
		if (r->reg)
			insn->kind = INSN_UNKNOWN;
		return;
	}
}

/* 90 .. 9f: nop, xchg, cwde, cdq, fwait, pushf, popf, sahf, lahf */
static void describe_90(const struct reading *r, struct insn *insn)
{
	switch (r->opcode) {
	case 0x90:
		insn->is_nop = r->repeat != 0xf3 && !(r->rex & 1);
		return;
	case 0x9c:
		insn->flags_read = INSN_FLAGS;
		return;
	case 0x9d:
		insn->flags_written = INSN_FLAGS;
		return;
	case 0x9e:
		insn->flags_written = FLAGS_SAHF;
		return;
	case 0x9f:
		insn->flags_read = FLAGS_SAHF;
		return;
	}
}

static void describe_int(struct insn *insn, uint32_t number)
{
	insn->kind = INSN_INT;
	insn->imm = number;
	insn->flags_read = INSN_FLAGS;
	insn->registers = R_ALL;
}

static void describe_return(const struct reading *r, struct insn *insn)
{
	insn->kind = is_16_bits(r) ? INSN_UNKNOWN : INSN_RETURN;
	if (r->opcode == 0xc2)
		insn->imm = (uint16_t)read_end(r, 2);
}

/* c6, c7: mov with an immediate, xabort, xbegin */
static void describe_mov(const struct reading *r, struct insn *insn, uint64_t address)
{
	bool is_transaction = r->reg == 7 && r->mod == 3 && !r->rm;

	if (r->reg && !is_transaction)
		insn->kind = INSN_UNKNOWN;
	if (!is_transaction)
		return;
	insn->registers |= RAX;
	if (r->opcode == 0xc7)
		set_target(r, insn, INSN_XBEGIN, is_16_bits(r) ? 2 : 4, address);
}

static void describe_c0(const struct reading *r, struct insn *insn, uint64_t address)
{
	switch (r->opcode) {
	case 0xc0:
	case 0xc1:
		flags_shift(r, insn, (uint8_t)read_end(r, 1));
		return;
	case 0xc2:
	case 0xc3:
		describe_return(r, insn);
		return;
	case 0xc6:
	case 0xc7:
		describe_mov(r, insn, address);
		return;
	case 0xc8:
	case 0xc9: /* enter, leave */
		insn->registers |= RBP;
		return;
	case 0xcc:
		describe_int(insn, 3);
		return;
	case 0xcd:
		describe_int(insn, (uint8_t)read_end(r, 1));
		return;
	case 0xd0:
	case 0xd1:
		flags_shift(r, insn, 1);
		return;
	case 0xd2:
	case 0xd3:
		flags_shift(r, insn, -1);
		return;
	case 0xd7: /* xlat */
		insn->registers |= RBX;
		return;
	default:
		insn->kind = r->opcode < 0xd8 ? INSN_UNKNOWN : INSN_PLAIN; /* far returns, iret */
		if (r->opcode >= 0xd8)
			describe_x87(r, insn);
	}
}

/* f6, f7: test, not, neg, mul, imul, div, idiv */
static void describe_f6(const struct reading *r, struct insn *insn)
{
	if (r->reg != 2)
		insn->flags_written = INSN_FLAGS;
}

/* fe, ff: inc, dec, call, jmp, push */
static void describe_fe(const struct reading *r, struct insn *insn)
{
	if (r->reg < 2)
		insn->flags_written = FLAGS_NOT_CF;
	else if (r->opcode == 0xfe)
		insn->kind = INSN_UNKNOWN;
	else if (r->reg == 2 || r->reg == 4)
		insn->kind = is_16_bits(r)   ? INSN_UNKNOWN
			     : r->reg == 2 ? INSN_CALL_INDIRECT
					   : INSN_JUMP_INDIRECT;
	else if (r->reg != 6)
		insn->kind = INSN_UNKNOWN;
}

static void describe_f0(const struct reading *r, struct insn *insn)
{
	switch (r->opcode) {
	case 0xf1:
		describe_int(insn, 1);
		return;
	case 0xf4:
	case 0xfa:
	case 0xfb: /* hlt, cli, sti */
		insn->kind = INSN_STOP;
		return;
	case 0xf5: /* cmc */
		insn->flags_read = insn->flags_written = INSN_FLAG_CF;
		return;
	case 0xf8:
	case 0xf9: /* clc, stc */
		insn->flags_written = INSN_FLAG_CF;
		return;
	case 0xf6:
	case 0xf7:
		describe_f6(r, insn);
		return;
	case 0xfe:
	case 0xff:
		describe_fe(r, insn);
		return;
	}
}

static void describe_e0(const struct reading *r, struct insn *insn, uint64_t address)
{
	switch (r->opcode) {
	case 0xe0:
	case 0xe1: /* loopne, loope */
		insn->flags_read = INSN_FLAG_ZF;
		/* fall through */
	case 0xe2:
	case 0xe3:
		insn->condition = r->opcode;
		set_target(r, insn, INSN_COUNTED, 1, address);
		return;
	case 0xe8:
		set_target(r, insn, INSN_CALL, is_16_bits(r) ? 2 : 4, address);
		return;
	case 0xe9:
		set_target(r, insn, INSN_JUMP, is_16_bits(r) ? 2 : 4, address);
		return;
	case 0xeb:
		set_target(r, insn, INSN_JUMP, 1, address);
		return;
	default: /* in, out */
		insn->kind = INSN_STOP;
	}
}

static void describe_branch(
	const struct reading *r, struct insn *insn, unsigned n, uint64_t address)
{
	insn->condition = r->opcode & 15;
	insn->flags_read = condition_flags(r->opcode);
	set_target(r, insn, INSN_BRANCH, n, address);
}

static void describe_one_byte(const struct reading *r, struct insn *insn, uint64_t address)
{
	switch (r->opcode >> 4) {
	case 0x0:
	case 0x1:
	case 0x2:
	case 0x3:
		flags_alu(insn, r->opcode >> 3);
		return;
	case 0x6:
		if ((r->opcode & 0xfd) == 0x69) /* imul */
			insn->flags_written = INSN_FLAGS;
		if (r->opcode >= 0x6c)
			describe_string(r, insn);
		return;
	case 0x7:
		describe_branch(r, insn, 1, address);
		return;
	case 0x8:
		describe_80(r, insn);
		return;
	case 0x9:
		describe_90(r, insn);
		return;
	case 0xa:
		if ((r->opcode & 0xfe) == 0xa8) /* test */
			insn->flags_written = INSN_FLAGS;
		else if (r->opcode >= 0xa4)
			describe_string(r, insn);
		return;
	case 0xc:
	case 0xd:
		describe_c0(r, insn, address);
		return;
	case 0xe:
		describe_e0(r, insn, address);
		return;
	case 0xf:
		describe_f0(r, insn);
		return;
	}
}

/* 0F 01 with a register: ModRM as a whole is the opcode. */
static unsigned kind_0f01(const struct reading *r, struct insn *insn)
{
	unsigned modrm = 0xc0u | r->reg << 3 | r->rm;

	insn->registers |= RAX | RCX | RDX | RBX;
	if (modrm >= 0xe0 && modrm <= 0xe7) /* smsw */
		return INSN_PLAIN;
	if (modrm >= 0xf0 && modrm <= 0xf7) /* lmsw */
		return INSN_STOP;
	if (r->prefix == 3 && (modrm == 0xe8 || modrm == 0xe9)) /* xsusldtrk, xresldtrk */
		return INSN_PLAIN;
	if (r->prefix && (modrm < 0xf8 || modrm == 0xfa || modrm == 0xfb))
		return INSN_UNKNOWN;
	switch (modrm) {
	case 0xf8: /* swapgs */
		insn->reads_segment_base = true;
		/* fall through */
	case 0xc8:
	case 0xc9:
	case 0xca:
	case 0xcb:
	case 0xd1: /* monitor, mwait, clac, stac, xsetbv */
		return INSN_STOP;
	case 0xd6: /* xtest */
		insn->flags_written = INSN_FLAGS;
		/* fall through */
	case 0xd0:
	case 0xd5:
	case 0xe8:
	case 0xee:
	case 0xef: /* xgetbv, xend, serialize, rdpkru, wrpkru */
	case 0xf9:
	case 0xfa:
	case 0xfb:
	case 0xfc:
	case 0xfd: /* rdtscp, monitorx, mwaitx, clzero, rdpru */
		return INSN_PLAIN;
	}
	return INSN_UNKNOWN;
}

/* 0F 00 and 0F 01: descriptor tables, and what fitted nowhere else */
static void describe_system(const struct reading *r, struct insn *insn)
{
	if (r->opcode == 0x00) {
		insn->kind = r->reg == 2 || r->reg == 3 ? INSN_STOP /* lldt, ltr */
			     : r->reg < 6		  ? INSN_PLAIN
							  : INSN_UNKNOWN;
		if (r->reg == 4 || r->reg == 5) /* verr, verw */
			insn->flags_written = INSN_FLAG_ZF;
		return;
	}
	if (r->mod == 3)
		insn->kind = kind_0f01(r, insn);
	else if (r->reg == 5) /* rstorssp */
		insn->kind = r->prefix == 2 ? INSN_PLAIN : INSN_UNKNOWN;
	else if (r->reg != 0 && r->reg != 1 && r->reg != 4) /* sgdt, sidt, smsw */
		insn->kind = INSN_STOP;
}

/* 0F AE: state of the FPU and more, fences, fs and gs */
static void describe_0fae(const struct reading *r, struct insn *insn)
{
	/* By prefix: bit n is ModRM.reg n, with memory and with a register. */
	static const uint8_t memory[4] = {0xff, 0xc0, 0x10, 0x00}, registers[4] = {0xe0, 0x40, 0x7f, 0x40};

	if (!((r->mod == 3 ? registers : memory)[r->prefix] >> r->reg & 1))
		insn->kind = INSN_UNKNOWN;
	insn->reads_segment_base = r->mod == 3 && r->prefix == 2 && (r->reg & 5) == 1;
}

/* 0F C7: cmpxchg8b, xsavec, rdrand, rdseed, rdpid */
static void describe_0fc7(const struct reading *r, struct insn *insn)
{
	insn->registers |= RBX;
	insn->kind = INSN_UNKNOWN;
	if (r->mod != 3 && r->reg == 1) {
		insn->kind = INSN_PLAIN;
		insn->flags_written = INSN_FLAG_ZF;
	} else if (r->mod != 3 && r->reg == 4) {
		insn->kind = r->prefix ? INSN_UNKNOWN : INSN_PLAIN;
	} else if (r->mod != 3 && (r->reg == 3 || r->reg == 5)) { /* xrstors, xsaves */
		insn->kind = r->prefix ? INSN_UNKNOWN : INSN_STOP;
	} else if (r->mod == 3 && r->reg >= 6 && r->prefix < 2) {
		insn->kind = INSN_PLAIN;
		insn->flags_written = INSN_FLAGS;
	} else if (r->mod == 3 && r->reg == 7 && r->prefix == 2) {
		insn->kind = INSN_PLAIN;
	}
}

/* 71, 72, 73 of 0F and VEX: shifts of vectors by an immediate */
static bool is_vector_shift(const struct reading *r)
{
	if (r->mod != 3)
		return false;
	if (r->opcode != 0x73)
		return r->reg == 2 || r->reg == 4 || r->reg == 6;
	return r->reg == 2 || r->reg == 6 || (r->prefix == 1 && (r->reg & 3) == 3);
}

/* 0d and 18 .. 1f: nops, some of which have become something else */
static bool is_nop(const struct reading *r)
{
	switch (r->opcode) {
	case 0x0d: /* prefetches with memory */
		return r->mod == 3;
	case 0x18: /* below 4, too */
		return r->mod == 3 || r->reg >= 4;
	case 0x1a:
	case 0x1b: /* MPX with memory or a prefix, but bndmk has memory only */
		return r->mod == 3 && (!r->prefix || (r->prefix == 2 && r->opcode == 0x1b));
	case 0x1c: /* cldemote */
		return r->mod == 3 || r->reg || r->prefix;
	case 0x1e: /* rdssp, a nop only while there is no shadow stack */
		return !(r->prefix == 2 && r->mod == 3 && r->reg == 1);
	}
	return true;
}

static void describe_0f_low(const struct reading *r, struct insn *insn)
{
	if (r->opcode == 0x0d || (r->opcode & 0xf8) == 0x18)
		insn->is_nop = is_nop(r);
	switch (r->opcode) {
	case 0x00:
	case 0x01:
		describe_system(r, insn);
		return;
	case 0x02:
	case 0x03: /* lar, lsl */
		insn->flags_written = INSN_FLAG_ZF;
		return;
	case 0x05:
		insn->kind = INSN_SYSCALL;
		insn->registers = R_ALL;
		insn->flags_read = INSN_FLAGS;
		return;
	case 0x06:
	case 0x08:
	case 0x09:
	case 0x0b:
	case 0x20:
	case 0x21:
	case 0x22:
	case 0x23:
	case 0x30:
	case 0x32: /* clts, invd, wbinvd, ud2, mov cr, mov dr, wrmsr, rdmsr */
		insn->kind = INSN_STOP;
		return;
	case 0x07:
	case 0x0e:
	case 0x34:
	case 0x35: /* sysret, femms, sysenter, sysexit */
		insn->kind = INSN_UNKNOWN;
		return;
	case 0x2e:
	case 0x2f: /* ucomis, comis */
		insn->flags_written = INSN_FLAGS;
		return;
	case 0x71:
	case 0x72:
	case 0x73:
		if (!is_vector_shift(r))
			insn->kind = INSN_UNKNOWN;
		return;
	}
}

static void describe_0f_high(const struct reading *r, struct insn *insn)
{
	switch (r->opcode) {
	case 0xa2: /* cpuid */
		insn->registers |= RBX;
		return;
	case 0xa3:
	case 0xab:
	case 0xb3:
	case 0xbb: /* bt, bts, btr, btc */
		insn->flags_written = INSN_FLAG_CF;
		return;
	case 0xa4:
	case 0xac: /* shld, shrd */
		if (read_end(r, 1) & (has_w(r) ? 63 : 31))
			insn->flags_written = INSN_FLAGS;
		return;
	case 0xa8:
	case 0xa9:
	case 0xb5: /* push gs, pop gs, lgs */
		insn->reads_segment_base = true;
		return;
	case 0xaa: /* rsm */
		insn->kind = INSN_UNKNOWN;
		return;
	case 0xae:
		describe_0fae(r, insn);
		return;
	case 0xaf:
	case 0xb0:
	case 0xb1:
	case 0xb8:
	case 0xc0:
	case 0xc1: /* imul, cmpxchg, popcnt, xadd */
		insn->flags_written = INSN_FLAGS;
		return;
	case 0xb9:
	case 0xff: /* ud1, ud0 */
		insn->kind = INSN_STOP;
		return;
	case 0xba:
		if (r->reg < 4)
			insn->kind = INSN_UNKNOWN;
		insn->flags_written = INSN_FLAG_CF;
		return;
	case 0xbc:
	case 0xbd: /* tzcnt, lzcnt; bsf, bsr */
		insn->flags_written = r->prefix == 2 ? INSN_FLAGS : INSN_FLAG_ZF;
		return;
	case 0xc7:
		describe_0fc7(r, insn);
		return;
	case 0xf7: /* maskmovq */
		insn->registers |= RDI;
		return;
	}
}

/* Those that are for memory only, and for registers only. */
static bool is_operand_refused(const struct reading *r)
{
	switch (r->opcode) {
	case 0x12:
	case 0x16:
		return r->mod == 3 && r->prefix == 1;
	case 0x13:
	case 0x17:
	case 0x2b:
	case 0xb2:
	case 0xb4:
	case 0xb5:
	case 0xc3:
	case 0xe7:
	case 0xf0:
		return r->mod == 3;
	case 0xd6:
		return r->mod != 3 && r->prefix > 1;
	case 0x50:
	case 0x78:
	case 0x79:
	case 0xc5:
	case 0xd7:
	case 0xf7:
		return r->mod != 3;
	}
	return false;
}

static void describe_0f(const struct reading *r, struct insn *insn, uint64_t address)
{
	if (is_operand_refused(r))
		insn->kind = INSN_UNKNOWN;
	switch (r->opcode >> 4) {
	case 0x4:
	case 0x9: /* cmovcc, setcc */
		insn->flags_read = condition_flags(r->opcode);
		return;
	case 0x8:
		describe_branch(r, insn, is_16_bits(r) ? 2 : 4, address);
		return;
	default:
		if (r->opcode < 0x80)
			describe_0f_low(r, insn);
		else
			describe_0f_high(r, insn);
	}
}

static void describe_0f38(const struct reading *r, struct insn *insn)
{
	switch (r->opcode) {
	case 0x17: /* ptest */
		insn->flags_written = INSN_FLAGS;
		return;
	case 0x82:
	case 0xf5: /* invpcid, wruss */
		insn->kind = INSN_STOP;
		return;
	case 0xf6: /* adcx, adox, wrss */
		if (r->prefix)
			insn->flags_read = insn->flags_written =
				r->prefix == 1 ? INSN_FLAG_CF : INSN_FLAG_OF;
		return;
	case 0xf8: /* enqcmds */
		if (r->prefix == 2)
			insn->kind = INSN_STOP;
		return;
	}
}

static void describe_vex1(const struct reading *r, struct insn *insn)
{
	switch (r->opcode) {
	case 0x2e:
	case 0x2f:
	case 0x98:
	case 0x99: /* vucomis, vcomis, kortest, ktest */
		insn->flags_written = INSN_FLAGS;
		return;
	case 0x71:
	case 0x72:
	case 0x73:
		if (!is_vector_shift(r))
			insn->kind = INSN_UNKNOWN;
		return;
	case 0xae: /* vldmxcsr, vstmxcsr */
		if (r->mod == 3 || (r->reg & 6) != 2)
			insn->kind = INSN_UNKNOWN;
		return;
	case 0xf7: /* vmaskmovdqu */
		insn->registers |= RDI;
		return;
	}
}

static void describe_vex2(const struct reading *r, struct insn *insn)
{
	switch (r->opcode) {
	case 0x0e:
	case 0x0f:
	case 0x17:
	case 0xf2: /* vtestps, vtestpd, vptest, andn */
		insn->flags_written = INSN_FLAGS;
		return;
	case 0xf3: /* blsr, blsmsk, blsi */
		insn->flags_written = INSN_FLAGS;
		if (!r->reg || r->reg > 3)
			insn->kind = INSN_UNKNOWN;
		return;
	case 0xf5:
	case 0xf7: /* bzhi, bextr; pdep, pext, shlx, sarx, shrx write none */
		if (!r->prefix)
			insn->flags_written = INSN_FLAGS;
		return;
	case 0xf6: /* mulx */
		insn->registers |= RDX;
		return;
	default:
		if ((r->opcode & 0xf0) == 0xe0) /* cmpccxadd */
			insn->flags_written = INSN_FLAGS;
	}
}

static void describe_evex(const struct reading *r, struct insn *insn)
{
	if ((r->map == MAP_EVEX1 || r->map == MAP_EVEX5) && (r->opcode & 0xfe) == 0x2e)
		insn->flags_written = INSN_FLAGS; /* vucomis, vcomis */
}

/* Bits of general registers, by ModRM.reg, and lightweight profiling */
static void describe_xop(const struct reading *r, struct insn *insn)
{
	if (r->map == MAP_XOP9 && r->opcode <= 0x02) {
		insn->flags_written = INSN_FLAGS;
		if (!((r->opcode == 1 ? 0xfe : 0x42) >> r->reg & 1))
			insn->kind = INSN_UNKNOWN;
	} else if (r->map == MAP_XOPA && r->opcode == 0x10) { /* bextr */
		insn->flags_written = INSN_FLAGS;
	} else if (r->map == MAP_XOP8 ? false : r->opcode == 0x12) {
		if (r->reg > 1 || (r->map == MAP_XOP9 && r->mod != 3))
			insn->kind = INSN_UNKNOWN;
	}
}

void insn_describe(const struct reading *r, struct insn *insn, uint64_t address)
{
	switch (r->map) {
	case MAP_ONE_BYTE:
		describe_one_byte(r, insn, address);
		return;
	case MAP_0F:
		describe_0f(r, insn, address);
		return;
	case MAP_0F38:
		describe_0f38(r, insn);
		return;
	case MAP_VEX1:
		describe_vex1(r, insn);
		return;
	case MAP_VEX2:
		describe_vex2(r, insn);
		return;
	case MAP_0F3A:
	case MAP_VEX3:
		if (r->opcode >= 0x60 && r->opcode <= 0x63) { /* pcmpestrm, .. */
			insn->flags_written = INSN_FLAGS;
			insn->registers |= RAX | RCX | RDX;
		}
		return;
	case MAP_XOP8:
	case MAP_XOP9:
	case MAP_XOPA:
		describe_xop(r, insn);
		return;
	default:
		describe_evex(r, insn);
	}
}

