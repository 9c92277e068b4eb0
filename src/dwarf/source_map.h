/* SPDX-License-Identifier: MIT */
/*
 * What debug information says about code: functions, what was inlined where, and source lines, one
 * compile unit at a time. Reads DWARF 2 to 5 of an image or of its separate debug file: compressed
 * sections, split units (.dwo, .dwp), and the shared file that dwz makes. A batch reader: it turns
 * a whole unit into sorted rows; single addresses are looked up in a catalog image, never here.
 *
 * Nothing in the sections is trusted: a unit that cannot be read fails with a sentence that names
 * section and offset, and costs only itself.
 */
#ifndef WEIR_DWARF_SOURCE_MAP_H
#define WEIR_DWARF_SOURCE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/span.h"
#include "elf/elf_file.h"

struct dwarf_debug; /* the debug sections of one image, opened */

/* `elf` has the .debug_* sections and is borrowed until close; `path` (may be NULL) is its path,
 * from which relative names of split and shared files are looked for. Inflates compressed sections,
 * finds all units and their abbreviations. ERR_NOT_FOUND when there is no debug information. */
int dwarf_debug_open(
	struct dwarf_debug **out, const struct elf_file *elf, const char *path, struct err *err);
void dwarf_debug_close(struct dwarf_debug *d);

/* Units that may have code: compile, partial and skeleton units; type units are not among them. */
size_t dwarf_debug_n_units(const struct dwarf_debug *d);
/* Sentences about what was missing (a .dwo that is not there, a unit that could not be read), one a
 * line; "" when nothing was. Those about split units come while units are read: not to be called
 * then, and the text holds until the next unit is read. */
const char *dwarf_debug_notes(const struct dwarf_debug *d);
/* Sets wanted[unit] for every unit that may cover one of the n sorted addresses, by the ranges in
 * its root entry; a unit that gives none is wanted. Cheap: only root entries are read. */
void dwarf_debug_units_at(
	const struct dwarf_debug *d, const uint64_t *addrs, size_t n, bool *wanted);

struct dwarf_text {
	const char *p; /* not NUL-terminated by promise; lives until dwarf_debug_close */
	uint32_t n;
};

/* One function's code. A function in several pieces (hot, cold) gives several of these. */
struct dwarf_function {
	uint64_t start, end;
	uint32_t name; /* in names: the linkage name where there is one, else the plain name */
	bool is_entry; /* the piece that holds the function's first instruction */
	/* `name` is the plain name of a language whose linkers see another one, which gcc leaves
	 * out for some templates and lambdas: a symbol at `start` knows better. */
	bool is_plain_name;
};

/* A place where a function was inlined. Sites count from 1; a parent comes before its children. */
struct dwarf_site {
	uint32_t parent; /* the site around it; 0 = the function itself */
	uint32_t name;	 /* of the inlined function, as above */
	uint32_t call_file, call_line;
};

/* A column beyond it counts as not known. */
#define DWARF_COLUMN_MAX 65535

/* From `addr` up to the next row's address: this file, this line, inside this site. */
struct dwarf_row {
	uint64_t addr;
	uint32_t file;	 /* in files; 0 = not known */
	uint32_t line;	 /* 0 = none */
	uint32_t site;	 /* 0 = in the function itself */
	uint16_t column; /* of the line; 0 = not known */
	bool is_hole;	 /* nothing is known from here on */
};

/* Ids count from 1; index 0 of names, files and sites is a reserved empty entry. */
struct dwarf_unit_map {
	VEC(struct dwarf_text) names;
	VEC(struct dwarf_text)
	files; /* absolute where the unit says enough; "./" and "x/../" cut */
	VEC(struct dwarf_function) functions; /* as they are written, in no order */
	VEC(struct dwarf_site) sites;
	VEC(struct dwarf_row) rows; /* by address, no two alike, the last one is a hole; or none */
	VEC(char *) owned;	    /* texts put together on the way */
	uint64_t n_bytes;	    /* of debug information that this was made from */
};

/* Reads unit `unit_i` into zero-initialised *out. Functions and rows that cannot be in the program
 * (the linker dropped their section: address 0, -1, -2, or outside every executable segment) are
 * left out. Several threads may read different units of one `d` at once. */
int dwarf_unit_map_init(
	struct dwarf_unit_map *out, struct dwarf_debug *d, size_t unit_i, struct err *err);
void dwarf_unit_map_release(struct dwarf_unit_map *m);

#endif
