/* SPDX-License-Identifier: MIT */
/* Maps: keys and values in canonical shapes, the same for all clauses and both modes. */
#include <string.h>

#include "probe/compile/builtin.h"

#define KEYS_MAX 16

static const char *shape_text(struct check_clause *c, const struct shape *shape)
{
	struct buf b = {0};
	const char *text;

	shape_print(shape, &b);
	text = arena_strndup(c->session->arena, buf_text(&b), b.n);
	buf_release(&b);
	return text;
}

static const struct map_decl *declaration(const struct check_session *s, const char *name)
{
	const struct map_decl *d = s->script->map_decls;

	while (d && strcmp(d->name, name))
		d = d->next;
	return d;
}

struct map_use *check_map_of(struct check_clause *c, struct expr *e)
{
	struct check_session *s = c->session;
	struct map_use **at = &s->maps, *m;
	struct stream_map_def def = {.place = e->place};

	for (; *at; at = &(*at)->next) {
		if (!strcmp((*at)->name + 1, e->name))
			break;
	}
	if (!*at) {
		if (s->stream->maps.n >= STREAM_MAPS_MAX - STREAM_MAP_FIRST_OF_SCRIPT) {
			check_error(c, e->place, "size", "there are more than %d maps",
				STREAM_MAPS_MAX - STREAM_MAP_FIRST_OF_SCRIPT);
			return NULL;
		}
		m = arena_zalloc(s->arena, sizeof(*m));
		m->name = arena_printf(s->stream->arena, "@%s", e->name);
		m->number = (uint32_t)s->stream->maps.n;
		m->place = e->place;
		m->decl = declaration(s, e->name);
		def.name = m->name;
		vec_push(&s->stream->maps, def);
		*at = m;
	}
	check_mean(c, e, MEANING_MAP)->map = *at;
	return *at;
}

/* Joins a shape with what is known. In the final pass nothing changes any more: code that relies
 * on the shapes exists already. False when the two do not go together. */
static bool join_shape(struct check_clause *c, struct map_use *m, struct shape **have,
	struct shape *add, struct place place)
{
	bool has_grown = false;
	struct shape *copy;

	if (c->session->pass == CHECK_LEARN) {
		if (!shape_merge(have, add, &has_grown))
			return false;
		c->session->is_changed |= has_grown;
		return true;
	}
	copy = *have ? shape_copy(c->session->arena, *have) : NULL;
	if (!shape_merge(&copy, add, &has_grown))
		return false;
	if (has_grown)
		check_error(c, place, "type", "the type of %s is not settled", m->name);
	return true;
}

/* --- shapes of expressions -------------------------------------------------------------------- */

/* The same structure in the other mode, for the comparison of layouts. */
static const struct type *in_other_mode(struct check_clause *c, const struct type *type)
{
	static const char *const words[] = {"struct ", "union "};
	struct types *other = c->session->types[check_other(c->mode)];

	if (type->kind != TYPE_STRUCT || !type->name || !other)
		return NULL;
	for (int i = 0; i < 2; i++) {
		size_t n = strlen(words[i]);

		if (!strncmp(type->name, words[i], n))
			return check_struct_named(other, i ? "union" : "struct", type->name + n);
	}
	return check_struct_named(other, "", type->name);
}

/* Numbers that are constants, also those in tuples. */
static void note_constants(const struct check_clause *c, struct shape *shape, const struct expr *e)
{
	const struct expr *part = e->args;

	if (shape->kind == SHAPE_INT && e->is_constant[c->mode])
		shape->is_weak = (int64_t)e->constant[c->mode] >= 0;
	if (shape->kind != SHAPE_TUPLE || e->kind != EXPR_TUPLE)
		return;
	for (uint32_t i = 0; part && i < shape->n_fields; i++, part = part->next)
		note_constants(c, shape->fields[i].shape, part);
}

static struct shape *shape_of(struct check_clause *c, struct expr *e)
{
	const struct type *type = e->type[c->mode];
	struct shape *shape = check_shape(c->session, type, in_other_mode(c, type), e->place);

	if (!shape) {
		c->n_errors++;
		return NULL;
	}
	note_constants(c, shape, e);
	return shape;
}

/* --- keys ------------------------------------------------------------------------------------- */

static void key_mismatch(
	struct check_clause *c, struct map_use *m, const struct shape *key, struct place place)
{
	if (m->key->kind == SHAPE_NONE)
		check_error(c, place, "key", "%s has no key elsewhere", m->name);
	else if (key->kind == SHAPE_NONE)
		check_error(c, place, "key", "%s has a key elsewhere: %s", m->name,
			shape_text(c, m->key));
	else
		check_error(c, place, "key", "the key of %s is %s elsewhere, and %s here", m->name,
			shape_text(c, m->key), shape_text(c, key));
}

