/* SPDX-License-Identifier: MIT */
/* Kinds of files by their content; thousands of real ones are in tests/oracle/text_sources.sh. */
#include <stdlib.h>

#include "base/mem.h"
#include "check.h"
#include "elf_maker.h"
#include "symbols/catalog/catalog_segments.h"
#include "symbols/source/source_kind.h"

static const char *kind_of_text(const char *text, const char *name)
{
	/* A copy of the exact size, so that ASan sees a read past it. */
	size_t n = strlen(text);
	uint8_t *copy = mem_dup(text, n ? n : 1);
	const char *kind = source_kind_name(source_kind_of((struct span){copy, n}, name));

	free(copy);
	return kind;
}

static const char *kind_of_elf(struct elf_maker *m)
{
	struct span bytes = elf_maker_finish(m);
	const char *kind = source_kind_name(source_kind_of(bytes, "kallsyms"));

	elf_maker_release(m);
	return kind;
}

static void make_elf(struct elf_maker *m, uint16_t type, uint32_t code_type)
{
	static const uint8_t code[16];
	uint32_t i;

	elf_maker_init(m, true);
	m->type = type;
	i = elf_maker_section(m, ".text", code_type, 0x1000, (struct span){code, sizeof(code)});
	m->sections[i].flags = SHF_ALLOC | SHF_EXECINSTR;
}

static void test_elf(void)
{
	struct elf_maker m;

	make_elf(&m, ET_DYN, SHT_PROGBITS);
	CHECK_STR(kind_of_elf(&m), "shared object or executable");
	make_elf(&m, ET_EXEC, SHT_PROGBITS);
	CHECK_STR(kind_of_elf(&m), "shared object or executable");
	make_elf(&m, ET_DYN, SHT_NOBITS);
	CHECK_STR(kind_of_elf(&m), "debug file");
	make_elf(&m, ET_REL, SHT_PROGBITS);
	CHECK_STR(kind_of_elf(&m), "object file");
	make_elf(&m, ET_CORE, SHT_PROGBITS);
	CHECK_STR(kind_of_elf(&m), "unknown kind of file");
	/* Any byte of code makes it an image. */
	make_elf(&m, ET_DYN, SHT_NOBITS);
	elf_maker_code(&m, ".init", 0x2000, 4);
	CHECK_STR(kind_of_elf(&m), "shared object or executable");
	CHECK_STR(kind_of_text("\177ELF", "a.out"), "unknown kind of file");
}

static void test_binary(void)
{
	uint8_t root[CATALOG_BLOCK_BYTES + CATALOG_ROOT_BYTES] = {0};
	const struct catalog_root r = {.generation = 1};
	struct span all = {root, sizeof(root)};

	CHECK_EQ(source_kind_of((struct span){(const uint8_t *)"DTiJ", 4}, NULL),
		SOURCE_KIND_JITDUMP);
	CHECK_EQ(source_kind_of((struct span){(const uint8_t *)"JiTD", 4}, NULL),
		SOURCE_KIND_JITDUMP);
	CHECK_EQ(source_kind_of((struct span){(const uint8_t *)"JiT", 3}, NULL),
		SOURCE_KIND_UNKNOWN);
	CHECK_EQ(source_kind_of(all, "catalog.wsym"), SOURCE_KIND_UNKNOWN);
	catalog_root_encode(&r, root + CATALOG_BLOCK_BYTES);
	CHECK_EQ(source_kind_of(all, "any"), SOURCE_KIND_CATALOG);
	catalog_root_encode(&r, root);
	all.n = CATALOG_ROOT_BYTES;
	CHECK_EQ(source_kind_of(all, "any"), SOURCE_KIND_CATALOG);
	all.n = 7;
	CHECK_EQ(source_kind_of(all, "any"), SOURCE_KIND_UNKNOWN);
	CHECK_STR(kind_of_text("!<arch>\nfoo.o/   0 ", "lib.a"), "unknown kind of file");
}

