/* SPDX-License-Identifier: MIT */
/* Lines of programs whose blocks were counted: executions of each block, by the lines that it is of. */
#include "base/path_name.h"
#include "calltree/code_counts.h"
#include "query/diff/diff_run.h"

#define CYCLE_PARTS 100 /* costs are in hundredths */

static void add_line(struct diff_run *run, struct diff_keys *keys, const struct code_counts *c,
	const struct code_function *f, const struct code_line *line, double value)
{
	struct buf text = {0};
	uint32_t key;
	struct diff_run_row *row;

	if (line->line)
		buf_printf(&text, "%s:%u", path_base_name(c->files[line->file]), line->line);
	else
		buf_printf(&text, "%s (no line)", f->name);
	key = diff_key(keys, buf_text(&text), f->image, false);
	row = diff_run_row(run, key);
	row->is_exact = true;
	row->figure.value += value;
	buf_release(&text);
}

static void add_function(struct diff_run *run, struct diff_keys *keys, const struct code_counts *c,
	const struct code_function *f, bool is_cycles)
{
	for (uint32_t b = f->first_block; b < f->first_block + f->n_blocks; b++) {
		const struct code_block *block = &c->blocks[b];

		for (uint32_t l = block->first_line; l < block->first_line + block->n_lines; l++) {
			const struct code_line *line = &c->lines[l];
			double each = is_cycles ? (double)line->cost / CYCLE_PARTS : line->n_insns;

			add_line(run, keys, c, f, line, (double)block->count * each);
		}
	}
}

int diff_run_add_counted_lines(struct diff_run *run, struct diff_keys *keys,
	const struct profile *profile, const struct diff_run_question *q, struct err *err)
{
	bool is_cycles = !strcmp(profile->metric, "cycles");
	const char *name = trace_reader_name(profile->reader);
	struct code_counts *counts;
	int rc;

	if (q->with_callees)
		return err_set(err, ERR_UNSUPPORTED,
			"'%s': lines of counts have no callees (--by line without --cum)", name);
	if (!profile->counts.n_nodes ||
		(!is_cycles && strcmp(profile->metric, "instructions") != 0))
		return err_set(err, ERR_NOT_FOUND,
			"'%s': has %s by function, not by line (samples, and counts of instructions and "
			"cycles have lines)",
			name, profile->metric);
	rc = code_counts_build(&counts, profile->reader, err);
	for (size_t i = 0; rc == 0 && i < counts->n_functions; i++)
		add_function(run, keys, counts, &counts->functions[i], is_cycles);
	if (rc == 0)
		code_counts_free(counts);
	return rc;
}
