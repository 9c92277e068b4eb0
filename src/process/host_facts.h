/* SPDX-License-Identifier: MIT */
/* Facts about the machine, as meta entries of a trace. */
#ifndef WEIR_PROCESS_HOST_FACTS_H
#define WEIR_PROCESS_HOST_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/writer.h"

void host_fact_number(struct trace_writer *w, const char *key, uint64_t value);
/* host, os, cpu, n_cpus, page_bytes, start_realtime_ns, start_monotonic_ns, weir_version. */
void host_facts_write(struct trace_writer *w);

/* What is recorded: a command, processes, or all of the machine. */
struct host_targets {
	char *const *command; /* NULL = none */
	const pid_t *pids;
	size_t n_pids;
	bool system_wide;
};
void host_facts_targets(struct trace_writer *w, const struct host_targets *t); /* mode, command or pids */

#endif
