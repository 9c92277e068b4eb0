/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "elf_maker.h"
#include "probe/points/library_cache.h"
#include "probe/points/usdt_notes.h"

struct seen {
	struct usdt_note v[8];
	size_t n;
};

static void take(void *ctx, const struct usdt_note *note)
{
	struct seen *s = ctx;

	if (s->n < 8)
		s->v[s->n++] = *note;
}

static void put_note(
	struct buf *b, bool is_64, const uint64_t words[3], const char *texts, size_t texts_n)
{
	size_t word = is_64 ? 8 : 4;

	buf_put_u32(b, 8);
	buf_put_u32(b, (uint32_t)(3 * word + texts_n));
	buf_put_u32(b, 3);
	buf_put(b, "stapsdt", 8);
	for (int i = 0; i < 3; i++)
		buf_put(b, &words[i], word);
	buf_put(b, texts, texts_n);
	while (b->n % 4)
		buf_put_u8(b, 0);
}

#define NOTE(b, is_64, a, base, sem, texts)                                                        \
	put_note(b, is_64, (const uint64_t[]){a, base, sem}, texts, sizeof(texts))

/* A file whose base section lies at `base`; a semaphore section at 0x3000. */
static int read_notes(struct elf_maker *m, struct elf_file *elf, bool is_64, uint64_t base,
	const struct buf *notes, struct seen *seen, struct err *err)
{
	uint32_t data;

	elf_maker_init(m, is_64);
	elf_maker_code(m, ".text", 0x1000, 0x100);
	elf_maker_section(
		m, ".stapsdt.base", SHT_PROGBITS, base, (struct span){(const uint8_t *)"", 1});
	data = elf_maker_section(
		m, ".probes", SHT_PROGBITS, 0x3000, (struct span){(const uint8_t *)"\0\0\0\0", 4});
	elf_maker_segment(m, (struct elf_segment){.type = PT_LOAD,
				     .flags = PF_R | PF_W,
				     .offset = m->sections[data].offset,
				     .addr = {0x3000},
				     .file_size = 4,
				     .mem_size = 4});
	elf_maker_section(m, ".note.stapsdt", SHT_NOTE, 0, buf_span(notes));
	CHECK_EQ(elf_file_init(elf, elf_maker_finish(m), NULL), 0);
	return usdt_notes_each(elf, take, seen, err);
}

static void test_both_classes(void)
{
	for (int is_64 = 0; is_64 < 2; is_64++) {
		struct seen seen = {0};
		struct elf_maker m;
		struct elf_file elf;
		struct buf notes = {0};
		struct foff offset = {0};

		NOTE(&notes, is_64, 0x1010, 0x2000, 0x3002, "prov\0one\0-4@%eax 8@$5");
		NOTE(&notes, is_64, 0x1020, 0x2000, 0, "prov\0one\0-4@%ebx");
		NOTE(&notes, is_64, 0x1030, 0x2000, 0, "other\0two\0");
		CHECK_EQ(read_notes(&m, &elf, is_64, 0x2000, &notes, &seen, NULL), 3);
		CHECK_EQ(seen.n, 3);
		CHECK_STR(seen.v[0].provider, "prov");
		CHECK_STR(seen.v[0].probe, "one");
		CHECK_STR(seen.v[0].operands, "-4@%eax 8@$5");
		CHECK_EQ(seen.v[0].addr.v, 0x1010);
		CHECK_EQ(seen.v[0].semaphore.v, 0x3002);
		CHECK(elf_iaddr_to_offset(&elf, seen.v[0].semaphore, &offset));
		CHECK_EQ(offset.v, m.segments[0].offset.v + 2);
		CHECK(!elf_iaddr_to_offset(&elf, (struct iaddr){0x3004}, &offset));
		CHECK_STR(seen.v[1].operands, "-4@%ebx");
		CHECK_EQ(seen.v[1].semaphore.v, 0);
		CHECK_STR(seen.v[2].operands, "");
		elf_file_release(&elf);
		elf_maker_release(&m);
		buf_release(&notes);
	}
}

static void test_moved(void)
{
	struct seen seen = {0};
	struct elf_maker m;
	struct elf_file elf;
	struct buf notes = {0};

	NOTE(&notes, false, 0xfffffff0, 0xffffffe0, 0xfffffff8, "p\0n\0");
	CHECK_EQ(read_notes(&m, &elf, false, 0x20, &notes, &seen, NULL), 1);
	CHECK_EQ(seen.v[0].addr.v, 0x30);
	CHECK_EQ(seen.v[0].semaphore.v, 0x38);
	elf_file_release(&elf);
	elf_maker_release(&m);
	buf_release(&notes);
}

