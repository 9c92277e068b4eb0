/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "check.h"
#include "probe/script/parse.h"
#include "probe/types/type.h"

/* Declarations, and one cast for each type that a test asks for. */
struct world {
	struct sources sources;
	struct diags diags;
	struct script *script;
	struct types *types[N_MODES];
};

static void world_declare(struct world *w)
{
	struct script_parameters none = {0};

	diags_init(&w->diags, &w->sources);
	w->script = script_parse(&w->sources, &none, &w->diags);
	for (int mode = 0; mode < N_MODES; mode++) {
		w->types[mode] = types_new(mode);
		types_declare(w->types[mode], w->script->decls, &w->diags);
	}
}

static void world_init(struct world *w, const char *text)
{
	char *whole = mem_printf("%s\nbegin { exit(); }\n", text);

	memset(w, 0, sizeof(*w));
	sources_add(&w->sources, "test", (struct span){(const uint8_t *)whole, strlen(whole)});
	free(whole);
	world_declare(w);
}

static void world_release(struct world *w)
{
	for (int mode = 0; mode < N_MODES; mode++)
		types_free(w->types[mode]);
	script_free(w->script);
	diags_release(&w->diags);
	sources_release(&w->sources);
}

static const struct decl *find_decl(const struct world *w, const char *name)
{
	for (const struct decl *d = w->script->decls; d; d = d->next)
		if (d->name ? !strcmp(d->name, name)
			    : d->type->name && !strcmp(d->type->name, name))
			return d;
	printf("no declaration of %s\n", name);
	abort();
}

/* The type of a declaration by its tag or name, as a clause would get it. */
static const struct type *type_of(struct world *w, enum mode mode, const char *name)
{
	return types_of_decl(w->types[mode], find_decl(w, name)->type, SPACE_USER, &w->diags);
}

static struct type_field field_of(const struct type *s, const char *name)
{
	struct type_field f = {0};

	if (!type_find_field(s, name, &f)) {
		check_failures++;
		printf("there is no field %s\n", name);
	}
	return f;
}

static const char *print(const struct type *type)
{
	static struct buf b;

	buf_reset(&b);
	type_print(type, &b);
	return buf_text(&b);
}

/* --- layouts --------------------------------------------------------------------------------- */

static void test_modes(void)
{
	struct world w;
	const struct type *s;

	world_init(&w, "struct item { char c; long l; char *p; long long ll; char d; double x;\n"
		       "  long double e; bool b; };");
	CHECK_EQ(w.diags.n_errors, 0);
	s = type_of(&w, MODE_32, "item");
	CHECK_EQ(s->size, 48);
	CHECK_EQ(s->align, 4);
	CHECK_EQ(field_of(s, "l").offset, 4);
	CHECK_EQ(field_of(s, "l").type->size, 4);
	CHECK_EQ(field_of(s, "p").offset, 8);
	CHECK_EQ(field_of(s, "ll").offset, 12); /* not 16 */
	CHECK_EQ(field_of(s, "x").offset, 24);
	CHECK_EQ(field_of(s, "e").offset, 32);
	CHECK_EQ(field_of(s, "e").type->size, 12);
	CHECK_EQ(field_of(s, "b").offset, 44);
	s = type_of(&w, MODE_64, "item");
	CHECK_EQ(s->size, 80);
	CHECK_EQ(s->align, 16);
	CHECK_EQ(field_of(s, "l").offset, 8);
	CHECK_EQ(field_of(s, "l").type->size, 8);
	CHECK_EQ(field_of(s, "ll").offset, 24);
	CHECK_EQ(field_of(s, "x").offset, 40);
	CHECK_EQ(field_of(s, "e").offset, 48);
	CHECK_EQ(field_of(s, "e").type->size, 16);
	CHECK(field_of(s, "b").type->is_bool);
	world_release(&w);
}

static void check_bits(const struct type *s, const char *name, unsigned bit, unsigned bits)
{
	struct type_field f = field_of(s, name);

	CHECK_EQ(f.offset * 8 + f.bit_offset, bit);
	CHECK_EQ(f.bit_size, bits);
}

