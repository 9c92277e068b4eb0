/* SPDX-License-Identifier: MIT */
/* Canonical shapes of types, and back. */
#include <stdlib.h>
#include <string.h>

#include "probe/compile/checker.h"

/* A structure or array whose shape is being made. */
struct shaping {
	struct check_session *session;
	struct place place;
	uint32_t n_fields; /* so far, those of structures inside too */
};

typedef VEC(struct shape_field) field_list;

static struct shape *struct_shape(struct shaping *s, const struct type *type);

/* Of a number; NULL for other types, and for long double. */
static struct shape *number_shape(struct arena *a, const struct type *type)
{
	struct shape *shape;

	if (type->kind == TYPE_INT) {
		shape = shape_new(a, SHAPE_INT, type->is_signed, 0);
		shape->is_bool = type->is_bool;
		if (type->enumerators)
			shape->enumerators = arena_strdup(a, type->enumerators);
		return shape;
	}
	if (type->kind == TYPE_POINTER)
		return shape_new(a, SHAPE_POINTER, false, 0);
	if (type->kind == TYPE_FLOAT && (type->size == 4 || type->size == 8))
		return shape_new(a, SHAPE_FLOAT, true, (uint32_t)type->size);
	return NULL;
}

/* The shape of something inside a structure: as it is in memory, not widened. */
static struct shape *member_shape(struct shaping *s, const struct type *type)
{
	struct arena *a = s->session->stream->arena;
	struct shape *number = number_shape(a, type);
	struct type byte = {.kind = TYPE_INT, .size = 1, .align = 1};
	struct type bytes = {.kind = TYPE_ARRAY, .of = &byte, .n = type->size, .size = type->size};

	if (number)
		return number;
	/* long double: nothing prints it, its bytes are shown. */
	if (type->kind == TYPE_FLOAT)
		return struct_shape(s, &bytes);
	if (type->kind == TYPE_ARRAY && type->of->is_char)
		return shape_new(a, SHAPE_STRING, false, (uint32_t)type->n);
	if (type->kind == TYPE_ARRAY || type->kind == TYPE_STRUCT)
		return struct_shape(s, type);
	return shape_new(a, SHAPE_INT, false, 0);
}

/* A field, or without a name an element; `out` has the name and the place. */
static bool add_field(
	struct shaping *s, field_list *list, const struct type *type, struct shape_field out)
{
	if (++s->n_fields > CHECK_FIELDS_MAX)
		return diag_error(s->session->diags, s->place, "size",
			out.name ? "a structure with more than %d fields and elements"
				 : "an array with more than %d elements",
			CHECK_FIELDS_MAX);
	out.shape = member_shape(s, type);
	if (out.shape && out.bit_size && s->session->stream->like == STREAM_LIKE_0_17) {
		out.shape = shape_copy(s->session->stream->arena, out.shape);
		out.shape->is_signed = false;
	}
	if (type_is_scalar(type) || type->kind == TYPE_FLOAT)
		out.bytes = (uint8_t)type->size;
	if (out.shape)
		vec_push(list, out);
	return out.shape != NULL;
}

/* Fields of an unnamed structure are fields of the one around it. */
static bool add_members(struct shaping *s, field_list *list, const struct type *type, uint64_t base)
{
	for (uint32_t i = 0; i < type->n_fields; i++) {
		const struct type_field *f = &type->fields[i];
		struct shape_field out = {.offset = (uint32_t)(base + f->offset),
			.bit_offset = f->bit_offset,
			.bit_size = f->bit_size};

		if (!f->name && f->type->kind == TYPE_STRUCT) {
			if (!add_members(s, list, f->type, base + f->offset))
				return false;
			continue;
		}
		if (!f->name || (f->type->kind == TYPE_ARRAY && !f->type->n))
			continue; /* padding; a flexible array has no size */
		out.name = arena_strdup(s->session->stream->arena, f->name);
		if (!add_field(s, list, f->type, out))
			return false;
	}
	return true;
}

static bool add_elements(struct shaping *s, field_list *list, const struct type *type)
{
	for (uint64_t i = 0; i < type->n; i++) {
		struct shape_field out = {.offset = (uint32_t)(i * type->of->size)};

		if (!add_field(s, list, type->of, out))
			return false;
	}
	return true;
}

