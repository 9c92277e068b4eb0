/* SPDX-License-Identifier: MIT */
/*
 * Annotated source. Lines without code between those that have some are shown, a longer stretch
 * (another function that is inlined, a table) is left out. Lines of files whose text is not found
 * are shown without it, and a sentence says so.
 */
#include <inttypes.h>
#include <string.h>

#include "cmd/report/rows.h"
#include "cmd/report/source_text.h"
#include "cmd/report/source_view.h"

#define GAP_LINES   12 /* between two lines with code, shown at most */
#define LEAD_LINES  4  /* in front of the first line with code */
#define CALLERS_MAX 6  /* in the comment before a function */

/* A line to be shown. */
struct shown_line {
	const char *file;
	uint32_t line;
	const struct source_row *row; /* NULL: it has no code */
	struct buf text;
	bool has_text;
	bool begins_file, begins_function, follows_gap;
};

struct source_shower {
	const struct report *report;
	const struct source_view *view;
	const struct source_function *function;
	struct source_text text;
	const char *text_file; /* whose text is open; NULL: none */
	struct shown_line line;
	uint64_t n_shown; /* over all functions */
	struct rows rows;
};

/* ---- walking ---- */

/* Where the function begins: functions inlined into it may stand further up. */
static const struct source_row *head_row(const struct source_function *f)
{
	size_t i = 0;

	while (i < f->n_rows && (strcmp(f->rows[i].file, f->file) || f->rows[i].line != f->line))
		i++;
	if (!f->line || i == f->n_rows)
		return f->rows;
	/* The first instruction need not be of the first line. */
	while (i && !strcmp(f->rows[i - 1].file, f->file) &&
		f->rows[i].line - f->rows[i - 1].line <= 2)
		i--;
	return &f->rows[i];
}

static bool may_show(const struct source_shower *s)
{
	uint64_t limit = s->report->options->query.limit;

	return !limit || s->n_shown < limit;
}

static void show_row(struct source_shower *s);

static void show(struct source_shower *s, uint32_t line, const struct source_row *row)
{
	struct span text = source_text_line(&s->text, line);

	if (!may_show(s))
		return;
	s->line.line = line;
	s->line.row = row;
	s->line.has_text = s->text.n_lines && line;
	buf_reset(&s->line.text);
	for (size_t i = 0; i < text.n; i++) /* nothing that moves the cursor of a terminal */
		buf_put_u8(&s->line.text, text.p[i] < ' ' && text.p[i] != '\t' ? '?' : text.p[i]);
	show_row(s);
	s->n_shown++;
	s->line.begins_file = s->line.begins_function = s->line.follows_gap = false;
}

static void open_text(struct source_shower *s, const char *file)
{
	if (s->text_file && !strcmp(s->text_file, file))
		return;
	source_text_release(&s->text);
	s->text_file = file;
	if (*file)
		source_text_open(&s->text, file, trace_reader_name(s->report->reader));
}

/* The first line of what this line begins: "int", "main(void)", "{". */
static uint32_t lead_of(const struct source_shower *s, uint32_t line)
{
	uint32_t lead = line;

	while (lead > 1 && line - lead < LEAD_LINES) {
		struct span text = source_text_line(&s->text, lead - 1);

		while (text.n && (text.p[text.n - 1] == ' ' || text.p[text.n - 1] == '\t'))
			text.n--;
		if (!text.n || strchr("};/", text.p[text.n - 1]) || text.p[0] == '#')
			break;
		lead--;
	}
	return lead;
}

