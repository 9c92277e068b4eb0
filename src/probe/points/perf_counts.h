/* SPDX-License-Identifier: MIT */
/* The names of software and hardware events that a trace point may count. */
#ifndef WEIR_PROBE_POINTS_PERF_COUNTS_H
#define WEIR_PROBE_POINTS_PERF_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

struct perf_count {
	const char *name;
	const char *alias; /* or NULL */
	bool is_hardware;
	uint64_t config; /* PERF_COUNT_SW_*, PERF_COUNT_HW_* */
	uint64_t count;	 /* a clause runs every so many when the script does not say */
};
extern const struct perf_count perf_counts[]; /* up to a NULL name */

/* By name or alias; NULL when there is none. */
const struct perf_count *perf_count_find(bool is_hardware, const char *name);

#endif
