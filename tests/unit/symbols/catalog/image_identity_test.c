/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <zlib.h>

#include "base/mem.h"
#include "check.h"
#include "elf_maker.h"
#include "symbols/image_identity.h"

static const char *base_of(const char *path)
{
	static struct buf b;

	return image_base_name(path, &b);
}

static void test_base_names(void)
{
	CHECK_STR(base_of("/usr/lib/libfoo.so.1.2"), "libfoo");
	CHECK_STR(base_of("/usr/lib/debug/prog.debug"), "prog");
	CHECK_STR(base_of("a.out.map"), "a");
	CHECK_STR(base_of("prog"), "prog");
	CHECK_STR(base_of("/opt/v1.2/prog"), "prog");
	CHECK_STR(base_of("/home/u/.hidden.so"), ".hidden");
	CHECK_STR(base_of("[vdso]"), "[vdso]");
	CHECK_STR(base_of("/usr/bin/prog (deleted)"), "prog");
	CHECK_STR(base_of(" (deleted)"), " (deleted)");
	CHECK_STR(base_of("/tmp/"), "");
	CHECK_STR(base_of(""), "");
	CHECK_STR(base_of("."), ".");
	CHECK_STR(base_of(".."), ".");
}

/* One executable segment of `n` bytes at `offset` of the file; the file is owned by the maker. */
static struct span make_image(struct elf_maker *m, bool is_64, uint64_t offset, size_t n)
{
	uint32_t text;
	struct span file;

	elf_maker_init(m, is_64);
	text = elf_maker_code(m, ".text", 0x1000, 256);
	elf_maker_segment(m, (struct elf_segment){.type = PT_LOAD,
				     .flags = PF_R | PF_X,
				     .offset = {offset ? m->sections[text].offset.v : 0},
				     .addr = {0x1000},
				     .file_size = n,
				     .mem_size = n + 16});
	elf_maker_segment(
		m, (struct elf_segment){.type = PT_LOAD, .flags = PF_R | PF_W, .mem_size = 0x200});
	elf_maker_segment(m, (struct elf_segment){.type = PT_GNU_STACK, .flags = PF_R | PF_W});
	file = elf_maker_finish(m);
	return file;
}

static uint64_t hash_of(struct span file)
{
	struct elf_file elf;
	uint64_t hash;

	CHECK_EQ(elf_file_init(&elf, file, NULL), 0);
	hash = image_content_hash(&elf);
	elf_file_release(&elf);
	return hash;
}

/* The rule as the document says it, byte by byte and without the tricks of the original. */
static uint64_t hash_by_the_document(struct span file, uint64_t offset, uint64_t addr, size_t n)
{
	bool is_64 = file.p[4] == 2;
	uint64_t words[2] = {addr, n};
	uint64_t h = 0xcbf29ce484222325u, word = 0;

	for (size_t i = 0; i < 2; i++) {
		h = (h ^ words[i]) * 0x100000001b3u;
		h ^= h >> 32;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t at = offset + i, byte = file.p[at];

		if (offset == 0 && is_64 && ((at >= 40 && at < 48) || (at >= 58 && at < 64)))
			byte = 0;
		if (offset == 0 && !is_64 && ((at >= 32 && at < 36) || (at >= 46 && at < 52)))
			byte = 0;
		word |= byte << 8 * (i % 8);
		if (i % 8 == 7 || i == n - 1) {
			h = (h ^ word) * 0x100000001b3u;
			h ^= h >> 32;
			word = 0;
		}
	}
	return h;
}

static void test_hash_rule(void)
{
	static const size_t lengths[] = {1, 7, 8, 9, 40, 51, 52, 53, 60, 63, 64, 65, 200, 255};

	for (int is_64 = 0; is_64 < 2; is_64++) {
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			struct elf_maker m;
			struct span file = make_image(&m, is_64, 0, lengths[i]);

			CHECK_EQ(hash_of(file), hash_by_the_document(file, 0, 0x1000, lengths[i]));
			elf_maker_release(&m);
			file = make_image(&m, is_64, 1, lengths[i]);
			CHECK_EQ(hash_of(file), hash_by_the_document(file, m.sections[1].offset.v,
							0x1000, lengths[i]));
			elf_maker_release(&m);
		}
	}
}

