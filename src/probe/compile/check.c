/* SPDX-License-Identifier: MIT */
/*
 * The checker's frame: one clause from predicate to last statement, what is settled when all of
 * them were looked at, and messages.
 *
 * 1. After check_clause gave true every expression that the lowering looks at has a type that is
 *    not TYPE_BAD. Branches behind constant conditions are not looked at by either.
 * 2. A local's type may change by an assignment further down (a longer string). The clause is then
 *    checked once more, with what is known now, so that all its expressions agree.
 * 3. Maps and thread-locals only change while learning.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest_names.h"
#include "probe/compile/checker.h"

#define LOCAL_ROUNDS 16 /* types of locals settle after two or three */
#define SENTENCE_MAX 600
#define NAME_MAX_COMPARED 40 /* longer names get no hint */

/* --- messages --------------------------------------------------------------------------------- */

/* Variables of macros are named x#7 inside, x to people. */
static void hide_instances(char *text)
{
	char *to = text;

	for (const char *p = text; *p; p++) {
		bool is_instance = *p == '#' && p > text &&
				   (isalnum((unsigned char)p[-1]) || p[-1] == '_') &&
				   isdigit((unsigned char)p[1]);

		if (is_instance)
			p += strspn(p + 1, "0123456789");
		else
			*to++ = *p;
	}
	*to = '\0';
}

static void add_error(
	struct check_clause *c, struct place place, const char *tag, const char *fmt, va_list ap)
{
	char text[SENTENCE_MAX];

	vsnprintf(text, sizeof(text), fmt, ap);
	hide_instances(text);
	c->n_errors++;
	diag_error(c->session->diags, place, tag, "%s", text);
}

bool check_error(struct check_clause *c, struct place place, const char *tag, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_error(c, place, tag, fmt, ap);
	va_end(ap);
	return false;
}

const struct type *check_refuse(
	struct check_clause *c, struct place place, const char *tag, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_error(c, place, tag, fmt, ap);
	va_end(ap);
	return check_bad(c);
}

