/* SPDX-License-Identifier: MIT */
#include "steps/calls/step_image.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/search.h"
#include "dwarf/source_map.h"

/* Rows of line tables that are kept at most. */
#define ROWS_MAX (1u << 26)

/* ---- the file ---- */

/* NULL when it is the file that ran, else why not. */
static const char *why_another(
	const struct step_image *i, const struct trace_image *image, const struct stat *st)
{
	struct span id = elf_file_build_id(&i->elf);
	uint64_t mtime_ns =
		(uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;

	if (image->build_id_n)
		return id.n == image->build_id_n && !memcmp(id.p, image->build_id, id.n)
			       ? NULL
			       : "its build-id is another";
	if (!image->file_bytes || image->file_bytes != (uint64_t)st->st_size)
		return "its size is another";
	if (image->file_mtime_ns && image->file_mtime_ns != mtime_ns)
		return "it was changed since";
	return NULL;
}

bool step_image_open(
	struct step_image *i, const struct trace_reader *r, uint32_t image, const char **why)
{
	const struct trace_image *t = trace_reader_image(r, image);
	const char *path = trace_reader_string(r, t->path);
	struct stat st;

	*why = NULL;
	if (t->kind != IMAGE_KIND_ELF)
		*why = "it is not a file";
	else if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) ||
		 file_map_open(&i->map, path, NULL) < 0)
		*why = "it cannot be read";
	else if (elf_file_init(&i->elf, i->map.bytes, NULL) < 0)
		*why = "it is not an ELF file";
	else
		*why = why_another(i, t, &st);
	if (!*why)
		return true;
	step_image_close(i);
	return false;
}

void step_image_close(struct step_image *i)
{
	debug_file_close(&i->debug);
	elf_file_release(&i->elf);
	file_map_release(&i->map);
	vec_release(&i->rows);
	memset(i, 0, sizeof(*i));
}

/* ---- lines ---- */

/* Where one unit ends and another begins the one that begins has the address. */
static int compare_rows(const void *a, const void *b)
{
	const struct step_line_row *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

/* The trace's string of a file; `strings` has those made so far. */
static uint32_t file_string(
	struct trace_writer *w, const struct dwarf_unit_map *m, uint32_t file, uint32_t *strings)
{
	if (!file || file >= m->files.n)
		return 0;
	if (!strings[file])
		strings[file] = trace_writer_string_n(w, m->files.v[file].p, m->files.v[file].n);
	return strings[file];
}

static void add_rows(struct step_image *i, struct trace_writer *w, const struct dwarf_unit_map *m)
{
	uint32_t *strings = mem_calloc(m->files.n + 1, sizeof(*strings));

	for (size_t k = 0; k < m->rows.n && i->rows.n < ROWS_MAX; k++) {
		const struct dwarf_row *from = &m->rows.v[k];
		const struct dwarf_site *site =
			from->site && from->site < m->sites.n ? &m->sites.v[from->site] : NULL;
		struct step_line_row row = {.addr = from->addr};

		if (!from->is_hole && from->file && from->file < m->files.n) {
			/* A parent comes before its children, so this ends. */
			while (site && site->parent && &m->sites.v[site->parent] < site)
				site = &m->sites.v[site->parent];
			row.file = file_string(w, m, from->file, strings);
			row.line = from->line;
			row.own_file =
				site ? file_string(w, m, site->call_file, strings) : row.file;
			row.own_line = site ? site->call_line : row.line;
		}
		vec_push(&i->rows, row);
	}
	free(strings);
}

void step_image_read_lines(struct step_image *i, const char *path, struct trace_writer *w,
	const uint64_t *addrs, size_t n)
{
	struct dwarf_debug *d = NULL;
	int rc = dwarf_debug_open(&d, &i->elf, path, NULL);
	size_t n_units;
	bool *wanted;

	if (rc < 0 && debug_file_open(&i->debug, &i->elf, path, NULL) == 0)
		rc = dwarf_debug_open(&d, &i->debug.elf, i->debug.path, NULL);
	if (rc < 0)
		return;
	n_units = dwarf_debug_n_units(d);
	wanted = mem_calloc(n_units + 1, sizeof(*wanted));
	dwarf_debug_units_at(d, addrs, n, wanted);
	for (size_t unit = 0; unit < n_units; unit++) {
		struct dwarf_unit_map m = {0};

		if (wanted[unit] && dwarf_unit_map_init(&m, d, unit, NULL) == 0)
			add_rows(i, w, &m);
		dwarf_unit_map_release(&m);
	}
	if (i->rows.n)
		qsort(i->rows.v, i->rows.n, sizeof(*i->rows.v), compare_rows);
	free(wanted);
	dwarf_debug_close(d);
}

const struct step_line_row *step_image_row(const struct step_image *i, uint64_t addr, size_t *at)
{
	static const struct step_line_row none;
	const struct step_line_row *rows = i->rows.v;
	size_t low = 0, high = i->rows.n;

	if (*at < high && rows[*at].addr <= addr && (*at + 1 == high || addr < rows[*at + 1].addr))
		return &rows[*at];
	low = SEARCH(low, high, middle, rows[middle].addr <= addr);
	if (!low)
		return &none;
	*at = low - 1;
	return &rows[low - 1];
}
