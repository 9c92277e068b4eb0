/* SPDX-License-Identifier: MIT */
/*
 * What a counted program executed and what not: functions, blocks, lines; in all, by file, by
 * function. A part that the compiler split off belongs to its function. A line is executed when one
 * of its blocks is. Functions that were left alone are not known: they are neither executed nor
 * not, and their blocks and lines are in no total.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "cmd/report/rows.h"
#include "cmd/report/source_view.h"

#define FUNCTION_LINES_MAX 200 /* ranges shown in text for one function */

enum coverage_state {
	COVERAGE_NOT_KNOWN,
	COVERAGE_NOT_EXECUTED,
	COVERAGE_PARTLY_EXECUTED,
	COVERAGE_EXECUTED
};

static const char *const states[] = {
	[COVERAGE_NOT_KNOWN] = "not known",
	[COVERAGE_NOT_EXECUTED] = "not executed",
	[COVERAGE_PARTLY_EXECUTED] = "partly executed",
	[COVERAGE_EXECUTED] = "executed",
};

struct share {
	uint64_t n, n_executed;
};

/* A line of a function; of a file, when function is the same for all. */
struct covered_line {
	uint32_t file, function, line;
	bool is_executed;
};

struct covered_function {
	const struct code_function *f;
	enum coverage_state state;
	struct share blocks, lines;
	size_t first_line, n_lines; /* in coverage.lines: those of its own file */
};

struct covered_file {
	uint32_t file;
	struct share functions, blocks, lines;
	uint64_t n_not_known;
};

struct coverage {
	struct code_counts *counts;
	struct covered_function *functions; /* without parts; in order of the model */
	size_t n_functions;
	VEC(struct covered_line) lines; /* by function, line */
	struct covered_file *files;	/* by path; those with a function or a line */
	size_t n_files;
	struct covered_file total;
};

/* ---- the model ---- */

ORDER_BY(compare_lines, struct covered_line, function, file, line)

/* In order, each line once. */
static size_t merge_lines(struct covered_line *lines, size_t n)
{
	size_t n_merged = 0;

	if (n)
		qsort(lines, n, sizeof(*lines), compare_lines);
	for (size_t i = 0; i < n; i++)
		if (n_merged && !compare_lines(&lines[n_merged - 1], &lines[i]))
			lines[n_merged - 1].is_executed |= lines[i].is_executed;
		else
			lines[n_merged++] = lines[i];
	return n_merged;
}

static void add_blocks(
	struct coverage *v, const struct code_function *f, uint32_t to, struct share *blocks)
{
	const struct code_counts *c = v->counts;

	for (uint32_t i = 0; i < f->n_blocks; i++) {
		const struct code_block *block = &c->blocks[f->first_block + i];

		blocks->n++;
		blocks->n_executed += block->count != 0;
		for (uint32_t j = 0; j < block->n_lines; j++) {
			const struct code_line *line = &c->lines[block->first_line + j];

			if (line->file && line->line)
				vec_push(&v->lines, ((struct covered_line){line->file, to,
							    line->line, block->count != 0}));
		}
	}
}

static enum coverage_state state_of(const struct covered_function *f)
{
	if (!f->f->is_counted)
		return COVERAGE_NOT_KNOWN;
	if (!f->blocks.n_executed)
		return COVERAGE_NOT_EXECUTED;
	return f->blocks.n_executed < f->blocks.n ? COVERAGE_PARTLY_EXECUTED : COVERAGE_EXECUTED;
}

/* Functions that match the filter, with the blocks of their parts. */
static void collect_functions(struct coverage *v, const struct report *report)
{
	struct code_counts *c = v->counts;
	uint32_t *owners = code_counts_owners(c);
	uint32_t *place = mem_calloc(c->n_functions + 1, sizeof(*place)); /* index + 1 */

	v->functions = mem_calloc(c->n_functions + 1, sizeof(*v->functions));
	for (size_t i = 0; i < c->n_functions; i++)
		if (owners[i] == i &&
			query_matches(&report->options->query, c->functions[i].name)) {
			v->functions[v->n_functions].f = &c->functions[i];
			place[i] = (uint32_t)++v->n_functions;
		}
	for (size_t i = 0; i < c->n_functions; i++) {
		uint32_t at = place[owners[i]];

		if (at)
			add_blocks(v, &c->functions[i], at - 1, &v->functions[at - 1].blocks);
	}
	v->lines.n = merge_lines(v->lines.v, v->lines.n);
	for (size_t i = 0; i < v->n_functions; i++)
		v->functions[i].state = state_of(&v->functions[i]);
	free(place);
	free(owners);
}

