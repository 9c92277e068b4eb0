/* SPDX-License-Identifier: MIT */
#include "dwarf/interval_paint.h"

void painter_release(struct painter *p)
{
	vec_release(&p->ranges);
	vec_release(&p->by_start);
	vec_release(&p->heap);
	vec_release(&p->changes);
}

/* By start; of equal starts, as added. */
static void sort_ranges(struct painter *p)
{
	p->by_start.n = 0;
	vec_reserve(&p->by_start, p->ranges.n);
	for (uint32_t i = 0; i < p->ranges.n; i++)
		vec_push(&p->by_start, ((struct sort_pair){p->ranges.v[i].start, i}));
	sort_pairs(p->by_start.v, p->by_start.n);
}

static void heap_push(struct painter *p, struct paint_layer layer)
{
	size_t i = p->heap.n;

	vec_push(&p->heap, layer);
	while (i && p->heap.v[(i - 1) / 2].order < layer.order) {
		p->heap.v[i] = p->heap.v[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	p->heap.v[i] = layer;
}

static void heap_pop(struct painter *p)
{
	struct paint_layer last = p->heap.v[--p->heap.n];
	size_t i = 0, n = p->heap.n;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < n && p->heap.v[child + 1].order > p->heap.v[child].order)
			child++;
		if (child >= n || p->heap.v[child].order <= last.order)
			break;
		p->heap.v[i] = p->heap.v[child];
		i = child;
	}
	p->heap.v[i] = last;
}

static void change(struct painter *p, uint64_t addr, uint32_t value)
{
	uint32_t before = p->changes.n ? p->changes.v[p->changes.n - 1].value : PAINT_NONE;

	if (value != before)
		vec_push(&p->changes, ((struct paint_change){addr, value}));
}

void painter_run(struct painter *p)
{
	const struct sort_pair *next, *end;

	p->changes.n = p->heap.n = 0;
	if (!p->ranges.n)
		return;
	sort_ranges(p);
	next = p->by_start.v;
	end = next + p->by_start.n;
	while (next < end || p->heap.n) {
		uint64_t addr = p->heap.n ? p->heap.v[0].end : next->key;

		if (next < end && next->key < addr)
			addr = next->key;
		for (; next < end && next->key == addr; next++)
			heap_push(p, (struct paint_layer){p->ranges.v[next->i].end, next->i,
					     p->ranges.v[next->i].value});
		while (p->heap.n && p->heap.v[0].end <= addr)
			heap_pop(p);
		change(p, addr, p->heap.n ? p->heap.v[0].value : PAINT_NONE);
	}
}
