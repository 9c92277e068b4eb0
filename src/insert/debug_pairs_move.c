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

/* A list being read. */
struct pair_list {
	struct debug_mover *d;
	struct debug_stage *s;
	struct debug_place base;
	size_t at; /* of the next pair */
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
	PAIR_RANGE
};

/* The pair at l->at. */
static enum pair_kind move_pair(struct pair_list *l)
{
	size_t second_at = l->at + ADDR_BYTES;
	uint64_t first = bytes_u64(l->s->in.p + l->at), second = bytes_u64(l->s->in.p + second_at);
	struct debug_place place;
	bool has_first = debug_reloc_target(l->d, l->s->section, l->at, &place);
	bool has_second = debug_reloc_target(l->d, l->s->section, second_at, &place);

	if (!has_first && first == UINT64_MAX) {
		l->base = has_second ? place : (struct debug_place){0, second};
		return PAIR_BASE;
	}
	if (has_first || has_second)
		return PAIR_RANGE;
	if (!first && !second)
		return PAIR_END;
	put_offset(l, l->at, first);
	put_offset(l, second_at, second);
	return PAIR_RANGE;
}

static int move_list(struct pair_list *l, struct err *err)
{
	size_t start = l->at, n = l->s->in.n;
	enum pair_kind kind;

	do {
		if (n - l->at < PAIR_BYTES)
			return debug_fail(l->s, start, err, "the list has no end");
		kind = move_pair(l);
		l->at += PAIR_BYTES;
		if (l->s->kind == DEBUG_KIND_LOC && kind == PAIR_RANGE) {
			uint64_t bytes = n - l->at >= 2 ? bytes_u16(l->s->in.p + l->at) : n;

			if (bytes + 2 > n - l->at)
				return debug_fail(l->s, start, err, "the list has no end");
			l->at += bytes + 2;
		}
	} while (kind != PAIR_END);
	return 0;
}

static bool is_same_place(struct debug_place a, struct debug_place b)
{
	return a.section == b.section && a.offset == b.offset;
}

int debug_pairs_move(struct debug_mover *d, struct debug_stage *s, struct err *err)
{
	struct pair_list l = {.d = d, .s = s};
	const struct debug_list_ref *last = NULL;

	for (size_t i = debug_first_ref(d, s->section); i < d->refs.n; i++) {
		const struct debug_list_ref *ref = &d->refs.v[i];
		struct debug_place base = d->units.v[ref->unit].low;
		int ret;

		if (ref->section != s->section)
			break;
		if (ref->is_table)
			continue;
		if (last && last->offset == ref->offset &&
			is_same_place(base, d->units.v[last->unit].low))
			continue;
		if (ref->offset < l.at)
			return debug_fail(s, ref->offset, err, "lists overlap");
		l.base = base;
		l.at = ref->offset;
		ret = move_list(&l, err);
		if (ret < 0)
			return ret;
		last = ref;
	}
	return 0;
}

/* The tuples of a unit, up to the end of `c`. */
static void move_tuples(struct debug_mover *d, struct debug_stage *s, struct cursor *c)
{
	while (cursor_left(c) >= PAIR_BYTES) {
		size_t at = (size_t)(c->p - s->in.p);
		struct debug_place place;
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
