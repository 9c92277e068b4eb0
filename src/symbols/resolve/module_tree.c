/* SPDX-License-Identifier: MIT */
#include "symbols/resolve/module_tree.h"

static struct module_reach grow(
	const struct trace_module_span *rows, struct module_reach *reaches, size_t lo, size_t hi)
{
	size_t mid = lo + (hi - lo) / 2;
	struct module_reach all, part;

	if (lo == hi)
		return (struct module_reach){0, UINT64_MAX, 0};
	all = (struct module_reach){rows[mid].end, rows[mid].from, rows[mid].to};
	for (int side = 0; side < 2; side++) {
		part = side ? grow(rows, reaches, mid + 1, hi) : grow(rows, reaches, lo, mid);
		all.end = part.end > all.end ? part.end : all.end;
		all.from = part.from < all.from ? part.from : all.from;
		all.to = part.to > all.to ? part.to : all.to;
	}
	reaches[mid] = all;
	return all;
}

void module_tree_grow(const struct trace_module_span *rows, struct module_reach *reaches, size_t n)
{
	grow(rows, reaches, 0, n);
}

struct search {
	const struct trace_module_span *rows;
	const struct module_reach *reaches;
	const struct module_tree_query *query;
	const struct trace_module_span *best; /* the one that begins last */
};

static void search_stretch(struct search *s, size_t lo, size_t hi)
{
	size_t mid = lo + (hi - lo) / 2;
	const struct module_tree_query *q = s->query;
	const struct trace_module_span *row = &s->rows[mid];
	const struct module_reach *reach = &s->reaches[mid];

	if (lo == hi || reach->end <= q->addr || reach->from >= q->to || reach->to <= q->from)
		return;
	search_stretch(s, lo, mid);
	if (row->start > q->addr)
		return; /* and so do all behind it */
	if (row->end > q->addr && row->from < q->to && row->to > q->from &&
		(!s->best || row->from >= s->best->from))
		s->best = row;
	search_stretch(s, mid + 1, hi);
}

const struct trace_module_span *module_tree_find(const struct trace_module_span *rows,
	const struct module_reach *reaches, size_t n, const struct module_tree_query *query)
{
	struct search s = {rows, reaches, query, NULL};

	search_stretch(&s, 0, n);
	return s.best;
}
