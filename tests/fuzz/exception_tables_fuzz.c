/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as exception tables. An ELF file is asked for the landing pads of calls: an answer or
 * none. Other bytes are the tables of an object, moved with code that grows. What could be read and
 * moved must say the same afterwards, at the moved places.
 *
 *	byte 0	how many bytes are inserted each time (* 37)
 *	byte 1	in front of every how many bytes of code
 *	then	for .eh_frame and .gcc_except_table: u16 length, bytes
 *	then	relocations of 6 bytes: which section, symbol and type, u16 offset, u16 addend
 */
#include <stdlib.h>

#include "insert/exception_tables.h"
#include "steps/calls/step_pads.h"

#define ASKED_MAX  200 /* functions of a file */
#define CODE_BYTES 2048
enum { TEXT = 1, COLD, EH, LSDA, N_SECTIONS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void object_init(struct elf_object *o, struct cursor *c)
{
	static const char *const names[] = {
		"", ".text", ".text.unlikely", ".eh_frame", ".gcc_except_table"};
	static const uint32_t types[] = {
		R_X86_64_PC32, R_X86_64_PC64, R_X86_64_64, R_X86_64_32, R_X86_64_NONE};

	*o = (struct elf_object){0};
	for (uint32_t i = 0; i < N_SECTIONS; i++) {
		struct object_section s = {.name = names[i], .type = SHT_PROGBITS, .align = 8};

		if (i == EH || i == LSDA) {
			s.data = cursor_bytes(c, cursor_u16(c));
			s.size = s.data.n;
		} else if (i) {
			s.flags = SHF_ALLOC | SHF_EXECINSTR;
			s.size = CODE_BYTES;
		}
		vec_push(&o->sections, s);
		vec_push(&o->symbols,
			((struct object_symbol){.name = "", .type = STT_SECTION, .section = i}));
	}
	while (!c->failed && cursor_left(c) >= 6) {
		uint32_t to = cursor_u8(c) & 1 ? LSDA : EH;
		uint8_t bits = cursor_u8(c);
		struct object_reloc r = {cursor_u16(c), types[(bits >> 3) % 5],
			(bits & 7) % N_SECTIONS, (int16_t)cursor_u16(c)};

		vec_push(&o->sections.v[to].relocs, r);
	}
	object_section_sort_relocs(&o->sections.v[EH]);
	object_section_sort_relocs(&o->sections.v[LSDA]);
}

static void object_release(struct elf_object *o)
{
	for (size_t i = 0; i < o->sections.n; i++) {
		buf_release(&o->sections.v[i].owned);
		vec_release(&o->sections.v[i].relocs);
	}
	vec_release(&o->sections);
	vec_release(&o->symbols);
}

static void grow(struct moved *m, uint64_t bytes, uint64_t every)
{
	for (uint32_t section = TEXT; section <= COLD; section++) {
		uint64_t label = 0;

		for (uint64_t at = 0; bytes && at < CODE_BYTES; at += every) {
			moved_add(m, section, at, label, label + bytes);
			moved_add_leave(m, section, at, at + 1);
			moved_add_value(m, section,
				&(struct moved_value){at, label + 1, label + bytes - 1,
					at & 1 ? MOVED_REG_RSP : MOVED_REG_RAX, MOVED_REG_RSP, 136,
					(uint8_t)(at / 2 % 3)});
			label += bytes + every;
		}
	}
}

/* As relocate.c does it. */
static void follow(struct elf_object *o, const struct moved *m)
{
	for (uint32_t i = EH; i <= LSDA; i++)
		for (size_t k = 0; k < o->sections.v[i].relocs.n; k++) {
			struct object_reloc *r = &o->sections.v[i].relocs.v[k];

			if (r->addend >= 0)
				r->addend = (int64_t)moved_label(m, r->symbol, (uint64_t)r->addend);
		}
	for (uint32_t i = TEXT; i <= COLD; i++)
		o->sections.v[i].size = moved_label(m, i, CODE_BYTES);
}

static void compare(const struct exception_tables *old, const struct exception_tables *new,
	const struct moved *m)
{
	if (old->ranges.n != new->ranges.n || old->landing_pads.n != new->landing_pads.n)
		abort();
	for (size_t i = 0; i < old->ranges.n; i++) {
		const struct code_range *x = &old->ranges.v[i], *y = &new->ranges.v[i];

		if (x->section != y->section || moved_label(m, x->section, x->start) != y->start ||
			moved_label(m, x->section, x->start + x->size) != y->start + y->size)
			abort();
	}
	for (size_t i = 0; i < old->landing_pads.n; i++) {
		const struct code_place *x = &old->landing_pads.v[i], *y = &new->landing_pads.v[i];

		if (x->section != y->section || moved_label(m, x->section, x->offset) != y->offset)
			abort();
	}
}

static void check_object(struct span input)
{
	struct cursor c = cursor_of(input);
	uint64_t bytes = 37 * cursor_u8(&c), every = 1 + cursor_u8(&c);
	struct exception_tables old, new;
	struct elf_object o;
	struct moved m;
	struct err err = {0};

	object_init(&o, &c);
	moved_init(&m, N_SECTIONS);
	if (!exception_tables_read(&old, &o, &err)) {
		grow(&m, bytes, every);
		if (!exception_tables_move(&o, &m, &err)) {
			follow(&o, &m);
			if (exception_tables_read(&new, &o, &err))
				abort();
			compare(&old, &new, &m);
			exception_tables_release(&new);
		}
		exception_tables_release(&old);
	} else if (!err.text[0]) {
		abort();
	}
	moved_release(&m);
	object_release(&o);
}

static void check_image(const struct elf_file *elf)
{
	struct step_pad_table t = {0};

	step_pad_table_init(&t, elf);
	for (size_t i = 0; i < t.functions.n && i < ASKED_MAX; i++) {
		const struct step_pad_function *f = &t.functions.v[i];
		uint64_t pad = 1;

		if (f->end <= f->start || (i && f->start < f[-1].start))
			abort();
		for (uint64_t k = 0; k < 64 && k < f->end - f->start; k += 5)
			step_pad_table_find(&t, elf, f->start + k, &pad);
		step_pad_table_find(&t, elf, f->end - 1, &pad);
	}
	step_pad_table_release(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span bytes = {data, n};
	struct elf_file elf;

	if (elf_file_init(&elf, bytes, NULL) < 0) {
		check_object(bytes);
		return 0;
	}
	check_image(&elf);
	elf_file_release(&elf);
	return 0;
}
