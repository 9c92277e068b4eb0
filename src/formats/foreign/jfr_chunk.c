/* SPDX-License-Identifier: MIT */
#include "formats/foreign/jfr_chunk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/text_lines.h"

#define FLAGS_OFFSET	   66
#define FLAG_COMPRESSED	   1
#define VERSION		   2
#define EVENT_BEGIN_MAX	   16 /* bytes that an event's size takes at most, and more */
#define TICKS_A_SECOND_MAX UINT64_C(10000000000)

/* ---- bytes ---- */

/* `n` bytes of the chunk, wherever they are. */
static bool copy_piece(const struct jfr_chunk *c, struct foreign_input *in, uint64_t offset,
	size_t n, struct buf *to)
{
	struct span all, piece;

	buf_reset(to);
	if (offset > c->bytes_there || n > c->bytes_there - offset)
		return false;
	if (foreign_input_is_seekable(in))
		return foreign_input_at(in, c->offset + offset, buf_put_zeros(to, n), n);
	all = foreign_input_peek(in, (size_t)c->bytes_there);
	piece = span_sub(all, offset, n);
	if (piece.p)
		buf_put(to, piece.p, piece.n);
	return piece.p != NULL;
}

/* The event at this place of the chunk. False: it is not there, or not of that type. */
static bool copy_event(const struct jfr_chunk *c, struct foreign_input *in, uint64_t offset,
	uint64_t type, struct buf *to, struct span *body)
{
	uint64_t left = offset < c->bytes_there ? c->bytes_there - offset : 0, n;
	struct cursor at;

	if (!copy_piece(c, in, offset, left < EVENT_BEGIN_MAX ? (size_t)left : EVENT_BEGIN_MAX, to))
		return false;
	at = cursor_of(buf_span(to));
	n = jfr_number(&at, c->is_compressed, 4);
	if (at.failed || n > left || n > JFR_POOLS_BYTES ||
		!copy_piece(c, in, offset, (size_t)n, to))
		return false;
	at = cursor_of(buf_span(to));
	jfr_number(&at, c->is_compressed, 4);
	n = jfr_number(&at, c->is_compressed, 8);
	*body = (struct span){at.p, cursor_left(&at)};
	return !at.failed && n == type;
}

/* ---- pools ---- */

static bool add_entry(struct jfr_chunk *c, const struct jfr_type *type, struct cursor *at)
{
	uint64_t number = jfr_number(at, c->is_compressed, 8);
	const uint8_t *from = at->p;
	bool is_new;
	uint64_t *place;

	jfr_skip(&c->types, type, at);
	if (at->failed || c->entries.n == JFR_ENTRIES_MAX)
		return false;
	/* The last event comes first: what it has is newer. */
	place = map_ensure(&c->entry_of.v[type - c->types.types.v], number, &is_new);
	if (is_new) {
		*place = c->entries.n;
		vec_push(&c->entries, ((struct span){from, (size_t)(at->p - from)}));
	}
	return true;
}

/* One event of pools. `delta`: where the one before is from here; 0: there is none. */
static bool add_pools(struct jfr_chunk *c, struct span body, int64_t *delta)
{
	struct cursor at = cursor_of(body);
	uint64_t n_pools, n;

	jfr_number(&at, c->is_compressed, 8); /* when, and for how long */
	jfr_number(&at, c->is_compressed, 8);
	*delta = (int64_t)jfr_number(&at, c->is_compressed, 8);
	cursor_u8(&at);
	n_pools = jfr_number(&at, c->is_compressed, 4);
	jfr_allow_steps(&c->types, body.n);
	while (n_pools-- && !at.failed) {
		const struct jfr_type *type =
			jfr_type(&c->types, jfr_number(&at, c->is_compressed, 8));

		for (n = jfr_number(&at, c->is_compressed, 4); n && type; n--)
			if (!add_entry(c, type, &at))
				return false;
		if (!type)
			return false;
	}
	return !at.failed;
}