static struct shape *key_shape(
	struct check_clause *c, struct expr *keys, uint32_t n, struct place place)
{
	struct shape *parts[KEYS_MAX];
	struct arena *arena = c->session->stream->arena;
	bool is_bad = false;
	uint32_t i = 0;

	if (n > KEYS_MAX) {
		check_error(c, place, "key", "a key has at most %d parts", KEYS_MAX);
		return NULL;
	}
	for (struct expr *e = keys; e && i < n; e = e->next, i++) {
		const struct type *type = check_value(c, e);

		parts[i] = NULL;
		if (type->kind == TYPE_FLOAT) {
			check_error(c, e->place, "key", "a %s cannot be a key", type_text(c, type));
		} else if (type->kind != TYPE_BAD) {
			parts[i] = shape_of(c, e);
		}
		is_bad |= !parts[i];
	}
	if (is_bad)
		return NULL;
	if (i == 0)
		return shape_new(arena, SHAPE_NONE, false, 0);
	return i == 1 ? parts[0] : shape_new_tuple(arena, parts, i);
}

void check_map_keys(struct check_clause *c, struct map_use *m, struct expr *keys, uint32_t n,
	struct place place)
{
	struct shape *key = key_shape(c, keys, n, place);

	if (!key)
		return;
	if (!join_shape(c, m, &m->key, key, place))
		key_mismatch(c, m, key, place);
}

/* --- values ----------------------------------------------------------------------------------- */

static void value_mismatch(
	struct check_clause *c, struct map_use *m, const struct shape *value, struct place place)
{
	bool is_aggregation = shape_is_aggregation(value) || shape_is_aggregation(m->value);

	if (value->kind == SHAPE_LHIST && m->value->kind == SHAPE_LHIST)
		check_error(c, place, "aggregation", "%s is lhist(..., %lld, %lld, %lld) elsewhere",
			m->name, (long long)m->value->min, (long long)m->value->max,
			(long long)m->value->step);
	else if (value->kind == m->value->kind && is_aggregation)
		check_error(c, place, "aggregation", "%s has other arguments for %s elsewhere",
			m->name, shape_text(c, value));
	else if (value->kind == SHAPE_STRUCT && m->value->kind == SHAPE_STRUCT)
		check_error(c, place, "layout", "%s has a structure of another layout elsewhere",
			m->name);
	else
		check_error(c, place, is_aggregation ? "aggregation" : "type",
			"%s is %s elsewhere, and %s here", m->name, shape_text(c, m->value),
			shape_text(c, value));
}

/* Pointers keep what they point to and structures their fields; two kinds of pointer make void. */
static void note_type(struct check_clause *c, struct map_use *m, const struct type *type)
{
	const struct type **have = &m->value_type[c->mode];
	struct types *t = check_types(c);

	if (type->kind != TYPE_POINTER && type->kind != TYPE_STRUCT)
		return;
	if (!*have)
		*have = type;
	else if (type->kind == TYPE_POINTER && (*have)->kind == TYPE_POINTER &&
		 (*have)->of->kind != TYPE_VOID && !type_is_same(*have, type))
		*have = types_pointer(t, types_void(t), type->space);
	else
		return;
	if (c->session->pass == CHECK_LEARN)
		c->session->is_changed = true;
}

static void join_value(struct check_clause *c, struct map_use *m, struct shape *value,
	const struct type *type, struct place place)
{
	if (join_shape(c, m, &m->value, value, place))
		note_type(c, m, type);
	else
		value_mismatch(c, m, value, place);
}

const struct type *check_map_value_type(struct check_clause *c, struct map_use *m)
{
	bool has_own = m->value->kind == SHAPE_POINTER || m->value->kind == SHAPE_STRUCT;

	if (shape_is_readable(m->value))
		return check_int(c, 8, m->value->is_signed || m->value->kind == SHAPE_COUNT);
	if (has_own && m->value_type[c->mode])
		return m->value_type[c->mode];
	return check_shape_type(check_types(c), m->value);
}

const struct type *check_map_read(struct check_clause *c, struct expr *e)
{
	struct map_use *m = check_map_of(c, e);

	if (!m)
		return check_bad(c);
	m->is_read = true;
	check_map_keys(c, m, e->args, e->n_args, e->place);
	if (!m->value)
		return check_bad(c); /* not learned yet */
	if (shape_is_aggregation(m->value) && !shape_is_readable(m->value)) {
		check_error(c, e->place, "aggregation", "%s is %s, which is not one number",
			m->name, shape_text(c, m->value));
		return check_hint(c, "print(%s) prints it", m->name);
	}
	return check_map_value_type(c, m);
}

/* --- assigning -------------------------------------------------------------------------------- */

const struct expr *check_aggregating_call(const struct expr *e)
{
	while (e && e->kind == EXPR_BLOCK)
		e = e->a;
	return e && e->kind == EXPR_CALL ? e : NULL;
}

