/* SPDX-License-Identifier: MIT */
/*
 * Makes images with debug sections in memory. A test writes the bytes of each section into a
 * buffer; dwarf_maker_open puts them into an ELF file whose code lies at CODE_ADDR, and opens it.
 */
#ifndef WEIR_TESTS_DWARF_MAKER_H
#define WEIR_TESTS_DWARF_MAKER_H

#include <stdio.h>

#include "dwarf/source_map.h"
#include "elf_maker.h"

#define CODE_ADDR  0x10000u
#define CODE_BYTES 0x1000u

enum maker_section {
	MAKER_INFO,
	MAKER_ABBREV,
	MAKER_STR,
	MAKER_LINE,
	MAKER_LINE_STR,
	MAKER_ADDR,
	MAKER_STR_OFFSETS,
	MAKER_RANGES,
	MAKER_RNGLISTS,
	MAKER_CU_INDEX,
	MAKER_N_SECTIONS
};

static const char *const maker_names[MAKER_N_SECTIONS] = {"info", "abbrev", "str", "line",
	"line_str", "addr", "str_offsets", "ranges", "rnglists", "cu_index"};

struct dwarf_maker {
	bool is_32;
	bool is_split; /* the sections are named .dwo */
	struct buf of[MAKER_N_SECTIONS];
	struct elf_maker maker;
	struct elf_file elf;
	struct dwarf_debug *debug;
};

static inline struct span dwarf_maker_bytes(struct dwarf_maker *m)
{
	char name[64];
	uint32_t text;

	elf_maker_init(&m->maker, !m->is_32);
	text = elf_maker_code(&m->maker, ".text", CODE_ADDR, CODE_BYTES);
	elf_maker_segment(&m->maker, (struct elf_segment){.type = PT_LOAD,
					     .flags = PF_R | PF_X,
					     .offset = m->maker.sections[text].offset,
					     .addr = {CODE_ADDR},
					     .file_size = CODE_BYTES,
					     .mem_size = CODE_BYTES});
	for (int i = 0; i < MAKER_N_SECTIONS; i++) {
		if (!m->of[i].n)
			continue;
		snprintf(name, sizeof(name), ".debug_%s%s", maker_names[i],
			m->is_split && i != MAKER_CU_INDEX ? ".dwo" : "");
		elf_maker_section(&m->maker, name, SHT_PROGBITS, 0, buf_span(&m->of[i]));
	}
	return elf_maker_finish(&m->maker);
}

static inline int dwarf_maker_open(struct dwarf_maker *m, const char *path, struct err *err)
{
	int rc = elf_file_init(&m->elf, dwarf_maker_bytes(m), err);

	return rc < 0 ? rc : dwarf_debug_open(&m->debug, &m->elf, path, err);
}

static inline void dwarf_maker_release(struct dwarf_maker *m)
{
	dwarf_debug_close(m->debug);
	elf_file_release(&m->elf);
	elf_maker_release(&m->maker);
	for (int i = 0; i < MAKER_N_SECTIONS; i++)
		buf_release(&m->of[i]);
}

/* An abbreviation: pairs of attribute and form, and {0, 0} at the end. */
#define ABBREV(m, code, tag, has_children, ...)                                                    \
	dwarf_maker_abbrev(m, code, tag, has_children, (const int[]){__VA_ARGS__, 0, 0})

static inline void dwarf_maker_abbrev(
	struct dwarf_maker *m, uint64_t code, int tag, int has_children, const int *pairs)
{
	struct buf *b = &m->of[MAKER_ABBREV];

	buf_put_uleb(b, code);
	buf_put_uleb(b, (uint64_t)tag);
	buf_put_u8(b, (uint8_t)has_children);
	for (;; pairs += 2) {
		buf_put_uleb(b, (uint64_t)pairs[0]);
		buf_put_uleb(b, (uint64_t)pairs[1]);
		if (!pairs[0] && !pairs[1])
			return;
		if (pairs[1] ==
			0x21) /* DW_FORM_implicit_const: the value stands in the next pair */
			buf_put_sleb(b, (pairs += 2)[0]);
	}
}

/* Begins a unit whose abbreviations are at `abbrev_offset`; returns its offset. */
static inline size_t dwarf_maker_unit(struct dwarf_maker *m, int version, uint32_t abbrev_offset)
{
	struct buf *b = &m->of[MAKER_INFO];
	size_t at = b->n;
	uint8_t addr = m->is_32 ? 4 : 8;

	buf_put_u32(b, 0);
	buf_put_u16(b, (uint16_t)version);
	if (version >= 5) {
		buf_put_u8(b, 1); /* DW_UT_compile */
		buf_put_u8(b, addr);
	}
	buf_put_u32(b, abbrev_offset);
	if (version < 5)
		buf_put_u8(b, addr);
	return at;
}

/* Writes the length in front of what was put since `at`. */
static inline void dwarf_maker_length(struct buf *b, size_t at)
{
	uint32_t n = (uint32_t)(b->n - at - 4);

	memcpy(b->p + at, &n, sizeof(n));
}

/* The row that holds at an address of the code, or NULL. */
static inline const struct dwarf_row *map_row(const struct dwarf_unit_map *m, uint64_t offset)
{
	const struct dwarf_row *found = NULL;

	for (size_t i = 0; i < m->rows.n; i++)
		if (m->rows.v[i].addr <= CODE_ADDR + offset)
			found = &m->rows.v[i];
	return found && !found->is_hole ? found : NULL;
}

static inline bool text_is(struct dwarf_text text, const char *expected)
{
	return text.n == strlen(expected) && !memcmp(text.p, expected, text.n);
}

/* True when function `i` of the unit is this one. */
static inline bool map_function_is(
	const struct dwarf_unit_map *m, size_t i, const char *name, uint64_t offset, uint64_t end)
{
	return i < m->functions.n && text_is(m->names.v[m->functions.v[i].name], name) &&
	       m->functions.v[i].start == CODE_ADDR + offset &&
	       m->functions.v[i].end == CODE_ADDR + end;
}

#endif
