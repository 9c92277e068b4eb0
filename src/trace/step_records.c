/* SPDX-License-Identifier: MIT */
/*
 * Step records to and from bytes; docs/format/steps.md is the text to this.
 *
 * A run is a row of differences of addresses, so that an instruction in a straight line costs a
 * byte whose value is nearly its length, which packs well. 0 is no difference but what follows it
 * is: see SPECIAL.
 *
 * Everything here is total: any addresses can be encoded, and any bytes can be decoded or refused.
 */
#include "trace/step_records.h"

#include <assert.h>

#include "base/mem.h"
#include "trace/layout.h"

/* In a run, this byte and a number k: the step before went round k more times; k = 0: a step whose
 * address is 2^63 away, the one difference that has no code of its own. */
#define SPECIAL 0

#define CODE_FLAG_64   1u
#define CODE_FLAG_ZERO (~(uint64_t)CODE_FLAG_64)
#define DATA_TAG_HOW   3u
#define DATA_TAG_VALUE 4u
#define DATA_TAG_ZERO  (~(DATA_TAG_HOW | DATA_TAG_VALUE))

/* The least bytes that an entry has: counts are checked by it before anyone relies on them. */
#define CODE_ENTRY_BYTES_MIN 3
#define DATUM_BYTES_MIN	     4

/* A number that fits into 32 bits. */
static uint32_t take_u32(struct cursor *c)
{
	uint64_t v = cursor_uleb(c);

	if (v > UINT32_MAX)
		c->failed = true;
	return (uint32_t)v;
}

/* --- runs ---------------------------------------------------------------------------------- */

static uint8_t *deltas_reserve(struct step_run_coder *c)
{
	const size_t room = 2 * (1 + ULEB_BYTES_MAX);

	if (c->deltas.cap - c->deltas.n < room)
		mem_grow((void **)&c->deltas.p, &c->deltas.cap, c->deltas.n + room, 1);
	return c->deltas.p + c->deltas.n;
}

static uint8_t *put_more(struct step_run_coder *c, uint8_t *p)
{
	*p++ = SPECIAL;
	p = uleb_put(p, c->more);
	c->more = 0;
	return p;
}

void step_run_begin(struct step_run_coder *c, uint64_t first, uint32_t space, uint32_t generation)
{
	c->head = (struct step_run_head){.first = first, .space = space, .generation = generation};
	c->last = c->more = 0;
	buf_reset(&c->deltas);
}

void step_run_add(struct step_run_coder *c, uint64_t addr)
{
	uint64_t code = zigzag(addr - c->last) + 1;
	uint8_t *p = deltas_reserve(c);

	c->last = addr;
	assert(c->head.n < UINT32_MAX);
	if (!c->head.n++) {
		c->head.start = addr;
		return;
	}
	if (c->more)
		p = put_more(c, p);
	if (code < 0x80)
		*p++ = (uint8_t)code;
	else
		p = uleb_put(p, code);
	if (!code)
		*p++ = 0;
	c->deltas.n = (size_t)(p - c->deltas.p);
}

void step_run_again(struct step_run_coder *c, uint64_t times)
{
	assert(c->head.n);
	c->more += times;
}

void step_run_end(struct step_run_coder *c, struct buf *to)
{
	assert(c->head.n);
	if (c->more)
		c->deltas.n = (size_t)(put_more(c, deltas_reserve(c)) - c->deltas.p);
	buf_put_ulebs(to, c->head.first, c->head.space, c->head.generation, c->head.n, c->head.start);
	if (c->deltas.n)
		buf_put(to, c->deltas.p, c->deltas.n);
}

void step_run_release(struct step_run_coder *c)
{
	buf_release(&c->deltas);
}

static bool take_head(struct cursor *c, struct step_run_head *head)
{
	struct step_run_head h;

	h.first = cursor_uleb(c);
	h.space = take_u32(c);
	h.generation = take_u32(c);
	h.n = take_u32(c);
	h.start = cursor_uleb(c);
	if (c->failed || !h.n || h.n - 1 > cursor_left(c) || h.first > UINT64_MAX - h.n)
		return false;
	*head = h;
	return true;
}

bool step_run_head(struct step_run_head *head, struct span payload)
{
	struct cursor c = cursor_of(payload);

	return take_head(&c, head);
}

/* Behind a step at `p`: how often it went round. NULL when damaged. */
static const uint8_t *take_times(const uint8_t *p, const uint8_t *end, uint64_t *times)
{
	uint64_t more;

	*times = 1;
	if (p == end || *p != SPECIAL)
		return p;
	if (end - p < 2)
		return NULL;
	if (!p[1])
		return p;
	p = uleb_get(p + 1, end, &more);
	if (!p || !more)
		return NULL;
	*times = more == UINT64_MAX ? more : more + 1;
	return p;
}