static void share_lines(struct coverage *v)
{
	for (size_t i = 0; i < v->lines.n; i++) {
		struct covered_function *f = &v->functions[v->lines.v[i].function];

		if (v->lines.v[i].file != f->f->file)
			continue;
		if (!f->n_lines++)
			f->first_line = i;
		f->lines.n++;
		f->lines.n_executed += v->lines.v[i].is_executed;
	}
}

static void add_share(struct share *to, const struct share *share)
{
	to->n += share->n;
	to->n_executed += share->n_executed;
}

static int compare_files(const void *a, const void *b, void *context)
{
	const struct covered_file *x = a, *y = b;
	const struct code_counts *c = context;

	return strcmp(c->files[x->file], c->files[y->file]);
}

/* Lines that several functions have (inlined, templates) count once in their file. */
static void collect_files(struct coverage *v)
{
	struct code_counts *c = v->counts;
	struct covered_line *lines = mem_calloc(v->lines.n + 1, sizeof(*lines));
	size_t n;

	v->files = mem_calloc(c->n_files + 1, sizeof(*v->files));
	for (size_t i = 0; i < v->lines.n; i++) {
		lines[i] = v->lines.v[i];
		lines[i].function = 0;
	}
	n = merge_lines(lines, v->lines.n);
	for (size_t i = 0; i < n; i++) {
		v->files[lines[i].file].lines.n++;
		v->files[lines[i].file].lines.n_executed += lines[i].is_executed;
	}
	free(lines);
	for (size_t i = 0; i < v->n_functions; i++) {
		struct covered_file *file = &v->files[v->functions[i].f->file];
		struct share one = {1, v->functions[i].state >= COVERAGE_PARTLY_EXECUTED};

		file->n_not_known += !v->functions[i].f->is_counted;
		add_share(&file->functions, &one);
		add_share(&file->blocks, &v->functions[i].blocks);
	}
	for (size_t i = 0; i < c->n_files; i++) {
		struct covered_file *file = &v->files[i];

		if (!file->functions.n && !file->lines.n)
			continue;
		file->file = (uint32_t)i;
		add_share(&v->total.functions, &file->functions);
		add_share(&v->total.blocks, &file->blocks);
		add_share(&v->total.lines, &file->lines);
		v->total.n_not_known += file->n_not_known;
		v->files[v->n_files++] = *file;
	}
	if (v->n_files)
		qsort_r(v->files, v->n_files, sizeof(*v->files), compare_files, c);
}

static int coverage_init(struct coverage *v, const struct report *report, struct err *err)
{
	int rc;

	memset(v, 0, sizeof(*v));
	rc = report_code_counts(&v->counts, report, err);
	if (rc < 0)
		return rc;
	collect_functions(v, report);
	share_lines(v);
	collect_files(v);
	return 0;
}

static void coverage_release(struct coverage *v)
{
	code_counts_free(v->counts);
	free(v->functions);
	vec_release(&v->lines);
	free(v->files);
}

/* ---- rows ---- */

static void print_total(FILE *out, const char *what, const struct share *s, const char *of)
{
	fprintf(out, "%9s  %" PRIu64 " of %" PRIu64 " executed, %s %%%s\n", what, s->n_executed,
		s->n, value_percent(s->n_executed, s->n).s, of);
}

