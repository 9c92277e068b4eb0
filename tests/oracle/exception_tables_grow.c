/* SPDX-License-Identifier: MIT */
/*
 * exception_tables_grow BYTES EVERY STEP FILE DIR: moves the exception tables of objects whose code
 * grows by BYTES in front of every EVERYth instruction. FILE is an object or an archive of which
 * every STEPth member is taken. Writes, of each that is taken,
 *   DIR/N.in.o	as it was
 *   DIR/N.out.o	with code of the new size (its bytes are nops) and tables that fit it
 *   DIR/N.map	the maps of all sections: "row SECTION OLD LABEL PLACE"; and what was read:
 *		"range SECTION START SIZE", "pad SECTION OFFSET"
 * and prints N. Objects whose tables are refused are told on stderr.
 * exception_tables_grow rows ROWS 1 FILE DIR: moves code by the lines "SECTION SIZE" (the new size)
 * and "SECTION OLD LABEL PLACE" of the file ROWS instead.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/x86_code.h"
#include "base/file.h"
#include "insert/exception_tables.h"

#define GROWTH_MAX (8u << 20) /* of one section: the tables matter here, not the code */

static struct {
	uint64_t bytes, every, step, seen, taken, refused;
	const char *folder, *rows; /* rows: NULL, or a file */
} run;

static FILE *file_of(const char *suffix)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%" PRIu64 ".%s", run.folder, run.taken, suffix);
	f = fopen(path, "wb");
	if (!f) {
		perror(path);
		exit(1);
	}
	return f;
}

static void save(const char *suffix, struct span bytes)
{
	FILE *f = file_of(suffix);

	if (fwrite(bytes.p, 1, bytes.n, f) != bytes.n || fclose(f))
		exit(1);
}

/* The same from the file. */
static uint64_t code_follow(struct moved *m, const struct object_section *s, uint32_t section)
{
	uint64_t number, words[3], size = s->data.n;
	FILE *f = fopen(run.rows, "r");
	char line[256];

	if (!f) {
		perror(run.rows);
		exit(1);
	}
	while (fgets(line, sizeof(line), f)) {
		int n = sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &number,
			&words[0], &words[1], &words[2]);

		if (number == section && n == 4)
			moved_add(m, section, words[0], words[1], words[2]);
		else if (number == section)
			size = words[0];
	}
	fclose(f);
	return size;
}

/* Rows for one section of code; returns its new size. */
static uint64_t code_grow(struct moved *m, const struct object_section *s, uint32_t section)
{
	uint64_t grown = 0, n = 0;
	struct x86_insn insn;

	if (run.rows)
		return code_follow(m, s, section);

	for (uint64_t at = 0; at < s->data.n; n++) {
		if (run.bytes && n % run.every == run.every - 1 && grown < GROWTH_MAX) {
			moved_add(m, section, at, at + grown, at + grown + run.bytes);
			grown += run.bytes;
		}
		if (x86_decode(&insn, span_sub(s->data, at, s->data.n - at), at, true))
			at += insn.length;
		else
			at++;
	}
	return s->data.n + grown;
}

static void grow(struct elf_object *o, struct moved *m)
{
	for (uint32_t i = 1; i < o->sections.n; i++) {
		struct object_section *s = &o->sections.v[i];
		uint64_t size;
		uint8_t *nops;

		if (!(s->flags & SHF_EXECINSTR) || s->type != SHT_PROGBITS || !s->data.n)
			continue;
		size = code_grow(m, s, i);
		if (!moved_has(m, i))
			continue;
		nops = mem_alloc(size);
		memset(nops, 0x90, size);
		object_section_set(o, i, (struct span){nops, size});
		free(nops);
		s = &o->sections.v[i];
		for (size_t r = 0; r < s->relocs.n; r++)
			s->relocs.v[r].offset = moved_place(m, i, s->relocs.v[r].offset);
	}
}

