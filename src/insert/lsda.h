/* SPDX-License-Identifier: MIT */
/*
 * Language-specific data areas as C++ and its relatives use them (.gcc_except_table; Itanium C++
 * ABI, "Exception Handling Tables"):
 *
 *	landing pad base	encoding, address; usually omitted: the start of the function
 *	type table		encoding, distance to its end
 *	call sites		encoding, length; then start, length, landing pad, action of each
 *	actions, types		what follows; nothing in it speaks of code
 *
 * Call sites and landing pads are distances that the assembler has made into numbers, mostly
 * uleb128, so the table changes its size when code moves.
 *
 * Where a function lies in several sections (clang with -fbasic-block-sections and the like) there
 * is an LSDA for each, one behind the other, and only behind the last come the actions and types of
 * all: the call-site tables of the others are said to reach until there. Such a group is laid out
 * as one.
 */
#ifndef WEIR_INSERT_LSDA_H
#define WEIR_INSERT_LSDA_H

#include "insert/exception_tables.h"
#include "insert/section_rewrite.h"

/* An LSDA and the code of the FDE that refers to it. */
struct lsda_ref {
	struct code_place at;
	struct code_range code;
};

struct lsda {
	uint64_t offset; /* in the section, as all that follow */
	uint64_t limit;	 /* where the next one begins or the section ends */
	struct code_range code;
	struct code_place pad_base;	      /* landing pads are distances from here */
	uint8_t type_encoding, site_encoding; /* EH_* */
	uint64_t types_at; /* the distance to the end of the types, from behind this field */
	uint64_t sites_encoding_at; /* = types_at when there are none */
	uint64_t types_end;	    /* 0 when there are none */
	uint64_t length_at;	    /* of the call sites */
	uint64_t sites_at, sites_end;
	uint64_t actions_at; /* = sites_end in the last one of a group */
};

struct lsda_section {
	uint32_t section;
	VEC(struct lsda) lsdas; /* by offset */
};

struct code_places {
	VEC(struct code_place) list;
};

/* Reads the LSDAs of one section: `refs` are those of this section, sorted, each once. Adds their
 * landing pads to `pads` when it is not NULL. On failure nothing is left to release. */
int lsda_section_read(struct lsda_section *l, const struct elf_object *o,
	const struct lsda_ref *refs, size_t n, struct code_places *pads, struct err *err);
void lsda_section_release(struct lsda_section *l);

/* Writes the section anew for code that went where `m` says. `w` has been initialised for it. */
int lsda_section_move(const struct lsda_section *l, const struct moved *m,
	struct section_rewrite *w, struct err *err);

/* A call site as it is written. */
struct lsda_site {
	uint64_t at, action_at, end; /* in the section */
	uint64_t start, size, pad;   /* pad 0 = none */
};
bool lsda_site_read(struct lsda_site *s, struct span section, const struct lsda *l, uint64_t at);

#endif
