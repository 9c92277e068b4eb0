/* SPDX-License-Identifier: MIT */
/*
 * Bodies: the fields of structures and unions, the enumerators of enums. A body with mistakes still
 * gives a type, with TYPE_BAD where the mistakes are, so that each is reported once.
 */
#include <stdlib.h>
#include <string.h>

#include "probe/types/type_store.h"

/* --- fields ---------------------------------------------------------------------------------- */

struct body {
	struct types *types;
	const struct decl_type *decl;
	VEC(struct layout_field) fields;
	struct intern names; /* of fields, those in unnamed structures too */
};

static const char *field_text(struct body *b, const struct decl_field *f)
{
	return f->name ? arena_printf(b->types->arena, "field '%s'", f->name) : "an unnamed field";
}

static const struct type *field_type(struct body *b, const struct decl_field *f)
{
	const struct type *type = type_resolve(b->types, f->type);

	if (type->kind == TYPE_STRING) {
		diag_error(b->types->diags, f->place, "type",
			"%s: a structure holds no string; it may hold an array of char",
			field_text(b, f));
		return types_bad(b->types);
	}
	if (f->type->kind == DECL_ARRAY && !f->type->n && (f->next || b->decl->is_union)) {
		diag_error(b->types->diags, f->place, "incomplete",
			"%s: an array without a length can only be the last field of a structure",
			field_text(b, f));
		return types_bad(b->types);
	}
	return type_with_size(b->types, type, f->place, field_text(b, f));
}

/* Reports, and gives false, when the width does not do. */
static bool field_width(struct body *b, const struct decl_field *f, struct layout_field *to)
{
	const struct type *type = to->field.type;
	uint64_t max = type->is_bool ? 1 : type->size * 8;
	struct constant bits;

	if (!constant_of_expr(b->types, f->bits, &bits) || type->kind == TYPE_BAD)
		return false;
	if (type->kind != TYPE_INT || type->size > 8)
		return diag_error(b->types->diags, f->place, "type",
			"%s: only integers can be bit-fields", field_text(b, f));
	if (bits.is_unsigned || bits.value < 0 || (uint64_t)bits.value > max ||
		(bits.value == 0 && f->name))
		return diag_error(b->types->diags, f->bits->place, "range",
			"%s: a bit-field of this type has 1 to %llu bits", field_text(b, f),
			(unsigned long long)max);
	to->is_bit_field = true;
	to->bits = (uint8_t)bits.value;
	return true;
}

static void check_name(struct body *b, const char *name, struct place place)
{
	size_t n = b->names.n_items;

	if (intern_text(&b->names, name) != n)
		diag_error(b->types->diags, place, "duplicate", "there are two fields '%s'", name);
}

/* Names of an unnamed structure are those of the one around it. */
static void check_names_inside(struct body *b, const struct type *type, struct place place)
{
	if (type->kind != TYPE_STRUCT || b->names.n_items > TYPE_FIELDS_MAX)
		return;
	for (uint32_t i = 0; i < type->n_fields; i++) {
		if (type->fields[i].name)
			check_name(b, type->fields[i].name, place);
		else
			check_names_inside(b, type->fields[i].type, place);
	}
}

static void add_field(struct body *b, const struct decl_field *f)
{
	bool has_body = f->type->is_defined;
	struct layout_field to = {.field = {.name = f->name}};

	to.field.type = field_type(b, f);
	to.is_packed = b->decl->is_packed || (f->type->is_packed && !has_body);
	/* Of a structure with a body it was asked for the structure. */
	to.align = has_body ? 0 : type_asked_align(b->types, f->type);
	if (f->bits && !field_width(b, f, &to))
		to.field.type = types_bad(b->types);
	if (f->name) {
		check_name(b, f->name, f->place);
	} else if (!f->bits) {
		/* "struct inner { ... };" with a tag declares the tag and no field. */
		if (to.field.type->kind != TYPE_STRUCT || f->type->name) {
			diag_warning(
				b->types->diags, f->place, "declaration", "this declares no field");
			return;
		}
		check_names_inside(b, to.field.type, f->place);
	}
	vec_push(&b->fields, to);
}

static bool is_too_deep(const struct body *b)
{
	for (size_t i = 0; i < b->fields.n; i++)
		if (b->fields.v[i].field.type->depth >= TYPE_DEPTH_MAX)
			return true;
	return false;
}

