/* SPDX-License-Identifier: MIT */
#include "cmd/report/rows.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

/* ---- reports and lists ---- */

static void json_begin(
	struct json *j, const struct report *report, const char *kind, uint64_t total)
{
	const struct profile *p = report->profile;

	json_object_begin(j, NULL);
	json_u64(j, "weir", 1);
	json_string(j, "kind", kind);
	json_string(j, "trace", trace_reader_name(report->reader));
	json_object_begin(j, "metric");
	json_string(j, "name", p ? p->metric : "instructions");
	json_string(j, "unit", p ? p->unit : "1");
	json_object_end(j);
	json_u64(j, "total", total);
}

void rows_init(struct rows *r, FILE *out, bool is_json)
{
	memset(r, 0, sizeof(*r));
	r->out = out;
	r->is_json = is_json;
	json_init(&r->json, out);
}

void rows_begin(struct rows *r, const struct report *report, const char *kind, uint64_t total)
{
	rows_init(r, report->out, report->options->json);
	r->report = report;
	r->color = report->options->color;
	if (r->is_json)
		json_begin(&r->json, report, kind, total);
}

void rows_end(struct rows *r)
{
	if (r->is_json && r->report) {
		json_newline(&r->json);
		report_json_loss(&r->json, r->report->loss);
	}
	if (r->is_json)
		json_object_end(&r->json);
	buf_release(&r->cells);
	buf_release(&r->line);
}

static bool is_shown(const struct report *report, unsigned flags)
{
	if (flags & COLUMN_ELAPSED)
		return report->options->elapsed;
	if (flags & COLUMN_PERCENT)
		return report->options->percent;
	if (flags & COLUMN_ESTIMATED)
		return report->profile->is_merged && calltree_has_estimates(report->profile->tree);
	return !(flags & COLUMN_MERGED) || report->profile->is_merged;
}

static void put_heads(struct rows *r)
{
	row_begin(r, TABLE_STYLE_STRONG);
	for (size_t i = 0; i < r->n_shown; i++) {
		const struct column *column = r->shown[i];
		const char *unit = column->flags & COLUMN_UNIT ? r->report->profile->unit : "";

		if (!*unit || !strcmp(unit, "1") || r->report->options->human)
			row_show(r, column->key, column->head);
		else
			row_showf(r, column->key, "%s[%s]", column->head, unit);
	}
	row_end(r);
}

void rows_open(struct rows *r, const char *key, const struct column *columns)
{
	memset(r->fields, 0, sizeof(r->fields));
	if (r->is_json) {
		if (!strcmp(key, "rows"))
			json_newline(&r->json);
		json_array_begin(&r->json, key);
		return;
	}
	r->n_shown = 0;
	r->table.left_columns = 0;
	if (r->report && r->report->options->terminal.is_there)
		r->table.terminal = &r->report->options->terminal;
	for (; columns->head; columns++) {
		if (!is_shown(r->report, columns->flags))
			continue;
		if (columns->flags & COLUMN_LEFT)
			r->table.left_columns |= 1u << r->n_shown;
		r->shown[r->n_shown++] = columns;
	}
	put_heads(r);
}

void rows_close(struct rows *r)
{
	if (r->is_json)
		json_array_end(&r->json);
	else
		table_print(&r->table, r->color, r->out);
	table_release(&r->table);
}

void rows_more(const struct rows *r, size_t n, size_t n_shown)
{
	if (!r->is_json && n > n_shown)
		fprintf(r->out, "  and %zu more\n", n - n_shown);
}

void rows_begin_plain(
	struct rows *r, const struct report *report, const char *kind, const struct column *columns)
{
	rows_begin(r, report, kind, report->profile->total);
	rows_open(r, "rows", columns);
}

void rows_end_plain(struct rows *r)
{
	rows_close(r);
	rows_end(r);
}

/* ---- rows ---- */

void row_begin_inside(struct rows *r, const char *key, enum table_style style)
{
	if (r->is_json) {
		json_object_begin(&r->json, key);
		return;
	}
	r->style = style;
	r->field_i = 0;
	buf_reset(&r->cells);
	memset(r->cell_at, 0, sizeof(r->cell_at));
}

void row_begin(struct rows *r, enum table_style style)
{
	if (r->is_json)
		json_newline(&r->json);
	row_begin_inside(r, NULL, style);
}

static const char *cell_text(const struct rows *r, size_t column)
{
	return r->cell_at[column] ? (const char *)r->cells.p + r->cell_at[column] - 1 : "";
}

