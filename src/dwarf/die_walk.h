/* SPDX-License-Identifier: MIT */
/* Walks the entries of a unit and collects functions and inlined functions. */
#ifndef WEIR_DWARF_DIE_WALK_H
#define WEIR_DWARF_DIE_WALK_H

#include <stdbool.h>

#include "base/err.h"
#include "dwarf/debug_unit.h"
#include "dwarf/die_name.h"
#include "dwarf/interval_paint.h"
#include "dwarf/range_list.h"
#include "dwarf/source_files.h"

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
