/* SPDX-License-Identifier: MIT */
/*
 * A structure is made without fields first. Those that stand in a value (a member, an element of an
 * array) get their fields at once, for size and alignment; those behind pointers get into a list
 * and are filled when the work on the first one is done, so that lists and trees end and nothing
 * recurses through pointers. They are filled rather than left to be asked for by name, because two
 * source files may each have their own structure of one name.
 */
#include "probe/types/dwarf_type_build.h"

#include <stdlib.h>
#include <string.h>

#include "probe/types/source_types.h"

#define DEPTH_MAX	64    /* types inside types: pointers to arrays of structures of ... */
#define STRUCTS_AT_ONCE 500   /* behind pointers, for one look-up */
#define STRUCTS_MAX	20000 /* of one file; further ones stay without fields */
#define QUALIFIERS_MAX	64    /* typedefs, const and volatile in front of one type */
#define ORIGIN_HOPS_MAX 8     /* from an entry to the one it completes or is a copy of */
#define DIMENSIONS_MAX	16
#define SIZE_MAX_BYTES	((uint64_t)1 << 40) /* of a type */

enum base_encoding { /* DW_ATE_* */
	ENCODING_BOOLEAN = 0x02,
	ENCODING_COMPLEX = 0x03,
	ENCODING_FLOAT = 0x04,
	ENCODING_SIGNED = 0x05,
	ENCODING_SIGNED_CHAR = 0x06
};

void dwarf_builder_release(struct dwarf_builder *b)
{
	arena_free(b->texts);
	map_release(&b->made);
	map_release(&b->struct_of);
	vec_release(&b->structs);
}

/* Entries of different files are different bytes in memory. */
static uint64_t key_of(const struct die *d)
{
	return (uintptr_t)(d->unit->set->sections.of[DEBUG_INFO].p + d->offset);
}

static struct arena *texts(struct dwarf_builder *b)
{
	if (!b->texts)
		b->texts = arena_new();
	return b->texts;
}

const char *dwarf_build_text(struct dwarf_builder *b, struct dwarf_text text)
{
	if (!text.n || !die_reader_spend(b->reader, text.n))
		return NULL;
	return arena_strndup(texts(b), text.p, text.n);
}

static uint64_t byte_size(const struct die *d, uint64_t otherwise)
{
	uint64_t size;

	if (!die_number(d, DIE_BYTE_SIZE, &size) || size > SIZE_MAX_BYTES)
		return otherwise;
	return size;
}

static const struct type *float_type(struct dwarf_builder *b, uint64_t size)
{
	if (size == 4 || size == 8)
		return types_float(b->types, (uint32_t)size);
	/* x87: 12 bytes in memory in 32-bit programs, 16 in 64-bit ones */
	if (size == (types_mode(b->types) == MODE_32 ? 12u : 16u))
		return types_float(b->types, 10);
	return source_bytes(b->types, size);
}

static const struct type *base_type(struct dwarf_builder *b, const struct die *d)
{
	uint64_t size = byte_size(d, 0), encoding = 0;
	struct dwarf_text name = {"", 0};

	die_number(d, DIE_ENCODING, &encoding);
	die_text(d, DIE_NAME, &name);
	switch (encoding) {
	case ENCODING_FLOAT:
		/* The one type of 16 bytes that is not x87's. */
		if (size == 16 && name.n && memmem(name.p, name.n, "128", 3))
			return source_bytes(b->types, size);
		return float_type(b, size);
	case ENCODING_COMPLEX:
		return types_array(b->types, float_type(b, size / 2), 2);
	case ENCODING_BOOLEAN:
		if (size == 1)
			return types_named_int(b->types, "bool", 1, false);
		break;
	case ENCODING_SIGNED:
	case ENCODING_SIGNED_CHAR:
		return source_int(b->types, name.p, name.n, size, true);
	}
	/* also addresses, and characters of Unicode */
	return source_int(b->types, name.p, name.n, size, false);
}

/* The entry that defines what `d` only declares; `d` itself when there is none. */
static struct die definition_of(struct dwarf_builder *b, const struct die *d)
{
	enum name_kind kind = d->tag == TAG_UNION_TYPE	       ? NAME_KIND_UNION
			      : d->tag == TAG_ENUMERATION_TYPE ? NAME_KIND_ENUM
							       : NAME_KIND_STRUCT;
	struct dwarf_text name;
	struct die found;
	char *text;

	if (die_follow(b->reader, d, DIE_SIGNATURE, &found))
		return found;
	if (!die_flag(d, DIE_DECLARATION))
		return *d;
	if (!die_text(d, DIE_NAME, &name) || !name.n || !die_reader_spend(b->reader, name.n))
		return *d;
	text = mem_printf(
		"%s%.*s", dwarf_name_index_scope(b->names, b->reader, d), (int)name.n, name.p);
	if (!dwarf_name_index_find(b->names, b->reader, kind, text, &found) ||
		die_flag(&found, DIE_DECLARATION))
		found = *d;
	free(text);
	return found;
}

