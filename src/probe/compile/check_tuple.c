/* SPDX-License-Identifier: MIT */
/* Tuples and records: (a, b) and (x = a, y = b), and their fields. */
#include <stdlib.h>

#include "probe/compile/checker.h"

/* The smallest signed integer that holds a constant: what sizeof((1, 2)) goes by. */
static const struct type *constant_type(struct check_clause *c, uint64_t value)
{
	uint32_t bytes = check_is_like_0_17(c) ? 8 : 1;

	while (bytes < 8 && fold_convert(check_int(c, bytes, true), value) != value)
		bytes *= 2;
	return check_int(c, bytes, true);
}

static const struct type *field_type(struct check_clause *c, const struct expr *a)
{
	const struct type *type = a->type[c->mode];
	bool is_plain = type->kind == TYPE_INT && !type->is_bool && !type->is_enum;

	if (is_plain && a->is_constant[c->mode] && a->kind != EXPR_CAST &&
		!type_is_unsigned64(type))
		return constant_type(c, a->constant[c->mode]);
	return check_kept_type(check_types(c), type);
}

const struct type *check_tuple(struct check_clause *c, struct expr *e)
{
	struct type_field *fields = arena_zalloc(c->session->arena, e->n_args * sizeof(*fields));
	bool is_bad = false;
	uint32_t n = 0;

	if (e->n_args > CHECK_TUPLE_MAX)
		return check_refuse(
			c, e->place, "size", "a tuple has at most %d fields", CHECK_TUPLE_MAX);
	for (struct expr *a = e->args; a && n < e->n_args; a = a->next, n++) {
		const struct type *type = check_value(c, a);

		if (type->kind == TYPE_BAD || !check_text_fits(c, type, a->place)) {
			is_bad = true;
			continue;
		}
		fields[n].name = a->label;
		fields[n].type = field_type(c, a);
	}
	return is_bad ? check_bad(c) : types_record(check_types(c), fields, n);
}

/* Numbers are 64 bits wide in a tuple, whatever they were made of. */
const struct type *check_tuple_field(struct check_clause *c, const struct type *tuple, uint32_t i)
{
	const struct type *type = tuple->fields[i].type;

	if (type->kind != TYPE_INT || type->is_bool || type->is_enum)
		return type;
	return check_int(c, 8, !type_is_unsigned64(type));
}

static const struct type *unknown_field(
	struct check_clause *c, struct expr *e, const struct type *tuple)
{
	if (!tuple->n_fields || !tuple->fields[0].name)
		return check_refuse(c, e->place, "unknown-field", "this tuple has fields .0 to .%u",
			tuple->n_fields ? tuple->n_fields - 1 : 0);
	check_error(c, e->place, "unknown-field", "this record has no field '%s'", e->name);
	return check_hint(c, "its first field is '%s'", tuple->fields[0].name);
}

uint32_t check_tuple_index(const struct expr *member, const struct type *tuple, enum mode mode)
{
	bool is_record = tuple->n_fields && tuple->fields[0].name;
	unsigned long i;
	char *end;

	if (member->kind == EXPR_INDEX)
		return member->b->constant[mode] < tuple->n_fields
			       ? (uint32_t)member->b->constant[mode]
			       : tuple->n_fields;
	if (is_record)
		return type_tuple_find(tuple, member->name, 0);
	i = strtoul(member->name, &end, 10);
	return *end || end == member->name || i >= tuple->n_fields ? tuple->n_fields : (uint32_t)i;
}

const struct type *check_tuple_member(
	struct check_clause *c, struct expr *e, const struct type *tuple)
{
	uint32_t i = check_tuple_index(e, tuple, c->mode);

	return i < tuple->n_fields ? check_tuple_field(c, tuple, i) : unknown_field(c, e, tuple);
}

const struct type *check_join_tuples(
	struct check_clause *c, const struct type *have, const struct type *add)
{
	struct type_field *fields;

	if (have->n_fields != add->n_fields)
		return NULL;
	fields = arena_zalloc(c->session->arena, (have->n_fields + 1) * sizeof(*fields));
	for (uint32_t i = 0; i < have->n_fields; i++) {
		uint32_t k = type_tuple_find(add, have->fields[i].name, i);

		if (k >= add->n_fields || !have->fields[i].name != !add->fields[k].name)
			return NULL;
		fields[i].name = have->fields[i].name;
		fields[i].type =
			check_join(c, have->fields[i].type, false, add->fields[k].type, NULL);
		if (!fields[i].type)
			return NULL;
	}
	return types_record(check_types(c), fields, have->n_fields);
}
