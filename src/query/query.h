/* SPDX-License-Identifier: MIT */
/*
 * Questions to a profile, as reports, exports and viewers ask them: which functions, nodes and
 * threads are wanted, and in which order. The metric and the times are chosen earlier, when the
 * profile is built (struct build_options).
 */
#ifndef WEIR_QUERY_QUERY_H
#define WEIR_QUERY_QUERY_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calltree/build.h"
#include "calltree/flat.h"

struct query {
	const regex_t *filter; /* on names; NULL = all */
	const char *sort;      /* a column of those below, NULL = the order that is usual */
	uint64_t limit;	       /* rows; 0 = all */
};

/* Columns that can be sorted by, separated by blanks. */
#define QUERY_FUNCTION_COLUMNS "calls base cum cum2 elapsed min max samples name image"
#define QUERY_NODE_COLUMNS     "calls base cum elapsed name"
#define QUERY_THREAD_COLUMNS   "base samples events switches pid tid name"

/* profile_build; unless a metric is asked for it is samples, when there are any and no events. */
int query_count_samples(struct profile **out, const struct trace_reader *r,
	const struct build_options *options, struct err *err);

bool query_matches(const struct query *q, const char *name);
/* How many of n rows are shown. */
size_t query_limit(const struct query *q, size_t n);

/* What a row is put in order by: text from A on, then the greater number. */
struct query_key {
	const char *text; /* NULL: none */
	uint64_t number;
	bool is_reverse; /* text from Z on */
};
/* Rows that are equal stay as they are, so that the least important order comes first. */
void query_order(size_t *rows, size_t n, struct query_key (*key_of)(void *context, size_t row),
	void *context);
/* A column of numbers in a struct; the last one of a list has no name. */
struct query_column {
	const char *name;
	size_t offset;
};
uint64_t query_number(const struct query_column *columns, const char *name, const void *row);

/* Rows of the flat model; by cum, as the model has them. To be freed, as all lists below. */
size_t query_functions(
	const struct query *q, const struct calltree *tree, const struct flat *flat, size_t **rows);
/* Functions (not threads) with a base, largest first; `max` without a limit. */
size_t query_top_functions(const struct query *q, const struct calltree *tree,
	const struct flat *flat, size_t max, size_t **rows);

/* The tree, depth first; a node is there when it or something below it matches. Siblings are in
 * order of first sight. */
size_t query_nodes(const struct query *q, const struct calltree *tree, uint32_t **nodes);
/* A path ends in a node. Weights of all nodes add up to the total: where samples hang below an
 * event their part is not the event's. */
struct query_path {
	uint32_t node;
	uint64_t weight;
};
/* Nodes below a root with the largest weight; `paths` has room for `max`. */
size_t query_top_paths(const struct calltree *tree, struct query_path *paths, size_t max);

/* Ids of threads; most used first. */
size_t query_threads(const struct query *q, const struct profile *p, size_t **ids);
/* What the thread used of the metric. */
uint64_t query_thread_cum(const struct profile *p, const struct profile_thread *thread);

#endif