static bool enum_is_signed(struct dwarf_builder *b, const struct die *d)
{
	const struct type *of;
	uint64_t encoding;
	struct die child;

	if (die_says(d, DIE_TYPE)) {
		of = dwarf_type_of(b, d, true);
		return of->kind == TYPE_INT && of->is_signed;
	}
	if (die_number(d, DIE_ENCODING, &encoding))
		return encoding == ENCODING_SIGNED || encoding == ENCODING_SIGNED_CHAR;
	if (!d->has_children)
		return true;
	EACH_CHILD(b, d, child)
	if (die_says(&child, DIE_CONST_VALUE) && child.form[DIE_CONST_VALUE] == FORM_SDATA &&
		(int64_t)child.value[DIE_CONST_VALUE] < 0)
		return true;
	return false;
}

/* "RED=0 GREEN=5", or NULL. */
static const char *enumerators(struct dwarf_builder *b, const struct die *d)
{
	struct buf text = {0};
	struct dwarf_text name;
	const char *kept;
	struct die child;
	uint64_t value;

	if (!d->has_children)
		return NULL;
	EACH_CHILD(b, d, child)
	if (die_number(&child, DIE_CONST_VALUE, &value) && die_text(&child, DIE_NAME, &name) &&
		die_reader_spend(b->reader, name.n))
		type_add_enumerator(&text, (const char *)name.p, name.n, (int64_t)value);
	kept = text.n ? arena_strndup(texts(b), buf_text(&text), text.n) : NULL;
	buf_release(&text);
	return kept;
}

static const struct type *enum_type(
	struct dwarf_builder *b, const struct die *entry, const char *alias)
{
	struct die defined = definition_of(b, entry);
	const struct die *d = &defined;
	uint64_t size = byte_size(d, 4);
	const char *full = alias ? alias : "enum";
	struct dwarf_text name;

	if (!type_is_int_size(size))
		size = 4;
	if (die_text(d, DIE_NAME, &name) && name.n && die_reader_spend(b->reader, name.n))
		full = arena_printf(texts(b), "enum %s%.*s",
			dwarf_name_index_scope(b->names, b->reader, d), (int)name.n, name.p);
	return types_enum(b->types, full, (uint32_t)size, enum_is_signed(b, d), enumerators(b, d));
}

static struct type *new_struct(struct dwarf_builder *b, const struct die *d, const char *alias)
{
	bool is_union = d->tag == TAG_UNION_TYPE;
	const char *full = alias;
	struct dwarf_text name;
	struct type *s;

	if (die_text(d, DIE_NAME, &name) && name.n)
		full = arena_printf(texts(b), "%s %s%.*s", is_union ? "union" : "struct",
			dwarf_name_index_scope(b->names, b->reader, d), (int)name.n, name.p);
	s = types_new_struct(b->types, full, is_union);
	/* Arrays of it may be made before its fields are read. */
	s->size = byte_size(d, 0);
	return s;
}

static void finish_struct(struct dwarf_builder *b, size_t i)
{
	struct struct_work work = b->structs.v[i];
	struct die d;

	if (work.is_done || work.is_open || b->depth >= DEPTH_MAX)
		return;
	b->structs.v[i].is_open = true;
	b->depth++;
	if (die_read(b->reader, work.unit, work.offset, &d))
		dwarf_fill_struct(b, &d, work.type);
	b->depth--;
	b->structs.v[i].is_done = true;
}

static const struct type *struct_type(
	struct dwarf_builder *b, const struct die *entry, const char *alias, bool is_by_value)
{
	struct die d = definition_of(b, entry);
	uint64_t *at;
	bool is_new;

	at = map_ensure(&b->struct_of, key_of(&d), &is_new);
	if (is_new) {
		struct struct_work work = {
			d.unit, d.offset, new_struct(b, &d, alias), false, false};

		work.is_done = die_flag(&d, DIE_DECLARATION) || b->structs.n >= STRUCTS_MAX;
		*at = b->structs.n;
		vec_push(&b->structs, work);
	}
	if (is_by_value) {
		size_t i = *at; /* the map may move while the fields are read */

		finish_struct(b, i);
		return b->structs.v[i].type;
	}
	return b->structs.v[*at].type;
}

/* Elements of one dimension; 0 when the length is not said or not fixed. */
static uint64_t dimension(const struct die *d)
{
	uint64_t n;

	if (die_number(d, DIE_COUNT, &n))
		return n;
	if (!die_number(d, DIE_UPPER_BOUND, &n))
		return 0;
	/* An array without elements may have the upper bound -1. */
	if (n == UINT64_MAX || (d->form[DIE_UPPER_BOUND] == FORM_DATA4 && n == UINT32_MAX))
		return 0;
	return n + 1;
}

