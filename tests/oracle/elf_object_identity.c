/* SPDX-License-Identifier: MIT */
/*
 * Opens and writes relocatable objects, for comparison with what they were and with what readelf
 * and linkers say of them. FILE is an object or an archive of objects.
 *   elf_object_identity same STEP FILE...	every STEPth object, written with nothing changed: its
 *						sections and their headers are those of the file.
 *						Prints how many there were; differences on stderr
 *   elf_object_identity change STEP FILE DIR	writes DIR/N.in.o as it is and DIR/N.out.o changed
 *   elf_object_identity time FILE...		bytes read, and nanoseconds of CPU to open and write
 *
 * Changed is: for every section of code, a section "weir_test" in its group and linked to it, that
 * holds its address, that of the undefined symbol weir_test_anchor, and a number; relocations for
 * .comment, which has none.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "elf/elf_object.h"

#define TEST_NUMBER 0x7465737477656972

struct totals {
	uint64_t objects, sections, whole, refused, different;
	uint64_t bytes, open_ns, write_ns;
};

typedef void object_function(const char *name, struct span bytes, struct totals *t);

/* Every STEPth object of a file. */
static unsigned long step = 1, seen;
static const char *folder;

static void visit(const char *name, struct span bytes, object_function *f, struct totals *t)
{
	if (elf_object_is(bytes) && seen++ % step == 0)
		f(name, bytes, t);
}

/* Members begin on even places behind a header of 60 bytes of text. */
static void visit_archive(const char *path, struct span a, object_function *f, struct totals *t)
{
	size_t at = 8;

	while (at + 60 <= a.n) {
		char text[11] = {0}, name[512];
		struct span member;

		memcpy(text, a.p + at + 48, 10);
		member = span_sub(a, at + 60, strtoull(text, NULL, 10));
		if (!member.p)
			break;
		snprintf(name, sizeof(name), "%s(%.16s at %zu)", path, (const char *)a.p + at, at);
		visit(name, member, f, t);
		at += 60 + member.n + member.n % 2;
	}
}

static int visit_file(const char *path, object_function *f, struct totals *t)
{
	struct file_map map;
	struct err err = {0};

	if (file_map_open(&map, path, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (map.bytes.n >= 8 && !memcmp(map.bytes.p, "!<arch>\n", 8))
		visit_archive(path, map.bytes, f, t);
	else
		visit(path, map.bytes, f, t);
	file_map_release(&map);
	return 0;
}

/* ---- same ---- */

/* Headers of a well-formed object; not through the code that is tested. */
static size_t raw_sections(struct span bytes, Elf64_Shdr **headers)
{
	Elf64_Ehdr e;
	Elf64_Shdr null;
	size_t n;

	memcpy(&e, bytes.p, sizeof(e));
	memcpy(&null, bytes.p + e.e_shoff, sizeof(null));
	n = e.e_shnum ? e.e_shnum : null.sh_size;
	*headers = malloc(n * sizeof(null));
	memcpy(*headers, bytes.p + e.e_shoff, n * sizeof(null));
	return n;
}

static bool same_section(const Elf64_Shdr *x, struct span in, const Elf64_Shdr *y, struct span out)
{
	Elf64_Shdr a = *x, b = *y;

	a.sh_offset = b.sh_offset = 0;
	if (memcmp(&a, &b, sizeof(a)))
		return false;
	return x->sh_type == SHT_NOBITS || x->sh_type == SHT_NULL || !x->sh_size ||
	       !memcmp(in.p + x->sh_offset, out.p + y->sh_offset, x->sh_size);
}

static void compare(const char *name, struct span in, struct span out, struct totals *t)
{
	Elf64_Shdr *x, *y;
	size_t n = raw_sections(in, &x), m = raw_sections(out, &y);

	if (n != m)
		fprintf(stderr, "%s: %zu sections became %zu\n", name, n, m);
	t->different += n != m;
	for (size_t i = 0; i < n && i < m; i++) {
		t->sections++;
		if (same_section(&x[i], in, &y[i], out))
			continue;
		fprintf(stderr, "%s: section %zu is different\n", name, i);
		t->different++;
	}
	t->whole += in.n == out.n && !memcmp(in.p, out.p, in.n);
	free(x);
	free(y);
}

static void test_same(const char *name, struct span bytes, struct totals *t)
{
	struct elf_object o;
	struct buf out = {0};
	struct err err = {0};
	uint64_t start = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID), opened;

	t->objects++;
	t->bytes += bytes.n;
	if (elf_object_open(&o, bytes, &err)) {
		fprintf(stderr, "%s: %s\n", name, err.text);
		t->refused++;
		return;
	}
	opened = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (elf_object_write(&o, &out, &err)) {
		fprintf(stderr, "%s: %s\n", name, err.text);
		t->refused++;
	} else {
		t->open_ns += opened - start;
		t->write_ns += clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - opened;
		compare(name, bytes, buf_span(&out), t);
	}
	buf_release(&out);
	elf_object_release(&o);
}

/* ---- change ---- */

static void add_test_section(struct elf_object *o, uint32_t text, uint32_t anchor)
{
	uint64_t words[3] = {0, 0, TEST_NUMBER};
	uint32_t added =
		elf_object_add_section(o, &(struct object_new_section){.name = "weir_test",
						  .type = SHT_PROGBITS,
						  .flags = SHF_ALLOC | SHF_WRITE,
						  .align = 8,
						  .data = {(const uint8_t *)words, sizeof(words)},
						  .group = o->sections.v[text].group,
						  .link_order = text});
	uint32_t symbol = elf_object_section_symbol(o, text);
	struct object_section *s = &o->sections.v[added];

	vec_push(&s->relocs, ((struct object_reloc){8, R_X86_64_64, anchor, 0}));
	vec_push(&s->relocs, ((struct object_reloc){0, R_X86_64_64, symbol, 0}));
	object_section_sort_relocs(s);
}

static void change_object(struct elf_object *o)
{
	uint32_t anchor = elf_object_undefined(o, "weir_test_anchor", STV_HIDDEN);
	uint32_t comment = elf_object_find_section(o, ".comment");
	size_t n = o->sections.n;

	for (uint32_t i = 1; i < n; i++) {
		const struct object_section *s = &o->sections.v[i];

		if ((s->flags & SHF_EXECINSTR) && s->type == SHT_PROGBITS && s->size)
			add_test_section(o, i, anchor);
	}
	if (comment)
		vec_push(&o->sections.v[comment].relocs,
			((struct object_reloc){0, R_X86_64_NONE, anchor, 0}));
}

static void save(const char *suffix, uint64_t number, struct span bytes)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%" PRIu64 ".%s.o", folder, number, suffix);
	f = fopen(path, "wb");
	if (!f || fwrite(bytes.p, 1, bytes.n, f) != bytes.n || fclose(f)) {
		perror(path);
		exit(1);
	}
}

