/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "base/mem.h"
#include "check.h"
#include "elf_maker.h"
#include "symbols/symtab_build.h"

#define GLOBAL ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)
#define WEAK   ELF64_ST_INFO(STB_WEAK, STT_FUNC)
#define LOCAL  ELF64_ST_INFO(STB_LOCAL, STT_FUNC)
#define LABEL  ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE)

struct row {
	const char *name;
	uint64_t start, size;
	uint8_t info;
};

/* A table of `rows` in a .text of 0x100 bytes at 0x1000. */
static struct symtab *table_of(const struct row *rows, size_t n)
{
	struct elf_maker m;
	struct elf_file elf;
	struct symtab *t;
	uint32_t text;

	elf_maker_init(&m, true);
	text = elf_maker_code(&m, ".text", 0x1000, 0x100);
	for (size_t i = 0; i < n; i++)
		elf_maker_symbol(&m, rows[i].name, rows[i].start, rows[i].size, rows[i].info,
			(uint16_t)text);
	elf_maker_symbols(&m, ".symtab", SHT_SYMTAB);
	CHECK_EQ(elf_file_init(&elf, elf_maker_finish(&m), NULL), 0);
	t = symtab_new_elf(&elf, NULL);
	elf_file_release(&elf);
	elf_maker_release(&m); /* names are copies */
	return t;
}

#define TABLE(rows) table_of(rows, sizeof(rows) / sizeof((rows)[0]))

static const char *name_at(const struct symtab *t, uint64_t addr)
{
	const struct symbol *s = symtab_find(t, addr);

	return s ? s->name : "-";
}

static void test_aliases(void)
{
	static const struct row rows[] = {
		{"a_label", 0x1000, 0, LABEL},
		{"local_function", 0x1000, 4, LOCAL},
		{"weak", 0x1010, 4, WEAK},
		{"global_function", 0x1010, 4, GLOBAL},
		{"__write", 0x1020, 4, GLOBAL},
		{"_write", 0x1020, 4, GLOBAL},
		{"longer", 0x1030, 4, GLOBAL},
		{"short", 0x1030, 4, GLOBAL},
		{"bbb", 0x1040, 4, GLOBAL},
		{"aaa", 0x1040, 4, GLOBAL},
		{"chosen", 0x1050, 0, GLOBAL},
		{"only_it_has_a_size", 0x1050, 9, LOCAL},
	};
	struct symtab *t = TABLE(rows);

	CHECK_EQ(symtab_n(t), 6);
	CHECK_STR(name_at(t, 0x1000), "local_function");
	CHECK_STR(name_at(t, 0x1010), "global_function");
	CHECK_STR(name_at(t, 0x1020), "_write");
	CHECK_STR(name_at(t, 0x1030), "short");
	CHECK_STR(name_at(t, 0x1040), "aaa");
	CHECK_STR(name_at(t, 0x1058), "chosen");
	CHECK_STR(name_at(t, 0x1059), "-");
	CHECK_STR(symtab_sources(t), "symtab");
	symtab_free(t);
}

static void test_ranges(void)
{
	static const struct row rows[] = {
		{"outer", 0x1000, 0x40, GLOBAL},
		{"label_inside", 0x1008, 0, LABEL},
		{"inner", 0x1010, 0x10, LOCAL},
		{"innermost", 0x1018, 4, LOCAL},
		{"overlaps_the_end", 0x1038, 0x10, LOCAL},
		{"sizeless", 0x1050, 0, GLOBAL},
		{"next_sizeless", 0x1054, 0, LABEL},
		{"sized", 0x1080, 8, GLOBAL},
		{"to_the_end", 0x10f0, 0, LABEL},
	};
	static const struct {
		uint64_t addr;
		const char *name;
	} cases[] = {
		{0xfff, "-"},
		{0x1000, "outer"},
		{0x1008, "outer"},
		{0x100f, "outer"},
		{0x1010, "inner"},
		{0x1017, "inner"},
		{0x1018, "innermost"},
		{0x101b, "innermost"},
		{0x101c, "inner"},
		{0x101f, "inner"},
		{0x1020, "outer"},
		{0x1037, "outer"},
		{0x1038, "overlaps_the_end"},
		{0x1047, "overlaps_the_end"},
		{0x1048, "-"},
		{0x1050, "sizeless"},
		{0x1053, "sizeless"},
		{0x1054, "next_sizeless"},
		{0x107f, "next_sizeless"},
		{0x1080, "sized"},
		{0x1088, "-"},
		{0x10ef, "-"},
		{0x10ff, "to_the_end"},
		{0x1100, "-"},
	};
	struct symtab *t = TABLE(rows);
	const struct symbol *s;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(name_at(t, cases[i].addr), cases[i].name) != 0)
			printf("at 0x%" PRIx64 ":\n", cases[i].addr);
		CHECK_STR(name_at(t, cases[i].addr), cases[i].name);
	}
	CHECK_EQ(symtab_n(t), 8);
	s = symtab_find(t, 0x1020); /* behind a nested one the outer keeps its own start */
	CHECK(s && s->start == 0x1000 && s->size == 0x40);
	s = symtab_find(t, 0x1060);
	CHECK(s && s->start == 0x1054 && s->size == 0x2c);
	s = symtab_find(t, 0x10f0);
	CHECK(s && s->size == 0x10);
	for (size_t i = 1; i < symtab_n(t); i++)
		CHECK(symtab_get(t, i - 1)->start < symtab_get(t, i)->start);
	symtab_free(t);
}

