/* SPDX-License-Identifier: MIT */
/*
 * The ELF header, the section and segment tables, and the ways from an address or a file offset to
 * bytes.
 *
 * Invariants:
 * 1. Every number comes through a cursor over the bytes, so alignment and class do not matter.
 * 2. A table is never larger in memory than the bytes that are really there allow.
 * 3. Section and segment fields are kept as the file says; whoever uses them asks span_sub.
 */
#include "elf/elf_file.h"

#include <elf.h>
#include <stdlib.h>

#include "base/mem.h"

#define PAGE_BYTES	4096u
#define HEADER_BYTES_32 52
#define HEADER_BYTES_64 64

/* The header fields that are needed only while the tables are read. */
struct header {
	uint64_t phoff, shoff;
	uint32_t phentsize, phnum;
	uint32_t shentsize, shnum, shstrndx;
};

static int check_ident(struct span b, struct err *err)
{
	if (b.n < EI_NIDENT || memcmp(b.p, ELFMAG, SELFMAG) != 0) {
		struct cursor c = cursor_of(b);
		uint8_t first[4] = {cursor_u8(&c), cursor_u8(&c), cursor_u8(&c), cursor_u8(&c)};

		if (b.n < EI_NIDENT)
			return err_set(
				err, ERR_FORMAT, "is not an ELF file (it has only %zu bytes)", b.n);
		return err_set(err, ERR_FORMAT,
			"is not an ELF file (first bytes are %02x %02x %02x %02x)", first[0],
			first[1], first[2], first[3]);
	}
	if (b.p[EI_DATA] == ELFDATA2MSB)
		return err_set(err, ERR_UNSUPPORTED,
			"is a big-endian ELF file, but only little-endian ones can be read");
	if (b.p[EI_DATA] != ELFDATA2LSB)
		return err_set(
			err, ERR_FORMAT, "is an ELF file of unknown byte order %u", b.p[EI_DATA]);
	if (b.p[EI_CLASS] != ELFCLASS32 && b.p[EI_CLASS] != ELFCLASS64)
		return err_set(err, ERR_FORMAT,
			"is an ELF file of unknown class %u, not 32 or 64 bit", b.p[EI_CLASS]);
	return 0;
}

static int read_header(struct elf_file *elf, struct header *h, struct err *err)
{
	struct cursor c = cursor_of(elf->bytes);

	cursor_skip(&c, EI_NIDENT);
	elf->type = cursor_u16(&c);
	elf->machine = cursor_u16(&c);
	cursor_skip(&c, 4); /* e_version */
	elf->entry.v = elf_file_word(elf, &c);
	h->phoff = elf_file_word(elf, &c);
	h->shoff = elf_file_word(elf, &c);
	cursor_skip(&c, 4 + 2); /* e_flags, e_ehsize */
	h->phentsize = cursor_u16(&c);
	h->phnum = cursor_u16(&c);
	h->shentsize = cursor_u16(&c);
	h->shnum = cursor_u16(&c);
	h->shstrndx = cursor_u16(&c);
	if (c.failed)
		return err_set(err, ERR_FORMAT,
			"is an ELF file cut short within its header (%zu bytes of %d)",
			elf->bytes.n, elf->is_64 ? HEADER_BYTES_64 : HEADER_BYTES_32);
	return 0;
}

static struct elf_section read_section(
	const struct elf_file *elf, struct span entry, uint32_t *name_offset)
{
	struct cursor c = cursor_of(entry);
	struct elf_section s = {.name = ""};

	*name_offset = cursor_u32(&c);
	s.type = cursor_u32(&c);
	s.flags = elf_file_word(elf, &c);
	s.addr.v = elf_file_word(elf, &c);
	s.offset.v = elf_file_word(elf, &c);
	s.size = elf_file_word(elf, &c);
	s.link = cursor_u32(&c);
	s.info = cursor_u32(&c);
	s.align = elf_file_word(elf, &c);
	s.entsize = elf_file_word(elf, &c);
	return s;
}

static struct elf_segment read_segment(const struct elf_file *elf, struct span entry)
{
	struct cursor c = cursor_of(entry);
	struct elf_segment s = {0};

	s.type = cursor_u32(&c);
	if (elf->is_64)
		s.flags = cursor_u32(&c);
	s.offset.v = elf_file_word(elf, &c);
	s.addr.v = elf_file_word(elf, &c);
	elf_file_word(elf, &c); /* p_paddr */
	s.file_size = elf_file_word(elf, &c);
	s.mem_size = elf_file_word(elf, &c);
	if (!elf->is_64)
		s.flags = cursor_u32(&c);
	s.align = elf_file_word(elf, &c);
	return s;
}

/* How many of `n` entries lie within the file, and not more than `max`. */
static size_t entries_present(
	const struct elf_file *elf, uint64_t offset, uint64_t n, uint32_t entry_bytes, size_t max)
{
	uint64_t present;

	if (!offset || offset >= elf->bytes.n)
		return 0;
	present = (elf->bytes.n - offset) / entry_bytes;
	if (n > present)
		n = present;
	return n > max ? max : (size_t)n;
}

/* Section 0 holds the numbers that do not fit into the header ("extended numbering"). */
static void read_extended_numbers(const struct elf_file *elf, struct header *h)
{
	struct elf_section zero;
	uint32_t name_offset;
	struct span entry = span_sub(elf->bytes, h->shoff, h->shentsize);

	if (!h->shoff || !entry.p)
		return;
	zero = read_section(elf, entry, &name_offset);
	if (h->shnum == 0)
		h->shnum = zero.size > UINT32_MAX ? UINT32_MAX : (uint32_t)zero.size;
	if (h->shstrndx == SHN_XINDEX)
		h->shstrndx = zero.link;
	if (h->phnum == PN_XNUM)
		h->phnum = zero.info;
}

