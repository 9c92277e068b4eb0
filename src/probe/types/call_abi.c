/* SPDX-License-Identifier: MIT */
/*
 * System V x86-64 (psABI 3.2.3): a value of up to 16 bytes is classified by its eight-byte pieces,
 * each INTEGER or SSE, and goes to registers of those classes when there are enough for the whole
 * of it; everything else is on the stack. System V i386: everything is on the stack in words of 4
 * bytes, and structures are returned in memory that the caller names in a hidden first argument.
 */
#include "probe/types/call_abi.h"

#include <string.h>

#define CLASSIFY_STEPS_MAX 4096 /* parts of a value of 16 bytes; more is hostile */
#define VECTOR_REGISTERS   8

static const uint16_t argument_registers[] = {PT_DI, PT_SI, PT_DX, PT_CX, PT_R8, PT_R9};
#define ARGUMENT_REGISTERS (sizeof(argument_registers) / sizeof(argument_registers[0]))

enum eightbyte_class { CLASS_NONE, CLASS_SSE, CLASS_INTEGER, CLASS_X87, CLASS_MEMORY };

struct classes {
	enum eightbyte_class of[2];
	uint32_t steps;
};

static void merge(struct classes *c, uint64_t offset, uint64_t bytes, enum eightbyte_class class)
{
	for (uint64_t i = offset / 8; i <= (offset + bytes - 1) / 8 && i < 2; i++) {
		enum eightbyte_class *to = &c->of[i];

		/* psABI: equal; NONE yields; MEMORY wins; INTEGER wins over SSE; X87 with any
		 * other is MEMORY. */
		if (*to == CLASS_NONE || *to == class)
			*to = class;
		else if (*to >= CLASS_X87 || class >= CLASS_X87)
			*to = CLASS_MEMORY;
		else
			*to = CLASS_INTEGER;
	}
}

static void classify(struct classes *c, const struct type *type, uint64_t offset);

static void classify_field(struct classes *c, const struct type_field *f, uint64_t offset)
{
	uint64_t first_bit = (offset + f->offset) * 8 + f->bit_offset;

	if (!f->bit_size) {
		classify(c, f->type, offset + f->offset);
		return;
	}
	if (first_bit + f->bit_size > 128)
		c->of[0] = CLASS_MEMORY;
	else
		merge(c, first_bit / 8, (first_bit % 8 + f->bit_size + 7) / 8, CLASS_INTEGER);
}

static void classify(struct classes *c, const struct type *type, uint64_t offset)
{
	if (!type->size)
		return;
	if (++c->steps > CLASSIFY_STEPS_MAX || offset >= 16 || type->size > 16 - offset) {
		c->of[0] = CLASS_MEMORY;
		return;
	}
	switch (type->kind) {
	case TYPE_STRUCT:
		for (uint32_t i = 0; i < type->n_fields; i++)
			classify_field(c, &type->fields[i], offset);
		return;
	case TYPE_ARRAY:
		for (uint64_t i = 0; i < type->n; i++)
			classify(c, type->of, offset + i * type->of->size);
		return;
	case TYPE_FLOAT:
		/* "packed" can put a field where no register takes it from. */
		if (offset % type->align)
			c->of[0] = CLASS_MEMORY;
		merge(c, offset, type->size, type->size > 8 ? CLASS_X87 : CLASS_SSE);
		return;
	default:
		if (offset % type->align)
			c->of[0] = CLASS_MEMORY;
		merge(c, offset, type->size, CLASS_INTEGER);
	}
}

static struct classes classes_of(const struct type *type)
{
	struct classes c = {{CLASS_NONE, CLASS_NONE}, 0};

	if (type->size > 16)
		c.of[0] = CLASS_MEMORY;
	else
		classify(&c, type, 0);
	if (c.of[0] == CLASS_MEMORY || c.of[1] == CLASS_MEMORY)
		c.of[0] = c.of[1] = CLASS_MEMORY;
	return c;
}

static unsigned count(const struct classes *c, enum eightbyte_class class)
{
	return (c->of[0] == class) + (c->of[1] == class);
}

static bool is_in_memory(const struct classes *c)
{
	return c->of[0] == CLASS_MEMORY;
}

static bool is_returned_in_memory(enum mode mode, const struct type *type)
{
	struct classes c;

	if (type->is_by_reference)
		return true;
	if (mode == MODE_32)
		return type->kind == TYPE_STRUCT || type->kind == TYPE_ARRAY;
	c = classes_of(type);
	return is_in_memory(&c);
}