static void test_maps(void)
{
	CHECK_STR(kind_of_text("Archive member included to satisfy reference by file (symbol)\n\n"
			       "./liblib1.a(lib1.o)           a.o (lib1)\n",
			  "x"),
		"GNU ld map");
	/* Headings in another language. */
	CHECK_STR(kind_of_text("Linker-Skript und Speicherzuordnung\n\nLOAD a.o\n\n"
			       ".interp         0x0000000000000318       0x1c\n"
			       " *(.interp)\n"
			       " .interp        0x0000000000000318       0x1c Scrt1.o\n"
			       "                0x0000000000001050                _start\n",
			  "x"),
		"GNU ld map");
	CHECK_STR(
		kind_of_text(
			"             VMA              LMA     Size Align Out     In      Symbol\n"
			"             2a8              2a8       1c     1 .interp\n",
			"x"),
		"lld map");
	CHECK_STR(kind_of_text(" Address     Size Align Out     In      Symbol\n", "x"), "lld map");
	CHECK_STR(kind_of_text("We read the VMA and Size Align Out\n", "x.map"),
		"unknown kind of file");
}

static void test_lines(void)
{
	static const char plain[] = "0000000000001139 t square\n0000000000001140 T f\n";

	CHECK_STR(kind_of_text(plain, NULL), "nm output");
	CHECK_STR(kind_of_text(plain, "/some/where/System.map-6.1"), "kallsyms");
	CHECK_STR(kind_of_text(plain, "kallsyms.txt"), "kallsyms");
	CHECK_STR(kind_of_text(plain, "perf-1.map"), "nm output"); /* not by the name alone */
	CHECK_STR(kind_of_text("ffffffff81000000 T _stext\nffffffff81000100 t do_one\n", "x"),
		"kallsyms");
	CHECK_STR(kind_of_text("0000000000000000 T _stext\n0000000000000000 t do_one\n", "x"),
		"kallsyms");
	CHECK_STR(kind_of_text("c0100000 t f\t[ext4]\n", "x"), "kallsyms");
	CHECK_STR(
		kind_of_text("                 U puts\n0000000000001140 T f\n", "x"), "nm output");
	CHECK_STR(kind_of_text("square t 1139 6\nputs U         \n", "x"), "nm output");
	CHECK_STR(
		kind_of_text(
			"\n\nSymbols from a:\n\n"
			"Name      Value   Class        Type         Size   Line  Section\n\n"
			"f |0000000000001139|   t  |              FUNC|0000000000000006|     |.text\n",
			"x"),
		"nm output");
	CHECK_STR(
		kind_of_text("7f0000001000 100 Lazy\n0x7f0000002000 0x40 b c\n", "x"), "perf map");
	CHECK_STR(kind_of_text("0000000000001139 0000000000000006 t square\n", "x"), "nm output");
	CHECK_STR(kind_of_text("0000000000001139 0000000000000006 t square\n", "/tmp/perf-1.map"),
		"perf map");
}

static void test_garbage(void)
{
	static const char *const texts[] = {"", "\n\n\n", " ", "a", "hello world\n",
		"#!/bin/sh\necho T 10\n", "1,2,3\n4,5,6\n", "{\"a\": 1}\n", "foo:\n\tbar\n",
		"int main(void)\n{\n\treturn 0;\n}\n",
		"0000000000001139 t square\nbut then\nit is\nnot\n"};
	char *line = mem_alloc(200001);

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK_STR(kind_of_text(texts[i], "kallsyms"), "unknown kind of file");
	CHECK_EQ(source_kind_of((struct span){NULL, 0}, NULL), SOURCE_KIND_UNKNOWN);
	CHECK_EQ(source_kind_of(
			 (struct span){(const uint8_t *)"0000000000001139 t a\0b\n", 23}, NULL),
		SOURCE_KIND_UNKNOWN);
	memset(line, 'x', 200000);
	line[200000] = 0;
	CHECK_STR(kind_of_text(line, "perf-1.map"), "unknown kind of file");
	free(line);
}

/* Only the beginning of a text is looked at, and its last line there is half a line. */
static void test_long_texts(void)
{
	struct buf b = {0};

	while (b.n < 70000)
		buf_put_cstr(&b, "0000000000001139 t a_name_of_some_length\n");
	while (b.n < 200000)
		buf_put_cstr(&b, "and then something else\n");
	CHECK_STR(kind_of_text(buf_text(&b), "x"), "nm output");
	buf_release(&b);
}

int main(void)
{
	static const struct test tests[] = {
		{"tells images, debug files and object files apart", test_elf},
		{"knows jitdump and catalogs by their first bytes", test_binary},
		{"knows linker maps, also in other languages", test_maps},
		{"knows lists of symbols, and asks the name only when they read alike", test_lines},
		{"takes nothing else for a symbol source", test_garbage},
		{"looks at the beginning of a long text only", test_long_texts},
	};

	return RUN_TESTS(tests);
}
