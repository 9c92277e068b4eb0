/* SPDX-License-Identifier: MIT */
/*
 * Three ways a section may be compressed: SHF_COMPRESSED with zlib or zstd, and the older name
 * .zdebug_* with "ZLIB" and a size in big-endian order in front.
 */
#include "dwarf/debug_sections.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define INFLATED_MAX	  ((uint64_t)16 << 30) /* bytes of one file's sections, uncompressed */
#define INFLATED_TIMES	  64 /* debug sections shrink to a third, rarely to a 20th */
#define INFLATED_AT_LEAST (1u << 20)

static const char *const section_names[DEBUG_N_SECTIONS] = {
	[DEBUG_INFO] = "info",
	[DEBUG_ABBREV] = "abbrev",
	[DEBUG_STR] = "str",
	[DEBUG_LINE] = "line",
	[DEBUG_LINE_STR] = "line_str",
	[DEBUG_ADDR] = "addr",
	[DEBUG_STR_OFFSETS] = "str_offsets",
	[DEBUG_RANGES] = "ranges",
	[DEBUG_RNGLISTS] = "rnglists",
	[DEBUG_CU_INDEX] = "cu_index",
};

static uint64_t inflated_limit(const struct dwarf_file *f, uint64_t packed)
{
	uint64_t left = f->n_inflated < INFLATED_MAX ? INFLATED_MAX - f->n_inflated : 0;
	uint64_t limit = packed > INFLATED_MAX / INFLATED_TIMES
				 ? INFLATED_MAX
				 : INFLATED_AT_LEAST + packed * INFLATED_TIMES;

	return limit < left ? limit : left;
}

static int inflate_zdebug(
	struct dwarf_file *f, const struct elf_section *s, struct span *out, struct err *err)
{
	struct span in = elf_file_section_bytes(f->elf, s);
	struct cursor c = cursor_of(in);
	const uint8_t *magic = cursor_bytes(&c, 4).p;
	uint64_t size = __builtin_bswap64(cursor_u64(&c));
	uint8_t *p;

	if (c.failed || memcmp(magic, "ZLIB", 4))
		return err_set(err, ERR_FORMAT, "section %s has no compression header", s->name);
	if (size > inflated_limit(f, in.n))
		return err_set(err, ERR_LIMIT, "section %s: would be %llu bytes from %zu", s->name,
			(unsigned long long)size, in.n);
	p = mem_alloc(size);
	vec_push(&f->inflated, p);
	f->n_inflated += size;
	if (!elf_inflate_zlib(cursor_bytes(&c, cursor_left(&c)), p, size))
		return err_set(
			err, ERR_FORMAT, "section %s: the compressed bytes are damaged", s->name);
	*out = (struct span){p, size};
	return 0;
}

static int section_bytes(
	struct dwarf_file *f, const struct elf_section *s, struct span *out, struct err *err)
{
	uint8_t *p;
	size_t n;
	int rc;

	if (!strncmp(s->name, ".zdebug_", 8))
		return inflate_zdebug(f, s, out, err);
	if (!(s->flags & SHF_COMPRESSED)) {
		*out = elf_file_section_bytes(f->elf, s);
		return 0;
	}
	rc = elf_section_inflate(f->elf, s, inflated_limit(f, s->size), &p, &n, err);
	if (rc < 0)
		return rc;
	vec_push(&f->inflated, p);
	f->n_inflated += n;
	*out = (struct span){p, n};
	return 0;
}

int dwarf_file_section(struct dwarf_file *f, const char *name, struct span *out, struct err *err)
{
	const struct elf_section *s = elf_file_find_section(f->elf, name);

	*out = (struct span){NULL, 0};
	return s ? section_bytes(f, s, out, err) : 0;
}

int dwarf_file_init(
	struct dwarf_file *f, const struct elf_file *elf, bool is_split, struct err *err)
{
	f->elf = elf;
	for (int i = 0; i < DEBUG_N_SECTIONS; i++) {
		/* The index of a package is no part of any unit and keeps its name. */
		const char *suffix = is_split && i != DEBUG_CU_INDEX ? ".dwo" : "";
		int rc = 0;

		for (int z = 0; z < 2 && !rc && !f->sections.of[i].n; z++) {
			char name[48];

			snprintf(name, sizeof(name), ".%sdebug_%s%s", z ? "z" : "",
				section_names[i], suffix);
			rc = dwarf_file_section(f, name, &f->sections.of[i], err);
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

int dwarf_file_open(struct dwarf_file *f, const char *path, bool is_split, struct err *err)
{
	struct stat st;
	int rc;

	/* The name came from another file: it must not make us wait for a pipe's writer. */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return err_set(err, ERR_FORMAT, "'%s': is not a regular file", path);
	rc = file_map_open(&f->map, path, err);
	if (rc < 0)
		return rc;
	rc = elf_file_init(&f->own_elf, f->map.bytes, err);
	if (rc == 0)
		rc = dwarf_file_init(f, &f->own_elf, is_split, err);
	return rc < 0 ? err_prefix(err, "'%s'", path) : 0;
}

void dwarf_file_close(struct dwarf_file *f)
{
	vec_release_all(&f->inflated);
	elf_file_release(&f->own_elf);
	file_map_release(&f->map);
	f->elf = NULL;
}
