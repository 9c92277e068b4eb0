/* SPDX-License-Identifier: MIT */
#include "formats/foreign/jfr_types.h"

#include <stdlib.h>

#include "formats/text_lines.h"

#define STEPS_BASE     4096
#define STEPS_PER_BYTE 8
#define NUMBER_BYTES   9
#define ELEMENT_MAX    1048576 /* of the metadata: types, fields, settings, annotations */
#define ATTRIBUTES_MAX 32

/* ---- numbers ---- */

static uint64_t big_endian(struct cursor *c, unsigned bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | cursor_u8(c);
	return v;
}

uint64_t jfr_number(struct cursor *c, bool is_compressed, unsigned bytes)
{
	uint64_t v = 0;

	if (!is_compressed)
		return big_endian(c, bytes);
	for (unsigned i = 0; i < NUMBER_BYTES; i++) {
		uint8_t byte = cursor_u8(c);

		if (i == NUMBER_BYTES - 1)
			return v | (uint64_t)byte << 56;
		v |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte < 0x80)
			break;
	}
	return v;
}

/* ---- values ---- */

const struct jfr_type *jfr_type(const struct jfr_types *t, uint64_t id)
{
	const uint64_t *place = map_find(&t->by_id, id);

	return place ? &t->types.v[*place] : NULL;
}

void jfr_allow_steps(struct jfr_types *t, size_t bytes)
{
	t->steps = STEPS_BASE + STEPS_PER_BYTE * (uint64_t)bytes;
}

static void skip_string(const struct jfr_types *t, struct cursor *c)
{
	uint64_t n;

	switch (cursor_u8(c)) {
	case JFR_TEXT_NULL:
	case JFR_TEXT_EMPTY:
		break;
	case JFR_TEXT_POOLED:
		jfr_number(c, t->is_compressed, 8);
		break;
	case JFR_TEXT_UTF8:
	case JFR_TEXT_LATIN1:
		cursor_skip(c, jfr_number(c, t->is_compressed, 4));
		break;
	case JFR_TEXT_CHARS:
		n = jfr_number(c, t->is_compressed, 4);
		while (n-- && !c->failed)
			jfr_number(c, t->is_compressed, 2);
		break;
	default:
		c->failed = true;
	}
}

static void skip_nested(
	struct jfr_types *t, const struct jfr_type *type, struct cursor *c, unsigned depth);

static void skip_field_nested(
	struct jfr_types *t, const struct jfr_field *field, struct cursor *c, unsigned depth)
{
	uint64_t n = field->is_array ? jfr_number(c, t->is_compressed, 4) : 1;
	const struct jfr_type *type = jfr_type(t, field->type);

	while (n-- && !c->failed) {
		if (field->is_pooled && t->steps) {
			t->steps--;
			jfr_number(c, t->is_compressed, 8);
		} else if (type && !field->is_pooled) {
			skip_nested(t, type, c, depth);
		} else {
			c->failed = true;
		}
	}
}

static void skip_nested(
	struct jfr_types *t, const struct jfr_type *type, struct cursor *c, unsigned depth)
{
	if (depth == JFR_NESTING_MAX || !t->steps) {
		c->failed = true;
		return;
	}
	t->steps--;
	switch (type->kind) {
	case JFR_STRUCT:
		for (uint32_t i = 0; i < type->n_fields && !c->failed; i++)
			skip_field_nested(t, &t->fields.v[type->first_field + i], c, depth + 1);
		break;
	case JFR_BYTE:
		cursor_skip(c, 1);
		break;
	case JFR_SHORT:
		jfr_number(c, t->is_compressed, 2);
		break;
	case JFR_INT:
		jfr_number(c, t->is_compressed, 4);
		break;
	case JFR_LONG:
		jfr_number(c, t->is_compressed, 8);
		break;
	case JFR_FLOAT:
		cursor_skip(c, 4);
		break;
	case JFR_DOUBLE:
		cursor_skip(c, 8);
		break;
	case JFR_STRING:
		skip_string(t, c);
	}
}

void jfr_skip_field(struct jfr_types *t, const struct jfr_field *field, struct cursor *c)
{
	skip_field_nested(t, field, c, 0);
}

void jfr_skip(struct jfr_types *t, const struct jfr_type *type, struct cursor *c)
{
	skip_nested(t, type, c, 0);
}

/* ---- texts ---- */

static void put_char(struct buf *to, uint32_t v)
{
	if (v < 0x80) {
		buf_put_u8(to, (uint8_t)v);
	} else if (v < 0x800) {
		buf_put_u8(to, (uint8_t)(0xc0 | v >> 6));
		buf_put_u8(to, (uint8_t)(0x80 | (v & 0x3f)));
	} else {
		buf_put_u8(to, (uint8_t)(0xe0 | (v >> 12 & 0xf)));
		buf_put_u8(to, (uint8_t)(0x80 | (v >> 6 & 0x3f)));
		buf_put_u8(to, (uint8_t)(0x80 | (v & 0x3f)));
	}
}

void jfr_put_text(struct cursor *c, bool is_compressed, struct buf *to)
{
	uint8_t encoding = cursor_u8(c);
	struct span text = {0};
	uint64_t n;

	if (encoding == JFR_TEXT_POOLED)
		jfr_number(c, is_compressed, 8);
	else if (encoding == JFR_TEXT_UTF8 || encoding == JFR_TEXT_LATIN1)
		text = cursor_bytes(c, jfr_number(c, is_compressed, 4));
	else if (encoding > JFR_TEXT_LATIN1)
		c->failed = true;
	if (encoding == JFR_TEXT_UTF8 && text.p)
		buf_put(to, text.p, text.n);
	for (size_t i = 0; encoding == JFR_TEXT_LATIN1 && i < text.n; i++)
		put_char(to, text.p[i]);
	n = encoding == JFR_TEXT_CHARS ? jfr_number(c, is_compressed, 4) : 0;
	while (n-- && !c->failed)
		put_char(to, (uint16_t)jfr_number(c, is_compressed, 2));
}

