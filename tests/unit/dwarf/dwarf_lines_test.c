/* SPDX-License-Identifier: MIT */
/* Line-number programs and file names, from bytes. */
#include "check.h"
#include "dwarf/source_files.h"
#include "dwarf_maker.h"

enum { COPY = 1, ADVANCE_PC, ADVANCE_LINE, SET_FILE, SET_COLUMN, NEGATE, BLOCK, CONST_ADD, FIXED };
enum { END = 1, ADDRESS, DEFINE_FILE };
#define LINE_BASE  (-5)
#define LINE_RANGE 14
#define BASE_OF(n) ((n) + 1) /* opcode_base with n standard opcodes */

struct table {
	struct dwarf_maker maker;
	struct dwarf_unit_map map;
	size_t header; /* where its length is */
	int version;
	int n_opcodes;
};

/* A unit in /work whose line table is being written. */
static void begin(struct table *t, int version, int min_instruction, int max_ops, int n_opcodes)
{
	static const uint8_t lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 2, 3};
	struct buf *b = &t->maker.of[MAKER_LINE], *info = &t->maker.of[MAKER_INFO];
	size_t at;

	*t = (struct table){.version = version, .n_opcodes = n_opcodes};
	ABBREV(&t->maker, 1, 0x11, 0, 0x10, 0x17, 0x1b, 0x08); /* stmt_list, comp_dir */
	buf_put_uleb(&t->maker.of[MAKER_ABBREV], 0);
	at = dwarf_maker_unit(&t->maker, version, 0);
	buf_put_uleb(info, 1);
	buf_put_u32(info, 0);
	buf_put(info, "/work", 6);
	dwarf_maker_length(info, at);
	buf_put_u32(b, 0);
	buf_put_u16(b, (uint16_t)version);
	if (version >= 5)
		buf_put(b, "\x08\x00", 2);
	t->header = b->n;
	buf_put_u32(b, 0);
	buf_put_u8(b, (uint8_t)min_instruction);
	if (version >= 4)
		buf_put_u8(b, (uint8_t)max_ops);
	buf_put_u8(b, 1);
	buf_put_u8(b, (uint8_t)LINE_BASE);
	buf_put_u8(b, LINE_RANGE);
	buf_put_u8(b, (uint8_t)BASE_OF(n_opcodes));
	buf_put(b, lengths, (size_t)n_opcodes);
}

/* Two files, numbers 1 and 2, in the format before DWARF 5; the program follows. */
static void files_4(struct table *t)
{
	struct buf *b = &t->maker.of[MAKER_LINE];

	buf_put(b, "sub/./x/..\0", 12);
	buf_put(b, "a.c\0\0\0\0", 7);
	buf_put(b, "b.h\0\1\0\0\0", 8);
	dwarf_maker_length(b, t->header);
}

static void op(struct table *t, uint8_t opcode)
{
	buf_put_u8(&t->maker.of[MAKER_LINE], opcode);
}

static void op_uleb(struct table *t, uint8_t opcode, uint64_t v)
{
	op(t, opcode);
	buf_put_uleb(&t->maker.of[MAKER_LINE], v);
}

static void op_line(struct table *t, int64_t lines)
{
	op(t, ADVANCE_LINE);
	buf_put_sleb(&t->maker.of[MAKER_LINE], lines);
}

static void op_special(struct table *t, int ops, int lines)
{
	op(t, (uint8_t)(BASE_OF(t->n_opcodes) + ops * LINE_RANGE + lines - LINE_BASE));
}

static void op_address(struct table *t, uint64_t offset)
{
	buf_put(&t->maker.of[MAKER_LINE], "\0\x09\x02", 3);
	buf_put_u64(&t->maker.of[MAKER_LINE], CODE_ADDR + offset);
}

static void op_end(struct table *t)
{
	buf_put(&t->maker.of[MAKER_LINE], "\0\1\1", 3);
}

static void finish(struct table *t)
{
	struct err err = {0};

	dwarf_maker_length(&t->maker.of[MAKER_LINE], 0);
	CHECK_EQ(dwarf_maker_open(&t->maker, NULL, &err), 0);
	CHECK_EQ(dwarf_unit_map_init(&t->map, t->maker.debug, 0, &err), 0);
}

static void release(struct table *t)
{
	dwarf_unit_map_release(&t->map);
	dwarf_maker_release(&t->maker);
}

/* The line at an offset of the code; -1 when nothing is known there. */
static int64_t line_at(const struct table *t, uint64_t offset)
{
	const struct dwarf_row *r = map_row(&t->map, offset);

	return r ? (int64_t)r->line : -1;
}

