/* SPDX-License-Identifier: MIT */
#include "symbols/range_paint.h"

#include <stdbool.h>

#include "dwarf/interval_paint.h"

static bool is_simple(const struct range *ranges, size_t n)
{
	uint64_t end = 0;

	for (size_t i = 0; i < n; i++) {
		if (ranges[i].start < end || ranges[i].end <= ranges[i].start)
			return false;
		end = ranges[i].end;
	}
	return true;
}

size_t range_paint(const struct range *ranges, size_t n, struct range_piece **out)
{
	VEC(struct range_piece) pieces = {0};
	struct painter p = {0};

	vec_reserve(&pieces, n + 1);
	if (is_simple(ranges, n)) {
		for (uint32_t i = 0; i < n; i++)
			vec_push(&pieces,
				((struct range_piece){ranges[i].start, ranges[i].end, i}));
		n = 0;
	}
	for (uint32_t i = 0; i < n; i++)
		if (ranges[i].start < ranges[i].end)
			painter_add(&p, ranges[i].start, ranges[i].end, i);
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
