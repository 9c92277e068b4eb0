/* SPDX-License-Identifier: MIT */
/* The header of a line-number program: its parameters, folders and files (DWARF 5 section 6.2.4).
 */
#ifndef WEIR_DWARF_LINE_TABLE_H
#define WEIR_DWARF_LINE_TABLE_H

#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "dwarf/debug_unit.h"

struct line_file {
	struct dwarf_text name;
	uint64_t dir; /* in dirs */
};

struct line_params {
	uint8_t min_instruction, max_ops, line_range, opcode_base;
	int8_t line_base;
};

/* Zero-initialise; may be read into again and again. Everything in it is borrowed. */
struct line_table {
	struct form_sizes sizes;
	struct line_params params;
	const uint8_t *opcode_lengths; /* of opcodes 1 to opcode_base - 1 */
	struct span program;	       /* the bytes behind the header */
	uint64_t program_offset;       /* their place in .debug_line, for messages */
	VEC(struct dwarf_text) dirs;   /* 0 is the unit's own folder */
	VEC(struct line_file) files;   /* by the number that rows use */
	struct dwarf_text comp_dir;    /* what relative folders are relative to */
	uint64_t n_bytes;	       /* of header and program */
	uint64_t text_budget;	       /* bytes of names elsewhere that may still be looked at */
};

/* Reads the table at `offset` of the unit's .debug_line; `end` is where another one begins, at the
 * latest. `u` gives the sections that names are in, and the folder it was compiled in. */
int line_table_read(struct line_table *t, const struct debug_unit *u, uint64_t offset, uint64_t end,
	struct err *err);
void line_table_release(struct line_table *t);

#endif