static void test_bit_fields(void)
{
	struct world w;
	const struct type *s;

	world_init(&w,
		"struct b { unsigned a : 3; int b : 30; char c : 4; short : 0; int d : 1;\n"
		"  long long e : 40; unsigned long f : 31; };\n"
		"struct p { char a : 5; int b : 30; long c : 20; } __attribute__((packed));\n"
		"struct u { char c; int : 20; };");
	CHECK_EQ(w.diags.n_errors, 0);
	s = type_of(&w, MODE_32, "b");
	check_bits(s, "a", 0, 3);
	check_bits(s, "b", 32, 30); /* would lie in two units */
	check_bits(s, "c", 64, 4);
	check_bits(s, "d", 80, 1);  /* behind the zero width */
	check_bits(s, "e", 81, 40); /* two units of 4 bytes are a long long in i386 */
	check_bits(s, "f", 128, 31);
	CHECK_EQ(s->size, 20);
	s = type_of(&w, MODE_64, "b");
	check_bits(s, "e", 81, 40);
	check_bits(s, "f", 128, 31);
	CHECK_EQ(s->size, 24);
	s = type_of(&w, MODE_64, "p");
	check_bits(s, "b", 5, 30);
	check_bits(s, "c", 35, 20);
	CHECK_EQ(s->size, 7);
	s = type_of(&w, MODE_64, "u"); /* a bit-field without a name aligns nothing */
	CHECK_EQ(s->size, 4);
	CHECK_EQ(s->align, 1);
	CHECK_EQ(s->n_fields, 1);
	world_release(&w);
}

static void test_unnamed(void)
{
	struct world w;
	const struct type *s;

	world_init(&w, "struct outer { int kind; union { struct { long x, y; }; char *text; };\n"
		       "  struct { int a; } in; long tail[]; };");
	CHECK_EQ(w.diags.n_errors, 0);
	s = type_of(&w, MODE_32, "outer");
	CHECK_EQ(field_of(s, "y").offset, 8);
	CHECK_EQ(field_of(s, "text").offset, 4);
	CHECK_EQ(field_of(s, "in").offset, 12);
	CHECK_EQ(field_of(s, "tail").offset, 16);
	CHECK_EQ(s->size, 16);
	s = type_of(&w, MODE_64, "outer");
	CHECK_EQ(field_of(s, "y").offset, 16);
	CHECK_EQ(field_of(s, "tail").offset, 32);
	CHECK_EQ(field_of(s, "tail").type->n, 0);
	CHECK(!type_find_field(s, "a", &(struct type_field){0}));
	world_release(&w);
}

static void test_enums(void)
{
	struct world w;
	const struct type *e;
	const struct type *type;
	int64_t value;

	world_init(&w, "enum a { A0, A1 = 5, A2, A3 = A1 * 2 + (1 << 4) };\n"
		       "enum b { B = -1, B2 = 7 }; enum c { C = 0xffffffff };\n"
		       "enum d { D = 0x100000000 }; enum e { E = -1, E2 = 0x80000000 };\n"
		       "enum f { F = 0xffffffffffffffff };\n"
		       "enum g { G = 200 } __attribute__((packed)); enum { LONE = sizeof(long) };");
	CHECK_EQ(w.diags.n_errors, 0);
	CHECK(types_enumerator(w.types[MODE_32], "A2", &value, &type) && value == 6);
	CHECK(types_enumerator(w.types[MODE_32], "A3", &value, &type) && value == 26);
	CHECK(types_enumerator(w.types[MODE_32], "LONE", &value, &type) && value == 4);
	CHECK(types_enumerator(w.types[MODE_64], "LONE", &value, &type) && value == 8);
	CHECK(types_enumerator(w.types[MODE_64], "F", &value, &type) && value == -1);
	CHECK(!types_enumerator(w.types[MODE_64], "a", &value, &type));
	e = type_of(&w, MODE_32, "a");
	CHECK(e->is_enum && !e->is_signed && e->size == 4);
	CHECK(type_of(&w, MODE_32, "b")->is_signed);
	CHECK_EQ(type_of(&w, MODE_32, "c")->size, 4);
	CHECK_EQ(type_of(&w, MODE_32, "d")->size, 8);
	e = type_of(&w, MODE_32, "e");
	CHECK(e->is_signed && e->size == 8);
	e = type_of(&w, MODE_64, "f");
	CHECK(!e->is_signed && e->size == 8);
	CHECK_EQ(type_of(&w, MODE_64, "g")->size, 1);
	world_release(&w);
}

