/* SPDX-License-Identifier: MIT */
/*
 * Histograms, drawn as bpftrace draws them:
 *
 *   [256, 512)             3 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
 *   [512, 1K)              6 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
 *
 * from the first bucket with something in it to the last one.
 */
#include <inttypes.h>
#include <string.h>

#include "probe/print/print_internal.h"

#define BAR_COLUMNS 52
#define KILO	    1024u

static const char bar[BAR_COLUMNS + 1] = "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@";

/* The buckets that are shown; is_empty: none. */
struct hist_range {
	size_t first, last;
	uint64_t max;
	bool is_empty;
};

static uint32_t bits_of(const struct shape *s)
{
	return s->n <= HIST_BITS_MAX ? s->n : HIST_BITS_MAX;
}

/* Buckets that the shape has; of these only the first ones may be in the value. */
static size_t n_buckets(const struct shape *s)
{
	return s->kind == SHAPE_HIST ? hist_n_buckets(bits_of(s)) : s->size / sizeof(uint64_t);
}

/* Where bucket i, from 1 on, begins, and its last number. */
static uint64_t hist_first(const struct shape *s, size_t i)
{
	uint32_t bits = bits_of(s);
	size_t power;

	if (i <= (size_t)2 << bits) /* one for each number */
		return i - 1;
	power = (i - 1) >> bits; /* from 2 on */
	return (i - 1 - ((power - 1) << bits)) << (power - 1);
}

static uint64_t hist_last(const struct shape *s, size_t i)
{
	return i + 1 < n_buckets(s) ? hist_first(s, i + 1) - 1 : UINT64_MAX;
}

static size_t n_present(const struct shape *s, struct span value)
{
	size_t n = n_buckets(s), there = value.n / sizeof(uint64_t);

	return n < there ? n : there;
}

static uint64_t bucket(struct span value, size_t i, uint64_t div)
{
	uint64_t count = print_word(value, i * sizeof(uint64_t));

	return div > 1 ? count / div : count;
}

static struct hist_range shown_range(const struct shape *s, struct span value, uint64_t div)
{
	struct hist_range r = {.is_empty = true};

	for (size_t i = 0; i < n_present(s, value); i++) {
		uint64_t count = bucket(value, i, div);

		if (!print_word(value, i * sizeof(uint64_t)))
			continue;
		if (r.is_empty)
			r.first = i;
		r.is_empty = false;
		r.last = i;
		if (count > r.max)
			r.max = count;
	}
	return r;
}

uint64_t print_hist_total(const struct shape *s, struct span value)
{
	uint64_t total = 0;

	for (size_t i = 0; i < n_present(s, value); i++)
		total += bucket(value, i, 1);
	return total;
}

/* Whole kilos have short numbers: 1, 512, 1K, 1152. */
static void put_short(uint64_t v, struct buf *out)
{
	static const char suffixes[] = "KMGTPE";
	int suffix = -1;

	for (; v && v % KILO == 0 && suffix < 5; suffix++)
		v /= KILO;
	buf_printf(out, "%" PRIu64, v);
	if (suffix >= 0)
		buf_put_u8(out, (uint8_t)suffixes[suffix]);
}

static void hist_label(const struct shape *s, size_t i, struct buf *out)
{
	uint64_t first = i ? hist_first(s, i) : 0, last = i ? hist_last(s, i) : 0;

	if (i == 0) {
		buf_put_cstr(out, "(..., 0)");
		return;
	}
	buf_put_u8(out, '[');
	put_short(first, out);
	if (first != last) {
		buf_put_cstr(out, ", ");
		if (last == UINT64_MAX)
			buf_put_cstr(out, "16E");
		else
			put_short(last + 1, out);
	}
	buf_put_u8(out, first == last ? ']' : ')');
}

/* Where a linear bucket (from 1 on) begins; sums wrap around like the numbers of the program. */
static int64_t lhist_edge(const struct shape *s, size_t i)
{
	return (int64_t)((uint64_t)s->min + (uint64_t)(i - 1) * (uint64_t)s->step);
}

/* Steps of whole kilos have short numbers, others are written out. */
static void put_edge(const struct shape *s, int64_t edge, struct buf *out)
{
	static const char suffixes[] = "KMGTPE";
	int suffix = -1;

	if (s->step % KILO == 0)
		for (; edge && edge % KILO == 0 && suffix < 5; suffix++)
			edge /= KILO;
	buf_printf(out, "%" PRId64, edge);
	if (suffix >= 0)
		buf_put_u8(out, (uint8_t)suffixes[suffix]);
}

static void lhist_label(const struct shape *s, size_t i, struct buf *out)
{
	bool is_below = i == 0, is_above = i + 1 >= n_buckets(s);

	buf_put_u8(out, is_below ? '(' : '[');
	if (is_below)
		buf_put_cstr(out, "...");
	else
		put_edge(s, is_above ? s->max : lhist_edge(s, i), out);
	buf_put_cstr(out, ", ");
	if (is_above)
		buf_put_cstr(out, "...");
	else
		put_edge(s, lhist_edge(s, i + 1), out);
	buf_put_u8(out, ')');
}

void print_hist(const struct shape *s, struct span value, uint64_t div, struct buf *out)
{
	struct hist_range r = shown_range(s, value, div);
	struct buf label = {0};

	for (size_t i = r.first; !r.is_empty && i <= r.last; i++) {
		uint64_t count = bucket(value, i, div);
		int columns = r.max ? (int)((__uint128_t)count * BAR_COLUMNS / r.max) : 0;

		buf_reset(&label);
		if (s->kind == SHAPE_HIST)
			hist_label(s, i, &label);
		else
			lhist_label(s, i, &label);
		buf_printf(out, "%-16s %7" PRIu64 " |%-*.*s|\n", buf_text(&label), count,
			BAR_COLUMNS, columns, bar);
	}
	buf_release(&label);
}

static void put_bound(const char *name, uint64_t v, bool is_signed, struct buf *out)
{
	buf_printf(out, "\"%s\": ", name);
	print_number((struct print_number){v, is_signed}, out);
	buf_put_cstr(out, ", ");
}

static void put_bounds(const struct shape *s, size_t i, struct buf *out)
{
	bool is_log = s->kind == SHAPE_HIST;

	if (i == 0) {
		put_bound("max", is_log ? UINT64_MAX : (uint64_t)s->min - 1, true, out);
		return;
	}
	if (is_log) {
		put_bound("min", hist_first(s, i), false, out);
		put_bound("max", hist_last(s, i), false, out);
		return;
	}
	if (i + 1 >= n_buckets(s)) {
		put_bound("min", (uint64_t)s->max, true, out);
		return;
	}
	put_bound("min", (uint64_t)lhist_edge(s, i), true, out);
	put_bound("max", (uint64_t)lhist_edge(s, i + 1) - 1, true, out);
}

void print_hist_json(const struct shape *s, struct span value, uint64_t div, struct buf *out)
{
	struct hist_range r = shown_range(s, value, div);

	buf_put_u8(out, '[');
	for (size_t i = r.first; !r.is_empty && i <= r.last; i++) {
		buf_put_cstr(out, i == r.first ? "{" : ", {");
		put_bounds(s, i, out);
		buf_printf(out, "\"count\": %" PRIu64 "}", bucket(value, i, div));
	}
	buf_put_u8(out, ']');
}