/* What was left alone has blocks and lines, too: nobody knows how many. */
static void print_totals(FILE *out, const struct covered_file *total)
{
	const char *of = total->n_not_known ? " of those that are known" : "";

	fprintf(out, "functions  %" PRIu64 " of %" PRIu64 " executed, %s %%",
		total->functions.n_executed, total->functions.n,
		value_percent(total->functions.n_executed, total->functions.n).s);
	if (total->n_not_known)
		fprintf(out, "; %" PRIu64 " (%s %%) %s not known", total->n_not_known,
			value_percent(total->n_not_known, total->functions.n).s,
			total->n_not_known == 1 ? "is" : "are");
	fputc('\n', out);
	print_total(out, "blocks", &total->blocks, of);
	print_total(out, "lines", &total->lines, of);
}

/* Of so many, with the share in percent in front. */
static const struct column file_columns[] = {
	{"Lines%", "Lines%", 0},
	{"lines_executed", "Executed", 0},
	{"lines", "Lines", 0},
	{"Blocks%", "Blocks%", 0},
	{"blocks_executed", "Executed", 0},
	{"blocks", "Blocks", 0},
	{"Functions%", "Functions%", 0},
	{"functions_executed", "Executed", 0},
	{"functions", "Functions", 0},
	{"file", "File", 0},
	{0},
};

/* In JSON the number of what is not there is 0. */
static void put_share(struct rows *r, const char *key, const char *executed, const char *percent,
	const struct share *s)
{
	bool is_known = s->n || r->is_json;

	row_count(r, key, is_known, s->n);
	row_count(r, executed, is_known, s->n_executed);
	row_show_percent(r, percent, s->n, s->n_executed, s->n);
}

static void put_shares(struct rows *r, const struct covered_file *file)
{
	put_share(r, "functions", "functions_executed", "Functions%", &file->functions);
	row_number(r, "functions_not_known", file->n_not_known);
	put_share(r, "blocks", "blocks_executed", "Blocks%", &file->blocks);
	put_share(r, "lines", "lines_executed", "Lines%", &file->lines);
}

static void put_files(struct rows *r, const struct coverage *v)
{
	size_t n = query_limit(&r->report->options->query, v->n_files);

	rows_open(r, "files", file_columns);
	for (size_t i = 0; i < n; i++) {
		row_begin(r, TABLE_STYLE_PLAIN);
		row_text(r, "file", v->counts->files[v->files[i].file]);
		put_shares(r, &v->files[i]);
		row_end(r);
	}
	if (!r->is_json)
		fputc('\n', r->report->out);
	rows_close(r);
	rows_more(r, v->n_files, n);
}

/* "12-14, 20": lines with code that was not executed; a range goes over lines without code. */
static void put_ranges(struct buf *b, const struct coverage *v, const struct covered_function *f)
{
	uint32_t first = 0, last = 0;
	size_t n = 0;

	for (size_t i = 0; i <= f->n_lines; i++) {
		const struct covered_line *line =
			i < f->n_lines ? &v->lines.v[f->first_line + i] : NULL;

		if (line && !line->is_executed) {
			first = first ? first : line->line;
			last = line->line;
			continue;
		}
		if (!first)
			continue;
		if (n++ == FUNCTION_LINES_MAX) {
			buf_put_cstr(b, ", ...");
			return;
		}
		buf_printf(b, n > 1 ? ", %" PRIu32 : "%" PRIu32, first);
		if (last > first)
			buf_printf(b, "-%" PRIu32, last);
		first = 0;
	}
}

static void put_place(struct buf *b, const struct coverage *v, const struct code_function *f)
{
	const char *path = v->counts->files[f->file];

	if (*path)
		buf_printf(b, "%s:%" PRIu32, path, f->line);
	else
		buf_put_cstr(b, *f->object ? f->object : ".");
}

static void json_lines(struct json *j, const struct coverage *v, const struct covered_function *f)
{
	json_array_begin(j, "lines_not_executed");
	for (size_t i = 0; i < f->n_lines; i++)
		if (!v->lines.v[f->first_line + i].is_executed)
			json_u64(j, NULL, v->lines.v[f->first_line + i].line);
	json_array_end(j);
}

