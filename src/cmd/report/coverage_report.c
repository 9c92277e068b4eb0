/* SPDX-License-Identifier: MIT */
/*
 * What a counted program executed and what not: functions, blocks, lines; in all, by file, by
 * function. A part that the compiler split off belongs to its function. A line is executed when one
 * of its blocks is. Functions that were left alone are not known: they are neither executed nor
 * not.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/report/source_view.h"
#include "cmd/report/values.h"

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

static int compare_lines(const void *a, const void *b)
{
	const struct covered_line *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

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
		if (owners[i] == i && report_name_matches(report, c->functions[i].name)) {
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
		if (v->functions[i].f->is_counted)
			add_share(&file->functions, &one);
		add_share(&file->blocks, &v->functions[i].blocks);
	}
	for (size_t i = 0; i < c->n_files; i++) {
		struct covered_file *file = &v->files[i];

		if (!file->functions.n && !file->lines.n && !file->n_not_known)
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

/* ---- text ---- */

static void print_total(FILE *out, const char *what, const struct share *s)
{
	fprintf(out, "%9s  %" PRIu64 " of %" PRIu64 " executed, %s %%\n", what, s->n_executed, s->n,
		value_percent(s->n_executed, s->n).s);
}

static void share_cells(struct table *t, const struct share *s)
{
	if (s->n)
		percent_cell(t, s->n_executed, s->n);
	else
		table_cell(t, ".");
	count_cell(t, s->n, s->n_executed);
	count_cell(t, s->n, s->n);
}

static bool is_over(const struct report *report, size_t n)
{
	return report->options->limit && n >= report->options->limit;
}

static void print_more(const struct report *report, size_t n, size_t n_shown)
{
	if (n > n_shown)
		fprintf(report->out, "  and %zu more\n", n - n_shown);
}

