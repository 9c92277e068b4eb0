/* SPDX-License-Identifier: MIT */
#include <zlib.h>

#include "base/mem.h"
#include "check.h"
#include "elf_maker.h"

#define R  PF_R
#define RX (PF_R | PF_X)
#define RW (PF_R | PF_W)

static void refuses(const void *bytes, size_t n, int code, const char *sentence)
{
	struct elf_file elf;
	struct err err = {0};

	CHECK_EQ(elf_file_init(&elf, (struct span){bytes, n}, &err), code);
	CHECK_STR(err.text, sentence);
}

static void test_refusals(void)
{
	struct elf_maker m;
	struct span s;

	refuses("", 0, ERR_FORMAT, "is not an ELF file (it has only 0 bytes)");
	refuses("#!/bin/sh\necho hello\n", 21, ERR_FORMAT,
		"is not an ELF file (first bytes are 23 21 2f 62)");
	elf_maker_init(&m, true);
	s = elf_maker_finish(&m);
	refuses(s.p, 20, ERR_FORMAT, "is an ELF file cut short within its header (20 bytes of 64)");
	m.out.p[EI_DATA] = ELFDATA2MSB;
	refuses(s.p, s.n, ERR_UNSUPPORTED,
		"is a big-endian ELF file, but only little-endian ones can be read");
	m.out.p[EI_DATA] = 7;
	refuses(s.p, s.n, ERR_FORMAT, "is an ELF file of unknown byte order 7");
	m.out.p[EI_DATA] = ELFDATA2LSB;
	m.out.p[EI_CLASS] = 3;
	refuses(s.p, s.n, ERR_FORMAT, "is an ELF file of unknown class 3, not 32 or 64 bit");
	elf_maker_release(&m);
}

static void reads_sections(bool is_64, bool extended)
{
	struct elf_maker m;
	struct elf_file elf;
	const struct elf_section *s;

	elf_maker_init(&m, is_64);
	m.extended = extended;
	elf_maker_code(&m, ".text", 0x1000, 24);
	elf_maker_section(&m, ".bss", SHT_NOBITS, 0x3000, (struct span){NULL, 4096});
	elf_maker_section(&m, ".odd", SHT_PROGBITS, 0, (struct span){(const uint8_t *)"abc", 3});
	elf_maker_segment(&m, (struct elf_segment){.type = PT_LOAD, .flags = RX, .align = 4096});
	CHECK_EQ(elf_file_init(&elf, elf_maker_finish(&m), NULL), 0);
	CHECK_EQ(elf.is_64, is_64);
	CHECK_EQ(elf.machine, is_64 ? EM_X86_64 : EM_386);
	CHECK_EQ(elf.type, ET_DYN);
	CHECK_EQ(elf.entry.v, 0x1234);
	CHECK_EQ(elf.n_sections, 5);
	CHECK_EQ(elf.n_segments, 1);
	CHECK_EQ(elf.segments[0].flags, RX);
	CHECK_EQ(elf.segments[0].align, 4096);
	s = elf_file_find_section(&elf, ".text");
	CHECK(s && s->addr.v == 0x1000 && s->flags == (SHF_ALLOC | SHF_EXECINSTR));
	CHECK(s && elf_file_section_bytes(&elf, s).n == 24);
	CHECK(s && elf_file_section_bytes(&elf, s).p[0] == 0x90);
	s = elf_file_find_section(&elf, ".bss");
	CHECK(s && s->size == 4096 && elf_file_section_bytes(&elf, s).n == 0);
	CHECK(!elf_file_find_section(&elf, ".none"));
	elf_file_release(&elf);
	elf_file_release(&elf); /* harmless */
	elf_maker_release(&m);
}

static void test_sections_64(void)
{
	reads_sections(true, false);
}

static void test_sections_32(void)
{
	reads_sections(false, false);
}

static void test_extended(void)
{
	reads_sections(true, true);
	reads_sections(false, true);
}

static void test_outside(void)
{
	struct elf_maker m;
	struct elf_file elf;
	uint32_t i;

	elf_maker_init(&m, true);
	i = elf_maker_code(&m, ".text", 0, 8);
	m.sections[i].size = UINT64_MAX - 4;
	i = elf_maker_code(&m, ".far", 0, 8);
	m.sections[i].offset.v = UINT64_MAX - 4;
	CHECK_EQ(elf_file_init(&elf, elf_maker_finish(&m), NULL), 0);
	CHECK_EQ(elf_file_section_bytes(&elf, elf_file_find_section(&elf, ".text")).n, 0);
	CHECK_EQ(elf_file_section_bytes(&elf, elf_file_find_section(&elf, ".far")).n, 0);
	elf_file_release(&elf);
	elf_maker_release(&m);
}

