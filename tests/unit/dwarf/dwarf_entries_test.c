/* SPDX-License-Identifier: MIT */
/* Functions, inlined functions and their names, from entries written byte by byte. */
#include "check.h"
#include "dwarf_maker.h"

enum {
	TAG_CU = 0x11,
	TAG_INLINED = 0x1d,
	TAG_FUNCTION = 0x2e,
	TAG_BLOCK = 0x0b,
	AT_NAME = 0x03,
	AT_LOW_PC = 0x11,
	AT_HIGH_PC = 0x12,
	AT_ORIGIN = 0x31,
	AT_SPECIFICATION = 0x47,
	AT_ENTRY_PC = 0x52,
	AT_CALL_FILE = 0x58,
	AT_CALL_LINE = 0x59,
	AT_LINKAGE_NAME = 0x6e,
	AT_LANGUAGE = 0x13,
	FORM_TEXT = 0x08,
	FORM_ADDRESS = 0x01,
	FORM_U1 = 0x0b,
	FORM_U4 = 0x06,
	FORM_NUMBER = 0x0f,
	FORM_REFERENCE4 = 0x13,
	FORM_REFERENCE_ANY = 0x10,
	FORM_ANY = 0x16,
	FORM_CONSTANT = 0x21
};

/* Codes of the abbreviations that most tests use. */
enum { CU = 1, FUNCTION, FUNCTION_OF, BLOCK, INLINED, PLAIN, LINKED, DECLARED };

static void put_abbrevs(struct dwarf_maker *m)
{
	ABBREV(m, CU, TAG_CU, 1, AT_NAME, FORM_TEXT, AT_LANGUAGE, FORM_U1);
	ABBREV(m, FUNCTION, TAG_FUNCTION, 1, AT_NAME, FORM_TEXT, AT_LOW_PC, FORM_ADDRESS,
		AT_HIGH_PC, FORM_U4);
	ABBREV(m, FUNCTION_OF, TAG_FUNCTION, 1, AT_ORIGIN, FORM_REFERENCE4, AT_LOW_PC, FORM_ADDRESS,
		AT_HIGH_PC, FORM_U4);
	ABBREV(m, BLOCK, TAG_BLOCK, 1, AT_LOW_PC, FORM_ADDRESS);
	ABBREV(m, INLINED, TAG_INLINED, 1, AT_ORIGIN, FORM_REFERENCE4, AT_LOW_PC, FORM_ADDRESS,
		AT_HIGH_PC, FORM_U4, AT_CALL_LINE, FORM_NUMBER);
	ABBREV(m, PLAIN, TAG_FUNCTION, 0, AT_NAME, FORM_TEXT);
	ABBREV(m, LINKED, TAG_FUNCTION, 0, AT_NAME, FORM_TEXT, AT_LINKAGE_NAME, FORM_TEXT);
	ABBREV(m, DECLARED, TAG_FUNCTION, 0, AT_NAME, FORM_TEXT, AT_SPECIFICATION, FORM_REFERENCE4);
	buf_put_uleb(&m->of[MAKER_ABBREV], 0);
}

static void put_text(struct buf *b, const char *text)
{
	buf_put(b, text, strlen(text) + 1);
}

static size_t begin_unit(struct dwarf_maker *m)
{
	size_t at = dwarf_maker_unit(m, 4, 0);

	buf_put_uleb(&m->of[MAKER_INFO], CU);
	put_text(&m->of[MAKER_INFO], "unit.cc");
	buf_put_u8(&m->of[MAKER_INFO], 4); /* C++ */
	return at;
}

static void end_unit(struct dwarf_maker *m, size_t at)
{
	buf_put_u8(&m->of[MAKER_INFO], 0);
	dwarf_maker_length(&m->of[MAKER_INFO], at);
}

static void put_range(struct buf *b, uint64_t addr, uint32_t n)
{
	buf_put_u64(b, addr);
	buf_put_u32(b, n);
}

