/* SPDX-License-Identifier: MIT */
/*
 * The symbols of an archive's member that belong into its index: the globals that an ELF file
 * defines, of 32 or 64 bits, little endian, with any number of sections. A light scan: nothing is
 * allocated, and only the headers on the way to the symbol table are looked at.
 */
#include <elf.h>

#include "elf/archive_parts.h"

/* The global that a GCC object with nothing but code for link-time optimisation has. */
#define LTO_MARK "__gnu_lto_slim"

struct section {
	uint32_t type, link;
	uint64_t size;
	struct span contents; /* empty when it does not fit the file */
};

struct scan {
	struct span bytes;
	bool is_64;
	uint64_t headers_at, header_bytes, n_sections;
	struct span symbols, names, wide_sections; /* .symtab, .strtab, .symtab_shndx */
};

static uint64_t word(const struct scan *s, struct cursor *c)
{
	return s->is_64 ? cursor_u64(c) : cursor_u32(c);
}

static struct section section_at(const struct scan *s, uint64_t i)
{
	struct cursor c =
		cursor_of(span_sub(s->bytes, s->headers_at + i * s->header_bytes, s->header_bytes));
	uint64_t word_bytes = s->is_64 ? 8 : 4, offset;
	struct section section = {0};

	cursor_skip(&c, 4);
	section.type = cursor_u32(&c);
	cursor_skip(&c, 2 * word_bytes); /* flags, address */
	offset = word(s, &c);
	section.size = word(s, &c);
	section.link = cursor_u32(&c);
	if (!c.failed && section.type != SHT_NULL && section.type != SHT_NOBITS)
		section.contents = span_sub(s->bytes, offset, section.size);
	return section;
}

/* False when the bytes are no ELF file that this can read. */
static bool read_file_header(struct scan *s, struct span bytes)
{
	struct cursor c = cursor_of(bytes);
	const uint8_t *ident = cursor_bytes(&c, EI_NIDENT).p;

	if (!ident || memcmp(ident, ELFMAG, SELFMAG) || ident[EI_DATA] != ELFDATA2LSB ||
		(ident[EI_CLASS] != ELFCLASS64 && ident[EI_CLASS] != ELFCLASS32))
		return false;
	*s = (struct scan){.bytes = bytes, .is_64 = ident[EI_CLASS] == ELFCLASS64};
	cursor_skip(&c, 8); /* type, machine, version */
	word(s, &c);	    /* entry */
	word(s, &c);	    /* segments */
	s->headers_at = word(s, &c);
	cursor_skip(&c, 10); /* flags, sizes of this header and of segments */
	s->header_bytes = cursor_u16(&c);
	s->n_sections = cursor_u16(&c);
	if (c.failed || s->headers_at > bytes.n ||
		s->header_bytes < (s->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)))
		return false;
	if (!s->n_sections && s->headers_at)
		s->n_sections = section_at(s, 0).size; /* it does not fit 16 bits */
	return s->n_sections <= (bytes.n - s->headers_at) / s->header_bytes;
}

static bool find_symbols(struct scan *s)
{
	uint64_t table = 0;
	struct section section;

	for (uint64_t i = 1; i < s->n_sections && !table; i++) {
		section = section_at(s, i);
		if (section.type == SHT_SYMTAB)
			table = i;
	}
	if (!table || section.link >= s->n_sections)
		return false;
	s->symbols = section.contents;
	s->names = section_at(s, section.link).contents;
	while (s->names.n && s->names.p[s->names.n - 1] != 0)
		s->names.n--; /* so that every offset begins a text with an end */
	for (uint64_t i = 1; i < s->n_sections; i++) {
		section = section_at(s, i);
		if (section.type == SHT_SYMTAB_SHNDX && section.link == table)
			s->wide_sections = section.contents;
	}
	return true;
}

/* The name of symbol `i` when other files can refer to it as defined here, else NULL. */
static const char *exported_name(const struct scan *s, size_t i)
{
	size_t each = s->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	struct cursor c = cursor_of(span_sub(s->symbols, i * each, each));
	uint32_t name = cursor_u32(&c), section;
	uint8_t bind;

	if (!s->is_64)
		cursor_skip(&c, 8);
	bind = ELF64_ST_BIND(cursor_u8(&c));
	cursor_skip(&c, 1);
	section = cursor_u16(&c);
	if (section == SHN_XINDEX && s->wide_sections.n) {
		c = cursor_of(span_sub(s->wide_sections, i * 4, 4));
		section = cursor_u32(&c);
	}
	if (c.failed || section == SHN_UNDEF || name >= s->names.n || !s->names.p[name] ||
		(bind != STB_GLOBAL && bind != STB_WEAK && bind != STB_GNU_UNIQUE))
		return NULL;
	return (const char *)s->names.p + name;
}

bool archive_each_symbol(
	struct span bytes, archive_symbol_function *each, void *ctx, uint32_t member)
{
	bool says_all = true;
	struct scan s;
	size_t n;

	if (!read_file_header(&s, bytes) || !find_symbols(&s))
		return false;
	n = s.symbols.n / (s.is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
	for (size_t i = 1; i < n; i++) {
		const char *name = exported_name(&s, i);

		if (name && !strcmp(name, LTO_MARK))
			says_all = false;
		else if (name)
			each(ctx, member, name);
	}
	return says_all;
}
