/* SPDX-License-Identifier: MIT */
/* A text table: cells are collected, then printed in columns that fit. And numbers for people in
 * its cells. */
#ifndef WEIR_CMD_REPORT_TABLE_H
#define WEIR_CMD_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "cmd/report/terminal.h"

#define TABLE_COLUMNS_MAX  16
#define TABLE_NUMBER_BYTES 24

enum table_style { TABLE_STYLE_PLAIN, TABLE_STYLE_STRONG, TABLE_STYLE_FAINT, TABLE_STYLE_HOT };

struct table_row {
	size_t first_cell; /* offset of its NUL-terminated cells in `text` */
	uint16_t n_cells;  /* 0: a line of its own, the one text at first_cell */
	enum table_style style;
};

/* Numbers stand right, the last column stands left. Zero-initialise. */
struct table {
	struct buf text;
	struct table_row *rows;
	size_t n_rows, cap_rows;
	size_t widths[TABLE_COLUMNS_MAX];
	uint32_t left_columns; /* bit i: column i stands left too */
	uint32_t used_columns; /* bit i: column i has more than dots below its head */
	/* NULL: lines are as long as they are. Else they end where it does, and columns without a value
	 * (but for the last) are left out of a table that begins with its heads. */
	const struct terminal *terminal;
};

void table_release(struct table *t);
void table_row(struct table *t, enum table_style style); /* begins a row */
void table_cell(struct table *t, const char *text);
void table_cellf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_number(struct table *t, uint64_t number);
/* A number as text, somewhere in `text`. */
const char *table_digits(char text[TABLE_NUMBER_BYTES], uint64_t number);
/* A line that is not in columns. */
void table_line(struct table *t, const char *text);
/* What a terminal is told in front of such a row; "" for a plain one. */
const char *table_style_on(enum table_style style);
void table_print(const struct table *t, bool color, FILE *out);

struct value_text {
	char s[32];
};
/* In the unit, with the scale that fits: "1.20 ms", "3.4 MB", "12.0 M". */
struct value_text value_human(uint64_t value, const char *unit);
/* Two decimals; "0.00" of nothing. */
struct value_text value_percent(uint64_t part, uint64_t whole);

#endif