/* A function with code, open for children. */
static void put_function(struct dwarf_maker *m, const char *name, uint64_t addr, uint32_t n)
{
	buf_put_uleb(&m->of[MAKER_INFO], FUNCTION);
	put_text(&m->of[MAKER_INFO], name);
	put_range(&m->of[MAKER_INFO], addr, n);
}

static void put_inlined(struct dwarf_maker *m, uint32_t origin, uint64_t addr, uint32_t n, int line)
{
	buf_put_uleb(&m->of[MAKER_INFO], INLINED);
	buf_put_u32(&m->of[MAKER_INFO], origin);
	put_range(&m->of[MAKER_INFO], addr, n);
	buf_put_uleb(&m->of[MAKER_INFO], (uint64_t)line);
}

static void put_end(struct dwarf_maker *m)
{
	buf_put_u8(&m->of[MAKER_INFO], 0);
}

/* Opens what was made and reads unit `i`; what is wrong goes to `err`. */
static int read_unit(struct dwarf_maker *m, struct dwarf_unit_map *map, size_t i, struct err *err)
{
	*err = (struct err){0};
	*map = (struct dwarf_unit_map){0};
	if (!m->debug && dwarf_maker_open(m, NULL, err) < 0)
		return err->code;
	return dwarf_unit_map_init(map, m->debug, i, err);
}

static void inlined_in_inlined(void)
{
	struct dwarf_maker m = {0};
	struct dwarf_unit_map map;
	uint32_t outer, inner;
	struct err err;
	size_t at;

	put_abbrevs(&m);
	at = begin_unit(&m);
	outer = (uint32_t)(m.of[MAKER_INFO].n - at);
	buf_put_uleb(&m.of[MAKER_INFO], PLAIN);
	put_text(&m.of[MAKER_INFO], "outer");
	inner = (uint32_t)(m.of[MAKER_INFO].n - at);
	buf_put_uleb(&m.of[MAKER_INFO], PLAIN);
	put_text(&m.of[MAKER_INFO], "inner");
	put_function(&m, "f", CODE_ADDR, 0x100);
	put_inlined(&m, outer, CODE_ADDR + 0x10, 0x40, 11);
	buf_put_uleb(&m.of[MAKER_INFO], BLOCK);
	buf_put_u64(&m.of[MAKER_INFO], CODE_ADDR + 0x20);
	put_inlined(&m, inner, CODE_ADDR + 0x20, 0x10, 22);
	put_end(&m);
	put_end(&m); /* the block */
	put_end(&m); /* outer */
	put_end(&m); /* f */
	end_unit(&m, at);
	CHECK_EQ(read_unit(&m, &map, 0, &err), 0);
	CHECK(map_function_is(&map, 0, "f", 0, 0x100));
	CHECK(map.functions.v[0].is_entry && map.functions.v[0].is_plain_name);
	CHECK_EQ(map.sites.n, 3);
	CHECK_EQ(map.sites.v[1].parent, 0);
	CHECK_EQ(map.sites.v[1].call_line, 11);
	CHECK(text_is(map.names.v[map.sites.v[1].name], "outer"));
	CHECK_EQ(map.sites.v[2].parent, 1);
	CHECK_EQ(map.sites.v[2].call_line, 22);
	CHECK(text_is(map.names.v[map.sites.v[2].name], "inner"));
	/* There are no lines, but the rows still say where one is. */
	CHECK_EQ(map.rows.n, 6);
	CHECK_EQ(map_row(&map, 0x0f)->site, 0);
	CHECK_EQ(map_row(&map, 0x10)->site, 1);
	CHECK_EQ(map_row(&map, 0x20)->site, 2);
	CHECK_EQ(map_row(&map, 0x2f)->site, 2);
	CHECK_EQ(map_row(&map, 0x30)->site, 1);
	CHECK_EQ(map_row(&map, 0x50)->site, 0);
	CHECK(!map_row(&map, 0x100));
	CHECK_STR(dwarf_debug_notes(m.debug), "");
	dwarf_unit_map_release(&map);
	dwarf_maker_release(&m);
}

