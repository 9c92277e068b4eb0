/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "check.h"
#include "elf_maker.h"

#define GLOBAL_FUNC  ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)
#define LOCAL_NOTYPE ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE)

struct seen {
	struct elf_symbol v[16];
	size_t n;
};

static void collect(void *ctx, const struct elf_symbol *s)
{
	struct seen *seen = ctx;

	if (seen->n < 16)
		seen->v[seen->n++] = *s;
}

static void add_symbols(struct elf_maker *m, uint16_t text, uint16_t data)
{
	elf_maker_symbol(m, "first", 0x1010, 8, GLOBAL_FUNC, text);
	elf_maker_symbol(m, "object", 0x1020, 8, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), text);
	elf_maker_symbol(m, "label", 0x1030, 0, LOCAL_NOTYPE, text);
	elf_maker_symbol(m, "_edata", 0x3000, 0, LOCAL_NOTYPE, data);
	elf_maker_symbol(m, "undefined", 0, 0, GLOBAL_FUNC, SHN_UNDEF);
	elf_maker_symbol(m, "absolute", 0x1018, 4, GLOBAL_FUNC, SHN_ABS);
	elf_maker_symbol(m, "behind_the_end", 0x1040, 4, GLOBAL_FUNC, text);
	elf_maker_symbol(m, "before_the_start", 0xfff, 4, GLOBAL_FUNC, text);
	elf_maker_symbol(m, "", 0x1000, 4, GLOBAL_FUNC, text);
	elf_maker_symbol(
		m, "too_long", 0x1038, UINT32_MAX, ELF64_ST_INFO(STB_WEAK, STT_GNU_IFUNC), text);
}

static void check_symbols(const struct elf_file *elf, bool dynamic)
{
	struct seen seen = {0};

	elf_file_each_function(elf, !dynamic, collect, &seen);
	CHECK_EQ(seen.n, 0);
	elf_file_each_function(elf, dynamic, collect, &seen);
	CHECK_EQ(seen.n, 3);
	CHECK_STR(seen.v[0].name, "first");
	CHECK(seen.v[0].addr.v == 0x1010 && seen.v[0].size == 8 && seen.v[0].room == 0x30);
	CHECK(seen.v[0].type == STT_FUNC && seen.v[0].bind == STB_GLOBAL);
	CHECK_STR(seen.v[1].name, "label");
	CHECK(seen.v[1].addr.v == 0x1030 && seen.v[1].size == 0 && seen.v[1].room == 0x10);
	CHECK_STR(seen.v[2].name, "too_long");
	CHECK(seen.v[2].size == 8 && seen.v[2].type == STT_GNU_IFUNC && seen.v[2].bind == STB_WEAK);
	CHECK(elf_file_find_object(elf, "object", &seen.v[3]));
	CHECK(seen.v[3].addr.v == 0x1020 && seen.v[3].size == 8 && seen.v[3].type == STT_OBJECT);
	CHECK(!elf_file_find_object(elf, "objec", &seen.v[3]));
	CHECK(!elf_file_find_object(elf, "first", &seen.v[3]));
}

static void reads_table(bool is_64, bool dynamic)
{
	struct elf_maker m;
	struct elf_file elf;
	uint32_t text, data, table;

	elf_maker_init(&m, is_64);
	text = elf_maker_code(&m, ".text", 0x1000, 0x40);
	data = elf_maker_section(&m, ".data", SHT_PROGBITS, 0x3000,
		(struct span){(const uint8_t *)"0123456789abcdef", 16});
	add_symbols(&m, (uint16_t)text, (uint16_t)data);
	table = elf_maker_symbols(
		&m, dynamic ? ".dynsym" : ".symtab", dynamic ? SHT_DYNSYM : SHT_SYMTAB);
	CHECK_EQ(elf_file_init(&elf, elf_maker_finish(&m), NULL), 0);
	check_symbols(&elf, dynamic);
	CHECK_STR(elf_file_symbol_name(&elf, &elf.sections[table], 5), "undefined");
	CHECK(!elf_file_symbol_name(&elf, &elf.sections[table], 0));
	CHECK(!elf_file_symbol_name(&elf, &elf.sections[table], 11));
	CHECK(!elf_file_symbol_name(&elf, &elf.sections[table], UINT64_MAX));
	elf_file_release(&elf);
	elf_maker_release(&m);
}

static void test_tables(void)
{
	reads_table(true, false);
	reads_table(true, true);
	reads_table(false, false);
	reads_table(false, true);
}

static void put_dynamic(struct elf_maker *m, struct buf *b, uint64_t tag, uint64_t value)
{
	elf_maker_word(m, b, tag);
	elf_maker_word(m, b, value);
}

