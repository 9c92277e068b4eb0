/* SPDX-License-Identifier: MIT */
/*
 * Where control can come into bytes that are to be patched, other than at a function's start.
 *
 * Decoding all code of an image would take most of the planner's time, so it is looked at as bytes
 * first: wherever a branch with a wanted target could stand, there is a candidate. Only code with
 * candidates is decoded, from the start of its function up to the last of them, to see which are
 * real. Those in code that cannot be decoded, or of which no start is known, count as real.
 *
 * Pointers by relocations and, in images with fixed addresses, all words of data are looked at,
 * too; those to a function's start are plain function pointers.
 */
#include <elf.h>
#include <stdlib.h>

#include "base/search.h"
#include "record/hooks/plan_internal.h"

enum candidate_from {
	FROM_CALL,
	FROM_JUMP,  /* or a branch */
	FROM_TABLE, /* of a switch; `means` is the table */
	FROM_LEA,   /* the address itself is taken */
	FROM_CYG,   /* a call of __cyg_profile_func_enter */
};

struct target_candidate {
	uint64_t source; /* a byte of the instruction */
	uint64_t target;
	uint64_t means; /* the operand, by which the instruction is recognised */
	uint8_t from;	/* enum candidate_from */
};

struct scan {
	struct image_facts *f;
	VEC(struct target_candidate) found;
	VEC(struct switch_table) tables;
};

static bool bit_at(const uint64_t *bits, uint64_t at)
{
	return bits[at / 64] >> at % 64 & 1;
}

static bool is_wanted(const struct image_facts *f, uint64_t addr)
{
	const struct code_region *r = image_region(f, addr);

	return r && bit_at(r->is_wanted, addr - r->start);
}

static bool is_start(const struct image_facts *f, uint64_t addr)
{
	const struct code_region *r = image_region(f, addr);

	return r && bit_at(r->is_start, addr - r->start);
}

static void set_wanted(struct image_facts *f, const struct range *ranges, size_t n, bool value)
{
	for (size_t i = 0; i < n; i++) {
		struct code_region *r = image_region(f, ranges[i].start);

		for (uint64_t a = ranges[i].start; r && a < ranges[i].end && a < r->end; a++) {
			uint64_t at = a - r->start;

			if (value)
				r->is_wanted[at / 64] |= 1ull << at % 64;
			else
				r->is_wanted[at / 64] &= ~(1ull << at % 64);
		}
	}
}

/* --- candidates -------------------------------------------------------------------------- */

/* The region that code being scanned lies in: nearly all of its branches lead there, too. */
struct scan_place {
	struct scan *s;
	const struct code_region *r;
	uint64_t addr; /* of the byte looked at */
};

static void add(
	const struct scan_place *p, uint64_t target, uint64_t means, enum candidate_from from)
{
	vec_push(&p->s->found, ((struct target_candidate){p->addr, target, means, (uint8_t)from}));
}

static uint64_t wrap(const struct image_facts *f, uint64_t addr)
{
	return f->is_64 ? addr : (uint32_t)addr;
}

static void see_branch(const struct scan_place *p, uint64_t target, bool is_call)
{
	const struct code_region *r = p->r;

	target = wrap(p->s->f, target);
	if (target - r->start >= r->end - r->start) {
		r = image_region(p->s->f, target);
		if (!r)
			return;
		if (is_call && r->is_stub && p->s->f->has_cyg) {
			const uint64_t *callee = map_find(&p->s->f->callee_of, target);

			if (callee && *callee == CALLEE_CYG_ENTER)
				add(p, target, target, FROM_CYG);
		}
	}
	if (!bit_at(r->is_wanted, target - r->start))
		return;
	if (!is_call)
		add(p, target, target, FROM_JUMP);
	else if (!bit_at(r->is_start, target - r->start))
		add(p, target, target, FROM_CALL);
}

static void see_table(const struct scan_place *p, uint64_t table, uint64_t base)
{
	vec_push(&p->s->tables, ((struct switch_table){table, p->addr, base}));
}

static void see_lea(const struct scan_place *p, uint64_t operand)
{
	const struct image_facts *f = p->s->f;

	if (!image_region(f, operand)) {
		if (operand % 4 == 0)
			see_table(p, operand, operand);
	} else if (is_wanted(f, operand) && !is_start(f, operand)) {
		add(p, operand, operand, FROM_LEA);
	}
}

static uint64_t s32_at(const uint8_t *p)
{
	return (uint64_t)(int64_t)(int32_t)u32_at(p);
}

/* 32-bit code: an operand disp32(%reg) or disp32(%reg,%reg,4), with what it may mean as a table. */
static void see_got_operand(const struct scan_place *p, const uint8_t *code)
{
	uint64_t got = p->s->f->got_base, table;

	if (p->s->f->is_64 || !got || code[1] >> 6 != 2)
		return;
	if ((code[1] & 7) != 4)
		table = got + u32_at(code + 2);
	else if (code[2] >> 6 == 2)
		table = got + u32_at(code + 3);
	else
		return;
	see_table(p, (uint32_t)table, got);
}