static const struct column partly_columns[] = {
	{"Blocks", "Blocks", 0},
	{"Lines", "Lines not executed", COLUMN_LEFT},
	{"Where", "Where", COLUMN_LEFT},
	{"function", "Function", 0},
	{0},
};
static const struct column not_executed_columns[] = {
	{"blocks", "Blocks", 0},
	{"Where", "Where", COLUMN_LEFT},
	{"function", "Function", 0},
	{0},
};
static const struct column not_known_columns[] = {
	{"Reason", "Reason", COLUMN_LEFT},
	{"Where", "Where", COLUMN_LEFT},
	{"function", "Function", 0},
	{0},
};

static void show_function(
	struct rows *r, const struct coverage *v, const struct covered_function *f)
{
	struct buf b = {0};

	row_showf(r, "Blocks", "%" PRIu64 "/%" PRIu64, f->blocks.n_executed, f->blocks.n);
	row_show(r, "Reason", f->f->reason);
	put_ranges(&b, v, f);
	row_show(r, "Lines", b.n ? buf_text(&b) : ".");
	buf_reset(&b);
	put_place(&b, v, f->f);
	row_show(r, "Where", buf_text(&b));
	buf_release(&b);
}

static void put_function(struct rows *r, const struct coverage *v, const struct covered_function *f)
{
	row_begin(r, TABLE_STYLE_PLAIN);
	row_string(r, "function", f->f->name);
	row_text(r, "image", f->f->image);
	row_text(r, "file", v->counts->files[f->f->file]);
	row_count(r, "line", f->f->line, f->f->line);
	row_string(r, "state", states[f->state]);
	row_text(r, "reason", f->f->reason);
	row_count(r, "blocks", f->f->is_counted, f->blocks.n);
	row_count(r, "blocks_executed", f->f->is_counted, f->blocks.n_executed);
	row_count(r, "lines", f->lines.n, f->lines.n);
	row_count(r, "lines_executed", f->lines.n, f->lines.n_executed);
	if (r->is_json)
		json_lines(&r->json, v, f);
	else
		show_function(r, v, f);
	row_end(r);
}

static void show_functions(struct rows *r, const struct coverage *v, enum coverage_state state)
{
	static const struct column *const columns[] = {
		[COVERAGE_NOT_KNOWN] = not_known_columns,
		[COVERAGE_NOT_EXECUTED] = not_executed_columns,
		[COVERAGE_PARTLY_EXECUTED] = partly_columns,
	};
	uint64_t limit = r->report->options->query.limit;
	size_t n = 0, n_shown = 0;

	rows_open(r, NULL, columns[state]);
	for (size_t i = 0; i < v->n_functions; i++) {
		if (v->functions[i].state != state || (++n > limit && limit))
			continue;
		n_shown++;
		put_function(r, v, &v->functions[i]);
	}
	if (n) {
		fprintf(r->report->out, "\nFunctions %s: %zu\n",
			state == COVERAGE_NOT_KNOWN ? "not known (they were left alone)"
						    : states[state],
			n);
		rows_close(r);
		rows_more(r, n, n_shown);
	}
	table_release(&r->table);
}

static void show_coverage(struct rows *r, const struct coverage *v)
{
	print_totals(r->report->out, &v->total);
	put_files(r, v);
	show_functions(r, v, COVERAGE_NOT_EXECUTED);
	show_functions(r, v, COVERAGE_PARTLY_EXECUTED);
	show_functions(r, v, COVERAGE_NOT_KNOWN);
}

static void json_coverage(struct rows *r, const struct coverage *v)
{
	size_t n = query_limit(&r->report->options->query, v->n_functions);

	row_begin_inside(r, "totals", TABLE_STYLE_PLAIN);
	put_shares(r, &v->total);
	row_end(r);
	put_files(r, v);
	rows_open(r, "rows", NULL);
	for (size_t i = 0; i < n; i++)
		put_function(r, v, &v->functions[i]);
	rows_close(r);
}

int coverage_report(const struct report *report, struct err *err)
{
	struct coverage v;
	struct rows r;
	int rc = coverage_init(&v, report, err);

	if (rc < 0)
		return rc;
	rows_begin(&r, report, "coverage", report->profile->total);
	(r.is_json ? json_coverage : show_coverage)(&r, &v);
	rows_end(&r);
	coverage_release(&v);
	return 0;
}