static bool file_is(const struct table *t, uint64_t offset, const char *name)
{
	const struct dwarf_row *r = map_row(&t->map, offset);

	return r && text_is(t->map.files.v[r->file], name);
}

static void opcodes(void)
{
	struct table t;

	begin(&t, 3, 1, 1, 14);
	files_4(&t);
	op_address(&t, 0x10);
	op(&t, COPY);
	op_line(&t, 41);
	op_uleb(&t, ADVANCE_PC, 2);
	op(&t, NEGATE);
	op(&t, COPY); /* 12: line 42 */
	op_uleb(&t, SET_FILE, 2);
	op_uleb(&t, SET_COLUMN, 7);
	op_special(&t, 3, -2); /* 15: line 40 */
	op(&t, 13);	       /* not known: two operands */
	buf_put(&t.maker.of[MAKER_LINE], "\x81\x01\x05", 3);
	op(&t, CONST_ADD); /* as 255, which is 14 + 226 + ...: (255 - 15) / 14 = 17 */
	op(&t, FIXED);
	buf_put_u16(&t.maker.of[MAKER_LINE], 0x100);
	op_line(&t, -40);
	op(&t, COPY);						   /* 0x126: line 0 */
	buf_put(&t.maker.of[MAKER_LINE], "\0\x03\x04\x7f\x00", 5); /* a discriminator */
	buf_put(&t.maker.of[MAKER_LINE], "\0\x08\x03/abs\0\0\0\0", 11);
	t.maker.of[MAKER_LINE].n--;
	op_uleb(&t, SET_FILE, 3);
	op_uleb(&t, ADVANCE_PC, 4);
	op_line(&t, 9);
	op(&t, COPY); /* 0x12a: line 9 of the file that was defined */
	op_uleb(&t, ADVANCE_PC, 6);
	op_end(&t);
	finish(&t);
	CHECK_EQ(line_at(&t, 0x0f), -1);
	CHECK_EQ(line_at(&t, 0x10), 1);
	CHECK_EQ(line_at(&t, 0x12), 42);
	CHECK(file_is(&t, 0x12, "/work/a.c"));
	CHECK_EQ(line_at(&t, 0x15), 40);
	CHECK(file_is(&t, 0x15, "/work/sub/b.h"));
	CHECK_EQ(line_at(&t, 0x125), 40);
	CHECK_EQ(line_at(&t, 0x126), 0);
	CHECK(file_is(&t, 0x126, "/work/sub/b.h"));
	CHECK_EQ(line_at(&t, 0x12a), 9);
	CHECK(file_is(&t, 0x12a, "/abs"));
	CHECK_EQ(line_at(&t, 0x12f), 9);
	CHECK_EQ(line_at(&t, 0x130), -1);
	CHECK_STR(dwarf_debug_notes(t.maker.debug), "");
	release(&t);
}

/* Opcodes above a low base are special, even those that have a standard meaning elsewhere. */
static void few_opcodes(void)
{
	struct table t;

	begin(&t, 2, 1, 1, 3);
	files_4(&t);
	op_address(&t, 0);
	op_special(&t, 0, 2);
	op_special(&t, 4, 3);
	op_uleb(&t, ADVANCE_PC, 4);
	op_end(&t);
	finish(&t);
	CHECK_EQ(line_at(&t, 0), 3);
	CHECK_EQ(line_at(&t, 4), 6);
	CHECK_EQ(line_at(&t, 8), -1);
	release(&t);
}

static void last_row_counts(void)
{
	struct table t;

	begin(&t, 4, 1, 1, 12);
	files_4(&t);
	op_address(&t, 0);
	op_special(&t, 0, 1);  /* line 2 */
	op_special(&t, 4, 1);  /* 4: line 3, */
	op_special(&t, 0, 5);  /* then 8 */
	op_special(&t, 4, 0);  /* 8: again 8 */
	op_special(&t, 4, 1);  /* 12: 9, */
	op_special(&t, 0, -1); /* then 8 */
	op_uleb(&t, ADVANCE_PC, 4);
	op_end(&t);
	finish(&t);
	CHECK_EQ(line_at(&t, 0), 2);
	CHECK_EQ(line_at(&t, 4), 8);
	CHECK_EQ(line_at(&t, 12), 8);
	CHECK_EQ(t.map.rows.n, 3); /* 2, 8, nothing */
	release(&t);
}