static struct shape *struct_shape(struct shaping *s, const struct type *type)
{
	struct arena *arena = s->session->stream->arena;
	struct shape *shape = NULL;
	field_list list = {0};

	if (type->kind == TYPE_ARRAY ? add_elements(s, &list, type)
				     : add_members(s, &list, type, 0)) {
		shape = shape_new(arena, SHAPE_STRUCT, false, (uint32_t)type->size);
		shape->fields = arena_dup(arena, list.v, list.n * sizeof(*list.v));
		shape->n_fields = (uint32_t)list.n;
	}
	vec_release(&list);
	return shape;
}

/* "at 8 in 32-bit and at 16 in 64-bit programs", for the field that type_is_same_layout named. */
static void report_layout(struct check_session *s, const struct type *type,
	const struct type *other, const char *path, struct place place)
{
	const char *name = check_type_text(s, type);
	const char *field = strrchr(path, '.') ? strrchr(path, '.') + 1 : path;
	/* Whichever is smaller is that of 32-bit programs: pointers and long only grow. */
	bool is_32 = type->size <= other->size;
	struct type_field a, b;

	if (!type_find_field(type, field, &a) || !type_find_field(other, field, &b))
		diag_error(s->diags, place, "layout",
			"%s has other fields in 32-bit and 64-bit programs: %s", name, path);
	else if (a.offset != b.offset)
		diag_error(s->diags, place, "layout",
			"%s: field '%s' is at %llu in 32-bit and at %llu in 64-bit programs", name,
			path, (unsigned long long)(is_32 ? a : b).offset,
			(unsigned long long)(is_32 ? b : a).offset);
	else
		diag_error(s->diags, place, "layout",
			"%s: field '%s' has %llu bytes in 32-bit and %llu in 64-bit programs", name,
			path, (unsigned long long)(is_32 ? a : b).type->size,
			(unsigned long long)(is_32 ? b : a).type->size);
	diag_hint(s->diags, "a map is shared by both kinds of program: keep single fields");
}

static bool check_layout(struct check_session *s, const struct type *type, const struct type *other,
	struct place place)
{
	struct buf path = {0};
	bool is_same;

	if (type->kind == TYPE_STRUCT && !type->is_complete)
		return diag_error(s->diags, place, "incomplete", "the fields of %s are not known",
			check_type_text(s, type));
	if (type->size > CHECK_VALUE_MAX)
		return diag_error(s->diags, place, "size",
			"%s has %llu bytes; at most %d are possible", check_type_text(s, type),
			(unsigned long long)type->size, CHECK_VALUE_MAX);
	if (!other || other->kind != type->kind)
		return true;
	is_same = type_is_same_layout(type, other, &path);
	if (!is_same)
		report_layout(s, type, other, buf_text(&path), place);
	buf_release(&path);
	return is_same;
}

static struct shape *tuple_shape(
	struct check_session *s, const struct type *type, struct place place)
{
	struct shape **of = arena_zalloc(s->arena, (type->n_fields + 1) * sizeof(*of)), *shape;

	for (uint32_t i = 0; i < type->n_fields; i++) {
		of[i] = check_shape(s, type->fields[i].type, NULL, place);
		if (!of[i])
			return NULL;
	}
	shape = shape_new_tuple(s->stream->arena, of, type->n_fields);
	for (uint32_t i = 0; i < type->n_fields; i++)
		if (type->fields[i].name)
			shape->fields[i].name =
				arena_strdup(s->stream->arena, type->fields[i].name);
	return shape;
}

struct shape *check_shape(struct check_session *s, const struct type *type,
	const struct type *other, struct place place)
{
	struct shaping shaping = {.session = s, .place = place};
	struct arena *a = s->stream->arena;
	struct shape *number = number_shape(a, type);

	if (number)
		return number;
	switch (type->kind) {
	case TYPE_FLOAT:
		diag_error(s->diags, place, "float", "a %s can be neither kept nor printed",
			check_type_text(s, type));
		return NULL;
	case TYPE_STRING:
	case TYPE_BYTES:
		return shape_new(a, type->kind == TYPE_STRING ? SHAPE_STRING : SHAPE_BYTES, false,
			(uint32_t)type->n);
	case TYPE_ARRAY:
		if (type->of->is_char && type->n && type->n <= CHECK_STRING_MAX)
			return shape_new(a, SHAPE_STRING, false, (uint32_t)type->n);
		/* fallthrough */
	case TYPE_STRUCT:
		if (!check_layout(s, type, other, place))
			return NULL;
		return struct_shape(&shaping, type);
	case TYPE_TUPLE:
		return tuple_shape(s, type, place);
	default:
		if (type_is_special(type))
			return shape_new(a, shape_of_special(type->kind), false, (uint32_t)type->n);
		diag_error(s->diags, place, "type", "a %s can be neither kept nor printed",
			check_type_text(s, type));
		return NULL;
	}
}

