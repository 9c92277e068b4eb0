/* SPDX-License-Identifier: MIT */
#include "probe/points/source_line.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "dwarf/source_map.h"
#include "symbols/debug_file.h"

#define ADDRESSES_MAX 4096 /* of one file: a line of a header that is inlined everywhere */

struct line_search {
	const struct point_spec *spec;
	struct line_addresses *out;
	struct map places; /* function and site of a unit -> index in out + 1 */
	const struct dwarf_unit_map *unit;
	bool has_file;
	uint64_t
		next; /* the nearest line behind the one that was asked for, which has code; 0 = none */
};

/* "a/b.c" is every file that ends so. */
static bool is_file(const struct dwarf_text *have, const char *asked)
{
	size_t n = strlen(asked);

	if (n > have->n || memcmp(have->p + have->n - n, asked, n))
		return false;
	return n == have->n || have->p[have->n - n - 1] == '/';
}

static size_t function_at(const struct dwarf_unit_map *m, uint64_t addr)
{
	for (size_t i = 0; i < m->functions.n; i++)
		if (addr >= m->functions.v[i].start && addr < m->functions.v[i].end)
			return i + 1;
	return 0;
}

/* Rows come by address, so the first one of a function is its lowest. */
static void take_row(struct line_search *w, const struct dwarf_row *row)
{
	uint64_t place = map_hash_mix(function_at(w->unit, row->addr), row->site);
	bool is_new;

	if (w->out->v.n >= ADDRESSES_MAX)
		return;
	map_ensure(&w->places, place, &is_new);
	if (is_new)
		vec_push(&w->out->v, row->addr);
}

static void take_unit(struct line_search *w, const struct dwarf_unit_map *m)
{
	const struct point_spec *spec = w->spec;
	bool *is_meant = mem_calloc(m->files.n + 1, sizeof(*is_meant));

	w->unit = m;
	for (size_t i = 1; i < m->files.n; i++) {
		is_meant[i] = is_file(&m->files.v[i], spec->provider);
		w->has_file |= is_meant[i];
	}
	for (size_t i = 0; i < m->rows.n; i++) {
		const struct dwarf_row *row = &m->rows.v[i];

		if (row->is_hole || row->file >= m->files.n || !is_meant[row->file])
			continue;
		if (row->line == spec->address && (!spec->count || row->column == spec->count))
			take_row(w, row);
		else if (row->line > spec->address && (!w->next || row->line < w->next))
			w->next = row->line;
	}
	map_release(&w->places);
	free(is_meant);
}

static void search_units(struct line_search *w, struct dwarf_debug *d)
{
	for (size_t i = 0; i < dwarf_debug_n_units(d); i++) {
		struct dwarf_unit_map m = {0};

		if (dwarf_unit_map_init(&m, d, i, NULL) == 0)
			take_unit(w, &m);
		dwarf_unit_map_release(&m);
	}
}

int source_line_find(struct line_addresses *out, struct site_search *s, const struct elf_file *elf,
	const char *path, struct err *err)
{
	struct line_search w = {.spec = s->spec, .out = out};
	struct debug_file debug = {0};
	struct dwarf_debug *d = NULL;
	int rc = dwarf_debug_open(&d, elf, path, NULL);

	if (rc < 0 && debug_file_open(&debug, elf, path, NULL) == 0)
		rc = dwarf_debug_open(&d, &debug.elf, debug.path, NULL);
	if (rc < 0) {
		debug_file_close(&debug);
		return err_set(err, ERR_NOT_FOUND,
			"has no debug information, so lines of source are not known");
	}
	search_units(&w, d);
	if (!out->v.n && !w.has_file)
		snprintf(s->hint, sizeof(s->hint), "nothing in it was compiled from '%.200s'",
			s->spec->provider);
	else if (!out->v.n && w.next)
		snprintf(s->hint, sizeof(s->hint), "the next line with code is %llu",
			(unsigned long long)w.next);
	dwarf_debug_close(d);
	debug_file_close(&debug);
	return 0;
}