/* Bytes by which an instruction of interest may begin (prefixes aside). */
enum byte_class {
	BYTE_OTHER,
	BYTE_REL32,
	BYTE_SHORT,
	BYTE_0F,
	BYTE_LEA,
	BYTE_FF,
	BYTE_C7,
	BYTE_LOAD, /* mov and add */
};

#define BYTE_CLASSES                                                                               \
	[0x0f] = BYTE_0F, [0x70 ... 0x7f] = BYTE_SHORT, [0x8d] = BYTE_LEA, [0xc7] = BYTE_C7,       \
	[0xe0 ... 0xe3] = BYTE_SHORT,                                                              \
	[0xe8 ... 0xe9] = BYTE_REL32, [0xeb] = BYTE_SHORT, [0xff] = BYTE_FF
static const uint8_t byte_classes_64[256] = {BYTE_CLASSES};
static const uint8_t byte_classes_32[256] = {BYTE_CLASSES, [0x03] = BYTE_LOAD, [0x8b] = BYTE_LOAD};

/* `code` has seven bytes at least. */
static void see_instruction(const struct scan_place *p, const uint8_t *code, enum byte_class class)
{
	const struct image_facts *f = p->s->f;

	switch (class) {
	case BYTE_OTHER:
		break;
	case BYTE_REL32:
		see_branch(p, p->addr + 5 + s32_at(code + 1), code[0] == 0xe8);
		break;
	case BYTE_SHORT:
		see_branch(p, p->addr + 2 + (uint64_t)(int64_t)(int8_t)code[1], false);
		break;
	case BYTE_0F: /* jcc */
		if ((code[1] & 0xf0) == 0x80)
			see_branch(p, p->addr + 6 + s32_at(code + 2), false);
		break;
	case BYTE_C7: /* xbegin */
		if (code[1] == 0xf8)
			see_branch(p, p->addr + 6 + s32_at(code + 2), false);
		break;
	case BYTE_LEA:
		if (f->is_64 && (code[1] & 0xc7) == 0x05)
			see_lea(p, p->addr + 6 + s32_at(code + 2));
		else
			see_got_operand(p, code);
		break;
	case BYTE_LOAD:
		see_got_operand(p, code);
		break;
	case BYTE_FF:
		if (code[1] == 0x24 && (code[2] & 0xc7) == (f->is_64 ? 0xc5 : 0x85))
			see_table(p, f->is_64 ? s32_at(code + 3) : u32_at(code + 3), 0);
		break;
	}
}

static void scan_region(struct scan *s, const struct code_region *r)
{
	struct scan_place p = {s, r, 0};
	const uint8_t *classes = s->f->is_64 ? byte_classes_64 : byte_classes_32;
	const uint8_t *code = r->bytes.p;
	uint8_t tail[16] = {0};
	size_t n = r->bytes.n, n_whole = n < 7 ? 0 : n - 7;

	for (size_t i = 0; i < n_whole; i++) {
		if (!classes[code[i]])
			continue;
		p.addr = r->start + i;
		see_instruction(&p, code + i, classes[code[i]]);
	}
	/* What an instruction across the end would mean does not matter. */
	memcpy(tail, code + n_whole, n - n_whole);
	for (size_t i = n_whole; i < n; i++) {
		p.addr = r->start + i;
		see_instruction(&p, tail + (i - n_whole), classes[code[i]]);
	}
}

static void add_entry(void *ctx, const struct switch_table *t, uint64_t target)
{
	struct scan *s = ctx;

	if (is_wanted(s->f, target))
		vec_push(&s->found,
			((struct target_candidate){t->source, target, t->table, FROM_TABLE}));
}

static void scan_code(struct scan *s)
{
	for (size_t i = 0; i < s->f->regions.n; i++)
		if (!s->f->regions.v[i].is_stub)
			scan_region(s, &s->f->regions.v[i]);
	image_read_tables(s->f, s->tables.v, s->tables.n, add_entry, s);
	vec_release(&s->tables);
	image_sort(s->found.v, s->found.n, sizeof(*s->found.v));
}

/* --- are they real? ---------------------------------------------------------------------- */

/* "foo.cold" is a part of "foo". */
static bool is_part_of(const struct image_facts *f, uint32_t part_i, uint32_t whole_i)
{
	const char *part, *whole;
	size_t n;

	if (part_i == whole_i)
		return true;
	if (part_i == NO_FUNCTION || !f->functions.v[part_i].is_fragment)
		return false;
	part = image_function_name(f, &f->functions.v[part_i]);
	for (uint32_t i = 0; i < f->functions.v[whole_i].n_names; i++) {
		whole = f->names.v[f->functions.v[whole_i].name_i + i].name;
		n = strlen(whole);
		if (strncmp(part, whole, n) == 0 && part[n] == '.')
			return true;
	}
	return false;
}