const struct type *check_kept_type(struct types *types, const struct type *type)
{
	return type_is_text(type) ? types_string(types, check_text_bytes(type)) : type;
}

/* --- back ------------------------------------------------------------------------------------- */

static const struct type *int_type(struct types *t, const struct shape *s, uint32_t bytes)
{
	if (s->is_bool)
		return types_bool(t);
	if (s->enumerators)
		return types_enum(t, "enum", bytes, s->is_signed, s->enumerators);
	return types_int(t, bytes, s->is_signed);
}

static const struct type *member_type(struct types *t, const struct shape_field *f)
{
	switch (f->shape->kind) {
	case SHAPE_INT:
		return int_type(t, f->shape, f->bytes);
	case SHAPE_POINTER:
		return types_int(t, f->bytes, false);
	case SHAPE_FLOAT:
		return types_float(t, f->shape->n);
	case SHAPE_STRING:
		return types_array(t, types_char(t), f->shape->n);
	default:
		return check_shape_type(t, f->shape);
	}
}

static const struct type *struct_type(struct types *t, const struct shape *shape)
{
	struct type *s = types_new_struct(t, NULL, false);
	VEC(struct type_field) fields = {0};

	if (shape->n_fields && !shape->fields[0].name)
		return types_array(t, member_type(t, &shape->fields[0]), shape->n_fields);
	for (uint32_t i = 0; i < shape->n_fields; i++) {
		const struct shape_field *f = &shape->fields[i];
		struct type_field out = {.name = f->name,
			.type = member_type(t, f),
			.offset = f->offset,
			.bit_offset = f->bit_offset,
			.bit_size = f->bit_size};

		vec_push(&fields, out);
	}
	types_fill_struct(t, s, fields.v, (uint32_t)fields.n, shape->n, 1);
	vec_release(&fields);
	return s;
}

static const struct type *tuple_type(struct types *t, const struct shape *shape)
{
	VEC(struct type_field) fields = {0};
	const struct type *type;

	for (uint32_t i = 0; i < shape->n_fields; i++) {
		const struct shape_field *f = &shape->fields[i];

		vec_push(&fields, ((struct type_field){
					  .name = f->name, .type = check_shape_type(t, f->shape)}));
	}
	type = types_record(t, fields.v, fields.n);
	vec_release(&fields);
	return type;
}

const struct type *check_shape_type(struct types *types, const struct shape *shape)
{
	switch (shape->kind) {
	case SHAPE_NONE:
		return types_void(types);
	case SHAPE_INT:
		return int_type(types, shape, 8);
	case SHAPE_POINTER:
		return types_pointer(types, types_void(types), SPACE_USER);
	case SHAPE_FLOAT:
		return types_float(types, shape->n);
	case SHAPE_STRING:
		return types_string(types, shape->n);
	case SHAPE_BYTES:
		return types_bytes(types, shape->n);
	case SHAPE_STRUCT:
		return struct_type(types, shape);
	case SHAPE_TUPLE:
		return tuple_type(types, shape);
	case SHAPE_USTACK:
		return types_stack(types, TYPE_USTACK, shape->n);
	case SHAPE_KSTACK:
		return types_stack(types, TYPE_KSTACK, shape->n);
	default:
		break;
	}
	if (shape_is_aggregation(shape))
		return types_aggregation(types,
			(enum aggregation)(AGGREGATION_COUNT + (shape->kind - SHAPE_COUNT)),
			shape->is_signed);
	return types_special(types, (enum type_kind)(TYPE_USTACK + (shape->kind - SHAPE_USTACK)));
}
