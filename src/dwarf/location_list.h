/* SPDX-License-Identifier: MIT */
/*
 * Which expression says where a variable is at an address: DW_AT_location is an expression for the
 * whole scope, or a list of them by address (DWARF 5 section 2.6.2, DWARF 4 section 2.6.2).
 */
#ifndef WEIR_DWARF_LOCATION_LIST_H
#define WEIR_DWARF_LOCATION_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/mem.h"
#include "dwarf/die_cursor.h"

struct location_sections {
	struct span loc, loclists; /* before DWARF 5, since then */
};

/* Zero-initialise and fill in the first. */
struct location_lists {
	struct dwarf_debug *debug; /* borrowed */
	struct map known;	   /* struct unit_set * -> index in sections */
	VEC(struct location_sections) sections;
};

enum location_answer {
	LOCATION_NONE,	     /* the entry says nothing */
	LOCATION_EVERYWHERE, /* one expression for the whole scope */
	LOCATION_HERE,	     /* from a list, for this address */
	LOCATION_NOT_HERE,   /* a list that leaves the address out */
	LOCATION_UNREADABLE  /* a damaged list, or one of a kind that is not known */
};

void location_lists_release(struct location_lists *l);
/* The expression of an attribute at an address: untouched when there is none. */
enum location_answer location_find(struct location_lists *l, const struct die *d,
	enum die_attr attr, uint64_t addr, struct span *expression);
/* The first expression of a list that holds behind an address, and from where on. */
bool location_next(struct location_lists *l, const struct die *d, enum die_attr attr, uint64_t addr,
	uint64_t *start, struct span *expression);

#endif
