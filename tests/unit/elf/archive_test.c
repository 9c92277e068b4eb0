/* SPDX-License-Identifier: MIT */
/* Archives made byte by byte, honest and not. What ar and linkers say: tests/oracle/archive_ar.sh
 */
#include "elf/archive.h"

#include <elf.h>
#include <stdlib.h>

#include "check.h"

static void put_header(struct buf *b, const char *name, size_t size)
{
	buf_printf(b, "%-16s%-12d%-6d%-6d%-8o%-10zu`\n", name, 1234, 7, 8, 0100644, size);
}

static void put_member(struct buf *b, const char *name, const char *text)
{
	put_header(b, name, strlen(text));
	buf_put_cstr(b, text);
	if (strlen(text) & 1)
		buf_put_u8(b, '\n');
}

static void put_u32_big(struct buf *b, uint32_t v)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		buf_put_u8(b, (uint8_t)(v >> shift));
}

static int open_buf(struct archive *a, const struct buf *b, struct err *err)
{
	err->text[0] = 0;
	return archive_open(a, buf_span(b), err);
}

static bool is_text(struct span bytes, const char *text)
{
	return bytes.n == strlen(text) && !memcmp(bytes.p, text, bytes.n);
}

static void test_names(void)
{
	struct buf b = {0};
	struct archive a;
	struct err err;

	buf_put_cstr(&b, "!<arch>\n");
	put_member(&b, "//", "a_name_of_many_letters.o/\nan_other_long_name.o/\n");
	put_member(&b, "short.o/", "one");
	put_member(&b, "/26", "four");
	put_member(&b, "/0", "");
	put_member(&b, "bsd.o", "bsd");
	put_member(&b, "#1/7", "inner.ocontents");
	put_member(&b, "with space.o/", "x");
	CHECK_EQ(open_buf(&a, &b, &err), 0);
	CHECK_EQ(a.members.n, 6);
	if (a.members.n == 6) {
		CHECK_STR(a.members.v[0].name, "short.o");
		CHECK(is_text(a.members.v[0].bytes, "one"));
		CHECK_EQ(a.members.v[0].mtime, 1234);
		CHECK_EQ(a.members.v[0].uid, 7);
		CHECK_EQ(a.members.v[0].gid, 8);
		CHECK_EQ(a.members.v[0].mode, 0100644);
		CHECK_STR(a.members.v[1].name, "an_other_long_name.o");
		CHECK(is_text(a.members.v[1].bytes, "four"));
		CHECK_STR(a.members.v[2].name, "a_name_of_many_letters.o");
		CHECK_EQ(a.members.v[2].bytes.n, 0);
		CHECK_STR(a.members.v[3].name, "bsd.o");
		CHECK_STR(a.members.v[4].name, "inner.o");
		CHECK(is_text(a.members.v[4].bytes, "contents"));
		CHECK_STR(a.members.v[5].name, "with space.o");
	}
	archive_release(&a);
	buf_release(&b);
}

static void test_bsd_names(void)
{
	struct buf b = {0};
	struct archive a;
	struct err err;

	buf_put_cstr(&b, "!<arch>\n");
	put_header(&b, "#1/20", 32);
	buf_put(&b, "__.SYMDEF SORTED\0\0\0", 20);
	buf_put(&b, "\0\0\0\0\0\0\0\0\0\0\0", 12);
	put_header(&b, "#1/12", 17);
	buf_put(&b, "long_name.o\0hello", 17);
	buf_put_u8(&b, '\n');
	put_member(&b, "__.SYMDEF", "abcd");
	CHECK_EQ(open_buf(&a, &b, &err), 0);
	CHECK_EQ(a.members.n, 1);
	if (a.members.n == 1) {
		CHECK_STR(a.members.v[0].name, "long_name.o");
		CHECK(is_text(a.members.v[0].bytes, "hello"));
	}
	archive_release(&a);
	buf_release(&b);
}

