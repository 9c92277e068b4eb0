/* SPDX-License-Identifier: MIT */
/*
 * Everything in the kernel leads to everything else by pointers, so structures behind pointers are
 * left without fields as long as nobody asks for them: their names find them again. The exceptions
 * get their fields at once: structures without a name, and those that share their name with an
 * earlier one (two files of the kernel may each have their own `struct foo`).
 */
#include "probe/types/btf_type_build.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "probe/types/source_types.h"

#define DEPTH_MAX      64   /* types inside types */
#define WAITING_MAX    4096 /* structures without a name, behind pointers, of one look-up */
#define PARAMETERS_MAX 256
#define SIZE_MAX_BYTES ((uint64_t)1 << 40) /* of a type */

enum { INT_SIGNED = 1, INT_BOOL = 4 };

static const struct type *type_of(
	struct btf_builder *b, uint32_t id, const char *alias, bool is_by_value);

void btf_builder_release(struct btf_builder *b)
{
	map_release(&b->made);
	map_release(&b->filled);
	vec_release(&b->waiting);
}

static const struct type *int_type(struct btf_builder *b, const struct btf_record *r)
{
	uint32_t encoding = btf_word(r->rest, 0) >> 24 & 0xf;

	if ((encoding & INT_BOOL) && r->size == 1)
		return types_named_int(b->types, "bool", 1, false);
	return source_int(b->types, r->name, strlen(r->name), r->size, encoding & INT_SIGNED);
}

/* "RED=0 GREEN=5" */
static void put_enumerators(struct btf_builder *b, const struct btf_record *r, struct buf *out)
{
	size_t bytes = r->kind == BTF_ENUM64 ? 12 : 8;

	for (uint32_t i = 0; i < r->n; i++) {
		struct cursor c = cursor_of((struct span){r->rest + i * bytes, bytes});
		const char *name = btf_data_text(b->data, cursor_u32(&c));
		uint32_t low = cursor_u32(&c);
		int64_t value = r->flag ? (int32_t)low : (int64_t)low;

		if (r->kind == BTF_ENUM64)
			value = (int64_t)((uint64_t)cursor_u32(&c) << 32 | low);
		type_add_enumerator(out, name, strlen(name), value);
	}
}

static const struct type *enum_type(
	struct btf_builder *b, const struct btf_record *r, const char *alias)
{
	struct buf name = {0}, enumerators = {0};
	const struct type *type;

	if (!type_is_int_size(r->size))
		return types_bad(b->types);
	if (r->name[0])
		buf_printf(&name, "enum %s", r->name);
	else
		buf_put_cstr(&name, alias ? alias : "enum");
	put_enumerators(b, r, &enumerators);
	type = types_enum(b->types, buf_text(&name), r->size, r->flag,
		enumerators.n ? buf_text(&enumerators) : NULL);
	buf_release(&enumerators);
	buf_release(&name);
	return type;
}

static const struct type *float_type(struct btf_builder *b, const struct btf_record *r)
{
	if (r->size == 4 || r->size == 8)
		return types_float(b->types, r->size);
	return source_bytes(b->types, r->size);
}

static bool read_field(struct btf_builder *b, const struct btf_member *m, struct type_field *f)
{
	if (m->bits > 64)
		return false;
	*f = (struct type_field){.name = m->name[0] ? m->name : NULL,
		.type = type_of(b, m->type, NULL, true),
		.offset = m->bit / 8,
		.bit_offset = m->bits ? m->bit % 8 : 0,
		.bit_size = (uint8_t)m->bits};
	if (!source_is_whole(f->type))
		f->type = types_bad(b->types);
	return true;
}

/* Reads the fields of a structure unless that was done. */
static void fill(struct btf_builder *b, uint32_t id, const struct btf_record *r, struct type *s)
{
	VEC(struct type_field) fields = {0};
	struct type_field f;
	bool is_new;

	if (r->kind == BTF_FWD || b->depth >= DEPTH_MAX)
		return;
	map_ensure(&b->filled, id, &is_new);
	if (!is_new)
		return;
	b->depth++;
	for (uint32_t i = 0; i < r->n; i++) {
		struct btf_member m = btf_data_member(b->data, r, i);

		if (read_field(b, &m, &f))
			vec_push(&fields, f);
	}
	b->depth--;
	types_fill_struct(b->types, s, fields.v, (uint32_t)fields.n, r->size,
		source_fields_align(fields.v, fields.n, r->size));
	vec_release(&fields);
}

static struct type *new_struct(struct btf_builder *b, const struct btf_record *r, const char *alias)
{
	bool is_union = r->kind == BTF_UNION || (r->kind == BTF_FWD && r->flag);
	struct buf name = {0};
	struct type *s;

	if (r->name[0])
		buf_printf(&name, "%s %s", is_union ? "union" : "struct", r->name);
	else if (alias)
		buf_put_cstr(&name, alias);
	s = types_new_struct(b->types, name.n ? buf_text(&name) : NULL, is_union);
	buf_release(&name);
	s->space = b->is_handed ? SPACE_USER : SPACE_KERNEL;
	/* Arrays of it may be made before its fields are read. */
	if (r->kind != BTF_FWD)
		s->size = r->size;
	return s;
}

