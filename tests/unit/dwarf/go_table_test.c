/* SPDX-License-Identifier: MIT */
/* Go's table in all of its layouts: names, frames and lines come out the same. */
#include "dwarf/go_table.h"

#include "check.h"
#include "dwarf/cfi_rule.h"
#include "go_maker.h"
#include "symbols/symtab.h"

/* A run: the difference of the value, zigzag, and the bytes of code. */
#define UP(by, n)   (char)((by)*2), (char)(n)
#define DOWN(by, n) (char)((by)*2 - 1), (char)(n)
#define RUNS(...)                                                                                  \
	(const char[])                                                                             \
	{                                                                                          \
		__VA_ARGS__, 0                                                                     \
	}

static const unsigned versions[] = {102, 116, 118, 120};

static const struct go_maker_function functions[] = {
	/* 8 bytes before the frame is made, then 24 of them, then none again */
	{0x00, "main.work", 0, RUNS(UP(1, 8), UP(24, 16), DOWN(24, 8)), RUNS(UP(2, 32)),
		RUNS(UP(11, 4), UP(2, 20), DOWN(3, 8))},
	{0x20, "runtime.goexit", 0, RUNS(UP(1, 16)), RUNS(UP(2, 16)), RUNS(UP(60, 16))},
	{0x30, "runtime.asmcgocall", 0, RUNS(UP(1, 16)), RUNS(UP(2, 16)), RUNS(UP(61, 16))},
};
#define N_FUNCTIONS 3
#define END	    0x40

static struct cfi_image image;
static struct go_maker maker;

static void make(unsigned version, bool is_64, const char *section)
{
	maker = (struct go_maker){.version = version, .is_64 = is_64};
	CHECK_EQ(go_image_make(&image, is_64, go_maker_table(&maker, functions, N_FUNCTIONS, END),
			 section),
		0);
}

static void release(void)
{
	cfi_image_release(&image);
	go_maker_release(&maker);
}

#define FOR_ALL(v, is_64)                                                                          \
	for (size_t v = 0; v < 4; v++)                                                             \
		for (int is_64 = 0; is_64 < 2; is_64++)

static const char *name_at(const struct symtab *t, uint64_t offset)
{
	const struct symbol *s = symtab_find(t, CODE_ADDR + offset);

	return s ? s->name : "";
}

static void test_names(void)
{
	FOR_ALL(v, is_64)
	{
		struct symtab *t;

		make(versions[v], is_64, ".gopclntab");
		t = symtab_new_elf(&image.elf, NULL);
		CHECK_EQ(symtab_n(t), N_FUNCTIONS);
		CHECK_STR(symtab_sources(t), "gopclntab");
		CHECK_STR(name_at(t, 0), "main.work");
		CHECK_STR(name_at(t, 0x1f), "main.work");
		CHECK_STR(name_at(t, 0x20), "runtime.goexit");
		CHECK_STR(name_at(t, 0x3f), "runtime.asmcgocall");
		CHECK_STR(name_at(t, 0x40), "");
		symtab_free(t);
		release();
	}
}

static const struct cfi_rule *rule_at(const struct cfi_table *t, uint64_t offset)
{
	return cfi_table_find(t, (struct iaddr){CODE_ADDR + offset});
}

static void test_frames(void)
{
	FOR_ALL(v, is_64)
	{
		int word = is_64 ? 8 : 4;
		struct cfi_table *t;
		struct iaddr start;
		uint64_t size;

		make(versions[v], is_64, ".data.rel.ro.gopclntab");
		t = cfi_table_new(&image.elf);
		CHECK_EQ(rule_at(t, 0)->cfa_reg, CPU_REG_RSP);
		CHECK_EQ(rule_at(t, 0)->cfa_value, word);
		CHECK_EQ(rule_at(t, 7)->cfa_value, word);
		CHECK_EQ(rule_at(t, 8)->cfa_value, word + 24);
		CHECK_EQ(rule_at(t, 23)->cfa_value, word + 24);
		CHECK_EQ(rule_at(t, 24)->cfa_value, word);
		CHECK_EQ(rule_at(t, 8)->flags, CFI_RULE_PLAIN);
		CHECK_EQ(rule_at(t, 8)->places[0].reg, CPU_REG_RIP);
		CHECK_EQ(rule_at(t, 8)->places[0].value, -word);
		CHECK(rule_at(t, 0x20)->flags & CFI_RULE_OUTERMOST);
		/* Nothing in it writes the stack pointer. */
		CHECK(!(rule_at(t, 0x30)->flags & CFI_RULE_ELSEWHERE));
		CHECK(!rule_at(t, 0x40));
		CHECK(cfi_table_function_at(t, (struct iaddr){CODE_ADDR + 0x25}, &start, &size));
		CHECK_EQ(start.v, CODE_ADDR + 0x20);
		CHECK_EQ(size, 0x10);
		cfi_table_free(t);
		release();
	}
}

