/* SPDX-License-Identifier: MIT */
#include "catalog_image_maker.h"

#define GLOBAL CANDIDATE_BIND_GLOBAL
#define LOCAL  CANDIDATE_BIND_LOCAL

static void add(struct image_builder *b, const char *name, uint64_t start, uint64_t size, int bind)
{
	image_builder_symbol(b, &(struct candidate){.name = name,
					.name_bytes = (uint32_t)strlen(name),
					.start = start,
					.size = size,
					.bind = (uint8_t)bind});
}

static void add_function(
	struct image_builder *b, const char *name, uint64_t start, uint64_t end, bool is_entry)
{
	struct dwarf_unit_map u;

	unit_begin(&u);
	unit_function(&u, name, start, end, is_entry);
	image_builder_unit(b, &u);
	unit_end(&u);
}

/* "name=alias=alias" of a symbol. Overwritten by the next call. */
static const char *names_of(struct catalog_image *image, size_t i)
{
	static char text[512];
	struct catalog_symbol s = catalog_image_symbol(image, i);
	size_t at = (size_t)snprintf(text, sizeof(text), "%s", s.linkage_name);

	for (uint32_t k = 0; k < s.n_aliases; k++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "=%s",
			catalog_image_alias(image, s.first_alias + k));
	return text;
}

static void test_preference(void)
{
	struct image_builder *b = builder_begin("/bin/p");
	struct catalog_image *image;
	struct buf bytes = {0};

	builder_source_begin(b, SYMBOL_SOURCE_SYMTAB, "/bin/p");
	add(b, "_write", 0x10, 4, GLOBAL);
	add(b, "__write", 0x10, 4, GLOBAL);
	add(b, "write_local", 0x10, 4, LOCAL);
	add(b, "foo.part.0", 0x20, 4, LOCAL);
	add(b, "public_name", 0x20, 4, GLOBAL);
	add(b, "_ZZ4mainENKUlvE_clEv", 0x30, 4, LOCAL);
	add(b, "food", 0x40, 4, GLOBAL);
	add(b, "foo", 0x40, 4, LOCAL);
	image_builder_symbol(b, &(struct candidate){.name = "label",
					.name_bytes = 5,
					.kind = CANDIDATE_KIND_LABEL,
					.start = 0x50});
	add_function(b, "write_local", 0x10, 0x14, true);
	add_function(b, "foo", 0x20, 0x24, true);
	add_function(b, "operator()", 0x30, 0x34, true);
	add_function(b, "foo", 0x40, 0x44, true);
	add_function(b, "in_c", 0x50, 0x54, true);
	add_function(b, "only_here", 0x60, 0x64, true);
	image = builder_open(b, &bytes);
	CHECK_EQ(catalog_image_n_symbols(image), 6);
	CHECK_STR(names_of(image, 0), "write_local=_write=__write");
	CHECK_STR(names_of(image, 1), "foo.part.0=public_name=foo");
	CHECK_STR(names_of(image, 2), "_ZZ4mainENKUlvE_clEv=operator()");
	CHECK_STR(names_of(image, 3), "foo=food");
	CHECK_STR(names_of(image, 4), "in_c=label");
	CHECK_STR(names_of(image, 5), "only_here");
	CHECK_EQ(catalog_image_symbol(image, 0).kind, SYMBOL_SOURCE_SYMTAB);
	CHECK_EQ(catalog_image_symbol(image, 5).kind, SYMBOL_SOURCE_DWARF);
	CHECK(comes_out_equal(image, buf_span(&bytes)));
	catalog_image_close(image);
	buf_release(&bytes);
}

static struct catalog_source source_of(struct catalog_image *image, enum symbol_source kind)
{
	for (size_t i = 0; i < catalog_image_n_sources(image); i++)
		if (catalog_image_source(image, i).kind == kind)
			return catalog_image_source(image, i);
	return (struct catalog_source){0};
}