static void test_thin(void)
{
	struct buf b = {0}, out = {0};
	struct archive a;
	struct err err;

	buf_put_cstr(&b, "!<thin>\n");
	put_member(&b, "/", "\1\1\1\1");
	put_member(&b, "//", "sub/folder/some_file.o/\n");
	put_header(&b, "/0", 123456);
	put_header(&b, "near.o/", 9);
	CHECK_EQ(open_buf(&a, &b, &err), 0);
	CHECK(a.is_thin);
	CHECK_EQ(a.members.n, 2);
	if (a.members.n == 2) {
		CHECK_STR(a.members.v[0].name, "sub/folder/some_file.o");
		CHECK(a.members.v[0].is_outside && a.members.v[1].is_outside);
		CHECK_EQ(a.members.v[0].bytes.n, 0);
		/* Nobody read the files: writing would lose them. */
		CHECK_EQ(archive_write(&a, &out, &err), ERR_FAILED);
		CHECK_EQ(out.n, 0);
		for (int i = 0; i < 2; i++) {
			a.members.v[i].is_outside = false;
			a.members.v[i].bytes = (struct span){(const uint8_t *)"text", 4};
		}
		CHECK_EQ(archive_write(&a, &out, &err), 0);
	}
	archive_release(&a);
	CHECK_EQ(open_buf(&a, &out, &err), 0);
	CHECK(!a.is_thin);
	CHECK_EQ(a.members.n, 2);
	if (a.members.n == 2)
		CHECK_STR(a.members.v[0].name, "some_file.o");
	archive_release(&a);
	buf_reset(&b);
	buf_put_cstr(&b, "!<thin>\n");
	put_member(&b, "//", "inner.a/\n");
	put_header(&b, "/0:68", 10);
	CHECK_EQ(open_buf(&a, &b, &err), ERR_UNSUPPORTED);
	CHECK(strstr(err.text, "inner.a") != NULL);
	buf_release(&b);
	buf_release(&out);
}

/* ---- hostile ---- */

static void expect_refusal(struct buf *b, const char *sentence)
{
	struct archive a;
	struct err err;

	CHECK(open_buf(&a, b, &err) < 0);
	if (!strstr(err.text, sentence)) {
		CHECK_STR(err.text, sentence);
	}
	buf_reset(b);
	buf_put_cstr(b, "!<arch>\n");
}

static void test_refusals(void)
{
	struct buf b = {0};

	expect_refusal(&b, "no archive");
	buf_reset(&b);
	buf_put_cstr(&b, "!<arch>");
	expect_refusal(&b, "no archive");
	buf_put_cstr(&b, "x.o/");
	expect_refusal(&b, "offset 0x8: the header of a member is cut off");
	put_header(&b, "x.o/", 1);
	b.p[8 + 58] = 'x';
	buf_put_cstr(&b, "abcdef");
	expect_refusal(&b, "there is no header");
	put_header(&b, "x.o/", 5);
	buf_put_cstr(&b, "abcd");
	expect_refusal(&b, "member 'x.o/' has 5 bytes, but only 4 follow");
	put_header(&b, "x.o/", 0);
	memcpy(b.p + 8 + 48, "9999999999", 10);
	expect_refusal(&b, "9999999999 bytes");
	put_header(&b, "x.o/", 0);
	memcpy(b.p + 8 + 48, "-1        ", 10);
	expect_refusal(&b, "size is no number");
	put_header(&b, "x.o/", 0);
	memcpy(b.p + 8 + 48, "1 2       ", 10);
	expect_refusal(&b, "size is no number");
	put_member(&b, "/7", "x");
	expect_refusal(&b, "not in the table of names");
	put_member(&b, "//", "ab/\n");
	put_member(&b, "/4", "x");
	expect_refusal(&b, "not in the table of names");
	put_member(&b, "//", "ab/\n");
	put_member(&b, "/1x", "x");
	expect_refusal(&b, "not in the table of names");
	put_member(&b, "//", "ab/\n");
	put_member(&b, "/99999999999999", "x");
	expect_refusal(&b, "not in the table of names");
	put_member(&b, "#1/5", "abcd");
	expect_refusal(&b, "longer than the member");
	put_member(&b, "#1/-1", "abcd");
	expect_refusal(&b, "longer than the member");
	put_member(&b, "/<ECSYMBOLS>/", "x");
	expect_refusal(&b, "is not known");
	put_header(&b, "//", 6000);
	for (int i = 0; i < 6000; i++)
		buf_put_u8(&b, 'n');
	put_member(&b, "/0", "x");
	expect_refusal(&b, "too long");
	buf_release(&b);
}

