/* SPDX-License-Identifier: MIT */
/*
 * Lists of DWARF 2 to 4 (.debug_ranges, .debug_loc) and .debug_aranges: numbers of 8 bytes, changed
 * in place. A number with a relocation is an address and left alone; one without is an offset from
 * the base of its unit, or a length.
 */
#include "insert/debug_stage.h"

#include "dwarf/attr_form.h"

#define ADDR_BYTES 8
#define PAIR_BYTES (2 * ADDR_BYTES)

/* A list being read, and those that share its end: gcc lets a list begin inside another. */
struct pair_list {
	struct debug_mover *d;
	struct debug_stage *s;
	struct code_place base;
	bool has_other_base; /* for a list that began later, offsets are relative to another one */
	size_t at;	     /* of the next pair */
	size_t next_ref;     /* in d->refs: the first that has not been passed */
};

static void put_offset(struct pair_list *l, size_t at, uint64_t value)
{
	uint64_t now = debug_distance(l->d, l->base, value);

	if (now == value)
		return;
	stage_edit(l->s);
	stage_put_number(l->s, at, ADDR_BYTES, now);
}

enum pair_kind {
	PAIR_END,  /* of the list */
	PAIR_BASE, /* another base for what follows */
	PAIR_OFFSETS,
	PAIR_ADDRESSES
};

/* The pair at l->at. */
static enum pair_kind move_pair(struct pair_list *l)
{
	size_t second_at = l->at + ADDR_BYTES;
	uint64_t first = bytes_u64(l->s->in.p + l->at), second = bytes_u64(l->s->in.p + second_at);
	struct code_place place;
	bool has_first = debug_reloc_target(l->d, l->s->section, l->at, &place);
	bool has_second = debug_reloc_target(l->d, l->s->section, second_at, &place);

	if (!has_first && first == UINT64_MAX) {
		l->base = has_second ? place : (struct code_place){0, second};
		return PAIR_BASE;
	}
	if (has_first || has_second)
		return PAIR_ADDRESSES;
	if (!first && !second)
		return PAIR_END;
	put_offset(l, l->at, first);
	put_offset(l, second_at, second);
	return PAIR_OFFSETS;
}

/* The next list that a unit refers to in this section; NULL when there is none. */
static const struct debug_list_ref *next_list(struct pair_list *l)
{
	for (; l->next_ref < l->d->refs.n; l->next_ref++) {
		const struct debug_list_ref *ref = &l->d->refs.v[l->next_ref];

		if (ref->section != l->s->section)
			return NULL;
		if (!ref->is_table)
			return ref;
	}
	return NULL;
}

/* Lists that begin at this pair of the list, too. */
static void join_lists(struct pair_list *l)
{
	const struct debug_list_ref *ref;

	while ((ref = next_list(l)) && ref->offset == l->at) {
		l->has_other_base |= !is_same_place(l->base, l->d->units.v[ref->unit].low);
		l->next_ref++;
	}
}

static int move_list(struct pair_list *l, struct err *err)
{
	size_t start = l->at, n = l->s->in.n;
	enum pair_kind kind;

	do {
		if (n - l->at < PAIR_BYTES)
			return debug_fail(l->s, start, err, "the list has no end");
		join_lists(l);
		kind = move_pair(l);
		if (kind == PAIR_BASE)
			l->has_other_base = false;
		if (kind == PAIR_OFFSETS && l->has_other_base)
			return debug_fail(l->s, l->at, err, "lists overlap");
		l->at += PAIR_BYTES;
		if (l->s->kind == DEBUG_KIND_LOC && kind > PAIR_BASE) {
			uint64_t bytes = n - l->at >= 2 ? bytes_u16(l->s->in.p + l->at) : n;

			if (bytes + 2 > n - l->at)
				return debug_fail(l->s, start, err, "the list has no end");
			l->at += bytes + 2;
		}
	} while (kind != PAIR_END);
	return 0;
}

int debug_pairs_move(struct debug_mover *d, struct debug_stage *s, struct err *err)
{
	struct pair_list l = {.d = d, .s = s, .next_ref = debug_first_ref(d, s->section)};
	const struct debug_list_ref *ref;

	while ((ref = next_list(&l))) {
		int ret;

		if (ref->offset < l.at)
			return debug_fail(s, ref->offset, err, "lists overlap");
		l.base = d->units.v[ref->unit].low;
		l.has_other_base = false;
		l.at = ref->offset;
		ret = move_list(&l, err);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* The tuples of a unit, up to the end of `c`. */
static void move_tuples(struct debug_mover *d, struct debug_stage *s, struct cursor *c)
{
	while (cursor_left(c) >= PAIR_BYTES) {
		size_t at = (size_t)(c->p - s->in.p);
		struct code_place place;
		uint64_t length, now;

		cursor_u64(c);
		length = cursor_u64(c);
		if (!debug_reloc_target(d, s->section, at, &place))
			continue;
		now = debug_distance(d, place, length);
		if (now == length)
			continue;
		stage_edit(s);
		stage_put_number(s, at + ADDR_BYTES, ADDR_BYTES, now);
	}
}

int debug_aranges_move(struct debug_mover *d, struct debug_stage *s, struct err *err)
{
	struct cursor c = cursor_of(s->in);

	while (cursor_left(&c)) {
		size_t at = (size_t)(c.p - s->in.p), header;
		struct cursor unit;
		uint64_t length;
		uint8_t offset_bytes, address, selector;

		if (!debug_unit_length(&c, &length, &offset_bytes))
			return debug_fail(s, at, err, "the table does not fit in the section");
		unit = cursor_of(cursor_bytes(&c, length));
		if (cursor_u16(&unit) != 2)
			return debug_fail(s, at, err, "the version of the table is not known");
		cursor_skip(&unit, offset_bytes);
		address = cursor_u8(&unit);
		selector = cursor_u8(&unit);
		if (unit.failed || address != ADDR_BYTES || selector)
			return debug_fail(s, at, err, "the header of the table is damaged");
		/* The tuples are aligned to their size, counted from the start of the table. */
		header = (size_t)(unit.p - s->in.p) - at;
		cursor_skip(&unit, (PAIR_BYTES - header % PAIR_BYTES) % PAIR_BYTES);
		move_tuples(d, s, &unit);
	}
	return 0;
}