/* Lines without code in front of a row, those from `next` on. */
static void show_lead(struct source_shower *s, const struct source_row *row, uint32_t next)
{
	bool is_near = next && row->line >= next && row->line - next <= GAP_LINES;
	bool is_head = row == head_row(s->function);
	uint32_t lead = is_near && !is_head ? row->line : lead_of(s, row->line);

	if (!s->text.n_lines || !row->line) {
		s->line.begins_function = is_head;
		return;
	}
	if (lead < next)
		lead = next;
	if (is_near)
		for (; next < lead; next++)
			show(s, next, NULL);
	else
		s->line.follows_gap = next && lead > next;
	s->line.begins_function = is_head;
	for (; lead < row->line; lead++)
		show(s, lead, NULL);
}

/* The lines of one file. Returns the number of rows used up. */
static size_t show_file(struct source_shower *s, const struct source_row *rows, size_t n)
{
	const char *file = rows[0].file;
	uint32_t next = 0; /* line to be shown next */
	size_t i = 0;

	open_text(s, file);
	s->line.file = file;
	s->line.begins_file = true;
	s->line.follows_gap = false;
	for (; i < n && !strcmp(rows[i].file, file); i++) {
		show_lead(s, &rows[i], next);
		show(s, rows[i].line, &rows[i]);
		next = rows[i].line ? rows[i].line + 1 : 0;
	}
	return i;
}

static void show_function(struct source_shower *s)
{
	const struct source_function *f = s->function;

	for (size_t i = 0; i < f->n_rows && may_show(s);)
		i += show_file(s, f->rows + i, f->n_rows - i);
}

/* ---- text ---- */

static void put_callers(struct buf *b, const struct source_function *f)
{
	for (size_t i = 0; i < f->callers.n && i < CALLERS_MAX; i++) {
		const struct source_caller *caller = &f->callers.v[i];

		buf_put_cstr(b, i ? ", " : f->has_calls ? " (" : "called by ");
		if (caller->has_calls)
			buf_printf(b, "%" PRIu64 " by ", caller->calls);
		buf_put_cstr(b, *caller->name ? caller->name : "nobody that is known");
	}
	if (f->callers.n > CALLERS_MAX)
		buf_printf(b, ", and %zu more callers", f->callers.n - CALLERS_MAX);
	if (f->callers.n)
		buf_put_cstr(b, f->has_calls ? "); " : "; ");
	else if (f->has_calls)
		buf_put_cstr(b, "; ");
}

/* The summary before a function, as a comment. */
static void put_comment(struct source_shower *s)
{
	const struct source_function *f = s->function;
	const char *metric = s->report->profile->metric;
	struct buf b = {0};

	buf_printf(&b, "/* %s: ", f->name);
	if (f->has_calls)
		buf_printf(&b, "%" PRIu64 " call%s", f->calls, f->calls == 1 ? "" : "s");
	put_callers(&b, f);
	buf_printf(&b, "self %" PRIu64 " %s, %s %% of all */", source_value(s->view, f->value),
		metric, value_percent(f->value, s->view->total).s);
	table_line(&s->rows.table, buf_text(&b));
	buf_release(&b);
}

static void put_block(struct source_shower *s, const struct source_part *part)
{
	const struct code_block *block = part->block;
	struct rows *r = &s->rows;

	row_begin_inside(r, NULL, TABLE_STYLE_FAINT);
	row_number(r, "address", block->address);
	row_number(r, "end", block->end);
	row_string(r, "mark", block->count ? "|" : "#");
	row_value(r, "base", true, source_value(s->view, part->value));
	row_percent(r, "percent", true, part->value, s->function->value);
	row_number(r, "count", block->count);
	row_showf(r, "text", "    block 0x%" PRIx64 "-0x%" PRIx64, block->address, block->end);
	row_end(r);
}

static void put_blocks(struct source_shower *s, const struct source_row *row)
{
	for (size_t i = 0; i < row->n_parts; i++)
		if (s->function->parts.v[row->first_part + i].block)
			put_block(s, &s->function->parts.v[row->first_part + i]);
}

