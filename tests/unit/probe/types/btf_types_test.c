/* SPDX-License-Identifier: MIT */
/* BTF made by hand, of every kind; then that of the kernel that runs the test. */
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "check.h"
#include "probe/types/btf_types.h"

enum { INT = 1, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT };
enum { FUNC = 12, FUNC_PROTO, VAR, DATASEC, FLOAT, DECL_TAG, TYPE_TAG, ENUM64 };
#define FLAG 0x80000000u

struct maker {
	struct buf types, texts, all;
	uint32_t n; /* records */
};

static uint32_t text(struct maker *m, const char *s)
{
	uint32_t at;

	if (!m->texts.n)
		buf_put_u8(&m->texts, 0);
	if (!s[0])
		return 0;
	at = (uint32_t)m->texts.n;
	buf_put(&m->texts, s, strlen(s) + 1);
	return at;
}

/* A record; what follows is put behind it. Returns its id. */
static uint32_t record(struct maker *m, const char *name, uint32_t kind_and_n, uint32_t size)
{
	buf_put_u32(&m->types, text(m, name));
	buf_put_u32(&m->types, kind_and_n);
	buf_put_u32(&m->types, size);
	return ++m->n;
}

static void words(struct maker *m, uint32_t a, uint32_t b, uint32_t c)
{
	buf_put_u32(&m->types, a);
	buf_put_u32(&m->types, b);
	buf_put_u32(&m->types, c);
}

static void member(struct maker *m, const char *name, uint32_t type, uint32_t place)
{
	words(m, text(m, name), type, place);
}

static uint32_t make_int(
	struct maker *m, const char *name, uint32_t size, uint32_t encoding, uint32_t bits)
{
	uint32_t id = record(m, name, INT << 24, size);

	buf_put_u32(&m->types, encoding << 24 | bits);
	return id;
}

static struct span finish(struct maker *m)
{
	text(m, "");
	buf_put_u16(&m->all, 0xeb9f);
	buf_put_u16(&m->all, 1); /* version; no flags */
	buf_put_u32(&m->all, 24);
	buf_put_u32(&m->all, 0);
	buf_put_u32(&m->all, (uint32_t)m->types.n);
	buf_put_u32(&m->all, (uint32_t)m->types.n);
	buf_put_u32(&m->all, (uint32_t)m->texts.n);
	buf_put(&m->all, m->types.p, m->types.n);
	buf_put(&m->all, m->texts.p, m->texts.n);
	return buf_span(&m->all);
}

struct world {
	struct maker maker;
	struct types *types;
	struct btf_types *btf;
	struct type_source source;
	struct err err;
};

static bool world_open(struct world *w)
{
	w->types = types_new(MODE_64);
	if (btf_types_open(w->types, finish(&w->maker), &w->btf, &w->err) < 0)
		return false;
	w->source = btf_types_source(w->btf);
	return true;
}

static void world_close(struct world *w)
{
	btf_types_close(w->btf);
	types_free(w->types);
	buf_release(&w->maker.types);
	buf_release(&w->maker.texts);
	buf_release(&w->maker.all);
}

static const struct type *named(struct world *w, const char *word, const char *name)
{
	return w->source.named(w->source.ctx, word, name);
}

static bool field_reads(const struct type *s, const char *name, const char *expected)
{
	struct type_field f;
	struct buf out = {0};
	bool is_equal;

	if (!s || !type_find_field(s, name, &f))
		return false;
	type_print(f.type, &out);
	is_equal = !strcmp(buf_text(&out), expected);
	if (!is_equal)
		printf("%s reads '%s'\n", name, buf_text(&out));
	buf_release(&out);
	return is_equal;
}

