/* SPDX-License-Identifier: MIT */
/* Entries of relocation tables, and the words that they speak of. */
#ifndef WEIR_ELF_ELF_RELOCATION_H
#define WEIR_ELF_ELF_RELOCATION_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_file.h"

struct elf_relocation {
	uint64_t offset;
	uint32_t type, symbol;
	uint64_t addend; /* 0 where the table has none */
};

static inline struct elf_relocation elf_relocation_read(
	const struct elf_file *elf, struct cursor *c, bool has_addend)
{
	struct elf_relocation r = {.offset = elf_file_word(elf, c)};
	uint64_t info = elf_file_word(elf, c);

	r.symbol = (uint32_t)(elf->is_64 ? info >> 32 : info >> 8);
	r.type = (uint32_t)(elf->is_64 ? info & 0xffffffff : info & 0xff);
	if (has_addend)
		r.addend = elf_file_word(elf, c);
	return r;
}

/* The word at an address of the image; 0 when there is none. */
static inline uint64_t elf_word_at(const struct elf_file *elf, uint64_t addr)
{
	struct cursor c = cursor_of(elf_file_bytes_at(elf, (struct iaddr){addr}));

	return elf_file_word(elf, &c);
}

#endif