/* The shape of count(), lhist(v, min, max, step), ...; the call was checked. */
static struct shape *aggregation_shape(
	struct check_clause *c, const struct expr *call, const struct type *type)
{
	struct arena *arena = c->session->stream->arena;
	const struct expr *a = call->args;

	if (type->aggregation == AGGREGATION_TSERIES) {
		enum tseries_function function;

		builtin_tseries_function(call, &function);
		return shape_new_tseries(arena, function, (int64_t)a->next->next->constant[c->mode],
			(int64_t)a->next->constant[c->mode], type->is_signed);
	}
	if (type->aggregation == AGGREGATION_LHIST)
		return shape_new_lhist(arena, (int64_t)a->next->constant[c->mode],
			(int64_t)a->next->next->constant[c->mode],
			(int64_t)a->next->next->next->constant[c->mode]);
	return shape_new(arena, shape_of_aggregation(type->aggregation), type->is_signed,
		type->aggregation == AGGREGATION_HIST && a->next
			? (uint32_t)a->next->constant[c->mode]
			: 0);
}

static const struct type *assign_aggregation(
	struct check_clause *c, struct expr *e, struct map_use *m, const struct type *type)
{
	const struct expr *call = check_aggregating_call(e->b);

	if (e->op != OP_NONE || !call)
		return check_refuse(
			c, e->place, "aggregation", "an aggregation is assigned by = alone");
	join_value(c, m, aggregation_shape(c, call, type), type, e->place);
	e->a->type[c->mode] = type;
	return check_void(c);
}

static void learn_int(struct check_clause *c, struct map_use *m, struct place place)
{
	struct shape *value = shape_new(c->session->stream->arena, SHAPE_INT, true, 0);

	value->is_weak = true;
	join_value(c, m, value, check_int(c, 8, true), place);
}

static const struct type *assigned_alone(
	struct check_clause *c, struct expr *e, const struct map_use *m)
{
	return check_refuse(c, e->place, "aggregation", "%s is %s: it is assigned by = alone",
		m->name, shape_text(c, m->value));
}

/* @x += b reads @x: its own type matters only when nothing else gave it one. */
static const struct type *compound_type(struct check_clause *c, struct expr *e, struct map_use *m)
{
	bool was_read = m->is_read;

	if (!m->value && e->b->type[c->mode]->kind == TYPE_INT)
		learn_int(c, m, e->place);
	check_expr(c, e->a);
	m->is_read = was_read;
	if (m->value && shape_is_aggregation(m->value))
		return assigned_alone(c, e, m);
	return check_arithmetic(c, e, e->op, e->a, e->b);
}

const struct type *check_map_assign(struct check_clause *c, struct expr *e)
{
	const struct type *type = check_expr(c, e->b);
	struct map_use *m = check_map_of(c, e->a);
	struct shape *value;
	struct expr computed;

	if (!m)
		return check_bad(c);
	m->is_assigned = true;
	if (type->kind == TYPE_AGGREGATION) {
		check_map_keys(c, m, e->a->args, e->a->n_args, e->a->place);
		return assign_aggregation(c, e, m, type);
	}
	type = check_value(c, e->b);
	computed = *e->b;
	if (e->op != OP_NONE) {
		type = compound_type(c, e, m);
		computed.type[c->mode] = type;
		computed.is_constant[c->mode] = false;
	} else {
		check_map_keys(c, m, e->a->args, e->a->n_args, e->a->place);
	}
	if (type->kind == TYPE_BAD)
		return type;
	computed.place = e->op == OP_NONE ? e->b->place : e->place;
	value = shape_of(c, &computed);
	if (!value)
		return check_bad(c);
	join_value(c, m, value, type, e->place);
	check_mean(c, e->a, MEANING_MAP)->map = m;
	if (shape_is_aggregation(m->value))
		return check_bad(c); /* reported */
	e->a->type[c->mode] = check_map_value_type(c, m);
	return e->op == OP_NONE ? check_void(c) : e->a->type[c->mode];
}

const struct type *check_map_step(struct check_clause *c, struct expr *e)
{
	struct map_use *m = check_map_of(c, e->a);
	const struct type *type;
	bool was_read;

	if (!m)
		return check_bad(c);
	if (!m->value || m->value->is_bool || m->value->enumerators)
		learn_int(c, m, e->place); /* one more than true or RED is a number */
	was_read = m->is_read;
	m->is_assigned = true;
	type = check_expr(c, e->a);
	m->is_read = was_read;
	if (type->kind != TYPE_BAD && shape_is_aggregation(m->value))
		return assigned_alone(c, e, m);
	if (type->kind == TYPE_BAD || type_is_scalar(type))
		return type;
	return check_refuse(c, e->place, "type", "%s is %s: only integers have %s", m->name,
		shape_text(c, m->value), e->op == OP_ADD ? "++" : "--");
}
