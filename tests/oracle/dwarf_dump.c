/* SPDX-License-Identifier: MIT */
/*
 * Prints what the DWARF reader says, for comparison with addr2line:
 *   dwarf_dump find FILE	reads hexadecimal addresses from standard input and prints for each
 *				what `addr2line -a -f -i` prints: the address, then a function and
 *				a FILE:LINE for each level, innermost first
 *   dwarf_dump all FILE	the same for the first address of every row
 *   dwarf_dump functions FILE	START END NAME of every function's pieces, '*' before the entry
 *   dwarf_dump notes FILE	what could not be read
 *   dwarf_dump time FILE	CPU nanoseconds to read all units, then counts
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "dwarf/source_map.h"

struct piece { /* a row, or a function */
	uint64_t start, end;
	uint32_t unit_i, index;
};

struct dump {
	struct dwarf_debug *debug;
	struct dwarf_unit_map *maps;
	size_t n_maps;
	VEC(struct piece) rows;
	VEC(struct piece) functions;
};

static int order_pieces(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static void sort_pieces(struct dump *d)
{
	for (size_t i = 0; i < d->n_maps; i++) {
		const struct dwarf_unit_map *m = &d->maps[i];

		for (size_t k = 0; k + 1 < m->rows.n; k++)
			if (!m->rows.v[k].is_hole)
				vec_push(&d->rows,
					((struct piece){m->rows.v[k].addr, m->rows.v[k + 1].addr,
						(uint32_t)i, (uint32_t)k}));
		for (size_t k = 0; k < m->functions.n; k++)
			vec_push(&d->functions,
				((struct piece){m->functions.v[k].start, m->functions.v[k].end,
					(uint32_t)i, (uint32_t)k}));
	}
	if (d->rows.n)
		qsort(d->rows.v, d->rows.n, sizeof(*d->rows.v), order_pieces);
	if (d->functions.n)
		qsort(d->functions.v, d->functions.n, sizeof(*d->functions.v), order_pieces);
}

/* The nearest piece below that covers the address. */
static const struct piece *piece_at(
	const struct piece *v, size_t n, uint64_t addr, bool any_unit, uint32_t unit_i)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (v[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t tries = 0; low > 0 && tries < 1000; tries++) {
		const struct piece *p = &v[--low];

		if (addr < p->end && (any_unit || p->unit_i == unit_i))
			return p;
	}
	return NULL;
}

static void print_place(const struct dwarf_unit_map *m, uint32_t name, uint32_t file, uint32_t line)
{
	struct dwarf_text n = m->names.v[name], f = m->files.v[file];

	printf("%.*s\n", name ? (int)n.n : 2, name ? n.p : "??");
	printf("%.*s:", file ? (int)f.n : 2, file ? f.p : "??");
	if (line)
		printf("%" PRIu32 "\n", line);
	else
		printf("?\n");
}

static void print_chain(const struct dump *d, uint64_t addr)
{
	const struct piece *row = piece_at(d->rows.v, d->rows.n, addr, true, 0);
	const struct piece *function =
		piece_at(d->functions.v, d->functions.n, addr, !row, row ? row->unit_i : 0);
	const struct dwarf_unit_map *m;
	const struct dwarf_row *r;
	uint32_t file, line;

	printf("0x%016" PRIx64 "\n", addr);
	if (!row) {
		printf("??\n??:0\n");
		return;
	}
	m = &d->maps[row->unit_i];
	r = &m->rows.v[row->index];
	file = r->file;
	line = r->line;
	for (uint32_t site = r->site; site; site = m->sites.v[site].parent) {
		print_place(m, m->sites.v[site].name, file, line);
		file = m->sites.v[site].call_file;
		line = m->sites.v[site].call_line;
	}
	print_place(m, function ? m->functions.v[function->index].name : 0, file, line);
}

static void print_functions(const struct dump *d)
{
	for (size_t i = 0; i < d->functions.n; i++) {
		const struct piece *p = &d->functions.v[i];
		const struct dwarf_unit_map *m = &d->maps[p->unit_i];
		const struct dwarf_function *f = &m->functions.v[p->index];
		struct dwarf_text name = m->names.v[f->name];

		printf("%s%" PRIx64 " %" PRIx64 " %.*s\n", f->is_entry ? "*" : "", f->start, f->end,
			(int)name.n, name.p);
	}
}

static void print_counts(const struct dump *d, uint64_t ns)
{
	size_t n_rows = 0, n_sites = 0, n_functions = 0, n_names = 0, n_files = 0;
	uint64_t n_bytes = 0;

	for (size_t i = 0; i < d->n_maps; i++) {
		n_bytes += d->maps[i].n_bytes;
		n_rows += d->maps[i].rows.n;
		n_sites += d->maps[i].sites.n;
		n_functions += d->maps[i].functions.n;
		n_names += d->maps[i].names.n;
		n_files += d->maps[i].files.n;
	}
	printf("%" PRIu64 " ns, %" PRIu64 " bytes, %zu units, %zu rows, %zu sites, %zu functions, "
	       "%zu names, %zu files\n",
		ns, n_bytes, d->n_maps, n_rows, n_sites, n_functions, n_names,
		n_files);
}

static void run(struct dump *d, const char *verb, uint64_t ns)
{
	char line[64];

	sort_pieces(d);
	if (!strcmp(verb, "time"))
		print_counts(d, ns);
	else if (!strcmp(verb, "notes"))
		printf("%s\n", dwarf_debug_notes(d->debug));
	else if (!strcmp(verb, "functions"))
		print_functions(d);
	else if (!strcmp(verb, "all"))
		for (size_t i = 0; i < d->rows.n; i++)
			print_chain(d, d->rows.v[i].start);
	else
		while (fgets(line, sizeof(line), stdin))
			print_chain(d, strtoull(line, NULL, 16));
}

/* Reads all units; with `keep` false each is released at once, as a converter does. */
static uint64_t read_units(struct dump *d, bool keep)
{
	uint64_t start = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct err err;

	for (size_t i = 0; i < d->n_maps; i++) {
		if (dwarf_unit_map_init(&d->maps[i], d->debug, i, &err) < 0)
			fprintf(stderr, "unit %zu: %s\n", i, err.text);
		if (!keep)
			dwarf_unit_map_release(&d->maps[i]);
	}
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
}

int main(int argc, char **argv)
{
	struct file_map map;
	struct elf_file elf;
	struct dump d = {0};
	struct err err;
	uint64_t ns, start;

	if (argc != 3)
		return 2;
	if (file_map_open(&map, argv[2], &err) < 0 || elf_file_init(&elf, map.bytes, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	start = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (dwarf_debug_open(&d.debug, &elf, argv[2], &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		elf_file_release(&elf);
		file_map_release(&map);
		return 1;
	}
	ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
	d.n_maps = dwarf_debug_n_units(d.debug);
	d.maps = mem_calloc(d.n_maps, sizeof(*d.maps));
	if (!strcmp(argv[1], "time"))
		ns += read_units(&d, false);
	read_units(&d, true);
	run(&d, argv[1], ns);
	for (size_t i = 0; i < d.n_maps; i++)
		dwarf_unit_map_release(&d.maps[i]);
	free(d.maps);
	vec_release(&d.rows);
	vec_release(&d.functions);
	dwarf_debug_close(d.debug);
	elf_file_release(&elf);
	file_map_release(&map);
	return 0;
}