static void several_operations(void)
{
	struct table t;

	begin(&t, 4, 8, 3, 12); /* three operations in an instruction of eight bytes */
	files_4(&t);
	op_address(&t, 0);
	op(&t, COPY);
	op_special(&t, 2, 1); /* operation 2 of the first: line 2 */
	op_special(&t, 2, 1); /* operation 1 of the second: line 3 */
	op_uleb(&t, ADVANCE_PC, 2);
	op_end(&t);
	finish(&t);
	CHECK_EQ(line_at(&t, 0), 2);
	CHECK_EQ(line_at(&t, 8), 3);
	CHECK_EQ(line_at(&t, 15), 3);
	CHECK_EQ(line_at(&t, 16), -1);
	release(&t);
}

static void put_sequence(struct table *t, uint64_t start, int line, uint64_t n)
{
	op_address(t, start);
	op_line(t, line - 1);
	op(t, COPY);
	op_uleb(t, ADVANCE_PC, n);
	op_end(t);
}

static void sequences(void)
{
	struct table t;

	begin(&t, 4, 1, 1, 12);
	files_4(&t);
	put_sequence(&t, 0x100, 10, 0x100);
	put_sequence(&t, 0x40, 20, 0x10);
	put_sequence(&t, 0x140, 30, 0x20);		     /* inside of the first one */
	put_sequence(&t, 0x1f0, 40, 0x20);		     /* over its end */
	put_sequence(&t, 0x50, 50, 0x10);		     /* right behind another */
	put_sequence(&t, (uint64_t)0 - CODE_ADDR, 60, 0x20); /* dropped: at 0 */
	put_sequence(&t, CODE_BYTES - 8, 70, 0x20);	     /* beyond the end of the code */
	op_address(&t, 0x300);
	op(&t, COPY); /* without end */
	finish(&t);
	CHECK_EQ(line_at(&t, 0x3f), -1);
	CHECK_EQ(line_at(&t, 0x4f), 20);
	CHECK_EQ(line_at(&t, 0x50), 50);
	CHECK_EQ(line_at(&t, 0x60), -1);
	CHECK_EQ(line_at(&t, 0x13f), 10);
	CHECK_EQ(line_at(&t, 0x140), 30);
	CHECK_EQ(line_at(&t, 0x160), 10);
	CHECK_EQ(line_at(&t, 0x1ef), 10);
	CHECK_EQ(line_at(&t, 0x1f0), 40);
	CHECK_EQ(line_at(&t, 0x20f), 40);
	CHECK_EQ(line_at(&t, 0x210), -1);
	CHECK_EQ(line_at(&t, 0x300), -1);
	CHECK_EQ(line_at(&t, CODE_BYTES - 1), 70);
	CHECK_EQ(t.map.rows.v[t.map.rows.n - 1].addr, CODE_ADDR + CODE_BYTES);
	release(&t);
}

static void going_back(void)
{
	struct table t;

	begin(&t, 4, 1, 1, 12);
	files_4(&t);
	op_address(&t, 0x20);
	op_special(&t, 0, 1); /* line 2 */
	op_address(&t, 0x10);
	op_special(&t, 0, 1); /* line 3 */
	op_address(&t, 0x20);
	op_special(&t, 0, 1); /* line 4 */
	op_uleb(&t, ADVANCE_PC, 8);
	op_end(&t);
	finish(&t);
	CHECK_EQ(line_at(&t, 0x10), 3);
	CHECK_EQ(line_at(&t, 0x20), 4);
	CHECK_EQ(line_at(&t, 0x28), -1);
	release(&t);
}

static void put_file_5(struct buf *b, uint32_t name, int dir)
{
	buf_put_u32(b, name);
	buf_put_uleb(b, (uint64_t)dir);
	for (int i = 0; i < 16; i++)
		buf_put_u8(b, 0xee); /* MD5 */
}

static void files_of_dwarf_5(void)
{
	struct table t;
	struct buf *b;

	begin(&t, 5, 1, 1, 12);
	b = &t.maker.of[MAKER_LINE];
	buf_put(&t.maker.of[MAKER_LINE_STR], "/work\0inc\0a.c\0b.h", 18); /* at 0, 6, 10, 14 */
	buf_put(b, "\1\1\x1f\2", 4); /* folders: path in .debug_line_str; two of them */
	buf_put_u32(b, 0);
	buf_put_u32(b, 6);
	buf_put(b, "\3\1\x1f\2\x0b\5\x1e\3", 8); /* files: path, folder in a byte, MD5; three */
	put_file_5(b, 10, 0);
	put_file_5(b, 10, 0);
	put_file_5(b, 14, 1);
	dwarf_maker_length(b, t.header);
	op_address(&t, 0);
	op(&t, COPY); /* file 1 */
	op_uleb(&t, SET_FILE, 0);
	op_special(&t, 4, 1);
	op_uleb(&t, SET_FILE, 2);
	op_special(&t, 4, 1);
	op_uleb(&t, SET_FILE, 99);
	op_special(&t, 4, 1);
	op_uleb(&t, ADVANCE_PC, 4);
	op_end(&t);
	finish(&t);
	CHECK(file_is(&t, 0, "/work/a.c"));
	CHECK(file_is(&t, 4, "/work/a.c"));
	CHECK(file_is(&t, 8, "/work/inc/b.h"));
	CHECK(file_is(&t, 12, ""));
	CHECK_EQ(map_row(&t.map, 12)->file, 0);
	CHECK_EQ(line_at(&t, 12), 4);
	CHECK_EQ(t.map.files.n, 3); /* none, a.c once, b.h */
	release(&t);
}