static void test_builtin_names(void)
{
	static const struct {
		const char *name;
		unsigned size_32, size_64;
		bool is_signed;
	} names[] = {{"size_t", 4, 8, false}, {"ssize_t", 4, 8, true}, {"intptr_t", 4, 8, true},
		{"uintptr_t", 4, 8, false}, {"ptrdiff_t", 4, 8, true}, {"off_t", 4, 8, true},
		{"time_t", 4, 8, true}, {"pid_t", 4, 4, true}, {"uid_t", 4, 4, false},
		{"gid_t", 4, 4, false}, {"mode_t", 4, 4, false}, {"dev_t", 8, 8, false},
		{"ino_t", 4, 8, false}, {"socklen_t", 4, 4, false}, {"wchar_t", 4, 4, true}};
	struct world w;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *text = mem_printf("struct s { %s x; };", names[i].name);

		world_init(&w, text);
		CHECK_EQ(w.diags.n_errors, 0);
		CHECK_EQ(type_of(&w, MODE_32, "s")->size, names[i].size_32);
		CHECK_EQ(type_of(&w, MODE_64, "s")->size, names[i].size_64);
		CHECK_EQ(field_of(type_of(&w, MODE_64, "s"), "x").type->is_signed,
			names[i].is_signed);
		world_release(&w);
		free(text);
	}
}

/* --- sources --------------------------------------------------------------------------------- */

/* A source that has struct item { 5 bytes }, struct only { 6 bytes }, size_t of 2 bytes, a function
 * and a variable. */
static const struct type *known_named(void *ctx, const char *word, const char *name)
{
	struct types *t = ctx;
	struct type_field f = {.name = "there", .type = types_char(t)};
	bool is_item = !strcmp(name, "item");

	if (!*word && !strcmp(name, "size_t"))
		return types_named_int(t, "size_t", 2, false);
	if (!strcmp(word, "struct") && (is_item || !strcmp(name, "only"))) {
		struct type *s =
			types_new_struct(t, is_item ? "struct item" : "struct only", false);

		types_fill_struct(t, s, &f, 1, is_item ? 5 : 6, 1);
		return s;
	}
	return NULL;
}

static const struct type *known_function(void *ctx, const char *name)
{
	struct types *t = ctx;

	return strcmp(name, "work") ? NULL : types_new_function(t, types_char(t), NULL, 0, false);
}

static bool known_variable(void *ctx, const char *name, const struct type **type, uint64_t *iaddr)
{
	if (strcmp(name, "counter") != 0)
		return false;
	*type = types_char(ctx);
	*iaddr = 0x1234;
	return true;
}

