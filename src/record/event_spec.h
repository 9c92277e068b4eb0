/* SPDX-License-Identifier: MIT */
/* The names of -e: what is counted, in which metric and unit. */
#ifndef WEIR_RECORD_EVENT_SPEC_H
#define WEIR_RECORD_EVENT_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define EVENT_SPECS_MAX 8

struct event_spec {
	char name[32];
	uint32_t type; /* PERF_TYPE_* */
	uint64_t config;
	char metric[32]; /* "cpu" for the clocks, else the event's name */
	const char *unit;
	bool every;   /* a sample at each occurrence instead of a frequency */
	bool is_wait; /* weighed by the time until the thread runs again */
};

/* Parses "cpu-clock,page-faults,r01c2"; at most EVENT_SPECS_MAX. "wall" stands for two: the CPU
 * clock, and the waiting between a thread's switches. */
int event_specs_parse(const char *list, struct event_spec *out, size_t *n, struct err *err);
/* The known names, for help and doctor. */
const struct event_spec *event_specs_known(size_t *n);

#endif
