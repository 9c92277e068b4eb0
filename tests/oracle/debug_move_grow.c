/* SPDX-License-Identifier: MIT */
/*
 * debug_move_grow IN OUT BYTES EVERY: writes the object IN again with so many bytes of nops in
 * front of every EVERYth instruction (0: nothing is inserted, but each section of code has a map),
 * the debug information moved, relocations and symbols made to follow. The code itself is not
 * mended: only the debug information of OUT makes sense. Prints "section NUMBER NAME OLD_BYTES" and
 * "row OLD LABEL PLACE" lines.
 */
#include <stdio.h>
#include <stdlib.h>

#include "arch/x86_code.h"
#include "base/file.h"
#include "insert/debug_move.h"

static void grow_section(
	struct elf_object *o, struct moved *m, uint32_t number, unsigned every, unsigned bytes)
{
	struct span code = o->sections.v[number].data;
	struct buf out = {0};
	size_t at = 0, n = 0;

	while (at < code.n) {
		struct x86_insn insn;
		struct span rest = {code.p + at, code.n - at};
		size_t length = x86_decode(&insn, rest, at, true) ? insn.length : 1, label = out.n;

		for (unsigned i = 0; every && n % every == 0 && i < bytes; i++)
			buf_put_u8(&out, 0x90);
		moved_add(m, number, at, label, out.n);
		buf_put(&out, code.p + at, length);
		at += length;
		n++;
	}
	moved_add(m, number, code.n, out.n, out.n);
	object_section_set(o, number, buf_span(&out));
	buf_release(&out);
}

static uint64_t label_of(
	const struct elf_object *o, const struct moved *m, uint32_t symbol, uint64_t into)
{
	const struct object_symbol *s = &o->symbols.v[symbol];

	return moved_label(m, s->section, s->value + into);
}

static void relocate(struct elf_object *o, const struct moved *m)
{
	for (uint32_t i = 1; i < o->sections.n; i++) {
		struct object_section *s = &o->sections.v[i];
		bool is_code = s->flags & SHF_EXECINSTR;

		for (size_t k = 0; k < s->relocs.n; k++) {
			struct object_reloc *r = &s->relocs.v[k];

			if (is_code)
				r->offset = moved_place(m, i, r->offset);
			r->addend = (int64_t)(label_of(o, m, r->symbol, (uint64_t)r->addend) -
					      label_of(o, m, r->symbol, 0));
		}
	}
	for (uint32_t i = 1; i < o->symbols.n; i++) {
		struct object_symbol *s = &o->symbols.v[i];
		uint64_t value = label_of(o, m, i, 0);

		s->size = label_of(o, m, i, s->size) - value;
		s->value = value;
	}
}

static void print_map(
	const struct elf_object *o, const struct moved *m, uint32_t number, uint64_t bytes)
{
	printf("section %u %s %llu\n", number, o->sections.v[number].name,
		(unsigned long long)bytes);
	for (size_t i = 0; i < m->sections[number].rows.n; i++) {
		const struct moved_row *row = &m->sections[number].rows.v[i];

		printf("row %llu %llu %llu\n", (unsigned long long)row->old,
			(unsigned long long)row->label, (unsigned long long)row->place);
	}
}

static int run(char **argv, struct err *err)
{
	struct file_map file = {0};
	struct elf_object o;
	struct moved m;
	struct buf out = {0};
	FILE *f;
	int ret = file_map_open(&file, argv[1], err);

	if (ret < 0 || (ret = elf_object_open(&o, file.bytes, err)) < 0)
		return ret;
	moved_init(&m, o.sections.n);
	for (uint32_t i = 1; i < m.n_sections; i++) {
		uint64_t bytes = o.sections.v[i].size;

		if (!(o.sections.v[i].flags & SHF_EXECINSTR) || !bytes)
			continue;
		grow_section(&o, &m, i, (unsigned)atoi(argv[4]), (unsigned)atoi(argv[3]));
		print_map(&o, &m, i, bytes);
	}
	ret = debug_move(&o, &m, NULL, err);
	if (ret == 0) {
		relocate(&o, &m);
		ret = elf_object_write(&o, &out, err);
	}
	f = ret == 0 ? fopen(argv[2], "wb") : NULL;
	if (f) {
		fwrite(out.p, 1, out.n, f);
		fclose(f);
	}
	buf_release(&out);
	moved_release(&m);
	elf_object_release(&o);
	file_map_release(&file);
	return ret;
}

int main(int argc, char **argv)
{
	struct err err = {0};

	if (argc != 5)
		return 2;
	if (run(argv, &err) == 0)
		return 0;
	fprintf(stderr, "%s: %s\n", argv[1], err.text);
	return 1;
}
