/* SPDX-License-Identifier: MIT */
/*
 * .eh_frame and .gcc_except_table of an object: what code ranges they speak of, and their contents
 * written anew once the code has moved.
 */
#ifndef WEIR_INSERT_EXCEPTION_TABLES_H
#define WEIR_INSERT_EXCEPTION_TABLES_H

#include <stdint.h>

#include "elf/elf_object.h"
#include "insert/moved.h"

/* A place in the code of an object. */
struct code_place {
	uint32_t section;
	uint64_t offset;
};

/* An FDE: code that has frame information. */
struct code_range {
	uint32_t section;
	uint64_t start, size;
};

struct exception_tables {
	VEC(struct code_range) ranges;	     /* one for each FDE, in file order */
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
 * addends: relocate.c does that for all sections afterwards). Sections in which no range moved stay
 * as they are.
 */
int exception_tables_move(struct elf_object *o, struct moved *m, struct err *err);

#endif
