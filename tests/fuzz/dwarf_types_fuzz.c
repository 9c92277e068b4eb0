/* SPDX-License-Identifier: MIT */
/*
 * The input is debug sections, as in dwarf_info_fuzz.c: a byte of flags, then again and again the
 * number of a section, two bytes of length and so many bytes. They are wrapped in an image. Every
 * entry of it is turned into a type, and some names are looked for; the types must be such that
 * whoever walks them comes to an end.
 */
#include <stdlib.h>

#include "../unit/elf_maker.h"
#include "probe/types/dwarf_place.h"

enum { FLAG_32 = 1 };
#define BUDGET_TIMES 16 /* as in dwarf_types.c */
#define TYPES_MAX    2000
#define DEPTH_MAX    200 /* of types inside types: the reader has less */

static const char *const sections[] = {".debug_info", ".debug_abbrev", ".debug_str", ".debug_line",
	".debug_line_str", ".debug_addr", ".debug_str_offsets", ".debug_ranges", ".debug_rnglists",
	".debug_types", ".debug_loc", ".debug_loclists", ".text"};
#define TEXT_SECTION (N_SECTIONS - 1)
#define TEXT_ADDR    0x1000
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

static void check_place(const struct value_place *p)
{
	uint64_t bytes = 0;

	if (p->kind == VALUE_UNKNOWN && !p->why)
		abort();
	if (p->n_parts > VALUE_PARTS_MAX)
		abort();
	for (uint32_t i = 0; i < p->n_parts; i++)
		bytes += p->parts[i].bytes;
	if (p->kind == VALUE_IN_PARTS && bytes != p->bytes)
		abort();
}

/* The places of a function's parameters at its first instruction, and behind it. */
static void find_places(struct place_source *source, struct dwarf_builder *b, const struct die *d)
{
	struct place_finder f = {.source = source,
		.builder = b,
		.mode = types_mode(b->types),
		.function = *d};
	struct call_facts call = {.function = dwarf_build_function(b, d)};

	call.places = mem_calloc(call.function->n_fields + 1, sizeof(*call.places));
	die_addr(d, DIE_LOW_PC, &f.entry);
	for (f.addr = f.entry; f.addr < f.entry + 9; f.addr += 4) {
		f.is_followed = false;
		dwarf_call_places(&f, &call);
		for (uint32_t i = 0; i < call.function->n_fields; i++)
			check_place(&call.places[i]);
	}
	free(call.places);
}

/* Every entry, whatever it is. */
static void build_all(struct place_source *source, struct dwarf_builder *b)
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
			if (d.tag == TAG_SUBPROGRAM) {
				check_walks(dwarf_build_function(b, &d));
				find_places(source, b, &d);
			} else if (d.tag == DIE_TAG_VARIABLE) {
				check_walks(dwarf_build_type_of(b, &d));
			} else {
				check_walks(dwarf_build_type(b, &d));
			}
		}
	}
}

static void read_types(struct dwarf_debug *debug, const struct elf_file *elf, enum mode mode)
{
	struct place_source source = {.elf = elf, .lists.debug = debug};
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
	build_all(&source, &b);
	place_source_release(&source);
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
	uint32_t at = 0;

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
			at = elf_maker_section(&maker, sections[i], SHT_PROGBITS,
				i == TEXT_SECTION ? TEXT_ADDR : 0, buf_span(&of[i]));
	if (of[TEXT_SECTION].n) /* the last one */
		elf_maker_segment(&maker, (struct elf_segment){.type = PT_LOAD,
						  .flags = PF_R | PF_X,
						  .offset = maker.sections[at].offset,
						  .addr = {TEXT_ADDR},
						  .file_size = of[TEXT_SECTION].n,
						  .mem_size = of[TEXT_SECTION].n});
	if (elf_file_init(&elf, elf_maker_finish(&maker), NULL) == 0 &&
		dwarf_debug_open(&debug, &elf, NULL, NULL) == 0)
		read_types(debug, &elf, is_32 ? MODE_32 : MODE_64);
	dwarf_debug_close(debug);
	elf_file_release(&elf);
	elf_maker_release(&maker);
	for (size_t i = 0; i < N_SECTIONS; i++)
		buf_release(&of[i]);
	return 0;
}
