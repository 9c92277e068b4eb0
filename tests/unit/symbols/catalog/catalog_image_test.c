/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "catalog_image_maker.h"
#include "symbols/catalog/catalog_layout.h"

static void test_facts(void)
{
	struct image_segment segments[2] = {{.name = "",
						    .addr = 0x400000,
						    .offset = 0,
						    .file_bytes = 10,
						    .mem_bytes = 10,
						    .flags = 4},
		{.name = ".text",
			.addr = 0x401000,
			.offset = 0x1000,
			.file_bytes = 20,
			.mem_bytes = 30,
			.flags = 5}};
	struct image_identity id = {.kind = IMAGE_KIND_ELF,
		.path = (char *)"/usr/lib/libx.so.1",
		.machine = 3,
		.bits = 32,
		.build_id_n = 4,
		.build_id = {1, 2, 3, 4},
		.content_hash = 0x1122334455667788,
		.debuglink_crc = 7,
		.file_crc = 8,
		.file_bytes = 9,
		.mtime_ns = 10,
		.segments = segments,
		.n_segments = 2,
		.pid = 11};
	struct image_builder *b = image_builder_new(&id);
	const struct image_identity *got;
	struct catalog_image *image;
	struct catalog_source s;
	struct buf bytes = {0};

	image_builder_section(b, &(struct catalog_section){".text", 0x401000, 0x2000, 6});
	image_builder_section(b, &(struct catalog_section){".text", 0x401000, 0x2000, 6});
	image_builder_section(b, &(struct catalog_section){".plt", 0x400f00, 0x100, 6});
	image_builder_note(b, "one thing is missing");
	image_builder_note(b, "another thing too");
	image_builder_note(b, "one thing is missing");
	image_builder_source(b, &(struct catalog_source){SYMBOL_SOURCE_NM, "/tmp/x.nm",
					"412 of 412 anchors", "anchored", 99, 99, MATCH_CHECKSUM});
	builder_symbol(b, "f", 0x401000, 4);
	builder_symbol(b, "f", 0x401000, 4);
	image = builder_open(b, &bytes);
	got = catalog_image_identity(image);
	CHECK(got->kind == IMAGE_KIND_ELF && got->machine == 3 && got->bits == 32);
	CHECK_STR(got->path, "/usr/lib/libx.so.1");
	CHECK(got->build_id_n == 4 && got->build_id[3] == 4 && got->pid == 11);
	CHECK_EQ(got->content_hash, 0x1122334455667788);
	CHECK(got->debuglink_crc == 7 && got->file_crc == 8);
	CHECK(got->file_bytes == 9 && got->mtime_ns == 10);
	CHECK_EQ(got->n_segments, 2);
	CHECK_STR(got->segments[1].name, ".text");
	CHECK(got->segments[1].addr == 0x401000 && got->segments[1].offset == 0x1000);
	CHECK(got->segments[1].file_bytes == 20 && got->segments[1].mem_bytes == 30);
	CHECK_EQ(got->segments[1].flags, 5);
	CHECK_EQ(catalog_image_n_sections(image), 2);
	CHECK_STR(catalog_image_section(image, 1).name, ".plt");
	CHECK_EQ(catalog_image_section(image, 1).addr, 0x400f00);
	CHECK_STR(catalog_image_notes(image), "one thing is missing\nanother thing too");
	CHECK_EQ(catalog_image_n_sources(image), 1);
	s = catalog_image_source(image, 0);
	CHECK_EQ(s.kind, SYMBOL_SOURCE_NM);
	CHECK_STR(s.path, "/tmp/x.nm");
	CHECK_STR(s.identity, "412 of 412 anchors");
	CHECK_STR(s.verdict, "anchored");
	CHECK(s.n_offered == 2 && s.n_accepted == 1);
	CHECK_EQ(s.rung, MATCH_CHECKSUM);
	CHECK_EQ(catalog_image_symbol(image, 0).rung, MATCH_CHECKSUM);
	CHECK_EQ(strlen(catalog_image_id(image)), 16);
	CHECK(comes_out_equal(image, buf_span(&bytes)));
	catalog_image_close(image);
	buf_release(&bytes);
}

