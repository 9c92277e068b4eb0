/* SPDX-License-Identifier: MIT */
/*
 * Making types. Those that are the same whenever they are made (integers, pointers, arrays, values
 * of the language) are kept under a key of their parts and found again, so that they can often be
 * compared as pointers; structures and functions are new each time.
 */
#include "probe/types/type.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/types/type_store.h"

struct types *types_new(enum mode mode)
{
	struct types *t = mem_zalloc(sizeof(*t));

	t->mode = mode;
	t->space = SPACE_USER;
	t->arena = arena_new();
	return t;
}

void types_free(struct types *t)
{
	if (!t)
		return;
	types_free(t->kernel);
	intern_release(&t->made_keys);
	vec_release(&t->made);
	names_release(&t->tags);
	names_release(&t->names);
	map_release(&t->defined);
	arena_free(t->arena);
	free(t);
}

enum mode types_mode(const struct types *t)
{
	return t->mode;
}

void types_set_sources(struct types *t, const struct type_source *sources, size_t n)
{
	t->sources = sources;
	t->n_sources = n;
	if (t->kernel)
		types_set_sources(t->kernel, sources, n);
}

/* What tells a type from all others that are made once. All bytes count: it has no holes. */
struct made_key {
	const void *of;
	uint64_t n, size;
	uint32_t kind, flags, extra, reserved;
};
_Static_assert(sizeof(struct made_key) == sizeof(void *) + 32, "a hole has any bytes");

enum key_flags { KEY_SIGNED = 1, KEY_ENUM = 8 };

/* The type under a key with a name (or other bytes) behind it; new and empty when `created`. */
static struct type *made(
	struct types *t, struct made_key key, const void *tail, size_t tail_n, bool *created)
{
	struct buf bytes = {0};
	uint32_t id;

	buf_put(&bytes, &key, sizeof(key));
	if (tail_n)
		buf_put(&bytes, tail, tail_n);
	id = intern_bytes(&t->made_keys, bytes.p, bytes.n);
	buf_release(&bytes);
	*created = id == t->made.n;
	if (*created) {
		struct type *type = arena_zalloc(t->arena, sizeof(*type));

		type->kind = key.kind;
		type->size = key.size;
		type->align = 1;
		type->is_complete = true;
		vec_push(&t->made, type);
	}
	return t->made.v[id];
}

static const struct type *plain(struct types *t, enum type_kind kind, uint64_t n, uint64_t size)
{
	struct type *type;
	bool created;

	type = made(t, (struct made_key){.kind = kind, .n = n, .size = size}, NULL, 0, &created);
	if (created) {
		type->n = n;
		type->align = size >= 8 && kind != TYPE_STRING ? 8 : 1;
	}
	return type;
}

const struct type *types_bad(struct types *t)
{
	return plain(t, TYPE_BAD, 0, 0);
}

const struct type *types_void(struct types *t)
{
	return plain(t, TYPE_VOID, 0, 0);
}

const struct type *types_string(struct types *t, uint64_t n)
{
	return plain(t, TYPE_STRING, n, n);
}

const struct type *types_bytes(struct types *t, uint64_t n)
{
	return plain(t, TYPE_BYTES, n, 4 + n);
}

const struct type *types_special(struct types *t, enum type_kind kind)
{
	assert(kind >= TYPE_USTACK && kind <= TYPE_NAME);
	return plain(t, kind, 0, 8);
}

const struct type *types_stack(struct types *t, enum type_kind kind, uint32_t form)
{
	assert(kind == TYPE_USTACK || kind == TYPE_KSTACK);
	return plain(t, kind, form, 8);
}

/* --- numbers --------------------------------------------------------------------------------- */

/* System V i386: nothing of 8 bytes is aligned to more than 4 inside a structure, and that is the
 * only place where it matters here. */