static void test_sources(void)
{
	struct world w;
	struct type_source source = {
		.named = known_named, .function = known_function, .variable = known_variable};
	struct decl_type item = {.kind = DECL_STRUCT, .name = "item"};
	struct decl_type only = {.kind = DECL_STRUCT, .name = "only"};
	struct decl_type pointer = {.kind = DECL_POINTER, .of = &only};
	struct decl_type size = {.kind = DECL_NAMED, .name = "size_t"};
	struct decl_type none = {.kind = DECL_STRUCT, .name = "none"};
	const struct type *type;
	struct types *t;
	uint64_t iaddr;

	world_init(&w, "struct item { int own; struct only *p; struct item *next; };\n"
		       "extern long counter; extern long elsewhere; int work(int a);");
	t = w.types[MODE_64];
	source.ctx = t;
	CHECK_EQ(types_of_decl(t, &size, SPACE_USER, &w.diags)->size, 8);
	types_set_sources(t, &source, 1);
	/* The script first, then the source, then what every program has. */
	type = types_of_decl(t, &item, SPACE_USER, &w.diags);
	CHECK_EQ(type->size, 24);
	CHECK(field_of(type, "next").type->of == type);
	CHECK_EQ(types_of_decl(t, &only, SPACE_USER, &w.diags)->size, 6);
	CHECK_EQ(types_of_decl(t, &pointer, SPACE_USER, &w.diags)->of->size, 6);
	CHECK_EQ(types_of_decl(t, &size, SPACE_USER, &w.diags)->size, 2);
	/* A structure that the script only mentions is completed when it is followed. */
	type = field_of(type, "p").type->of;
	CHECK(!type->is_complete);
	CHECK_EQ(types_completed(t, type)->size, 6);
	CHECK_EQ(w.diags.n_errors, 0);
	CHECK_EQ(types_function(t, "work")->n_fields, 1);
	CHECK(!types_function(t, "play"));
	CHECK(types_variable(t, "counter", &type, &iaddr) && type->size == 8 && iaddr == 0x1234);
	CHECK(types_variable(t, "elsewhere", &type, &iaddr) && type->size == 8 && iaddr == 0);
	CHECK(!types_variable(t, "nobody", &type, &iaddr));
	CHECK(types_of_decl(t, &none, SPACE_USER, &w.diags)->kind == TYPE_BAD);
	CHECK_STR(w.diags.v.v[0].tag, "unknown-type");
	types_set_sources(t, NULL, 0);
	CHECK(!types_completed(
		t, field_of(types_of_decl(t, &item, SPACE_USER, &w.diags), "p").type->of)
			->is_complete);
	world_release(&w);
}

static void test_kernel(void)
{
	struct world w;
	const struct type *s;

	world_init(&w, "struct item { long l; struct item *next; };");
	s = types_of_decl(w.types[MODE_32], find_decl(&w, "item")->type, SPACE_KERNEL, &w.diags);
	CHECK_EQ(s->size, 16);
	CHECK_EQ(field_of(s, "next").type->space, SPACE_KERNEL);
	CHECK_EQ(field_of(s, "next").type->size, 8);
	CHECK(field_of(s, "next").type->of == s);
	s = type_of(&w, MODE_32, "item");
	CHECK_EQ(s->size, 8);
	CHECK_EQ(field_of(s, "next").type->space, SPACE_USER);
	CHECK_EQ(w.diags.n_errors, 0);
	world_release(&w);
}

/* --- mistakes -------------------------------------------------------------------------------- */

