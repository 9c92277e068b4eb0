/* SPDX-License-Identifier: MIT */
/* Lines and inline sites of a unit, laid over each other into its final rows. */
#ifndef WEIR_DWARF_UNIT_ROWS_H
#define WEIR_DWARF_UNIT_ROWS_H

#include "dwarf/interval_paint.h"
#include "dwarf/line_program.h"
#include "dwarf/source_files.h"

/* `sites` has been run. `lines` are the sequences of the unit, whose file numbers `files` knows. */
void unit_rows_make(struct dwarf_unit_map *out, const struct painter *sites,
	const struct line_rows *lines, struct source_files *files);

#endif