static void test_counts(void)
{
	struct image_builder *b = builder_begin("/bin/p");
	struct catalog_image *image;
	struct buf bytes = {0};

	builder_source_begin(b, SYMBOL_SOURCE_DYNSYM, "/bin/p");
	add(b, "both", 0x10, 16, GLOBAL);
	add(b, "alias", 0x10, 16, GLOBAL);
	builder_source_begin(b, SYMBOL_SOURCE_DEBUG_FILE, "/usr/lib/debug/p.debug");
	add(b, "both", 0x10, 16, GLOBAL);
	image_builder_symbol(b, &(struct candidate){.name = "label_inside",
					.name_bytes = 12,
					.kind = CANDIDATE_KIND_LABEL,
					.start = 0x18,
					.room = 100});
	image_builder_symbol(b, &(struct candidate){.start = 0x30}); /* an end is no offer */
	image_builder_symbol(b, &(struct candidate){.name = "x@plt",
					.name_bytes = 5,
					.source = SYMBOL_SOURCE_PLT,
					.kind = CANDIDATE_KIND_MADE_UP,
					.start = 0x40,
					.size = 16});
	add_function(b, "both", 0x10, 0x20, true);
	add_function(b, "both", 0x80, 0x90, false); /* its cold part */
	image = builder_open(b, &bytes);
	CHECK_EQ(catalog_image_n_sources(image), 4);
	CHECK_EQ(source_of(image, SYMBOL_SOURCE_DYNSYM).n_offered, 2);
	CHECK_EQ(source_of(image, SYMBOL_SOURCE_DYNSYM).n_accepted, 2);
	CHECK_EQ(source_of(image, SYMBOL_SOURCE_DEBUG_FILE).n_offered, 2);
	CHECK_EQ(source_of(image, SYMBOL_SOURCE_DEBUG_FILE).n_accepted, 1);
	CHECK_EQ(source_of(image, SYMBOL_SOURCE_PLT).n_accepted, 1);
	CHECK_STR(source_of(image, SYMBOL_SOURCE_PLT).path, "/usr/lib/debug/p.debug");
	CHECK_EQ(source_of(image, SYMBOL_SOURCE_DWARF).n_offered, 1);
	CHECK_EQ(source_of(image, SYMBOL_SOURCE_DWARF).n_accepted, 1);
	CHECK_EQ(catalog_image_symbol(image, 0).kind, SYMBOL_SOURCE_DEBUG_FILE);
	CHECK_STR(names_of(image, 0), "both=alias");
	CHECK_STR(chain_at(image, 0x88), "both ?:0");
	CHECK(comes_out_equal(image, buf_span(&bytes)));
	catalog_image_close(image);
	buf_release(&bytes);
}

static void test_fillers(void)
{
	struct image_builder *b = builder_begin("/bin/p");
	struct catalog_image *image;
	struct buf bytes = {0};

	add(b, "covers", 0x110, 0x10, GLOBAL);
	image_builder_symbol(b, &(struct candidate){.name = "label",
					.name_bytes = 5,
					.kind = CANDIDATE_KIND_LABEL,
					.start = 0x130,
					.room = 8});
	add_function(b, "foo", 0x100, 0x140, false);
	add_function(b, "later", 0x120, 0x150, false);
	image = builder_open(b, &bytes);
	CHECK_STR(chain_at(image, 0x100), "foo ?:0");
	CHECK_STR(chain_at(image, 0x110), "covers ?:0");
	CHECK_STR(chain_at(image, 0x120), "foo ?:0");
	CHECK_STR(chain_at(image, 0x137), "label ?:0");
	CHECK_STR(chain_at(image, 0x138), "foo ?:0");
	CHECK_STR(chain_at(image, 0x14f), "later ?:0");
	CHECK_STR(chain_at(image, 0x150), "-");
	CHECK_EQ(catalog_image_n_symbols(image), 6);
	CHECK_EQ(catalog_image_symbol(image, 2).start, 0x120);
	CHECK_EQ(catalog_image_symbol(image, 2).size, 0x10);
	CHECK(comes_out_equal(image, buf_span(&bytes)));
	catalog_image_close(image);
	buf_release(&bytes);
}

