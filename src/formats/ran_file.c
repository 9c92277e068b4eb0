/* SPDX-License-Identifier: MIT */
#include "formats/ran_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"
#include "base/sort.h"
#include "dwarf/source_map.h"

/* Rows of line tables that are kept at most. */
#define ROWS_MAX (1u << 26)

/* ---- the file ---- */

const char *ran_file_why_another(
	const struct ran_file *f, const struct stat *st, const struct ran_identity *ran)
{
	struct span id = elf_file_build_id(&f->elf);

	if (ran->build_id.n)
		return id.n == ran->build_id.n && !memcmp(id.p, ran->build_id.p, id.n)
			       ? NULL
			       : "its build-id is another";
	if (ran->bytes != (uint64_t)st->st_size)
		return "its size is another";
	if (ran->has_mtime && ran->mtime_ns != (uint64_t)st->st_mtim.tv_sec * 1000000000u +
						       (uint64_t)st->st_mtim.tv_nsec)
		return "it was changed since";
	return NULL;
}

bool ran_file_open(
	struct ran_file *f, const char *path, const struct ran_identity *ran, const char **why)
{
	struct stat st;

	*why = NULL;
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || file_map_open(&f->map, path, NULL) < 0)
		*why = "it cannot be read";
	else if (elf_file_init(&f->elf, f->map.bytes, NULL) < 0)
		*why = "it is not an ELF file";
	else
		*why = ran_file_why_another(f, &st, ran);
	if (!*why)
		return true;
	ran_file_close(f);
	return false;
}

bool ran_file_open_image(
	struct ran_file *f, const struct trace_reader *r, uint32_t image, const char **why)
{
	const struct trace_image *t = trace_reader_image(r, image);
	const struct ran_identity ran = {.build_id = {t->build_id, t->build_id_n},
		.bytes = t->file_bytes,
		.mtime_ns = t->file_mtime_ns,
		.has_mtime = t->file_mtime_ns};

	if (t->kind == IMAGE_KIND_ELF)
		return ran_file_open(f, trace_reader_string(r, t->path), &ran, why);
	*why = "it is not a file";
	return false;
}

void ran_file_close(struct ran_file *f)
{
	dwarf_debug_close(f->dwarf);
	free(f->path);
	debug_file_close(&f->debug);
	elf_file_release(&f->elf);
	file_map_release(&f->map);
	vec_release(&f->rows);
	memset(f, 0, sizeof(*f));
}

/* ---- lines ---- */

/* Where one unit ends and another begins the one that begins has the address. */
ORDER_BY(compare_rows, struct ran_row, addr, line)

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

static void add_rows(struct ran_file *f, struct trace_writer *w, const struct dwarf_unit_map *m)
{
	uint32_t *strings = mem_calloc(m->files.n + 1, sizeof(*strings));

	for (size_t i = 0; i < m->rows.n && f->rows.n < ROWS_MAX; i++) {
		const struct dwarf_row *from = &m->rows.v[i];
		const struct dwarf_site *site =
			from->site && from->site < m->sites.n ? &m->sites.v[from->site] : NULL;
		struct ran_row row = {.addr = from->addr};

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
		vec_push(&f->rows, row);
	}
	free(strings);
}

static int read_units(struct ran_file *f, struct dwarf_debug *d, struct trace_writer *w,
	const uint64_t *addrs, size_t n)
{
	size_t n_units = dwarf_debug_n_units(d);
	bool *wanted = mem_calloc(n_units + 1, sizeof(*wanted));
	int n_failed = 0;

	dwarf_debug_units_at(d, addrs, n, wanted);
	for (size_t i = 0; i < n_units; i++) {
		struct dwarf_unit_map m = {0};

		if (!wanted[i])
			continue;
		if (dwarf_unit_map_init(&m, d, i, NULL) == 0)
			add_rows(f, w, &m);
		else
			n_failed++;
		dwarf_unit_map_release(&m);
	}
	vec_sort(&f->rows, compare_rows);
	free(wanted);
	return n_failed;
}

bool ran_file_open_debug(struct ran_file *f, const char *path)
{
	if (f->path)
		return f->dwarf;
	f->path = mem_strdup(path);
	if (dwarf_debug_open(&f->dwarf, &f->elf, path, NULL) == 0)
		f->dwarf_path = f->path;
	else if (debug_file_open(&f->debug, &f->elf, path, NULL) == 0 &&
		 dwarf_debug_open(&f->dwarf, &f->debug.elf, f->debug.path, NULL) == 0)
		f->dwarf_path = f->debug.path;
	return f->dwarf;
}

int ran_file_read_lines(
	struct ran_file *f, const char *path, struct trace_writer *w, uint64_t *addrs, size_t n)
{
	if (!ran_file_open_debug(f, path))
		return -1;
	sort_u64(addrs, n);
	return read_units(f, f->dwarf, w, addrs, n);
}

const struct ran_row *ran_file_row(const struct ran_file *f, uint64_t addr, size_t *at)
{
	static const struct ran_row none;
	const struct ran_row *rows = f->rows.v;
	size_t low, n = f->rows.n;

	if (*at < n && rows[*at].addr <= addr && (*at + 1 == n || addr < rows[*at + 1].addr))
		return &rows[*at];
	low = SEARCH(0, n, middle, rows[middle].addr <= addr);
	if (!low)
		return &none;
	*at = low - 1;
	return &rows[low - 1];
}

void ran_begins_at(uint32_t *file, uint32_t *line, uint32_t own_file, uint32_t own_line)
{
	if (!own_file || !own_line)
		return;
	if (!*file) {
		*file = own_file;
		*line = own_line;
	} else if (*file == own_file && own_line < *line) {
		*line = own_line;
	}
}
