/* SPDX-License-Identifier: MIT */
/* Names of enumerators of a file and their values, out of its DWARF: all read when the first is
 * asked for. Those of functions' own types are not found; of several of one name the first counts.
 */
#ifndef WEIR_PROBE_TYPES_DWARF_ENUMERATORS_H
#define WEIR_PROBE_TYPES_DWARF_ENUMERATORS_H

#include "base/map.h"
#include "dwarf/die_cursor.h"

/* Zero-initialise. */
struct dwarf_enumerators {
	struct map values; /* hash of a name -> value */
	bool is_read;
};

bool dwarf_enumerators_find(
	struct dwarf_enumerators *e, struct die_reader *r, const char *name, int64_t *value);
void dwarf_enumerators_release(struct dwarf_enumerators *e);

#endif