static const struct {
	const char *text, *tag, *at; /* `at`: what stands at the place */
} mistakes[] = {
	{"struct a { struct a x; };", "incomplete", "x"},
	{"struct a; struct b { struct a x; };", "incomplete", "x"},
	{"struct b { struct nosuch x; };", "unknown-type", "x"},
	{"struct b { nosuch_t x; };", "unknown-type", "nosuch_t"},
	{"struct b { enum nosuch x; };", "unknown-type", "enum nosuch"},
	{"struct b { void x; };", "incomplete", "x"},
	{"struct b { int x(int); };", "type", "x"},
	{"struct b { string x; };", "type", "x"},
	{"struct b { int x[]; int y; };", "incomplete", "x"},
	{"union b { int y; int x[]; };", "incomplete", "x"},
	{"struct b { int x; int x; };", "duplicate", "x"},
	{"struct b { int x; struct { int x; }; };", "duplicate", "struct"},
	{"struct b { int x; }; struct b { int x; };", "duplicate", "struct b"},
	{"struct b { int x; }; enum b { X };", "duplicate", "enum b"},
	{"struct b { int x; }; union b *f(void);", "type", "union b"},
	{"enum a { X }; enum b { X };", "duplicate", "X"},
	{"typedef int t; typedef long long t;", "duplicate", "t"},
	{"int f(int); int f(long long);", "duplicate", "f"},
	{"enum t { A }; extern int A;", "duplicate", "A"},
	{"struct b { int x[-1]; };", "range", "-1"},
	{"struct b { int x[1 << 64]; };", "range", "64"},
	{"struct b { int x[1 / 0]; };", "division", "1 / 0"},
	{"struct b { int x[n]; };", "constant", "n"},
	{"struct b { int x[pid]; };", "constant", "pid"},
	{"struct b { int x[sizeof(struct none)]; };", "unknown-type", "struct none"},
	{"struct b { int x[offsetof(struct b, x)]; };", "incomplete", "struct b"},
	{"struct b { int x[0x40000000]; };", "size", "0x40000000"},
	{"struct b { char x[1 << 29], y[1 << 29], z; };", "size", "struct b"},
	{"struct b { };", "size", "struct b"},
	{"struct b { int x[0]; };", "size", "struct b"},
	{"struct b { int x : 33; };", "range", "33"},
	{"struct b { int x : 0; };", "range", "0"},
	{"struct b { int x : -1; };", "range", "-1"},
	{"struct b { bool x : 2; };", "range", "2"},
	{"struct b { float x : 3; };", "type", "x"},
	{"struct b { char *x : 3; };", "type", "x"},
	{"enum b { X = 0xffffffffffffffff, Y };", "range", "Y"},
	{"enum b { X = 0xffffffffffffffff, Y = -1 };", "range", "enum b"},
	{"struct b { int x __attribute__((aligned(131072))); };", "range", "int"},
	{"extern void x;", "incomplete", "x"},
};

static void test_errors(void)
{
	struct world w;

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		const struct diag *d;

		world_init(&w, mistakes[i].text);
		if (w.diags.n_errors != 1) {
			struct buf b = {0};

			check_failures++;
			diags_text(&w.diags, &b);
			printf("%s: %zu messages:\n%s", mistakes[i].text, w.diags.n_errors,
				buf_text(&b));
			buf_release(&b);
		}
		d = w.diags.v.n ? &w.diags.v.v[0] : NULL;
		if (d) {
			const char *text = w.sources.v.v[0].text + d->place.from;

			if (strcmp(d->tag, mistakes[i].tag) ||
				strncmp(text, mistakes[i].at, strlen(mistakes[i].at))) {
				check_failures++;
				printf("%s: [%s] at '%.20s': %s\n", mistakes[i].text, d->tag, text,
					d->text);
			}
		}
		world_release(&w);
	}
}

static void test_several_scripts(void)
{
	static const char *const same = "struct item { int a; struct item *next; };\n"
					"enum color { RED, GREEN };\nbegin { exit(); }\n";
	static const char *const other = "struct item { int a; };\nbegin { exit(); }\n";
	struct world w;

	for (int i = 0; i < 2; i++) {
		const char *second = i ? other : same;

		memset(&w, 0, sizeof(w));
		sources_add(&w.sources, "one", (struct span){(const uint8_t *)same, strlen(same)});
		sources_add(
			&w.sources, "two", (struct span){(const uint8_t *)second, strlen(second)});
		world_declare(&w);
		CHECK_EQ(w.diags.n_errors, i);
		if (i && w.diags.v.n)
			CHECK_STR(w.diags.v.v[0].tag, "duplicate");
		world_release(&w);
	}
}

/* --- comparing, printing --------------------------------------------------------------------- */

