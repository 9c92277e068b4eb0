/* SPDX-License-Identifier: MIT */
/*
 * Between the files that read a count file: import_counts.c (header, areas, the whole),
 * import_counts_units.c (functions and blocks), import_counts_threads.c (counters and call trees),
 * import_counts_parts.c (whether both agree), import_counts_left.c (calls that did not come back),
 * import_counts_program.c (the program that wrote it: lines and costs).
 *
 * Addresses are those of the run (struct vaddr's meaning) until they are written: `base` less then.
 */
#ifndef WEIR_FORMATS_IMPORT_COUNTS_INTERNAL_H
#define WEIR_FORMATS_IMPORT_COUNTS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/span.h"
#include "formats/import_counts.h"
#include "rt/count/count_abi.h"
#include "trace/writer.h"

#define COUNTS_NONE UINT32_MAX

/* A part of the file that the directory names and that lies within it. */
struct counts_area {
	struct count_area row;
	struct span bytes;
};

struct counts_unit {
	uint32_t flags; /* COUNT_UNIT_* */
	uint64_t text;	/* address */
	uint64_t counters;
	const char *object;
	uint32_t first_block, n_blocks;
	bool has_counters; /* and no other unit has a part of them */
	bool has_inserted; /* it tells what was inserted; else that has to be guessed */
	size_t first_inserted, n_inserted;
};

/* Bytes that are not the program's. */
struct counts_stretch {
	uint64_t start, end;
};

struct counts_function {
	uint64_t address;
	uint32_t bytes;
	const char *name; /* as the linker has it; never "" */
	uint32_t unit;
	uint32_t first_block, n_blocks;
	uint16_t reason, flags;
	uint32_t frame; /* in the trace */
	uint64_t
		instructions; /* by its blocks, over all threads; where call trees are charged with them: */
	uint64_t charged;    /* by its nodes */
	uint32_t file, line; /* where it begins, by its own lines; 0: not known */
};

struct counts_block {
	uint64_t address;
	uint32_t bytes;
	uint16_t inserted_bytes, n_insns;
	uint32_t front_bytes; /* of its own in front of its address, when the unit tells */
	uint32_t unit;
	uint32_t function; /* COUNTS_NONE: no function has it */
	uint32_t cost;	   /* hundredths of cycles; 0: no model */
	uint64_t count;
	uint32_t first_line, n_lines; /* in lines */
	uint32_t first_left, n_left;  /* in left */
};

/* A call, or a landing pad: struct count_call. */
struct counts_call {
	uint64_t end;
	uint16_t length, rest;
	uint32_t unit;
	uint64_t left; /* how often it did not come back; signed */
};

/* Of a block that did not always end at its end: what begins behind one of its calls. */
struct counts_part {
	uint64_t start;
	uint32_t rest; /* instructions up to the block's end */
	uint64_t left; /* how often the call in front of it did not come back; signed */
};

struct counts_line {
	uint32_t file; /* string of the trace */
	uint32_t line, n_insns;
	uint64_t address; /* in the image */
};

struct counts_foreign {
	uint64_t site;
	const char *name; /* of the function that is called, as the linker has it */
	uint32_t frame;	  /* in the trace; 0 until it is needed */
};

/* A row of the file's threads, with what the directory says of it. */
struct counts_thread {
	struct count_thread row;
	bool has_row;
	VEC(struct counts_area) counters, nodes;
};

struct counts_file {
	struct count_header *header; /* a copy; areas are not in it */
	struct span bytes;
	const struct import_counts_options *options;
	struct trace_writer *w;
	uint32_t life;	 /* stream */
	uint64_t end_ns; /* since the start of the run; 0: not known */
	uint32_t image;	 /* in the trace */
	struct intern texts;
	VEC(struct counts_area) units_areas;
	VEC(struct counts_thread) threads; /* by slot of first sight */
	struct map thread_of;		   /* slot -> index in threads */
	VEC(struct counts_unit) units;
	VEC(struct counts_function) functions;
	VEC(struct counts_block) blocks;
	VEC(struct counts_stretch) inserted; /* those of a unit by address */
	VEC(struct counts_line) lines;
	VEC(struct counts_call) calls;	    /* by end */
	VEC(struct counts_part) left;	    /* those of a block by their place */
	VEC(struct counts_foreign) foreign; /* by site */
	VEC(uint32_t) by_counters;	    /* units that have counters, by their address */
	struct map entry_of;		    /* address behind the call of enter -> function */
	struct map left_alone;		    /* name, by its place in texts -> function */
	bool has_model;			    /* blocks have costs */
	bool has_foreign_time;
};

/* import_counts.c: what is imperfect, told in the trace. */
void counts_note(struct counts_file *f, uint64_t n, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void counts_lost(struct counts_file *f, uint64_t n, const char *reason);
/* A copy that lives as long as `f`, control characters made '?'. */
const char *counts_text(struct counts_file *f, const char *p, size_t n);

/* import_counts_units.c */
void counts_read_units(struct counts_file *f);
/* NULL when there is no foreign call. */
struct counts_foreign *counts_find_foreign(const struct counts_file *f, uint64_t site);

/* import_counts_left.c */
bool counts_node_is_left(const struct count_node *node);
/* The block that was left, and how many of its instructions were not executed; NULL: not known. */
struct counts_block *counts_left_block(
	struct counts_file *f, const struct count_node *node, uint16_t *rest);
/* Finds the blocks that were left in the midst. */
void counts_read_left(struct counts_file *f);
void counts_write_block(struct counts_file *f, const struct counts_function *function,
	const struct counts_block *b);
void counts_note_left(struct counts_file *f);

/* import_counts_threads.c */
/* Adds every thread's counters up into the blocks. */
void counts_add_counters(struct counts_file *f);
void counts_write_threads(struct counts_file *f);

/* import_counts_parts.c: tells where call trees and blocks differ, behind counts_write_threads. */
void counts_compare_parts(struct counts_file *f);

/* import_counts_program.c: gives blocks their lines and costs, when the program is still there. */
void counts_read_program(struct counts_file *f);

#endif