static void test_names(void)
{
	static const struct row rows[] = {
		{".L42", 0x1000, 0, LABEL},
		{".Lfunction", 0x1000, 4, LOCAL},
		{"$d", 0x1004, 0, LABEL},
		{"$x.7", 0x1004, 0, LABEL},
		{".annobin_start", 0x1004, 0, LABEL},
		{"$dollar", 0x1008, 4, LOCAL},
		{"foo.cold", 0x1010, 4, LOCAL},
		{"_ZN3foo3barEi", 0x1020, 4, GLOBAL},
		{"_ZN3foo3barEi.cold", 0x1030, 4, LOCAL},
		{"bell\a\033[31mred", 0x1040, 4, GLOBAL},
		{"bar.constprop.0.isra.0", 0x1050, 4, LOCAL},
	};
	struct symtab *t = TABLE(rows);
	const struct symbol *s;

	CHECK_EQ(symtab_n(t), 6);
	CHECK_STR(name_at(t, 0x1000), "-");
	CHECK_STR(name_at(t, 0x1004), "-");
	CHECK_STR(name_at(t, 0x1008), "$dollar");
	CHECK_STR(name_at(t, 0x1010), "foo.cold");
	CHECK_STR(name_at(t, 0x1050), "bar.constprop.0.isra.0");
	s = symtab_find(t, 0x1020);
	CHECK(s && s == symtab_find(t, 0x1021));
	CHECK_STR(s->name, "foo::bar(int)");
	CHECK_STR(s->linkage_name, "_ZN3foo3barEi");
	CHECK_STR(name_at(t, 0x1030), "foo::bar(int) [clone .cold]");
	CHECK_STR(name_at(t, 0x1040), "bell??[31mred");
	symtab_free(t);
}

/* One text of 60,000 letters; every symbol names another tail of it. */
static void test_name_bomb(void)
{
	enum { N = 4000, LETTERS = 60000 };
	struct elf_maker m;
	struct elf_file elf;
	struct symtab *t;
	char *text_name = mem_zalloc(LETTERS + 1);
	uint32_t text;
	uint64_t bytes = 0;

	memset(text_name, 'a', LETTERS);
	elf_maker_init(&m, true);
	text = elf_maker_code(&m, ".text", 0x1000, N);
	elf_maker_symbol(&m, text_name, 0x1000, 1, GLOBAL, (uint16_t)text);
	for (uint32_t i = 1; i < N; i++) {
		size_t at = m.symbols.n;

		elf_maker_symbol(&m, "", 0x1000 + i, 1, GLOBAL, (uint16_t)text);
		memcpy(m.symbols.p + at, &(uint32_t){1 + i}, 4); /* st_name */
	}
	elf_maker_symbols(&m, ".symtab", SHT_SYMTAB);
	CHECK_EQ(elf_file_init(&elf, elf_maker_finish(&m), NULL), 0);
	t = symtab_new_elf(&elf, NULL);
	for (size_t i = 0; i < symtab_n(t); i++)
		bytes += strlen(symtab_get(t, i)->linkage_name);
	CHECK(bytes <= elf.bytes.n);
	CHECK(symtab_n(t) > 0);
	CHECK_EQ(symtab_n(t) + t->n_skipped, N);
	elf_file_release(&elf);
	elf_maker_release(&m);
	symtab_free(t);
	free(text_name);
}

/* An image that is in memory only; its size is that of its mapping. */
static void test_vdso(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	struct span image = {NULL, 0};
	struct elf_file elf;
	struct symtab *t;
	bool found = false;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long start, end;

		if (strstr(line, "[vdso]") && sscanf(line, "%lx-%lx", &start, &end) == 2)
			image = (struct span){(const uint8_t *)start, end - start};
	}
	if (maps)
		fclose(maps);
	CHECK_EQ(elf_file_init(&elf, image, NULL), 0);
	t = symtab_new_elf(&elf, NULL);
	for (size_t i = 0; i < symtab_n(t); i++)
		found = found || strstr(symtab_get(t, i)->name, "clock_gettime");
	CHECK(found);
	symtab_free(t);
	elf_file_release(&elf);
}

static void test_empty(void)
{
	struct elf_maker m;
	struct elf_file elf;
	struct symtab *t;

	elf_maker_init(&m, false);
	CHECK_EQ(elf_file_init(&elf, elf_maker_finish(&m), NULL), 0);
	t = symtab_new_elf(&elf, "/nonexistent");
	CHECK_EQ(symtab_n(t), 0);
	CHECK(!symtab_find(t, 0) && !symtab_find(t, UINT64_MAX));
	CHECK_STR(symtab_sources(t), "");
	symtab_free(t);
	symtab_free(NULL);
	elf_file_release(&elf);
	elf_maker_release(&m);
}

int main(void)
{
	static const struct test tests[] = {
		{"chooses among names of one address by the documented rule", test_aliases},
		{"gives nested functions their bytes, and gaps to names without a size",
			test_ranges},
		{"ignores assembler names, demangles, keeps suffixes, defuses control characters",
			test_names},
		{"keeps names within the size of the file when they are all one text",
			test_name_bomb},
		{"reads the names of the vdso out of memory", test_vdso},
		{"gives an empty table for an image without names", test_empty},
	};

	return RUN_TESTS(tests);
}
