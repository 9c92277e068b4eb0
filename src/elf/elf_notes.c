/* SPDX-License-Identifier: MIT */
/* What identifies an image: the build-id note and the debuglink. */
#include "elf/elf_file.h"

#include <elf.h>

/* A hostile file may call all of itself notes, many times over. */
#define NOTE_TABLES_MAX	     64
#define NOTE_TABLE_BYTES_MAX 65536

/* Moves `c` to the next multiple of `align` counted from `base`; the last note may lack its
 * padding. */
static void cursor_align(struct cursor *c, const uint8_t *base, size_t align)
{
	size_t pad = -(size_t)(c->p - base) % align;

	cursor_skip(c, pad < cursor_left(c) ? pad : cursor_left(c));
}

/* The descriptor of the first NT_GNU_BUILD_ID note owned by "GNU". Notes are padded to 4 bytes,
 * also in 64-bit files, unless the segment or section is aligned to 8 (.note.gnu.property). */
struct span elf_notes_build_id(struct span notes, uint64_t align)
{
	size_t pad = align == 8 ? 8 : 4;
	struct cursor c;

	if (notes.n > NOTE_TABLE_BYTES_MAX)
		notes.n = NOTE_TABLE_BYTES_MAX;
	c = cursor_of(notes);
	while (cursor_left(&c) >= 12) {
		uint32_t name_bytes = cursor_u32(&c);
		uint32_t desc_bytes = cursor_u32(&c);
		uint32_t type = cursor_u32(&c);
		struct span name = cursor_bytes(&c, name_bytes);
		struct span desc;

		if (c.failed)
			break;
		cursor_align(&c, notes.p, pad);
		desc = cursor_bytes(&c, desc_bytes);
		if (c.failed)
			break;
		cursor_align(&c, notes.p, pad);
		if (type == NT_GNU_BUILD_ID && name.n == 4 && memcmp(name.p, "GNU", 4) == 0 &&
			desc.n > 0 && desc.n <= ELF_BUILD_ID_MAX)
			return desc;
	}
	return (struct span){NULL, 0};
}

struct span elf_file_build_id(const struct elf_file *elf)
{
	struct span id = {NULL, 0};
	int tables_left = NOTE_TABLES_MAX;

	/* Sections first: in a separate debug file the segments may still tell the offsets of the
	 * original file. */
	for (size_t i = 0; i < elf->n_sections && !id.n; i++) {
		const struct elf_section *s = &elf->sections[i];

		if (s->type == SHT_NOTE && tables_left-- > 0)
			id = elf_notes_build_id(elf_file_section_bytes(elf, s), s->align);
	}
	for (size_t i = 0; i < elf->n_segments && !id.n; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_NOTE && tables_left-- > 0)
			id = elf_notes_build_id(
				span_sub(elf->bytes, s->offset.v, s->file_size), s->align);
	}
	return id;
}

bool elf_file_debuglink(const struct elf_file *elf, const char **name, uint32_t *crc)
{
	const struct elf_section *s = elf_file_find_section(elf, ".gnu_debuglink");
	struct span bytes = s ? elf_file_section_bytes(elf, s) : (struct span){NULL, 0};
	struct cursor c = cursor_of(bytes);
	const char *file = cursor_cstr(&c);
	uint32_t sum;

	if (!file || !*file)
		return false;
	cursor_align(&c, bytes.p, 4);
	sum = cursor_u32(&c);
	if (c.failed)
		return false;
	*name = file;
	*crc = sum;
	return true;
}
