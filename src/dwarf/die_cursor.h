/* SPDX-License-Identifier: MIT */
/*
 * Entries of debug information one by one, with what they say about types: for readers that ask for
 * single entries by name. (Readers of code take the batch reader of source_map.h.)
 *
 * Entries refer to each other across units and files: a reference is followed into the shared file
 * of dwz, and by signature into type units (.debug_types, or .debug_info since DWARF 5).
 */
#ifndef WEIR_DWARF_DIE_CURSOR_H
#define WEIR_DWARF_DIE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "dwarf/debug_unit.h"
#include "dwarf/source_map.h"

/* Tags beside those of enum dwarf_tag. */
enum die_tag {
	DIE_TAG_END = 0, /* closes a list of children */
	DIE_TAG_FORMAL_PARAMETER = 0x05,
	DIE_TAG_MEMBER = 0x0d,
	DIE_TAG_POINTER = 0x0f,
	DIE_TAG_REFERENCE = 0x10,
	DIE_TAG_TYPEDEF = 0x16,
	DIE_TAG_UNSPECIFIED_PARAMETERS = 0x18,
	DIE_TAG_INHERITANCE = 0x1c,
	DIE_TAG_POINTER_TO_MEMBER = 0x1f,
	DIE_TAG_SUBRANGE = 0x21,
	DIE_TAG_BASE_TYPE = 0x24,
	DIE_TAG_CONST = 0x26,
	DIE_TAG_ENUMERATOR = 0x28,
	DIE_TAG_PACKED = 0x2d,
	DIE_TAG_VARIABLE = 0x34,
	DIE_TAG_VOLATILE = 0x35,
	DIE_TAG_RESTRICT = 0x37,
	DIE_TAG_INTERFACE = 0x38,
	DIE_TAG_NAMESPACE = 0x39,
	DIE_TAG_UNSPECIFIED_TYPE = 0x3b,
	DIE_TAG_SHARED = 0x40,
	DIE_TAG_TYPE_UNIT = 0x41,
	DIE_TAG_RVALUE_REFERENCE = 0x42,
	DIE_TAG_ATOMIC = 0x47,
	DIE_TAG_IMMUTABLE = 0x4b
};

/* The attributes that are read. */
enum die_attr {
	DIE_NO_ATTR, /* any other */
	DIE_SIBLING,
	DIE_LOCATION,
	DIE_NAME,
	DIE_BYTE_SIZE,
	DIE_BIT_OFFSET,
	DIE_BIT_SIZE,
	DIE_CONST_VALUE,
	DIE_UPPER_BOUND,
	DIE_ABSTRACT_ORIGIN,
	DIE_COUNT,
	DIE_MEMBER_LOCATION,
	DIE_DECLARATION,
	DIE_ENCODING,
	DIE_EXTERNAL,
	DIE_SPECIFICATION,
	DIE_TYPE,
	DIE_DATA_BIT_OFFSET,
	DIE_SIGNATURE,
	DIE_LINKAGE_NAME,
	DIE_ALIGNMENT,
	DIE_LOW_PC,
	DIE_HIGH_PC,
	DIE_RANGES,
	DIE_CALLING_CONVENTION,
	DIE_FRAME_BASE,
	DIE_N_ATTRS
};

/* One entry. Values are as form_read gives them. */
struct die {
	const struct debug_unit *unit;
	uint64_t offset; /* in .debug_info of the unit's set */
	uint64_t next;	 /* where the first child is, or what follows when there is none */
	uint16_t tag;	 /* enum dwarf_tag, enum die_tag */
	bool has_children;
	uint32_t has; /* bit per attribute */
	uint16_t form[DIE_N_ATTRS];
	uint64_t value[DIE_N_ATTRS];
};

static inline bool die_says(const struct die *d, enum die_attr attr)
{
	return d->has >> attr & 1;
}

struct die_reader;

/* `debug` is borrowed until die_reader_free. */
struct die_reader *die_reader_new(struct dwarf_debug *debug);
void die_reader_free(struct die_reader *r);
/* How many bytes of entries may still be looked at: hostile files let entries overlap, so that
 * whoever follows references sets this, and reading fails when it is used up. */
void die_reader_set_budget(struct die_reader *r, uint64_t n_bytes);
/* Takes from it for other work; false when it is used up. */
bool die_reader_spend(struct die_reader *r, uint64_t n_bytes);

/* The units with entries of the file itself: skeletons are replaced by what they stand for (which
 * opens .dwo files at the first call), type units are among them. With `is_shared`: of the shared
 * file of dwz instead. The pointers hold until die_reader_free. */
size_t die_reader_units(
	struct die_reader *r, bool is_shared, const struct debug_unit *const **units);
/* Bytes of entries and of texts in all of these. */
uint64_t die_reader_bytes(struct die_reader *r);

/* Reads the entry at an offset of .debug_info. */
bool die_read(struct die_reader *r, const struct debug_unit *u, uint64_t offset, struct die *out);
/* The place behind an entry and all its children; 0 when it cannot be found. */
uint64_t die_behind(struct die_reader *r, const struct die *d);
/* The entry that an attribute refers to. */
bool die_follow(struct die_reader *r, const struct die *from, enum die_attr attr, struct die *out);

/* What an attribute says, by its form; false when it is not there or of another kind. */
bool die_text(const struct die *d, enum die_attr attr, struct dwarf_text *out);
bool die_number(const struct die *d, enum die_attr attr, uint64_t *out);
bool die_flag(const struct die *d, enum die_attr attr);
/* An address; of DIE_HIGH_PC also as a length behind DIE_LOW_PC (DWARF 5 section 2.17.2). */
bool die_addr(const struct die *d, enum die_attr attr, uint64_t *out);
/* The bytes of an expression or block. */
bool die_block(const struct die *d, enum die_attr attr, struct span *out);

#endif
