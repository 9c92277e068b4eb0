/* SPDX-License-Identifier: MIT */
/* Walks the entries of a unit and collects functions and inlined functions, and their names. */
#ifndef WEIR_DWARF_DIE_WALK_H
#define WEIR_DWARF_DIE_WALK_H

#include <stdbool.h>

#include "base/err.h"
#include "dwarf/debug_unit.h"
#include "dwarf/interval_paint.h"
#include "dwarf/range_list.h"
#include "dwarf/source_files.h"

/* --- names of functions, found through the entries they refer to --- */

struct die_name {
	uint32_t id;   /* in names */
	bool is_plain; /* not the name that linkers see */
};

/* 16 bytes: the table is looked into once for each inlined function, mostly outside of the cache.
 */
struct name_slot {
	uint64_t key;	/* offset of the entry; the lowest bit says that it is in the shared file */
	uint32_t name;	/* id; the highest bit says that it is plain */
	uint32_t round; /* which reset it was filled after */
};

/* Remembers the name of each entry that was referred to. Zero-initialise. */
struct name_table {
	struct name_slot *slots; /* open addressing */
	size_t n, cap;		 /* cap is 0 or a power of two */
	uint32_t round;
	struct dwarf_unit_map *out; /* whose names are filled */
	uint64_t budget;	    /* bytes of names and entries that may still be looked at */
	bool is_cut;		    /* the budget was used up */
};

void name_table_reset(struct name_table *t, struct dwarf_unit_map *out, uint64_t budget);
void name_table_release(struct name_table *t);
/* The name of the entry that has these attributes: the linkage name of it or of any entry it leads
 * to, else the nearest plain name; id 0 when there is none. */
struct die_name name_table_get(
	struct name_table *t, const struct debug_unit *u, const struct die_attrs *a);

/* --- the walk --- */

/* Where a walk puts what it finds, all reset by the caller. */
struct die_walk {
	struct dwarf_unit_map *out; /* functions and sites, and names through the table */
	struct name_table *names;
	struct source_files *files; /* of call sites */
	struct range_reader *ranges;
	struct painter *painter; /* sites by address; a function itself is site 0 */
	bool is_too_deep;	 /* entries below the deepest level were not looked at */
};

int die_walk_unit(struct die_walk *w, const struct debug_unit *u, struct err *err);

#endif