/* Files that take no bytes could be counted in any number. */
static void files_of_no_bytes(void)
{
	struct table t;
	struct buf *b;

	begin(&t, 5, 1, 1, 12);
	b = &t.maker.of[MAKER_LINE];
	buf_put(b, "\0\0\0", 3);
	buf_put_uleb(b, (uint64_t)1 << 60);
	dwarf_maker_length(b, t.header);
	finish(&t);
	CHECK_EQ(t.map.rows.n, 0);
	CHECK(strstr(dwarf_debug_notes(t.maker.debug), ".debug_line+0x0: the list of files"));
	release(&t);
}

static void damaged_program(void)
{
	struct table t;

	begin(&t, 4, 1, 1, 12);
	files_4(&t);
	put_sequence(&t, 0x100, 10, 0x100);
	buf_put(&t.maker.of[MAKER_LINE], "\0\x7f\2", 3); /* longer than the table */
	finish(&t);
	CHECK_EQ(line_at(&t, 0x100), 10);
	CHECK(strstr(dwarf_debug_notes(t.maker.debug), "the program is damaged"));
	release(&t);
}

static bool joins_to(const char *a, const char *b, const char *c, const char *expected)
{
	const struct dwarf_text parts[] = {
		{a, (uint32_t)strlen(a)}, {b, (uint32_t)strlen(b)}, {c, (uint32_t)strlen(c)}};
	char out[SOURCE_PATH_MAX];
	size_t n = source_path_join(parts, 3, out);

	return n == strlen(expected) && !memcmp(out, expected, n);
}

static void paths(void)
{
	char deep[2 * SOURCE_PATH_MAX] = "/";
	const struct dwarf_text long_part = {deep, sizeof(deep) - 1};
	char out[SOURCE_PATH_MAX];

	CHECK(joins_to("/a/b", "c", "d.c", "/a/b/c/d.c"));
	CHECK(joins_to("/a/b", "", "d.c", "/a/b/d.c"));
	CHECK(joins_to("/a/b", "/c", "d.c", "/c/d.c"));
	CHECK(joins_to("/a", "b", "/d.c", "/d.c"));
	CHECK(joins_to("/a/b", "../c/.", "./d.c", "/a/c/d.c"));
	CHECK(joins_to("/a", "../../..", "d.c", "/d.c"));
	CHECK(joins_to("/", "", "d.c", "/d.c"));
	CHECK(joins_to("a//b/", "..", "d.c", "a/d.c"));
	CHECK(joins_to("a", "../..", "d.c", "../d.c"));
	CHECK(joins_to("", "../..", "../d.c", "../../../d.c"));
	CHECK(joins_to("./", "", "d.c", "d.c"));
	CHECK(joins_to("", "", "<built-in>", "<built-in>"));
	CHECK(joins_to("/a/...", "..b", ".c", "/a/.../..b/.c"));
	for (size_t i = 1; i + 1 < sizeof(deep); i++)
		deep[i] = i % 8 ? 'x' : '/';
	CHECK(source_path_join(&long_part, 1, out) <= SOURCE_PATH_MAX);
}

static const struct test tests[] = {
	{"every standard opcode does what it should, unknown ones are stepped over", opcodes},
	{"special opcodes begin where the header says", few_opcodes},
	{"of several rows at one address the last one counts", last_row_counts},
	{"several operations in an instruction are counted", several_operations},
	{"sequences are sorted, cut to the code, and laid over each other", sequences},
	{"a sequence whose addresses go back is sorted", going_back},
	{"files of DWARF 5 count from 0 and take any form", files_of_dwarf_5},
	{"files of no bytes are refused", files_of_no_bytes},
	{"a damaged program gives what it had finished", damaged_program},
	{"parts of file names are joined and cleaned", paths},
};

int main(void)
{
	return RUN_TESTS(tests);
}