static void test_empty(void)
{
	struct buf bytes = {0};
	struct catalog_image *image = builder_open(builder_begin(""), &bytes);
	struct catalog_range r;

	CHECK_EQ(catalog_image_n_symbols(image), 0);
	CHECK_EQ(catalog_image_n_rows(image), 0);
	CHECK_EQ(catalog_image_n_sites(image), 0);
	CHECK_STR(catalog_image_notes(image), "");
	CHECK(!catalog_image_find_range(image, (struct iaddr){0}, &r));
	CHECK(!catalog_image_find_range(image, (struct iaddr){UINT64_MAX}, &r));
	CHECK(comes_out_equal(image, buf_span(&bytes)));
	catalog_image_close(image);
	buf_release(&bytes);
}

static void add_inlined_unit(struct image_builder *b)
{
	struct dwarf_unit_map u;
	uint32_t outer, inner;

	unit_begin(&u);
	unit_function(&u, "_ZN3foo3barEv", 0x1000, 0x1020, true);
	outer = unit_site(&u, 0, "middle", "/a.c", 11);
	inner = unit_site(&u, outer, "_Z5innerv", "/b.h", 22);
	unit_row(&u, 0x1000, "/a.c", 10, 0);
	unit_row(&u, 0x1004, "/b.h", 20, outer);
	unit_row(&u, 0x1008, "/c.h", 30, inner);
	unit_row(&u, 0x100c, "/a.c", 12, 0);
	unit_row(&u, 0x1010, "", 0, inner);
	unit_row(&u, 0x1012, "/c.h", 31, unit_site(&u, 0, "", "/a.c", 13));
	unit_row(&u, 0x1014, "/a.c", 0, 0);
	unit_hole(&u, 0x1018);
	unit_row(&u, 0x1030, "/a.c", 40, 0); /* behind the function */
	unit_hole(&u, 0x1038);
	image_builder_unit(b, &u);
	unit_end(&u);
}

static void test_levels(void)
{
	struct image_builder *b = builder_begin("/bin/p");
	struct catalog_level levels[2];
	struct catalog_image *image;
	struct catalog_range r;
	struct buf bytes = {0};

	add_inlined_unit(b);
	image = builder_open(b, &bytes);
	CHECK_STR(chain_at(image, 0x1000), "foo::bar() /a.c:10");
	CHECK_STR(chain_at(image, 0x1007), "middle /b.h:20 < foo::bar() /a.c:11");
	CHECK_STR(chain_at(image, 0x1008), "inner() /c.h:30 < middle /b.h:22 < foo::bar() /a.c:11");
	CHECK_STR(chain_at(image, 0x100f), "foo::bar() /a.c:12");
	CHECK_STR(chain_at(image, 0x1010), "inner() ?:0 < middle /b.h:22 < foo::bar() /a.c:11");
	CHECK_STR(chain_at(image, 0x1012), "? /c.h:31 < foo::bar() /a.c:13");
	CHECK_STR(chain_at(image, 0x1014), "foo::bar() /a.c:0");
	CHECK_STR(chain_at(image, 0x1018), "foo::bar() ?:0");
	CHECK_STR(chain_at(image, 0x1020), "-");
	CHECK_STR(chain_at(image, 0x1030), "? /a.c:40");
	CHECK_STR(chain_at(image, 0x1038), "-");
	CHECK_STR(chain_at(image, 0xfff), "-");
	CHECK_EQ(catalog_image_n_sites(image), 3);
	CHECK_EQ(catalog_image_n_rows(image), 7);

	CHECK(catalog_image_find_range(image, (struct iaddr){0x1009}, &r));
	CHECK(r.start == 0x1008 && r.end == 0x100c && r.symbol == 0 && r.line == 30);
	CHECK_EQ(catalog_image_levels(image, &r, levels, 0), 0);
	CHECK_EQ(catalog_image_levels(image, &r, levels, 1), 1);
	CHECK_STR(levels[0].linkage_name, "_ZN3foo3barEv");
	CHECK(levels[0].line == 11 && !levels[0].is_inline);
	CHECK_EQ(catalog_image_levels(image, &r, levels, 2), 2);
	CHECK_STR(levels[0].name, "middle");
	CHECK(levels[0].line == 22 && levels[0].is_inline);
	CHECK(catalog_image_find_range(image, (struct iaddr){0x1031}, &r));
	CHECK_EQ(r.symbol, UINT32_MAX);
	CHECK(comes_out_equal(image, buf_span(&bytes)));
	catalog_image_close(image);
	buf_release(&bytes);
}

