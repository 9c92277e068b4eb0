/* SPDX-License-Identifier: MIT */
/*
 * A line was executed as often as its most frequent block; what several functions have of it
 * (inlined code, templates) is added up. Functions that were left alone are not known and left out,
 * as are blocks without a line.
 */
#include "formats/exports.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "calltree/code_calls.h"

struct lcov_line {
	uint32_t file, line, function;
	uint64_t count;
};

struct lcov_model {
	struct code_counts *counts;
	uint32_t *owners;
	VEC(struct lcov_line) lines;
	uint32_t *order; /* functions to be shown, by file, line */
	size_t n_functions;
};

ORDER_BY(compare_lines, struct lcov_line, file, line, function)

static void add_lines(struct lcov_model *m)
{
	const struct code_counts *c = m->counts;

	for (uint32_t i = 0; i < c->n_functions; i++) {
		const struct code_function *f = &c->functions[i];

		for (uint32_t k = 0; k < f->n_blocks; k++) {
			const struct code_block *block = &c->blocks[f->first_block + k];

			for (uint32_t j = 0; j < block->n_lines; j++) {
				const struct code_line *line = &c->lines[block->first_line + j];

				if (line->file && line->line)
					vec_push(&m->lines,
						((struct lcov_line){line->file, line->line,
							m->owners[i], block->count}));
			}
		}
	}
}

/* Greatest count of a line in each function, then their sum. */
static void merge_lines(struct lcov_model *m)
{
	struct lcov_line *v = m->lines.v;
	size_t n = 0, i = 0;

	vec_sort(&m->lines, compare_lines);
	while (i < m->lines.n) {
		struct lcov_line line = v[i++];

		for (; i < m->lines.n && !compare_lines(&line, &v[i]); i++)
			if (v[i].count > line.count)
				line.count = v[i].count;
		if (n && v[n - 1].file == line.file && v[n - 1].line == line.line)
			v[n - 1].count += line.count;
		else
			v[n++] = line;
	}
	m->lines.n = n;
}

static int compare_functions(const void *a, const void *b, void *context)
{
	const struct code_counts *c = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct code_function *f = &c->functions[x], *g = &c->functions[y];

	return ORDER(f->file, g->file) ?: ORDER(f->line, g->line) ?: ORDER(x, y);
}

static void order_functions(struct lcov_model *m)
{
	struct code_counts *c = m->counts;

	m->order = mem_calloc(c->n_functions + 1, sizeof(*m->order));
	for (uint32_t i = 0; i < c->n_functions; i++)
		if (c->functions[i].is_counted && c->functions[i].file && m->owners[i] == i)
			m->order[m->n_functions++] = i;
	if (m->n_functions)
		qsort_r(m->order, m->n_functions, sizeof(*m->order), compare_functions, c);
}

/* Calls; where they were not counted, how often its first block was executed. */
static uint64_t calls_of(const struct lcov_model *m, const struct code_function *f)
{
	return f->calls || !f->n_blocks ? f->calls : m->counts->blocks[f->first_block].count;
}

static void put_text(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < ' ' ? '?' : *text, out);
	fputc('\n', out);
}

/* Those of this file from *at on. */
static void put_functions(const struct lcov_model *m, FILE *out, uint32_t file, size_t *at)
{
	const struct code_counts *c = m->counts;
	size_t first = *at, n_hit = 0;

	for (; *at < m->n_functions && c->functions[m->order[*at]].file == file; (*at)++) {
		const struct code_function *f = &c->functions[m->order[*at]];

		fprintf(out, "FN:%" PRIu32 ",", f->line);
		put_text(out, f->linkage_name);
	}
	for (size_t i = first; i < *at; i++) {
		const struct code_function *f = &c->functions[m->order[i]];

		fprintf(out, "FNDA:%" PRIu64 ",", calls_of(m, f));
		put_text(out, f->linkage_name);
		n_hit += calls_of(m, f) != 0;
	}
	fprintf(out, "FNF:%zu\nFNH:%zu\n", *at - first, n_hit);
}

static void put_files(const struct lcov_model *m, FILE *out)
{
	size_t function = 0, line = 0;

	while (line < m->lines.n) {
		uint32_t file = m->lines.v[line].file;
		size_t first = line, n_hit = 0;

		fputs("TN:\nSF:", out);
		put_text(out, m->counts->files[file]);
		put_functions(m, out, file, &function);
		for (; line < m->lines.n && m->lines.v[line].file == file; line++) {
			fprintf(out, "DA:%" PRIu32 ",%" PRIu64 "\n", m->lines.v[line].line,
				m->lines.v[line].count);
			n_hit += m->lines.v[line].count != 0;
		}
		fprintf(out, "LF:%zu\nLH:%zu\nend_of_record\n", line - first, n_hit);
	}
}

int export_lcov(const struct profile *profile, FILE *out, struct err *err)
{
	struct lcov_model m = {0};
	int rc = code_counts_build(&m.counts, profile->reader, err);

	if (rc < 0)
		return rc;
	m.owners = code_counts_owners(m.counts);
	add_lines(&m);
	merge_lines(&m);
	order_functions(&m);
	if (!m.counts->n_functions)
		rc = err_set(err, ERR_NOT_FOUND,
			"'%s': has no counts of blocks (the program was not linked by 'weir count')",
			trace_reader_name(profile->reader));
	else if (!m.lines.n)
		rc = err_set(err, ERR_NOT_FOUND,
			"'%s': has no source lines ('weir report loss' says why)",
			trace_reader_name(profile->reader));
	else
		put_files(&m, out);
	free(m.order);
	free(m.owners);
	vec_release(&m.lines);
	code_counts_free(m.counts);
	return rc;
}