static void test_layouts(void)
{
	static const struct {
		const char *text, *path; /* NULL: the same in both modes */
	} cases[] = {
		{"struct s { int a; short b; char c[3]; };", NULL},
		{"struct s { int64_t a; int64_t b; };", NULL},
		{"struct s { unsigned a : 3; int b : 20; float d[2]; };", NULL},
		{"struct s { int a; long b; };", "b"},
		{"struct s { int a; long long b; };", "b"},
		{"struct s { int a, b; struct { int x; char *next; } in; };", "in.next"},
		{"struct s { int a, b; struct { int x; char *next; }; };", "next"},
		{"struct s { int a; struct { int x; char *next; }; };", "x"},
		{"struct s { char *v[3]; };", "v"},
		{"struct s { long long a; int b; };", "b (padding behind it)"},
		{"struct s { int a; size_t b : 3; };", "b"},
		{"union s { int a; long long b; struct { long long x; int y; } c; };",
			"c.y (padding behind it)"},
	};
	struct world w;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf path = {0};
		bool is_same;

		world_init(&w, cases[i].text);
		is_same = type_is_same_layout(
			type_of(&w, MODE_32, "s"), type_of(&w, MODE_64, "s"), &path);
		CHECK_EQ(is_same, !cases[i].path);
		CHECK_STR(buf_text(&path), cases[i].path ? cases[i].path : "");
		CHECK_EQ(type_is_same_layout(
				 type_of(&w, MODE_32, "s"), type_of(&w, MODE_64, "s"), NULL),
			is_same);
		buf_release(&path);
		world_release(&w);
	}
}

static void test_same(void)
{
	struct types *a = types_new(MODE_64), *b = types_new(MODE_64);
	const struct type *of[2] = {types_int(a, 4, true), types_string(a, 16)};

	CHECK(types_pointer(a, types_char(a), SPACE_USER) ==
		types_pointer(a, types_char(a), SPACE_USER));
	CHECK(types_tuple(a, of, 2) == types_tuple(a, of, 2));
	CHECK(types_tuple(a, of, 1) != types_tuple(a, of, 2));
	CHECK(type_is_same(types_pointer(a, types_char(a), SPACE_USER),
		types_pointer(b, types_char(b), SPACE_USER)));
	CHECK(!type_is_same(types_pointer(a, types_char(a), SPACE_USER),
		types_pointer(b, types_char(b), SPACE_KERNEL)));
	CHECK(!type_is_same(types_int(a, 4, true), types_int(b, 4, false)));
	CHECK(type_is_same(types_int(a, 8, true), types_long(b, true)));
	CHECK(!type_is_same(types_string(a, 8), types_string(b, 16)));
	CHECK(!type_is_same(types_array(a, types_char(a), 3), types_array(b, types_char(b), 4)));
	CHECK(!type_is_same(types_aggregation(a, AGGREGATION_SUM, true),
		types_aggregation(b, AGGREGATION_SUM, false)));
	CHECK(!type_is_same(
		types_enum(a, "enum a", 4, false, NULL), types_enum(b, "enum b", 4, false, NULL)));
	CHECK_EQ(types_float(a, 10)->size, 16);
	types_free(a);
	types_free(b);
}

static void test_print(void)
{
	static const struct {
		const char *text, *printed;
	} cases[] = {
		{"typedef struct item *t;", "struct item *"},
		{"typedef unsigned long t;", "t"},
		{"typedef unsigned long *t;", "unsigned long *"},
		{"typedef char t[16];", "char[16]"},
		{"typedef int t[2][3];", "int[2][3]"},
		{"typedef int (*t)[3];", "int (*)[3]"},
		{"typedef char *t[3];", "char *[3]"},
		{"typedef int (*t)(char *, long, ...);", "int (*)(char *, long, ...)"},
		{"typedef void (*t[4])(void);", "void (*[4])(void)"},
		{"typedef struct { int a; } t;", "t"},
		{"typedef union { int a; } *t;", "union *"},
		{"typedef enum { RED } t;", "t"},
		{"typedef const char *const *t;", "char **"},
		{"typedef uint64_t *t;", "uint64 *"},
		{"typedef long double *t;", "long double *"},
		{"typedef bool *t;", "bool *"},
	};
	struct types *t = types_new(MODE_64);
	const struct type *of[2] = {types_int(t, 4, true), types_string(t, 16)};
	struct decl_type named = {.kind = DECL_NAMED, .name = "t"};
	struct world w;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		world_init(&w, cases[i].text);
		CHECK_STR(print(types_of_decl(w.types[MODE_64], &named, SPACE_USER, &w.diags)),
			cases[i].printed);
		CHECK_EQ(w.diags.n_errors, 0);
		world_release(&w);
	}
	CHECK_STR(print(types_tuple(t, of, 2)), "(int, string[16])");
	CHECK_STR(print(types_aggregation(t, AGGREGATION_HIST, false)), "hist()");
	CHECK_STR(print(types_special(t, TYPE_USTACK)), "ustack");
	types_free(t);
}