static void every_kind_of_type_is_made(void)
{
	struct world w = {0};
	struct maker *m = &w.maker;
	uint32_t i32 = make_int(m, "int", 4, 1, 32), ch = make_int(m, "char", 1, 1, 8);
	uint32_t flag = make_int(m, "_Bool", 1, 4, 8), wide, text16, self, color, big, real;
	uint32_t tagged, user, inner, constant;
	const struct type *s;
	struct type_field f;

	wide = make_int(m, "long unsigned int", 8, 0, 64);
	text16 = record(m, "", ARRAY << 24, 0);
	words(m, ch, i32, 16);
	color = record(m, "color", ENUM << 24 | 1 | FLAG, 4);
	buf_put_u32(&m->types, text(m, "RED"));
	buf_put_u32(&m->types, UINT32_MAX);
	big = record(m, "big", ENUM64 << 24 | 1, 8);
	words(m, text(m, "BIG"), 1, 1);
	real = record(m, "double", FLOAT << 24, 8);
	tagged = record(m, "user", TYPE_TAG << 24, ch);
	user = record(m, "", PTR << 24, tagged);
	inner = record(m, "", UNION << 24 | 2, 8);
	member(m, "as_int", i32, 0);
	member(m, "as_real", real, 0);
	constant = record(m, "", CONST << 24, wide);
	self = record(m, "", PTR << 24, m->n + 2);
	record(m, "item", STRUCT << 24 | 9, 80);
	member(m, "self", self, 0);
	member(m, "text", text16, 64);
	member(m, "", inner, 192);
	member(m, "color", color, 256);
	member(m, "big", big, 320);
	member(m, "yes", flag, 384);
	member(m, "from", user, 448);
	member(m, "wide", constant, 512);
	member(m, "last", i32, 576);
	CHECK(world_open(&w));
	s = named(&w, "struct", "item");
	CHECK(s && s->is_complete && s->size == 80 && s->n_fields == 9);
	CHECK_STR(s->name, "struct item");
	CHECK(type_find_field(s, "self", &f) && f.type->of == s && f.type->space == SPACE_KERNEL);
	CHECK_EQ(f.type->size, 8);
	CHECK(field_reads(s, "text", "char[16]"));
	CHECK(type_find_field(s, "as_real", &f) && f.offset == 24 && f.type->kind == TYPE_FLOAT);
	CHECK(type_find_field(s, "color", &f) && f.type->is_enum && f.type->is_signed);
	CHECK(type_find_field(s, "big", &f) && f.type->is_enum && f.type->size == 8);
	CHECK(type_find_field(s, "yes", &f) && f.type->is_bool);
	CHECK(type_find_field(s, "from", &f) && f.type->space == SPACE_USER);
	CHECK(field_reads(s, "wide", "unsigned long"));
	CHECK(named(&w, "enum", "color") && named(&w, "enum", "big"));
	CHECK(named(&w, "", "int") && !named(&w, "", "item") && !named(&w, "union", "item"));
	world_close(&w);
}

static void bit_fields_of_both_kinds_are_placed(void)
{
	struct world w = {0};
	struct maker *m = &w.maker;
	uint32_t u32 = make_int(m, "unsigned int", 4, 0, 32), old;
	struct type_field f;

	record(m, "flagged", STRUCT << 24 | 2 | FLAG, 8);
	member(m, "low", u32, 3u << 24 | 0);
	member(m, "high", u32, 7u << 24 | 37);
	old = make_int(m, "", 4, 0, 5); /* an integer of 5 bits */
	record(m, "old", STRUCT << 24 | 2, 4);
	member(m, "five", old, 11);
	member(m, "whole", u32, 0);
	CHECK(world_open(&w));
	CHECK(type_find_field(named(&w, "struct", "flagged"), "low", &f));
	CHECK(f.offset == 0 && f.bit_offset == 0 && f.bit_size == 3);
	CHECK(type_find_field(named(&w, "struct", "flagged"), "high", &f));
	CHECK(f.offset == 4 && f.bit_offset == 5 && f.bit_size == 7);
	CHECK(type_find_field(named(&w, "struct", "old"), "five", &f));
	CHECK(f.offset == 1 && f.bit_offset == 3 && f.bit_size == 5);
	CHECK(type_find_field(named(&w, "struct", "old"), "whole", &f) && !f.bit_size);
	world_close(&w);
}

static void structures_behind_pointers_wait_until_they_are_asked_for(void)
{
	struct world w = {0};
	struct maker *m = &w.maker;
	uint32_t i32 = make_int(m, "int", 4, 1, 32), unnamed;
	const struct type *s;
	struct type_field f;

	record(m, "", PTR << 24, 3);
	record(m, "there", STRUCT << 24 | 1, 4);
	member(m, "x", i32, 0);
	unnamed = record(m, "", STRUCT << 24 | 1, 4);
	member(m, "y", i32, 0);
	record(m, "", PTR << 24, unnamed);
	record(m, "here", STRUCT << 24 | 2, 16);
	member(m, "there", 2, 0);
	member(m, "unnamed", 5, 64);
	CHECK(world_open(&w));
	s = named(&w, "struct", "here");
	CHECK(type_find_field(s, "there", &f) && !f.type->of->is_complete);
	CHECK(named(&w, "struct", "there") == f.type->of && f.type->of->is_complete);
	CHECK(type_find_field(s, "unnamed", &f) && f.type->of->is_complete);
	world_close(&w);
}

