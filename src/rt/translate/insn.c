/* SPDX-License-Identifier: MIT */
/*
 * The decoder of insn.h: the shape of an instruction, which is prefixes, opcode, ModRM, displacement and
 * immediate. The tables tell it (insn_tables.h); insn_effects.c tells what the instruction does.
 *
 * 1. Every byte is read through read_byte, which knows where the code ends; what is only skipped is
 *    checked against it.
 * 2. An opcode with prefixes that the tables do not have is INSN_UNKNOWN. What a CPU refuses for another
 *    reason (a register instead of memory, VEX.vvvv that is not all ones) may be INSN_PLAIN: copied, it
 *    faults as it does at its own place.
 * 3. General registers: too many is right, one missing is not. Instructions with VEX, EVEX, XOP and
 *    those behind 0F38 and 0F3A use those of ModRM.reg, ModRM.rm and vvvv, even if these are vectors.
 */
#include "insn_reading.h"

#include "insn_tables.h"

static bool read_byte(struct reading *r, uint8_t *byte)
{
	if (r->at >= r->n)
		return false;
	*byte = r->p[r->at++];
	return true;
}

/* Leaves `opcode` at the first byte that is none. REX counts right in front of the opcode only. */
static bool read_prefixes(struct reading *r)
{
	while (read_byte(r, &r->opcode)) {
		if ((r->opcode & 0xf0) == 0x40) {
			r->rex = r->opcode & 15;
			r->has_rex = true;
			continue;
		}
		switch (r->opcode) {
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
			break;
		case 0x64:
		case 0x65:
			r->segment = r->opcode;
			break;
		case 0x66:
			r->has_66 = true;
			break;
		case 0x67:
			r->has_67 = true;
			break;
		case 0xf0:
			r->has_lock = true;
			break;
		case 0xf2:
		case 0xf3:
			r->repeat = r->opcode;
			break;
		default:
			return true;
		}
		r->rex = 0;
		r->has_rex = false;
	}
	return false;
}

static bool read_escape(struct reading *r)
{
	r->map = MAP_0F;
	if (!read_byte(r, &r->opcode))
		return false;
	if (r->opcode == 0x38 || r->opcode == 0x3a) {
		r->map = r->opcode == 0x38 ? MAP_0F38 : MAP_0F3A;
		if (!read_byte(r, &r->opcode))
			return false;
	}
	r->prefix = r->repeat == 0xf3 ? 2 : r->repeat == 0xf2 ? 3 : r->has_66;
	return true;
}

/* VEX of two bytes: R vvvv L pp; of three, XOP and EVEX: R X B mmmmm, W vvvv L pp, then of EVEX one
 * byte more. R, X, B and vvvv are inverted. */
static bool read_vex(struct reading *r)
{
	uint8_t kind = r->opcode, first, second, third, map;

	if (r->has_66 || r->repeat || r->has_lock || r->has_rex || !read_byte(r, &first))
		return false;
	second = first;
	if (kind != 0xc5 && !read_byte(r, &second))
		return false;
	r->prefix = second & 3;
	r->vvvv = ~second >> 3 & 15;
	if (kind == 0xc5) {
		r->rex = ~first >> 5 & 4;
		r->map = MAP_VEX1;
		return read_byte(r, &r->opcode);
	}
	r->rex = (~first >> 5 & 7) | (second >> 4 & 8);
	map = first & 31;
	if (kind == 0x62) {
		map &= 15; /* the next bit is R' */
		if (!(second & 4) || !read_byte(r, &third) || !map || map == 4 || map > 6)
			return false;
		r->map = MAP_EVEX1 + map - 1 - (map > 4);
	} else if (kind == 0xc4 && map >= 1 && map <= 3) {
		r->map = MAP_VEX1 + map - 1;
	} else if (kind == 0x8f && map >= 8 && map <= 10) {
		r->map = MAP_XOP8 + map - 8;
	} else {
		return false;
	}
	return read_byte(r, &r->opcode);
}

