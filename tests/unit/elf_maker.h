/* SPDX-License-Identifier: MIT */
/*
 * Makes small ELF files in memory, of either class, for tests that need one with something odd in
 * it. Sections get their bytes when they are added; the tables come last. Every number can be
 * changed before elf_maker_finish.
 */
#ifndef WEIR_TESTS_ELF_MAKER_H
#define WEIR_TESTS_ELF_MAKER_H

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "elf/elf_file.h"

#define ELF_MAKER_TABLE_MAX 32

struct elf_maker {
	bool is_64;
	uint16_t type, machine;
	struct buf out;	  /* the file so far, header included */
	struct buf shstr; /* section names */
	struct buf names; /* symbol names */
	struct buf symbols;
	struct elf_section sections[ELF_MAKER_TABLE_MAX];
	uint32_t section_names[ELF_MAKER_TABLE_MAX];
	uint32_t n_sections;
	struct elf_segment segments[ELF_MAKER_TABLE_MAX];
	uint32_t n_segments;
	bool extended;	  /* section counts go into section 0 */
	bool no_sections; /* write no section headers */
};

static inline void elf_maker_word(const struct elf_maker *m, struct buf *b, uint64_t v)
{
	if (m->is_64)
		buf_put_u64(b, v);
	else
		buf_put_u32(b, (uint32_t)v);
}

static inline void elf_maker_init(struct elf_maker *m, bool is_64)
{
	*m = (struct elf_maker){.is_64 = is_64, .type = ET_DYN, .n_sections = 1};
	m->machine = is_64 ? EM_X86_64 : EM_386;
	for (int i = 0; i < (is_64 ? 64 : 52); i++)
		buf_put_u8(&m->out, 0);
	buf_put_u8(&m->shstr, 0);
	buf_put_u8(&m->names, 0);
	for (int i = 0; i < (is_64 ? 24 : 16); i++)
		buf_put_u8(&m->symbols, 0);
}

/* Returns the section's index; its fields may be changed through m->sections. */
static inline uint32_t elf_maker_section(
	struct elf_maker *m, const char *name, uint32_t type, uint64_t addr, struct span bytes)
{
	uint32_t i = m->n_sections++;

	while (m->out.n % 8)
		buf_put_u8(&m->out, 0);
	m->section_names[i] = (uint32_t)m->shstr.n;
	buf_put(&m->shstr, name, strlen(name) + 1);
	m->sections[i] = (struct elf_section){
		.type = type, .addr = {addr}, .offset = {m->out.n}, .size = bytes.n, .align = 4};
	if (type != SHT_NOBITS && bytes.n)
		buf_put(&m->out, bytes.p, bytes.n);
	return i;
}

/* A section of `n` bytes of executable code (all nop). */
static inline uint32_t elf_maker_code(
	struct elf_maker *m, const char *name, uint64_t addr, size_t n)
{
	uint8_t *code = malloc(n);
	uint32_t i;

	memset(code, 0x90, n);
	i = elf_maker_section(m, name, SHT_PROGBITS, addr, (struct span){code, n});
	m->sections[i].flags = SHF_ALLOC | SHF_EXECINSTR;
	free(code);
	return i;
}

static inline void elf_maker_segment(struct elf_maker *m, struct elf_segment s)
{
	m->segments[m->n_segments++] = s;
}

static inline void elf_maker_symbol(struct elf_maker *m, const char *name, uint64_t value,
	uint64_t size, uint8_t info, uint16_t shndx)
{
	struct buf *b = &m->symbols;

	buf_put_u32(b, (uint32_t)m->names.n);
	if (!m->is_64) {
		buf_put_u32(b, (uint32_t)value);
		buf_put_u32(b, (uint32_t)size);
	}
	buf_put_u8(b, info);
	buf_put_u8(b, 0);
	buf_put_u16(b, shndx);
	if (m->is_64) {
		buf_put_u64(b, value);
		buf_put_u64(b, size);
	}
	buf_put(&m->names, name, strlen(name) + 1);
}

/* Writes the symbols collected so far as a table with its names. */
static inline uint32_t elf_maker_symbols(struct elf_maker *m, const char *name, uint32_t type)
{
	uint32_t i = elf_maker_section(m, name, type, 0, buf_span(&m->symbols));

	m->sections[i].link = elf_maker_section(
		m, type == SHT_DYNSYM ? ".dynstr" : ".strtab", SHT_STRTAB, 0, buf_span(&m->names));
	m->sections[i].entsize = m->is_64 ? 24 : 16;
	return i;
}