/* The difference at `p`, in any form. NULL when damaged. */
static const uint8_t *take_difference(const uint8_t *p, const uint8_t *end, uint64_t *difference)
{
	uint64_t code;

	if (p == end)
		return NULL;
	if (*p == SPECIAL) {
		*difference = 1ull << 63;
		return end - p >= 2 && !p[1] ? p + 2 : NULL;
	}
	p = uleb_get(p, end, &code);
	if (!p || !code)
		return NULL;
	*difference = unzigzag(code - 1);
	return p;
}

bool step_run_open(struct step_run_walk *w, struct span payload)
{
	const uint8_t *p;

	w->c = cursor_of(payload);
	if (!take_head(&w->c, &w->head))
		return false;
	w->at.addr = w->head.start;
	p = take_times(w->c.p, w->c.end, &w->at.times);
	if (!p)
		return false;
	w->c.p = p;
	w->n_left = w->head.n - 1;
	w->is_taken = false;
	return true;
}

int step_run_next(struct step_run_walk *w)
{
	const uint8_t *p = w->c.p;
	uint64_t difference;

	if (w->c.failed)
		return -1;
	if (!w->n_left)
		return p == w->c.end ? 0 : -1;
	p = take_difference(p, w->c.end, &difference);
	p = p ? take_times(p, w->c.end, &w->at.times) : NULL;
	if (!p) {
		w->c.failed = true;
		return -1;
	}
	w->at.addr += difference;
	w->c.p = p;
	w->n_left--;
	return 1;
}

/* Steps that go round once and whose difference has one byte, as nearly all have: from `p` on while
 * two bytes are left, so that the one behind can be looked at. */
static const uint8_t *take_short(
	const uint8_t *p, const uint8_t *end, uint64_t *addr, struct step_at *to, uint32_t *n)
{
	uint64_t at = *addr;
	uint32_t i = 0, max = *n;

	while (i < max && end - p >= 2 && p[0] - 1u < 0x7f && p[1] != SPECIAL) {
		at += unzigzag(*p++ - 1u);
		to[i++] = (struct step_at){.addr = at, .times = 1};
	}
	*addr = at;
	*n = i;
	return p;
}

int step_run_take(struct step_run_walk *w, struct step_at *to, uint32_t max)
{
	uint32_t n = 0, some;

	assert(max && max <= INT32_MAX);
	if (w->c.failed)
		return -1;
	if (!w->is_taken) {
		to[n++] = w->at;
		w->is_taken = true;
	}
	while (n < max && w->n_left) {
		some = max - n < w->n_left ? max - n : w->n_left;
		w->c.p = take_short(w->c.p, w->c.end, &w->at.addr, to + n, &some);
		w->n_left -= some;
		n += some;
		if (n == max || !w->n_left)
			break;
		if (step_run_next(w) < 0)
			return n ? (int)n : -1;
		to[n++] = w->at;
	}
	return n || w->c.p == w->c.end ? (int)n : -1;
}

/* --- code ---------------------------------------------------------------------------------- */

void step_code_encode(
	struct buf *to, const struct step_code_head *head, const struct step_code *entries)
{
	uint64_t last_end = 0;
	uint32_t last_frame = 0;

	buf_put_ulebs(to, head->space, head->generation, head->pid, head->is_64 ? CODE_FLAG_64 : 0, head->n);
	for (uint32_t i = 0; i < head->n; i++) {
		const struct step_code *e = &entries[i];

		assert(e->n <= STEP_CODE_BYTES_MAX);
		buf_put_uleb(to, zigzag(e->addr - last_end));
		buf_put_uleb(to, zigzag((uint64_t)e->frame - last_frame));
		buf_put_u8(to, e->n);
		buf_put(to, e->bytes, e->n);
		last_end = e->addr + e->n;
		last_frame = e->frame;
	}
}

bool step_code_open(struct step_code_walk *w, struct span payload)
{
	uint64_t flags;

	*w = (struct step_code_walk){.c = cursor_of(payload)};
	w->head.space = take_u32(&w->c);
	w->head.generation = take_u32(&w->c);
	w->head.pid = take_u32(&w->c);
	flags = cursor_uleb(&w->c);
	w->head.n = w->n_left = take_u32(&w->c);
	w->head.is_64 = flags & CODE_FLAG_64;
	return !w->c.failed && !(flags & CODE_FLAG_ZERO) &&
	       w->head.n <= cursor_left(&w->c) / CODE_ENTRY_BYTES_MIN;
}

