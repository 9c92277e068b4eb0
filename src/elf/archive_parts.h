/* SPDX-License-Identifier: MIT */
/* What reading and writing of archives share; for src/elf/archive*.c only. */
#ifndef WEIR_ELF_ARCHIVE_PARTS_H
#define WEIR_ELF_ARCHIVE_PARTS_H

#include "elf/archive.h"

#define ARCHIVE_MAGIC	     "!<arch>\n"
#define ARCHIVE_MAGIC_THIN   "!<thin>\n"
#define ARCHIVE_MAGIC_BYTES  8
#define ARCHIVE_HEADER_BYTES 60
#define ARCHIVE_NAME_BYTES   16

/* An entry of the symbol index. */
struct archive_symbol {
	uint32_t member;  /* index into members */
	const char *name; /* borrowed from the archive's or the member's bytes */
};

/* Behind archive.arena. */
struct archive_store {
	VEC(char *) texts;		    /* owned */
	VEC(struct archive_symbol) symbols; /* of the index as read, by member */
};

/* Calls `each` for every global that an ELF file defines. False when it is none or does not say
 * them all: the symbols of code for link-time optimisation are known to its compiler only. */
typedef void archive_symbol_function(void *ctx, uint32_t member, const char *name);
bool archive_each_symbol(
	struct span bytes, archive_symbol_function *each, void *ctx, uint32_t member);

#endif