static void test_unit_order(void)
{
	struct image_builder *b = builder_begin("/bin/p");
	struct catalog_image *image;
	struct dwarf_unit_map u;
	struct buf bytes = {0};

	unit_begin(&u);
	unit_row(&u, 0x1010, "/first.c", 1, 0);
	unit_hole(&u, 0x1020);
	image_builder_unit(b, &u);
	unit_end(&u);
	unit_begin(&u);
	unit_row(&u, 0x1000, "/second.c", 2, 0);
	unit_row(&u, 0x1018, "/second.c", 3, 0);
	unit_row(&u, 0x1028, "/second.c", 4, 0);
	unit_hole(&u, 0x1030);
	image_builder_unit(b, &u);
	unit_end(&u);
	image = builder_open(b, &bytes);
	CHECK_STR(chain_at(image, 0x100f), "? /second.c:2");
	CHECK_STR(chain_at(image, 0x1010), "? /first.c:1");
	CHECK_STR(chain_at(image, 0x101f), "? /first.c:1");
	CHECK_STR(chain_at(image, 0x1020), "? /second.c:3");
	CHECK_STR(chain_at(image, 0x1028), "? /second.c:4");
	CHECK(comes_out_equal(image, buf_span(&bytes)));
	catalog_image_close(image);
	buf_release(&bytes);
}

/* Many rows far apart and close together: several chunks, lines that are cut early, numbers that
 * need all their bits. */
static void test_far_apart(void)
{
	static const uint64_t steps[] = {
		1, 3, 0x10000, 0xfffe, 0xffff, 7, 0x123456789ab, 2, 0xffffffff};
	enum { N = 20000, N_STEPS = sizeof(steps) / sizeof(steps[0]) };
	struct image_builder *b = builder_begin("/bin/p");
	struct catalog_image *image;
	struct catalog_range r;
	struct dwarf_unit_map u;
	struct buf bytes = {0};
	uint64_t addr = 0x10;
	size_t n_wrong = 0;

	unit_begin(&u);
	for (uint32_t i = 0; i < N; i++) {
		unit_row(&u, addr, i % 3 ? "/a.c" : "/b.c", i % 7 ? i + 1 : UINT32_MAX - i, 0);
		addr += steps[i % N_STEPS];
	}
	unit_hole(&u, addr);
	image_builder_unit(b, &u);
	image = builder_open(b, &bytes);
	CHECK_EQ(catalog_image_n_rows(image), N);
	for (size_t i = 0; i < N; i++) {
		const struct dwarf_row *row = &u.rows.v[i];
		uint64_t ends[2] = {row->addr, row[1].addr - 1};

		for (int k = 0; k < 2; k++)
			n_wrong += !catalog_image_find_range(image, (struct iaddr){ends[k]}, &r) ||
				   r.start != row->addr || r.end != row[1].addr ||
				   r.line != row->line || r.symbol != UINT32_MAX;
	}
	CHECK_EQ(n_wrong, 0);
	CHECK(!catalog_image_find_range(image, (struct iaddr){addr}, &r));
	CHECK(!catalog_image_find_range(image, (struct iaddr){0xf}, &r));
	CHECK(comes_out_equal(image, buf_span(&bytes)));
	unit_end(&u);
	catalog_image_close(image);
	buf_release(&bytes);
}

static void test_end_of_space(void)
{
	struct image_builder *b = builder_begin("/bin/p");
	struct catalog_image *image;
	struct buf bytes = {0};

	builder_symbol(b, "low", 0, 0x10);
	builder_symbol(b, "high", UINT64_MAX - 0x10, 0x100);
	image = builder_open(b, &bytes);
	CHECK_STR(chain_at(image, 0), "low ?:0");
	CHECK_STR(chain_at(image, 0x10), "-");
	CHECK_STR(chain_at(image, UINT64_MAX - 0x10), "high ?:0");
	CHECK_STR(chain_at(image, UINT64_MAX - 1), "high ?:0");
	CHECK_STR(chain_at(image, UINT64_MAX), "-");
	CHECK(comes_out_equal(image, buf_span(&bytes)));
	catalog_image_close(image);
	buf_release(&bytes);
}

