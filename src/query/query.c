/* SPDX-License-Identifier: MIT */
#include "query/query.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"

int query_count_samples(struct profile **out, const struct trace_reader *r,
	const struct build_options *options, struct err *err)
{
	struct build_options of_samples = *options;
	struct profile *by_samples;
	int rc = profile_build(out, r, options, err);

	if (rc < 0 || options->metric || !(*out)->n_samples || calltree_has_events((*out)->tree))
		return rc;
	of_samples.metric = "samples";
	if (profile_build(&by_samples, r, &of_samples, NULL) == 0) {
		profile_free(*out);
		*out = by_samples;
	}
	return 0;
}

bool query_matches(const struct query *q, const char *name)
{
	return !q->filter || regexec(q->filter, name, 0, NULL, 0) == 0;
}

size_t query_limit(const struct query *q, size_t n)
{
	return q->limit && q->limit < n ? (size_t)q->limit : n;
}

struct ordered_row {
	struct query_key key;
	size_t row, place; /* before */
};

static int compare_rows(const void *a, const void *b)
{
	const struct ordered_row *x = a, *y = b;
	int by_text = x->key.text ? strcmp(x->key.text, y->key.text) : 0;

	if (by_text)
		return x->key.is_reverse ? -by_text : by_text;
	return ORDER(y->key.number, x->key.number) ?: ORDER(x->place, y->place);
}

void query_order(size_t *rows, size_t n, struct query_key (*key_of)(void *context, size_t row),
	void *context)
{
	struct ordered_row *order = mem_calloc(n + 1, sizeof(*order));

	for (size_t i = 0; i < n; i++)
		order[i] = (struct ordered_row){key_of(context, rows[i]), rows[i], i};
	if (n)
		qsort(order, n, sizeof(*order), compare_rows);
	for (size_t i = 0; i < n; i++)
		rows[i] = order[i].row;
	free(order);
}

uint64_t query_number(const struct query_column *columns, const char *name, const void *row)
{
	while (columns->name && strcmp(columns->name, name))
		columns++;
	return columns->name ? *(const uint64_t *)((const char *)row + columns->offset) : 0;
}
