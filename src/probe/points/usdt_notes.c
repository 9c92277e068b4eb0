/* SPDX-License-Identifier: MIT */
/*
 * A note is { n_name, n_desc, 3 } "stapsdt" and a descriptor { address, address of .stapsdt.base as
 * the compiler saw it, address of the semaphore } with words of the file's class, then provider,
 * name and operands as texts. A file that was moved after linking (prelink) keeps the notes as they
 * were: everything moved as far as .stapsdt.base.
 */
#include "probe/points/usdt_notes.h"

#define NOTE_OWNER	"stapsdt"
#define NOTE_TYPE	3
#define NOTE_HEAD_BYTES 12

static void align4(struct cursor *c, const uint8_t *base)
{
	size_t pad = -(size_t)(c->p - base) & 3;

	cursor_skip(c, pad < cursor_left(c) ? pad : cursor_left(c));
}

static const char *take_text(struct cursor *c)
{
	const char *text = cursor_cstr(c);

	return text && strnlen(text, USDT_NOTE_TEXT_MAX + 1) <= USDT_NOTE_TEXT_MAX ? text : NULL;
}

static bool parse_note(
	const struct elf_file *elf, struct span desc, uint64_t base_now, struct usdt_note *note)
{
	struct cursor c = cursor_of(desc);
	uint64_t addr = elf_file_word(elf, &c);
	uint64_t base = elf_file_word(elf, &c);
	uint64_t semaphore = elf_file_word(elf, &c);
	uint64_t moved = base_now ? base_now - base : 0;
	uint64_t mask = elf->is_64 ? UINT64_MAX : UINT32_MAX;

	note->provider = take_text(&c);
	note->probe = take_text(&c);
	note->operands = take_text(&c);
	note->addr.v = (addr + moved) & mask;
	note->semaphore.v = semaphore ? (semaphore + moved) & mask : 0;
	return !c.failed && note->provider && *note->provider && note->probe && *note->probe &&
	       note->operands;
}

int usdt_notes_each(const struct elf_file *elf,
	void (*each)(void *ctx, const struct usdt_note *note), void *ctx, struct err *err)
{
	const struct elf_section *s = elf_file_find_section(elf, ".note.stapsdt");
	const struct elf_section *base = elf_file_find_section(elf, ".stapsdt.base");
	struct span bytes = s ? elf_file_section_bytes(elf, s) : (struct span){NULL, 0};
	struct cursor c = cursor_of(bytes);
	int n = 0;

	while (cursor_left(&c) >= NOTE_HEAD_BYTES && n < USDT_NOTES_MAX) {
		size_t at = (size_t)(c.p - bytes.p);
		uint32_t name_bytes = cursor_u32(&c);
		uint32_t desc_bytes = cursor_u32(&c);
		uint32_t type = cursor_u32(&c);
		struct span name = cursor_bytes(&c, name_bytes), desc;
		struct usdt_note note;

		if (!c.failed)
			align4(&c, bytes.p);
		desc = cursor_bytes(&c, desc_bytes);
		if (c.failed)
			return err_set(
				err, ERR_FORMAT, ".note.stapsdt+0x%zx: the note is cut short", at);
		align4(&c, bytes.p);
		if (type != NOTE_TYPE || name.n != sizeof(NOTE_OWNER) ||
			memcmp(name.p, NOTE_OWNER, sizeof(NOTE_OWNER)) != 0)
			continue;
		if (!parse_note(elf, desc, base ? base->addr.v : 0, &note))
			return err_set(err, ERR_FORMAT,
				".note.stapsdt+0x%zx: the note has no provider, name and operands",
				at);
		each(ctx, &note);
		n++;
	}
	return n;
}

bool elf_iaddr_to_offset(const struct elf_file *elf, struct iaddr addr, struct foff *offset)
{
	struct span bytes = elf_file_bytes_at(elf, addr);

	if (bytes.p)
		offset->v = (uint64_t)(bytes.p - elf->bytes.p);
	return bytes.p;
}
