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

/*
 * The heaviest places of a program. A place is a function with its callers; what does not make
 * another place for somebody who reads the program is left out: the thread, the start of threads and
 * programs (_start, clone, ...), and how often a recursion went round (A > B > A > C is the place A > C).
 * Weights of all places add up to what is below the roots: where samples hang below an event their part
 * is not the event's.
 */
struct query_path {
	uint64_t weight;
	size_t n;
	uint32_t *routines; /* outermost first */
	bool *is_recursive; /* by routine: it was on the path again */
};
struct query_paths {
	struct query_path *v; /* largest weight first */
	size_t n;
};
/* At most `max`. With `by_waiter` what a thread waits is that of the function that asked the kernel
 * (query_waiter). */
void query_paths_init(
	struct query_paths *paths, const struct calltree *tree, bool by_waiter, size_t max);
void query_paths_release(struct query_paths *paths);

/* Whether the figures of a profile are times with those of waiting, as samples know them. */
bool query_has_waits(const struct profile *p);
/* The node itself; of one in which the kernel leaves the CPU to others, the function of the program
 * that waits by it, or what comes nearest to it in a thread of the kernel. */
uint32_t query_waiter(const struct calltree *tree, uint32_t node);
/* Base and samples of such nodes become those of the functions that wait. */
void query_charge_waiters(const struct calltree *tree, struct flat *flat);

/* Ids of threads; most used first. */
size_t query_threads(const struct query *q, const struct profile *p, size_t **ids);
/* What the thread used of the metric. */
uint64_t query_thread_cum(const struct profile *p, const struct profile_thread *thread);

#endif