/* Texts that share most of their beginning, long ones, and ones that could steer a terminal. */
static void test_texts(void)
{
	struct image_builder *b = builder_begin("/bin/p");
	struct catalog_image *image;
	struct buf bytes = {0};
	char *name = mem_zalloc(SYMTAB_NAME_BYTES_MAX + 2);

	for (uint32_t i = 0; i < 3000; i++) {
		memset(name, 'a' + (int)(i % 3), SYMTAB_NAME_BYTES_MAX);
		snprintf(name + (i * 37) % 3000, 16, "%u", i);
		builder_symbol(b, name, i * 16, 16);
	}
	memset(name, 'z', SYMTAB_NAME_BYTES_MAX);
	builder_symbol(b, name, 0x100000, 16);
	name[SYMTAB_NAME_BYTES_MAX] = 'z';
	builder_symbol(b, name, 0x100010, 16);
	builder_symbol(b, "tab\tand\x1b[2Jmore\x7f", 0x100020, 16);
	image = builder_open(b, &bytes);
	CHECK_EQ(catalog_image_n_symbols(image), 3002);
	for (uint32_t i = 0; i < 3000; i++) {
		memset(name, 'a' + (int)(i % 3), SYMTAB_NAME_BYTES_MAX);
		snprintf(name + (i * 37) % 3000, 16, "%u", i);
		CHECK_STR(catalog_image_symbol(image, i).linkage_name, name);
	}
	CHECK_EQ(strlen(catalog_image_symbol(image, 3000).name), SYMTAB_NAME_BYTES_MAX);
	CHECK_STR(catalog_image_symbol(image, 3001).name, "tab and?[2Jmore?");
	CHECK(strstr(catalog_image_notes(image), "1 symbols are left out"));
	CHECK(comes_out_equal(image, buf_span(&bytes)));
	CHECK_EQ(catalog_image_n_damaged(image), 0);
	catalog_image_close(image);
	buf_release(&bytes);
	free(name);
}

static void make_some(struct image_builder *b)
{
	char name[32];

	builder_source_begin(b, SYMBOL_SOURCE_SYMTAB, "/bin/p");
	for (uint64_t i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "function_%u", (unsigned)(i * 7919 % 10000));
		builder_symbol(b, name, 0x2000 + i * 8, 8);
	}
	add_inlined_unit(b);
}

static void test_threads(void)
{
	struct buf one = {0}, many = {0}, prefixed = {0};
	struct image_builder *b = builder_begin("/bin/p");

	make_some(b);
	buf_put_u8(&prefixed, 'x');
	CHECK_EQ(image_builder_finish(b, 1, &one, NULL), 0);
	CHECK_EQ(image_builder_finish(b, 7, &many, NULL), 0);
	CHECK_EQ(image_builder_finish(b, 0, &prefixed, NULL), 0);
	CHECK(one.n == many.n && !memcmp(one.p, many.p, one.n));
	CHECK(one.n + 1 == prefixed.n && !memcmp(one.p, prefixed.p + 1, one.n));
	image_builder_free(b);
	buf_release(&one);
	buf_release(&many);
	buf_release(&prefixed);
}

static void check_id(const struct image_identity *id, const char *expected)
{
	struct image_builder *b = image_builder_new(id);
	struct buf bytes = {0};
	struct catalog_image *image;

	builder_symbol(b, "f", 1, 2);
	image = builder_open(b, &bytes);
	CHECK_STR(catalog_image_id(image), expected);
	catalog_image_close(image);
	buf_release(&bytes);
}

/* Numbers that were computed from the document, not by this program. */
static void test_ids(void)
{
	struct image_identity id = {.path = (char *)"/bin/p"};

	check_id(&id, "eedb7e02ac583278");
	id.file_bytes = 1000;
	id.mtime_ns = 2000;
	check_id(&id, "1013707ca7de5b4c");
	id.content_hash = 3000;
	check_id(&id, "3ddff1855bffb9cc");
	id.build_id_n = 8;
	memcpy(id.build_id, "\1\2\3\4\5\6\7\10", 8);
	id.pid = 5;
	check_id(&id, "369958fa9c59e8aa");
}