int step_code_next(struct step_code_walk *w, struct step_code *entry)
{
	struct step_code e = {0};
	uint64_t frame;

	if (w->c.failed || (!w->n_left && cursor_left(&w->c)))
		return -1;
	if (!w->n_left)
		return 0;
	e.addr = w->last_end + unzigzag(cursor_uleb(&w->c));
	frame = w->last_frame + unzigzag(cursor_uleb(&w->c));
	e.n = cursor_u8(&w->c);
	if (frame > UINT32_MAX || e.n > STEP_CODE_BYTES_MAX)
		w->c.failed = true;
	if (!cursor_take(&w->c, e.bytes, e.n > STEP_CODE_BYTES_MAX ? 0 : e.n))
		return -1;
	e.frame = w->last_frame = (uint32_t)frame;
	w->last_end = e.addr + e.n;
	w->n_left--;
	*entry = e;
	return 1;
}

/* --- marks --------------------------------------------------------------------------------- */

void step_mark_encode(struct buf *to, const struct step_mark *m)
{
	buf_put_uleb(to, m->at);
	buf_put_uleb(to, (uint64_t)m->kind);
	buf_put_sleb(to, m->a);
	buf_put_sleb(to, m->b);
	buf_put_sleb(to, m->c);
	buf_put_uleb(to, m->text);
}

bool step_mark_decode(struct step_mark *m, struct span payload)
{
	struct cursor c = cursor_of(payload);
	struct step_mark mark;
	uint64_t kind;

	mark.at = cursor_uleb(&c);
	kind = cursor_uleb(&c);
	mark.a = cursor_sleb(&c);
	mark.b = cursor_sleb(&c);
	mark.c = cursor_sleb(&c);
	mark.text = take_u32(&c);
	if (c.failed || cursor_left(&c) || !kind || kind >= STEP_N_MARKS)
		return false;
	mark.kind = (enum step_mark_kind)kind;
	*m = mark;
	return true;
}

/* --- data ---------------------------------------------------------------------------------- */

void step_data_encode(struct buf *to, const struct step_datum *data, uint32_t n)
{
	uint64_t at = 0, addr = 0;

	buf_put_uleb(to, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct step_datum *d = &data[i];

		assert(d->at >= at && d->n <= STEP_DATA_BYTES_MAX);
		assert(d->how && !(d->how & ~DATA_TAG_HOW));
		buf_put_uleb(to, d->at - at);
		buf_put_uleb(to, zigzag(d->addr - addr));
		buf_put_u8(to, d->how | (d->has_value ? DATA_TAG_VALUE : 0));
		buf_put_u8(to, d->n);
		if (d->has_value)
			buf_put(to, d->value, d->n);
		at = d->at;
		addr = d->addr;
	}
}

bool step_data_open(struct step_data_walk *w, struct span payload)
{
	*w = (struct step_data_walk){.c = cursor_of(payload)};
	w->n_left = take_u32(&w->c);
	return !w->c.failed && w->n_left <= cursor_left(&w->c) / DATUM_BYTES_MIN;
}

int step_data_next(struct step_data_walk *w, struct step_datum *datum)
{
	struct step_datum d = {0};
	uint64_t further;
	uint8_t tag;

	if (w->c.failed || (!w->n_left && cursor_left(&w->c)))
		return -1;
	if (!w->n_left)
		return 0;
	further = cursor_uleb(&w->c);
	d.at = w->at + further;
	d.addr = w->addr + unzigzag(cursor_uleb(&w->c));
	tag = cursor_u8(&w->c);
	d.n = cursor_u8(&w->c);
	d.how = tag & DATA_TAG_HOW;
	d.has_value = tag & DATA_TAG_VALUE;
	if (d.at < further || !d.how || tag & DATA_TAG_ZERO || d.n > STEP_DATA_BYTES_MAX)
		w->c.failed = true;
	if (w->c.failed || !cursor_take(&w->c, d.value, d.has_value ? d.n : 0))
		return -1;
	w->at = d.at;
	w->addr = d.addr;
	w->n_left--;
	*datum = d;
	return 1;
}

/* --- places -------------------------------------------------------------------------------- */

void step_place_encode(struct buf *to, const struct step_place *p)
{
	assert(p->bytes && p->bytes <= UINT64_MAX - p->start);
	buf_put_ulebs(
		to, p->space, (uint64_t)p->kind, p->start, p->bytes, p->image, p->at, p->name);
}

bool step_place_decode(struct step_place *p, struct span payload)
{
	struct cursor c = cursor_of(payload);
	struct step_place place = {.space = take_u32(&c)};
	uint64_t kind = cursor_uleb(&c);

	place.start = cursor_uleb(&c);
	place.bytes = cursor_uleb(&c);
	place.image = take_u32(&c);
	place.at = cursor_uleb(&c);
	place.name = take_u32(&c);
	if (c.failed || cursor_left(&c) || kind >= STEP_N_PLACES || !place.bytes ||
		place.bytes > UINT64_MAX - place.start)
		return false;
	place.kind = (enum step_place_kind)kind;
	*p = place;
	return true;
}
