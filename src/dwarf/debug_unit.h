/* SPDX-License-Identifier: MIT */
/*
 * Unit headers, root entries, and what values in a unit mean: texts, addresses and references,
 * through the bases that the root gives.
 */
#ifndef WEIR_DWARF_DEBUG_UNIT_H
#define WEIR_DWARF_DEBUG_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "dwarf/abbrev.h"
#include "dwarf/debug_sections.h"
#include "dwarf/source_map.h"

#define DWARF_TEXT_MAX (64 * 1024) /* bytes of a name; the rest is cut */

struct unit_set;

enum unit_type { /* DW_UT_* */
	UNIT_TYPE_COMPILE = 1,
	UNIT_TYPE_TYPE = 2,
	UNIT_TYPE_PARTIAL = 3,
	UNIT_TYPE_SKELETON = 4,
	UNIT_TYPE_SPLIT_COMPILE = 5,
	UNIT_TYPE_SPLIT_TYPE = 6
};

struct debug_unit {
	const struct unit_set *set;
	const struct abbrev_table *abbrevs; /* NULL: its table could not be read */
	uint64_t offset, end;		    /* in .debug_info */
	uint64_t first_die;		    /* likewise: the root entry */
	uint64_t abbrev_offset;
	struct form_sizes sizes;
	uint8_t type; /* enum unit_type; before DWARF 5 from the root's tag */
	bool is_split;
	bool has_linkage_names; /* its language gives functions another name for the linker */
	/* From the root; a unit without root has none of these. */
	struct die_attrs root;
	struct dwarf_text comp_dir;
	uint64_t dwo_id;
	uint64_t low_pc; /* what ranges are relative to */
	uint64_t str_offsets_base, addr_base, rnglists_base, loclists_base, ranges_base;
	uint64_t line_offset; /* in .debug_line; UINT64_MAX = none */
};

/* All units of one file's .debug_info. */
struct unit_set {
	struct debug_sections sections;
	VEC(struct debug_unit) units; /* by offset */
	VEC(struct abbrev_table) tables;
	const struct unit_set *alt; /* the shared file that dwz made, or NULL */
};

/* Where sentences about damage go. */
struct note_sink {
	struct dwarf_debug *debug;
	const char *prefix; /* of each */
};

/* `set->sections` and `set->alt` are filled in. Damaged units are left out, and noted unless
 * `notes` is NULL. */
void unit_set_read(struct unit_set *set, bool is_split, const struct note_sink *notes);
void unit_set_release(struct unit_set *set);
/* The unit that holds an offset in .debug_info, or NULL. */
const struct debug_unit *unit_set_find(const struct unit_set *set, uint64_t offset);

/* Reads the entry at an offset of the unit. NULL when it cannot be read. *n_bytes is what had to be
 * looked at, also then: entries may be made to overlap, so that whoever reads many keeps count. */
const struct abbrev *debug_unit_entry(
	const struct debug_unit *u, uint64_t offset, struct die_attrs *out, uint64_t *n_bytes);

/* The meaning of a value, by its form. False when it has none of that kind or lies outside. */
bool debug_unit_text(
	const struct debug_unit *u, uint16_t form, uint64_t value, struct dwarf_text *out);
bool debug_unit_addr(const struct debug_unit *u, uint16_t form, uint64_t value, uint64_t *out);

/* A reference to an entry of any unit. */
struct die_ref {
	const struct unit_set *set;
	uint64_t offset; /* in .debug_info */
};
bool debug_unit_ref(const struct debug_unit *u, uint16_t form, uint64_t value, struct die_ref *out);

static inline bool debug_unit_slot_text(const struct debug_unit *u, const struct die_attrs *a,
	enum die_slot slot, struct dwarf_text *out)
{
	return die_has(a, slot) && debug_unit_text(u, a->form[slot], a->value[slot], out);
}

static inline bool debug_unit_slot_addr(
	const struct debug_unit *u, const struct die_attrs *a, enum die_slot slot, uint64_t *out)
{
	return die_has(a, slot) && debug_unit_addr(u, a->form[slot], a->value[slot], out);
}

#endif