static struct value_place on_stack(int64_t offset, uint64_t bytes)
{
	return (struct value_place){.kind = VALUE_ON_STACK,
		.offset = offset > INT32_MAX ? INT32_MAX : (int32_t)offset,
		.bytes = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes};
}

/* --- arguments ------------------------------------------------------------------------------- */

/* What the arguments before have taken. */
struct taken {
	unsigned registers, vectors;
	int64_t stack; /* bytes from the stack pointer at the first instruction */
};

static struct value_place next_on_stack(struct taken *t, enum mode mode, const struct type *type)
{
	int64_t word = mode == MODE_32 ? 4 : 8, align = word;
	struct value_place place;

	/* i386 as gcc has it aligns no argument to more than a word. */
	if (mode == MODE_64 && type->align > align)
		align = type->align;
	/* The caller's frame is aligned before the return address is pushed. */
	t->stack = (t->stack - word + align - 1) / align * align + word;
	place = on_stack(t->stack, type->size);
	t->stack += (int64_t)((type->size + (uint64_t)word - 1) / (uint64_t)word) * word;
	return place;
}

static struct value_place next_argument(struct taken *t, enum mode mode, const struct type *type)
{
	struct value_place place = {.kind = VALUE_IN_REGISTER, .bytes = (uint32_t)type->size};
	unsigned n_integer, n_vector;
	struct classes c;

	if (mode == MODE_32)
		return next_on_stack(t, mode, type);
	c = classes_of(type);
	n_integer = count(&c, CLASS_INTEGER);
	n_vector = count(&c, CLASS_SSE);
	if (is_in_memory(&c) || count(&c, CLASS_X87) || n_integer + n_vector == 0 ||
		t->registers + n_integer > ARGUMENT_REGISTERS ||
		t->vectors + n_vector > VECTOR_REGISTERS)
		return next_on_stack(t, mode, type);
	for (unsigned i = 0; i < n_integer; i++)
		place.reg[i] = argument_registers[t->registers++];
	t->vectors += n_vector;
	place.n_regs = (uint8_t)n_integer;
	if (n_vector)
		place.kind = VALUE_IN_VECTOR;
	else if (n_integer == 2 || type->kind == TYPE_STRUCT)
		place.kind = VALUE_IN_REGISTERS;
	return place;
}

/* The argument behind those with a type: what follows "..." in integers. */
static struct value_place next_word(struct taken *t, enum mode mode)
{
	struct type word = {.kind = TYPE_INT, .is_complete = true};

	word.size = word.align = mode == MODE_32 ? 4 : 8;
	return next_argument(t, mode, &word);
}

/* A class that copies itself by a function of its own: the caller gives the address of a copy
 * (Itanium C++ ABI section 3.1.1). */
static struct value_place next_by_reference(
	struct taken *t, enum mode mode, const struct type *type)
{
	struct value_place pointer = next_word(t, mode);

	return (struct value_place){.kind = VALUE_IN_PARTS,
		.bytes = (uint32_t)type->size,
		.n_parts = 1,
		.parts = {{.kind = PART_MEMORY,
			.reg = pointer.kind == VALUE_ON_STACK ? PT_SP : pointer.reg[0],
			.is_behind = pointer.kind == VALUE_ON_STACK,
			.offset = pointer.offset,
			.bytes = (uint32_t)type->size}}};
}

struct value_place call_argument(enum mode mode, const struct type *function, uint32_t i)
{
	struct taken taken = {0, 0, mode == MODE_32 ? 4 : 8};
	struct value_place place = {0};
	uint32_t typed = i < function->n_fields ? i + 1 : function->n_fields;

	if (is_returned_in_memory(mode, function->of))
		next_word(&taken, mode);
	for (uint32_t k = 0; k < typed; k++) {
		const struct type_field *f = &function->fields[k];

		if (f->type->is_by_reference)
			place = next_by_reference(&taken, mode, f->type);
		else
			place = next_argument(&taken, mode, f->type);
	}
	for (uint32_t k = typed; k <= i; k++)
		place = next_word(&taken, mode);
	return place;
}

struct value_place call_raw_argument(enum mode mode, uint32_t i)
{
	if (mode == MODE_32)
		return on_stack(4 + 4 * (int64_t)i, 4);
	if (i < ARGUMENT_REGISTERS)
		return (struct value_place){.kind = VALUE_IN_REGISTER,
			.reg = {argument_registers[i]},
			.n_regs = 1,
			.bytes = 8};
	return on_stack(8 + 8 * ((int64_t)i - (int64_t)ARGUMENT_REGISTERS), 8);
}

