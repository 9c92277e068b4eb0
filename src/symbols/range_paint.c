/* SPDX-License-Identifier: MIT */
#include "symbols/range_paint.h"

#include <stdbool.h>

#include "dwarf/interval_paint.h"

/* In order and apart, so that nothing is painted over. */
static bool is_simple(const struct range *ranges, size_t n)
{
	uint64_t end = 0;

	for (size_t i = 0; i < n; i++) {
		if (ranges[i].end <= ranges[i].start)
			continue;
		if (ranges[i].start < end)
			return false;
		end = ranges[i].end;
	}
	return true;
}

static size_t paint(
	const struct range *ranges, size_t n, bool is_backwards, struct range_piece **out)
{
	VEC(struct range_piece) pieces = {0};
	bool simple = is_simple(ranges, n);
	struct painter p = {0};

	vec_reserve(&pieces, n + 1);
	for (size_t k = 0; k < n; k++) {
		uint32_t i = (uint32_t)(is_backwards && !simple ? n - 1 - k : k);
		const struct range *r = &ranges[i];

		if (r->start >= r->end)
			continue;
		if (simple)
			vec_push(&pieces, ((struct range_piece){r->start, r->end, i}));
		else
			painter_add(&p, r->start, r->end, i);
	}
	painter_run(&p);
	for (size_t i = 0; i + 1 < p.changes.n; i++) {
		const struct paint_change *c = &p.changes.v[i];

		if (c->value != PAINT_NONE)
			vec_push(&pieces, ((struct range_piece){c->addr, c[1].addr, c->value}));
	}
	painter_release(&p);
	*out = pieces.v;
	return pieces.n;
}

size_t range_paint(const struct range *ranges, size_t n, struct range_piece **out)
{
	return paint(ranges, n, false, out);
}

size_t range_paint_first_wins(const struct range *ranges, size_t n, struct range_piece **out)
{
	return paint(ranges, n, true, out);
}
