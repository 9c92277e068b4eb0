/* SPDX-License-Identifier: MIT */
/*
 * The mappings of processes over time, one row for every piece with its own beginning or end: what
 * module_replay.c builds while it plays records.
 *
 * The open rows of a process are disjoint and sorted by address. A row that is cut becomes several
 * with the same beginning, so that at any address and time there is at most one row.
 */
#ifndef WEIR_SYMBOLS_RESOLVE_MODULE_ROWS_H
#define WEIR_SYMBOLS_RESOLVE_MODULE_ROWS_H

#include "base/mem.h"
#include "trace/defs.h"

/* What is mapped by a record. */
struct module_piece {
	uint64_t start, end;
	uint32_t image;
	uint64_t bias;
	bool at_start, is_used;
};

/* Of one process. Zero-initialise; release. */
struct module_space {
	uint32_t owner;	      /* the process's number, for the rows */
	uint64_t base;	      /* since when the current program is there; 0 = before the trace */
	VEC(uint32_t) open;   /* rows, by address */
	VEC(uint32_t) closed; /* rows that ended since `base` */
	VEC(uint32_t) all;    /* rows, in order of their making */
};

struct module_rows {
	VEC(struct trace_module_span) rows; /* without pid and process start: */
	VEC(uint32_t) owners;		    /* beside rows */
	uint64_t n_lost;		    /* pieces that were left out at a limit */
	uint64_t work; /* steps so far of loops that a forged trace could make long */
};

void module_rows_release(struct module_rows *r);
void module_space_release(struct module_space *space);

/* False when the budget for work is used up; then that is counted as a loss. */
bool module_rows_spend(struct module_rows *r, uint64_t steps);

/* Ends what is open in [start, end). */
void module_rows_cut(struct module_rows *r, struct module_space *space, uint64_t start,
	uint64_t end, uint64_t time, enum module_end how);
/* The same, but only what is not the piece's image at the piece's bias. Says whether there was
 * any. */
bool module_rows_cut_others(struct module_rows *r, struct module_space *space,
	const struct module_piece *piece, uint64_t time, enum module_end how);
/*
 * Opens the parts of `piece` where nothing is open; what is there already and the same stays, and
 * may become used. With `from_base` the beginning is not known and goes back to the space's base,
 * unless something else was there since.
 */
void module_rows_fill(struct module_rows *r, struct module_space *space,
	const struct module_piece *piece, uint64_t time, bool from_base);
/* Opens the piece since `from`; nothing may be open in its range. */
void module_rows_open(struct module_rows *r, struct module_space *space,
	const struct module_piece *piece, uint64_t from);

#endif
