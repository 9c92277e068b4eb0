/* SPDX-License-Identifier: MIT */
/* The types of this test itself, as the compiler of the day describes them; then what no compiler
 * writes. tests/oracle/probe_dwarf_types.sh has the other compilers, modes and kinds of files. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "dwarf_maker.h"
#include "probe/types/dwarf_types.h"

struct link {
	struct link *next;
	struct pair *other;
	const char *text;
};
struct pair {
	struct link first, second[2];
	struct {
		short inside;
	};
	unsigned flags : 3, more : 7;
	double grid[2][5];
};
typedef struct {
	long long id;
	void (*call)(struct pair *, int);
} unnamed;
enum shade { SHADE_DARK = -1, SHADE_LIGHT };

struct pair seen_pair;
static unnamed seen_unnamed;
int described_function(struct pair *p, enum shade shade, ...);
__attribute__((noinline)) int described_function(struct pair *p, enum shade shade, ...)
{
	return p->flags + (int)shade + (int)seen_unnamed.id;
}

struct world {
	struct types *types;
	struct dwarf_types *dwarf;
	struct type_source source;
	struct err err;
};

static bool world_open(struct world *w, const char *path, enum mode mode)
{
	*w = (struct world){.types = types_new(mode)};
	if (dwarf_types_open(w->types, path, &w->dwarf, &w->err) < 0)
		return false;
	w->source = dwarf_types_source(w->dwarf);
	return true;
}

static void world_close(struct world *w)
{
	dwarf_types_close(w->dwarf);
	types_free(w->types);
}

static const struct type *named(struct world *w, const char *word, const char *name)
{
	return w->source.named(w->source.ctx, word, name);
}

static bool type_reads(const struct type *type, const char *expected)
{
	struct buf text = {0};
	bool is_equal;

	type_print(type, &text);
	is_equal = !strcmp(buf_text(&text), expected);
	if (!is_equal)
		printf("it reads '%s'\n", buf_text(&text));
	buf_release(&text);
	return is_equal;
}

static uint64_t offset_in(const struct type *s, const char *name)
{
	struct type_field f;

	return s && type_find_field(s, name, &f) ? f.offset : UINT64_MAX;
}

static void structures_have_their_layout(void)
{
	struct type_field f;
	const struct type *s;
	struct world w;

	CHECK(world_open(&w, "/proc/self/exe", MODE_64));
	s = named(&w, "struct", "pair");
	CHECK(s && s->is_complete && !s->is_union);
	CHECK_STR(s->name, "struct pair");
	CHECK_EQ(s->size, sizeof(struct pair));
	CHECK_EQ(s->align, _Alignof(struct pair));
	CHECK_EQ(offset_in(s, "second"), offsetof(struct pair, second));
	CHECK_EQ(offset_in(s, "inside"), offsetof(struct pair, inside));
	CHECK(type_find_field(s, "more", &f));
	CHECK_EQ(f.offset * 8 + f.bit_offset, (offsetof(struct pair, inside) + 2) * 8 + 3);
	CHECK_EQ(f.bit_size, 7);
	CHECK(type_find_field(s, "grid", &f) && type_reads(f.type, "double[2][5]"));
	CHECK(type_find_field(s, "second", &f) && type_reads(f.type, "struct link[2]"));
	world_close(&w);
}

static void structures_that_point_to_themselves_end(void)
{
	const struct type *s;
	struct type_field f;
	struct world w;

	CHECK(world_open(&w, "/proc/self/exe", MODE_64));
	s = named(&w, "struct", "link");
	CHECK(s && s->is_complete && s->n_fields == 3);
	CHECK(type_find_field(s, "next", &f));
	CHECK(f.type->kind == TYPE_POINTER && f.type->of == s && f.type->space == SPACE_USER);
	CHECK(type_find_field(s, "other", &f) && f.type->of->is_complete);
	CHECK(f.type->of == named(&w, "struct", "pair"));
	CHECK(type_find_field(s, "text", &f) && type_reads(f.type, "char *"));
	CHECK(f.type->of->is_char);
	world_close(&w);
}

static void typedefs_and_enums_are_found(void)
{
	const struct type *t;
	struct type_field f;
	struct world w;

	CHECK(world_open(&w, "/proc/self/exe", MODE_64));
	t = named(&w, "", "unnamed");
	CHECK(t && t->kind == TYPE_STRUCT && t->size == sizeof(unnamed));
	CHECK_STR(t->name, "unnamed");
	CHECK(type_find_field(t, "call", &f));
	CHECK(f.type->kind == TYPE_POINTER && f.type->of->kind == TYPE_FUNCTION);
	CHECK_EQ(f.type->of->n_fields, 2);
	t = named(&w, "enum", "shade");
	CHECK(t && t->kind == TYPE_INT && t->is_enum && t->is_signed && t->size == 4);
	CHECK_STR(t->name, "enum shade");
	CHECK(!named(&w, "struct", "unnamed"));
	CHECK(!named(&w, "", "pair"));
	CHECK(!named(&w, "struct", "no_such_structure"));
	world_close(&w);
}

static void functions_have_their_parameters(void)
{
	const struct type *f;
	struct world w;

	CHECK(world_open(&w, "/proc/self/exe", MODE_64));
	f = w.source.function(w.source.ctx, "described_function");
	CHECK(f && f->kind == TYPE_FUNCTION && f->is_variadic && f->n_fields == 2);
	CHECK(type_reads(f->of, "int"));
	CHECK_STR(f->fields[0].name, "p");
	CHECK(type_reads(f->fields[0].type, "struct pair *"));
	CHECK_STR(f->fields[1].name, "shade");
	CHECK(type_reads(f->fields[1].type, "enum shade"));
	CHECK(!w.source.function(w.source.ctx, "no_such_function"));
	world_close(&w);
}

extern const char __executable_start; /* put there by the linker */

