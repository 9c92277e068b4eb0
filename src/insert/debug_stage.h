/* SPDX-License-Identifier: MIT */
/*
 * The debug sections of an object while they are changed. New contents are kept apart until all of
 * them are there (debug_move.c), so that a failure leaves the object as it was.
 *
 * A section is changed in one of two ways:
 *	in place	 numbers of fixed size get another value: stage_edit, then write into out.p
 *	laid out anew	 copied piece by piece with relay_copy, and other bytes put into `out` where
 *			 numbers need more room; every piece is marked, which gives the map
 *			 of the section
 */
#ifndef WEIR_INSERT_DEBUG_STAGE_H
#define WEIR_INSERT_DEBUG_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/span.h"
#include "elf/elf_object.h"
#include "insert/debug_abbrevs.h"
#include "insert/moved.h"

enum debug_kind {
	DEBUG_KIND_NONE, /* not changed */
	DEBUG_KIND_INFO,
	DEBUG_KIND_ABBREV,
	DEBUG_KIND_LINE,
	DEBUG_KIND_RANGES,
	DEBUG_KIND_LOC,
	DEBUG_KIND_RNGLISTS,
	DEBUG_KIND_LOCLISTS,
	DEBUG_KIND_ARANGES
};

/* Addresses are places in sections, or absolute numbers (section 0), which do not move. */
static inline bool is_same_place(struct code_place a, struct code_place b)
{
	return a.section == b.section && a.offset == b.offset;
}

struct debug_stage {
	uint32_t section;
	enum debug_kind kind;
	const char *name;
	struct span in;	   /* as it was, uncompressed */
	uint8_t *inflated; /* what `in` is borrowed from when the section is compressed */
	uint64_t align;	   /* of the uncompressed section */
	struct buf out;	   /* what it becomes; nothing when it stays as it is */
};

/* A unit of .debug_info: what its lists of ranges and locations need to know. */
struct debug_unit_base {
	struct code_place low;	 /* what offsets are relative to */
	struct code_place addrs; /* its part of a .debug_addr section; section 0: it has none */
};

/* A list, or a table of offsets of lists, that a unit refers to. */
struct debug_list_ref {
	uint32_t section;
	uint64_t offset;
	size_t unit;
	bool is_table;
};

struct debug_mover {
	struct elf_object *o;
	const struct moved *code; /* where code went */
	struct moved relaid;	  /* maps of the sections in `stages` */
	VEC(struct debug_stage) stages;
	uint32_t *stage_of; /* by section number: 1 + the index in `stages`; 0 = none */
	VEC(struct debug_unit_base) units;
	VEC(struct debug_list_ref) refs; /* by section and offset once .debug_info has been read */
	struct debug_abbrevs abbrevs;
	bool has_indexes;	 /* some section has offsets in units that have no relocation */
	uint32_t abbrev_section; /* the first .debug_abbrev; 0 = none */
};

/* debug_skeleton.c: units named by this .debug_abbrev do without entries of another file. False: none has any. */
bool debug_skeletons_detach(struct debug_stage *s);

/* The stage of a section; NULL when there is none. */
static inline struct debug_stage *debug_mover_stage(struct debug_mover *d, uint32_t section)
{
	uint32_t i = section < d->o->sections.n ? d->stage_of[section] : 0;

	return i ? &d->stages.v[i - 1] : NULL;
}

/* The references to a section, once .debug_info has been read: d->refs from this index on. */
size_t debug_first_ref(const struct debug_mover *d, uint32_t section);

/* What the relocation at an offset of a section refers to. False when there is none: the bytes
 * there are the value. */
bool debug_reloc_target(
	const struct debug_mover *d, uint32_t section, uint64_t offset, struct code_place *target);
/* The address `index` of a unit; false when the unit has no such address. */
bool debug_index_target(const struct debug_mover *d, const struct debug_unit_base *unit,
	uint64_t index, struct code_place *target);
/* How far apart the places at `from` and at `from` + n are now. */
uint64_t debug_distance(const struct debug_mover *d, struct code_place from, uint64_t n);

/* The length at the front of a unit, and with it the size of offsets: 4 or 8. `c` is left behind
 * it; false when the unit is not there as a whole. */
bool debug_unit_length(struct cursor *c, uint64_t *length, uint8_t *offset_bytes);

/* Makes out.p a copy of the section that can be written to. */
void stage_edit(struct debug_stage *s);
/* Writes a number of n bytes (1, 2, 3, 4, 8) there; false when it does not fit. */
bool stage_put_number(struct debug_stage *s, size_t at, int n, uint64_t value);
/* Writes a LEB128 number of n bytes there, whose value fits. */
void stage_put_leb(struct debug_stage *s, size_t at, size_t n, uint64_t value);
/* Says that what was at `old` is at the end of `out` now. Calls come in rising order of `old`. */
void relay_mark(struct debug_mover *d, struct debug_stage *s, uint64_t old);
/* Copies the bytes [from, to) of the section, marked. */
void relay_copy(struct debug_mover *d, struct debug_stage *s, uint64_t from, uint64_t to);
/* Writes the length of a unit whose first byte is at `at` in `out`, and whose end is that of `out`.
 */
bool relay_put_length(struct debug_stage *s, size_t at, uint8_t offset_bytes);

int debug_fail(const struct debug_stage *s, uint64_t at, struct err *err, const char *what);

/* A number in .debug_info that may need more bytes when the section is laid out anew. */
struct info_number {
	size_t at, n; /* where its bytes are */
	size_t unit;  /* where its unit is */
	uint64_t value;
	uint16_t form;
	bool is_ref;  /* the offset of an entry in its unit; else just the value */
	size_t n_now; /* bytes that it takes now */
};
/* Lays the section, changed in place already, out anew for these numbers (of .debug_info units that
 * have no expressions, which may hold further offsets). Puts them in order. */
int debug_info_grow(struct debug_mover *d, struct debug_stage *s, struct info_number *numbers,
	size_t n, struct err *err);

/* The kinds of section. Each changes a stage; .debug_info comes first, since it says what lists
 * there are. */
int debug_info_move(struct debug_mover *d, struct debug_stage *s, struct err *err);
int debug_line_move(struct debug_mover *d, struct debug_stage *s, struct err *err);
int debug_lists_move(struct debug_mover *d, struct debug_stage *s, struct err *err);
int debug_pairs_move(struct debug_mover *d, struct debug_stage *s, struct err *err);
int debug_aranges_move(struct debug_mover *d, struct debug_stage *s, struct err *err);

#endif