static void test_wrong(void)
{
	struct buf notes = {0};
	struct seen seen = {0};
	struct elf_maker m;
	struct elf_file elf;
	struct err err;

	NOTE(&notes, true, 0x1010, 0x2000, 0, "p\0n\0");
	NOTE(&notes, true, 0x1010, 0x2000, 0, "p\0n"); /* operands are missing */
	CHECK(read_notes(&m, &elf, true, 0x2000, &notes, &seen, &err) == ERR_FORMAT);
	CHECK(strstr(err.text, "provider, name and operands"));
	CHECK_EQ(seen.n, 1);
	elf_file_release(&elf);
	elf_maker_release(&m);
	buf_reset(&notes);
	NOTE(&notes, true, 0x1010, 0x2000, 0, "p\0n\0");
	notes.n -= 8;
	CHECK(read_notes(&m, &elf, true, 0x2000, &notes, &seen, &err) == ERR_FORMAT);
	CHECK(strstr(err.text, ".note.stapsdt+0x0"));
	elf_file_release(&elf);
	elf_maker_release(&m);
	buf_release(&notes);
}

static void count_libraries(void *ctx, const char *name, const char *path, enum mode mode)
{
	struct buf *b = ctx;

	buf_printf(b, "%s %s %d\n", name, path, mode == MODE_64 ? 64 : 32);
}

static void put_cache(struct buf *b, const uint32_t flags[3])
{
	static const char texts[] = "libc.so.6\0/lib64/libc.so.6\0/lib32/libc.so.6";
	uint32_t at = 48 + 3 * 24;

	buf_put(b, "glibc-ld.so.cache1.1", 20);
	buf_put_u32(b, 3);
	buf_put_u32(b, sizeof(texts));
	for (int i = 0; i < 5; i++)
		buf_put_u32(b, 0);
	for (int i = 0; i < 3; i++) {
		buf_put_u32(b, flags[i]);
		buf_put_u32(b, at);
		buf_put_u32(b, at + (i == 0 ? 10 : 27));
		buf_put_u32(b, 0);
		buf_put_u64(b, 0);
	}
	buf_put(b, texts, sizeof(texts));
}

static void test_cache(void)
{
	struct buf cache = {0}, seen = {0};

	put_cache(&cache, (const uint32_t[]){0x0303, 0x0003, 0x0803}); /* the last is x32 */
	CHECK_EQ(library_cache_each(buf_span(&cache), count_libraries, &seen, NULL), 0);
	CHECK_STR(
		buf_text(&seen), "libc.so.6 /lib64/libc.so.6 64\nlibc.so.6 /lib32/libc.so.6 32\n");
	buf_reset(&seen);
	cache.n = 60; /* cut short */
	CHECK_EQ(library_cache_each(buf_span(&cache), count_libraries, &seen, NULL), 0);
	CHECK_EQ(seen.n, 0);
	CHECK(library_cache_each((struct span){(const uint8_t *)"x", 1}, count_libraries, &seen,
		      NULL) == ERR_FORMAT);
	buf_release(&seen);
	buf_release(&cache);
}

static void test_library_names(void)
{
	CHECK(library_name_is("libc", "libc.so.6") && library_name_is("c", "libc.so.6"));
	CHECK(library_name_is("libc.so.6", "libc.so.6") && library_name_is("libc.so", "libc.so.6"));
	CHECK(library_name_is("libc", "libc-2.31.so") &&
		library_name_is("stdc++", "libstdc++.so.6"));
	CHECK(library_name_is("libfoo-1.2", "libfoo-1.2.so") ||
		library_name_is("libfoo", "libfoo-1.2.so"));
	CHECK(!library_name_is("libc", "libcap.so.2") && !library_name_is("libc", "libc.sox"));
	CHECK(!library_name_is("libc.so.6", "libc.so.5") && !library_name_is("c", "libc.a"));
	CHECK(library_name_is("libc*", "libcap.so.2"));
}

int main(void)
{
	static const struct test tests[] = {
		{"static probes of both classes are read, several sites of one too",
			test_both_classes},
		{"addresses and semaphores move with the base section", test_moved},
		{"a malformed note is an error with its place, and those before it are given",
			test_wrong},
		{"the loader's cache tells 64-bit from 32-bit files and leaves x32 out",
			test_cache},
		{"a library is known by its short names and not by others", test_library_names},
	};

	return RUN_TESTS(tests);
}