/* A concrete function leads to an abstract one, that to a declaration. */
static void names_through_references(void)
{
	struct dwarf_maker m = {0};
	struct dwarf_unit_map map;
	struct buf *b = &m.of[MAKER_INFO];
	uint32_t declared, linked, itself;
	struct err err;
	size_t at;

	put_abbrevs(&m);
	at = begin_unit(&m);
	linked = (uint32_t)(b->n - at);
	buf_put_uleb(b, LINKED);
	put_text(b, "far");
	put_text(b, "_Z3farv");
	declared = (uint32_t)(b->n - at);
	buf_put_uleb(b, DECLARED);
	put_text(b, "near");
	buf_put_u32(b, linked);
	itself = (uint32_t)(b->n - at);
	buf_put_uleb(b, DECLARED);
	put_text(b, "circle");
	buf_put_u32(b, itself);
	for (int i = 0; i < 4; i++) {
		const uint32_t to[] = {declared, linked, itself, 0x7fffffff};

		buf_put_uleb(b, FUNCTION_OF);
		buf_put_u32(b, to[i]);
		put_range(b, CODE_ADDR + (uint64_t)i * 16, 16);
		put_end(&m);
	}
	end_unit(&m, at);
	CHECK_EQ(read_unit(&m, &map, 0, &err), 0);
	CHECK(map_function_is(&map, 0, "_Z3farv", 0, 16));
	CHECK(!map.functions.v[0].is_plain_name);
	CHECK(map_function_is(&map, 1, "_Z3farv", 16, 32));
	CHECK(map_function_is(&map, 2, "circle", 32, 48));
	CHECK(map.functions.v[2].is_plain_name);
	CHECK(map_function_is(&map, 3, "", 48, 64)); /* it leads nowhere */
	CHECK_EQ(map.functions.v[3].name, 0);
	dwarf_unit_map_release(&map);
	dwarf_maker_release(&m);
}

static void names_in_other_units(void)
{
	struct dwarf_maker m = {0};
	struct dwarf_unit_map map;
	struct buf *b = &m.of[MAKER_INFO];
	struct err err;
	uint32_t far;
	size_t at;

	put_abbrevs(&m);
	m.of[MAKER_ABBREV].n--; /* one more */
	ABBREV(&m, 20, TAG_FUNCTION, 0, AT_ORIGIN, FORM_REFERENCE_ANY, AT_LOW_PC, FORM_ADDRESS,
		AT_HIGH_PC, FORM_U4);
	buf_put_uleb(&m.of[MAKER_ABBREV], 0);
	at = begin_unit(&m);
	far = (uint32_t)b->n;
	buf_put_uleb(b, LINKED);
	put_text(b, "far");
	put_text(b, "_Z3farv");
	end_unit(&m, at);
	at = begin_unit(&m);
	buf_put_uleb(b, 20);
	buf_put_u32(b, far);
	put_range(b, CODE_ADDR, 16);
	end_unit(&m, at);
	CHECK_EQ(read_unit(&m, &map, 1, &err), 0);
	CHECK_EQ(dwarf_debug_n_units(m.debug), 2);
	CHECK(map_function_is(&map, 0, "_Z3farv", 0, 16));
	dwarf_unit_map_release(&map);
	dwarf_maker_release(&m);
}

