/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "cmd/report/rows.h"

#define NUMBERS                                                                                    \
	{"pid", "Pid", 0}, {"tid", "Tid", 0}, {"samples", "Samples", 0}, {"events", "Events", 0},  \
		{"base", "Base", COLUMN_UNIT},                                                     \
	{                                                                                          \
		"switches", "Switches", 0                                                          \
	}

static const struct column columns[] = {NUMBERS, {"name", "Name", 0}, {0}};
/* Where some are a runtime's own. */
static const struct column with_roles[] = {
	NUMBERS, {"role", "Role", COLUMN_LEFT}, {"name", "Name", 0}, {0}};

static const char *role_name(enum record_thread_role role)
{
	static const char *const names[] = {
		[RECORD_THREAD_IS_PROGRAM] = "program",
		[RECORD_THREAD_IS_RUNTIME] = "runtime",
		[RECORD_THREAD_IS_COMPILER] = "compiler",
		[RECORD_THREAD_IS_COLLECTOR] = "collector",
	};

	return names[role];
}

static bool has_roles(const struct profile *p)
{
	for (uint32_t id = 1; id < p->n_threads; id++)
		if (p->threads[id].role != RECORD_THREAD_IS_PROGRAM)
			return true;
	return false;
}

int threads_report(const struct report *report, struct err *err)
{
	const struct profile *p = report->profile;
	/* A program that counts itself has no events. */
	bool has_events = calltree_has_events(p->tree) && !p->counts.n_nodes;
	struct rows r;
	size_t *ids, n = query_threads(&report->options->query, p, &ids);

	(void)err;
	rows_begin_plain(&r, report, "threads", has_roles(p) ? with_roles : columns);
	for (size_t i = 0; i < n; i++) {
		const struct profile_thread *thread = &p->threads[ids[i]];

		row_begin(&r, TABLE_STYLE_PLAIN);
		row_count(&r, "pid", thread->pid, thread->pid);
		row_count(&r, "tid", thread->tid, thread->tid);
		row_text(&r, "name", thread->name);
		row_string(&r, "role", role_name(thread->role));
		row_count(&r, "samples", calltree_has_samples(p->tree), thread->samples);
		row_count(&r, "events", has_events, thread->events);
		row_value(&r, "base", true, query_thread_cum(p, thread));
		row_count(&r, "switches", p->n_switches, thread->switches);
		row_end(&r);
	}
	rows_end_plain(&r);
	free(ids);
	return 0;
}
