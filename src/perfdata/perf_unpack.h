/* SPDX-License-Identifier: MIT */
/*
 * `perf record -z`: the bodies of all compressed records of a file are one zstd stream, of records that may begin in
 * one body and end in the next.
 */
#ifndef WEIR_PERFDATA_PERF_UNPACK_H
#define WEIR_PERFDATA_PERF_UNPACK_H

#include <stdbool.h>

#include "base/err.h"
#include "base/span.h"

struct perf_unpack;
struct perf_unpack *perf_unpack_new(void);
void perf_unpack_free(struct perf_unpack *u); /* NULL is fine */

/* Calls `each` with every record that is whole by now; stops when that fails. False: what is packed makes no sense. */
bool perf_unpack_add(struct perf_unpack *u, struct span packed,
	bool (*each)(void *ctx, struct span record), void *ctx);
/* Bytes of a record that has not come to its end. */
size_t perf_unpack_left(const struct perf_unpack *u);

#endif