static void test_tolerance(void)
{
	struct buf b = {0};
	struct archive a;
	struct err err;

	buf_put_cstr(&b, "!<arch>\n");
	CHECK_EQ(open_buf(&a, &b, &err), 0); /* an archive of nothing */
	CHECK_EQ(a.members.n, 0);
	archive_release(&a);
	put_header(&b, "x.o/", 3);
	memcpy(b.p + 8 + 16, "            -1    nobody", 24); /* time and owners are no numbers */
	buf_put_cstr(&b, "abc");			      /* no padding at the end */
	CHECK_EQ(open_buf(&a, &b, &err), 0);
	CHECK_EQ(a.members.n, 1);
	if (a.members.n == 1) {
		CHECK_EQ(a.members.v[0].mtime, 0);
		CHECK_EQ(a.members.v[0].uid, 0);
		CHECK(is_text(a.members.v[0].bytes, "abc"));
	}
	archive_release(&a);
	buf_release(&b);
}

/* ---- objects and the index ---- */

struct test_symbol {
	const char *name;
	uint8_t bind;
	uint16_t section;
	uint32_t wide; /* its number in the table of numbers beyond 16 bits */
};

/* An ELF file of a null section, symbols, texts and section numbers. */
static void put_object(struct buf *b, const struct test_symbol *symbols, size_t n)
{
	Elf64_Ehdr e = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_REL,
		.e_machine = EM_X86_64,
		.e_ehsize = sizeof(e),
		.e_shoff = sizeof(e),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 4};
	Elf64_Shdr s[4] = {{0},
		{.sh_type = SHT_SYMTAB, .sh_link = 2, .sh_entsize = sizeof(Elf64_Sym)},
		{.sh_type = SHT_STRTAB}, {.sh_type = SHT_SYMTAB_SHNDX, .sh_link = 1}};
	struct buf texts = {0};

	buf_put_u8(&texts, 0);
	s[1].sh_offset = sizeof(e) + sizeof(s);
	s[1].sh_size = (n + 1) * sizeof(Elf64_Sym);
	s[3].sh_offset = s[1].sh_offset + s[1].sh_size;
	s[3].sh_size = (n + 1) * 4;
	s[2].sh_offset = s[3].sh_offset + s[3].sh_size;
	for (size_t i = 0; i < n; i++)
		s[2].sh_size += strlen(symbols[i].name) + 1;
	s[2].sh_size += 1;
	buf_put(b, &e, sizeof(e));
	buf_put(b, s, sizeof(s));
	buf_put(b, &(Elf64_Sym){0}, sizeof(Elf64_Sym));
	for (size_t i = 0; i < n; i++) {
		Elf64_Sym symbol = {.st_name = (Elf64_Word)texts.n,
			.st_info = ELF64_ST_INFO(symbols[i].bind, STT_FUNC),
			.st_shndx = symbols[i].section};

		buf_put(b, &symbol, sizeof(symbol));
		buf_put(&texts, symbols[i].name, strlen(symbols[i].name) + 1);
	}
	buf_put_u32(b, 0);
	for (size_t i = 0; i < n; i++)
		buf_put_u32(b, symbols[i].wide);
	buf_put(b, texts.p, texts.n);
	buf_release(&texts);
}