void check_warning(
	struct check_clause *c, struct place place, const char *tag, const char *fmt, ...)
{
	char text[SENTENCE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	hide_instances(text);
	va_end(ap);
	diag_warning(c->session->diags, place, tag, "%s", text);
}

const struct type *check_hint(struct check_clause *c, const char *fmt, ...)
{
	char text[SENTENCE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	hide_instances(text);
	va_end(ap);
	diag_hint(c->session->diags, "%s", text);
	return check_bad(c);
}

const char *check_type_text(struct check_session *s, const struct type *type)
{
	struct buf b = {0};
	const char *text;

	type_print(type, &b);
	text = arena_strndup(s->arena, buf_text(&b), b.n);
	buf_release(&b);
	return text;
}

const char *check_mode_text(enum mode mode)
{
	return mode == MODE_32 ? "32-bit" : "64-bit";
}

void nearest_offer(struct nearest *n, const char *candidate)
{
	size_t bytes = strlen(n->name);
	uint32_t far = bytes < 6 ? 1 : bytes < 9 ? 2 : 3, distance;

	if (bytes > NAME_MAX_COMPARED || bytes < 2)
		return;
	distance = name_distance(n->name, candidate, far);
	if (distance <= far && (!n->best || distance < n->distance)) {
		n->best = candidate;
		n->distance = distance;
	}
}

bool check_enter(struct check_clause *c, struct place place)
{
	if (++c->depth <= CHECK_DEPTH_MAX)
		return true;
	check_error(c, place, "nesting", "this is nested more than %d deep", CHECK_DEPTH_MAX);
	c->depth--;
	return false;
}

/* --- a clause --------------------------------------------------------------------------------- */

static void check_once(struct check_clause *c)
{
	for (struct variable *v = c->locals; v; v = v->next) {
		v->is_hidden = true;
		v->is_assigned = v->is_read = v->is_left = false;
	}
	c->n_errors = c->n_loops = c->depth = c->scope = 0;
	c->has_grown = false;
	if (c->clause->predicate)
		check_scalar(c, c->clause->predicate, "a predicate");
	check_stmts(c, c->clause->body);
}

static void warn_of_unread(struct check_clause *c)
{
	for (struct variable *v = c->locals; v; v = v->next) {
		if (!v->is_read && !v->is_loop)
			check_warning(
				c, v->place, "unused", "$%s is assigned, but never used", v->name);
	}
}

bool check_clause(struct check_clause *c)
{
	struct stream *stream = c->session->stream;
	size_t n_formats = stream->formats.n, n_strings = stream->strings.n;

	for (c->round = 0; c->round < LOCAL_ROUNDS; c->round++) {
		stream->formats.n = n_formats;
		stream->strings.n = n_strings;
		check_once(c);
		if (!c->has_grown || c->n_errors)
			break;
	}
	if (!c->n_errors && c->has_grown)
		check_error(c, c->clause->place, "type",
			"the types of this clause's variables do not settle");
	if (!c->n_errors && c->session->pass == CHECK_FINAL)
		warn_of_unread(c);
	return c->n_errors == 0;
}

/* --- after learning --------------------------------------------------------------------------- */

/* What a map gives in a mode in which nothing assigns it: pointers to a structure of that name. */
static const struct type *value_type_like(
	struct types *types, const struct shape *value, const struct type *other)
{
	const struct type *of = other && other->kind == TYPE_POINTER ? other->of : NULL,
			  *found = NULL;

	if (of && of->kind == TYPE_STRUCT && of->name && !strncmp(of->name, "struct ", 7))
		found = check_struct_named(types, "struct", of->name + 7);
	if (of && of->kind == TYPE_INT)
		found = of->is_char ? types_char(types)
				    : types_int(types, (uint32_t)of->size, of->is_signed);
	return found ? types_pointer(types, found, other->space) : check_shape_type(types, value);
}

/* let @x = hash(N): the kind must be the one that its values need. */
static void settle_declared(
	struct check_session *s, const struct map_use *m, struct stream_map_def *def)
{
	bool is_per_cpu = shape_is_aggregation(m->value);

	def->max_entries = m->decl->max_entries;
	def->is_lru = m->decl->is_lru;
	if (m->decl->is_per_cpu == is_per_cpu)
		return;
	diag_error(s->diags, m->decl->place, "aggregation", "%s %s", m->name,
		is_per_cpu ? "is aggregated for each processor"
			   : "has values that all processors share");
	diag_hint(s->diags, "let %s = %s%s(%u);", m->name, is_per_cpu ? "percpu" : "",
		def->is_lru ? "lruhash" : "hash", def->max_entries);
}

static void warn_of_unused(struct check_session *s)
{
	for (const struct map_decl *d = s->script->map_decls; d; d = d->next) {
		const struct map_use *m = s->maps;

		while (m && strcmp(m->name + 1, d->name))
			m = m->next;
		if (!m)
			diag_warning(s->diags, d->place, "unused", "@%s is declared and never used",
				d->name);
	}
}

static void settle_map(struct check_session *s, struct map_use *m)
{
	struct stream_map_def *def = &s->stream->maps.v[m->number];

	if (!m->is_assigned) {
		diag_error(s->diags, m->place, "unassigned", "%s is used, but nothing assigns it",
			m->name);
		return;
	}
	if (!m->value) {
		diag_error(s->diags, m->place, "type", "the type of %s cannot be told", m->name);
		diag_hint(s->diags, "assign it a value whose type does not depend on %s", m->name);
		return;
	}
	if (!m->key)
		m->key = shape_new(s->stream->arena, SHAPE_NONE, false, 0);
	def->key = m->key;
	def->value = m->value;
	if (m->decl)
		settle_declared(s, m, def);
	if (m->value->size > s->stream->zero_bytes)
		s->stream->zero_bytes = m->value->size;
	for (int mode = 0; mode < N_MODES; mode++) {
		bool has_own = m->value->kind == SHAPE_POINTER || m->value->kind == SHAPE_STRUCT;

		m->key_type[mode] = check_shape_type(s->types[mode], m->key);
		if (!has_own || !m->value_type[mode])
			m->value_type[mode] = value_type_like(s->types[mode], m->value,
				has_own ? m->value_type[check_other((enum mode)mode)] : NULL);
	}
}

/* The bytes that a thread-local takes, the same in both modes. */
static uint32_t self_bytes(struct check_session *s, struct variable *v)
{
	uint32_t bytes = 0;

	for (int mode = 0; mode < N_MODES; mode++) {
		struct shape *shape = NULL;

		if (v->type[mode])
			shape = check_shape(s, v->type[mode], NULL, v->place);
		if (shape && shape->size > bytes)
			bytes = shape->size;
	}
	return bytes;
}

static void settle_self(struct check_session *s, struct variable *v)
{
	uint32_t bytes;

	if (!v->is_assigned) {
		diag_error(s->diags, v->place, "unassigned",
			"self->%s is used, but nothing assigns it", v->name);
		return;
	}
	if (!v->type[MODE_32] && !v->type[MODE_64]) {
		diag_error(
			s->diags, v->place, "type", "the type of self->%s cannot be told", v->name);
		return;
	}
	bytes = self_bytes(s, v);
	if (s->stream->self_bytes + bytes > CHECK_SELF_MAX) {
		diag_error(s->diags, v->place, "size",
			"thread-locals take more than %d bytes with self->%s", CHECK_SELF_MAX,
			v->name);
		return;
	}
	v->offset = s->stream->self_bytes;
	s->stream->self_bytes += bytes;
}

void check_learned(struct check_session *s)
{
	/* What is missing may be in a clause that was wrong. */
	if (s->diags->n_errors)
		return;
	for (struct map_use *m = s->maps; m; m = m->next)
		settle_map(s, m);
	warn_of_unused(s);
	for (struct variable *v = s->selfs; v; v = v->next)
		settle_self(s, v);
}
