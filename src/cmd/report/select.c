/* SPDX-License-Identifier: MIT */
/* --filter, --sort and --limit over the flat model; arcs use it too. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/report/report.h"

const char *const flat_columns[] = {
	"calls", "base", "cum", "cum2", "elapsed", "min", "max", "samples", "name", "image", NULL};

bool report_name_matches(const struct report *report, const char *name)
{
	const regex_t *filter = report->options->filter;

	return !filter || regexec(filter, name, 0, NULL, 0) == 0;
}

struct order {
	const struct flat *flat;
	const struct calltree *tree;
	const char *column;
};

static uint64_t number_of(const struct flat_row *row, const char *column)
{
	if (!strcmp(column, "calls"))
		return row->calls;
	if (!strcmp(column, "base"))
		return row->base;
	if (!strcmp(column, "cum"))
		return row->cum;
	if (!strcmp(column, "cum2"))
		return row->cum2;
	if (!strcmp(column, "elapsed"))
		return row->elapsed;
	if (!strcmp(column, "min"))
		return row->has_range ? row->min : 0;
	if (!strcmp(column, "max"))
		return row->has_range ? row->max : 0;
	return row->samples;
}

/* Texts from A on, numbers from the largest on, ties as they were. */
static int compare(const void *a, const void *b, void *context)
{
	const struct order *order = context;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	const struct flat_row *p = &order->flat->rows[x], *q = &order->flat->rows[y];
	const struct calltree_routine *r = calltree_get_routine(order->tree, p->routine);
	const struct calltree_routine *s = calltree_get_routine(order->tree, q->routine);
	int by_text = 0;

	if (!strcmp(order->column, "name"))
		by_text = strcmp(r->name, s->name);
	else if (!strcmp(order->column, "image"))
		by_text = strcmp(r->image, s->image);
	else if (number_of(p, order->column) != number_of(q, order->column))
		return number_of(p, order->column) > number_of(q, order->column) ? -1 : 1;
	if (by_text)
		return by_text;
	return x < y ? -1 : x > y;
}

size_t report_select_flat(const struct report *report, const struct flat *flat, size_t **rows)
{
	const struct report_options *o = report->options;
	struct order order = {flat, report->profile->tree, o->sort};
	size_t n = 0;

	*rows = mem_calloc(flat->n_rows + 1, sizeof(**rows));
	for (size_t i = 0; i < flat->n_rows; i++)
		if (report_name_matches(
			    report, calltree_get_routine(order.tree, flat->rows[i].routine)->name))
			(*rows)[n++] = i;
	if (o->sort && n)
		qsort_r(*rows, n, sizeof(**rows), compare, &order);
	return o->limit && o->limit < n ? o->limit : n;
}