/* What the reader should know of the text of the file. */
static const char *text_doubt(const struct source_shower *s)
{
	const struct trace_image *image = report_image(s->report, s->function->image);

	if (!*s->line.file)
		return "";
	if (!s->text.n_lines)
		return " (its text was not found)";
	return image && image->file_mtime_ns && s->text.mtime_ns > image->file_mtime_ns
		       ? " (changed since the program was made: lines may not fit)"
		       : "";
}

/* What stands between the rows of a table. */
static void show_between(struct source_shower *s)
{
	struct buf b = {0};

	if (s->line.follows_gap)
		table_line(&s->rows.table, "...");
	if (s->line.begins_file) {
		buf_printf(&b, "%s:%s", *s->line.file ? s->line.file : "no file is known",
			text_doubt(s));
		table_line(&s->rows.table, buf_text(&b));
	}
	if (s->line.begins_function)
		put_comment(s);
	buf_release(&b);
}

static void show_row(struct source_shower *s)
{
	const struct source_row *row = s->line.row;
	bool has_blocks = row && s->report->options->blocks;
	char mark[2] = {row ? row->mark : ' ', 0};
	struct rows *r = &s->rows;

	if (!r->is_json)
		show_between(s);
	row_begin(r, mark[0] == '#' ? TABLE_STYLE_FAINT : TABLE_STYLE_PLAIN);
	row_string(r, "function", s->function->name);
	row_text(r, "file", s->line.file);
	row_count(r, "line", s->line.line, s->line.line);
	row_string(r, "text", s->line.has_text ? buf_text(&s->line.text) : NULL);
	row_string(r, "mark", mark);
	if (row || r->is_json) { /* in text it stays empty */
		row_value(r, "base", row, row ? source_value(s->view, row->value) : 0);
		row_percent(r, "percent", row, row ? row->value : 0, s->function->value);
		row_count(r, "count", row && s->view->is_counted, row ? row->count : 0);
	}
	if (has_blocks && r->is_json) {
		json_array_begin(&r->json, "blocks");
		put_blocks(s, row);
		json_array_end(&r->json);
	}
	row_end(r);
	if (has_blocks && !r->is_json)
		put_blocks(s, row);
}

static void print_instruction(
	void *ctx, uint64_t addr, const struct code_line *line, const char *text)
{
	const struct source_shower *s = ctx;

	if (line->line)
		fprintf(s->report->out, "  %8" PRIx64 "  %6" PRIu32 "  %s\n", addr, line->line,
			text);
	else
		fprintf(s->report->out, "  %8" PRIx64 "       .  %s\n", addr, text);
}

/* The function's blocks and those of its parts elsewhere, in order. */
static const struct code_block *next_block(
	const struct source_shower *s, size_t *part, uint32_t *block)
{
	const struct code_counts *c = s->view->counts;

	for (; *part < c->n_functions; (*part)++, *block = 0) {
		const struct code_function *f = &c->functions[*part];

		if (&c->functions[s->view->owners[*part]] == s->function->counted &&
			*block < f->n_blocks)
			return &c->blocks[f->first_block + (*block)++];
	}
	return NULL;
}

static void json_instruction(
	void *ctx, uint64_t addr, const struct code_line *line, const char *text)
{
	struct source_shower *s = ctx;
	struct rows *r = &s->rows;

	row_begin_inside(r, NULL, TABLE_STYLE_PLAIN);
	row_number(r, "address", addr);
	row_text(r, "file", s->view->counts->files[line->file]);
	row_count(r, "line", line->line, line->line);
	row_string(r, "text", text);
	row_end(r);
}

static void put_block_code(
	struct source_shower *s, struct code_listing *l, const struct code_block *b)
{
	struct rows *r = &s->rows;

