/* SPDX-License-Identifier: MIT */
/* Pointers, members, elements, casts and sizes. */
#include <stdlib.h>
#include <string.h>

#include "probe/compile/checker.h"
#include "probe/points/point_kind.h"
#include "probe/points/syscalls.h"

/* Addresses that are plain numbers (arg0, a cast of an integer) belong to the program, except where
 * kernel code is probed. */
enum space check_space(const struct check_clause *c)
{
	return point_has(c->point->spec.kind, POINT_OF_KERNEL) ? SPACE_KERNEL : SPACE_USER;
}

/* Whether a value of that type can be read from memory. */
static const struct type *check_readable(
	struct check_clause *c, struct expr *e, const struct type *type)
{
	type = types_completed(check_types(c), type);
	if (type->kind == TYPE_VOID) {
		check_error(c, e->place, "type", "what a void pointer points to has no type");
		check_hint(c, "cast it first: *(int *)p");
	} else if (type->kind == TYPE_FUNCTION) {
		check_error(c, e->place, "type", "a function cannot be read");
	} else if (type->kind == TYPE_STRUCT && !type->is_complete) {
		check_error(c, e->place, "incomplete", "the fields of %s are not known",
			type_text(c, type));
		check_hint(c, "declare it in the script, or use a file with debug information");
	} else {
		return type;
	}
	return check_bad(c);
}

/* A structure that only the kernel has is the kernel's, also where plain addresses are those of the
 * program: nothing else can be meant by (struct mount *)n. This is the one place that decides it. */
static bool is_kernels_alone(struct check_clause *c, const struct decl_type *decl)
{
	struct types *types = check_types(c);

	while (decl->kind == DECL_POINTER || decl->kind == DECL_ARRAY)
		decl = decl->of;
	if (decl->kind != DECL_STRUCT || decl->is_union || decl->is_defined || !decl->name ||
		types_has_tag(types, decl->name))
		return false;
	if (point_has(c->point->spec.kind, POINT_OF_CALLS)
			? syscall_hands_struct(decl->name)
			: check_struct_named(types, "struct", decl->name) != NULL)
		return false;
	return types_kernel_struct(types, decl->name, SPACE_KERNEL) != NULL;
}

const struct type *check_declared(
	struct check_clause *c, const struct decl_type *decl, enum space space)
{
	const struct type *type;

	if (space == SPACE_USER && is_kernels_alone(c, decl))
		space = SPACE_KERNEL;

	for (const struct decl_type *d = decl; d; d = d->of)
		if (d->kind == DECL_TYPEOF && check_value(c, d->of_value)->kind == TYPE_BAD)
			return check_bad(c);
	type = types_of_decl(check_types(c), decl, space, c->session->diags);
	if (type->kind == TYPE_BAD)
		c->n_errors++; /* reported by types_of_decl */
	return type;
}

const struct type *check_deref(struct check_clause *c, struct expr *e)
{
	const struct type *type = check_value(c, e->a);

	if (type->kind == TYPE_BAD)
		return type;
	if (type->kind == TYPE_ARRAY)
		return check_readable(c, e, type->of);
	if (type->kind != TYPE_POINTER) {
		check_error(c, e->place, "type", "* needs a pointer, and this is a %s",
			type_text(c, type));
		if (type->kind == TYPE_INT)
			check_hint(c, "cast it first: *(int *)%s",
				e->a->kind == EXPR_NAME ? e->a->name : "address");
		return check_bad(c);
	}
	return check_readable(c, e, type->of);
}

/* --- & ---------------------------------------------------------------------------------------- */

/* The space in which the memory of an lvalue lies; false when it has no address. */
static bool find_space(struct check_clause *c, const struct expr *e, enum space *space)
{
	const struct meaning *m = e->meaning[c->mode];
	const struct type *a = e->a ? e->a->type[c->mode] : NULL;

	switch (e->kind) {
	case EXPR_NAME:
		*space = SPACE_USER;
		return m && m->kind == MEANING_GLOBAL;
	case EXPR_LOCAL:
		*space = SPACE_KERNEL; /* our own memory */
		if (!m || m->variable->is_loop)
			return false;
		m->variable->is_addressed = true;
		return true;
	case EXPR_MAP:
		*space = SPACE_KERNEL;
		return m && a == NULL;
	case EXPR_UNARY:
	case EXPR_INDEX:
	case EXPR_MEMBER:
		if (m || !a || (e->kind == EXPR_UNARY && e->op != OP_DEREF))
			return false;
		if (a->kind == TYPE_POINTER) {
			*space = a->space;
			return true;
		}
		/* A part of a map's value is a copy. */
		return e->a->kind != EXPR_MAP && find_space(c, e->a, space);
	default:
		return false;
	}
}

static bool is_bit_field(struct check_clause *c, const struct expr *e)
{
	const struct type *s;
	struct type_field f;

	if (e->kind != EXPR_MEMBER || !e->a->type[c->mode])
		return false;
	s = e->a->type[c->mode];
	if (s->kind == TYPE_POINTER)
		s = s->of;
	return s->kind == TYPE_STRUCT && type_find_field(s, e->name, &f) && f.bit_size;
}

const struct type *check_address(struct check_clause *c, struct expr *e)
{
	const struct type *type = check_value(c, e->a);
	enum space space;

	if (type->kind == TYPE_BAD)
		return type;
	if (is_bit_field(c, e->a))
		return check_refuse(
			c, e->place, "type", "the bit-field '%s' has no address", e->a->name);
	if (!find_space(c, e->a, &space)) {
		check_error(c, e->place, "type", "this value has no address");
		return check_hint(
			c, "& takes $x, @m[k], globals of the program, *p, p[i], p->x and s.x");
	}
	return types_pointer(check_types(c), type, space);
}