static void name_sections(struct elf_file *elf, const uint32_t *name_offsets, uint32_t shstrndx)
{
	struct span names;

	if (shstrndx >= elf->n_sections)
		return;
	names = elf_file_section_bytes(elf, &elf->sections[shstrndx]);
	while (names.n && names.p[names.n - 1] != 0)
		names.n--; /* now every offset inside is a terminated text */
	for (size_t i = 0; i < elf->n_sections; i++) {
		if (name_offsets[i] < names.n)
			elf->sections[i].name = (const char *)names.p + name_offsets[i];
	}
}

static void read_sections(struct elf_file *elf, const struct header *h)
{
	uint32_t entry_bytes = elf->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	uint32_t *name_offsets;
	size_t n;

	if (h->shentsize < entry_bytes)
		return;
	n = entries_present(elf, h->shoff, h->shnum, h->shentsize, ELF_SECTIONS_MAX);
	if (!n)
		return;
	elf->sections = mem_calloc(n, sizeof(*elf->sections));
	name_offsets = mem_calloc(n, sizeof(*name_offsets));
	for (size_t i = 0; i < n; i++) {
		struct span entry =
			span_sub(elf->bytes, h->shoff + i * (uint64_t)h->shentsize, entry_bytes);

		elf->sections[i] = read_section(elf, entry, &name_offsets[i]);
	}
	elf->n_sections = n;
	name_sections(elf, name_offsets, h->shstrndx);
	free(name_offsets);
}

static void read_segments(struct elf_file *elf, const struct header *h)
{
	uint32_t entry_bytes = elf->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	size_t n;

	if (h->phentsize < entry_bytes)
		return;
	n = entries_present(elf, h->phoff, h->phnum, h->phentsize, ELF_SEGMENTS_MAX);
	if (!n)
		return;
	elf->segments = mem_calloc(n, sizeof(*elf->segments));
	for (size_t i = 0; i < n; i++) {
		struct span entry =
			span_sub(elf->bytes, h->phoff + i * (uint64_t)h->phentsize, entry_bytes);

		elf->segments[i] = read_segment(elf, entry);
	}
	elf->n_segments = n;
}

int elf_file_init(struct elf_file *elf, struct span bytes, struct err *err)
{
	struct elf_file e = {.bytes = bytes};
	struct header h;
	int rc = check_ident(bytes, err);

	if (rc < 0)
		return rc;
	e.is_64 = bytes.p[EI_CLASS] == ELFCLASS64;
	rc = read_header(&e, &h, err);
	if (rc < 0)
		return rc;
	read_extended_numbers(&e, &h);
	read_sections(&e, &h);
	read_segments(&e, &h);
	*elf = e;
	return 0;
}

void elf_file_release(struct elf_file *elf)
{
	free(elf->sections);
	free(elf->segments);
	*elf = (struct elf_file){0};
}

const struct elf_section *elf_file_find_section(const struct elf_file *elf, const char *name)
{
	for (size_t i = 0; i < elf->n_sections; i++) {
		if (strcmp(elf->sections[i].name, name) == 0)
			return &elf->sections[i];
	}
	return NULL;
}

struct span elf_file_section_bytes(const struct elf_file *elf, const struct elf_section *s)
{
	if (s->type == SHT_NOBITS || s->type == SHT_NULL)
		return (struct span){NULL, 0};
	return span_sub(elf->bytes, s->offset.v, s->size);
}

struct span elf_file_bytes_at(const struct elf_file *elf, struct iaddr addr)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t into = addr.v - s->addr.v;
		uint64_t left;

		if (s->type != PT_LOAD || addr.v < s->addr.v || into >= s->file_size)
			continue;
		if (s->offset.v > elf->bytes.n || into >= elf->bytes.n - s->offset.v)
			continue;
		left = elf->bytes.n - s->offset.v - into;
		if (left > s->file_size - into)
			left = s->file_size - into;
		return span_sub(elf->bytes, s->offset.v + into, left);
	}
	return (struct span){NULL, 0};
}

/* How well a segment fits a mapping that starts at `offset`: 0 not at all, higher is better. */
static int segment_fit(const struct elf_segment *s, uint64_t offset)
{
	uint64_t start = s->offset.v & ~(uint64_t)(PAGE_BYTES - 1);
	uint64_t end;
	int fit = 1;

	if (s->type != PT_LOAD || !s->file_size ||
		__builtin_add_overflow(s->offset.v, s->file_size, &end))
		return 0;
	if (offset < start || (offset >= end && offset - end >= -end % PAGE_BYTES))
		return 0;
	if (s->flags & PF_X)
		fit += 2;
	if (offset >= s->offset.v && offset < end)
		fit += 1;
	return fit;
}

bool elf_file_offset_to_iaddr(const struct elf_file *elf, struct foff offset, struct iaddr *out)
{
	const struct elf_segment *best = NULL;
	int best_fit = 0;

	for (size_t i = 0; i < elf->n_segments; i++) {
		int fit = segment_fit(&elf->segments[i], offset.v);

		if (fit > best_fit) {
			best_fit = fit;
			best = &elf->segments[i];
		}
	}
	if (!best)
		return false;
	/* Wraps when the offset is before the segment within its page, as it should. */
	out->v = best->addr.v + (offset.v - best->offset.v);
	return true;
}
