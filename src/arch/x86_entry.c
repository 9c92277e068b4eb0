/* SPDX-License-Identifier: MIT */
/*
 * 1. A register or slot that an instruction writes in a way that is not modelled becomes unknown.
 * 2. Memory through registers that are no frame addresses is taken for memory outside of the frame:
 *    the addresses of slots do not leave a function before its first call.
 * 3. 32-bit code finds its own address by a call of the next instruction, or of a function that
 *    does nothing else: these two are followed, every other call ends the line.
 */
#include "arch/x86_entry.h"

#include "arch/x86_zydis.h"

#define INSNS_MAX 400

struct follow {
	struct x86_entry *e;
	struct span section;
	uint64_t at;	    /* of the instruction, in the section */
	uint32_t behind;    /* bytes of the function up to its end */
	bool is_setting_up; /* only pushes, and the two pointers being set, until now */
	struct x86_decoded x;
};

static const struct x86_entry_value unknown = {.kind = X86_ENTRY_UNKNOWN};

static uint8_t word_of(const struct x86_entry *e)
{
	return e->is_64 ? 8 : 4;
}

static bool is_vector(ZydisRegister reg)
{
	ZydisRegisterClass class = ZydisRegisterGetClass(reg);

	return class == ZYDIS_REGCLASS_XMM || class == ZYDIS_REGCLASS_YMM ||
	       class == ZYDIS_REGCLASS_ZMM;
}

static bool is_high_byte(ZydisRegister reg)
{
	return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH;
}

/* --- slots ------------------------------------------------------------------------------------- */

static void store(struct follow *f, int64_t offset, uint32_t bytes, struct x86_entry_value value)
{
	struct x86_entry *e = f->e;

	if (e->n_slots == X86_ENTRY_SLOTS_MAX)
		return;
	if (value.bytes < bytes && value.kind != X86_ENTRY_ADDRESS)
		value = unknown;
	e->slots[e->n_slots++] = (struct x86_entry_slot){.offset = offset,
		.bytes = (uint8_t)(bytes > 64 ? 64 : bytes),
		.behind = f->behind,
		.value = value};
}

static struct x86_entry_value load(const struct x86_entry *e, int64_t offset, uint8_t bytes)
{
	struct x86_entry_value value;

	for (uint32_t i = e->n_slots; i-- > 0;) {
		const struct x86_entry_slot *s = &e->slots[i];

		if (offset + bytes <= s->offset || offset >= s->offset + s->bytes)
			continue;
		if (s->offset != offset || s->bytes < bytes)
			return unknown;
		value = s->value;
		if (value.kind != X86_ENTRY_ADDRESS)
			value.bytes = bytes;
		return value;
	}
	if (offset < 0 || e->n_slots == X86_ENTRY_SLOTS_MAX)
		return unknown;
	return (struct x86_entry_value){X86_ENTRY_CALLER, 0, bytes, offset};
}

const struct x86_entry_slot *x86_entry_first(const struct x86_entry *e, int64_t offset)
{
	for (uint32_t i = 0; i < e->n_slots; i++) {
		const struct x86_entry_slot *s = &e->slots[i];

		if (!s->is_push && offset >= s->offset && offset < s->offset + s->bytes)
			return s->offset == offset ? s : NULL;
	}
	return NULL;
}

/* --- operands ---------------------------------------------------------------------------------- */

/* The place of a memory operand in the frame. */
static bool frame_offset(const struct follow *f, const ZydisDecodedOperand *op, int64_t *offset)
{
	int base = x86_general_number(op->mem.base);
	const struct x86_entry_value *v;

	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || base < 0 ||
		op->mem.index != ZYDIS_REGISTER_NONE || op->mem.segment == ZYDIS_REGISTER_FS ||
		op->mem.segment == ZYDIS_REGISTER_GS)
		return false;
	v = &f->e->regs[base];
	*offset = v->offset + op->mem.disp.value;
	return v->kind == X86_ENTRY_ADDRESS;
}

static void set_register(struct follow *f, ZydisRegister reg, struct x86_entry_value value)
{
	int n = x86_general_number(reg);

	if (is_vector(reg)) {
		f->e->vectors_set |= (uint16_t)(1u << (ZydisRegisterGetId(reg) & 15));
	} else if (n >= 0) {
		f->e->regs[n] = is_high_byte(reg) ? unknown : value;
	}
}

static struct x86_entry_value value_of(const struct follow *f, const ZydisDecodedOperand *op)
{
	uint8_t bytes = (uint8_t)(op->size / 8);
	struct x86_entry_value value = unknown;
	int64_t offset;
	int n;