bool call_is_place_same(const struct value_place *a, const struct value_place *b)
{
	const struct value_part *part = &b->parts[0];

	if (b->kind != VALUE_IN_PARTS || !b->n_parts)
		return a->kind == b->kind;
	switch (a->kind) {
	case VALUE_IN_REGISTER:
	case VALUE_IN_REGISTERS:
		return part->kind == PART_REGISTER && part->reg == a->reg[0];
	case VALUE_ON_STACK:
		return part->kind == PART_MEMORY && part->reg == PT_SP && !part->is_behind &&
		       part->offset == a->offset;
	case VALUE_IN_PARTS:
		return a->parts[0].kind == part->kind && a->parts[0].reg == part->reg &&
		       a->parts[0].offset == part->offset;
	default:
		return false;
	}
}

/* --- results --------------------------------------------------------------------------------- */

static struct value_place result_in_registers(enum mode mode, const struct type *type)
{
	struct value_place place = {.kind = VALUE_IN_REGISTER,
		.reg = {PT_AX, PT_DX},
		.n_regs = 1,
		.bytes = (uint32_t)type->size};
	struct classes c;

	if (mode == MODE_32) {
		if (type->kind == TYPE_FLOAT)
			place.kind = VALUE_IN_VECTOR;
		else if (type->size > 4)
			place.n_regs = 2;
		return place;
	}
	c = classes_of(type);
	place.n_regs = (uint8_t)count(&c, CLASS_INTEGER);
	if (count(&c, CLASS_SSE) || count(&c, CLASS_X87))
		place.kind = VALUE_IN_VECTOR;
	else if (place.n_regs == 2 || type->kind == TYPE_STRUCT)
		place.kind = VALUE_IN_REGISTERS;
	return place;
}

struct value_place call_result(enum mode mode, const struct type *returns)
{
	if (!is_returned_in_memory(mode, returns))
		return result_in_registers(mode, returns);
	return (struct value_place){.kind = VALUE_BEHIND_POINTER,
		.reg = {PT_AX},
		.n_regs = 1,
		.bytes = returns->size > UINT32_MAX ? UINT32_MAX : (uint32_t)returns->size};
}

/* --- registers by name ----------------------------------------------------------------------- */

static const struct {
	const char *names[5]; /* 8, 4 and 2 bytes, the lowest byte, the one above; "" = none */
	uint16_t offset;
} registers[] = {
	{{"rax", "eax", "ax", "al", "ah"}, PT_AX},
	{{"rbx", "ebx", "bx", "bl", "bh"}, PT_BX},
	{{"rcx", "ecx", "cx", "cl", "ch"}, PT_CX},
	{{"rdx", "edx", "dx", "dl", "dh"}, PT_DX},
	{{"rsi", "esi", "si", "sil", ""}, PT_SI},
	{{"rdi", "edi", "di", "dil", ""}, PT_DI},
	{{"rbp", "ebp", "bp", "bpl", ""}, PT_BP},
	{{"rsp", "esp", "sp", "spl", ""}, PT_SP},
	{{"r8", "r8d", "r8w", "r8b", ""}, PT_R8},
	{{"r9", "r9d", "r9w", "r9b", ""}, PT_R9},
	{{"r10", "r10d", "r10w", "r10b", ""}, PT_R10},
	{{"r11", "r11d", "r11w", "r11b", ""}, PT_R11},
	{{"r12", "r12d", "r12w", "r12b", ""}, PT_R12},
	{{"r13", "r13d", "r13w", "r13b", ""}, PT_R13},
	{{"r14", "r14d", "r14w", "r14b", ""}, PT_R14},
	{{"r15", "r15d", "r15w", "r15b", ""}, PT_R15},
	{{"rip", "eip", "ip", "", ""}, PT_IP},
	{{"rflags", "eflags", "flags", "", ""}, PT_FLAGS},
	{{"orig_rax", "orig_eax", "orig_ax", "", ""}, PT_ORIG_AX},
	{{"", "", "cs", "", ""}, PT_CS},
	{{"", "", "ss", "", ""}, PT_SS},
};

bool pt_reg_find(const char *name, uint16_t *offset, uint8_t *first_byte, uint8_t *bytes)
{
	/* "ax" is what the kernel calls the whole register; a USDT operand has a size of its own.
	 * r8w and its like are no names of the kernel's. */
	static const uint8_t sizes[] = {8, 4, 8, 1, 1};

	if (!*name)
		return false;
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		for (size_t k = 0; k < sizeof(sizes); k++) {
			if (strcmp(registers[i].names[k], name) != 0)
				continue;
			*offset = registers[i].offset;
			*first_byte = k == 4;
			*bytes = k == 2 && name[0] == 'r' ? 2 : sizes[k];
			return true;
		}
	}
	return false;
}