/* The names of the index that archive_write makes, each followed by its member's name. */
static void index_text(struct buf *text, const struct buf *written)
{
	struct cursor c = cursor_of(span_sub(buf_span(written), 8 + 60, written->n - 68));
	const uint8_t *offsets, *header;
	uint32_t n = __builtin_bswap32(cursor_u32(&c));

	buf_reset(text);
	offsets = cursor_bytes(&c, n * 4).p;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at;

		memcpy(&at, offsets + 4 * i, 4);
		header = written->p + __builtin_bswap32(at);
		CHECK(header[58] == '`');
		buf_printf(text, "%s in %.*s;", cursor_cstr(&c),
			(int)strcspn((const char *)header, "/"), (const char *)header);
	}
}

static void test_index_of_objects(void)
{
	static const struct test_symbol symbols[] = {{"global", STB_GLOBAL, 1, 0},
		{"local", STB_LOCAL, 1, 0}, {"undefined", STB_GLOBAL, SHN_UNDEF, 0},
		{"weak", STB_WEAK, 1, 0}, {"weak_undefined", STB_WEAK, SHN_UNDEF, 0},
		{"common", STB_GLOBAL, SHN_COMMON, 0}, {"absolute", STB_GLOBAL, SHN_ABS, 0},
		{"unique", STB_GNU_UNIQUE, 1, 0}, {"far", STB_GLOBAL, SHN_XINDEX, 70000},
		{"far_undefined", STB_GLOBAL, SHN_XINDEX, 0}, {"", STB_GLOBAL, 1, 0}};
	struct buf b = {0}, object = {0}, out = {0}, again = {0}, text = {0};
	struct archive a;
	struct err err;

	put_object(&object, symbols, sizeof(symbols) / sizeof(symbols[0]));
	buf_put_cstr(&b, "!<arch>\n");
	put_member(&b, "notes.txt/", "not an object");
	put_member(&b, "x.o/", "replaced later");
	CHECK_EQ(open_buf(&a, &b, &err), 0);
	a.members.v[1].bytes = buf_span(&object);
	CHECK_EQ(archive_write(&a, &out, &err), 0);
	index_text(&text, &out);
	CHECK_STR(buf_text(&text), "global in x.o;weak in x.o;common in x.o;absolute in x.o;"
				   "unique in x.o;far in x.o;");
	CHECK_EQ(archive_write(&a, &again, &err), 0);
	CHECK(out.n == again.n && !memcmp(out.p, again.p, out.n));
	archive_release(&a);
	buf_release(&b);
	buf_release(&object);
	buf_release(&out);
	buf_release(&again);
	buf_release(&text);
}

/* Two members, and an index that lists three names: two of the first, one of nothing. */
static void put_with_index(struct buf *b, const char *first, size_t n)
{
	static const char names[] = "alpha\0beta\0nowhere\0"; /* 20 bytes with the last NUL */
	uint32_t at = 8 + 60 + 16 + 20;

	buf_reset(b);
	buf_put_cstr(b, "!<arch>\n");
	put_header(b, "/", 16 + 20);
	put_u32_big(b, 3);
	put_u32_big(b, at);
	put_u32_big(b, at);
	put_u32_big(b, at + 2);
	buf_put(b, names, 20);
	put_header(b, "code.o/", n);
	buf_put(b, first, n);
	if (n & 1)
		buf_put_u8(b, '\n');
	put_member(b, "text/", "text");
}

static void test_entries_that_are_kept(void)
{
	static const struct test_symbol slim[] = {{"__gnu_lto_slim", STB_GLOBAL, SHN_COMMON, 0}};
	static const struct test_symbol real[] = {{"gamma", STB_GLOBAL, 1, 0}};
	struct buf b = {0}, object = {0}, out = {0}, text = {0};
	struct archive a;
	struct err err;

	put_with_index(&b, "BC\xc0\xde...", 7);
	CHECK_EQ(open_buf(&a, &b, &err), 0);
	CHECK_EQ(archive_write(&a, &out, &err), 0);
	index_text(&text, &out);
	CHECK_STR(buf_text(&text), "alpha in code.o;beta in code.o;");
	/* An object whose symbols only the compiler knows. */
	put_object(&object, slim, 1);
	a.members.v[0].bytes = buf_span(&object);
	buf_reset(&out);
	CHECK_EQ(archive_write(&a, &out, &err), 0);
	index_text(&text, &out);
	CHECK_STR(buf_text(&text), "alpha in code.o;beta in code.o;");
	/* One that says its symbols itself. */
	buf_reset(&object);
	put_object(&object, real, 1);
	a.members.v[0].bytes = buf_span(&object);
	buf_reset(&out);
	CHECK_EQ(archive_write(&a, &out, &err), 0);
	index_text(&text, &out);
	CHECK_STR(buf_text(&text), "gamma in code.o;");
	archive_release(&a);
	buf_release(&b);
	buf_release(&object);
	buf_release(&out);
	buf_release(&text);
}

