/* SPDX-License-Identifier: MIT */
/*
 * From declarations as the parser has them to types. Names are looked for in the script, then in
 * the sources, then among those of every C program. While the declarations of the script are gone
 * through, a structure that is only mentioned stays open, since its body may follow; a clause that
 * mentions it later gets the source's.
 */
#include <stdlib.h>
#include <string.h>

#include "probe/types/type_store.h"

#define DECL_DEPTH_MAX 250 /* the parser allows SCRIPT_NESTING_MAX */

uint32_t type_asked_align(struct types *t, const struct decl_type *decl)
{
	if (!decl->align)
		return 0;
	if (decl->align <= TYPE_ALIGN_MAX && (decl->align & (decl->align - 1)) == 0)
		return decl->align;
	diag_error(t->diags, decl->place, "range", "aligned(%u): must be a power of two up to %u",
		decl->align, TYPE_ALIGN_MAX);
	return 0;
}

static const struct declared *tag_of(const struct types *t, const struct type *type)
{
	const char *space = type->name ? strchr(type->name, ' ') : NULL;

	return space ? names_find(&t->tags, space + 1) : NULL;
}

static const struct type *no_size(
	struct types *t, const struct type *type, struct place place, const char *what)
{
	const struct declared *d = tag_of(t, type);

	if (type->kind == TYPE_VOID)
		diag_error(t->diags, place, "incomplete", "%s: void has no size", what);
	else if (type->kind == TYPE_FUNCTION)
		diag_error(t->diags, place, "type",
			"%s: a function is no value; a pointer to one is", what);
	else if (d && d->is_announced)
		diag_error(t->diags, place, "incomplete",
			"%s: the fields of '%s' are not known here", what, type->name);
	else
		diag_error(
			t->diags, place, "unknown-type", "%s: '%s' is not known", what, type->name);
	if (type->kind == TYPE_STRUCT)
		diag_hint(t->diags, "a pointer to it needs no fields");
	return types_bad(t);
}

const struct type *type_with_size(
	struct types *t, const struct type *type, struct place place, const char *what)
{
	const struct declared *d;

	if (type->kind == TYPE_VOID || type->kind == TYPE_FUNCTION)
		return no_size(t, type, place, what);
	if (type->kind != TYPE_STRUCT || type->is_complete)
		return type;
	/* A structure being declared is not that of a source, even if it has the same name. */
	d = tag_of(t, type);
	if (!d || !d->has_body)
		type = types_completed(t, type);
	return type->is_complete ? type : no_size(t, type, place, what);
}

/* --- kinds of declarations ------------------------------------------------------------------- */

static const struct type *resolve_number(struct types *t, const struct decl_type *decl)
{
	bool is_signed = !decl->is_unsigned;

	switch (decl->kind) {
	case DECL_BOOL:
		return types_named_int(t, "bool", 1, false);
	case DECL_CHAR:
		return is_signed ? types_char(t) : types_named_int(t, "unsigned char", 1, false);
	case DECL_SHORT:
		return types_int(t, 2, is_signed);
	case DECL_INT:
		return types_int(t, 4, is_signed);
	case DECL_LONG:
		return types_long(t, is_signed);
	case DECL_LONG_LONG:
		return types_named_int(
			t, is_signed ? "long long" : "unsigned long long", 8, is_signed);
	case DECL_FIXED:
		return types_int(t, decl->bytes, is_signed);
	case DECL_FLOAT:
		return types_float(t, 4);
	case DECL_DOUBLE:
		return types_float(t, 8);
	case DECL_LONG_DOUBLE:
		return types_float(t, 16);
	default:
		return types_void(t);
	}
}

static const struct type *resolve_name(struct types *t, const struct decl_type *decl)
{
	const struct declared *d = names_find(&t->names, decl->name);
	const struct type *type;

	if (d && d->kind == DECLARED_TYPEDEF)
		return d->type;
	type = source_named(t, "", decl->name);
	if (!type)
		type = builtin_named(t, decl->name);
	/* C++ and bpftrace leave the word out. */
	if (!type)
		type = source_named(t, "struct", decl->name);
	if (type)
		return type;
	diag_error(t->diags, decl->place, "unknown-type", "'%s' is no type that is known here",
		decl->name);
	d = names_find(&t->tags, decl->name);
	if (d)
		diag_hint(t->diags, "there is a '%s'", d->type->name);
	return types_bad(t);
}

static bool tag_matches(const struct type *type, const struct decl_type *decl)
{
	if (decl->kind == DECL_ENUM)
		return type->is_enum;
	return type->kind == TYPE_STRUCT && type->is_union == decl->is_union;
}