static void print_files(const struct report *report, const struct coverage *v)
{
	static const char *const heads[] = {"Lines%", "Executed", "Lines", "Blocks%", "Executed",
		"Blocks", "Functions%", "Executed", "Functions", "File"};
	struct table t = {0};
	size_t n = 0;

	table_row(&t, TABLE_STYLE_STRONG);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		table_cell(&t, heads[i]);
	for (; n < v->n_files && !is_over(report, n); n++) {
		const char *path = v->counts->files[v->files[n].file];

		table_row(&t, TABLE_STYLE_PLAIN);
		share_cells(&t, &v->files[n].lines);
		share_cells(&t, &v->files[n].blocks);
		share_cells(&t, &v->files[n].functions);
		table_cell(&t, *path ? path : ".");
	}
	fputc('\n', report->out);
	table_print(&t, report->options->color, report->out);
	table_release(&t);
	print_more(report, v->n_files, n);
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

static void put_function(
	struct table *t, const struct coverage *v, const struct covered_function *f, struct buf *b)
{
	buf_reset(b);
	table_row(t, TABLE_STYLE_PLAIN);
	if (f->state == COVERAGE_PARTLY_EXECUTED) {
		table_cellf(t, "%" PRIu64 "/%" PRIu64, f->blocks.n_executed, f->blocks.n);
		put_ranges(b, v, f);
		table_cell(t, b->n ? buf_text(b) : ".");
	} else if (f->state == COVERAGE_NOT_EXECUTED) {
		table_number(t, f->blocks.n);
	} else {
		table_cell(t, f->f->reason);
	}
	buf_reset(b);
	put_place(b, v, f->f);
	table_cell(t, buf_text(b));
	table_cell(t, f->f->name);
}

static void print_functions(
	const struct report *report, const struct coverage *v, enum coverage_state state)
{
	static const char *const heads[][2] = {
		[COVERAGE_NOT_KNOWN] = {"Reason", NULL},
		[COVERAGE_NOT_EXECUTED] = {"Blocks", NULL},
		[COVERAGE_PARTLY_EXECUTED] = {"Blocks", "Lines not executed"},
	};
	struct table t = {.left_columns = 1u << 1 | 1u << 2};
	struct buf b = {0};
	size_t n = 0, n_shown = 0;

	if (state == COVERAGE_NOT_KNOWN)
		t.left_columns |= 1;
	table_row(&t, TABLE_STYLE_STRONG);
	for (size_t i = 0; i < 2 && heads[state][i]; i++)
		table_cell(&t, heads[state][i]);
	table_cell(&t, "Where");
	table_cell(&t, "Function");
	for (size_t i = 0; i < v->n_functions; i++) {
		if (v->functions[i].state != state)
			continue;
		if (!is_over(report, n++)) {
			n_shown++;
			put_function(&t, v, &v->functions[i], &b);
		}
	}
	if (n) {
		fprintf(report->out, "\nFunctions %s: %zu\n",
			state == COVERAGE_NOT_KNOWN ? "not known (they were left alone)"
						    : states[state],
			n);
		table_print(&t, report->options->color, report->out);
		print_more(report, n, n_shown);
	}
	table_release(&t);
	buf_release(&b);
}

int coverage_text(const struct report *report, struct err *err)
{
	struct coverage v;
	int rc = coverage_init(&v, report, err);

	if (rc < 0)
		return rc;
	print_total(report->out, "functions", &v.total.functions);
	print_total(report->out, "blocks", &v.total.blocks);
	print_total(report->out, "lines", &v.total.lines);
	if (v.total.n_not_known)
		fprintf(report->out, "%" PRIu64 " function%s not known\n", v.total.n_not_known,
			v.total.n_not_known == 1 ? " is" : "s are");
	print_files(report, &v);
	print_functions(report, &v, COVERAGE_NOT_EXECUTED);
	print_functions(report, &v, COVERAGE_PARTLY_EXECUTED);
	print_functions(report, &v, COVERAGE_NOT_KNOWN);
	coverage_release(&v);
	return 0;
}

/* ---- JSON ---- */

static void json_shares(struct json *j, const struct covered_file *file)
{
	json_u64(j, "functions", file->functions.n);
	json_u64(j, "functions_executed", file->functions.n_executed);
	json_u64(j, "functions_not_known", file->n_not_known);
	json_u64(j, "blocks", file->blocks.n);
	json_u64(j, "blocks_executed", file->blocks.n_executed);
	json_u64(j, "lines", file->lines.n);
	json_u64(j, "lines_executed", file->lines.n_executed);
}

static void json_function(
	struct json *j, const struct coverage *v, const struct covered_function *f)
{
	json_newline(j);
	json_object_begin(j, NULL);
	json_string(j, "function", f->f->name);
	report_json_text(j, "image", f->f->image);
	report_json_text(j, "file", v->counts->files[f->f->file]);
	report_json_measured(j, "line", f->f->line, f->f->line);
	json_string(j, "state", states[f->state]);
	report_json_text(j, "reason", f->f->reason);
	report_json_measured(j, "blocks", f->f->is_counted, f->blocks.n);
	report_json_measured(j, "blocks_executed", f->f->is_counted, f->blocks.n_executed);
	report_json_measured(j, "lines", f->lines.n, f->lines.n);
	report_json_measured(j, "lines_executed", f->lines.n, f->lines.n_executed);
	json_array_begin(j, "lines_not_executed");
	for (size_t i = 0; i < f->n_lines; i++)
		if (!v->lines.v[f->first_line + i].is_executed)
			json_u64(j, NULL, v->lines.v[f->first_line + i].line);
	json_array_end(j);
	json_object_end(j);
}

int coverage_json(const struct report *report, struct err *err)
{
	struct coverage v;
	struct json j;
	int rc = coverage_init(&v, report, err);

	if (rc < 0)
		return rc;
	report_json_begin(&j, report, "coverage");
	json_object_begin(&j, "totals");
	json_shares(&j, &v.total);
	json_object_end(&j);
	json_array_begin(&j, "files");
	for (size_t i = 0; i < v.n_files && !is_over(report, i); i++) {
		json_newline(&j);
		json_object_begin(&j, NULL);
		report_json_text(&j, "file", v.counts->files[v.files[i].file]);
		json_shares(&j, &v.files[i]);
		json_object_end(&j);
	}
	json_array_end(&j);
	report_json_rows(&j);
	for (size_t i = 0; i < v.n_functions && !is_over(report, i); i++)
		json_function(&j, &v, &v.functions[i]);
	report_json_end(&j, report);
	coverage_release(&v);
	return 0;
}