/* Constants in the abbreviation, forms in the entry, and codes that are far apart. */
static void odd_abbreviations(void)
{
	const uint64_t far_code = (uint64_t)1 << 40;
	struct dwarf_maker m = {0};
	struct dwarf_unit_map map;
	struct buf *b = &m.of[MAKER_INFO];
	struct err err;
	size_t at;

	ABBREV(&m, 1, TAG_CU, 1, AT_NAME, FORM_ANY);
	ABBREV(&m, far_code, TAG_FUNCTION, 1, AT_NAME, FORM_ANY, AT_LOW_PC, FORM_ADDRESS,
		AT_HIGH_PC, FORM_CONSTANT, 0x20, 0);
	ABBREV(&m, far_code + 9, TAG_INLINED, 0, 0x3fff, FORM_ANY, AT_CALL_LINE, FORM_CONSTANT, 77,
		0, AT_LOW_PC, FORM_ADDRESS, AT_HIGH_PC, FORM_ANY);
	buf_put_uleb(&m.of[MAKER_ABBREV], 0);
	at = dwarf_maker_unit(&m, 5, 0);
	buf_put_uleb(b, 1);
	buf_put_uleb(b, FORM_TEXT);
	put_text(b, "unit.c");
	buf_put_uleb(b, far_code);
	buf_put_uleb(b, FORM_TEXT);
	put_text(b, "f");
	buf_put_u64(b, CODE_ADDR);
	buf_put_uleb(b, far_code + 9);
	buf_put_uleb(b, 0x0a); /* DW_FORM_block1 */
	buf_put(b, "\x02xy", 3);
	buf_put_u64(b, CODE_ADDR + 8);
	buf_put_uleb(b, FORM_U1);
	buf_put_u8(b, 4);
	put_end(&m);
	end_unit(&m, at);
	CHECK_EQ(read_unit(&m, &map, 0, &err), 0);
	CHECK(map_function_is(&map, 0, "f", 0, 0x20));
	CHECK_EQ(map.sites.n, 2);
	CHECK_EQ(map.sites.v[1].call_line, 77);
	CHECK_EQ(map_row(&map, 8)->site, 1);
	CHECK_EQ(map_row(&map, 12)->site, 0);
	dwarf_unit_map_release(&map);
	dwarf_maker_release(&m);
}

static void dropped_code(void)
{
	const uint64_t marks[] = {0, UINT64_MAX, UINT64_MAX - 1, CODE_ADDR - 0x100,
		CODE_ADDR + CODE_BYTES, 0x7fffffff0000};
	struct dwarf_maker m = {0};
	struct dwarf_unit_map map;
	struct err err;
	size_t at;

	put_abbrevs(&m);
	at = begin_unit(&m);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		put_function(&m, "gone", marks[i], 0x20);
		/* Even if the linker left its inlined functions at addresses that look good. */
		put_inlined(&m, 0, CODE_ADDR + 4, 4, 1);
		put_end(&m);
		put_function(&m, "inside", CODE_ADDR + 0x100 + i, 1);
		put_end(&m);
		put_end(&m);
	}
	put_function(&m, "sticks out", CODE_ADDR + CODE_BYTES - 8, 0x20);
	put_end(&m);
	end_unit(&m, at);
	CHECK_EQ(read_unit(&m, &map, 0, &err), 0);
	CHECK_EQ(map.functions.n, sizeof(marks) / sizeof(marks[0]) + 1);
	CHECK_EQ(map.sites.n, 1);
	CHECK(!map_row(&map, 4));
	CHECK(map_function_is(&map, 0, "inside", 0x100, 0x101));
	CHECK(map_function_is(&map, map.functions.n - 1, "sticks out", CODE_BYTES - 8, CODE_BYTES));
	dwarf_unit_map_release(&map);
	dwarf_maker_release(&m);
}

