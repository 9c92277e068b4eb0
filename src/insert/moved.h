/* SPDX-License-Identifier: MIT */
/*
 * Where the bytes of an object's sections go when something is inserted: two maps for each section.
 *
 *	old:	|insn a|insn b|
 *	new:	|insn a|inserted|insn b|
 *		       ^ label(b)
 *				^ place(b)
 *
 * A label (a branch target, a symbol, the start or end of a range, a line row, a return address) is
 * where control arrives: in front of what was inserted before the instruction. A place is where the
 * instruction's own bytes went: what a relocation's offset means. One map is not enough.
 *
 * Where a function is left, what was inserted in front of the instruction calls, and so writes below the
 * stack pointer: frame information that still finds registers there has to know (eh_frame_move.c). So it has
 * where inserted code moves the stack pointer, or keeps a register elsewhere for a while.
 *
 * Sections of other kinds (.eh_frame, .gcc_except_table, .debug_*) are laid out anew too; whoever
 * does that adds a map of that section, and relocations against it follow (relocate.c).
 */
#ifndef WEIR_INSERT_MOVED_H
#define WEIR_INSERT_MOVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

/* A place in an object. */
struct code_place {
	uint32_t section;
	uint64_t offset;
};

/* From `old` up to the next row everything moves by the same distance. */
struct moved_row {
	uint64_t old, label, place;
};

/* An instruction by which a function is left, in old offsets. */
struct moved_leave {
	uint64_t start, end;
};

/* From `start` up to `end`, new offsets within what is inserted, the value of a register is elsewhere: it is
 * `holder` + `offset`, or the word at that address, or nowhere: the program has no use for it any more. The
 * instruction at `old` is the one whose frame rules are in force there. Registers are DWARF's. */
enum moved_where { MOVED_SUM, MOVED_AT_ADDRESS, MOVED_NOWHERE };
struct moved_value {
	uint64_t old, start, end;
	uint8_t reg, holder;
	uint8_t offset;
	uint8_t where; /* enum moved_where */
};
#define MOVED_REG_RAX 0
#define MOVED_REG_RSP 7

struct moved_section {
	VEC(struct moved_row) rows; /* by `old`, strictly rising; none: nothing moved */
	VEC(struct moved_leave) leaves; /* rising; they do not overlap */
	VEC(struct moved_value) values; /* by `old` */
};

struct moved {
	struct moved_section *sections; /* by section number */
	size_t n_sections;
};

void moved_init(struct moved *m, size_t n_sections);
void moved_release(struct moved *m);

/* Rows must come in rising order of `old`. */
void moved_add(struct moved *m, uint32_t section, uint64_t old, uint64_t label, uint64_t place);
/* Likewise, for instructions with a call in front of them by which they leave their function. */
void moved_add_leave(struct moved *m, uint32_t section, uint64_t start, uint64_t end);
/* The first that starts at `old` or behind it; NULL when there is none. O(log leaves). */
const struct moved_leave *moved_leave_from(const struct moved *m, uint32_t section, uint64_t old);
/* Likewise, in rising order of `old`. */
void moved_add_value(struct moved *m, uint32_t section, const struct moved_value *value);
/* The values of [old, end); *n is how many. O(log values). */
const struct moved_value *moved_values(
	const struct moved *m, uint32_t section, uint64_t old, uint64_t end, size_t *n);
/* True when the section has a map. */
bool moved_has(const struct moved *m, uint32_t section);
/* Both are the identity for sections without a map, and for offsets in front of the first row.
 * O(log rows). An offset behind the last row moves as the last row does. */
uint64_t moved_label(const struct moved *m, uint32_t section, uint64_t old);
uint64_t moved_place(const struct moved *m, uint32_t section, uint64_t old);

#endif