/* "struct item" without a body. */
static const struct type *resolve_tag(struct types *t, const struct decl_type *decl)
{
	const struct declared *d = names_find(&t->tags, decl->name);
	const char *name = tag_name(t, decl);
	const struct type *type = NULL;
	struct declared *entry;
	struct type *open;

	if (d && !tag_matches(d->type, decl)) {
		diag_error(t->diags, decl->place, "type", "'%s' was declared as '%s'", name,
			d->type->name);
		return types_bad(t);
	}
	if (d && (d->type->is_complete || t->is_declaring))
		return d->type;
	if (decl->kind == DECL_ENUM || !t->is_declaring)
		type = source_named(t,
			decl->kind == DECL_ENUM ? "enum"
			: decl->is_union	? "union"
						: "struct",
			decl->name);
	/* Who asks has chosen the space, by what is probed or by check_memory.c: is_kernels_alone(). */
	if (!type && t->space == SPACE_KERNEL && decl->kind == DECL_STRUCT && !t->is_declaring)
		type = source_named(t,
			decl->is_union ? TYPE_WORD_KERNEL "union" : TYPE_WORD_KERNEL "struct",
			decl->name);
	if (type)
		return type;
	if (d)
		return d->type;
	if (decl->kind == DECL_ENUM) {
		diag_error(t->diags, decl->place, "unknown-type", "'%s' is not known", name);
		return types_bad(t);
	}
	open = types_new_struct(t, name, decl->is_union);
	entry = names_ensure(&t->tags, decl->name);
	*entry = (struct declared){
		.kind = DECLARED_TAG, .type = open, .open = open, .place = decl->place};
	return open;
}

static const struct type *resolve_pointer(struct types *t, const struct decl_type *decl)
{
	const struct type *to = type_resolve(t, decl->of), *pointer;

	if (to->kind == TYPE_BAD)
		return to;
	pointer = types_pointer(t, to, t->space);
	if (pointer->kind == TYPE_BAD)
		diag_error(t->diags, decl->place, "nesting",
			"pointers are nested more than %d deep", TYPE_DEPTH_MAX);
	return pointer;
}

static const struct type *resolve_array(struct types *t, const struct decl_type *decl)
{
	const struct type *of = type_resolve(t, decl->of), *array;
	struct constant n = {0, false};

	of = type_with_size(t, of, decl->place, "elements of an array");
	if (decl->n && !constant_of_expr(t, decl->n, &n))
		return types_bad(t);
	if (of->kind == TYPE_BAD)
		return of;
	if (!n.is_unsigned && n.value < 0) {
		diag_error(t->diags, decl->n->place, "range", "an array cannot have %lld elements",
			(long long)n.value);
		return types_bad(t);
	}
	if (of->size && (uint64_t)n.value > TYPE_BYTES_MAX / of->size) {
		diag_error(t->diags, decl->n->place, "size",
			"an array of %llu elements of %llu bytes is too large",
			(unsigned long long)n.value, (unsigned long long)of->size);
		return types_bad(t);
	}
	array = types_array(t, of, (uint64_t)n.value);
	if (array->kind == TYPE_BAD)
		diag_error(t->diags, decl->place, "nesting", "arrays are nested more than %d deep",
			TYPE_DEPTH_MAX);
	return array;
}

static const struct type *resolve_string(struct types *t, const struct decl_type *decl)
{
	struct constant n = {0, false};

	if (decl->n && !constant_of_expr(t, decl->n, &n))
		return types_bad(t);
	if (decl->n && (n.value < 1 || (uint64_t)n.value > TYPE_STRING_MAX)) {
		diag_error(t->diags, decl->n->place, "size", "a string has 1 to %u bytes",
			TYPE_STRING_MAX);
		return types_bad(t);
	}
	return types_string(t, (uint64_t)n.value);
}

/* Parameters that are arrays or functions are passed as pointers. */
static const struct type *parameter_type(struct types *t, const struct decl_field *p)
{
	const struct type *type = type_resolve(t, p->type);

	if (type->kind == TYPE_ARRAY)
		return types_pointer(t, type->of, t->space);
	if (type->kind == TYPE_FUNCTION)
		return types_pointer(t, type, t->space);
	return type_with_size(t, type, p->place, "a parameter");
}

static const struct type *resolve_function(struct types *t, const struct decl_type *decl)
{
	const struct type *returns = type_resolve(t, decl->of), *function;
	const struct decl_field *p = decl->fields;
	VEC(struct type_field) parameters = {0};

	if (returns->kind == TYPE_ARRAY || returns->kind == TYPE_FUNCTION) {
		diag_error(t->diags, decl->place, "type",
			"a function returns neither an array nor a function");
		returns = types_bad(t);
	}
	/* f(void) */
	if (p && !p->next && !p->name && p->type->kind == DECL_VOID)
		p = NULL;
	for (; p && parameters.n < TYPE_FIELDS_MAX; p = p->next) {
		struct type_field f = {.name = p->name, .type = parameter_type(t, p)};

		vec_push(&parameters, f);
	}
	function = types_new_function(
		t, returns, parameters.v, (uint32_t)parameters.n, decl->is_variadic);
	vec_release(&parameters);
	return function;
}

/* Only the checker knows what an expression is. */
static const struct type *resolve_typeof(struct types *t, const struct decl_type *decl)
{
	const struct type *type = decl->of_value->type[t->mode];

	if (type)
		return type;
	diag_error(t->diags, decl->place, "type", "typeof can only be used in a clause");
	return types_bad(t);
}