/* Addends and symbols follow what has moved. */
static void follow(struct elf_object *o, const struct moved *m)
{
	for (uint32_t i = 1; i < o->sections.n; i++) {
		struct object_section *s = &o->sections.v[i];

		for (size_t r = 0; !(s->flags & SHF_EXECINSTR) && r < s->relocs.n; r++) {
			struct object_reloc *reloc = &s->relocs.v[r];
			const struct object_symbol *symbol = &o->symbols.v[reloc->symbol];

			if (symbol->section < o->sections.n && moved_has(m, symbol->section))
				reloc->addend =
					(int64_t)(moved_label(m, symbol->section,
							  symbol->value + (uint64_t)reloc->addend) -
						  moved_label(m, symbol->section, symbol->value));
		}
	}
	for (size_t i = 1; i < o->symbols.n; i++) {
		struct object_symbol *symbol = &o->symbols.v[i];
		uint64_t end = symbol->value + symbol->size;

		if (symbol->section >= o->sections.n || symbol->type == STT_SECTION)
			continue;
		symbol->value = moved_label(m, symbol->section, symbol->value);
		symbol->size = moved_label(m, symbol->section, end) - symbol->value;
	}
}

static void save_map(const struct moved *m, const struct exception_tables *t)
{
	FILE *f = file_of("map");

	for (size_t i = 0; i < m->n_sections; i++)
		for (size_t r = 0; r < m->sections[i].rows.n; r++)
			fprintf(f, "row %zu %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", i,
				m->sections[i].rows.v[r].old, m->sections[i].rows.v[r].label,
				m->sections[i].rows.v[r].place);
	for (size_t i = 0; i < t->ranges.n; i++)
		fprintf(f, "range %u %" PRIu64 " %" PRIu64 "\n", t->ranges.v[i].section,
			t->ranges.v[i].start, t->ranges.v[i].size);
	for (size_t i = 0; i < t->landing_pads.n; i++)
		fprintf(f, "pad %u %" PRIu64 "\n", t->landing_pads.v[i].section,
			t->landing_pads.v[i].offset);
	fclose(f);
}

static int object_grow(struct span bytes, struct err *err)
{
	struct exception_tables t = {0}, again = {0};
	struct buf out = {0};
	struct elf_object o;
	struct moved m;
	int rc = elf_object_open(&o, bytes, err);

	if (rc)
		return rc;
	moved_init(&m, o.sections.n);
	rc = exception_tables_read(&t, &o, err);
	if (!rc) {
		grow(&o, &m);
		rc = exception_tables_move(&o, &m, err);
	}
	if (!rc) {
		follow(&o, &m);
		rc = exception_tables_read(&again, &o, err);
		exception_tables_release(&again);
	}
	if (!rc)
		rc = elf_object_write(&o, &out, err);
	if (!rc) {
		save("in.o", bytes);
		save("out.o", buf_span(&out));
		save_map(&m, &t);
	}
	exception_tables_release(&t);
	buf_release(&out);
	moved_release(&m);
	elf_object_release(&o);
	return rc;
}

static void visit(const char *name, struct span bytes)
{
	struct err err = {0};

	if (!elf_object_is(bytes) || run.seen++ % run.step)
		return;
	run.taken++;
	if (object_grow(bytes, &err)) {
		fprintf(stderr, "%s: %s\n", name, err.text);
		run.refused++;
		run.taken--;
	}
}

/* Members begin on even places behind a header of 60 bytes of text. */
static void visit_archive(struct span a)
{
	for (size_t at = 8; at + 60 <= a.n;) {
		char text[11] = {0}, name[64];
		struct span member;

		memcpy(text, a.p + at + 48, 10);
		member = span_sub(a, at + 60, strtoull(text, NULL, 10));
		if (!member.p)
			break;
		snprintf(name, sizeof(name), "%.16s at %zu", (const char *)a.p + at, at);
		visit(name, member);
		at += 60 + member.n + member.n % 2;
	}
}

int main(int argc, char **argv)
{
	struct file_map map;
	struct err err = {0};

	if (argc != 6) {
		fprintf(stderr, "usage: exception_tables_grow BYTES EVERY STEP FILE DIR\n");
		return 2;
	}
	if (!strcmp(argv[1], "rows"))
		run.rows = argv[2];
	run.bytes = strtoull(argv[1], NULL, 10);
	run.every = run.rows ? 1 : strtoull(argv[2], NULL, 10);
	run.step = strtoull(argv[3], NULL, 10);
	run.folder = argv[5];
	if (!run.every || !run.step || file_map_open(&map, argv[4], &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (map.bytes.n >= 8 && !memcmp(map.bytes.p, "!<arch>\n", 8))
		visit_archive(map.bytes);
	else
		visit(argv[4], map.bytes);
	file_map_release(&map);
	printf("%" PRIu64 "\n", run.taken);
	return run.refused > 0;
}
