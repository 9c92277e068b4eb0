/* SPDX-License-Identifier: MIT */
/* Runs a line-number program (DWARF 5 section 6.2.5) and collects its rows. */
#ifndef WEIR_DWARF_LINE_PROGRAM_H
#define WEIR_DWARF_LINE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "dwarf/line_table.h"
#include "dwarf/range_list.h"

struct line_row {
	uint64_t addr;
	uint32_t file; /* number in the table */
	uint32_t line;
	uint32_t column; /* 0 = none */
};

/* Rows [first, first + n), addresses rising, the first at `start`; they hold up to `end`. */
struct line_sequence {
	uint64_t start, end;
	size_t first, n;
};

/* What one opcode above the standard ones does; kept while the parameters stay the same. */
struct line_special {
	uint32_t ops;
	int32_t lines;
};

/* Zero-initialise; may be run into again and again. */
struct line_rows {
	VEC(struct line_row) rows;
	VEC(struct line_sequence) sequences; /* by start, apart */
	bool has_special;
	struct line_params special_for;
	struct line_special special[256];
};

/* Sequences outside of `extents` are left out. Of several rows at one address the last one counts;
 * where sequences overlap, the one that starts later.
 * A program that is damaged gives what it had finished before. */
int line_program_run(struct line_rows *out, struct line_table *t,
	const struct code_extents *extents, struct err *err);
void line_rows_release(struct line_rows *rows);

#endif
