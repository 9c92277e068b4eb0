/* SPDX-License-Identifier: MIT */
/*
 * Casts: numbers and pointers to others, numbers to arrays of as many bytes and back, texts and
 * buffers to arrays of bytes, to texts of another length, and to whether there is anything.
 */
#include "probe/compile/checker.h"

static const struct type *refuse(
	struct check_clause *c, struct expr *e, const struct type *to, const struct type *from)
{
	if (to->kind == TYPE_FLOAT || from->kind == TYPE_FLOAT)
		return check_refuse(c, e->place, "float",
			"BPF has no floating point: no cast from %s to %s", type_text(c, from),
			type_text(c, to));
	check_error(c, e->place, "type", "a %s cannot be cast to %s", type_text(c, from),
		type_text(c, to));
	if (to->kind == TYPE_STRUCT)
		check_hint(c, "cast to a pointer: (%s *)", type_text(c, to));
	else if (to->kind == TYPE_ARRAY)
		check_hint(c, "an array of integers is made of an integer, a string or a buffer");
	return check_bad(c);
}

static const struct type *refuse_size(
	struct check_clause *c, struct expr *e, uint64_t from, const struct type *to)
{
	return check_refuse(c, e->place, "type", "%llu bytes cannot be cast to %s, which has %llu",
		(unsigned long long)from, type_text(c, to), (unsigned long long)to->size);
}

/* Bytes of a value that becomes an array; 0: it cannot. `is_exact`: the array has as many. */
static uint64_t array_bytes(struct check_clause *c, const struct expr *e, const struct type *to,
	const struct type *from, bool *is_exact)
{
	uint64_t bytes = 1;

	*is_exact = true;
	if (from->kind == TYPE_INT && e->a->is_constant[c->mode]) {
		uint64_t v = e->a->constant[c->mode];

		if (to->n && to->size <= 8)
			return to->size;
		while (bytes < 8 && fold_convert(check_int(c, (uint32_t)bytes, true), v) != v)
			bytes *= 2;
		return bytes;
	}
	if (from->kind == TYPE_INT || (from->kind == TYPE_ARRAY && from->of->kind == TYPE_INT))
		return from->size;
	*is_exact = false;
	if (to->of->size != 1 || (from->kind != TYPE_STRING && from->kind != TYPE_BYTES))
		return 0;
	return from->kind == TYPE_STRING ? from->n + 1 : from->n; /* with the NUL */
}

static const struct type *cast_to_array(
	struct check_clause *c, struct expr *e, const struct type *to, const struct type *from)
{
	bool is_exact;
	uint64_t bytes;

	if (to->of->kind != TYPE_INT)
		return refuse(c, e, to, from);
	bytes = array_bytes(c, e, to, from, &is_exact);
	if (!bytes)
		return refuse(c, e, to, from);
	if (to->n ? is_exact && bytes != to->size : bytes % to->of->size != 0)
		return refuse_size(c, e, bytes, to);
	if (to->size > CHECK_VALUE_MAX)
		return check_refuse(c, e->place, "size", "an array of %llu bytes is too large",
			(unsigned long long)to->size);
	return to->n ? to : types_array(check_types(c), to->of, bytes / to->of->size);
}

static const struct type *cast_to_string(
	struct check_clause *c, struct expr *e, const struct type *to, const struct type *from)
{
	uint64_t n = to->n;

	if (!type_is_text(from) && !type_is_scalar(from))
		return refuse(c, e, to, from);
	if (!n)
		n = type_is_text(from) ? check_text_bytes(from) : c->session->string_bytes;
	to = types_string(check_types(c), n);
	return check_text_fits(c, to, e->place) ? to : check_bad(c);
}

const struct type *check_cast(struct check_clause *c, struct expr *e)
{
	const struct type *from = check_value(c, e->a), *to;
	enum space space = check_space(c);

	if (from->kind == TYPE_POINTER)
		space = from->space;
	if (e->decl->kind == DECL_ARRAY && !e->decl->n) { /* as long as the value */
		to = check_declared(c, e->decl->of, space);
		to = to->kind == TYPE_BAD ? to : types_array(check_types(c), to, 0);
	} else {
		to = check_declared(c, e->decl, space);
	}
	if (from->kind == TYPE_BAD || to->kind == TYPE_BAD)
		return check_bad(c);
	if (to->kind == TYPE_STRING)
		return cast_to_string(c, e, to, from);
	if (to->kind == TYPE_ARRAY)
		return cast_to_array(c, e, to, from);
	if (to->is_bool && type_is_text(from))
		return to;
	if (to->kind == TYPE_INT && from->kind == TYPE_ARRAY && from->of->kind == TYPE_INT)
		return from->size == to->size ? to : refuse_size(c, e, from->size, to);
	if (!type_is_scalar(to) || !type_is_scalar(from))
		return refuse(c, e, to, from);
	if (e->a->is_constant[c->mode])
		check_set_constant(c, e, to, e->a->constant[c->mode]);
	return to;
}
