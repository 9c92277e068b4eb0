/* SPDX-License-Identifier: MIT */
#include "symbols/resolve/module_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"

#define OPEN_ROWS_MAX	65536 /* of a process; Linux allows 65,530 mappings */
#define ROWS_MAX	(1u << 24)
#define WORK_MAX	(1u << 30)
#define CLOSED_SCAN_MAX 4096 /* more are taken to be everywhere */

void module_rows_release(struct module_rows *r)
{
	vec_release(&r->rows);
	vec_release(&r->owners);
}

void module_space_release(struct module_space *space)
{
	vec_release(&space->open);
	vec_release(&space->closed);
	vec_release(&space->all);
}

bool module_rows_spend(struct module_rows *r, uint64_t steps)
{
	r->work += steps;
	if (r->work <= WORK_MAX)
		return true;
	r->n_lost++;
	return false;
}

/* The open row at place `i`. */
static struct trace_module_span *open_row(
	const struct module_rows *r, const struct module_space *space, size_t i)
{
	return &r->rows.v[space->open.v[i]];
}

/* The place of the first open row that ends after `addr`. */
static size_t open_after(
	const struct module_rows *r, const struct module_space *space, uint64_t addr)
{
	return SEARCH(0, space->open.n, i, open_row(r, space, i)->end <= addr);
}

/* Adds an open row at place `i`. */
static void insert_row(struct module_rows *r, struct module_space *space, size_t i,
	const struct trace_module_span *span)
{
	struct trace_module_span copy = *span; /* it may be one of the rows */
	uint32_t row_i = (uint32_t)r->rows.n;

	vec_push(&r->rows, copy);
	vec_push(&r->owners, space->owner);
	vec_push(&space->all, row_i);
	vec_insert(&space->open, i, row_i);
}

void module_rows_open(struct module_rows *r, struct module_space *space,
	const struct module_piece *piece, uint64_t from)
{
	if (space->open.n >= OPEN_ROWS_MAX || r->rows.n >= ROWS_MAX) {
		r->n_lost++;
		return;
	}
	insert_row(r, space, open_after(r, space, piece->start),
		&(struct trace_module_span){.start = piece->start,
			.end = piece->end,
			.from = from,
			.to = UINT64_MAX,
			.image = piece->image,
			.bias = piece->bias,
			.at_start = piece->at_start,
			.is_used = piece->is_used});
}

/* Makes two of the open row at place `i`, the second from `addr` on, which is inside it. */
static void split(struct module_rows *r, struct module_space *space, size_t i, uint64_t addr)
{
	struct trace_module_span upper = *open_row(r, space, i);

	upper.start = addr;
	open_row(r, space, i)->end = addr;
	insert_row(r, space, i + 1, &upper);
}

void module_rows_cut(struct module_rows *r, struct module_space *space, uint64_t start,
	uint64_t end, uint64_t time, enum module_end how)
{
	size_t first = open_after(r, space, start), last;

	if (first < space->open.n && open_row(r, space, first)->start < start)
		split(r, space, first++, start);
	for (last = first; last < space->open.n; last++) {
		struct trace_module_span *s = open_row(r, space, last);

		if (s->start >= end)
			break;
		if (s->end > end) {
			split(r, space, last, end);
			s = open_row(r, space, last);
		}
		s->to = time > s->from ? time : s->from;
		s->ended = how;
		vec_push(&space->closed, space->open.v[last]);
	}
	if (first == last)
		return;
	memmove(&space->open.v[first], &space->open.v[last],
		(space->open.n - last) * sizeof(*space->open.v));
	space->open.n -= last - first;
}

static bool is_same(const struct trace_module_span *s, const struct module_piece *piece)
{
	return s->image == piece->image && s->bias == piece->bias;
}

bool module_rows_cut_others(struct module_rows *r, struct module_space *space,
	const struct module_piece *piece, uint64_t time, enum module_end how)
{
	uint64_t at = piece->start;
	bool found = false;

	while (at < piece->end) {
		size_t i = open_after(r, space, at);
		struct trace_module_span s;
		uint64_t end;

		if (i == space->open.n || !module_rows_spend(r, 1))
			break;
		s = *open_row(r, space, i);
		if (s.start >= piece->end)
			break;
		at = s.start > at ? s.start : at;
		end = s.end < piece->end ? s.end : piece->end;
		if (!is_same(&s, piece)) {
			module_rows_cut(r, space, at, end, time, how);
			found = true;
		}
		at = end;
	}
	return found;
}

/* Whether something ended in the piece's range since the program began. */
static bool was_touched(const struct module_rows *r, const struct module_space *space,
	const struct module_piece *piece)
{
	if (space->closed.n > CLOSED_SCAN_MAX)
		return true;
	for (size_t i = 0; i < space->closed.n; i++) {
		const struct trace_module_span *s = &r->rows.v[space->closed.v[i]];

		if (s->start < piece->end && s->end > piece->start)
			return true;
	}
	return false;
}

void module_rows_fill(struct module_rows *r, struct module_space *space,
	const struct module_piece *piece, uint64_t time, bool from_base)
{
	uint64_t at = piece->start;

	while (at < piece->end && module_rows_spend(r, 1)) {
		size_t i = open_after(r, space, at);
		struct trace_module_span *next = i < space->open.n ? open_row(r, space, i) : NULL;
		struct module_piece gap = *piece;
		uint64_t from = time;

		if (next && next->start <= at) {
			if (is_same(next, piece))
				next->is_used |= piece->is_used;
			at = next->end;
			continue;
		}
		gap.start = at;
		if (next && next->start < gap.end)
			gap.end = next->start;
		at = gap.end;
		if (from_base && !was_touched(r, space, &gap))
			from = space->base;
		/* A load record knows that; of a snapshot it follows from the beginning. */
		gap.at_start = piece->at_start && (piece->is_used || !from);
		module_rows_open(r, space, &gap, from);
	}
}
