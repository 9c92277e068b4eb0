/* SPDX-License-Identifier: MIT */
/* Facts about the machine and the recording, as meta entries of the trace. */
#ifndef WEIR_RECORD_HOST_FACTS_H
#define WEIR_RECORD_HOST_FACTS_H

#include <stdint.h>

#include "record/perf_set.h"
#include "record/recorder.h"
#include "trace/writer.h"

void host_fact_number(struct trace_writer *w, const char *key, uint64_t value);
/* host, os, cpu, n_cpus, page_bytes, start_realtime_ns, start_monotonic_ns, weir_version. */
void host_facts_write(struct trace_writer *w);
/* command or pids, mode, event, frequency, clock, stack_bytes, notes. */
void recorder_facts_write(
	struct trace_writer *w, const struct recorder_options *options, const struct perf_set *set);

#endif