/* Places the fields and fills `s`; bit-fields without a name are gone after that. */
static void fill(struct body *b, struct type *s)
{
	struct layout layout = {.is_union = b->decl->is_union};
	VEC(struct type_field) kept = {0};

	layout.align = type_asked_align(b->types, b->decl);
	if (!layout_fields(&layout, b->fields.v, b->fields.n)) {
		diag_error(b->types->diags, b->decl->place, "size",
			"'%s' is larger than %llu bytes", s->name ? s->name : "struct",
			(unsigned long long)TYPE_BYTES_MAX);
		layout.size = 1;
		b->fields.n = 0;
	}
	if (is_too_deep(b))
		diag_error(b->types->diags, b->decl->place, "nesting",
			"structures are nested more than %d deep", TYPE_DEPTH_MAX);
	for (size_t i = 0; i < b->fields.n; i++) {
		const struct layout_field *f = &b->fields.v[i];

		if (f->field.name || !f->is_bit_field)
			vec_push(&kept, f->field);
	}
	types_fill_struct(b->types, s, kept.v, (uint32_t)kept.n, layout.size, layout.align);
	vec_release(&kept);
}

static void define_fields(struct types *t, const struct decl_type *decl, struct type *s)
{
	struct body b = {.types = t, .decl = decl};
	bool is_bad = false;

	for (const struct decl_field *f = decl->fields; f; f = f->next) {
		if (b.names.n_items >= TYPE_FIELDS_MAX || b.fields.n >= TYPE_FIELDS_MAX) {
			diag_error(t->diags, f->place, "size", "a structure has at most %d fields",
				TYPE_FIELDS_MAX);
			break;
		}
		add_field(&b, f);
	}
	fill(&b, s);
	for (size_t i = 0; i < b.fields.n; i++)
		is_bad |= b.fields.v[i].field.type->kind == TYPE_BAD;
	if (!s->size && !is_bad)
		diag_error(t->diags, decl->place, "size", "'%s' has no fields that take room",
			s->name ? s->name : "struct");
	vec_release(&b.fields);
	intern_release(&b.names);
}

/* --- enumerators ----------------------------------------------------------------------------- */

struct enum_range {
	int64_t min;
	uint64_t max;
};

static void enumerator_add(struct types *t, const struct decl_enumerator *e, struct constant value)
{
	struct declared *d = names_ensure(&t->names, e->name);

	if (d->kind == DECLARED_NOTHING) {
		*d = (struct declared){.kind = DECLARED_ENUMERATOR,
			.value = value.value,
			.is_unsigned = value.is_unsigned,
			.place = e->place};
		return;
	}
	/* Several scripts may each have the same declarations. */
	if (d->kind != DECLARED_ENUMERATOR || d->value != value.value ||
		d->place.source_i == e->place.source_i)
		diag_error(t->diags, e->place, "duplicate", "'%s' was declared before", e->name);
}

/* The value of the next one when none is written. */
static bool enumerator_step(
	struct types *t, struct constant *value, const struct decl_enumerator *e)
{
	if (value->is_unsigned && value->value == -1)
		return diag_error(
			t->diags, e->place, "range", "'%s' does not fit into 64 bits", e->name);
	if (!value->is_unsigned && value->value == INT64_MAX)
		value->is_unsigned = true;
	value->value = (int64_t)((uint64_t)value->value + 1);
	return true;
}

static struct enum_range define_enumerators(struct types *t, const struct decl_type *decl)
{
	struct enum_range range = {0, 0};
	struct constant value = {-1, false};

	for (const struct decl_enumerator *e = decl->enumerators; e; e = e->next) {
		bool is_good = e->value ? constant_of_expr(t, e->value, &value)
					: enumerator_step(t, &value, e);

		if (!is_good)
			value = (struct constant){0, false};
		value.is_unsigned = value.is_unsigned && value.value < 0;
		enumerator_add(t, e, value);
		if (!value.is_unsigned && value.value < range.min)
			range.min = value.value;
		if ((value.is_unsigned || value.value > 0) && (uint64_t)value.value > range.max)
			range.max = (uint64_t)value.value;
	}
	if (range.min < 0 && range.max > INT64_MAX)
		diag_error(t->diags, decl->place, "range",
			"no type holds both the least and the greatest of these values");
	return range;
}