/* --- hostile declarations -------------------------------------------------------------------- */

static void test_hostile(void)
{
	struct decl_type top = {.kind = DECL_NAMED, .name = "t300"};
	struct buf text = {0};
	struct world w;

	/* Pointers that are nested through typedefs. */
	buf_put_cstr(&text, "typedef int t0;\n");
	for (int i = 1; i <= 300; i++)
		buf_printf(&text, "typedef t%d *t%d;\n", i - 1, i);
	world_init(&w, buf_text(&text));
	CHECK(w.diags.n_errors > 0);
	CHECK_STR(w.diags.v.v[0].tag, "nesting");
	CHECK(types_of_decl(w.types[MODE_32], &top, SPACE_USER, &w.diags)->kind == TYPE_BAD);
	world_release(&w);

	/* Unions of two unions of two unions; functions of two functions of two functions. */
	buf_reset(&text);
	buf_put_cstr(&text, "typedef union { int a; } u0; typedef void (*f0)(int);\n");
	for (int i = 1; i <= 60; i++)
		buf_printf(&text,
			"typedef union { u%d a, b; } u%d; typedef f%d (*f%d)(f%d, f%d);\n", i - 1,
			i, i - 1, i, i - 1, i - 1);
	world_init(&w, buf_text(&text));
	top.name = "u60";
	type_is_same_layout(types_of_decl(w.types[MODE_32], &top, SPACE_USER, &w.diags),
		types_of_decl(w.types[MODE_64], &top, SPACE_USER, &w.diags), NULL);
	type_is_same(types_of_decl(w.types[MODE_32], &top, SPACE_USER, &w.diags),
		types_of_decl(w.types[MODE_64], &top, SPACE_USER, &w.diags));
	top.name = "f30";
	CHECK(strlen(print(types_of_decl(w.types[MODE_64], &top, SPACE_USER, &w.diags))) < 100000);
	world_release(&w);

	/* Structures in structures. */
	buf_reset(&text);
	buf_put_cstr(&text, "typedef struct { int a; } s0;\n");
	for (int i = 1; i <= 300; i++)
		buf_printf(&text, "typedef struct { s%d a; } s%d;\n", i - 1, i);
	world_init(&w, buf_text(&text));
	CHECK_STR(w.diags.v.v[0].tag, "nesting");
	world_release(&w);

	/* A body inside the body of the same tag. */
	world_init(&w, "struct a { struct a { int x; } y; struct a *p; };");
	CHECK(w.diags.n_errors > 0);
	world_release(&w);
	buf_release(&text);
}

int main(void)
{
	static const struct test tests[] = {
		{"sizes and alignments follow the mode", test_modes},
		{"bit-fields lie where gcc puts them", test_bit_fields},
		{"fields of unnamed structures are found", test_unnamed},
		{"enums are as large as their values need", test_enums},
		{"names of every C program have the sizes of the mode", test_builtin_names},
		{"the script comes before the program, and that before the built-in names",
			test_sources},
		{"the kernel's structures are LP64 in both modes", test_kernel},
		{"each mistake is reported once, at its place", test_errors},
		{"two scripts may declare the same, but not something else", test_several_scripts},
		{"a layout that differs between the modes is named by its field", test_layouts},
		{"types are the same by their parts", test_same},
		{"types print as C", test_print},
		{"hostile declarations end in messages", test_hostile},
	};

	return RUN_TESTS(tests);
}