static void test_change(const char *name, struct span bytes, struct totals *t)
{
	struct elf_object o;
	struct buf out = {0}, again = {0};
	struct err err = {0};

	t->objects++;
	if (elf_object_open(&o, bytes, &err)) {
		fprintf(stderr, "%s: %s\n", name, err.text);
		t->refused++;
		return;
	}
	change_object(&o);
	if (elf_object_write(&o, &out, &err) || elf_object_write(&o, &again, &err)) {
		fprintf(stderr, "%s: %s\n", name, err.text);
		t->refused++;
	} else {
		if (out.n != again.n || memcmp(out.p, again.p, out.n)) {
			fprintf(stderr, "%s: is written differently the second time\n", name);
			t->different++;
		}
		save("in", t->objects, bytes);
		save("out", t->objects, buf_span(&out));
	}
	buf_release(&out);
	buf_release(&again);
	elf_object_release(&o);
}

int main(int argc, char **argv)
{
	struct totals t = {0};
	const char *verb = argc > 1 ? argv[1] : "";
	int rc = 0;

	if (!strcmp(verb, "same") && argc > 3) {
		step = strtoul(argv[2], NULL, 10);
		for (int i = 3; i < argc; i++)
			rc |= visit_file(argv[i], test_same, &t);
		printf("%" PRIu64 " objects, %" PRIu64 " sections, %" PRIu64 " files to the byte\n",
			t.objects, t.sections, t.whole);
	} else if (!strcmp(verb, "change") && argc == 5) {
		step = strtoul(argv[2], NULL, 10);
		folder = argv[4];
		rc = visit_file(argv[3], test_change, &t);
		printf("%" PRIu64 "\n", t.objects);
	} else if (!strcmp(verb, "time") && argc > 2) {
		for (int i = 2; i < argc; i++)
			rc |= visit_file(argv[i], test_same, &t);
		printf("%" PRIu64 " bytes, open %" PRIu64 " ns, write %" PRIu64 " ns\n", t.bytes,
			t.open_ns, t.write_ns);
	} else {
		fprintf(stderr, "usage: elf_object_identity same|change|time ...\n");
		return 2;
	}
	return rc || t.refused || t.different || !t.objects;
}