static void damage_costs_one_unit(void)
{
	struct dwarf_maker m = {0};
	struct dwarf_unit_map map;
	struct buf *b = &m.of[MAKER_INFO];
	struct err err;
	char place[64];
	size_t at, bad[2];

	put_abbrevs(&m);
	at = begin_unit(&m);
	bad[0] = b->n;
	buf_put_uleb(b, 99); /* no such abbreviation */
	end_unit(&m, at);
	at = begin_unit(&m);
	bad[1] = b->n;
	put_function(&m, "cut", CODE_ADDR, 16);
	b->n -= 2;
	dwarf_maker_length(b, at);
	at = begin_unit(&m);
	put_function(&m, "good", CODE_ADDR, 16);
	put_end(&m);
	end_unit(&m, at);
	buf_put_u32(b, 7); /* a unit of a version that is not known */
	buf_put(b, "\x06\x00\x00\x00\x00\x00\x00", 7);
	buf_put_u32(b, 0x1000); /* one that is longer than the section */
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(read_unit(&m, &map, (size_t)i, &err), ERR_FORMAT);
		snprintf(place, sizeof(place), ".debug_info+0x%zx: ", bad[i]);
		CHECK(strstr(err.text, place));
	}
	CHECK_EQ(read_unit(&m, &map, 2, &err), 0);
	CHECK(map_function_is(&map, 0, "good", 0, 16));
	CHECK_EQ(dwarf_debug_n_units(m.debug), 3);
	CHECK(strstr(dwarf_debug_notes(m.debug), "version that is not known"));
	CHECK(strstr(dwarf_debug_notes(m.debug), "longer than the section"));
	CHECK_EQ(dwarf_unit_map_init(&(struct dwarf_unit_map){0}, m.debug, 3, &err), ERR_NOT_FOUND);
	dwarf_unit_map_release(&map);
	dwarf_maker_release(&m);
}

static void unknown_form(void)
{
	struct dwarf_maker m = {0};
	struct dwarf_unit_map map;
	struct err err;
	size_t at;

	ABBREV(&m, 1, TAG_CU, 1, AT_NAME, FORM_TEXT);
	ABBREV(&m, 2, TAG_FUNCTION, 0, AT_LOW_PC, FORM_ADDRESS, 0x1234, 0x1e77);
	buf_put_uleb(&m.of[MAKER_ABBREV], 0);
	at = dwarf_maker_unit(&m, 4, 0);
	buf_put_uleb(&m.of[MAKER_INFO], 1);
	put_text(&m.of[MAKER_INFO], "unit.c");
	buf_put_uleb(&m.of[MAKER_INFO], 2);
	for (int i = 0; i < 100; i++)
		buf_put_u64(&m.of[MAKER_INFO], CODE_ADDR);
	end_unit(&m, at);
	CHECK_EQ(read_unit(&m, &map, 0, &err), ERR_FORMAT);
	dwarf_maker_release(&m);
}

static void nested_too_deeply(void)
{
	struct dwarf_maker m = {0};
	struct dwarf_unit_map map;
	struct err err;
	size_t at;
	enum { DEEP = 100000 };

	put_abbrevs(&m);
	at = begin_unit(&m);
	for (int i = 0; i < DEEP; i++)
		put_function(&m, "f", CODE_ADDR, 16);
	for (int i = 0; i < DEEP; i++)
		put_end(&m);
	put_function(&m, "last", CODE_ADDR + 32, 16);
	put_end(&m);
	end_unit(&m, at);
	CHECK_EQ(read_unit(&m, &map, 0, &err), 0);
	CHECK(map.functions.n > 100 && map.functions.n < 1000);
	CHECK(map_function_is(&map, map.functions.n - 1, "last", 32, 48));
	CHECK(strstr(dwarf_debug_notes(m.debug), "nested too deeply"));
	dwarf_unit_map_release(&map);
	dwarf_maker_release(&m);
}

static void nothing_to_read(void)
{
	struct dwarf_maker m = {0};
	struct err err = {0};

	CHECK_EQ(dwarf_maker_open(&m, NULL, &err), ERR_NOT_FOUND);
	CHECK(err.text[0]);
	dwarf_maker_release(&m);
}

static const struct test tests[] = {
	{"an inlined function in an inlined function has it as its parent", inlined_in_inlined},
	{"a function's name is found through the entries it leads to", names_through_references},
	{"a function's name is found in another unit", names_in_other_units},
	{"values in abbreviations, forms in entries and far codes are read", odd_abbreviations},
	{"code that the linker dropped is left out", dropped_code},
	{"a damaged unit costs only itself", damage_costs_one_unit},
	{"a form that is not known fails the unit that uses it", unknown_form},
	{"entries below the deepest level are stepped over and noted", nested_too_deeply},
	{"an image without debug information says so", nothing_to_read},
};

int main(void)
{
	return RUN_TESTS(tests);
}