static const struct type *array_type(struct dwarf_builder *b, const struct die *d)
{
	const struct type *of = dwarf_type_of(b, d, true);
	uint64_t n[DIMENSIONS_MAX];
	size_t n_dimensions = 0;
	struct die child;

	EACH_CHILD(b, d, child)
	if (child.tag == DIE_TAG_SUBRANGE && n_dimensions < DIMENSIONS_MAX)
		n[n_dimensions++] = dimension(&child);
	if (!n_dimensions)
		n[n_dimensions++] = 0;
	while (n_dimensions--) {
		uint64_t count = n[n_dimensions];

		if (of->size && count > SIZE_MAX_BYTES / of->size)
			return types_bad(b->types);
		of = types_array(b->types, of, count);
	}
	return of;
}

/* The entry whose parameters are those of the source: what a copy is a copy of, or what a definition
 * without parameters of its own completes. */
static bool has_parameters(struct dwarf_builder *b, const struct die *d)
{
	struct die child;

	EACH_CHILD(b, d, child)
	if (child.tag == DIE_TAG_FORMAL_PARAMETER || child.tag == DIE_TAG_UNSPECIFIED_PARAMETERS)
		return true;
	return false;
}

static struct die source_function(struct dwarf_builder *b, const struct die *d)
{
	struct die at = *d, next;

	for (int hop = 0; hop < ORIGIN_HOPS_MAX; hop++) {
		if (!die_follow(b->reader, &at, DIE_ABSTRACT_ORIGIN, &next) &&
			(has_parameters(b, &at) ||
				!die_follow(b->reader, &at, DIE_SPECIFICATION, &next)))
			break;
		at = next;
	}
	return has_parameters(b, &at) ? at : *d;
}

/* The parameters among the children of `d`, into `out`; *is_variadic when "..." ends them. */
static uint32_t read_parameters(struct dwarf_builder *b, const struct die *d,
	struct type_field out[DWARF_PARAMETERS_MAX], bool *is_variadic)
{
	uint32_t n = 0;
	struct die child, origin;

	EACH_CHILD(b, d, child)
	{
		struct dwarf_text name = {"", 0};

		if (child.tag == DIE_TAG_UNSPECIFIED_PARAMETERS)
			*is_variadic = true;
		if (child.tag != DIE_TAG_FORMAL_PARAMETER || n == DWARF_PARAMETERS_MAX)
			continue;
		if (!die_text(&child, DIE_NAME, &name) &&
			die_follow(b->reader, &child, DIE_ABSTRACT_ORIGIN, &origin))
			die_text(&origin, DIE_NAME, &name);
		out[n++] = (struct type_field){
			.name = dwarf_build_text(b, name), .type = dwarf_type_of(b, &child, false)};
	}
	return n;
}

static const struct type *function_type(struct dwarf_builder *b, const struct die *d)
{
	struct type_field *parameters = mem_calloc(DWARF_PARAMETERS_MAX, sizeof(*parameters));
	const struct type *returns = dwarf_type_of(b, d, false), *type;
	struct die source = source_function(b, d);
	bool is_variadic = false;
	uint32_t n = read_parameters(b, &source, parameters, &is_variadic);

	type = types_new_function(b->types, returns, parameters, n, is_variadic);
	free(parameters);
	return type;
}

/* A parameter of the source among the entries of a copy. gcc makes variables of those that the copy
 * is not given any more. */
static bool find_copy(
	struct dwarf_builder *b, const struct die *d, const struct die *parameter, struct die *out)
{
	struct die origin;

	EACH_CHILD(b, d, *out)
	{
		if (out->tag != DIE_TAG_FORMAL_PARAMETER && out->tag != DIE_TAG_VARIABLE)
			continue;
		if (key_of(out) == key_of(parameter))
			return true;
		if (die_follow(b->reader, out, DIE_ABSTRACT_ORIGIN, &origin) &&
			key_of(&origin) == key_of(parameter))
			return true;
	}
	out->tag = DIE_TAG_END;
	return false;
}

uint32_t dwarf_function_parameters(
	struct dwarf_builder *b, const struct die *d, struct die parameters[DWARF_PARAMETERS_MAX])
{
	struct die source = source_function(b, d), child;
	uint32_t n = 0;

	EACH_CHILD(b, &source, child)
	if (child.tag == DIE_TAG_FORMAL_PARAMETER && n < DWARF_PARAMETERS_MAX)
		find_copy(b, d, &child, &parameters[n++]);
	return n;
}

static const struct type *member_pointer(struct dwarf_builder *b, const struct die *d)
{
	struct die of;

	/* Itanium C++ ABI section 2.3: an offset, or a function and an adjustment. */
	if (die_follow(b->reader, d, DIE_TYPE, &of) && of.tag == TAG_SUBROUTINE_TYPE)
		return types_array(b->types, types_long(b->types, true), 2);
	return types_long(b->types, true);
}

