/* SPDX-License-Identifier: MIT */
/* Any bytes as the report of an insertion, as the cache keeps it. */
#include <stdlib.h>
#include <string.h>

#include "insert/insert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct insert_report report = {0}, again = {0};
	struct insert_totals totals = {0};
	struct buf one = {0}, two = {0};

	if (insert_report_get(&report, (struct span){data, n}, NULL) < 0) {
		if (report.functions.n || report.notes.n)
			abort();
		return 0;
	}
	insert_totals_add(&totals, &report);
	if (totals.n_functions != report.functions.n)
		abort();
	insert_report_put(&report, &one);
	if (insert_report_get(&again, buf_span(&one), NULL) < 0)
		abort();
	insert_report_put(&again, &two);
	if (one.n != two.n || memcmp(one.p, two.p, one.n))
		abort();
	insert_report_release(&report);
	insert_report_release(&again);
	buf_release(&one);
	buf_release(&two);
	return 0;
}