/* The section table is the last thing in the file; without its end there are fewer sections. */
static void test_cut(void)
{
	struct elf_maker m;
	struct elf_file elf;
	struct span all;

	elf_maker_init(&m, true);
	elf_maker_code(&m, ".text", 0x1000, 24);
	elf_maker_code(&m, ".more", 0x2000, 24);
	all = elf_maker_finish(&m);
	for (size_t n = 64; n <= all.n; n++) {
		uint8_t *exact = mem_dup(all.p, n); /* ASan sees a read past its end */

		CHECK_EQ(elf_file_init(&elf, (struct span){exact, n}, NULL), 0);
		CHECK(elf.n_sections <= 4);
		if (n > all.n - 64)
			CHECK_EQ(elf.n_sections, n == all.n ? 4 : 3);
		CHECK_EQ(elf_file_build_id(&elf).n, 0);
		elf_file_release(&elf);
		free(exact);
	}
	elf_maker_release(&m);
}

static uint64_t mapped(const struct elf_file *elf, uint64_t offset)
{
	struct iaddr out = {0xdead};

	return elf_file_offset_to_iaddr(elf, (struct foff){offset}, &out) ? out.v : UINT64_MAX;
}

/* offsets:	0       0x640   0x1000   0x1840    0x2000  0x2100 */
static void test_offsets(void)
{
	struct elf_maker m;
	struct elf_file elf;
	struct span b;

	elf_maker_init(&m, true);
	elf_maker_code(&m, ".text", 0, 0x3000);
	elf_maker_segment(
		&m, (struct elf_segment){PT_LOAD, R, {0}, {0x400000}, 0x640, 0x640, 4096});
	elf_maker_segment(
		&m, (struct elf_segment){PT_LOAD, RX, {0x640}, {0x401640}, 0x1200, 0x1200, 4096});
	elf_maker_segment(
		&m, (struct elf_segment){PT_LOAD, RW, {0x1840}, {0x403840}, 0x8c0, 0x9000, 4096});
	elf_maker_segment(&m, (struct elf_segment){PT_LOAD, RW, {0x2ff0}, {0x900000}, 0, 64, 4096});
	CHECK_EQ(elf_file_init(&elf, elf_maker_finish(&m), NULL), 0);
	CHECK_EQ(mapped(&elf, 0), 0x401000); /* shared first page: the code counts */
	CHECK_EQ(mapped(&elf, 0x640), 0x401640);
	CHECK_EQ(mapped(&elf, 0x1000), 0x402000); /* shared by code and data */
	CHECK_EQ(mapped(&elf, 0x1fff), 0x402fff); /* rounded up to the page's end */
	CHECK_EQ(mapped(&elf, 0x2000), 0x404000);
	CHECK_EQ(mapped(&elf, 0x2fff), 0x404fff);
	CHECK_EQ(mapped(&elf, 0x3000), UINT64_MAX);
	b = elf_file_bytes_at(&elf, (struct iaddr){0x401640});
	CHECK(b.p == elf.bytes.p + 0x640 && b.n == 0x1200);
	b = elf_file_bytes_at(&elf, (struct iaddr){0x4040ff});
	CHECK(b.p == elf.bytes.p + 0x20ff && b.n == 1);
	CHECK_EQ(elf_file_bytes_at(&elf, (struct iaddr){0x404100}).n, 0); /* .bss */
	CHECK_EQ(elf_file_bytes_at(&elf, (struct iaddr){0x3fffff}).n, 0);
	elf_file_release(&elf);
	elf_maker_release(&m);
}

static void put_note(struct buf *b, const char *name, uint32_t type, const char *desc, size_t pad)
{
	size_t start = b->n;

	buf_put_u32(b, (uint32_t)strlen(name) + 1);
	buf_put_u32(b, (uint32_t)strlen(desc));
	buf_put_u32(b, type);
	buf_put(b, name, strlen(name) + 1);
	while ((b->n - start) % pad)
		buf_put_u8(b, 0);
	buf_put(b, desc, strlen(desc));
	while ((b->n - start) % pad)
		buf_put_u8(b, 0);
}