static const struct type *make_type(
	struct dwarf_builder *b, const struct die *d, const char *alias, bool is_by_value)
{
	switch (d->tag) {
	case DIE_TAG_BASE_TYPE:
		return base_type(b, d);
	case TAG_ENUMERATION_TYPE:
		return enum_type(b, d, alias);
	case TAG_STRUCTURE_TYPE:
	case TAG_CLASS_TYPE:
	case TAG_UNION_TYPE:
	case DIE_TAG_INTERFACE:
		return struct_type(b, d, alias, is_by_value);
	case DIE_TAG_POINTER:
	case DIE_TAG_REFERENCE:
	case DIE_TAG_RVALUE_REFERENCE:
		return types_pointer(b->types, dwarf_type_of(b, d, false), SPACE_USER);
	case DIE_TAG_POINTER_TO_MEMBER:
		return member_pointer(b, d);
	case TAG_ARRAY_TYPE:
		return array_type(b, d);
	case TAG_SUBROUTINE_TYPE:
	case TAG_SUBPROGRAM:
		return function_type(b, d);
	case DIE_TAG_UNSPECIFIED_TYPE:
		return types_void(b->types);
	default:
		return source_bytes(b->types, byte_size(d, 0));
	}
}

static bool is_qualifier(uint16_t tag)
{
	return tag == DIE_TAG_TYPEDEF || tag == DIE_TAG_CONST || tag == DIE_TAG_VOLATILE ||
	       tag == DIE_TAG_RESTRICT || tag == DIE_TAG_ATOMIC || tag == DIE_TAG_SHARED ||
	       tag == DIE_TAG_PACKED || tag == DIE_TAG_IMMUTABLE;
}

static const struct type *type_at(struct dwarf_builder *b, const struct die *d, bool is_by_value)
{
	const char *alias = NULL;
	const struct type *type;
	struct dwarf_text name;
	struct die at = *d;
	uint64_t *known;
	int n = 0;

	for (struct die next; is_qualifier(at.tag); at = next) {
		if (at.tag == DIE_TAG_TYPEDEF && die_text(&at, DIE_NAME, &name))
			alias = dwarf_build_text(b, name); /* the one nearest to the type */
		if (!die_says(&at, DIE_TYPE))
			return types_void(b->types);
		if (++n > QUALIFIERS_MAX || !die_follow(b->reader, &at, DIE_TYPE, &next))
			return types_bad(b->types);
	}
	known = map_find(&b->made, key_of(&at));
	if (known)
		return (const struct type *)(uintptr_t)*known;
	if (b->depth >= DEPTH_MAX)
		return types_bad(b->types);
	b->depth++;
	type = make_type(b, &at, alias, is_by_value);
	b->depth--;
	/* Structures have their own table, for they may have to be finished. */
	if (type->kind != TYPE_STRUCT)
		*map_ensure(&b->made, key_of(&at), NULL) = (uintptr_t)type;
	return type;
}

const struct type *dwarf_type_of(struct dwarf_builder *b, const struct die *d, bool is_by_value)
{
	struct die at = *d, next;

	for (int hop = 0; !die_says(&at, DIE_TYPE); hop++) {
		if (hop == ORIGIN_HOPS_MAX ||
			(!die_follow(b->reader, &at, DIE_ABSTRACT_ORIGIN, &next) &&
				!die_follow(b->reader, &at, DIE_SPECIFICATION, &next)))
			return types_void(b->types);
		at = next;
	}
	if (!die_follow(b->reader, &at, DIE_TYPE, &next))
		return types_bad(b->types);
	return type_at(b, &next, is_by_value);
}

/* Reads the fields of structures that were only pointed to, the nearest ones first. */
static const struct type *finish(struct dwarf_builder *b, const struct type *type)
{
	for (size_t n = 0; b->n_finished < b->structs.n; b->n_finished++) {
		const char *name = b->structs.v[b->n_finished].type->name;

		/* Far ones are found again by their names (types_completed). */
		if (n++ < STRUCTS_AT_ONCE || !name || !strchr(name, ' '))
			finish_struct(b, b->n_finished);
	}
	arena_free(b->texts); /* the types have their own copies */
	b->texts = NULL;
	return type;
}

const struct type *dwarf_build_type(struct dwarf_builder *b, const struct die *d)
{
	return finish(b, type_at(b, d, true));
}

const struct type *dwarf_build_type_of(struct dwarf_builder *b, const struct die *d)
{
	return finish(b, dwarf_type_of(b, d, true));
}

const struct type *dwarf_build_function(struct dwarf_builder *b, const struct die *d)
{
	return finish(b, function_type(b, d));
}
