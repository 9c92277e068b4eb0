/* SPDX-License-Identifier: MIT */
/*
 * Lists of DWARF 5 (.debug_rnglists, .debug_loclists; sections 2.6.2, 2.17.3, 7.28, 7.29), laid out
 * anew, since their numbers are LEB128.
 *
 * Lists are found from outside only: by the offsets in .debug_info and in the table at the front of
 * each contribution. gcc lets a list begin inside another when both have the same end. What lies
 * between them (gcc puts pairs of view numbers there) is copied. An entry whose numbers stay is
 * copied too, so code that has not moved gives the same bytes.
 */
#include "base/order.h"
#include "insert/debug_stage.h"

#include <stdlib.h>

#include "dwarf/attr_form.h"

#define ADDR_BYTES 8

enum list_entry {
	LIST_UNKNOWN,
	LIST_END,
	LIST_BASE_X,	     /* index */
	LIST_START_END_X,    /* two indexes */
	LIST_START_LENGTH_X, /* index and length */
	LIST_OFFSETS,	     /* two offsets from the base */
	LIST_DEFAULT,	     /* a location without range */
	LIST_BASE,	     /* address */
	LIST_START_END,	     /* two addresses */
	LIST_START_LENGTH,   /* address and length */
	LIST_VIEWS	     /* two view numbers */
};

static const uint8_t range_entries[] = {LIST_END, LIST_BASE_X, LIST_START_END_X,
	LIST_START_LENGTH_X, LIST_OFFSETS, LIST_BASE, LIST_START_END, LIST_START_LENGTH};
static const uint8_t location_entries[] = {LIST_END, LIST_BASE_X, LIST_START_END_X,
	LIST_START_LENGTH_X, LIST_OFFSETS, LIST_DEFAULT, LIST_BASE, LIST_START_END,
	LIST_START_LENGTH, LIST_VIEWS};

struct list_start {
	uint64_t offset;
	size_t unit;
};

/* A contribution: the lists behind one header. */
struct lists_move {
	struct debug_mover *d;
	struct debug_stage *s;
	uint8_t offset_bytes;
	uint32_t n_offsets; /* entries of the table */
	size_t table, end;  /* offsets in the section */
	size_t next_ref;    /* in d->refs: the first that is not in an earlier contribution */
	VEC(struct list_start) starts;
	size_t next_start; /* in `starts`: the first that has not been passed */
};

/* Numbers of an entry that are distances in the code. */
struct list_numbers {
	size_t at; /* where the first begins */
	int n;
	uint64_t old[2], now[2];
};

static enum list_entry entry_kind(const struct debug_stage *s, uint8_t byte)
{
	if (s->kind == DEBUG_KIND_RNGLISTS)
		return byte < sizeof(range_entries) ? range_entries[byte] : LIST_UNKNOWN;
	return byte < sizeof(location_entries) ? location_entries[byte] : LIST_UNKNOWN;
}

static bool has_location(const struct debug_stage *s, enum list_entry kind)
{
	return s->kind == DEBUG_KIND_LOCLISTS && kind != LIST_END && kind != LIST_BASE &&
	       kind != LIST_BASE_X && kind != LIST_VIEWS;
}

/* An address at c, which has a relocation or is absolute. */
static struct code_place read_addr(const struct lists_move *m, struct cursor *c)
{
	struct code_place place;
	size_t at = (size_t)(c->p - m->s->in.p);
	uint64_t value = cursor_u64(c);

	if (!debug_reloc_target(m->d, m->s->section, at, &place))
		place = (struct code_place){0, value};
	return place;
}

static bool read_index(
	const struct lists_move *m, size_t unit, struct cursor *c, struct code_place *place)
{
	return debug_index_target(m->d, &m->d->units.v[unit], cursor_uleb(c), place);
}

static void read_numbers(const struct lists_move *m, struct cursor *c, struct code_place from,
	struct list_numbers *numbers, int n)
{
	numbers->at = (size_t)(c->p - m->s->in.p);
	numbers->n = n;
	for (int i = 0; i < n; i++) {
		numbers->old[i] = cursor_uleb(c);
		numbers->now[i] = debug_distance(m->d, from, numbers->old[i]);
	}
}

