/* SPDX-License-Identifier: MIT */
/*
 * The LSDAs (dwarf/lsda.h) of a section of an object. Call sites and landing pads are distances
 * that the assembler has made into numbers, mostly uleb128, so a table changes its size when code
 * moves.
 *
 * Where a function lies in several sections (clang with -fbasic-block-sections and the like) there
 * is an LSDA for each, one behind the other, and only behind the last come the actions and types of
 * all: the call-site tables of the others are said to reach up to there. Such a group is laid out
 * as one.
 */
#ifndef WEIR_INSERT_LSDA_SECTION_H
#define WEIR_INSERT_LSDA_SECTION_H

#include "dwarf/lsda.h"
#include "insert/exception_tables.h"
#include "insert/section_rewrite.h"

/* An LSDA and the code of the FDE that refers to it. */
struct lsda_ref {
	struct code_place at;
	struct code_range code;
};

struct object_lsda {
	struct lsda table; /* sites_end is before actions_at in all but the last one of a group */
	uint64_t limit;	   /* in the section: where the next one begins or the section ends */
	struct code_range code;
	struct code_place pad_base; /* landing pads are distances from here */
};

struct lsda_section {
	uint32_t section;
	VEC(struct object_lsda) lsdas; /* by offset */
};

/* Reads the LSDAs of one section: `refs` are those of this section, sorted, each once. Adds their
 * landing pads to `found` when it is not NULL. On failure nothing is left to release. */
int lsda_section_read(struct lsda_section *l, const struct elf_object *o,
	const struct lsda_ref *refs, size_t n, struct exception_tables *found, struct err *err);
void lsda_section_release(struct lsda_section *l);

/* Writes the section anew for code that went where `m` says. `w` has been initialised for it. */
int lsda_section_move(const struct lsda_section *l, const struct moved *m,
	struct section_rewrite *w, struct err *err);

#endif