static bool load_pools(struct jfr_chunk *c, struct foreign_input *in)
{
	uint64_t offset = c->pools;
	int64_t delta;

	vec_ensure_zero(&c->entry_of, c->types.types.n);
	for (;;) {
		struct buf event = {0};
		struct span body;
		bool is_there = copy_event(c, in, offset, JFR_POOLS, &event, &body);

		vec_push(&c->pool_events, event);
		c->pool_bytes += event.n;
		if (!is_there || c->pool_bytes > JFR_POOLS_BYTES || !add_pools(c, body, &delta))
			return false;
		if (!delta)
			return true;
		if (delta > 0 || offset < 0 - (uint64_t)delta) /* they only go back */
			return false;
		offset += (uint64_t)delta;
	}
}

/* ---- the chunk ---- */

static uint64_t big(const uint8_t *p)
{
	struct cursor c = cursor_of((struct span){p, 8});

	return jfr_number(&c, false, 8);
}

static bool header_is_sound(struct jfr_chunk *c, struct foreign_input *in, struct err *err)
{
	struct span h = foreign_input_peek(in, JFR_HEADER_BYTES);
	unsigned version = (unsigned)(h.p[4] << 8 | h.p[5]);

	if (memcmp(h.p, "FLR", 4) != 0) {
		foreign_input_wrong(in, err, "has no chunk");
		return false;
	}
	c->bytes = big(h.p + 8);
	c->pools = big(h.p + 16);
	c->metadata = big(h.p + 24);
	c->start_ns = big(h.p + 32);
	c->start_ticks = big(h.p + 48);
	c->ticks_per_second = big(h.p + 56);
	c->is_compressed = h.p[FLAGS_OFFSET + 1] & FLAG_COMPRESSED;
	if (version != VERSION) {
		foreign_input_wrong(in, err,
			"is of version %u of JFR, but only version %u can be read", version,
			VERSION);
		return false;
	}
	if (c->bytes && (!c->ticks_per_second || c->ticks_per_second > TICKS_A_SECOND_MAX)) {
		foreign_input_wrong(in, err,
			"has a chunk with a clock of %" PRIu64 " ticks a second",
			c->ticks_per_second);
		return false;
	}
	return true;
}

static bool find_bytes(struct jfr_chunk *c, struct foreign_input *in, struct err *err)
{
	c->offset = foreign_input_offset(in);
	if (foreign_input_is_seekable(in)) {
		uint64_t left = foreign_input_bytes(in) - c->offset;

		c->bytes_there = left < c->bytes ? left : c->bytes;
		return true;
	}
	if (c->bytes > FOREIGN_PEEK_MAX) {
		foreign_input_wrong(in, err,
			"has a chunk of more than 64 MiB, which a pipe or a packed file may not have:"
			" unpack it");
		return false;
	}
	c->bytes_there = foreign_input_peek(in, (size_t)c->bytes).n;
	return true;
}

enum jfr_load jfr_chunk_load(struct jfr_chunk *c, struct foreign_input *in, struct err *err)
{
	struct span body;
	const char *wrong;

	*c = (struct jfr_chunk){.offset = 0};
	if (foreign_input_peek(in, JFR_HEADER_BYTES).n < JFR_HEADER_BYTES)
		return JFR_CUT;
	if (!header_is_sound(c, in, err) || !find_bytes(c, in, err))
		return JFR_WRONG;
	/* The writer completes the header last. */
	if (c->bytes < JFR_HEADER_BYTES || !c->metadata || !c->pools)
		return JFR_CUT;
	if (!copy_event(c, in, c->metadata, JFR_METADATA, &c->metadata_event, &body)) {
		if (c->bytes_there < c->bytes)
			return JFR_CUT;
		foreign_input_wrong(in, err, "has a chunk without metadata");
		return JFR_WRONG;
	}
	wrong = jfr_types_read(&c->types, body, c->is_compressed);
	if (wrong) {
		foreign_input_wrong(in, err, "%s", wrong);
		return JFR_WRONG;
	}
	if (load_pools(c, in))
		return JFR_LOADED;
	if (c->bytes_there < c->bytes)
		return JFR_CUT;
	foreign_input_wrong(in, err, "has a chunk whose constants are damaged, or more than 8 M");
	return JFR_WRONG;
}

