/* SPDX-License-Identifier: MIT */
#include "record/event_spec.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct event_spec known[] = {
	{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu", "ns", false, false},
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, "cpu", "ns", false, false},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "page-faults", "1", true,
		false},
	{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, "major-faults", "1",
		true, false},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, "context-switches",
		"1", true, false},
	{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, "cpu-migrations", "1",
		true, false},
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles", "1", false, false},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions", "1", false,
		false},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, "cache-misses", "1", false,
		false},
	{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, "cache-references",
		"1", false, false},
	{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, "branch-misses", "1",
		false, false},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "branches", "1", false,
		false},
};

const struct event_spec *event_specs_known(size_t *n)
{
	*n = sizeof(known) / sizeof(known[0]);
	return known;
}

static const struct event_spec waiting = {
	"wait", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, "wait", "ns", true, true};

/* rHEX: a raw code of this CPU's counters. */
static bool parse_raw(const char *name, struct event_spec *out)
{
	char *end;
	uint64_t config;

	if (name[0] != 'r' || !name[1] ||
		strspn(name + 1, "0123456789abcdefABCDEF") != strlen(name + 1))
		return false;
	errno = 0;
	config = strtoull(name + 1, &end, 16);
	if (errno || *end)
		return false;
	*out = (struct event_spec){.type = PERF_TYPE_RAW, .config = config, .unit = "1"};
	snprintf(out->name, sizeof(out->name), "%s", name);
	snprintf(out->metric, sizeof(out->metric), "%s", name);
	return true;
}

static bool parse_one(const char *name, struct event_spec *out)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strcmp(known[i].name, name)) {
			*out = known[i];
			return true;
		}
	}
	return parse_raw(name, out);
}

/* Two events that feed one metric would count everything twice. */
static int check_metrics(const struct event_spec *specs, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			if (!strcmp(specs[i].metric, specs[j].metric))
				return err_set(err, ERR_UNSUPPORTED,
					"-e: '%s' and '%s' both count '%s'; name one of them",
					specs[j].name, specs[i].name, specs[i].metric);
	return 0;
}

int event_specs_parse(const char *list, struct event_spec *out, size_t *n, struct err *err)
{
	const char *p = list;

	*n = 0;
	while (*p) {
		size_t len = strcspn(p, ",");
		char name[32];

		if (*n == EVENT_SPECS_MAX)
			return err_set(err, ERR_LIMIT, "-e: more than %d events", EVENT_SPECS_MAX);
		snprintf(name, sizeof(name), "%.*s", (int)len, p);
		if (!strcmp(name, "wall") && *n + 1 < EVENT_SPECS_MAX) {
			out[(*n)++] = known[0];
			out[*n] = waiting;
		} else if (len >= sizeof(name) || !parse_one(name, &out[*n]))
			return err_set(err, ERR_UNSUPPORTED,
				"'%.*s': is not a known event ('weir doctor' lists them)", (int)len,
				p);
		(*n)++;
		p += len + (p[len] == ',');
	}
	if (!*n)
		return err_set(err, ERR_UNSUPPORTED, "-e: no event named");
	return check_metrics(out, *n, err);
}
