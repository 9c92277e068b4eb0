/* SPDX-License-Identifier: MIT */
/* Reports of insertions: as bytes, for the cache, and added up. */
#ifndef WEIR_INSERT_INSERT_REPORT_H
#define WEIR_INSERT_INSERT_REPORT_H

#include "base/buf.h"
#include "insert/insert.h"

void insert_report_put(const struct insert_report *r, struct buf *out);
/* `r` must be empty. Fails when the bytes are not what insert_report_put writes. */
int insert_report_get(struct insert_report *r, struct span bytes, struct err *err);

/* Functions by what became of them. */
struct insert_totals {
	uint64_t n_functions, n_inserted;
	uint64_t n_compiled, n_compiled_inserted; /* of them, those made by a compiler */
	uint64_t by_reason[INSERT_N_REASONS];
};
void insert_totals_add(struct insert_totals *t, const struct insert_report *r);

#endif