static uint32_t natural_align(enum mode mode, uint64_t bytes)
{
	uint32_t max = mode == MODE_32 ? 4 : 16, align = 1;

	while (align * 2 <= bytes && align < max)
		align *= 2;
	return align;
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

const struct type *types_named_int(
	struct types *t, const char *name, uint32_t bytes, bool is_signed)
{
	static const char *const bools[] = {"bool", "_Bool", NULL};
	static const char *const chars[] = {"char", "signed char", "unsigned char", NULL};
	bool is_bool = bytes == 1 && is_one_of(name, bools);
	bool is_char = bytes == 1 && is_one_of(name, chars);
	struct type *type;
	bool created;

	type = made(t,
		(struct made_key){
			.kind = TYPE_INT, .size = bytes, .flags = is_signed ? KEY_SIGNED : 0},
		name, strlen(name), &created);
	if (created) {
		type->is_signed = is_signed && !is_bool;
		type->is_bool = is_bool;
		type->is_char = is_char;
		type->align = natural_align(t->mode, bytes);
		type->name = arena_strdup(t->arena, name);
	}
	return type;
}

const struct type *types_enum(
	struct types *t, const char *name, uint32_t bytes, bool is_signed, const char *enumerators)
{
	struct buf key = {0};
	struct type *type;
	bool created;

	buf_put(&key, name, strlen(name) + 1);
	if (enumerators)
		buf_put_cstr(&key, enumerators);
	type = made(t,
		(struct made_key){.kind = TYPE_INT,
			.size = bytes,
			.flags = KEY_ENUM | (is_signed ? KEY_SIGNED : 0)},
		key.p, key.n, &created);
	buf_release(&key);
	if (created) {
		type->is_signed = is_signed;
		type->is_enum = true;
		type->align = natural_align(t->mode, bytes);
		type->name = arena_strdup(t->arena, name);
		type->enumerators = enumerators ? arena_strdup(t->arena, enumerators) : NULL;
	}
	return type;
}

void type_add_enumerator(struct buf *text, const char *name, size_t n, int64_t value)
{
	if (text->n + n > TYPE_ENUMERATORS_MAX)
		return;
	buf_printf(text, "%s%.*s=%lld", text->n ? " " : "", (int)n, name, (long long)value);
}

const struct type *types_int(struct types *t, uint32_t bytes, bool is_signed)
{
	char name[24];

	if (bytes == 2)
		return types_named_int(t, is_signed ? "short" : "unsigned short", bytes, is_signed);
	if (bytes == 4)
		return types_named_int(t, is_signed ? "int" : "unsigned int", bytes, is_signed);
	snprintf(name, sizeof(name), "%sint%u", is_signed ? "" : "u", bytes * 8);
	return types_named_int(t, name, bytes, is_signed);
}

const struct type *types_char(struct types *t)
{
	return types_named_int(t, "char", 1, true);
}

const struct type *types_bool(struct types *t)
{
	return types_named_int(t, "bool", 1, false);
}

const struct type *types_long(struct types *t, bool is_signed)
{
	return types_named_int(
		t, is_signed ? "long" : "unsigned long", t->mode == MODE_32 ? 4 : 8, is_signed);
}

const struct type *types_float(struct types *t, uint32_t bytes)
{
	uint32_t size = bytes <= 8 ? bytes : t->mode == MODE_32 ? 12 : 16;
	struct type *type;
	bool created;

	type = made(t, (struct made_key){.kind = TYPE_FLOAT, .size = size}, NULL, 0, &created);
	if (created) {
		type->is_signed = true;
		type->align = natural_align(t->mode, size);
		type->name = size == 4 ? "float" : size == 8 ? "double" : "long double";
	}
	return type;
}

/* --- made of other types --------------------------------------------------------------------- */

const struct type *types_pointer(struct types *t, const struct type *to, enum space space)
{
	uint32_t bytes = space == SPACE_USER && t->mode == MODE_32 ? 4 : 8;
	/* A structure is not walked through a pointer: its own depth does not count. */
	uint8_t depth = to->kind == TYPE_STRUCT ? 1 : (uint8_t)(to->depth + 1);
	struct type *type;
	bool created;

	if (depth > TYPE_DEPTH_MAX)
		return types_bad(t);
	type = made(t,
		(struct made_key){.kind = TYPE_POINTER, .of = to, .size = bytes, .extra = space},
		NULL, 0, &created);
	if (created) {
		type->of = to;
		type->space = space;
		type->align = bytes;
		type->depth = depth;
	}
	return type;
}

const struct type *types_array(struct types *t, const struct type *of, uint64_t n)
{
	struct type *type;
	uint64_t size;
	bool created;

	if (of->depth >= TYPE_DEPTH_MAX || __builtin_mul_overflow(of->size, n, &size))
		return types_bad(t);
	type = made(t, (struct made_key){.kind = TYPE_ARRAY, .of = of, .n = n, .size = size}, NULL,
		0, &created);
	if (created) {
		type->of = of;
		type->n = n;
		type->align = of->align;
		type->depth = (uint8_t)(of->depth + 1);
	}
	return type;
}

const struct type *types_tuple(struct types *t, const struct type *const *of, size_t n)
{
	struct type_field *fields = mem_zalloc((n ? n : 1) * sizeof(*fields));
	const struct type *type;

	for (size_t i = 0; i < n; i++)
		fields[i].type = of[i];
	type = types_record(t, fields, n);
	free(fields);
	return type;
}

/* As C lays a structure out: the size is what sizeof says, values are kept otherwise (lower_store.c). */
static uint64_t place_fields(struct type_field *fields, size_t n, uint32_t *align)
{
	uint64_t size = 0;

	*align = 1;
	for (size_t i = 0; i < n; i++) {
		uint32_t a = fields[i].type->align ? fields[i].type->align : 1;

		fields[i].offset = (size + a - 1) / a * a;
		size = fields[i].offset + fields[i].type->size;
		*align = a > *align ? a : *align;
	}
	return (size + *align - 1) / *align * *align;
}

const struct type *types_record(struct types *t, const struct type_field *fields, size_t n)
{
	struct type_field *copy = arena_zalloc(t->arena, (n ? n : 1) * sizeof(*copy));
	struct buf key = {0};
	struct type *type;
	bool created;
	uint32_t align;
	uint64_t size;
	uint8_t depth = 0;

	for (size_t i = 0; i < n; i++) {
		copy[i].type = fields[i].type;
		copy[i].name = fields[i].name ? arena_strdup(t->arena, fields[i].name) : NULL;
		buf_put(&key, &fields[i].type, sizeof(fields[i].type));
		if (copy[i].type->depth > depth)
			depth = copy[i].type->depth;
	}
	for (size_t i = 0; i < n && copy[i].name; i++)
		buf_put(&key, copy[i].name, strlen(copy[i].name) + 1);
	size = place_fields(copy, n, &align);
	if (depth >= TYPE_DEPTH_MAX) {
		buf_release(&key);
		return types_bad(t);
	}
	type = made(t, (struct made_key){.kind = TYPE_TUPLE, .n = n, .size = size}, key.p, key.n,
		&created);
	buf_release(&key);
	if (created) {
		type->fields = copy;
		type->n_fields = (uint32_t)n;
		type->align = align;
		type->depth = (uint8_t)(depth + 1);
	}
	return type;
}

uint32_t type_tuple_find(const struct type *tuple, const char *name, uint32_t i)
{
	if (!name)
		return i;
	for (i = 0; i < tuple->n_fields; i++)
		if (name_is_same(tuple->fields[i].name, name))
			break;
	return i;
}

const struct type *types_aggregation(struct types *t, enum aggregation a, bool is_signed)
{
	struct type *type;
	bool created;

	type = made(t,
		(struct made_key){.kind = TYPE_AGGREGATION,
			.size = 8,
			.extra = a,
			.flags = is_signed ? KEY_SIGNED : 0},
		NULL, 0, &created);
	if (created) {
		type->aggregation = a;
		type->is_signed = is_signed;
		type->align = 8;
	}
	return type;
}

struct type *types_new_struct(struct types *t, const char *name, bool is_union)
{
	struct type *s = arena_zalloc(t->arena, sizeof(*s));

	s->kind = TYPE_STRUCT;
	s->is_union = is_union;
	s->align = 1;
	s->name = name ? arena_strdup(t->arena, name) : NULL;
	return s;
}

/* The fields, with names copied; those that are nested too deeply become TYPE_BAD. */
static void copy_fields(
	struct types *t, struct type *type, const struct type_field *fields, uint32_t n)
{
	struct type_field *copy = arena_zalloc(t->arena, (n ? n : 1) * sizeof(*copy));
	uint8_t depth = 0;

	for (uint32_t i = 0; i < n; i++) {
		copy[i] = fields[i];
		if (fields[i].name)
			copy[i].name = arena_strdup(t->arena, fields[i].name);
		if (copy[i].type->depth >= TYPE_DEPTH_MAX)
			copy[i].type = types_bad(t);
		if (copy[i].type->depth > depth)
			depth = copy[i].type->depth;
	}
	type->fields = copy;
	type->n_fields = n;
	type->depth = (uint8_t)(depth + 1);
}

void types_fill_struct(struct types *t, struct type *s, const struct type_field *fields,
	uint32_t n_fields, uint64_t size, uint32_t align)
{
	assert(s->kind == TYPE_STRUCT && !s->is_complete);
	copy_fields(t, s, fields, n_fields);
	s->size = size;
	s->align = align ? align : 1;
	s->is_complete = true;
}

const struct type *types_new_function(struct types *t, const struct type *returns,
	const struct type_field *parameters, uint32_t n, bool is_variadic)
{
	struct type *f = arena_zalloc(t->arena, sizeof(*f));

	f->kind = TYPE_FUNCTION;
	f->of = returns->depth >= TYPE_DEPTH_MAX ? types_bad(t) : returns;
	f->is_variadic = is_variadic;
	f->is_complete = true;
	f->align = 1;
	copy_fields(t, f, parameters, n);
	if (f->of->depth >= f->depth)
		f->depth = (uint8_t)(f->of->depth + 1);
	return f;
}