void jfr_chunk_release(struct jfr_chunk *c)
{
	jfr_types_release(&c->types);
	buf_release(&c->metadata_event);
	for (size_t i = 0; i < c->pool_events.n; i++)
		buf_release(&c->pool_events.v[i]);
	vec_release(&c->pool_events);
	vec_release(&c->entries);
	for (size_t i = 0; i < c->entry_of.n; i++)
		map_release(&c->entry_of.v[i]);
	vec_release(&c->entry_of);
}

/* ---- values ---- */

static void look_up(const struct jfr_chunk *c, struct jfr_value *v)
{
	const uint64_t *place =
		v->type ? map_find(&c->entry_of.v[v->type - c->types.types.v], v->number) : NULL;

	v->is_there = place != NULL;
	v->at = cursor_of(place ? c->entries.v[*place] : (struct span){0});
}

struct jfr_value jfr_event(const struct jfr_type *type, struct span bytes)
{
	return (struct jfr_value){.type = type, .at = cursor_of(bytes), .is_there = true};
}

bool jfr_field(
	struct jfr_chunk *c, const struct jfr_value *of, const char *name, struct jfr_value *field)
{
	struct cursor at = of->at;
	uint32_t n = of->is_there && of->type->kind == JFR_STRUCT ? of->type->n_fields : 0;

	jfr_allow_steps(&c->types, cursor_left(&at));
	for (uint32_t i = 0; i < n; i++) {
		const struct jfr_field *f = &c->types.fields.v[of->type->first_field + i];

		if (!text_word_is(f->name, name)) {
			jfr_skip_field(&c->types, f, &at);
			continue;
		}
		*field = (struct jfr_value){.type = jfr_type(&c->types, f->type), .at = at};
		field->is_there = field->type != NULL;
		if (f->is_pooled && !f->is_array) {
			field->number = jfr_number(&at, c->is_compressed, 8);
			look_up(c, field);
		}
		/* Arrays of what is pooled hold numbers, not values: none that is wanted is one. */
		return !at.failed && !(f->is_pooled && f->is_array);
	}
	return false;
}

uint64_t jfr_value_number(const struct jfr_chunk *c, const struct jfr_value *v)
{
	struct cursor at = v->at;

	if (!v->is_there)
		return 0;
	switch (v->type->kind) {
	case JFR_BYTE:
		return cursor_u8(&at);
	case JFR_SHORT:
		return jfr_number(&at, c->is_compressed, 2);
	case JFR_INT:
		return jfr_number(&at, c->is_compressed, 4);
	case JFR_LONG:
		return jfr_number(&at, c->is_compressed, 8);
	default:
		return 0;
	}
}

static void put_string(struct jfr_chunk *c, struct jfr_value v, struct buf *to)
{
	struct cursor at = v.at;

	if (cursor_u8(&at) == JFR_TEXT_POOLED) {
		v.number = jfr_number(&at, c->is_compressed, 8);
		look_up(c, &v);
	}
	jfr_put_text(&v.at, c->is_compressed, to);
}

/* Values that stand for a text hold it in a field that is called so. */
void jfr_value_text(struct jfr_chunk *c, const struct jfr_value *v, struct buf *to)
{
	struct jfr_value in = *v, next;

	buf_reset(to);
	for (unsigned depth = 0; in.is_there && in.type->kind == JFR_STRUCT; depth++) {
		if (depth == JFR_NAMED_MAX || !(jfr_field(c, &in, "string", &next) ||
						      jfr_field(c, &in, "description", &next) ||
						      jfr_field(c, &in, "name", &next)))
			return;
		in = next;
	}
	if (in.is_there && in.type->kind == JFR_STRING)
		put_string(c, in, to);
}

uint64_t jfr_array_begin(const struct jfr_chunk *c, struct jfr_value *array)
{
	return array->is_there ? jfr_number(&array->at, c->is_compressed, 4) : 0;
}
