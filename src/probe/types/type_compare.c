/* SPDX-License-Identifier: MIT */
/*
 * Looking into types: a field by name, and whether two types are the same. Types of hostile debug
 * information may be nested so that a walk would never end (a union of two unions of two unions
 * ...), so each walk has a number of steps after which it gives up.
 */
#include <string.h>

#include "probe/types/type.h"

#define WALK_STEPS_MAX 200000

static bool find_field(
	const struct type *s, const char *name, uint32_t *steps, struct type_field *out)
{
	for (uint32_t i = 0; i < s->n_fields; i++) {
		const struct type_field *f = &s->fields[i];

		if (++*steps > WALK_STEPS_MAX)
			return false;
		if (f->name && !strcmp(f->name, name)) {
			*out = *f;
			return true;
		}
	}
	/* A name of its own comes before one of an unnamed structure in it. */
	for (uint32_t i = 0; i < s->n_fields; i++) {
		const struct type_field *f = &s->fields[i];

		if (f->name || f->type->kind != TYPE_STRUCT)
			continue;
		if (find_field(f->type, name, steps, out)) {
			out->offset += f->offset;
			return true;
		}
	}
	return false;
}

bool type_find_field(const struct type *s, const char *name, struct type_field *out)
{
	uint32_t steps = 0;

	return s->kind == TYPE_STRUCT && find_field(s, name, &steps, out);
}

static bool is_same(const struct type *a, const struct type *b, uint32_t *steps);

static bool is_same_fields(const struct type *a, const struct type *b, uint32_t *steps)
{
	if (a->n_fields != b->n_fields)
		return false;
	for (uint32_t i = 0; i < a->n_fields; i++) {
		const struct type_field *x = &a->fields[i], *y = &b->fields[i];

		/* Names of parameters are no part of a function's type. */
		if (a->kind != TYPE_FUNCTION && !name_is_same(x->name, y->name))
			return false;
		if (x->offset != y->offset || x->bit_offset != y->bit_offset ||
			x->bit_size != y->bit_size || !is_same(x->type, y->type, steps))
			return false;
	}
	return true;
}

/* What they point to: structures by their names only, since they may point back. */
static bool is_same_pointed(const struct type *a, const struct type *b, uint32_t *steps)
{
	if (a == b)
		return true;
	if (a->kind == TYPE_STRUCT && b->kind == TYPE_STRUCT && a->name && b->name)
		return a->is_union == b->is_union && !strcmp(a->name, b->name);
	return is_same(a, b, steps);
}

static bool is_same(const struct type *a, const struct type *b, uint32_t *steps)
{
	if (a == b)
		return true;
	if (++*steps > WALK_STEPS_MAX || a->kind != b->kind || a->size != b->size)
		return false;
	switch (a->kind) {
	case TYPE_INT:
		return a->is_signed == b->is_signed && a->is_bool == b->is_bool &&
		       a->is_char == b->is_char && a->is_enum == b->is_enum &&
		       (!a->is_enum || (name_is_same(a->name, b->name) &&
					       name_is_same(a->enumerators, b->enumerators)));
	case TYPE_POINTER:
		return a->space == b->space && is_same_pointed(a->of, b->of, steps);
	case TYPE_ARRAY:
		return a->n == b->n && is_same(a->of, b->of, steps);
	case TYPE_STRUCT:
		return a->is_union == b->is_union && a->is_complete == b->is_complete &&
		       name_is_same(a->name, b->name) && is_same_fields(a, b, steps);
	case TYPE_FUNCTION:
		return a->is_variadic == b->is_variadic && is_same(a->of, b->of, steps) &&
		       is_same_fields(a, b, steps);
	case TYPE_TUPLE:
		return is_same_fields(a, b, steps);
	case TYPE_AGGREGATION:
		return a->aggregation == b->aggregation && a->is_signed == b->is_signed;
	default:
		return a->n == b->n;
	}
}

bool type_is_same(const struct type *a, const struct type *b)
{
	uint32_t steps = 0;

	return is_same(a, b, &steps);
}

/* --- layouts --------------------------------------------------------------------------------- */

static bool is_layout(
	const struct type *a, const struct type *b, struct buf *path, uint32_t *steps);

static void path_add(struct buf *path, const char *name)
{
	if (path && name)
		buf_printf(path, "%s%s", path->n ? "." : "", name);
}

/* What an unnamed structure is called in messages: its first field with a name. */
static const char *field_name(const struct type_field *f)
{
	for (int depth = 0; !f->name && depth < TYPE_DEPTH_MAX; depth++) {
		if (f->type->kind != TYPE_STRUCT || !f->type->n_fields)
			return NULL;
		f = &f->type->fields[0];
	}
	return f->name;
}

static bool is_fields_layout(
	const struct type *a, const struct type *b, struct buf *path, uint32_t *steps)
{
	uint32_t n = a->n_fields < b->n_fields ? a->n_fields : b->n_fields;
	const char *last = NULL;

	for (uint32_t i = 0; i < n; i++) {
		const struct type_field *x = &a->fields[i], *y = &b->fields[i];
		size_t before = path ? path->n : 0;

		if (!name_is_same(x->name, y->name) || x->offset != y->offset ||
			x->bit_offset != y->bit_offset || x->bit_size != y->bit_size) {
			path_add(path, field_name(x));
			return false;
		}
		path_add(path, x->name);
		if (!is_layout(x->type, y->type, path, steps))
			return false;
		if (path)
			path->n = before;
		last = field_name(x);
	}
	if (a->n_fields == b->n_fields && a->size == b->size)
		return true;
	/* { long long a; int b; } takes 12 bytes in i386 and 16 in x86-64. */
	path_add(path, last ? last : "the last field");
	if (path)
		buf_put_cstr(path, " (padding behind it)");
	return false;
}

static bool is_layout(const struct type *a, const struct type *b, struct buf *path, uint32_t *steps)
{
	if (++*steps > WALK_STEPS_MAX || a->kind != b->kind)
		return false;
	switch (a->kind) {
	case TYPE_STRUCT:
		return a->is_union == b->is_union && a->is_complete == b->is_complete &&
		       is_fields_layout(a, b, path, steps);
	case TYPE_TUPLE:
		return is_fields_layout(a, b, path, steps);
	case TYPE_ARRAY:
		return a->n == b->n && is_layout(a->of, b->of, path, steps);
	case TYPE_INT:
		return a->size == b->size && a->is_signed == b->is_signed;
	default:
		return a->size == b->size && a->n == b->n;
	}
}

bool type_is_same_layout(const struct type *a, const struct type *b, struct buf *path)
{
	uint32_t steps = 0;

	return is_layout(a, b, path, &steps);
}