static const struct type *resolve_kind(struct types *t, const struct decl_type *decl)
{
	switch (decl->kind) {
	case DECL_NAMED:
		return resolve_name(t, decl);
	case DECL_STRUCT:
	case DECL_ENUM:
		return decl->is_defined ? type_define(t, decl) : resolve_tag(t, decl);
	case DECL_POINTER:
		return resolve_pointer(t, decl);
	case DECL_ARRAY:
		return resolve_array(t, decl);
	case DECL_FUNCTION:
		return resolve_function(t, decl);
	case DECL_STRING:
		return resolve_string(t, decl);
	case DECL_TYPEOF:
		return resolve_typeof(t, decl);
	default:
		return resolve_number(t, decl);
	}
}

const struct type *type_resolve(struct types *t, const struct decl_type *decl)
{
	const struct type *type;

	if (t->depth >= DECL_DEPTH_MAX) {
		diag_error(t->diags, decl->place, "nesting", "the type is nested too deeply");
		return types_bad(t);
	}
	t->depth++;
	type = resolve_kind(t, decl);
	t->depth--;
	return type;
}

/* --- declarations of the script -------------------------------------------------------------- */

/* "typedef int item_t" prints as item_t, and "typedef struct { ... } item" gets its name. */
static const struct type *name_typedef(
	struct types *t, const struct decl *decl, const struct type *type)
{
	bool is_unnamed_enum = type->is_enum && !decl->type->name;
	uint32_t align = decl->type->is_defined ? 0 : type_asked_align(t, decl->type);
	struct type *copy;

	if (type->kind == TYPE_INT && !type->is_bool && !type->is_char &&
		(!type->is_enum || is_unnamed_enum))
		type = is_unnamed_enum ? types_enum(t, decl->name, (uint32_t)type->size,
						 type->is_signed, type->enumerators)
				       : types_named_int(t, decl->name, (uint32_t)type->size,
						 type->is_signed);
	if (type->kind == TYPE_STRUCT && !type->name && decl->type->is_defined)
		((struct type *)type)->name = arena_strdup(t->arena, decl->name);
	if (!align || type->kind == TYPE_BAD || !type->is_complete)
		return type;
	copy = arena_dup(t->arena, type, sizeof(*type));
	copy->align = align;
	return copy;
}

static void declare(struct types *t, const struct decl *decl)
{
	const struct type *type = type_resolve(t, decl->type);
	enum declared_kind kind = decl->is_typedef		? DECLARED_TYPEDEF
				  : type->kind == TYPE_FUNCTION ? DECLARED_FUNCTION
								: DECLARED_VARIABLE;
	struct declared *d;

	if (!decl->name) {
		d = decl->type->name ? names_find(&t->tags, decl->type->name) : NULL;
		if (d)
			d->is_announced = true;
		return;
	}
	if (kind == DECLARED_TYPEDEF)
		type = name_typedef(t, decl, type);
	else if (kind == DECLARED_VARIABLE && type->kind != TYPE_BAD)
		type = type_with_size(t, type, decl->place, "a variable");
	d = names_ensure(&t->names, decl->name);
	if (d->kind == DECLARED_NOTHING)
		*d = (struct declared){.kind = kind, .type = type, .place = decl->place};
	else if (d->kind != kind || (type->kind != TYPE_BAD && d->type->kind != TYPE_BAD &&
					    !type_is_same(d->type, type)))
		diag_error(t->diags, decl->place, "duplicate",
			"'%s' was declared before as something else", decl->name);
}

void types_declare(struct types *t, const struct decl *decls, struct diags *diags)
{
	t->decls = decls;
	t->diags = diags;
	t->is_declaring = true;
	for (const struct decl *d = decls; d; d = d->next)
		declare(t, d);
	t->is_declaring = false;
}

/* --- types in clauses ------------------------------------------------------------------------ */

/* Structures of the script laid out as the kernel would: LP64, and what they point to is there. */
static struct types *kernel_types(struct types *t, struct diags *diags)
{
	if (t->space == SPACE_KERNEL)
		return t;
	if (!t->kernel) {
		t->kernel = types_new(MODE_64);
		t->kernel->space = SPACE_KERNEL;
		types_set_sources(t->kernel, t->sources, t->n_sources);
		types_declare(t->kernel, t->decls, diags);
	}
	return t->kernel;
}

const struct type *types_of_decl(
	struct types *t, const struct decl_type *decl, enum space space, struct diags *diags)
{
	const struct type *type;

	if (space == SPACE_KERNEL)
		t = kernel_types(t, diags);
	t->diags = diags;
	type = type_resolve(t, decl);
	if (type->kind == TYPE_STRUCT)
		type = type_with_size(t, type, decl->place, "this needs a size");
	if (decl->kind == DECL_ARRAY && !decl->n && type->kind != TYPE_BAD) {
		diag_error(t->diags, decl->place, "incomplete",
			"an array without a length has no size");
		return types_bad(t);
	}
	return type;
}
