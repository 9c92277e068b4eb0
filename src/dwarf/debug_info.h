/* SPDX-License-Identifier: MIT */
/* What stands behind struct dwarf_debug; only for the files that make and read it. */
#ifndef WEIR_DWARF_DEBUG_INFO_H
#define WEIR_DWARF_DEBUG_INFO_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"
#include "dwarf/debug_sections.h"
#include "dwarf/debug_unit.h"
#include "dwarf/die_walk.h"
#include "dwarf/line_program.h"
#include "dwarf/range_list.h"

/* A .dwo file, or the package of them. */
struct split_file {
	struct dwarf_file file;
	struct unit_set units; /* of a .dwo: all; of a package: none */
	struct map by_id;      /* dwo_id -> which of the units */
	char *why;	       /* it is there but could not be opened; or NULL */
	uint64_t n_read;       /* bytes of the units that were given out */
	bool is_open;
};

/* The memory that reading a unit needs, kept for the next one. */
struct unit_scratch {
	struct line_table lines, call_lines;
	struct line_rows rows;
	struct painter painter;
	struct name_table names;
	struct source_files files, call_files;
	struct range_reader ranges;
};

/* A line table belongs to one unit; others, such as partial ones, only take file names from it. */
struct line_owner {
	uint64_t offset; /* in .debug_line */
	uint32_t unit_i;
	bool is_partial;
};

/*
 * Written by dwarf_debug_open only, apart from what stands below `lock`: that is read and written
 * with the lock held, by any thread that reads a unit.
 */
struct dwarf_debug {
	char *path; /* or NULL */
	struct dwarf_file file, alt_file;
	struct unit_set units, alt_units;
	struct code_extents extents;
	VEC(uint32_t) code_units;	    /* which of units.units; what callers count */
	VEC(struct line_owner) line_owners; /* by offset */

	pthread_mutex_t lock;
	struct buf notes;
	size_t n_notes;
	struct intern split_paths;
	VEC(struct split_file *) splits; /* .dwo files, found or not, by id of their path */
	struct map split_units;		 /* offset of a skeleton -> what was found, 0 = nothing */
	struct split_file *package;	 /* tried once */
	VEC(struct unit_set *) parts; /* units of a package, with their own parts of the sections */
	VEC(struct unit_scratch *) scratch; /* not in use */
};

void unit_scratch_free(struct unit_scratch *s);

/* Adds a sentence to the notes; takes the lock. */
void dwarf_debug_note(struct dwarf_debug *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Opens the shared file that `d->file` names, or notes why not. */
void shared_file_open(struct dwarf_debug *d);

/* The unit in a .dwo or .dwp that a skeleton stands for, with what it takes from the skeleton.
 * False, and a note, when it cannot be found. */
bool split_unit_find(
	struct dwarf_debug *d, const struct debug_unit *skeleton, struct debug_unit *out);
void split_files_close(struct dwarf_debug *d);

/* The folder of a path with the slash, "" when it has none; the caller's to free. */
char *path_folder(const char *path);

#endif
