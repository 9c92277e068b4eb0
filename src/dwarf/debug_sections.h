/* SPDX-License-Identifier: MIT */
/* The .debug_* sections of one ELF file, uncompressed. */
#ifndef WEIR_DWARF_DEBUG_SECTIONS_H
#define WEIR_DWARF_DEBUG_SECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/span.h"
#include "elf/elf_file.h"

enum debug_section {
	DEBUG_INFO,
	DEBUG_ABBREV,
	DEBUG_STR,
	DEBUG_LINE,
	DEBUG_LINE_STR,
	DEBUG_ADDR,
	DEBUG_STR_OFFSETS,
	DEBUG_RANGES,
	DEBUG_RNGLISTS,
	DEBUG_CU_INDEX, /* of a .dwp */
	DEBUG_N_SECTIONS
};

struct debug_sections {
	struct span of[DEBUG_N_SECTIONS]; /* those that are not there are empty */
};

/* One file with debug sections. Destroyed in any state, zeroed included. */
struct dwarf_file {
	struct file_map map;	    /* when opened by path */
	struct elf_file own_elf;    /* likewise */
	const struct elf_file *elf; /* own_elf, or the caller's */
	VEC(uint8_t *) inflated;
	uint64_t n_inflated; /* bytes in them */
	struct debug_sections sections;
};

/* `is_split`: the sections of a .dwo or .dwp, whose names end in ".dwo". */
int dwarf_file_init(
	struct dwarf_file *f, const struct elf_file *elf, bool is_split, struct err *err);
/* The same for a file of its own. */
int dwarf_file_open(struct dwarf_file *f, const char *path, bool is_split, struct err *err);
void dwarf_file_close(struct dwarf_file *f);

/* The section of this name, uncompressed: nothing when there is none. */
int dwarf_file_section(struct dwarf_file *f, const char *name, struct span *out, struct err *err);

#endif
