/* SPDX-License-Identifier: MIT */
/*
 * Debug information (DWARF 2 to 5) of an object whose code has moved: line programs, lengths of
 * ranges in .debug_info (DW_AT_high_pc as a constant and others of that kind), .debug_ranges,
 * .debug_rnglists, .debug_loc, .debug_loclists, .debug_aranges. Addresses that have a relocation
 * are left to relocate.c; here is what the assembler has already made into numbers.
 *
 * Split debug information stays as it is: .debug_*.dwo, in the object itself or in another file. It is that of
 * the old code, so units that name it can be made to do without (debug_skeleton.c).
 */
#ifndef WEIR_INSERT_DEBUG_MOVE_H
#define WEIR_INSERT_DEBUG_MOVE_H

#include "elf/elf_object.h"
#include "insert/moved.h"

/* Symbol values and addends must be those of the old code: relocate.c comes afterwards. Adds maps
 * of sections that were laid out anew to `m` and moves the offsets of their relocations; compressed
 * sections that change become uncompressed. What is not understood (an unknown version, a form that
 * is not known) fails with a sentence; the sections are then as they were, and the caller drops the
 * debug information with that sentence. *is_split says whether units were cut off from split debug
 * information; NULL: they are not. */
int debug_move(struct elf_object *o, struct moved *m, bool *is_split, struct err *err);

#endif
