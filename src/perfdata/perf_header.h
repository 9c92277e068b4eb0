/* SPDX-License-Identifier: MIT */
/* The header of a perf.data, and what of the file is read before its records: events, facts. */
#ifndef WEIR_PERFDATA_PERF_HEADER_H
#define WEIR_PERFDATA_PERF_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "formats/foreign/foreign_input.h"
#include "perfdata/perf_events.h"
#include "perfdata/perf_features.h"

struct perf_header {
	uint64_t end_at; /* of the records; UINT64_MAX: where the input ends */
	bool is_pipe;	 /* events and facts are in records */
	bool is_unfinished; /* perf was killed: there are no facts, and the records end where the file does */
};
/* The input is at the first record then. */
int perf_header_read(struct perf_header *h, struct foreign_input *in, struct perf_events *events,
	struct perf_features *features, struct err *err);

#endif
