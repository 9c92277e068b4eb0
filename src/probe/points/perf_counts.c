/* SPDX-License-Identifier: MIT */
#include "probe/points/perf_counts.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>

const struct perf_count perf_counts[] = {
	{"alignment-faults", NULL, false, PERF_COUNT_SW_ALIGNMENT_FAULTS, 1},
	{"bpf-output", NULL, false, PERF_COUNT_SW_BPF_OUTPUT, 1},
	{"context-switches", "cs", false, PERF_COUNT_SW_CONTEXT_SWITCHES, 1000},
	{"cpu-clock", "cpu", false, PERF_COUNT_SW_CPU_CLOCK, 1000000},
	{"cpu-migrations", NULL, false, PERF_COUNT_SW_CPU_MIGRATIONS, 1},
	{"dummy", NULL, false, PERF_COUNT_SW_DUMMY, 1},
	{"emulation-faults", NULL, false, PERF_COUNT_SW_EMULATION_FAULTS, 1},
	{"major-faults", NULL, false, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1},
	{"minor-faults", NULL, false, PERF_COUNT_SW_PAGE_FAULTS_MIN, 100},
	{"page-faults", "faults", false, PERF_COUNT_SW_PAGE_FAULTS, 100},
	{"task-clock", NULL, false, PERF_COUNT_SW_TASK_CLOCK, 1000000},
	{"backend-stalls", NULL, true, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, 1000000},
	{"branch-instructions", "branches", true, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 100000},
	{"branch-misses", NULL, true, PERF_COUNT_HW_BRANCH_MISSES, 100000},
	{"bus-cycles", NULL, true, PERF_COUNT_HW_BUS_CYCLES, 100000},
	{"cache-misses", NULL, true, PERF_COUNT_HW_CACHE_MISSES, 1000000},
	{"cache-references", NULL, true, PERF_COUNT_HW_CACHE_REFERENCES, 1000000},
	{"cpu-cycles", "cycles", true, PERF_COUNT_HW_CPU_CYCLES, 1000000},
	{"frontend-stalls", NULL, true, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, 1000000},
	{"instructions", NULL, true, PERF_COUNT_HW_INSTRUCTIONS, 1000000},
	{"ref-cycles", NULL, true, PERF_COUNT_HW_REF_CPU_CYCLES, 1000000},
	{NULL, NULL, false, 0, 0},
};

const struct perf_count *perf_count_find(bool is_hardware, const char *name)
{
	for (const struct perf_count *c = perf_counts; c->name; c++)
		if (c->is_hardware == is_hardware &&
			(strcmp(c->name, name) == 0 || (c->alias && strcmp(c->alias, name) == 0)))
			return c;
	return NULL;
}