	if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
		return frame_offset(f, op, &offset) ? load(f->e, offset, bytes) : unknown;
	if (op->type != ZYDIS_OPERAND_TYPE_REGISTER || is_high_byte(op->reg.value))
		return unknown;
	n = x86_general_number(op->reg.value);
	if (n >= 0) {
		value = f->e->regs[n];
		if (value.kind == X86_ENTRY_ADDRESS && bytes != word_of(f->e))
			return unknown;
		if (value.bytes > bytes)
			value.bytes = bytes;
	} else if (is_vector(op->reg.value)) {
		uint8_t number = (uint8_t)ZydisRegisterGetId(op->reg.value);

		if (number < 16 && !(f->e->vectors_set >> number & 1))
			value = (struct x86_entry_value){X86_ENTRY_VECTOR, number, 64, 0};
	}
	return value;
}

static void write_operand(
	struct follow *f, const ZydisDecodedOperand *op, struct x86_entry_value value)
{
	int64_t offset;

	if (op->type == ZYDIS_OPERAND_TYPE_REGISTER)
		set_register(f, op->reg.value, value);
	else if (frame_offset(f, op, &offset))
		store(f, offset, op->size / 8, value);
}

/* --- instructions ------------------------------------------------------------------------------ */

static void move_sp(struct follow *f, int64_t by)
{
	f->e->regs[X86_ENTRY_SP].offset += by;
}

static void push(struct follow *f, struct x86_entry_value value)
{
	const struct x86_entry_value *sp = &f->e->regs[X86_ENTRY_SP];
	uint32_t n = f->e->n_slots;

	move_sp(f, -(int64_t)word_of(f->e));
	if (sp->kind == X86_ENTRY_ADDRESS)
		store(f, sp->offset, word_of(f->e), value);
	if (f->e->n_slots > n)
		f->e->slots[n].is_push = true;
}

static void pop(struct follow *f, const ZydisDecodedOperand *to)
{
	const struct x86_entry_value *sp = &f->e->regs[X86_ENTRY_SP];
	struct x86_entry_value value =
		sp->kind == X86_ENTRY_ADDRESS ? load(f->e, sp->offset, word_of(f->e)) : unknown;

	move_sp(f, word_of(f->e));
	write_operand(f, to, value);
}

/* add, sub: of a register that has a frame address, and a constant */
static bool add(struct follow *f, int sign)
{
	const ZydisDecodedOperand *to = &f->x.operands[0], *by = &f->x.operands[1];
	int n = to->type == ZYDIS_OPERAND_TYPE_REGISTER ? x86_general_number(to->reg.value) : -1;

	if (n < 0 || f->e->regs[n].kind != X86_ENTRY_ADDRESS || to->size / 8 != word_of(f->e) ||
		by->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	f->e->regs[n].offset += sign * by->imm.value.s;
	return true;
}

static void lea(struct follow *f)
{
	struct x86_entry_value value = unknown;
	const ZydisDecodedOperand *from = &f->x.operands[1];
	int base = x86_general_number(from->mem.base);

	if (base >= 0 && f->e->regs[base].kind == X86_ENTRY_ADDRESS &&
		from->mem.index == ZYDIS_REGISTER_NONE) {
		value = f->e->regs[base];
		value.offset += from->mem.disp.value;
	}
	write_operand(f, &f->x.operands[0], value);
}

/* Everything that it writes is unknown behind it. */
static void forget_written(struct follow *f)
{
	for (uint8_t i = 0; i < f->x.d.operand_count; i++)
		if (f->x.operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			write_operand(f, &f->x.operands[i], unknown);
}

/* "call next; pop" and "call thunk", whose code is "mov (%esp),%reg; ret". */
static bool call(struct follow *f)
{
	uint64_t next = f->at + f->x.d.length, to;
	const uint8_t *p;

	if (f->x.operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
		!f->x.operands[0].imm.is_relative || f->e->is_64)
		return false;
	to = next + (uint64_t)f->x.operands[0].imm.value.s;
	if (to == next) {
		push(f, unknown);
		return true;
	}
	p = span_sub(f->section, to, 4).p;
	if (!p || p[0] != 0x8b || (p[1] & 0xc7) != 0x04 || p[2] != 0x24 || p[3] != 0xc3)
		return false;
	f->e->regs[p[1] >> 3 & 7] = unknown;
	return true;
}

static bool is_move(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_MOVSS:
	case ZYDIS_MNEMONIC_MOVSD:
	case ZYDIS_MNEMONIC_MOVD:
	case ZYDIS_MNEMONIC_MOVQ:
	case ZYDIS_MNEMONIC_MOVAPS:
	case ZYDIS_MNEMONIC_MOVAPD:
	case ZYDIS_MNEMONIC_MOVUPS:
	case ZYDIS_MNEMONIC_MOVUPD:
	case ZYDIS_MNEMONIC_MOVDQA:
	case ZYDIS_MNEMONIC_MOVDQU:
		return true;
	default:
		return false;
	}
}

static void move(struct follow *f)
{
	const ZydisDecodedOperand *to = &f->x.operands[0], *from = &f->x.operands[1];
	struct x86_entry_value value = value_of(f, from);
	uint32_t n = f->e->n_slots;

	write_operand(f, to, value);
	if (f->e->n_slots > n && value.kind == X86_ENTRY_REGISTER)
		f->e->slots[n].is_direct = x86_general_number(from->reg.value) == value.reg;
}

/* False where the line ends. */
static bool step(struct follow *f)
{
	const ZydisDecodedOperand *ops = f->x.operands;

	switch (f->x.d.mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_ENDBR32:
	case ZYDIS_MNEMONIC_ENDBR64:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
		return true;
	case ZYDIS_MNEMONIC_PUSH:
		push(f, value_of(f, &ops[0]));
		return true;
	case ZYDIS_MNEMONIC_POP:
		pop(f, &ops[0]);
		return true;
	case ZYDIS_MNEMONIC_LEA:
		lea(f);
		return true;
	case ZYDIS_MNEMONIC_CALL:
		return call(f);
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (!add(f, f->x.d.mnemonic == ZYDIS_MNEMONIC_ADD ? 1 : -1))
			forget_written(f);
		return true;
	default:
		break;
	}
	if (is_move(f->x.d.mnemonic) && f->x.d.operand_count_visible == 2 &&
		!(f->x.d.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPNE)))
		move(f);
	else
		forget_written(f);
	return true;
}