static const struct type *struct_type(
	struct btf_builder *b, uint32_t id, const char *alias, bool is_by_value)
{
	struct btf_record r = btf_data_get(b->data, id);
	uint64_t *place;
	struct type *s;
	bool is_new;

	if (r.kind == BTF_FWD) { /* perhaps another file of the kernel has it whole */
		uint32_t full = btf_data_find(b->data, r.flag ? BTF_UNION : BTF_STRUCT, r.name);

		if (full) {
			id = full;
			r = btf_data_get(b->data, id);
		}
	}
	place = map_ensure(&b->made, id, &is_new);
	if (is_new)
		*place = (uintptr_t)new_struct(b, &r, alias);
	s = (struct type *)(uintptr_t)*place; /* the map may move while fields are read */
	if (is_by_value)
		fill(b, id, &r, s);
	else if (is_new && r.kind != BTF_FWD && b->waiting.n < WAITING_MAX &&
		 (!r.name[0] || btf_data_find(b->data, r.kind, r.name) != id))
		vec_push(&b->waiting, id);
	return s;
}

static const struct type *pointer_type(struct btf_builder *b, const struct btf_record *r)
{
	struct btf_record to = btf_data_get(b->data, r->size);
	enum space space = SPACE_KERNEL;

	/* __user, in kernels that keep it. Pointers of programs of 32 bits are numbers of 4 bytes. */
	if (b->is_handed && types_mode(b->types) == MODE_64)
		space = SPACE_USER;
	if (to.kind == BTF_TYPE_TAG && !strcmp(to.name, "user") && types_mode(b->types) == MODE_64)
		space = SPACE_USER;
	return types_pointer(b->types, type_of(b, r->size, NULL, false), space);
}

static const struct type *array_type(struct btf_builder *b, const struct btf_record *r)
{
	const struct type *of = type_of(b, btf_word(r->rest, 0), NULL, true);
	uint32_t n = btf_word(r->rest, 2);

	if (of->size && n > SIZE_MAX_BYTES / of->size)
		return types_bad(b->types);
	return types_array(b->types, of, n);
}

static const struct type *function_type(struct btf_builder *b, const struct btf_record *r)
{
	struct type_field *parameters = mem_calloc(PARAMETERS_MAX, sizeof(*parameters));
	const struct type *returns = type_of(b, r->size, NULL, false), *type;
	bool is_variadic = false;
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n && n < PARAMETERS_MAX; i++) {
		const char *name = btf_data_text(b->data, btf_word(r->rest, i * 2));
		uint32_t id = btf_word(r->rest, i * 2 + 1);

		if (!id) {
			is_variadic = true;
			break;
		}
		parameters[n++] = (struct type_field){
			.name = name[0] ? name : NULL, .type = type_of(b, id, NULL, false)};
	}
	type = types_new_function(b->types, returns, parameters, n, is_variadic);
	free(parameters);
	return type;
}

static const struct type *make_type(struct btf_builder *b, uint32_t id, const char *alias)
{
	struct btf_record r = btf_data_get(b->data, id);

	switch (r.kind) {
	case BTF_INT:
		return int_type(b, &r);
	case BTF_ENUM:
	case BTF_ENUM64:
		return enum_type(b, &r, alias);
	case BTF_FLOAT:
		return float_type(b, &r);
	case BTF_PTR:
		return pointer_type(b, &r);
	case BTF_ARRAY:
		return array_type(b, &r);
	case BTF_FUNC_PROTO:
		return function_type(b, &r);
	case BTF_FUNC:
		return type_of(b, r.size, NULL, false);
	default: /* void, and what is no type */
		return types_void(b->types);
	}
}

/* The name of the typedef that is nearest to the type, to which `id` is known to lead. */
static const char *alias_of(struct btf_builder *b, uint32_t id)
{
	uint32_t end = btf_data_strip(b->data, id);
	const char *alias = NULL;

	while (id != end) {
		struct btf_record r = btf_data_get(b->data, id);

		if (r.kind == BTF_TYPEDEF)
			alias = r.name;
		id = r.size;
	}
	return alias;
}

static const struct type *type_of(
	struct btf_builder *b, uint32_t id, const char *alias, bool is_by_value)
{
	uint32_t stripped = btf_data_strip(b->data, id);
	enum btf_kind kind = btf_data_get(b->data, stripped).kind;
	const struct type *type;
	const uint64_t *known;

	if (!stripped)
		return types_void(b->types);
	if (stripped != id && !alias)
		alias = alias_of(b, id);
	if (kind == BTF_STRUCT || kind == BTF_UNION || kind == BTF_FWD)
		return struct_type(b, stripped, alias, is_by_value);
	known = map_find(&b->made, stripped);
	if (known)
		return (const struct type *)(uintptr_t)*known;
	if (b->depth >= DEPTH_MAX)
		return types_bad(b->types);
	b->depth++;
	type = make_type(b, stripped, alias);
	b->depth--;
	*map_ensure(&b->made, stripped, NULL) = (uintptr_t)type;
	return type;
}

const struct type *btf_build_type(struct btf_builder *b, uint32_t id)
{
	const struct type *type = type_of(b, id, NULL, true);

	for (size_t i = 0; i < b->waiting.n; i++)
		struct_type(b, b->waiting.v[i], NULL, true);
	b->waiting.n = 0;
	return type;
}
