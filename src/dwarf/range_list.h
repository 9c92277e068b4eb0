/* SPDX-License-Identifier: MIT */
/* Which addresses an entry covers, and which addresses can be code at all. */
#ifndef WEIR_DWARF_RANGE_LIST_H
#define WEIR_DWARF_RANGE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "dwarf/debug_unit.h"
#include "elf/elf_file.h"

struct addr_range {
	uint64_t start, end;
};

/* The executable segments of an image. Zero-initialise; release `parts`. */
struct code_extents {
	VEC(struct addr_range) parts; /* by address, apart */
	bool zero_is_code;	      /* code may lie at address 0 */
};

void code_extents_init(struct code_extents *e, const struct elf_file *elf);
/* Cuts a range to the segment that holds its start. False when that is none, or when the start is
 * one of the marks that linkers leave for code they dropped. */
bool code_extents_clip(const struct code_extents *e, struct addr_range *range);

/* Zero-initialise; release `ranges`. `budget` bounds how many list entries may be read in all, so that
 * one list that many entries name does not cost its length each time. */
struct range_reader {
	const struct code_extents *extents;
	VEC(struct addr_range) ranges; /* what was read last, clipped, in the list's order */
	uint64_t budget;
	bool is_cut; /* the budget was used up, or a list was damaged */
};

/* The ranges of an entry, from DW_AT_ranges or DW_AT_low_pc and DW_AT_high_pc. False when it has
 * neither. */
bool range_reader_entry(
	struct range_reader *r, const struct debug_unit *u, const struct die_attrs *a);

#endif
