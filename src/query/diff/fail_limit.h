/* SPDX-License-Identifier: MIT */
/*
 * When a comparison is to fail: `+5%` (some function is surely more than 5 % dearer, or new and surely more than 5 % of all
 * that there was), `NAME:+5%` (this row), `total:+2%`.
 */
#ifndef WEIR_QUERY_DIFF_FAIL_LIMIT_H
#define WEIR_QUERY_DIFF_FAIL_LIMIT_H

#include "query/diff/run_diff.h"

#define FAIL_PERCENT_MAX 1000000.0

struct fail_limit {
	const char *name; /* of the row, with name_n bytes, borrowed; NULL: any */
	size_t name_n;
	double percent;
};

int fail_limit_parse(struct fail_limit *limit, const char *text, struct err *err);
/* The rows that are surely over it, the total among them: their numbers, to be freed; SIZE_MAX is the total. Fails when
 * no row has the name. */
int fail_limit_find(const struct fail_limit *limit, const struct run_diff *d, size_t **rows,
	size_t *n, struct err *err);

#endif
