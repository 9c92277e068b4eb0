/* SPDX-License-Identifier: MIT */
/*
 * Whether the functions of a text without identity (a linker map, nm output) lie where the image
 * has functions. The unwind table gives the image's own: an entry covers one function, or the part
 * of it that stands in another section, and never reaches from one input section into the next.
 *
 * Extents tell a great deal but not all: two pieces whose functions have the same extents could be
 * exchanged unseen. So the check says of each function whether it is pinned: no other piece could
 * stand in its place.
 */
#ifndef WEIR_SYMBOLS_CATALOG_EXTENT_CHECK_H
#define WEIR_SYMBOLS_CATALOG_EXTENT_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf_file.h"
#include "symbols/symtab_build.h"

/* The functions of the image's unwind table, by start; the caller frees. NULL with *n 0: no table. */
struct extent *extents_of_elf(const struct elf_file *elf, size_t *n);

struct extent_question {
	const struct extent *image; /* by start */
	size_t n_image;
	const struct extent *pieces; /* input sections of the text; none: each function is one */
	size_t n_pieces;
	const struct candidate *functions;
	size_t n_functions;
	const bool *is_anchored; /* by function: the image has this name at this address */
};

struct extent_result {
	size_t n_compared; /* functions of the text that lie where the image's table knows the code */
	size_t n_agree;	   /* of these, those that begin, and where known end, as one there */
	/* One that does not; SIZE_MAX = none. Then the entry that it is in; bytes 0: it is between
	 * two. */
	size_t first_wrong;
	struct extent wrong_in_image;
	/* An entry that reaches over the border of a piece, which is never so; bytes 0 = none. */
	struct extent torn;
	struct extent torn_piece;
};
/* `is_pinned`, by function, has room for all of them. */
void extent_check(const struct extent_question *q, struct extent_result *result, bool *is_pinned);

#endif