/* ---- the metadata event: a table of strings, and a tree of elements with attributes ---- */

struct metadata {
	struct jfr_types *t;
	struct cursor c;
	uint32_t n_elements;
	const char *wrong;
};

static uint64_t take_number(struct metadata *m)
{
	return jfr_number(&m->c, m->t->is_compressed, 4);
}

static void take_strings(struct metadata *m)
{
	uint64_t n = take_number(m);
	struct buf text = {0};

	if (n > JFR_STRINGS_MAX)
		m->wrong = "has too many strings in its metadata";
	for (uint64_t i = 0; i < n && !m->wrong && !m->c.failed; i++) {
		buf_reset(&text);
		jfr_put_text(&m->c, m->t->is_compressed, &text);
		vec_push(&m->t->strings, intern_bytes(&m->t->texts, text.p, text.n));
	}
	buf_release(&text);
}

static struct span take_string(struct metadata *m)
{
	uint64_t i = take_number(m);

	if (i < m->t->strings.n) {
		const struct intern_item *text = &m->t->texts.items[m->t->strings.v[i]];

		return (struct span){(const uint8_t *)text->p, text->n};
	}
	m->c.failed = true;
	return (struct span){0};
}

/* What attributes of classes and fields say. */
struct attributes {
	struct span name, id, type, pooled, dimension;
};

static void take_attributes(struct metadata *m, struct attributes *a)
{
	uint64_t n = take_number(m);

	*a = (struct attributes){.name = {0}};
	if (n > ATTRIBUTES_MAX)
		m->c.failed = true;
	while (n-- && !m->c.failed) {
		struct span key = take_string(m), value = take_string(m);

		if (text_word_is(key, "name"))
			a->name = value;
		else if (text_word_is(key, "id"))
			a->id = value;
		else if (text_word_is(key, "class"))
			a->type = value;
		else if (text_word_is(key, "constantPool"))
			a->pooled = value;
		else if (text_word_is(key, "dimension"))
			a->dimension = value;
	}
}

static enum jfr_kind kind_of(struct span name)
{
	static const struct {
		const char *name;
		enum jfr_kind kind;
	} known[] = {{"boolean", JFR_BYTE}, {"byte", JFR_BYTE}, {"char", JFR_SHORT},
		{"short", JFR_SHORT}, {"int", JFR_INT}, {"long", JFR_LONG}, {"float", JFR_FLOAT},
		{"double", JFR_DOUBLE}, {"java.lang.String", JFR_STRING}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (text_word_is(name, known[i].name))
			return known[i].kind;
	return JFR_STRUCT;
}

static void add_type(struct metadata *m, const struct attributes *a)
{
	struct jfr_types *t = m->t;
	struct jfr_type type = {
		.name = a->name, .kind = kind_of(a->name), .first_field = (uint32_t)t->fields.n};
	bool is_new;
	uint64_t *place;

	if (t->types.n == JFR_TYPES_MAX) {
		m->wrong = "has too many types";
		return;
	}
	m->c.failed |= !text_word_number(a->id, INT64_MAX, &type.id);
	place = map_ensure(&t->by_id, type.id, &is_new);
	if (is_new)
		*place = t->types.n;
	vec_push(&t->types, type);
}

static void add_field(struct metadata *m, const struct attributes *a)
{
	struct jfr_types *t = m->t;
	struct jfr_field field = {.name = a->name,
		.is_pooled = text_word_is(a->pooled, "true"),
		.is_array = text_word_is(a->dimension, "1")};

	if (t->fields.n == JFR_FIELDS_MAX) {
		m->wrong = "has too many fields";
		return;
	}
	m->c.failed |= !text_word_number(a->type, INT64_MAX, &field.type);
	t->types.v[t->types.n - 1].n_fields++;
	vec_push(&t->fields, field);
}

/* Classes are children of metadata, their fields are theirs; others have nothing that decides how values are read. */
static void take_element(struct metadata *m, bool is_in_class, unsigned depth)
{
	struct span kind = take_string(m);
	bool is_class = text_word_is(kind, "class");
	struct attributes a;
	uint64_t n;

	take_attributes(m, &a);
	if (depth == JFR_NESTING_MAX || ++m->n_elements > ELEMENT_MAX)
		m->wrong = "has too many elements in its metadata";
	if (!m->wrong && !m->c.failed && is_class)
		add_type(m, &a);
	if (!m->wrong && !m->c.failed && is_in_class && text_word_is(kind, "field"))
		add_field(m, &a);
	for (n = take_number(m); n && !m->wrong && !m->c.failed; n--)
		take_element(m, is_class, depth + 1);
}

const char *jfr_types_read(struct jfr_types *t, struct span event, bool is_compressed)
{
	struct metadata m = {.t = t, .c = cursor_of(event)};

	t->is_compressed = is_compressed;
	jfr_number(&m.c, is_compressed, 8); /* when, for how long, and its number */
	jfr_number(&m.c, is_compressed, 8);
	jfr_number(&m.c, is_compressed, 8);
	take_strings(&m);
	if (!m.wrong)
		take_element(&m, false, 0);
	return m.wrong ? m.wrong : m.c.failed ? "has damaged metadata" : NULL;
}

void jfr_types_release(struct jfr_types *t)
{
	intern_release(&t->texts);
	vec_release(&t->strings);
	vec_release(&t->types);
	vec_release(&t->fields);
	map_release(&t->by_id);
}
