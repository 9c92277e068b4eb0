/* SPDX-License-Identifier: MIT */
/*
 * A section of an object written anew from front to back: pieces of the old bytes are kept or
 * replaced, and the map from old to new offsets comes out of that.
 */
#ifndef WEIR_INSERT_SECTION_REWRITE_H
#define WEIR_INSERT_SECTION_REWRITE_H

#include <stdint.h>

#include "elf/elf_object.h"
#include "insert/moved.h"

/* Begins with the object and the section, the rest zero. */
struct section_rewrite {
	const struct elf_object *object; /* borrowed */
	uint32_t section;
	uint64_t at;	  /* old offset: everything in front of it is done */
	struct buf bytes; /* the new contents so far */
	VEC(struct moved_row) rows;
};

void section_rewrite_release(struct section_rewrite *w);

/* The old bytes from w->at up to `until`, as they are. */
void section_rewrite_keep(struct section_rewrite *w, uint64_t until);
/* Other bytes in their place; `until` may be w->at. Fails when a relocation changes the old ones,
 * for it would have nowhere to go. */
int section_rewrite_replace(
	struct section_rewrite *w, uint64_t until, struct span bytes, struct err *err);

/* Gives the object the new contents of a section with the map that `rows` are, which are added to
 * `m`, and moves the offsets of the section's relocations. */
void section_replace(struct elf_object *o, uint32_t section, struct span bytes,
	const struct moved_row *rows, size_t n_rows, struct moved *m);
/* Keeps the rest, gives the object the new contents, moves the offsets of the section's relocations
 * and adds its map to `m`. Does nothing when the bytes came out as they were. */
void section_rewrite_commit(struct section_rewrite *w, struct elf_object *o, struct moved *m);

#endif