/* The entry behind its first byte. False when it is damaged. */
static bool read_entry(const struct lists_move *m, enum list_entry kind, size_t unit,
	struct code_place *base, struct cursor *c, struct list_numbers *numbers)
{
	struct code_place from;

	*numbers = (struct list_numbers){0};
	switch (kind) {
	case LIST_UNKNOWN:
		return false;
	case LIST_END:
	case LIST_DEFAULT:
		break;
	case LIST_BASE_X:
		return read_index(m, unit, c, base);
	case LIST_BASE:
		*base = read_addr(m, c);
		break;
	case LIST_START_END_X:
	case LIST_VIEWS:
		cursor_uleb(c);
		cursor_uleb(c);
		break;
	case LIST_START_LENGTH_X:
		if (!read_index(m, unit, c, &from))
			return false;
		read_numbers(m, c, from, numbers, 1);
		break;
	case LIST_OFFSETS:
		read_numbers(m, c, *base, numbers, 2);
		break;
	case LIST_START_END:
		cursor_skip(c, 2 * ADDR_BYTES);
		break;
	case LIST_START_LENGTH:
		from = read_addr(m, c);
		read_numbers(m, c, from, numbers, 1);
		break;
	}
	return !c->failed;
}

/* Writes the entry [start, end); its numbers end at `behind`. */
static void put_entry(const struct lists_move *m, const struct list_numbers *numbers, size_t start,
	size_t behind, size_t end)
{
	if (!memcmp(numbers->old, numbers->now, sizeof(numbers->old))) {
		relay_copy(m->d, m->s, start, end);
		return;
	}
	relay_copy(m->d, m->s, start, numbers->at);
	for (int i = 0; i < numbers->n; i++)
		buf_put_uleb(&m->s->out, numbers->now[i]);
	relay_copy(m->d, m->s, behind, end);
}

/* The list being read, and those that share its end. */
struct list_state {
	size_t unit;
	struct code_place base; /* what offsets are relative to */
	bool has_other_base; /* for a list that began later they are relative to something else */
};

/* Lists that begin at this entry of the list, too. False when they are of another kind of unit. */
static bool join_starts(struct lists_move *m, struct list_state *l, size_t at)
{
	const struct debug_unit_base *unit = &m->d->units.v[l->unit], *other;

	for (; m->next_start < m->starts.n; m->next_start++) {
		if (m->starts.v[m->next_start].offset != at)
			break;
		other = &m->d->units.v[m->starts.v[m->next_start].unit];
		if (!is_same_place(unit->addrs, other->addrs))
			return false;
		l->has_other_base |= !is_same_place(l->base, other->low);
	}
	return true;
}

/* The list at c, which is left behind it. */
static int move_list(struct lists_move *m, size_t unit, struct cursor *c, struct err *err)
{
	const uint8_t *in = m->s->in.p;
	struct list_state l = {.unit = unit, .base = m->d->units.v[unit].low};
	enum list_entry kind;

	do {
		size_t start = (size_t)(c->p - in), behind;
		struct list_numbers numbers;
		bool is_read;

		if (!join_starts(m, &l, start))
			return debug_fail(m->s, start, err, "lists overlap");
		kind = entry_kind(m->s, cursor_u8(c));
		is_read = !c->failed && read_entry(m, kind, unit, &l.base, c, &numbers);
		behind = (size_t)(c->p - in);
		if (is_read && has_location(m->s, kind))
			cursor_skip(c, cursor_uleb(c));
		if (!is_read || c->failed)
			return debug_fail(m->s, start, err, "the entry of the list is damaged");
		if (kind == LIST_BASE || kind == LIST_BASE_X)
			l.has_other_base = false;
		if (kind == LIST_OFFSETS && l.has_other_base)
			return debug_fail(m->s, start, err, "lists overlap");
		put_entry(m, &numbers, start, behind, (size_t)(c->p - in));
	} while (kind != LIST_END);
	return 0;
}

ORDER_BY(order_starts, struct list_start, offset, unit)

static uint64_t table_entry(const struct lists_move *m, uint32_t i)
{
	return bytes_word(m->s->in.p + m->table + (size_t)i * m->offset_bytes, m->offset_bytes);
}

