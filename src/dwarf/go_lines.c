/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/map.h"
#include "base/search.h"
#include "dwarf/go_table.h"

#define FILE_BYTES_MAX 4096

struct lines {
	const struct go_table *t;
	struct dwarf_unit_map *out;
	struct map files; /* place of its text + 1 -> number */
};

/* The number of a file's text in `out`; 0 when there is none. */
static uint32_t file_number(struct lines *l, uint32_t unit, int32_t file)
{
	struct cursor c = cursor_of(span_sub(l->t->units,
		((uint64_t)unit + (uint32_t)file) * sizeof(uint32_t), sizeof(uint32_t)));
	uint32_t at = cursor_u32(&c);
	const char *text;
	uint64_t *number;
	bool created;

	if (file < 0 || c.failed || at == UINT32_MAX)
		return 0;
	number = map_ensure(&l->files, (uint64_t)at + 1, &created);
	if (!created)
		return (uint32_t)*number;
	text = span_short_cstr(l->t->files, at, FILE_BYTES_MAX);
	if (text && *text) {
		*number = l->out->files.n;
		vec_push(&l->out->files, ((struct dwarf_text){text, (uint32_t)strlen(text)}));
	}
	return (uint32_t)*number;
}

static void add_row(struct lines *l, const struct dwarf_row *row)
{
	struct dwarf_unit_map *out = l->out;

	/* Where a function follows the last one at once, its first row takes the hole's place. */
	if (out->rows.n && out->rows.v[out->rows.n - 1].addr == row->addr)
		out->rows.v[out->rows.n - 1] = *row;
	else
		vec_push(&out->rows, *row);
}

/* Runs of lines, cut where the file changes. */
static void add_function(struct lines *l, const struct go_function *f)
{
	struct go_values lines, files;
	uint64_t start, end = f->start, file_start, file_end = f->start;
	int32_t line, file = -1;

	go_values_init(&lines, f->lines, f);
	go_values_init(&files, f->files, f);
	while (go_values_next(&lines, &start, &end, &line)) {
		for (uint64_t at = start; at < end; at = file_end < end ? file_end : end) {
			while (file_end <= at)
				if (!go_values_next(&files, &file_start, &file_end, &file)) {
					file_end = UINT64_MAX;
					file = -1;
				}
			add_row(l, &(struct dwarf_row){.addr = at,
					   .file = file_number(l, f->unit, file),
					   .line = line > 0 ? (uint32_t)line : 0});
		}
	}
	add_row(l, &(struct dwarf_row){.addr = end, .is_hole = true});
}

void go_table_lines(
	const struct go_table *t, const uint64_t *addrs, size_t n_addrs, struct dwarf_unit_map *out)
{
	struct lines l = {.t = t, .out = out};
	uint64_t covered = 0;

	vec_push(&out->names, ((struct dwarf_text){0}));
	vec_push(&out->files, ((struct dwarf_text){0}));
	vec_push(&out->sites, ((struct dwarf_site){0}));
	for (uint64_t i = 0; i < t->n; i++) {
		struct go_function f;
		size_t k;

		if (!go_table_function(t, i, &f) || f.start < covered)
			continue;
		k = addrs ? SEARCH(0, n_addrs, a, addrs[a] < f.start) : 0;
		if (addrs && (k == n_addrs || addrs[k] - f.start >= f.size))
			continue;
		/* Real ones have less than a row a byte; in bad ones all functions share one table. */
		if (out->rows.n > t->bytes.n)
			break;
		covered = f.start + f.size;
		add_function(&l, &f);
	}
	out->n_bytes = t->bytes.n;
	map_release(&l.files);
}