static void test_too_many_sources(void)
{
	struct image_builder *b = builder_begin("/bin/p");
	struct err err = {0};
	struct buf bytes = {0};
	char path[16];

	for (int i = 0; i < IMAGE_SOURCES_MAX + 1; i++) {
		snprintf(path, sizeof(path), "/tmp/%d.nm", i);
		builder_source_begin(b, SYMBOL_SOURCE_NM, path);
		builder_symbol(b, "f", 1, 2);
	}
	CHECK_EQ(image_builder_finish(b, 1, &bytes, &err), ERR_LIMIT);
	CHECK_STR(err.text, "'/bin/p': an image has at most 64 sources");
	CHECK_EQ(bytes.n, 0);
	image_builder_free(b);
}

/* Every look-up that there is, to see that none of them leaves the bytes. */
static void use_everything(struct catalog_image *image)
{
	struct catalog_level levels[8];
	struct catalog_range r;

	for (size_t i = 0; i < catalog_image_n_symbols(image) && i < 6000; i++) {
		struct catalog_symbol s = catalog_image_symbol(image, i);

		for (uint32_t k = 0; k < s.n_aliases; k++)
			CHECK(catalog_image_alias(image, s.first_alias + k) != NULL);
		if (catalog_image_find_range(image, (struct iaddr){s.start}, &r))
			CHECK(catalog_image_levels(image, &r, levels, 8) > 0);
	}
	for (uint64_t addr = 0x1000; addr < 0x1040; addr++)
		if (catalog_image_find_range(image, (struct iaddr){addr}, &r))
			catalog_image_levels(image, &r, levels, 8);
}

static void test_damage(void)
{
	struct image_builder *b = builder_begin("/bin/p");
	struct catalog_image *image;
	struct buf bytes = {0};
	size_t n_refused = 0, n_damaged = 0;

	make_some(b);
	CHECK_EQ(image_builder_finish(b, 1, &bytes, NULL), 0);
	image_builder_free(b);
	for (size_t i = 0; i < bytes.n; i += i < 2000 ? 1 : 37) {
		struct err err = {0};
		uint8_t old = bytes.p[i];

		bytes.p[i] ^= 1 << (i & 7);
		if (catalog_image_open(&image, buf_span(&bytes), &err) < 0) {
			CHECK(err.text[0]);
			n_refused++;
		} else {
			use_everything(image);
			n_damaged += catalog_image_n_damaged(image) != 0;
			catalog_image_close(image);
		}
		bytes.p[i] = old;
	}
	CHECK(n_refused > 50);
	CHECK(n_damaged > 50);
	for (size_t n = 0; n < bytes.n; n += n < 600 ? 1 : 97) {
		uint8_t *cut = mem_dup(bytes.p, n); /* so that a sanitizer sees its end */

		CHECK(catalog_image_open(&image, (struct span){cut, n}, NULL) < 0);
		free(cut);
	}
	buf_release(&bytes);
}

static void test_version(void)
{
	struct buf bytes = {0};
	struct image_builder *b = builder_begin("/bin/p");
	struct catalog_image *image;
	struct err err = {0};

	CHECK_EQ(image_builder_finish(b, 1, &bytes, NULL), 0);
	image_builder_free(b);
	bytes.p[10]++; /* minor */
	CHECK_EQ(catalog_image_open(&image, buf_span(&bytes), &err), 0);
	catalog_image_close(image);
	bytes.p[8]++; /* major */
	CHECK_EQ(catalog_image_open(&image, buf_span(&bytes), &err), ERR_UNSUPPORTED);
	CHECK_STR(err.text, "the catalog image has version 2; this program knows 1");
	bytes.p[0] = 'X';
	CHECK_EQ(catalog_image_open(&image, buf_span(&bytes), &err), ERR_FORMAT);
	buf_release(&bytes);
}

int main(void)
{
	static const struct test tests[] = {
		{"identity, sections, sources and notes come back", test_facts},
		{"an image without anything answers nothing", test_empty},
		{"an inlined chain has a call's file and line at each outer level", test_levels},
		{"where units overlap the earlier one has the address", test_unit_order},
		{"rows any distance apart are found from their first to their last byte",
			test_far_apart},
		{"symbols at both ends of the address space are found", test_end_of_space},
		{"texts come back, and lose what could steer a terminal", test_texts},
		{"the bytes do not depend on the number of threads", test_threads},
		{"an image's id is the hash that the document describes", test_ids},
		{"more sources than an image can have are refused", test_too_many_sources},
		{"damaged and cut images are refused or answer nothing", test_damage},
		{"another major version is refused, another minor one is not", test_version},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
