/* SPDX-License-Identifier: MIT */
/*
 * A search tree over rows of mappings that are sorted by address: row `mid` of a stretch is its root,
 * the halves on both sides are its subtrees, and beside each root stands how far its stretch reaches
 * in address and in time.
 */
#ifndef WEIR_SYMBOLS_RESOLVE_MODULE_TREE_H
#define WEIR_SYMBOLS_RESOLVE_MODULE_TREE_H

#include <stddef.h>

#include "trace/defs.h"

/* Of a stretch of rows. */
struct module_reach {
	uint64_t end;	   /* the highest */
	uint64_t from, to; /* the earliest, the latest */
};

/* Fills `reaches`, which stands beside the rows. */
void module_tree_grow(const struct trace_module_span *rows, struct module_reach *reaches, size_t n);

struct module_tree_query {
	uint64_t addr;
	uint64_t from, to; /* rows that begin before `to` and end after `from` */
};
/* The row at the address that began last among those that were there; NULL when there is none.
 * O(log n), more when one address had many mappings. */
const struct trace_module_span *module_tree_find(const struct trace_module_span *rows,
	const struct module_reach *reaches, size_t n, const struct module_tree_query *query);

#endif