static void functions_are_found_by_name(void)
{
	struct world w = {0};
	struct maker *m = &w.maker;
	uint32_t i32 = make_int(m, "int", 4, 1, 32), proto, id;
	const struct type *f;

	proto = record(m, "", FUNC_PROTO << 24 | 2, i32);
	buf_put_u32(&m->types, text(m, "count"));
	buf_put_u32(&m->types, i32);
	buf_put_u64(&m->types, 0); /* ... */
	id = record(m, "do_it", FUNC << 24 | 1, proto);
	CHECK(world_open(&w));
	f = w.source.function(w.source.ctx, "do_it");
	CHECK(f && f->kind == TYPE_FUNCTION && f->is_variadic && f->n_fields == 1);
	CHECK_STR(f->fields[0].name, "count");
	CHECK_EQ(btf_types_function_id(w.btf, "do_it"), id);
	CHECK_EQ(btf_types_function_id(w.btf, "int"), 0);
	CHECK(!w.source.function(w.source.ctx, "int"));
	world_close(&w);
}

static void damage_is_refused_with_a_sentence(void)
{
	struct world w = {0};
	struct btf_types *b = NULL;
	struct err err = {0};
	struct span all;

	make_int(&w.maker, "int", 4, 1, 32);
	record(&w.maker, "odd", 31u << 24, 0);
	all = finish(&w.maker);
	CHECK(btf_types_open(NULL, all, &b, &err) == ERR_FORMAT && strstr(err.text, "type 2"));
	for (size_t n = 0; n < all.n; n++)
		CHECK(btf_types_open(NULL, (struct span){all.p, n}, &b, &err) == ERR_FORMAT);
	CHECK(!b);
	world_close(&w);
}

static void types_that_contain_themselves_do_no_harm(void)
{
	struct world w = {0};
	struct maker *m = &w.maker;
	const struct type *s;
	struct type_field f;

	record(m, "snake", STRUCT << 24 | 2, 8); /* its first member is unnamed and itself */
	member(m, "", 1, 0);
	member(m, "tail", 2, 0);
	record(m, "loop", TYPEDEF << 24, 2);
	CHECK(world_open(&w));
	s = named(&w, "struct", "snake");
	CHECK(s && !type_find_field(s, "head", &f));
	CHECK_EQ(btf_types_offset(w.btf, "snake", "head"), -1);
	CHECK_EQ(btf_types_offset(w.btf, "snake", "tail"), 0);
	CHECK(named(&w, "", "loop") && named(&w, "", "loop")->kind == TYPE_VOID);
	world_close(&w);
}

static void count_function(void *ctx, const char *module, const char *name)
{
	int *n = ctx;

	CHECK_STR(module, "");
	*n += !strcmp(name, "vfs_read") || !strcmp(name, "do_exit");
}

static void the_running_kernel_has_what_it_promises(void)
{
	struct types *types = types_new(MODE_64);
	struct file_map map = {0};
	struct btf_types *b = NULL;
	struct type_source source;
	struct type_field f;
	struct err err;
	int n = 0;

	if (file_map_open(&map, BTF_VMLINUX, &err) < 0) {
		types_free(types);
		printf("not checked: %s\n", err.text);
		return;
	}
	CHECK(btf_types_open(types, map.bytes, &b, &err) == 0);
	source = btf_types_source(b);
	CHECK(field_reads(source.named(source.ctx, "struct", "task_struct"), "comm", "char[16]"));
	CHECK(type_find_field(source.named(source.ctx, "struct", "task_struct"), "pid", &f));
	CHECK_EQ(btf_types_offset(b, "task_struct", "pid"), f.offset);
	CHECK_EQ(source.named(source.ctx, "struct", "list_head")->size, 16);
	CHECK_EQ(btf_types_offset(b, "list_head", "prev"), 8);
	CHECK(btf_types_offset(b, "thread_info", "status") >= 0);
	CHECK_EQ(btf_types_offset(b, "task_struct", "thread_info.status"),
		btf_types_offset(b, "task_struct", "thread_info") +
			btf_types_offset(b, "thread_info", "status"));
	CHECK_EQ(btf_types_offset(b, "task_struct", "no.such.field"), -1);
	CHECK_EQ(btf_types_offset(b, "no_such_struct", "x"), -1);
	btf_types_each_function(b, count_function, &n);
	CHECK(n >= 2);
	btf_types_close(b);
	file_map_release(&map);
	types_free(types);
}

int main(void)
{
	static const struct test tests[] = {
		{"every kind of type is made", every_kind_of_type_is_made},
		{"bit-fields of both kinds are placed", bit_fields_of_both_kinds_are_placed},
		{"structures behind pointers wait until they are asked for",
			structures_behind_pointers_wait_until_they_are_asked_for},
		{"functions are found by name", functions_are_found_by_name},
		{"damage is refused with a sentence", damage_is_refused_with_a_sentence},
		{"types that contain themselves do no harm",
			types_that_contain_themselves_do_no_harm},
		{"the running kernel has what it promises",
			the_running_kernel_has_what_it_promises},
	};

	return RUN_TESTS(tests);
}