static void variables_have_type_and_address(void)
{
	const struct type *type = NULL;
	uint64_t addr = 0;
	struct world w;

	CHECK(world_open(&w, "/proc/self/exe", MODE_64));
	CHECK(w.source.variable(w.source.ctx, "seen_pair", &type, &addr));
	CHECK(type == named(&w, "struct", "pair"));
	CHECK_EQ(addr, (uintptr_t)&seen_pair - (uintptr_t)&__executable_start);
	CHECK(!w.source.variable(w.source.ctx, "no_such_variable", &type, &addr));
	world_close(&w);
}

static void a_file_of_the_other_mode_is_refused(void)
{
	struct world w;

	CHECK(!world_open(&w, "/proc/self/exe", MODE_32));
	CHECK_EQ(w.err.code, ERR_UNSUPPORTED);
	CHECK(strstr(w.err.text, "32-bit"));
	CHECK(!w.dwarf);
	world_close(&w);
	CHECK(!world_open(&w, "/no/such/file", MODE_64));
	CHECK_EQ(w.err.code, ERR_NOT_FOUND);
	world_close(&w);
}

/* --- made by hand ---------------------------------------------------------------------------- */

enum {
	AT_LOCATION = 0x02,
	AT_NAME = 0x03,
	AT_BYTE_SIZE = 0x0b,
	AT_BIT_OFFSET = 0x0c,
	AT_BIT_SIZE = 0x0d,
	AT_MEMBER_LOCATION = 0x38,
	AT_ENCODING = 0x3e,
	AT_TYPE = 0x49,
	DATA1 = 0x0b,
	STRING = 0x08,
	REF4 = 0x13,
	BLOCK1 = 0x0a
};
enum { UNIT = 1, STRUCT, MEMBER, BITS, BASE, POINTER, TYPEDEF, CONST, ARRAY };

static void begin(struct dwarf_maker *m, int version)
{
	ABBREV(m, UNIT, 0x11, 1, AT_NAME, STRING);
	ABBREV(m, STRUCT, 0x13, 1, AT_NAME, STRING, AT_BYTE_SIZE, DATA1);
	ABBREV(m, MEMBER, 0x0d, 0, AT_NAME, STRING, AT_TYPE, REF4, AT_MEMBER_LOCATION, BLOCK1);
	ABBREV(m, BITS, 0x0d, 0, AT_NAME, STRING, AT_TYPE, REF4, AT_BYTE_SIZE, DATA1, AT_BIT_SIZE,
		DATA1, AT_BIT_OFFSET, DATA1, AT_MEMBER_LOCATION, BLOCK1);
	ABBREV(m, BASE, 0x24, 0, AT_NAME, STRING, AT_BYTE_SIZE, DATA1, AT_ENCODING, DATA1);
	ABBREV(m, POINTER, 0x0f, 0, AT_TYPE, REF4);
	ABBREV(m, TYPEDEF, 0x16, 0, AT_NAME, STRING, AT_TYPE, REF4);
	ABBREV(m, CONST, 0x26, 0, AT_TYPE, REF4);
	ABBREV(m, ARRAY, 0x01, 0, AT_TYPE, REF4);
	buf_put_u8(&m->of[MAKER_ABBREV], 0);
	dwarf_maker_unit(m, version, 0);
	buf_put_u8(&m->of[MAKER_INFO], UNIT);
	buf_put(&m->of[MAKER_INFO], "u", 2);
}

/* An entry with a name; returns its place in the unit. */
static uint32_t entry(struct dwarf_maker *m, uint8_t code, const char *name)
{
	struct buf *b = &m->of[MAKER_INFO];
	uint32_t at = (uint32_t)b->n;

	buf_put_u8(b, code);
	if (name)
		buf_put(b, name, strlen(name) + 1);
	return at;
}

static void ref(struct dwarf_maker *m, uint32_t to)
{
	buf_put_u32(&m->of[MAKER_INFO], to);
}

static void bytes(struct dwarf_maker *m, const void *p, size_t n)
{
	buf_put(&m->of[MAKER_INFO], p, n);
}