/* --- a[b] ------------------------------------------------------------------------------------- */

const struct type *check_index(struct check_clause *c, struct expr *e)
{
	const struct type *type = check_expr(c, e->a);
	enum mode m = c->mode;
	bool ok = check_integer(c, e->b, "an index");

	if (type->kind == TYPE_BAD || !ok)
		return check_bad(c);
	if (type->kind == TYPE_TUPLE && !e->b->is_constant[m])
		return check_refuse(
			c, e->b->place, "constant", "the index of a tuple must be a constant");
	if (type->kind == TYPE_TUPLE)
		return check_tuple_member(c, e, type);
	if (type->kind == TYPE_STRING)
		return types_char(check_types(c));
	if (type->kind != TYPE_POINTER && type->kind != TYPE_ARRAY)
		return check_refuse(c, e->place, "type",
			"[] needs an array or a pointer, and this is a %s", type_text(c, type));
	/* Arrays of 0 or 1 elements at the end of a structure stand for longer ones. */
	if (type->kind == TYPE_ARRAY && type->n > 1 && e->b->is_constant[m] &&
		e->b->constant[m] >= type->n)
		return check_refuse(c, e->b->place, "range",
			"the index %llu is out of bounds for array of size %llu",
			(unsigned long long)e->b->constant[m], (unsigned long long)type->n);
	return check_readable(c, e, type->of);
}

/* --- a.b, a->b -------------------------------------------------------------------------------- */

static void offer_fields(struct nearest *n, const struct type *s, int depth)
{
	for (uint32_t i = 0; i < s->n_fields && depth < 8; i++) {
		if (s->fields[i].name)
			nearest_offer(n, s->fields[i].name);
		else if (s->fields[i].type->kind == TYPE_STRUCT)
			offer_fields(n, s->fields[i].type, depth + 1);
	}
}

static const struct type *unknown_field(
	struct check_clause *c, struct expr *e, const struct type *s)
{
	struct nearest n = {.name = e->name};

	check_error(c, e->place, "unknown-field", "%s has no field '%s'", type_text(c, s), e->name);
	offer_fields(&n, s, 0);
	if (n.best)
		check_hint(c, "did you mean '%s'?", n.best);
	else if (s->n_fields && s->fields[0].name)
		check_hint(c, "its first field is '%s'", s->fields[0].name);
	return check_bad(c);
}

const struct type *check_member(struct check_clause *c, struct expr *e)
{
	const struct type *type, *s;
	struct type_field field;

	if (e->a->kind == EXPR_NAME && !strcmp(e->a->name, "args"))
		return check_args_field(c, e);
	type = check_expr(c, e->a);
	s = type->kind == TYPE_POINTER ? type->of : type;
	if (type->kind == TYPE_BAD || s->kind == TYPE_BAD)
		return check_bad(c);
	if (s->kind == TYPE_TUPLE)
		return check_tuple_member(c, e, s);
	if (s->kind != TYPE_STRUCT) {
		check_error(c, e->place, "type",
			"'%s' needs a structure or a pointer to one, and this is a %s", e->name,
			type_text(c, type));
		if (type->kind == TYPE_INT ||
			(type->kind == TYPE_POINTER && type->of->kind == TYPE_VOID))
			check_hint(c,
				"cast it to a structure that the script declares: ((struct x *)address)->%s",
				e->name);
		return check_bad(c);
	}
	if (check_readable(c, e, s)->kind == TYPE_BAD)
		return check_bad(c);
	if (!type_find_field(s, e->name, &field))
		return unknown_field(c, e, s);
	return field.type;
}

/* --- sizeof, offsetof ------------------------------------------------------------------------- */

const struct type *check_sizeof(struct check_clause *c, struct expr *e)
{
	const struct type *type =
		e->decl ? check_declared(c, e->decl, check_space(c)) : check_value(c, e->a);
	const struct type *result = check_int(c, 8, false);

	if (type->kind == TYPE_BAD)
		return type;
	type = types_completed(check_types(c), type);
	if (type->kind == TYPE_STRUCT && !type->is_complete)
		return check_refuse(c, e->place, "incomplete", "the size of %s is not known",
			type_text(c, type));
	if (type->kind == TYPE_VOID || type->kind == TYPE_FUNCTION)
		return check_refuse(c, e->place, "type", "%s has no size", type_text(c, type));
	check_set_constant(c, e, result, type->size);
	return result;
}

const struct type *check_offsetof(struct check_clause *c, struct expr *e)
{
	const struct type *type = check_declared(c, e->decl, check_space(c)),
			  *result = check_int(c, 8, false);
	const char *at = e->name;
	uint64_t offset = 0;
	struct type_field field = {0};

	while (type->kind != TYPE_BAD && *at) {
		size_t n = strcspn(at, ".");
		struct expr part = {
			.place = e->place, .name = arena_strndup(c->session->arena, at, n)};

		if (type->kind != TYPE_STRUCT)
			return check_refuse(c, e->place, "type",
				"offsetof needs a structure, not %s", type_text(c, type));
		if (check_readable(c, e, type)->kind == TYPE_BAD)
			return check_bad(c);
		if (!type_find_field(type, part.name, &field))
			return unknown_field(c, &part, type);
		offset += field.offset;
		type = field.type;
		at += n + (at[n] == '.');
	}
	if (type->kind == TYPE_BAD)
		return type;
	if (field.bit_size)
		return check_refuse(c, e->place, "type", "a bit-field has no offset in bytes");
	check_set_constant(c, e, result, offset);
	return result;
}
