/* SPDX-License-Identifier: MIT */
/*
 * Time series, a row for each interval, the newest at the bottom:
 *
 *                -2                                                  4
 *   hh:mm:ss.ms  |___________________________________________________|
 *   10:39:49.300 *                .                                  | -2
 *   10:39:49.400 |                .                                  | -
 *   10:39:49.500 |                .                                  * 4
 *                v___________________________________________________v
 *                -2                                                  4
 *
 * The dots are at 0 where that is between the ends. Series that are printed together end together;
 * each begins with its first interval.
 */
#include <inttypes.h>
#include <string.h>

#include "probe/print/print_internal.h"

#define TIME_COLUMNS 13 /* "hh:mm:ss.ms  " */
#define LAST_COLUMN  52 /* of the plot, from 0 */

static size_t n_slots(const struct shape *s, struct span value)
{
	size_t there = value.n / sizeof(struct tseries_slot);

	return s->max > 0 && (uint64_t)s->max < there ? (size_t)s->max : there;
}

static struct tseries_slot slot_at(struct span value, size_t i)
{
	uint64_t at = i * sizeof(struct tseries_slot);

	return (struct tseries_slot){print_word(value, at), print_word(value, at + 8),
		print_word(value, at + 16), print_word(value, at + 24)};
}

/* The slot of an interval; false when nothing was seen in it. */
static bool find_slot(
	const struct shape *s, struct span value, uint64_t interval, struct tseries_slot *out)
{
	size_t n = n_slots(s, value);

	if (!n)
		return false;
	*out = slot_at(value, (size_t)(interval % n));
	return out->n && out->interval == interval;
}

bool print_series_last(const struct shape *s, struct span value, uint64_t *last)
{
	bool has_some = false;

	for (size_t i = 0; i < n_slots(s, value); i++) {
		struct tseries_slot slot = slot_at(value, i);

		if (!slot.n || (has_some && slot.interval <= *last))
			continue;
		*last = slot.interval;
		has_some = true;
	}
	return has_some;
}

/* The first of the intervals up to `last` that the series still has; false when it has none. */
static bool find_first(const struct shape *s, struct span value, uint64_t last, uint64_t *first)
{
	size_t n = n_slots(s, value);
	bool has_some = false;

	for (size_t i = 0; i < n; i++) {
		struct tseries_slot slot = slot_at(value, i);

		if (!slot.n || slot.interval > last || last - slot.interval >= n ||
			(has_some && slot.interval >= *first))
			continue;
		*first = slot.interval;
		has_some = true;
	}
	return has_some;
}

static struct print_number number_of(
	const struct shape *s, const struct tseries_slot *slot, uint64_t div)
{
	struct print_number n = {slot->value, s->is_signed};

	if (s->min == TSERIES_AVG)
		n = print_number_divided(n, slot->n);
	return print_number_divided(n, div);
}

/* --- text ------------------------------------------------------------------------------------- */

struct plot {
	struct print_number low, high;
};

static struct plot plot_of(
	const struct shape *s, struct span value, uint64_t first, uint64_t last, uint64_t div)
{
	struct plot plot = {{0, s->is_signed}, {0, s->is_signed}};
	struct tseries_slot slot;
	bool has_some = false;

	for (uint64_t i = first; i - first <= last - first; i++) {
		struct print_number v;

		if (!find_slot(s, value, i, &slot))
			continue;
		v = number_of(s, &slot, div);
		if (!has_some || print_number_compare(v, plot.low) < 0)
			plot.low = v;
		if (!has_some || print_number_compare(v, plot.high) > 0)
			plot.high = v;
		has_some = true;
	}
	if (plot.low.v == plot.high.v) { /* a constant is in the middle */
		bool is_least = plot.low.v == (s->is_signed ? (uint64_t)INT64_MIN : 0);

		plot.low.v -= !is_least;
		plot.high.v += plot.high.v != (s->is_signed ? (uint64_t)INT64_MAX : UINT64_MAX);
	}
	return plot;
}

static unsigned column_of(const struct plot *plot, struct print_number v)
{
	uint64_t range = plot->high.v - plot->low.v;

	return range ? (unsigned)((__uint128_t)(v.v - plot->low.v) * LAST_COLUMN / range) : 0;
}

