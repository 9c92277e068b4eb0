/* SPDX-License-Identifier: MIT */
#include "dwarf/interval_paint.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define INSERTION_MAX 48 /* below this, insertion beats counting */
#define DIGIT_BITS    11
#define DIGITS	      (1u << DIGIT_BITS)

void painter_release(struct painter *p)
{
	vec_release(&p->ranges);
	vec_release(&p->spare);
	vec_release(&p->heap);
	vec_release(&p->changes);
}

static void sort_few(struct paint_range *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct paint_range item = v[i];
		size_t k = i;

		for (; k && v[k - 1].start > item.start; k--)
			v[k] = v[k - 1];
		v[k] = item;
	}
}

/* One pass of a radix sort, stable, over the digit of start - low at `shift`. */
static void sort_digit(const struct paint_range *from, struct paint_range *to, size_t n,
	uint64_t low, unsigned shift)
{
	uint32_t at[DIGITS] = {0}, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[(from[i].start - low) >> shift & (DIGITS - 1)]++;
	for (unsigned i = 0; i < DIGITS; i++) {
		uint32_t count = at[i];

		at[i] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[at[(from[i].start - low) >> shift & (DIGITS - 1)]++] = from[i];
}

/* By start; of equal starts, as added. */
static void sort_ranges(struct painter *p)
{
	size_t n = p->ranges.n;
	uint64_t low = UINT64_MAX, high = 0;
	bool is_sorted = true;

	for (size_t i = 0; i < n; i++) {
		uint64_t start = p->ranges.v[i].start;

		is_sorted &= !i || p->ranges.v[i - 1].start <= start;
		low = start < low ? start : low;
		high = start > high ? start : high;
	}
	if (is_sorted)
		return;
	if (n <= INSERTION_MAX) {
		sort_few(p->ranges.v, n);
		return;
	}
	vec_reserve(&p->spare, n);
	for (unsigned shift = 0; shift < 64 && (high - low) >> shift; shift += DIGIT_BITS) {
		struct painter old = *p;

		sort_digit(p->ranges.v, p->spare.v, n, low, shift);
		p->ranges.v = old.spare.v;
		p->ranges.cap = old.spare.cap;
		p->spare.v = old.ranges.v;
		p->spare.cap = old.ranges.cap;
	}
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
	const struct paint_range *next, *end;

	p->changes.n = p->heap.n = 0;
	if (!p->ranges.n)
		return;
	sort_ranges(p);
	next = p->ranges.v;
	end = next + p->ranges.n;
	while (next < end || p->heap.n) {
		uint64_t addr = p->heap.n ? p->heap.v[0].end : next->start;

		if (next < end && next->start < addr)
			addr = next->start;
		for (; next < end && next->start == addr; next++)
			heap_push(p, (struct paint_layer){next->end, next->order, next->value});
		while (p->heap.n && p->heap.v[0].end <= addr)
			heap_pop(p);
		change(p, addr, p->heap.n ? p->heap.v[0].value : PAINT_NONE);
	}
}