static void test_later_wins(void)
{
	struct image_builder *b = builder_begin("/tmp/perf-1.map");
	struct catalog_image *image;
	struct buf bytes = {0};

	image_builder_set_later_wins(b);
	builder_source_begin(b, SYMBOL_SOURCE_PERF_MAP, "/tmp/perf-1.map");
	add(b, "_Z3oldv", 0x7f0000000100, 0x100, GLOBAL);
	add(b, "hidden", 0x7f0000000120, 0x10, GLOBAL);
	add(b, "new", 0x7f0000000110, 0x40, GLOBAL);
	add(b, "far", 0x100, 8, GLOBAL);
	add(b, "no_size", 0x200, 0, GLOBAL);
	add(b, "same_start", 0x7f0000000110, 0x8, GLOBAL);
	image = builder_open(b, &bytes);
	CHECK_EQ(catalog_image_n_symbols(image), 4);
	CHECK_STR(chain_at(image, 0x7f0000000100), "_Z3oldv ?:0"); /* as the map says it */
	CHECK_STR(chain_at(image, 0x7f0000000110), "same_start ?:0");
	CHECK_STR(chain_at(image, 0x7f0000000118), "new ?:0");
	CHECK_STR(chain_at(image, 0x7f0000000120), "new ?:0");
	CHECK_STR(chain_at(image, 0x7f0000000150), "_Z3oldv ?:0");
	CHECK_STR(chain_at(image, 0x104), "far ?:0");
	CHECK_STR(chain_at(image, 0x200), "-");
	CHECK_EQ(source_of(image, SYMBOL_SOURCE_PERF_MAP).n_offered, 6);
	CHECK_EQ(source_of(image, SYMBOL_SOURCE_PERF_MAP).n_accepted, 4);
	CHECK(comes_out_equal(image, buf_span(&bytes)));
	catalog_image_close(image);
	buf_release(&bytes);
}

/* Debug information that comes later chooses among the names that were there. */
static void test_added_source(void)
{
	struct image_builder *b = builder_begin("/bin/p");
	struct catalog_image *image, *more;
	struct buf bytes = {0}, more_bytes = {0};
	struct dwarf_unit_map u;

	builder_source_begin(b, SYMBOL_SOURCE_SYMTAB, "/bin/p");
	add(b, "a", 0x10, 0, GLOBAL);
	add(b, "wanted", 0x10, 0, GLOBAL);
	image_builder_symbol(b,
		&(struct candidate){.name = "gap", .name_bytes = 3, .start = 0x20, .room = 0x20});
	image = builder_open(b, &bytes);
	CHECK_STR(names_of(image, 0), "gap");

	b = image_builder_new(catalog_image_identity(image));
	image_builder_image(b, image);
	builder_source_begin(b, SYMBOL_SOURCE_DWARF, "/bin/p.debug");
	unit_begin(&u);
	unit_function(&u, "wanted", 0x30, 0x38, true);
	unit_row(&u, 0x24, "/a.c", 1, 0);
	unit_hole(&u, 0x34);
	image_builder_unit(b, &u);
	unit_end(&u);
	more = builder_open(b, &more_bytes);
	CHECK_STR(chain_at(more, 0x20), "gap ?:0");
	CHECK_STR(chain_at(more, 0x24), "gap /a.c:1");
	CHECK_STR(chain_at(more, 0x30), "wanted /a.c:1");
	CHECK_STR(chain_at(more, 0x37), "wanted ?:0");
	CHECK_STR(chain_at(more, 0x38), "-"); /* a gap is filled once */
	CHECK_EQ(catalog_image_n_sources(more), 2);
	CHECK_EQ(source_of(more, SYMBOL_SOURCE_SYMTAB).n_offered, 3);
	CHECK_STR(catalog_image_id(more), catalog_image_id(image));
	CHECK(comes_out_equal(more, buf_span(&more_bytes)));
	catalog_image_close(image);
	catalog_image_close(more);
	buf_release(&bytes);
	buf_release(&more_bytes);
}

/* A source that is read again replaces its count and doubles nothing. */
static void test_same_source_again(void)
{
	struct image_builder *b = builder_begin("/bin/p");
	struct catalog_image *image, *more;
	struct buf bytes = {0}, more_bytes = {0};

	builder_source_begin(b, SYMBOL_SOURCE_SYMTAB, "/bin/p");
	add(b, "a", 0x10, 8, GLOBAL);
	image = builder_open(b, &bytes);
	b = image_builder_new(catalog_image_identity(image));
	image_builder_image(b, image);
	builder_source_begin(b, SYMBOL_SOURCE_SYMTAB, "/bin/p");
	add(b, "a", 0x10, 8, GLOBAL);
	more = builder_open(b, &more_bytes);
	CHECK(bytes.n == more_bytes.n && !memcmp(bytes.p, more_bytes.p, bytes.n));
	catalog_image_close(image);
	catalog_image_close(more);
	buf_release(&bytes);
	buf_release(&more_bytes);
}

int main(void)
{
	static const struct test tests[] = {
		{"a name that debug information has comes first, the others are aliases",
			test_preference},
		{"what sources offered and what was accepted is counted", test_counts},
		{"pieces of functions fill what no symbol covers", test_fillers},
		{"in run-time code the later symbol wins", test_later_wins},
		{"a source can be added to an image that was made before", test_added_source},
		{"a source that is read again changes nothing", test_same_source_again},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
