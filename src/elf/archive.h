/* SPDX-License-Identifier: MIT */
/*
 * ar archives: System V/GNU format with "//" long names, thin archives (members are files beside
 * it), BSD "#1/" names; read member by member, written anew with a symbol index ("/", or "/SYM64/"
 * beyond 4 GiB) that lists every global definition of every ELF member.
 */
#ifndef WEIR_ELF_ARCHIVE_H
#define WEIR_ELF_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/span.h"

struct archive_member {
	const char *name; /* without the trailing slash; owned by the archive */
	struct span
		bytes; /* borrowed from the archive's bytes; empty for members of thin archives */
	uint64_t mtime;
	uint32_t uid, gid, mode;
	bool is_outside; /* of a thin archive: the name is a path relative to the archive's folder
			  */
};

struct archive {
	bool is_thin;
	bool has_wide_index; /* "/SYM64/": it is written so even when 32 bits would do */
	VEC(struct archive_member) members; /* without the symbol index and the table of names */
	void *arena;			    /* names and the symbol index as read */
};

bool archive_is(struct span bytes); /* "!<arch>\n" or "!<thin>\n" */
/* Fails with a sentence (place included, no subject), and then nothing is left to release. `bytes`
 * must outlive the archive. A symbol index that is wrong or missing does not matter. Members of
 * archives inside of thin archives are refused. */
int archive_open(struct archive *a, struct span bytes, struct err *err);
void archive_release(struct archive *a);
/* Writes the members, whose bytes may have been replaced, as an ordinary archive (never thin: a
 * thin archive's members must have been given their bytes). Times and owners are kept. Members
 * must not have been added, removed or reordered: those whose symbols cannot be read here (bitcode
 * and other code of link-time optimisation) keep the index entries that they had. */
int archive_write(const struct archive *a, struct buf *out, struct err *err);

#endif