static inline void elf_maker_put_section(const struct elf_maker *m, struct buf *b, uint32_t i)
{
	const struct elf_section *s = &m->sections[i];

	buf_put_u32(b, m->section_names[i]);
	buf_put_u32(b, s->type);
	elf_maker_word(m, b, s->flags);
	elf_maker_word(m, b, s->addr.v);
	elf_maker_word(m, b, s->offset.v);
	elf_maker_word(m, b, s->size);
	buf_put_u32(b, s->link);
	buf_put_u32(b, s->info);
	elf_maker_word(m, b, s->align);
	elf_maker_word(m, b, s->entsize);
}

static inline void elf_maker_put_segment(const struct elf_maker *m, struct buf *b, uint32_t i)
{
	const struct elf_segment *s = &m->segments[i];

	buf_put_u32(b, s->type);
	if (m->is_64)
		buf_put_u32(b, s->flags);
	elf_maker_word(m, b, s->offset.v);
	elf_maker_word(m, b, s->addr.v);
	elf_maker_word(m, b, s->addr.v);
	elf_maker_word(m, b, s->file_size);
	elf_maker_word(m, b, s->mem_size);
	if (!m->is_64)
		buf_put_u32(b, s->flags);
	elf_maker_word(m, b, s->align);
}

static inline void elf_maker_put_header(struct elf_maker *m, uint64_t phoff, uint64_t shoff)
{
	struct buf h = {0};
	uint32_t shstrndx = m->n_sections - 1;

	buf_put(&h, ELFMAG, SELFMAG);
	buf_put_u8(&h, m->is_64 ? ELFCLASS64 : ELFCLASS32);
	buf_put_u8(&h, ELFDATA2LSB);
	buf_put_u8(&h, EV_CURRENT);
	while (h.n < EI_NIDENT)
		buf_put_u8(&h, 0);
	buf_put_u16(&h, m->type);
	buf_put_u16(&h, m->machine);
	buf_put_u32(&h, EV_CURRENT);
	elf_maker_word(m, &h, 0x1234);
	elf_maker_word(m, &h, phoff);
	elf_maker_word(m, &h, shoff);
	buf_put_u32(&h, 0);
	buf_put_u16(&h, m->is_64 ? 64 : 52);
	buf_put_u16(&h, m->is_64 ? 56 : 32);
	buf_put_u16(&h, (uint16_t)(m->extended ? PN_XNUM : m->n_segments));
	buf_put_u16(&h, m->is_64 ? 64 : 40);
	buf_put_u16(&h, (uint16_t)(m->extended || m->no_sections ? 0 : m->n_sections));
	buf_put_u16(&h, (uint16_t)(m->extended ? SHN_XINDEX : shstrndx));
	memcpy(m->out.p, h.p, h.n);
	buf_release(&h);
}

/* The file, owned by the maker. */
static inline struct span elf_maker_finish(struct elf_maker *m)
{
	uint64_t phoff, shoff;
	uint32_t names = elf_maker_section(m, ".shstrtab", SHT_STRTAB, 0, (struct span){NULL, 0});

	m->sections[names].size = m->shstr.n;
	buf_put(&m->out, m->shstr.p, m->shstr.n);
	if (m->extended) {
		m->sections[0].size = m->n_sections;
		m->sections[0].link = names;
		m->sections[0].info = m->n_segments;
	}
	phoff = m->out.n;
	for (uint32_t i = 0; i < m->n_segments; i++)
		elf_maker_put_segment(m, &m->out, i);
	shoff = m->no_sections ? 0 : m->out.n;
	for (uint32_t i = 0; i < m->n_sections && !m->no_sections; i++)
		elf_maker_put_section(m, &m->out, i);
	elf_maker_put_header(m, m->n_segments ? phoff : 0, shoff);
	return buf_span(&m->out);
}

static inline void elf_maker_release(struct elf_maker *m)
{
	buf_release(&m->out);
	buf_release(&m->shstr);
	buf_release(&m->names);
	buf_release(&m->symbols);
}

#endif
