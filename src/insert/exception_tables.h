/* SPDX-License-Identifier: MIT */
/*
 * .eh_frame and .gcc_except_table of an object: what code ranges they speak of, and their contents
 * written anew once the code has moved. .debug_frame, which has the same form, goes with them.
 *
 *	exception_tables.c	which sections there are, and in which order they are done
 *	eh_frame.c		entries of a frame section; frame_program.c their instructions,
 *				frame_state.c what they say; eh_frame_move.c writes them
 *	lsda_section.c		tables of call sites; lsda_move.c writes them
 *	eh_pointer.c		how both write numbers and addresses
 *	section_rewrite.c	a section written from front to back, and its map
 */
#ifndef WEIR_INSERT_EXCEPTION_TABLES_H
#define WEIR_INSERT_EXCEPTION_TABLES_H

#include <stdint.h>

#include "elf/elf_object.h"
#include "insert/moved.h"

/* An FDE: code that has frame information. */
struct code_range {
	uint32_t section;
	uint64_t start, size;
};

struct exception_tables {
	VEC(struct code_range) ranges;	     /* of the FDEs of .eh_frame, in file order */
	VEC(struct code_place) landing_pads; /* where the unwinder enters; sorted, each once */
};

/* Reads every .eh_frame section and every LSDA that an FDE refers to. Fails with a sentence
 * (section and offset in it) when something there is not understood: then the object cannot be
 * changed. */
int exception_tables_read(struct exception_tables *t, const struct elf_object *o, struct err *err);
void exception_tables_release(struct exception_tables *t);

/*
 * Writes them anew for code that went where `m` says: ranges, advances, call-site tables. Adds the
 * maps of the sections that changed to `m` and moves the offsets of their own relocations (not the
 * addends: relocate.c does that for all sections afterwards; symbols and code must still be the old
 * ones here). Sections in which no range moved stay as they are. On failure the object and `m`
 * are as they were.
 */
int exception_tables_move(struct elf_object *o, struct moved *m, struct err *err);

#endif
