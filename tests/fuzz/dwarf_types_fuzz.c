/* SPDX-License-Identifier: MIT */
/*
 * The input is debug sections, as in dwarf_info_fuzz.c: a byte of flags, then again and again the
 * number of a section, two bytes of length and so many bytes. They are wrapped in an image. Every
 * entry of it is turned into a type, and some names are looked for; the types must be such that
 * whoever walks them comes to an end.
 */
#include <stdlib.h>

#include "../unit/elf_maker.h"
#include "probe/types/dwarf_type_build.h"

enum { FLAG_32 = 1 };
#define BUDGET_TIMES 16 /* as in dwarf_types.c */
#define TYPES_MAX    2000
#define DEPTH_MAX    200 /* of types inside types: the reader has less */

static const char *const sections[] = {".debug_info", ".debug_abbrev", ".debug_str", ".debug_line",
	".debug_line_str", ".debug_addr", ".debug_str_offsets", ".debug_ranges", ".debug_rnglists",
	".debug_types"};
#define N_SECTIONS (sizeof(sections) / sizeof(sections[0]))

/* By value only: pointers may lead in circles. */
static void check_type(const struct type *t, int depth)
{
	if (!t || depth > DEPTH_MAX)
		abort();
	if (t->kind == TYPE_POINTER && !t->of)
		abort();
	if (t->kind == TYPE_ARRAY)
		check_type(t->of, depth + 1);
	if (t->kind == TYPE_FUNCTION && !t->of)
		abort();
	if (t->kind != TYPE_STRUCT)
		return;
	for (uint32_t i = 0; i < t->n_fields; i++) {
		const struct type_field *f = &t->fields[i];

		if (!f->type || f->bit_offset > 7 || f->bit_size > 64 || (f->name && !f->name[0]))
			abort();
		if (depth < 8) /* each level again, but not all of them for each */
			check_type(f->type, depth + 1);
	}
}

static void check_walks(const struct type *t)
{
	struct type_field f;
	struct buf text = {0};

	check_type(t, 0);
	type_print(t, &text);
	buf_release(&text);
	if (t->kind == TYPE_STRUCT)
		type_find_field(t, "x", &f);
	type_is_same(t, t);
}

/* Every entry, whatever it is. */
static void build_all(struct dwarf_builder *b)
{
	const struct debug_unit *const *units;
	size_t n = die_reader_units(b->reader, false, &units);
	int n_types = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t at = units[i]->first_die;
		struct die d;

		for (; n_types < TYPES_MAX && die_read(b->reader, units[i], at, &d); at = d.next) {
			if (d.tag == DIE_TAG_END)
				continue;
			n_types++;
			if (d.tag == TAG_SUBPROGRAM)
				check_walks(dwarf_build_function(b, &d));
			else if (d.tag == DIE_TAG_VARIABLE)
				check_walks(dwarf_build_type_of(b, &d));
			else
				check_walks(dwarf_build_type(b, &d));
		}
	}
}

static void read_types(struct dwarf_debug *debug, enum mode mode)
{
	struct dwarf_name_index names = {0};
	struct dwarf_builder b = {
		.types = types_new(mode), .reader = die_reader_new(debug), .names = &names};
	static const char *const wanted[] = {"a", "node", "ns::Foo", "target", "x"};
	struct die d;

	die_reader_set_budget(b.reader, (1u << 20) + BUDGET_TIMES * die_reader_bytes(b.reader));
	for (int kind = 0; kind < N_NAME_KINDS; kind++)
		for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
			if (dwarf_name_index_find(&names, b.reader, kind, wanted[i], &d))
				check_walks(dwarf_build_type(&b, &d));
	build_all(&b);
	dwarf_builder_release(&b);
	dwarf_name_index_release(&names);
	die_reader_free(b.reader);
	types_free(b.types);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct cursor c = cursor_of((struct span){data, n});
	bool is_32 = cursor_u8(&c) & FLAG_32;
	struct buf of[N_SECTIONS] = {0};
	struct dwarf_debug *debug = NULL;
	struct elf_maker maker;
	struct elf_file elf = {0};

	while (cursor_left(&c) && !c.failed) {
		uint8_t section = cursor_u8(&c);
		uint16_t length = cursor_u16(&c);
		size_t left = cursor_left(&c);
		struct span bytes = cursor_bytes(&c, length < left ? length : left);

		buf_put(&of[section % N_SECTIONS], bytes.p, bytes.n);
	}
	elf_maker_init(&maker, !is_32);
	for (size_t i = 0; i < N_SECTIONS; i++)
		if (of[i].n)
			elf_maker_section(&maker, sections[i], SHT_PROGBITS, 0, buf_span(&of[i]));
	if (elf_file_init(&elf, elf_maker_finish(&maker), NULL) == 0 &&
		dwarf_debug_open(&debug, &elf, NULL, NULL) == 0)
		read_types(debug, is_32 ? MODE_32 : MODE_64);
	dwarf_debug_close(debug);
	elf_file_release(&elf);
	elf_maker_release(&maker);
	for (size_t i = 0; i < N_SECTIONS; i++)
		buf_release(&of[i]);
	return 0;
}