static void accept(struct image_facts *f, const struct target_candidate *c, uint32_t source_i)
{
	if (c->from == FROM_CYG) {
		if (source_i != NO_FUNCTION)
			f->functions.v[source_i].calls_cyg = true;
		return;
	}
	/* From another function's code it is the call at a function's end. */
	if (is_start(f, c->target) && !is_part_of(f, source_i, image_function_at(f, c->target)))
		return;
	vec_push(&f->targets, c->target);
}

static bool is_that(const struct image_facts *f, const struct target_candidate *c, uint64_t addr,
	const struct x86_insn *insn)
{
	switch ((enum candidate_from)c->from) {
	case FROM_CALL:
	case FROM_JUMP:
		return insn->has_target && insn->target == c->means;
	case FROM_LEA:
		return insn->disp_at && insn->disp_target == c->means;
	case FROM_CYG:
		return image_callee(f, addr, insn) == CALLEE_CYG_ENTER;
	case FROM_TABLE:
		break;
	}
	return image_means_table(f, addr, insn, c->means);
}

/* Decodes a stretch and decides about the candidates [i, end) in it. */
static void verify_stretch(
	const struct scan *s, size_t i, size_t end, const struct code_stretch *stretch)
{
	struct image_facts *f = s->f;
	struct span code = image_code(f, stretch->start);
	uint64_t addr = stretch->start;
	struct x86_insn insn;

	while (i < end) {
		size_t at = (size_t)(addr - stretch->start);

		if (!x86_decode(&insn, span_sub(code, at, code.n - at), addr, f->is_64))
			break;
		for (; i < end && s->found.v[i].source < addr + insn.length; i++)
			if (is_that(f, &s->found.v[i], addr, &insn))
				accept(f, &s->found.v[i], stretch->function_i);
		addr += insn.length;
	}
	for (; i < end; i++)
		accept(f, &s->found.v[i], stretch->function_i);
}

/* Both are sorted. */
static void verify(const struct scan *s)
{
	const struct image_facts *f = s->f;
	size_t i = 0, end;

	while (i < s->found.n) {
		size_t stretch_i = image_stretch_from(f, s->found.v[i].source);
		const struct code_stretch *stretch =
			stretch_i < f->stretches.n ? &f->stretches.v[stretch_i] : NULL;

		end = i + 1;
		if (!stretch || s->found.v[i].source < stretch->start) {
			accept(s->f, &s->found.v[i], NO_FUNCTION);
		} else {
			while (end < s->found.n && s->found.v[end].source < stretch->end)
				end++;
			verify_stretch(s, i, end, stretch);
		}
		i = end;
	}
}

/* --- data -------------------------------------------------------------------------------- */

static void see_pointer(struct image_facts *f, uint64_t target)
{
	if (is_wanted(f, target) && !is_start(f, target))
		vec_push(&f->targets, target);
}

/* Words of data that are fixed addresses. */
static void scan_data(struct image_facts *f, struct span bytes, uint64_t addr)
{
	size_t step = f->is_64 ? 8 : 4;
	struct cursor c = cursor_of(bytes);

	cursor_skip(&c, (step - addr % step) % step);
	while (cursor_left(&c) >= step)
		see_pointer(f, elf_file_word(f->elf, &c));
}

static void scan_all_data(struct image_facts *f)
{
	for (size_t i = 0; i < f->elf->n_sections && f->elf->type == ET_EXEC; i++) {
		const struct elf_section *s = &f->elf->sections[i];

		if (s->type == SHT_PROGBITS && (s->flags & SHF_ALLOC) &&
			!(s->flags & (SHF_EXECINSTR | SHF_COMPRESSED)) &&
			!image_section_is_list_of_code(s->name))
			scan_data(f, elf_file_section_bytes(f->elf, s), s->addr.v);
	}
}

void image_find_targets(struct image_facts *f, const struct range *ranges, size_t n)
{
	struct scan s = {.f = f};

	if (!n)
		return;
	set_wanted(f, ranges, n, true);
	scan_code(&s);
	verify(&s);
	vec_release(&s.found);
	image_each_pointer(f, see_pointer);
	scan_all_data(f);
	set_wanted(f, ranges, n, false);
	image_sort(f->targets.v, f->targets.n, sizeof(*f->targets.v));
}

/* The first one not below `low`, when it is below `high`. */
static bool find_in(const uint64_t *v, size_t n, uint64_t low, uint64_t high, uint64_t *found)
{
	size_t from = SEARCH(0, n, middle, v[middle] < low);

	if (from == n || v[from] >= high)
		return false;
	*found = v[from];
	return true;
}

bool image_has_target(const struct image_facts *f, uint64_t low, uint64_t high, uint64_t *target)
{
	uint64_t label;
	bool has = find_in(f->targets.v, f->targets.n, low, high, target);

	if (!find_in(f->labels.v, f->labels.n, low, high, &label))
		return has;
	if (!has || label < *target)
		*target = label;
	return true;
}