static void test_hash_changes(void)
{
	struct elf_maker m;
	struct span file = make_image(&m, true, 0, 300);
	uint64_t before = hash_of(file);
	uint8_t *bytes = (uint8_t *)file.p;
	size_t text = m.sections[1].offset.v;

	CHECK(before != 0);
	/* Top bits of two words: plain FNV over words would not see these. */
	bytes[text + 7] ^= 0x80;
	CHECK(hash_of(file) != before);
	bytes[text + 15] ^= 0x80;
	CHECK(hash_of(file) != before);
	bytes[text + 7] ^= 0x80;
	bytes[text + 15] ^= 0x80;
	CHECK_EQ(hash_of(file), before);
	/* What strip changes. */
	memset(bytes + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
	memset(bytes + offsetof(Elf64_Ehdr, e_shentsize), 0, 6);
	CHECK_EQ(hash_of(file), before);
	elf_maker_release(&m);
}

static void test_no_hash(void)
{
	struct elf_maker m;
	struct elf_file elf;
	struct span file = make_image(&m, true, 1, 1 << 20);
	uint32_t text;

	CHECK_EQ(hash_of(file), 0); /* cut */
	elf_maker_release(&m);
	make_image(&m, true, 0, 300);
	for (int i = 0; i < 20; i++) /* together more than the file */
		elf_maker_segment(&m, m.segments[0]);
	elf_maker_finish(&m);
	CHECK_EQ(hash_of(buf_span(&m.out)), 0);
	elf_maker_release(&m);

	elf_maker_init(&m, true); /* a debug file: segments as in the program, no code */
	text = elf_maker_section(&m, ".text", SHT_NOBITS, 0x1000, (struct span){NULL, 64});
	m.sections[text].flags = SHF_ALLOC | SHF_EXECINSTR;
	elf_maker_segment(
		&m, (struct elf_segment){
			    .type = PT_LOAD, .flags = PF_X, .file_size = 64, .mem_size = 64});
	file = elf_maker_finish(&m);
	CHECK_EQ(hash_of(file), 0);
	CHECK_EQ(elf_file_init(&elf, file, NULL), 0);
	struct image_identity id;
	image_identity_init_elf(&id, &elf, "x.debug", NULL, true);
	CHECK_EQ(id.file_crc, (uint32_t)crc32(0, file.p, (uInt)file.n));
	CHECK_EQ(id.content_hash, 0);
	image_identity_release(&id);
	elf_file_release(&elf);
	elf_maker_release(&m);
}

static void test_init(void)
{
	struct stat st = {.st_size = 4711, .st_mtim = {1700000000, 5}};
	struct image_identity id, copy;
	struct elf_maker m;
	struct elf_file elf;
	struct span file = make_image(&m, false, 1, 100);

	CHECK_EQ(elf_file_init(&elf, file, NULL), 0);
	image_identity_init_elf(&id, &elf, "/bin/x", &st, false);
	CHECK_EQ(id.content_hash, 0);
	image_identity_release(&id);
	image_identity_init_elf(&id, &elf, "/bin/x", &st, true);
	image_identity_copy(&copy, &id);
	CHECK(copy.path != id.path && copy.segments != id.segments);
	image_identity_release(&id);
	CHECK(!id.path && !id.segments);
	elf_file_release(&elf);

	CHECK_EQ(copy.kind, IMAGE_KIND_ELF);
	CHECK_STR(copy.path, "/bin/x");
	CHECK_EQ(copy.bits, 32);
	CHECK_EQ(copy.machine, EM_386);
	CHECK_EQ(copy.build_id_n, 0);
	CHECK_EQ(copy.file_bytes, 4711);
	CHECK_EQ(copy.mtime_ns, 1700000000000000005u);
	CHECK_EQ(copy.content_hash, hash_of(file));
	CHECK_EQ(copy.n_segments, 2);
	CHECK_EQ(copy.segments[0].addr, 0x1000);
	CHECK_EQ(copy.segments[0].file_bytes, 100);
	CHECK_EQ(copy.segments[0].mem_bytes, 116);
	CHECK_EQ(copy.segments[0].flags, PF_R | PF_X);
	CHECK_STR(copy.segments[0].name, "");
	CHECK_EQ(copy.segments[1].mem_bytes, 0x200);
	image_identity_release(&copy);
	elf_maker_release(&m);
}

static void test_relocatable(void)
{
	struct image_identity id;
	struct elf_maker m;
	struct elf_file elf;
	uint32_t bss;

	elf_maker_init(&m, true);
	m.type = ET_REL;
	elf_maker_code(&m, ".text", 0, 64);
	elf_maker_code(&m, ".a_section_with_a_rather_long_name_indeed", 0, 32);
	bss = elf_maker_section(&m, ".bss", SHT_NOBITS, 0, (struct span){NULL, 128});
	m.sections[bss].flags = SHF_ALLOC | SHF_WRITE;
	elf_maker_section(&m, ".comment", SHT_PROGBITS, 0, (struct span){(const uint8_t *)"x", 1});
	CHECK_EQ(elf_file_init(&elf, elf_maker_finish(&m), NULL), 0);
	image_identity_init_elf(&id, &elf, NULL, NULL, true);
	CHECK(!id.path);
	CHECK_EQ(id.n_segments, 3);
	CHECK_STR(id.segments[0].name, ".text");
	CHECK_EQ(id.segments[0].flags, PF_R | PF_X);
	CHECK_STR(id.segments[1].name, ".a_section_with_a_rather_long_n");
	CHECK_STR(id.segments[2].name, ".bss");
	CHECK_EQ(id.segments[2].file_bytes, 0);
	CHECK_EQ(id.segments[2].mem_bytes, 128);
	CHECK_EQ(id.segments[2].flags, PF_R | PF_W);
	image_identity_release(&id);
	elf_file_release(&elf);
	elf_maker_release(&m);
}

static void test_build_ids(void)
{
	struct image_identity id = {.build_id_n = 8, .build_id = {1, 2, 3, 4, 5, 6, 7, 8}};

	CHECK(image_identity_has_build_id(&id));
	id.build_id_n = 7;
	CHECK(!image_identity_has_build_id(&id));
	id.build_id_n = 20;
	memset(id.build_id, 0, sizeof(id.build_id));
	CHECK(!image_identity_has_build_id(&id));
	memset(id.build_id, 0xaa, sizeof(id.build_id));
	CHECK(!image_identity_has_build_id(&id));
	id.build_id[19] = 0;
	CHECK(image_identity_has_build_id(&id));
	id.build_id_n = 0;
	CHECK(!image_identity_has_build_id(&id));
}

static void test_text(void)
{
	struct image_identity id = {.build_id_n = 8,
		.build_id = {0x5e, 0x3f, 3, 4, 5, 6, 7, 8},
		.content_hash = 0x1234,
		.file_crc = 0xabcdef,
		.debuglink_crc = 0x99,
		.file_bytes = 1234,
		.mtime_ns = 1767323045000000000u,
		.pid = 77};
	struct buf b = {0};

	CHECK_STR(image_identity_text(&id, &b), "build-id 5e3f030405060708");
	id.build_id_n = 2; /* too short to say anything */
	CHECK_STR(image_identity_text(&id, &b), "content hash 0x0000000000001234");
	id.content_hash = 0;
	CHECK_STR(image_identity_text(&id, &b), "CRC 0x00abcdef");
	id.file_crc = 0;
	CHECK_STR(image_identity_text(&id, &b), "debuglink CRC 0x00000099");
	id.debuglink_crc = 0;
	CHECK_STR(image_identity_text(&id, &b), "size 1234, time 2026-01-02 03:04:05 UTC");
	id.mtime_ns = UINT64_MAX;
	CHECK_STR(image_identity_text(&id, &b), "size 1234, time 2554-07-21 23:34:33 UTC");
	id.mtime_ns = 0;
	CHECK_STR(image_identity_text(&id, &b), "size 1234");
	id.file_bytes = 0;
	CHECK_STR(image_identity_text(&id, &b), "process 77");
	id.pid = 0;
	CHECK_STR(image_identity_text(&id, &b), "no identity");
	buf_release(&b);
}

int main(void)
{
	static const struct test tests[] = {
		{"a base name has no folder, no extension and no mark of deletion",
			test_base_names},
		{"the content hash follows its document in both classes and any length",
			test_hash_rule},
		{"the content hash sees code, and not what strip changes", test_hash_changes},
		{"debug files, cut files and overlapping segments have no content hash",
			test_no_hash},
		{"an ELF file gives its identity, which can be copied", test_init},
		{"a relocatable file has sections for segments", test_relocatable},
		{"short and constant build-ids identify nothing", test_build_ids},
		{"the strongest identity is put into words", test_text},
	};

	return RUN_TESTS(tests);
}
