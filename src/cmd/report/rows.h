/* SPDX-License-Identifier: MIT */
/*
 * The rows of a report, said once and written twice: as a text table for people, or as a list of
 * JSON objects. A report gives each value of a row under its name in JSON; the columns say which of
 * them text shows, in which order and under which head.
 *
 * A value that was not measured is "." in text and null in JSON.
 */
#ifndef WEIR_CMD_REPORT_ROWS_H
#define WEIR_CMD_REPORT_ROWS_H

#include "cmd/report/report.h"
#include "cmd/report/table.h"

#define COLUMN_LEFT 0x1u /* stands left; numbers stand right */
#define COLUMN_UNIT 0x2u /* its head has the metric's unit: "Base[ns]" */
/* Shown only with --elapsed, with --percent, where there are figures by events and by samples,
 * where those of samples have weights: */
#define COLUMN_ELAPSED	 0x4u
#define COLUMN_PERCENT	 0x8u
#define COLUMN_MERGED	 0x10u
#define COLUMN_ESTIMATED 0x20u
/* So many characters, in which usual values fit: for lists that are written row by row, since they
 * may be long. All columns but the last have it, or none. */
#define COLUMN_WIDTH(n)	       ((n)*0x100u)
#define COLUMN_WIDTH_OF(flags) ((flags) / 0x100u)

struct column {
	const char *key;  /* of the values in it */
	const char *head; /* NULL ends a list of columns */
	unsigned flags;
};

#define ROWS_FIELDS_MAX 32 /* of a row, whose columns are remembered */

struct rows {
	const struct report *report; /* NULL: of something else than a trace */
	FILE *out;
	bool is_json, color;
	struct json json;
	struct table table;
	const struct column *shown[TABLE_COLUMNS_MAX];
	size_t n_shown;
	/* The row being made, as text: */
	enum table_style style;
	struct buf cells, line;
	size_t cell_at[TABLE_COLUMNS_MAX]; /* offset in cells + 1; 0: empty */
	size_t field_i;
	struct {
		const char *key;
		size_t column; /* SIZE_MAX: not shown */
	} fields[ROWS_FIELDS_MAX];
};

/* What a report begins and ends with: the JSON object around its lists, with what was lost; nothing
 * in text. The metric of kinds that walk steps is instructions. */
void rows_begin(struct rows *r, const struct report *report, const char *kind, uint64_t total);
void rows_end(struct rows *r);
/* The same without a report; the JSON object is begun by the caller. */
void rows_init(struct rows *r, FILE *out, bool is_json);

/* A list: the JSON array `key`, and a table with these columns (borrowed; at most
 * TABLE_COLUMNS_MAX are shown). It is printed when it ends. */
void rows_open(struct rows *r, const char *key, const struct column *columns);
void rows_close(struct rows *r);
/* "and N more" below a table of which not all rows are shown. */
void rows_more(const struct rows *r, size_t n, size_t n_shown);
/* rows_begin, rows_open of "rows", and the other way round. */
void rows_begin_plain(struct rows *r, const struct report *report, const char *kind,
	const struct column *columns);
void rows_end_plain(struct rows *r);

void row_begin(struct rows *r, enum table_style style);
/* The same inside of a row of JSON, on its line; `key` is NULL in lists. */
void row_begin_inside(struct rows *r, const char *key, enum table_style style);
void row_end(struct rows *r);

/* Values. The metric's are for people with --human; counts are plain integers. */
void row_value(struct rows *r, const char *key, bool is_measured, uint64_t value);
void row_count(struct rows *r, const char *key, bool is_measured, uint64_t n);
void row_number(struct rows *r, const char *key, uint64_t n);
void row_percent(struct rows *r, const char *key, bool is_known, uint64_t part, uint64_t whole);
void row_address(struct rows *r, const char *key, uint64_t addr);   /* 0x... */
void row_string(struct rows *r, const char *key, const char *text); /* NULL: not known */
void row_text(struct rows *r, const char *key, const char *text);   /* NULL or "": not known */
void row_bool(struct rows *r, const char *key, bool value);

/* The same for text alone, where it says something else than JSON. */
void row_show(struct rows *r, const char *key, const char *text);
void row_showf(struct rows *r, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void row_show_percent(
	struct rows *r, const char *key, bool is_known, uint64_t part, uint64_t whole);

/* flat_report.c: the values of a function, here and in the summary; "Base%" and "Cum%" too. */
void flat_row_put(struct rows *r, const struct flat_row *row);

#endif