/* Where the lists of the contribution begin, in order. */
static int find_starts(struct lists_move *m, struct err *err)
{
	const struct debug_list_ref *table = NULL;

	m->starts.n = 0;
	for (; m->next_ref < m->d->refs.n; m->next_ref++) {
		const struct debug_list_ref *ref = &m->d->refs.v[m->next_ref];

		if (ref->section != m->s->section || ref->offset >= m->end)
			break;
		if (ref->is_table && ref->offset == m->table)
			table = ref;
		else if (!ref->is_table)
			vec_push(&m->starts, ((struct list_start){ref->offset, ref->unit}));
	}
	if (m->n_offsets && !table)
		return debug_fail(m->s, m->table, err, "no unit refers to the table of lists");
	for (uint32_t i = 0; i < m->n_offsets; i++) {
		uint64_t offset = table_entry(m, i);

		if (offset > m->end - m->table)
			return debug_fail(m->s, m->table, err, "an offset leads out of the table");
		vec_push(&m->starts, ((struct list_start){m->table + offset, table->unit}));
	}
	vec_sort(&m->starts, order_starts);
	return 0;
}

static int move_lists(struct lists_move *m, struct err *err)
{
	size_t at = m->table + (size_t)m->n_offsets * m->offset_bytes;

	m->next_start = 0;
	while (m->next_start < m->starts.n) {
		const struct list_start *start = &m->starts.v[m->next_start];
		struct cursor c = {m->s->in.p + start->offset, m->s->in.p + m->end, false};
		int ret;

		if (start->offset < at)
			return debug_fail(m->s, start->offset, err, "lists overlap");
		relay_copy(m->d, m->s, at, start->offset);
		ret = move_list(m, start->unit, &c, err);
		if (ret < 0)
			return ret;
		at = (size_t)(c.p - m->s->in.p);
	}
	relay_copy(m->d, m->s, at, m->end);
	return 0;
}

/* The table of offsets, once it is known where the lists are. */
static bool put_table(const struct lists_move *m, size_t table)
{
	for (uint32_t i = 0; i < m->n_offsets; i++) {
		uint64_t now =
			moved_label(&m->d->relaid, m->s->section, m->table + table_entry(m, i)) -
			table;

		if (!stage_put_number(
			    m->s, table + (size_t)i * m->offset_bytes, m->offset_bytes, now))
			return false;
	}
	return true;
}

/* The contribution at `at`, whose length has been read: `c` ends where it ends. */
static int move_contribution(struct lists_move *m, size_t at, struct cursor *c, struct err *err)
{
	uint16_t version = cursor_u16(c);
	uint8_t address = cursor_u8(c), selector = cursor_u8(c);
	size_t out, table;
	int ret;

	m->n_offsets = cursor_u32(c);
	m->table = (size_t)(c->p - m->s->in.p);
	m->end = (size_t)(c->end - m->s->in.p);
	if (c->failed || version != 5 || address != ADDR_BYTES || selector)
		return debug_fail(m->s, at, err, "the header of the lists is not known");
	if (m->n_offsets > cursor_left(c) / m->offset_bytes)
		return debug_fail(m->s, at, err, "the table of lists does not fit");
	relay_mark(m->d, m->s, at);
	out = m->s->out.n;
	table = out + m->table - at;
	relay_copy(m->d, m->s, at, m->table + (size_t)m->n_offsets * m->offset_bytes);
	ret = find_starts(m, err);
	if (ret == 0)
		ret = move_lists(m, err);
	if (ret < 0)
		return ret;
	if (!put_table(m, table) || !relay_put_length(m->s, out, m->offset_bytes))
		return debug_fail(m->s, at, err, "the lists have become too large");
	return 0;
}

int debug_lists_move(struct debug_mover *d, struct debug_stage *s, struct err *err)
{
	struct lists_move m = {.d = d, .s = s};
	struct cursor c = cursor_of(s->in);
	int ret = 0;

	m.next_ref = debug_first_ref(d, s->section);
	while (ret == 0 && cursor_left(&c)) {
		size_t at = (size_t)(c.p - s->in.p);
		struct cursor unit;
		uint64_t length;

		if (!debug_unit_length(&c, &length, &m.offset_bytes)) {
			ret = debug_fail(s, at, err, "the lists do not fit in the section");
			break;
		}
		unit = cursor_of(cursor_bytes(&c, length));
		ret = move_contribution(&m, at, &unit, err);
	}
	vec_release(&m.starts);
	return ret;
}