static void check_row(const struct dwarf_unit_map *m, size_t i, uint64_t offset, unsigned line)
{
	CHECK(i < m->rows.n);
	if (i >= m->rows.n)
		return;
	CHECK_EQ(m->rows.v[i].addr, CODE_ADDR + offset);
	CHECK_EQ(m->rows.v[i].line, line);
	CHECK_EQ(m->rows.v[i].is_hole, !line);
	CHECK_EQ(m->rows.v[i].file, line ? 1 : 0);
}

static void test_lines(void)
{
	const uint64_t some[] = {CODE_ADDR + 0x21};

	FOR_ALL(v, is_64)
	{
		struct dwarf_unit_map lines = {0};
		struct go_table go;

		make(versions[v], is_64, ".gopclntab");
		CHECK(go_table_init(&go, &image.elf));
		go_table_lines(&go, NULL, 0, &lines);
		CHECK_EQ(lines.rows.n, 6);
		check_row(&lines, 0, 0, 10);
		check_row(&lines, 1, 4, 12);
		check_row(&lines, 2, 24, 9);
		check_row(&lines, 3, 0x20, 59);
		check_row(&lines, 4, 0x30, 60);
		check_row(&lines, 5, 0x40, 0);
		CHECK_EQ(lines.files.n, 2);
		CHECK_STR(lines.files.v[1].p, "/src/made.go");
		dwarf_unit_map_release(&lines);

		lines = (struct dwarf_unit_map){0};
		go_table_lines(&go, some, 1, &lines);
		CHECK_EQ(lines.rows.n, 2);
		check_row(&lines, 0, 0x20, 59);
		check_row(&lines, 1, 0x30, 0);
		dwarf_unit_map_release(&lines);
		go_table_release(&go);
		release();
	}
}

/* A program whose section headers were cut off; one whose linker put the table elsewhere. */
static void test_places(void)
{
	struct go_table go;

	make(120, true, NULL);
	CHECK(go_table_init(&go, &image.elf));
	CHECK_EQ(go.n, N_FUNCTIONS);
	go_table_release(&go);
	release();

	make(118, true, ".data.rel.ro"); /* and nothing says that it is Go's */
	CHECK(!go_table_init(&go, &image.elf));
	release();
}

static void test_flags(void)
{
	const struct go_maker_function flagged[] = {
		{0, "main.top", 1, RUNS(UP(1, 16)), RUNS(UP(2, 16)), RUNS(UP(1, 16))},
		{16, "main.plain", 0, RUNS(UP(1, 16)), RUNS(UP(2, 16)), RUNS(UP(1, 16))}};
	struct cfi_table *t;

	for (size_t v = 1; v < 4; v++) {
		maker = (struct go_maker){.version = versions[v], .is_64 = true};
		CHECK_EQ(go_image_make(&image, true, go_maker_table(&maker, flagged, 2, 32),
				 ".gopclntab"),
			0);
		t = cfi_table_new(&image.elf);
		CHECK(rule_at(t, 3)->flags & CFI_RULE_OUTERMOST);
		CHECK(!(rule_at(t, 16)->flags & CFI_RULE_OUTERMOST));
		cfi_table_free(t);
		release();
	}
}

/* Every cut of the table: no more functions than are there, and nothing is read outside. */
static void test_cut(void)
{
	struct go_table go;

	for (size_t v = 0; v < 4; v++) {
		struct span table;

		maker = (struct go_maker){.version = versions[v], .is_64 = true};
		table = go_maker_table(&maker, functions, N_FUNCTIONS, END);
		for (size_t n = 0; n < table.n; n++) {
			uint8_t *copy = malloc(n + 1);

			memcpy(copy, table.p, n);
			CHECK_EQ(go_image_make(&image, true, (struct span){copy, n}, ".gopclntab"),
				0);
			if (go_table_init(&go, &image.elf)) {
				struct go_function f;

				for (uint64_t i = 0; i < go.n; i++)
					go_table_function(&go, i, &f);
				go_table_release(&go);
			}
			cfi_image_release(&image);
			free(copy);
		}
		go_maker_release(&maker);
	}
}

static const struct test tests[] = {
	{"all layouts have the same names", test_names},
	{"all layouts have the same frames", test_frames},
	{"all layouts have the same lines", test_lines},
	{"the table is found without sections, and not where nothing tells of Go", test_places},
	{"a function that is flagged as outermost is", test_flags},
	{"a table that is cut anywhere is read as far as it goes", test_cut},
};

int main(void)
{
	return RUN_TESTS(tests);
}