static bool read_opcode(struct reading *r)
{
	r->map = MAP_ONE_BYTE;
	if (r->opcode == 0x0f)
		return read_escape(r);
	if (r->opcode == 0x62 || r->opcode == 0xc4 || r->opcode == 0xc5)
		return read_vex(r);
	/* Of ModRM's reg, pop has 0. */
	if (r->opcode == 0x8f && r->at < r->n && (r->p[r->at] & 0x1f) >= 8)
		return read_vex(r);
	return true;
}

static uint16_t opcode_form(const struct reading *r)
{
	if (r->map == MAP_ONE_BYTE)
		return insn_forms[r->opcode];
	if (!(insn_prefixes[r->map][r->opcode] & (has_w(r) ? N1 : N0) << r->prefix))
		return 0;
	switch (r->map) {
	case MAP_0F:
		/* extrq and insertq with two immediates */
		if (r->opcode == 0x78)
			return MR | FORM_IMM16;
		return insn_forms_0f[r->opcode];
	case MAP_0F38:
		return r->opcode == 0xf0 && r->prefix == 3 ? EB : EG; /* crc32 of a byte */
	case MAP_VEX1:
	case MAP_EVEX1:
		if (r->opcode == 0x77 && r->map == MAP_VEX1)
			return NO;
		if ((r->opcode >= 0x70 && r->opcode <= 0x73) || r->opcode == 0xc2 ||
			(r->opcode >= 0xc4 && r->opcode <= 0xc6))
			return GI;
		return EG;
	case MAP_0F3A:
	case MAP_VEX3:
	case MAP_EVEX3:
	case MAP_XOP8:
		return GI;
	case MAP_XOPA:
		return GZ;
	default:
		return EG;
	}
}

static uint16_t general(const struct reading *r, unsigned low_bits, unsigned rex_bit)
{
	unsigned n = low_bits | (r->rex & rex_bit ? 8u : 0u);

	/* ah, ch, dh, bh are parts of rax, rcx, rdx, rbx; but only one operand of movzx may be one. */
	if (r->form & FORM_BYTE && !r->has_rex && n >= 4 && n < 8)
		return BIT(n) | BIT(n - 4);
	return BIT(n);
}

/* Memory: SIB and displacement; its registers. */
static bool read_memory(struct reading *r, struct insn *insn)
{
	unsigned displacement = r->mod == 1 ? 1 : r->mod == 2 ? 4 : 0;
	unsigned base = r->rm;
	uint8_t sib;

	r->has_memory = true;
	if (base == 4) {
		if (!read_byte(r, &sib))
			return false;
		base = sib & 7;
		/* Index 4 is none, or rsp's number of a vector. */
		if ((sib >> 3 & 7) != 4 || r->rex & 2)
			insn->registers |= BIT((sib >> 3 & 7) | (r->rex & 2 ? 8 : 0));
	} else if (base == 5 && !r->mod) {
		insn->disp_at = r->at;
	}
	if (base == 5 && !r->mod)
		displacement = 4;
	else
		insn->registers |= BIT(base | (r->rex & 1 ? 8 : 0));
	r->at += displacement;
	return r->at <= r->n && !(insn->disp_at && r->has_67);
}

static bool read_modrm(struct reading *r, struct insn *insn)
{
	uint8_t modrm;

	insn->modrm_at = r->at;
	if (!read_byte(r, &modrm))
		return false;
	r->mod = modrm >> 6;
	r->reg = modrm >> 3 & 7;
	r->rm = modrm & 7;
	/* mov to and from control and debug registers has no memory, whatever mod says. */
	if (r->map == MAP_0F && (r->opcode & 0xfc) == 0x20)
		r->mod = 3;
	if (r->form & FORM_REG)
		insn->registers |= general(r, r->reg, 4);
	if (r->mod != 3)
		return read_memory(r, insn);
	if (r->form & FORM_RM)
		insn->registers |= general(r, r->rm, 1);
	return true;
}