/* Ends the unit and opens the image as a file. */
static bool finish(struct dwarf_maker *m, struct world *w)
{
	int fd = memfd_create("types", 0);
	struct span image;
	bool is_open;
	char path[64];

	buf_put_u8(&m->of[MAKER_INFO], 0);
	dwarf_maker_length(&m->of[MAKER_INFO], 0);
	image = dwarf_maker_bytes(m);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd < 0 || write(fd, image.p, image.n) != (ssize_t)image.n)
		return false;
	is_open = world_open(w, path, m->is_32 ? MODE_32 : MODE_64);
	close(fd);
	dwarf_maker_release(m);
	return is_open;
}

static void old_bit_fields_count_from_the_highest_bit(void)
{
	struct dwarf_maker m = {.is_32 = true};
	struct type_field f;
	struct world w;
	uint32_t base;

	begin(&m, 2);
	base = entry(&m, BASE, "unsigned int");
	bytes(&m, "\4\7", 2);
	entry(&m, STRUCT, "bits");
	bytes(&m, "\10", 1);
	entry(&m, BITS, "low"); /* 3 bits at bit 0 of the second word */
	ref(&m, base);
	bytes(&m, "\4\3\35\2\x23\4", 6);
	entry(&m, BITS, "next"); /* 6 bits behind it */
	ref(&m, base);
	bytes(&m, "\4\6\27\2\x23\4", 6);
	bytes(&m, "", 1);
	CHECK(finish(&m, &w));
	CHECK(named(&w, "struct", "bits"));
	CHECK(type_find_field(named(&w, "struct", "bits"), "low", &f));
	CHECK(f.offset == 4 && f.bit_offset == 0 && f.bit_size == 3 && !f.type->is_signed);
	CHECK(type_find_field(named(&w, "struct", "bits"), "next", &f));
	CHECK(f.offset == 4 && f.bit_offset == 3 && f.bit_size == 6);
	world_close(&w);
}

static void a_structure_that_contains_itself_does_no_harm(void)
{
	struct dwarf_maker m = {0};
	const struct type *s;
	struct type_field f;
	struct world w;
	uint32_t at;

	begin(&m, 4);
	at = entry(&m, STRUCT, "snake");
	bytes(&m, "\10", 1);
	entry(&m, MEMBER, "tail");
	ref(&m, at);
	bytes(&m, "\2\x23", 3);
	bytes(&m, "", 1);
	CHECK(finish(&m, &w));
	s = named(&w, "struct", "snake");
	CHECK(s && s->is_complete && s->n_fields == 1);
	CHECK(s->fields[0].type->kind == TYPE_BAD);
	CHECK(!type_find_field(s, "head", &f));
	world_close(&w);
}

static void circles_of_types_end(void)
{
	struct dwarf_maker m = {0};
	struct world w;
	uint32_t at;

	begin(&m, 4);
	at = entry(&m, TYPEDEF, "loop"); /* typedef loop loop */
	ref(&m, at);
	at = entry(&m, TYPEDEF, "long_loop"); /* a typedef of a pointer to itself */
	ref(&m, at + 1 + 10 + 4);
	entry(&m, POINTER, NULL);
	ref(&m, at);
	at = entry(&m, TYPEDEF, "row"); /* an array of itself */
	ref(&m, at + 1 + 4 + 4);
	entry(&m, ARRAY, NULL);
	ref(&m, at);
	entry(&m, TYPEDEF, "nowhere");
	ref(&m, 0x7fffffff);
	CHECK(finish(&m, &w));
	CHECK(named(&w, "", "loop") && named(&w, "", "loop")->kind == TYPE_BAD);
	CHECK(named(&w, "", "long_loop"));
	CHECK(named(&w, "", "row"));
	CHECK(named(&w, "", "nowhere")->kind == TYPE_BAD);
	world_close(&w);
}

static void an_image_without_debug_information_says_so(void)
{
	struct dwarf_maker m = {0};
	struct world w;
	struct span image = dwarf_maker_bytes(&m);
	int fd = memfd_create("types", 0);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK(write(fd, image.p, image.n) == (ssize_t)image.n);
	CHECK(!world_open(&w, path, MODE_64));
	CHECK_EQ(w.err.code, ERR_NOT_FOUND);
	CHECK(strstr(w.err.text, "no debug information"));
	close(fd);
	world_close(&w);
	dwarf_maker_release(&m);
}

int main(void)
{
	static const struct test tests[] = {
		{"structures have their layout", structures_have_their_layout},
		{"structures that point to themselves end",
			structures_that_point_to_themselves_end},
		{"typedefs and enums are found", typedefs_and_enums_are_found},
		{"functions have their parameters", functions_have_their_parameters},
		{"variables have type and address", variables_have_type_and_address},
		{"a file of the other mode is refused", a_file_of_the_other_mode_is_refused},
		{"old bit-fields count from the highest bit",
			old_bit_fields_count_from_the_highest_bit},
		{"a structure that contains itself does no harm",
			a_structure_that_contains_itself_does_no_harm},
		{"circles of types end", circles_of_types_end},
		{"an image without debug information says so",
			an_image_without_debug_information_says_so},
	};

	return described_function(&seen_pair, SHADE_LIGHT) ? 1 : RUN_TESTS(tests);
}