	if (!r->is_json) {
		fprintf(s->report->out,
			"\n%c block 0x%" PRIx64 "-0x%" PRIx64 " executed %" PRIu64
			" times, %" PRIu32 " instructions\n",
			b->count ? '|' : '#', b->address, b->end, b->count, b->n_insns);
		code_listing_block(l, s->view->counts, b, print_instruction, s);
		return;
	}
	row_begin(r, TABLE_STYLE_PLAIN);
	row_number(r, "address", b->address);
	row_number(r, "end", b->end);
	row_number(r, "count", b->count);
	json_array_begin(&r->json, "instructions");
	code_listing_block(l, s->view->counts, b, json_instruction, s);
	json_array_end(&r->json);
	row_end(r);
}

static void put_assembly(struct source_shower *s)
{
	bool is_json = s->rows.is_json;
	const struct code_block *b;
	struct code_listing *l;
	const char *why = "the trace has samples, not blocks";
	size_t part = 0;
	uint32_t block = 0;

	l = s->view->is_counted ? code_listing_open(s->report, s->function->image, &why) : NULL;
	if (!l && is_json)
		json_null(&s->rows.json, "assembly");
	else if (!l)
		fprintf(s->report->out, "\nno instructions: %s\n", why);
	else if (is_json)
		json_array_begin(&s->rows.json, "assembly");
	while (l && (b = next_block(s, &part, &block)))
		put_block_code(s, l, b);
	if (l && is_json)
		json_array_end(&s->rows.json);
	code_listing_close(l);
}

static void show_source(struct source_shower *s)
{
	static const struct column columns[] = {
		{"percent", "Self%", 0},
		{"base", "Base", COLUMN_UNIT},
		{"count", "Count", 0},
		{"line", "Line", 0},
		{"mark", "", COLUMN_LEFT},
		{"text", "Source", 0},
		{0},
	};

	for (size_t i = 0; i < s->view->functions.n && may_show(s); i++) {
		s->function = &s->view->functions.v[i];
		rows_open(&s->rows, NULL, columns);
		show_function(s);
		if (i)
			fputc('\n', s->report->out);
		rows_close(&s->rows);
		if (s->report->options->assembly)
			put_assembly(s);
	}
}

/* ---- JSON ---- */

static void json_function(struct source_shower *s)
{
	const struct source_function *f = s->function;
	struct rows *r = &s->rows;

	row_begin(r, TABLE_STYLE_PLAIN);
	row_string(r, "name", f->name);
	row_text(r, "image", f->image);
	row_text(r, "file", f->file);
	row_count(r, "line", f->line, f->line);
	row_count(r, "calls", f->has_calls, f->calls);
	row_value(r, "base", true, source_value(s->view, f->value));
	json_array_begin(&r->json, "callers");
	for (size_t i = 0; i < f->callers.n; i++) {
		row_begin_inside(r, NULL, TABLE_STYLE_PLAIN);
		row_text(r, "name", f->callers.v[i].name);
		row_count(r, "calls", f->callers.v[i].has_calls, f->callers.v[i].calls);
		row_end(r);
	}
	json_array_end(&r->json);
	if (s->report->options->assembly)
		put_assembly(s);
	row_end(r);
}

static void json_source(struct source_shower *s)
{
	rows_open(&s->rows, "functions", NULL);
	for (size_t i = 0; i < s->view->functions.n; i++) {
		s->function = &s->view->functions.v[i];
		json_function(s);
	}
	rows_close(&s->rows);
	rows_open(&s->rows, "rows", NULL);
	for (size_t i = 0; i < s->view->functions.n; i++) {
		s->function = &s->view->functions.v[i];
		show_function(s);
	}
	rows_close(&s->rows);
}

int source_report(const struct report *report, struct err *err)
{
	struct source_view view;
	struct source_shower s = {.report = report, .view = &view};
	int rc = source_view_init(&view, report, err);

	if (rc < 0)
		return rc;
	rows_begin(&s.rows, report, "source", report->profile->total);
	(s.rows.is_json ? json_source : show_source)(&s);
	rows_end(&s.rows);
	source_text_release(&s.text);
	buf_release(&s.line.text);
	source_view_release(&view);
	return 0;
}