/* gcc: unsigned int unless one is negative, then int; 8 bytes where that is not enough. Packed: the
 * smallest that does. */
static uint32_t enum_bytes(const struct enum_range *range, bool is_packed)
{
	bool is_signed = range->min < 0;

	for (uint32_t bytes = is_packed ? 1 : 4; bytes < 8; bytes *= 2) {
		unsigned bits = bytes * 8 - is_signed;

		if (range->max >> bits == 0 && range->min >= -(INT64_C(1) << bits))
			return bytes;
	}
	return 8;
}

static const struct type *define_enum(
	struct types *t, const struct decl_type *decl, const char *name)
{
	struct enum_range range = define_enumerators(t, decl);
	struct buf text = {0};
	const struct type *type;
	struct declared *d;

	for (const struct decl_enumerator *e = decl->enumerators; e; e = e->next) {
		d = names_find(&t->names, e->name);
		if (d && d->kind == DECLARED_ENUMERATOR)
			type_add_enumerator(&text, e->name, strlen(e->name), d->value);
	}
	type = types_enum(t, name ? name : "enum", enum_bytes(&range, decl->is_packed),
		range.min < 0, text.n ? buf_text(&text) : NULL);
	buf_release(&text);
	for (const struct decl_enumerator *e = decl->enumerators; e; e = e->next) {
		d = names_find(&t->names, e->name);
		if (d && d->kind == DECLARED_ENUMERATOR && !d->type)
			d->type = type;
	}
	return type;
}

/* --- bodies and tags ------------------------------------------------------------------------- */

static void report_again(struct types *t, const struct declared *d, const struct type *type,
	const struct decl_type *decl)
{
	/* Several scripts may each have the same declarations. */
	if (d->place.source_i != decl->place.source_i && type_is_same(d->type, type))
		return;
	diag_error(t->diags, decl->place, "duplicate", "'%s' was declared before", d->type->name);
}

/* The structure that a body fills: the one that was mentioned before, or else a new one.
 * `is_again`: the tag has a body, or is of another kind. */
static struct type *struct_to_fill(
	struct types *t, const struct decl_type *decl, const char *name, bool *is_again)
{
	struct declared *d = names_ensure(&t->tags, decl->name);

	if (d->kind == DECLARED_NOTHING) {
		struct type *s = types_new_struct(t, name, decl->is_union);

		*d = (struct declared){.kind = DECLARED_TAG, .type = s, .open = s};
	}
	*is_again = d->has_body || !d->open || d->open->is_union != decl->is_union;
	if (*is_again)
		return types_new_struct(t, name, decl->is_union);
	d->has_body = d->is_announced = true;
	d->place = decl->place;
	return d->open;
}

static const struct type *define_tagged(struct types *t, const struct decl_type *decl)
{
	const char *name = tag_name(t, decl);
	const struct type *type;
	bool is_again;

	if (decl->kind == DECL_STRUCT) {
		struct type *s = struct_to_fill(t, decl, name, &is_again);

		define_fields(t, decl, s);
		type = s;
	} else {
		struct declared *d;

		type = define_enum(t, decl, name);
		d = names_ensure(&t->tags, decl->name);
		is_again = d->kind != DECLARED_NOTHING;
		if (!is_again)
			*d = (struct declared){.kind = DECLARED_TAG,
				.type = type,
				.is_announced = true,
				.has_body = true,
				.place = decl->place};
	}
	if (is_again)
		report_again(t, names_find(&t->tags, decl->name), type, decl);
	return type;
}

const struct type *type_define(struct types *t, const struct decl_type *decl)
{
	uint64_t key = (uint64_t)(uintptr_t)decl;
	const uint64_t *known = map_find(&t->defined, key);
	const struct type *type;

	/* The checker asks for the same declaration more than once. */
	if (known)
		return (const struct type *)(uintptr_t)*known;
	if (decl->name) {
		type = define_tagged(t, decl);
	} else if (decl->kind == DECL_ENUM) {
		type = define_enum(t, decl, NULL);
	} else {
		struct type *s = types_new_struct(t, NULL, decl->is_union);

		define_fields(t, decl, s);
		type = s;
	}
	*map_ensure(&t->defined, key, NULL) = (uint64_t)(uintptr_t)type;
	return type;
}
