/* SPDX-License-Identifier: MIT */
/* Which units hold entries of types: those of the file, split ones, and type units by signature. */
#ifndef WEIR_DWARF_DIE_UNITS_H
#define WEIR_DWARF_DIE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "dwarf/debug_info.h"

struct die_units {
	struct dwarf_debug *debug; /* borrowed */
	struct unit_set type_set;  /* of .debug_types: DWARF 4 */
	bool has_type_set;	   /* it was looked for */
	bool is_listed, is_alt_listed;
	VEC(const struct debug_unit *) list, alt_list;
	VEC(struct debug_unit *) owned; /* split units with what they take from their skeletons */
	struct map signed_sets;		/* unit sets whose signatures are known */
	struct map by_signature;	/* of signature and set -> unit */
};

void die_units_init(struct die_units *u, struct dwarf_debug *debug);
void die_units_release(struct die_units *u);
size_t die_units_list(struct die_units *u, bool is_shared, const struct debug_unit *const **units);
uint64_t die_units_bytes(struct die_units *u);
/* The type unit of a signature, asked for by a unit of `set`, and where its type is; or NULL. */
const struct debug_unit *die_units_by_signature(
	struct die_units *u, const struct unit_set *set, uint64_t signature, uint64_t *offset);

#endif