static void finds_build_id(bool by_segment, size_t pad)
{
	struct elf_maker m;
	struct elf_file elf;
	struct buf notes = {0};
	struct span id;
	uint32_t i;

	put_note(&notes, "GNU", 5, "property9", pad);
	put_note(&notes, "Xen", NT_GNU_BUILD_ID, "wrong", pad);
	put_note(&notes, "GNU", NT_GNU_BUILD_ID, "0123456789", pad);
	elf_maker_init(&m, true);
	i = elf_maker_section(&m, ".note", SHT_NOTE, 0, buf_span(&notes));
	m.sections[i].align = pad;
	elf_maker_segment(&m,
		(struct elf_segment){PT_NOTE, R, m.sections[i].offset, {0}, notes.n, notes.n, pad});
	m.no_sections = by_segment;
	if (!by_segment)
		m.segments[0].type = PT_NULL;
	CHECK_EQ(elf_file_init(&elf, elf_maker_finish(&m), NULL), 0);
	CHECK_EQ(elf.n_sections == 0, by_segment);
	id = elf_file_build_id(&elf);
	CHECK(id.n == 10 && memcmp(id.p, "0123456789", 10) == 0);
	elf_file_release(&elf);
	elf_maker_release(&m);
	buf_release(&notes);
}

static void test_build_id(void)
{
	finds_build_id(false, 4);
	finds_build_id(false, 8);
	finds_build_id(true, 4);
	finds_build_id(true, 8);
}

static void test_debuglink(void)
{
	static const uint8_t good[] = "a.debug\0\x78\x56\x34\x12", cut[] = "a.debug\0\x78\x56";
	static const uint8_t no_nul[] = {'a', 'b', 'c', 'd'};
	static const struct {
		struct span bytes;
		bool fine;
	} cases[] = {
		{{good, 12}, true}, {{cut, 10}, false}, {{no_nul, 4}, false}, {{good, 0}, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct elf_maker m;
		struct elf_file elf;
		const char *name = "";
		uint32_t crc = 0;

		elf_maker_init(&m, false);
		elf_maker_section(&m, ".gnu_debuglink", SHT_PROGBITS, 0, cases[i].bytes);
		CHECK_EQ(elf_file_init(&elf, elf_maker_finish(&m), NULL), 0);
		CHECK_EQ(elf_file_debuglink(&elf, &name, &crc), cases[i].fine);
		CHECK_STR(name, cases[i].fine ? "a.debug" : "");
		CHECK_EQ(crc, cases[i].fine ? 0x12345678 : 0);
		elf_file_release(&elf);
		elf_maker_release(&m);
	}
}

static void test_inflate(void)
{
	static const char text[] = "all work and no play all work and no play all work and no play";
	uint8_t packed[256], *out = NULL;
	uLongf packed_n = sizeof(packed);
	size_t out_n = 0;
	struct buf b = {0};
	struct elf_maker m;
	struct elf_file elf;
	struct elf_section *s;
	struct err err;

	compress(packed, &packed_n, (const uint8_t *)text, sizeof(text));
	buf_put_u32(&b, ELFCOMPRESS_ZLIB);
	buf_put_u32(&b, 0);
	buf_put_u64(&b, sizeof(text));
	buf_put_u64(&b, 1);
	buf_put(&b, packed, packed_n);
	elf_maker_init(&m, true);
	m.sections[elf_maker_section(&m, ".debug_x", SHT_PROGBITS, 0, buf_span(&b))].flags =
		SHF_COMPRESSED;
	CHECK_EQ(elf_file_init(&elf, elf_maker_finish(&m), NULL), 0);
	s = (struct elf_section *)elf_file_find_section(&elf, ".debug_x");
	CHECK_EQ(elf_section_inflate(&elf, s, 1000, &out, &out_n, &err), 0);
	CHECK(out_n == sizeof(text) && memcmp(out, text, out_n) == 0);
	free(out);
	CHECK_EQ(elf_section_inflate(&elf, s, 10, &out, &out_n, &err), ERR_LIMIT);
	s->size -= 3;
	CHECK_EQ(elf_section_inflate(&elf, s, 1000, &out, &out_n, &err), ERR_FORMAT);
	CHECK_STR(err.text, "section .debug_x: the compressed bytes are damaged");
	s->flags = 0;
	CHECK_EQ(elf_section_inflate(&elf, s, 1000, &out, &out_n, &err), ERR_FORMAT);
	elf_file_release(&elf);
	elf_maker_release(&m);
	buf_release(&b);
}

int main(void)
{
	static const struct test tests[] = {
		{"refuses what is no readable ELF file, with a sentence", test_refusals},
		{"reads the tables of a 64-bit file", test_sections_64},
		{"reads the tables of a 32-bit file", test_sections_32},
		{"reads section and segment counts that do not fit the header", test_extended},
		{"gives no bytes for sections outside the file", test_outside},
		{"opens a file cut anywhere behind its header", test_cut},
		{"maps file offsets through segments, code first", test_offsets},
		{"finds the build-id in sections and segments, padded to 4 or 8", test_build_id},
		{"reads a debuglink, and refuses a malformed one", test_debuglink},
		{"inflates a compressed section up to a limit", test_inflate},
	};

	return RUN_TESTS(tests);
}
