/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CMD_REPORT_SUMMARY_H
#define WEIR_CMD_REPORT_SUMMARY_H

#include "cmd/report/report.h"

/* Functions (not threads) with a base, largest first; free(*rows), which index flat->rows. */
size_t summary_top_functions(
	const struct report *report, const struct flat *flat, size_t **rows, size_t max);
/* A path ends in a node. Weights of all nodes add up to the total: where samples hang below an
 * event their part is not the event's. */
struct summary_path {
	uint32_t node;
	uint64_t weight;
};
/* Nodes below a root with the largest weight; `paths` has room for `max`. */
size_t summary_top_nodes(const struct report *report, struct summary_path *paths, size_t max);

/* What a program that counts itself counted and what it did not, and why; nothing for others. */
void summary_counts(const struct report *report);
void summary_json_counts(struct json *j, const struct report *report);

/* Two or three commands that are worth trying next, given what the trace shows. */
void summary_advice(const struct report *report, const struct flat_row *hottest);

#endif
