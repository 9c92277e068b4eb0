/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an ELF file with static probes, or, behind one odd byte, as the notes of a good file
 * of either class; and as the loader's cache.
 */
#include <stdlib.h>
#include <string.h>

#include "../unit/elf_maker.h"
#include "probe/points/library_cache.h"
#include "probe/points/usdt_notes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static size_t total;

static void take_note(void *ctx, const struct usdt_note *note)
{
	const struct elf_file *elf = ctx;
	struct foff offset;

	if (!*note->provider || !*note->probe || !note->operands)
		abort();
	total += strlen(note->provider) + strlen(note->probe) + strlen(note->operands);
	if (elf_iaddr_to_offset(elf, note->addr, &offset) && offset.v >= elf->bytes.n)
		abort();
}

static void take_library(void *ctx, const char *name, const char *path, enum mode mode)
{
	(void)ctx;
	total += library_name_is("libc", name) + strlen(path) + (size_t)mode;
}

static void read_notes(struct span bytes)
{
	struct elf_file elf;

	if (elf_file_init(&elf, bytes, NULL) < 0)
		return;
	usdt_notes_each(&elf, take_note, &elf, NULL);
	elf_file_release(&elf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct elf_maker m;

	total = 0;
	read_notes((struct span){data, n});
	library_cache_each((struct span){data, n}, take_library, NULL, NULL);
	if (!n || !(data[0] & 1))
		return 0;
	elf_maker_init(&m, data[0] & 2);
	elf_maker_code(&m, ".text", 0x1000, 0x100);
	elf_maker_section(&m, ".stapsdt.base", SHT_PROGBITS, data[0] & 4 ? 0x2000 : 0x2010,
		(struct span){data, 1});
	elf_maker_section(&m, ".note.stapsdt", SHT_NOTE, 0, (struct span){data + 1, n - 1});
	read_notes(elf_maker_finish(&m));
	elf_maker_release(&m);
	return 0;
}
