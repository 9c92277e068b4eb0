/* SPDX-License-Identifier: MIT */
/* What is known of a perf.data, as the meta entries that traces of our own have. */
#ifndef WEIR_PERFDATA_PERF_FACTS_H
#define WEIR_PERFDATA_PERF_FACTS_H

#include "perfdata/perf_events.h"
#include "perfdata/perf_features.h"
#include "record/session.h"
#include "trace/writer.h"

void perf_facts_write(struct trace_writer *w, const struct perf_features *f,
	const struct perf_events *events, const struct session_counts *counts);

#endif