static void put_ends(const struct plot *plot, struct buf *out)
{
	struct buf low = {0}, high = {0};

	print_number(plot->low, &low);
	print_number(plot->high, &high);
	buf_printf(out, "%*s%s%*s%s\n", TIME_COLUMNS, "", buf_text(&low),
		low.n + high.n < LAST_COLUMN ? (int)(LAST_COLUMN + 1 - low.n - high.n) : 1, "",
		buf_text(&high));
	buf_release(&low);
	buf_release(&high);
}

static void put_time(const char *format, bool is_local, uint64_t ns, struct buf *out)
{
	time_t seconds = (time_t)(ns / 1000000000u);
	char text[64];
	struct tm tm;

	if (is_local ? localtime_r(&seconds, &tm) : gmtime_r(&seconds, &tm))
		buf_put(out, text, strftime(text, sizeof(text), format, &tm));
}

static void put_row(const struct plot *plot, bool is_there, struct print_number v, bool has_zero,
	struct buf *out)
{
	char columns[LAST_COLUMN + 2];
	struct print_number zero = {0, v.is_signed};

	memset(columns, ' ', LAST_COLUMN);
	columns[0] = columns[LAST_COLUMN] = '|';
	columns[LAST_COLUMN + 1] = '\0';
	if (has_zero)
		columns[column_of(plot, zero)] = '.';
	if (is_there)
		columns[column_of(plot, v)] = '*';
	buf_put_cstr(out, columns);
	buf_put_u8(out, ' ');
	if (is_there)
		print_number(v, out);
	else
		buf_put_u8(out, '-');
	buf_put_u8(out, '\n');
}

static void put_line(char end, struct buf *out)
{
	buf_put_u8(out, (uint8_t)end);
	for (unsigned i = 1; i < LAST_COLUMN; i++)
		buf_put_u8(out, '_');
	buf_printf(out, "%c\n", end);
}

void print_series(
	const struct shape *s, struct span value, uint64_t last, uint64_t div, struct buf *out)
{
	uint64_t first = 0;
	struct plot plot;
	bool has_zero;

	if (!find_first(s, value, last, &first))
		return;
	plot = plot_of(s, value, first, last, div);
	has_zero = s->is_signed && (int64_t)plot.low.v < 0 && (int64_t)plot.high.v > 0;
	put_ends(&plot, out);
	buf_printf(out, "%-*s", TIME_COLUMNS, "hh:mm:ss.ms");
	put_line('|', out);
	for (uint64_t i = first; i - first <= last - first; i++) {
		uint64_t ns = i * (uint64_t)s->step;
		struct tseries_slot slot = {0};
		bool is_there = find_slot(s, value, i, &slot);

		put_time("%H:%M:%S", true, ns, out);
		buf_printf(out, ".%03u ", (unsigned)(ns / 1000000u % 1000u));
		put_row(&plot, is_there, number_of(s, &slot, div), has_zero, out);
	}
	buf_printf(out, "%*s", TIME_COLUMNS, "");
	put_line('v', out);
	put_ends(&plot, out);
}

/* --- JSON ------------------------------------------------------------------------------------- */

void print_series_json(const struct shape *s, struct span value, uint64_t div, struct buf *out)
{
	uint64_t first = 0, last = 0;
	bool has_some = false;

	buf_put_u8(out, '[');
	if (!print_series_last(s, value, &last) || !find_first(s, value, last, &first))
		last = first - 1; /* none */
	for (uint64_t i = first; i - first < last - first + 1; i++) {
		uint64_t ns = i * (uint64_t)s->step;
		struct tseries_slot slot;

		if (!find_slot(s, value, i, &slot))
			continue;
		buf_put_cstr(
			out, has_some ? ", {\"interval_start\": \"" : "{\"interval_start\": \"");
		put_time("%Y-%m-%d %H:%M:%S", false, ns, out);
		buf_printf(out, ".%09u\", \"value\": ", (unsigned)(ns % 1000000000u));
		print_number(number_of(s, &slot, div), out);
		buf_put_u8(out, '}');
		has_some = true;
	}
	buf_put_u8(out, ']');
}