/* Half of the file's bytes is one name, the other half are symbols that all have it. */
static void test_names_without_end(void)
{
	struct test_symbol *symbols = calloc(20000, sizeof(*symbols));
	struct buf b = {0}, object = {0}, out = {0};
	char *name = malloc(500001);
	Elf64_Sym *table;
	struct archive a;
	struct err err = {0};

	memset(name, 'n', 500000);
	name[500000] = 0;
	for (int i = 0; i < 20000; i++)
		symbols[i] = (struct test_symbol){i ? "" : name, STB_GLOBAL, 1, 0};
	put_object(&object, symbols, 20000);
	table = (Elf64_Sym *)(object.p + sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Shdr));
	for (int i = 1; i <= 20000; i++)
		table[i].st_name = 1;
	buf_put_cstr(&b, "!<arch>\n");
	put_header(&b, "x.o/", object.n);
	buf_put(&b, object.p, object.n);
	CHECK_EQ(open_buf(&a, &b, &err), 0);
	CHECK_EQ(archive_write(&a, &out, &err), ERR_LIMIT);
	CHECK_EQ(out.n, 0);
	archive_release(&a);
	free(symbols);
	free(name);
	buf_release(&b);
	buf_release(&object);
	buf_release(&out);
}

/* Names that would mean something else when they were written as they are. */
static void test_odd_names(void)
{
	static const char *const odd[] = {
		"", "/", "//", "a/b", "#1/3", "fifteen_bytes.o", "sixteen__bytes.o", "end/", "x "};
	struct archive a, b;
	struct buf empty = {0}, out = {0};
	struct err err = {0};

	buf_put_cstr(&empty, "!<arch>\n");
	CHECK_EQ(open_buf(&a, &empty, &err), 0);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		vec_push(&a.members, ((struct archive_member){.name = odd[i]}));
	CHECK_EQ(archive_write(&a, &out, &err), 0);
	CHECK_EQ(open_buf(&b, &out, &err), 0);
	CHECK_EQ(b.members.n, a.members.n);
	for (size_t i = 0; i < b.members.n; i++)
		CHECK_STR(b.members.v[i].name, odd[i]);
	archive_release(&b);
	a.members.v[0].name = "a long name\nof two lines";
	buf_reset(&out);
	CHECK_EQ(archive_write(&a, &out, &err), ERR_FORMAT);
	a.members.v[0] = (struct archive_member){.name = "x", .uid = 1000000};
	CHECK_EQ(archive_write(&a, &out, &err), ERR_LIMIT);
	archive_release(&a);
	buf_release(&empty);
	buf_release(&out);
}

int main(void)
{
	static const struct test tests[] = {
		{"reads short, long and BSD names of members", test_names},
		{"leaves out the index of BSD archives", test_bsd_names},
		{"reads thin archives and writes ordinary ones", test_thin},
		{"refuses what is no archive, with the place", test_refusals},
		{"takes fields that do not matter as they are", test_tolerance},
		{"lists the globals that objects define", test_index_of_objects},
		{"keeps the entries of members that it cannot read", test_entries_that_are_kept},
		{"refuses names of symbols that are longer than the members",
			test_names_without_end},
		{"writes odd names so that they read the same", test_odd_names},
	};

	return RUN_TESTS(tests);
}