static unsigned immediate_bytes(const struct reading *r)
{
	unsigned z = is_16_bits(r) ? 2 : 4;
	unsigned n = (r->form & FORM_IMM8 ? 1u : 0u) + (r->form & FORM_IMM16 ? 2u : 0u);

	if (r->map >= MAP_XOP8 && r->map <= MAP_XOPA)
		z = 4;
	if (r->form & FORM_IMMZ)
		n += z;
	if (r->form & FORM_IMMV)
		n += has_w(r) ? 8 : z;
	if (r->map != MAP_ONE_BYTE)
		return n;
	if ((r->opcode & 0xfc) == 0xa0) /* mov with an address */
		return r->has_67 ? 4 : 8;
	if (r->opcode == 0xf6 && r->reg < 2) /* test */
		return 1;
	if (r->opcode == 0xf7 && r->reg < 2)
		return z;
	return n;
}

static void add_implied_registers(const struct reading *r, struct insn *insn)
{
	static const uint16_t implied[5] = {RAX, RCX, RDX, RSP, RSI | RDI};

	for (unsigned i = 0; i < 5; i++)
		if (r->form & FORM_RAX << i)
			insn->registers |= implied[i];
	if (r->form & FORM_OPCODE)
		insn->registers |= general(r, r->opcode & 7, 1);
	if (r->map >= MAP_VEX1 && r->map < N_MAPS)
		insn->registers |= BIT(r->vvvv);
}

/* Whether it may have the prefix lock: operations that write memory. */
static bool is_lockable(const struct reading *r)
{
	if (!(r->form & FORM_LOCK) || r->mod == 3)
		return false;
	if (r->map == MAP_0F)
		return r->opcode == 0xc7 ? r->reg == 1 : r->opcode != 0xba || r->reg != 4;
	switch (r->opcode) {
	case 0x80:
	case 0x81:
	case 0x83:
		return r->reg != 7; /* cmp */
	case 0x84:
	case 0x85:
		return false;
	case 0xf6:
	case 0xf7:
		return r->reg == 2 || r->reg == 3;
	case 0xfe:
	case 0xff:
		return r->reg < 2;
	}
	return true;
}

/* Memory that a prefix may lay into a segment: what is not named by ModRM, too. */
static bool has_segment(const struct reading *r, const struct insn *insn)
{
	if (r->map == MAP_0F && (r->opcode & 0xfe) == 0x1a && r->prefix >= 2)
		return false; /* bndcl, bndcu, bndcn, bndmk: an address */
	if (r->map == MAP_0F || r->map == MAP_VEX1)
		return (r->has_memory && !insn->is_nop) || r->opcode == 0xf7;
	if (r->map != MAP_ONE_BYTE)
		return r->has_memory;
	if (r->has_memory)
		return r->opcode != 0x8d; /* lea */
	return (r->opcode >= 0xa0 && r->opcode <= 0xa7) || (r->opcode & 0xfe) == 0xac ||
	       (r->opcode & 0xfe) == 0x6e || r->opcode == 0xd7;
}

static bool decode(struct reading *r, struct insn *insn, uint64_t address)
{
	if (!read_prefixes(r))
		return false;
	insn->n_prefixes = r->at - 1;
	if (!read_opcode(r))
		return false;
	insn->opcode_at = r->at - 1;
	r->form = opcode_form(r);
	if (!r->form || (r->form & FORM_MODRM && !read_modrm(r, insn)))
		return false;
	if (immediate_bytes(r) > (unsigned)(r->n - r->at))
		return false;
	r->at += immediate_bytes(r);
	insn->length = r->at;
	insn->kind = INSN_PLAIN;
	add_implied_registers(r, insn);
	insn_describe(r, insn, address);
	if (r->has_lock && !is_lockable(r))
		insn->kind = INSN_UNKNOWN;
	insn->has_gs = r->segment == 0x65 && has_segment(r, insn);
	if (insn->kind == INSN_STOP)
		insn->flags_read = INSN_FLAGS;
	return insn->kind != INSN_UNKNOWN;
}

bool insn_decode(struct insn *insn, const uint8_t *p, size_t n, uint64_t address)
{
	struct reading r = {.p = p, .n = n < INSN_BYTES_MAX ? (uint8_t)n : INSN_BYTES_MAX, .mod = 3};

	*insn = (struct insn){.kind = INSN_UNKNOWN};
	if (decode(&r, insn, address))
		return true;
	*insn = (struct insn){.length = insn->length,
		.kind = INSN_UNKNOWN,
		.registers = R_ALL,
		.flags_read = INSN_FLAGS};
	return false;
}