/* Written at once, with what stands around a style of the table. */
static void stream_row(struct rows *r)
{
	const char *on = r->color ? table_style_on(r->style) : "";
	struct buf *line = &r->line;

	buf_reset(line);
	for (size_t i = 0; i < r->n_shown; i++) {
		const char *text = cell_text(r, i);
		int width = (int)COLUMN_WIDTH_OF(r->shown[i]->flags);

		if (i + 1 == r->n_shown)
			buf_put_cstr(line, text);
		else
			buf_printf(line, r->shown[i]->flags & COLUMN_LEFT ? "%-*s  " : "%*s  ",
				width, text);
	}
	if (r->table.terminal)
		terminal_cut(r->table.terminal, line, 0);
	fprintf(r->out, "%s%s%s", on, buf_text(line), *on ? "\033[0m\n" : "\n");
}

/* Up to the last cell that has something. */
void row_end(struct rows *r)
{
	size_t n = r->n_shown;

	if (r->is_json) {
		json_object_end(&r->json);
		return;
	}
	if (COLUMN_WIDTH_OF(r->shown[0]->flags)) {
		stream_row(r);
		return;
	}
	while (n && !r->cell_at[n - 1])
		n--;
	table_row(&r->table, r->style);
	for (size_t i = 0; i < n; i++)
		table_cell(&r->table, cell_text(r, i));
}

static size_t find_column(const struct rows *r, const char *key)
{
	for (size_t i = 0; i < r->n_shown; i++)
		if (!strcmp(r->shown[i]->key, key))
			return i;
	return SIZE_MAX;
}

/* Rows of a list mostly have the same fields: then the column is that of the row before. */
static size_t column_of(struct rows *r, const char *key)
{
	size_t i = r->field_i++ % ROWS_FIELDS_MAX;

	if (r->fields[i].key != key) {
		r->fields[i].key = key;
		r->fields[i].column = find_column(r, key);
	}
	return r->fields[i].column;
}

static void put_cell(struct rows *r, size_t column, const char *text)
{
	if (column == SIZE_MAX)
		return;
	r->cell_at[column] = r->cells.n + 1;
	buf_put(&r->cells, text, strlen(text) + 1);
}

/* ---- text alone ---- */

void row_show(struct rows *r, const char *key, const char *text)
{
	if (!r->is_json)
		put_cell(r, column_of(r, key), text);
}

void row_showf(struct rows *r, const char *key, const char *fmt, ...)
{
	char text[128];
	va_list ap;

	if (r->is_json)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	row_show(r, key, text);
}

static void show_number(struct rows *r, const char *key, bool is_known, uint64_t n, bool is_value)
{
	size_t column = column_of(r, key);
	char text[TABLE_NUMBER_BYTES];

	if (column == SIZE_MAX)
		return;
	if (!is_known)
		put_cell(r, column, ".");
	else if (is_value && r->report->options->human)
		put_cell(r, column, value_human(n, r->report->profile->unit).s);
	else
		put_cell(r, column, table_digits(text, n));
}

void row_show_percent(struct rows *r, const char *key, bool is_known, uint64_t part, uint64_t whole)
{
	size_t column = r->is_json ? SIZE_MAX : column_of(r, key);

	if (column != SIZE_MAX)
		put_cell(r, column, is_known ? value_percent(part, whole).s : ".");
}

/* ---- values ---- */

void row_value(struct rows *r, const char *key, bool is_measured, uint64_t value)
{
	if (r->is_json)
		json_u64_if(&r->json, key, is_measured, value);
	else
		show_number(r, key, is_measured, value, true);
}

void row_count(struct rows *r, const char *key, bool is_measured, uint64_t n)
{
	if (r->is_json)
		json_u64_if(&r->json, key, is_measured, n);
	else
		show_number(r, key, is_measured, n, false);
}

void row_number(struct rows *r, const char *key, uint64_t n)
{
	row_count(r, key, true, n);
}

void row_percent(struct rows *r, const char *key, bool is_known, uint64_t part, uint64_t whole)
{
	if (!r->is_json)
		row_show_percent(r, key, is_known, part, whole);
	else if (is_known)
		json_double(&r->json, key, whole ? 100.0 * (double)part / (double)whole : 0.0);
	else
		json_null(&r->json, key);
}

void row_address(struct rows *r, const char *key, uint64_t addr)
{
	if (r->is_json)
		json_address(&r->json, key, addr);
	else
		row_showf(r, key, "0x%" PRIx64, addr);
}

void row_string(struct rows *r, const char *key, const char *text)
{
	if (r->is_json)
		json_string(&r->json, key, text);
	else
		row_show(r, key, text ? text : ".");
}

void row_text(struct rows *r, const char *key, const char *text)
{
	row_string(r, key, text && *text ? text : NULL);
}

void row_bool(struct rows *r, const char *key, bool value)
{
	if (r->is_json)
		json_bool(&r->json, key, value);
	else
		row_show(r, key, value ? "yes" : "no");
}
