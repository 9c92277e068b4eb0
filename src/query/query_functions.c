/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/mem.h"
#include "query/query.h"

static const struct query_column columns[] = {
	{"calls", offsetof(struct flat_row, calls)},
	{"base", offsetof(struct flat_row, base)},
	{"cum", offsetof(struct flat_row, cum)},
	{"cum2", offsetof(struct flat_row, cum2)},
	{"elapsed", offsetof(struct flat_row, elapsed)},
	{"min", offsetof(struct flat_row, min)},
	{"max", offsetof(struct flat_row, max)},
	{"samples", offsetof(struct flat_row, samples)},
	{0},
};

struct order {
	const struct calltree *tree;
	const struct flat *flat;
	const char *sort;
};

static struct query_key key_of(void *context, size_t row)
{
	const struct order *o = context;
	const struct flat_row *r = &o->flat->rows[row];
	const struct calltree_routine *routine = calltree_get_routine(o->tree, r->routine);

	if (!strcmp(o->sort, "name"))
		return (struct query_key){.text = routine->name};
	if (!strcmp(o->sort, "image"))
		return (struct query_key){.text = routine->image};
	return (struct query_key){.number = query_number(columns, o->sort, r)};
}

static size_t select_rows(const struct query *q, struct order *o, bool is_top, size_t **rows)
{
	size_t n = 0;

	*rows = mem_calloc(o->flat->n_rows + 1, sizeof(**rows));
	for (size_t i = 0; i < o->flat->n_rows; i++) {
		const struct flat_row *row = &o->flat->rows[i];
		const struct calltree_routine *r = calltree_get_routine(o->tree, row->routine);

		if ((!is_top || (row->base && !r->is_root)) && query_matches(q, r->name))
			(*rows)[n++] = i;
	}
	if (o->sort)
		query_order(*rows, n, key_of, o);
	return query_limit(q, n);
}

size_t query_functions(
	const struct query *q, const struct calltree *tree, const struct flat *flat, size_t **rows)
{
	return select_rows(q, &(struct order){tree, flat, q->sort}, false, rows);
}

size_t query_top_functions(const struct query *q, const struct calltree *tree,
	const struct flat *flat, size_t max, size_t **rows)
{
	size_t n = select_rows(q, &(struct order){tree, flat, "base"}, true, rows);

	return q->limit || n < max ? n : max;
}