static bool ends_line(const ZydisDecodedInstruction *d)
{
	switch (d->meta.category) {
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
		return true;
	default:
		return d->mnemonic == ZYDIS_MNEMONIC_UD2 || d->mnemonic == ZYDIS_MNEMONIC_HLT;
	}
}

/* Instructions that compilers begin a function with, to set up its frame. */
static bool is_set_up(const struct follow *f)
{
	const ZydisDecodedOperand *to = &f->x.operands[0];
	int n = to->type == ZYDIS_OPERAND_TYPE_REGISTER ? x86_general_number(to->reg.value) : -1;

	switch (f->x.d.mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_ENDBR32:
	case ZYDIS_MNEMONIC_ENDBR64:
		return true;
	case ZYDIS_MNEMONIC_PUSH:
		return n >= 0;
	case ZYDIS_MNEMONIC_SUB:
		return n == X86_ENTRY_SP;
	case ZYDIS_MNEMONIC_MOV:
		return n == X86_ENTRY_FP &&
		       value_of(f, &f->x.operands[1]).kind == X86_ENTRY_ADDRESS;
	default:
		return false;
	}
}

/* The stack pointer stays where setting up has left it, until the function returns; when it does not,
 * it is nothing that a frame could be found by. */
static void note_pointers(struct follow *f)
{
	struct x86_entry *e = f->e;
	const struct x86_entry_value *sp = &e->regs[X86_ENTRY_SP], *fp = &e->regs[X86_ENTRY_FP];

	if (f->is_setting_up) {
		e->has_sp = sp->kind == X86_ENTRY_ADDRESS;
		e->sp = sp->offset;
	} else if (sp->kind != X86_ENTRY_ADDRESS ||
		   (sp->offset < e->sp && f->x.d.mnemonic != ZYDIS_MNEMONIC_CALL)) {
		e->has_sp = false; /* "call next" is followed by a pop */
	}
	if (!e->has_fp && fp->kind == X86_ENTRY_ADDRESS) {
		e->has_fp = true;
		e->fp = fp->offset;
	}
}

void x86_entry_follow(
	struct x86_entry *e, struct span section, uint64_t at, bool is_64, uint32_t stop)
{
	struct follow f = {.e = e, .section = section, .at = at, .is_setting_up = true};

	*e = (struct x86_entry){.is_64 = is_64};
	for (int i = 0; i < X86_ENTRY_REGS; i++)
		e->regs[i] =
			(struct x86_entry_value){X86_ENTRY_REGISTER, (uint8_t)i, word_of(e), 0};
	e->regs[X86_ENTRY_SP] =
		(struct x86_entry_value){X86_ENTRY_ADDRESS, 0, word_of(e), -(int64_t)word_of(e)};
	note_pointers(&f);
	for (int i = 0; i < INSNS_MAX && f.at < section.n; i++) {
		if (!x86_decode_all(&f.x, span_sub(section, f.at, section.n - f.at), is_64) ||
			ends_line(&f.x.d) || e->n_bytes + f.x.d.length > stop)
			return;
		f.behind = e->n_bytes + f.x.d.length;
		f.is_setting_up = f.is_setting_up && is_set_up(&f);
		if (!step(&f))
			return;
		note_pointers(&f);
		e->n_bytes = f.behind;
		f.at += f.x.d.length;
	}
}
