/* SPDX-License-Identifier: MIT */
#include "cmd/report/table.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define PRINT_BLOCK_BYTES (64 * 1024)

void table_release(struct table *t)
{
	buf_release(&t->text);
	free(t->rows);
	memset(t, 0, sizeof(*t));
}

void table_row(struct table *t, enum table_style style)
{
	if (t->n_rows == t->cap_rows)
		mem_grow((void **)&t->rows, &t->cap_rows, t->n_rows + 1, sizeof(*t->rows));
	t->rows[t->n_rows++] = (struct table_row){t->text.n, 0, style};
}

void table_cell(struct table *t, const char *text)
{
	struct table_row *row = &t->rows[t->n_rows - 1];
	size_t column = row->n_cells++, width = text_width(text);

	assert(column < TABLE_COLUMNS_MAX);
	if (row->style != TABLE_STYLE_STRONG && *text && strcmp(text, ".") != 0)
		t->used_columns |= 1u << column;
	if (width > t->widths[column])
		t->widths[column] = width;
	buf_put(&t->text, text, strlen(text) + 1);
}

void table_cellf(struct table *t, const char *fmt, ...)
{
	char text[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	table_cell(t, text);
}

const char *table_digits(char text[TABLE_NUMBER_BYTES], uint64_t number)
{
	char *p = text + TABLE_NUMBER_BYTES - 1;

	*p = 0;
	do
		*--p = (char)('0' + number % 10);
	while (number /= 10);
	return p;
}

void table_number(struct table *t, uint64_t number)
{
	char text[TABLE_NUMBER_BYTES];

	table_cell(t, table_digits(text, number));
}

void table_line(struct table *t, const char *text)
{
	table_row(t, TABLE_STYLE_PLAIN);
	buf_put(&t->text, text, strlen(text) + 1);
}

const char *table_style_on(enum table_style style)
{
	static const char *const on[] = {
		[TABLE_STYLE_PLAIN] = "",
		[TABLE_STYLE_STRONG] = "\033[1m",
		[TABLE_STYLE_FAINT] = "\033[2m",
		[TABLE_STYLE_HOT] = "\033[31m",
	};

	return on[style];
}

static void put_blanks(struct buf *b, size_t n)
{
	static const char blanks[] = "                                ";

	for (; n > sizeof(blanks) - 1; n -= sizeof(blanks) - 1)
		buf_put(b, blanks, sizeof(blanks) - 1);
	buf_put(b, blanks, n);
}

/* A value in every row, or heads alone: nothing is left out then. */
static bool is_left_out(const struct table *t, size_t column)
{
	return t->terminal && t->rows[0].style == TABLE_STYLE_STRONG && t->n_rows > 1 &&
	       !(t->used_columns >> column & 1);
}

static void put_cells(const struct table *t, const struct table_row *row, struct buf *b)
{
	const char *text = (const char *)t->text.p + row->first_cell;

	for (size_t i = 0; i < row->n_cells; i++) {
		bool is_last = i + 1 == row->n_cells;
		bool is_left = is_last || t->left_columns >> i & 1;
		size_t n = strlen(text), pad = t->widths[i] - text_width(text);

		if (!is_last && is_left_out(t, i)) {
			text += n + 1;
			continue;
		}
		if (!is_left)
			put_blanks(b, pad);
		buf_put(b, text, n);
		if (!is_last)
			put_blanks(b, (is_left ? pad : 0) + 2);
		text += n + 1;
	}
}

void table_print(const struct table *t, bool color, FILE *out)
{
	struct buf b = {0};

	for (size_t i = 0; i < t->n_rows; i++) {
		const struct table_row *row = &t->rows[i];
		const char *on = color ? table_style_on(row->style) : "";
		size_t from;

		buf_put_cstr(&b, on);
		from = b.n;
		if (row->n_cells)
			put_cells(t, row, &b);
		else
			buf_put_cstr(&b, (const char *)t->text.p + row->first_cell);
		if (t->terminal)
			terminal_cut(t->terminal, &b, from);
		buf_put_cstr(&b, *on ? "\033[0m\n" : "\n");
		if (b.n >= PRINT_BLOCK_BYTES || i + 1 == t->n_rows) {
			fwrite(b.p, 1, b.n, out);
			buf_reset(&b);
		}
	}
	buf_release(&b);
}

/* ---- numbers for people ---- */

struct scale {
	const char *unit;
	double factor;
	const char *name;
};

/* Largest first for each unit. */
static const struct scale scales[] = {
	{"ns", 1e9, "s"},
	{"ns", 1e6, "ms"},
	{"ns", 1e3, "us"},
	{"ns", 1, "ns"},
	{"bytes", 1e9, "GB"},
	{"bytes", 1e6, "MB"},
	{"bytes", 1e3, "kB"},
	{"bytes", 1, "B"},
	{"1", 1e9, "G"},
	{"1", 1e6, "M"},
	{"1", 1e3, "k"},
};

struct value_text value_human(uint64_t value, const char *unit)
{
	struct value_text text;

	for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
		const struct scale *s = &scales[i];

		if (strcmp(s->unit, unit) || (double)value < s->factor)
			continue;
		snprintf(text.s, sizeof(text.s), s->factor > 1 ? "%.2f %s" : "%.0f %s",
			(double)value / s->factor, s->name);
		return text;
	}
	snprintf(text.s, sizeof(text.s), "%" PRIu64, value);
	return text;
}

struct value_text value_percent(uint64_t part, uint64_t whole)
{
	struct value_text text;

	snprintf(
		text.s, sizeof(text.s), "%.2f", whole ? 100.0 * (double)part / (double)whole : 0.0);
	return text;
}
