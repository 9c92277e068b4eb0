/* SPDX-License-Identifier: MIT */
/*
 * Rows of numbers, put away by thread while a trace is walked in order of time, for formats that say all of
 * one thread before the next. A row is some bytes; a thread that has many goes to a temporary file, block by
 * block, so that memory is bounded by the number of threads.
 */
#ifndef WEIR_FORMATS_ROW_SPOOL_H
#define WEIR_FORMATS_ROW_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

#define ROW_SPOOL_NUMBERS_MAX 8

struct row_block {
	long offset;
	size_t n;
};

struct row_lane {
	struct buf rows; /* the last ones, not yet in the file */
	VEC(struct row_block) blocks;
	uint64_t n_rows;
};

struct row_spool {
	size_t row_numbers; /* in each row */
	VEC(struct row_lane) lanes;
	FILE *file;	/* NULL until it is needed */
	bool is_broken; /* it could not be written or read */
};

void row_spool_init(struct row_spool *s, size_t row_numbers);
void row_spool_release(struct row_spool *s);
void row_spool_put(struct row_spool *s, uint32_t lane, const uint64_t *numbers);
uint64_t row_spool_n_rows(const struct row_spool *s, uint32_t lane);
/* Whether all that was put away is there; asked for once everything is read. */
int row_spool_check(const struct row_spool *s, struct err *err);

/* Reads a lane from its first row, as often as one likes; several at a time. */
struct row_reader {
	struct row_spool *spool;
	const struct row_lane *lane;
	size_t block_i;
	struct buf block;
	struct span left;
};
void row_reader_open(struct row_reader *r, struct row_spool *s, uint32_t lane);
bool row_reader_next(struct row_reader *r, uint64_t *numbers);
void row_reader_close(struct row_reader *r);

#endif
