/* SPDX-License-Identifier: MIT */
/*
 * All starts and ends cut the address space into cells. The ranges are painted from the last to the
 * first, each only where nothing is painted yet; `next_free` leads from a cell to the first
 * unpainted one at or above it (union-find with path halving), so every cell is painted once.
 */
#include "symbols/range_paint.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

#define NOT_PAINTED UINT32_MAX

struct canvas {
	uint64_t *bounds; /* sorted, distinct; cell i is [bounds[i], bounds[i + 1]) */
	uint32_t
		*next_free; /* n_bounds entries; the last bound starts no cell and is always free */
	uint32_t *owner;    /* range of each cell */
	size_t n_bounds;
};

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

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

static void canvas_init(struct canvas *c, const struct range *ranges, size_t n)
{
	size_t n_all = 0, n_distinct = 0;

	c->bounds = mem_calloc(n ? 2 * n : 1, sizeof(*c->bounds));
	for (size_t i = 0; i < n; i++) {
		c->bounds[n_all++] = ranges[i].start;
		c->bounds[n_all++] = ranges[i].end;
	}
	qsort(c->bounds, n_all, sizeof(*c->bounds), compare_u64);
	for (size_t i = 0; i < n_all; i++) {
		if (!n_distinct || c->bounds[n_distinct - 1] != c->bounds[i])
			c->bounds[n_distinct++] = c->bounds[i];
	}
	c->n_bounds = n_distinct;
	c->next_free = mem_calloc(n_distinct + 1, sizeof(*c->next_free));
	c->owner = mem_calloc(n_distinct + 1, sizeof(*c->owner));
	for (size_t i = 0; i < n_distinct; i++) {
		c->next_free[i] = (uint32_t)i;
		c->owner[i] = NOT_PAINTED;
	}
}

static void canvas_release(struct canvas *c)
{
	free(c->bounds);
	free(c->next_free);
	free(c->owner);
}

static size_t first_free(struct canvas *c, size_t cell)
{
	while (c->next_free[cell] != cell) {
		c->next_free[cell] = c->next_free[c->next_free[cell]];
		cell = c->next_free[cell];
	}
	return cell;
}

static void paint_one(struct canvas *c, const struct range *r, uint32_t range_i)
{
	const uint64_t *at;
	size_t cell;

	if (r->end <= r->start)
		return;
	at = bsearch(&r->start, c->bounds, c->n_bounds, sizeof(*c->bounds), compare_u64);
	cell = first_free(c, (size_t)(at - c->bounds));
	while (c->bounds[cell] < r->end) {
		c->owner[cell] = range_i;
		c->next_free[cell] = (uint32_t)cell + 1;
		cell = first_free(c, cell + 1);
	}
}

/* Cells of one range in a row are one piece: between two of them none is unpainted. */
static size_t collect_pieces(const struct canvas *c, struct range_piece **out)
{
	VEC(struct range_piece) pieces = {0};

	for (size_t i = 0; i + 1 < c->n_bounds; i++) {
		struct range_piece *last = pieces.n ? &pieces.v[pieces.n - 1] : NULL;

		if (c->owner[i] == NOT_PAINTED)
			continue;
		if (last && last->range_i == c->owner[i]) {
			last->end = c->bounds[i + 1];
			continue;
		}
		vec_push(&pieces,
			((struct range_piece){c->bounds[i], c->bounds[i + 1], c->owner[i]}));
	}
	*out = pieces.v;
	return pieces.n;
}

size_t range_paint(const struct range *ranges, size_t n, struct range_piece **out)
{
	struct canvas c;

	if (is_simple(ranges, n)) {
		*out = mem_calloc(n ? n : 1, sizeof(**out));
		for (size_t i = 0; i < n; i++)
			(*out)[i] =
				(struct range_piece){ranges[i].start, ranges[i].end, (uint32_t)i};
		return n;
	}
	canvas_init(&c, ranges, n);
	for (size_t i = n; i-- > 0;)
		paint_one(&c, &ranges[i], (uint32_t)i);
	n = collect_pieces(&c, out);
	canvas_release(&c);
	return n;
}