/* DT_GNU_HASH: 1 bucket that starts at symbol 1, one bloom word, chain ends at symbol n - 1. */
static void put_gnu_hash(struct elf_maker *m, struct buf *b, uint32_t n_symbols)
{
	buf_put_u32(b, 1);
	buf_put_u32(b, 1);
	buf_put_u32(b, 1);
	buf_put_u32(b, 0);
	elf_maker_word(m, b, 0);
	buf_put_u32(b, 1);
	for (uint32_t i = 1; i < n_symbols; i++)
		buf_put_u32(b, i == n_symbols - 1 ? 0x11 : 0x10);
}

static void put_hash(struct buf *b, uint32_t n_symbols)
{
	buf_put_u32(b, 1);
	buf_put_u32(b, n_symbols);
}

/* No section headers: everything is at its file offset, in one segment from address 0. */
static void reads_without_sections(bool is_64, bool gnu_hash)
{
	struct elf_maker m;
	struct elf_file elf;
	struct seen seen = {0};
	struct buf hash = {0}, dynamic = {0};
	uint32_t symbols, names, table, at;
	uint64_t value;

	elf_maker_init(&m, is_64);
	elf_maker_symbol(&m, "first", 0x10, 8, GLOBAL_FUNC, 7);
	elf_maker_symbol(&m, "gone", 0x10, 8, GLOBAL_FUNC, SHN_UNDEF);
	elf_maker_symbol(&m, "second", 0x20, 0, LOCAL_NOTYPE, 7);
	symbols = elf_maker_symbols(&m, ".dynsym", SHT_DYNSYM);
	names = m.sections[symbols].link;
	if (gnu_hash)
		put_gnu_hash(&m, &hash, 4);
	else
		put_hash(&hash, 4);
	table = elf_maker_section(&m, ".hash", SHT_HASH, 0, buf_span(&hash));
	put_dynamic(&m, &dynamic, gnu_hash ? DT_GNU_HASH : DT_HASH, m.sections[table].offset.v);
	put_dynamic(&m, &dynamic, DT_SYMTAB, m.sections[symbols].offset.v);
	put_dynamic(&m, &dynamic, DT_STRTAB, m.sections[names].offset.v);
	put_dynamic(&m, &dynamic, DT_STRSZ, m.sections[names].size);
	put_dynamic(&m, &dynamic, DT_NULL, 0);
	put_dynamic(&m, &dynamic, DT_PLTGOT, 99);
	at = elf_maker_section(&m, ".dynamic", SHT_DYNAMIC, 0, buf_span(&dynamic));
	elf_maker_segment(
		&m, (struct elf_segment){PT_LOAD, PF_R | PF_X, {0}, {0}, m.out.n, m.out.n, 4096});
	elf_maker_segment(&m, (struct elf_segment){PT_DYNAMIC, PF_R, m.sections[at].offset, {0},
				      dynamic.n, dynamic.n, 8});
	m.no_sections = true;
	CHECK_EQ(elf_file_init(&elf, elf_maker_finish(&m), NULL), 0);
	CHECK_EQ(elf.n_sections, 0);
	elf_file_each_function(&elf, true, collect, &seen);
	CHECK_EQ(seen.n, 2);
	CHECK_STR(seen.v[0].name, "first");
	CHECK_STR(seen.v[1].name, "second");
	CHECK(!elf_file_dynamic(&elf, DT_PLTGOT, &value)); /* behind DT_NULL */
	elf_file_release(&elf);
	elf_maker_release(&m);
	buf_release(&hash);
	buf_release(&dynamic);
}

static void test_without_sections(void)
{
	reads_without_sections(true, true);
	reads_without_sections(true, false);
	reads_without_sections(false, true);
	reads_without_sections(false, false);
}

/* Names that begin in a table without a NUL at its end, or outside it, are no names. */
static void test_bad_names(void)
{
	struct elf_maker m;
	struct elf_file elf;
	struct seen seen = {0};
	uint32_t text, table;

	elf_maker_init(&m, true);
	text = elf_maker_code(&m, ".text", 0x1000, 0x40);
	elf_maker_symbol(&m, "good", 0x1000, 4, GLOBAL_FUNC, (uint16_t)text);
	elf_maker_symbol(&m, "cut", 0x1010, 4, GLOBAL_FUNC, (uint16_t)text);
	table = elf_maker_symbols(&m, ".symtab", SHT_SYMTAB);
	m.sections[m.sections[table].link].size -= 1;
	CHECK_EQ(elf_file_init(&elf, elf_maker_finish(&m), NULL), 0);
	elf_file_each_function(&elf, false, collect, &seen);
	CHECK_EQ(seen.n, 1);
	CHECK(!elf_file_symbol_name(&elf, &elf.sections[table], 2));
	elf_file_release(&elf);
	elf_maker_release(&m);
}

int main(void)
{
	static const struct test tests[] = {
		{"lists function-like symbols inside their sections, of both tables and classes",
			test_tables},
		{"lists dynamic symbols without section headers, by either hash table",
			test_without_sections},
		{"leaves out names that no NUL ends", test_bad_names},
	};

	return RUN_TESTS(tests);
}
