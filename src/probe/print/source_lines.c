/* SPDX-License-Identifier: MIT */
#include "probe/print/source_lines.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "dwarf/source_map.h"
#include "symbols/debug_file.h"
#include "symbols/symtab.h"

#define KEPT_BYTES_MAX ((uint64_t)64 << 20) /* of debug information whose units are kept */
#define SITES_MAX      64		    /* inlined into one another */

struct read_unit {
	size_t number;
	struct dwarf_unit_map map;
};

struct source_lines {
	const struct elf_file *elf;
	const char *path;
	bool was_tried;
	struct debug_file separate;
	struct dwarf_debug *debug; /* NULL: there is none */
	VEC(struct read_unit) units;
	uint64_t kept_bytes; /* of debug information behind them */
	struct arena *texts; /* of the answer */
};

struct source_lines *source_lines_new(const struct elf_file *elf, const char *path)
{
	struct source_lines *l = mem_zalloc(sizeof(*l));

	l->elf = elf;
	l->path = path;
	return l;
}

static void drop_units(struct source_lines *l)
{
	for (size_t i = 0; i < l->units.n; i++)
		dwarf_unit_map_release(&l->units.v[i].map);
	l->units.n = 0;
	l->kept_bytes = 0;
}

void source_lines_free(struct source_lines *l)
{
	if (!l)
		return;
	drop_units(l);
	vec_release(&l->units);
	dwarf_debug_close(l->debug);
	debug_file_close(&l->separate);
	arena_free(l->texts);
	free(l);
}

static void open_debug(struct source_lines *l)
{
	struct dwarf_debug *debug;

	l->was_tried = true;
	if (dwarf_debug_open(&debug, l->elf, l->path, NULL) == 0)
		l->debug = debug;
	else if (debug_file_open(&l->separate, l->elf, l->path, NULL) == 0 &&
		 dwarf_debug_open(&debug, &l->separate.elf, l->separate.path, NULL) == 0)
		l->debug = debug;
}

/* NULL when it cannot be read. */
static const struct dwarf_unit_map *read_unit(struct source_lines *l, size_t number)
{
	struct read_unit unit = {.number = number};

	for (size_t i = 0; i < l->units.n; i++)
		if (l->units.v[i].number == number)
			return &l->units.v[i].map;
	if (l->kept_bytes > KEPT_BYTES_MAX)
		drop_units(l);
	if (dwarf_unit_map_init(&unit.map, l->debug, number, NULL) < 0) {
		dwarf_unit_map_release(&unit.map);
		unit.map = (struct dwarf_unit_map){0}; /* tried once */
	}
	l->kept_bytes += unit.map.n_bytes;
	vec_push(&l->units, unit);
	return &l->units.v[l->units.n - 1].map;
}

/* The row that covers the address, or NULL. */
static const struct dwarf_row *find_row(const struct dwarf_unit_map *m, uint64_t iaddr)
{
	size_t low = 0, high = m->rows.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->rows.v[middle].addr <= iaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low && !m->rows.v[low - 1].is_hole ? &m->rows.v[low - 1] : NULL;
}

static const char *keep_text(struct source_lines *l, struct dwarf_text text)
{
	return text.n ? arena_strndup(l->texts, text.p, text.n) : NULL;
}

static const char *keep_name(struct source_lines *l, struct dwarf_text text)
{
	const char *plain = keep_text(l, text);
	char *readable = plain ? symbol_demangle(plain) : NULL;
	const char *kept = readable ? arena_strdup(l->texts, readable) : NULL;

	free(readable);
	return kept;
}

static size_t unroll_sites(struct source_lines *l, const struct dwarf_unit_map *m,
	const struct dwarf_row *row, struct printer_place *out, size_t max)
{
	uint32_t site = row->site, file = row->file, line = row->line;
	size_t n = 0;

	while (n < max) {
		struct printer_place *place = &out[n++];

		*place = (struct printer_place){.line = line,
			.file = file < m->files.n ? keep_text(l, m->files.v[file]) : NULL};
		if (!site || site >= m->sites.n || n > SITES_MAX)
			break;
		place->inlined = keep_name(l, m->names.v[m->sites.v[site].name]);
		file = m->sites.v[site].call_file;
		line = m->sites.v[site].call_line;
		site = m->sites.v[site].parent;
	}
	return n;
}

size_t source_lines_at(
	struct source_lines *l, uint64_t iaddr, struct printer_place *out, size_t max)
{
	bool *wanted;
	size_t n = 0, n_units;

	if (!l->was_tried)
		open_debug(l);
	if (!l->debug)
		return 0;
	arena_free(l->texts);
	l->texts = arena_new();
	n_units = dwarf_debug_n_units(l->debug);
	wanted = mem_calloc(n_units + 1, sizeof(*wanted));
	dwarf_debug_units_at(l->debug, &iaddr, 1, wanted);
	for (size_t i = 0; i < n_units && !n; i++) {
		const struct dwarf_unit_map *m = wanted[i] ? read_unit(l, i) : NULL;
		const struct dwarf_row *row = m ? find_row(m, iaddr) : NULL;

		if (row && row->line)
			n = unroll_sites(l, m, row, out, max);
	}
	free(wanted);
	return n;
}
