/* SPDX-License-Identifier: MIT */
/*
 * Lays .debug_info out anew when numbers in it need more bytes. Entries behind them move, so
 * offsets of entries change; and those that are LEB128 may then need more bytes themselves. Sizes
 * only grow, so going over all numbers until none does finds the layout.
 */
#include "base/order.h"
#include "insert/debug_stage.h"

#include <stdlib.h>

#include "base/search.h"
#include "dwarf/attr_form.h"

#define PASSES_MAX 32 /* real sections take two or three */

ORDER_BY(order_numbers, struct info_number, at)

static size_t leb_bytes(uint64_t value, bool is_signed)
{
	size_t n = 1;

	while (value >> (is_signed ? 6 : 7)) {
		value >>= 7;
		n++;
	}
	return n;
}

/* grown[i]: by how much the numbers in front of the i-th have grown. */
struct growth {
	struct info_number *numbers;
	size_t n, *grown;
};

/* How far what was at an offset has moved. */
static size_t shift_at(const struct growth *g, uint64_t offset)
{
	return g->grown[SEARCH(0, g->n, i, g->numbers[i].at < offset)];
}

static uint64_t value_now(const struct growth *g, const struct info_number *number)
{
	if (!number->is_ref)
		return number->value;
	return number->value + shift_at(g, number->unit + number->value) -
	       shift_at(g, number->unit);
}

/* Gives each number the bytes it needs; true when all had them. */
static bool is_settled(struct growth *g)
{
	bool is = true;

	for (size_t i = 0; i < g->n; i++)
		g->grown[i + 1] = g->grown[i] + g->numbers[i].n_now - g->numbers[i].n;
	for (size_t i = 0; i < g->n; i++) {
		struct info_number *number = &g->numbers[i];
		bool is_leb =
			form_fixed_bytes(form_how(number->form, (struct form_sizes){8, 4, 5})) < 0;
		size_t need = leb_bytes(value_now(g, number), number->form == FORM_SDATA);

		if (is_leb && need > number->n_now) {
			number->n_now = need;
			is = false;
		}
	}
	return is;
}

static bool put_number(
	struct debug_stage *s, const struct growth *g, const struct info_number *number)
{
	uint64_t value = value_now(g, number);
	size_t at = s->out.n;

	for (size_t i = 0; i < number->n_now; i++)
		buf_put_u8(&s->out, 0);
	if (form_fixed_bytes(form_how(number->form, (struct form_sizes){8, 4, 5})) >= 0)
		return stage_put_number(s, at, (int)number->n_now, value);
	stage_put_leb(s, at, number->n_now, value);
	return true;
}

/* Writes all units; s->in is the section as changed in place. */
static bool put_units(struct debug_mover *d, struct debug_stage *s, const struct growth *g)
{
	struct cursor c = cursor_of(s->in);
	size_t next = 0;
	bool fits = true;

	while (cursor_left(&c) && fits) {
		size_t at = (size_t)(c.p - s->in.p), end, out = s->out.n;
		uint64_t length;
		uint8_t offset_bytes;

		debug_unit_length(&c, &length, &offset_bytes);
		cursor_skip(&c, length);
		end = (size_t)(c.p - s->in.p);
		for (; next < g->n && g->numbers[next].at < end; next++) {
			const struct info_number *number = &g->numbers[next];

			relay_copy(d, s, at, number->at);
			fits &= put_number(s, g, number);
			at = number->at + number->n;
		}
		relay_copy(d, s, at, end);
		fits &= relay_put_length(s, out, offset_bytes);
	}
	return fits;
}

int debug_info_grow(struct debug_mover *d, struct debug_stage *s, struct info_number *numbers,
	size_t n, struct err *err)
{
	struct growth g = {numbers, n, mem_calloc(n + 1, sizeof(*g.grown))};
	struct span in = s->in;
	struct buf edited = s->out;
	bool fits = false;

	qsort(numbers, n, sizeof(*numbers), order_numbers);
	for (size_t i = 0; i < n; i++)
		numbers[i].n_now = numbers[i].n;
	for (int pass = 0; pass < PASSES_MAX && !fits; pass++)
		fits = is_settled(&g);
	s->out = (struct buf){0};
	s->in = buf_span(&edited);
	fits = fits && put_units(d, s, &g);
	s->in = in;
	buf_release(&edited);
	free(g.grown);
	return fits ? 0 : debug_fail(s, 0, err, "a unit has become too large");
}
