/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/report/report.h"
#include "cmd/report/threads_view.h"
#include "cmd/report/values.h"

const char *const threads_columns[] = {
	"base", "samples", "events", "switches", "pid", "tid", "name", NULL};

uint64_t thread_cum(const struct profile *p, const struct profile_thread *thread)
{
	return thread->root ? calltree_get(p->tree, thread->root)->cum : 0;
}

struct order {
	const struct profile *profile;
	const char *column;
};

static uint64_t number_of(const struct order *order, const struct profile_thread *thread)
{
	if (!strcmp(order->column, "samples"))
		return thread->samples;
	if (!strcmp(order->column, "events"))
		return thread->events;
	if (!strcmp(order->column, "switches"))
		return thread->switches;
	if (!strcmp(order->column, "pid"))
		return UINT32_MAX - thread->pid;
	if (!strcmp(order->column, "tid"))
		return UINT32_MAX - thread->tid;
	return thread_cum(order->profile, thread);
}

static int compare(const void *a, const void *b, void *context)
{
	const struct order *order = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct profile_thread *s = &order->profile->threads[x];
	const struct profile_thread *t = &order->profile->threads[y];
	int by_name = strcmp(order->column, "name") ? 0 : strcmp(s->name, t->name);

	if (by_name)
		return by_name;
	if (number_of(order, s) != number_of(order, t))
		return number_of(order, s) > number_of(order, t) ? -1 : 1;
	return x < y ? -1 : x > y;
}

size_t threads_select(const struct report *report, uint32_t **ids)
{
	const struct profile *p = report->profile;
	const struct report_options *o = report->options;
	struct order order = {p, o->sort ? o->sort : "base"};
	size_t n = 0;

	*ids = mem_calloc(p->n_threads + 1, sizeof(**ids));
	for (uint32_t id = 1; id < p->n_threads; id++)
		if (p->threads[id].is_wanted && report_name_matches(report, p->threads[id].name))
			(*ids)[n++] = id;
	if (n)
		qsort_r(*ids, n, sizeof(**ids), compare, &order);
	return o->limit && o->limit < n ? o->limit : n;
}

/* A program that counts itself has no events. */
static bool has_events(const struct profile *p)
{
	return calltree_has_events(p->tree) && !p->counts.n_nodes;
}

static void print_thread(
	struct table *t, const struct report *report, const struct profile_thread *thread)
{
	const struct profile *p = report->profile;

	table_row(t, TABLE_STYLE_PLAIN);
	count_cell(t, thread->pid, thread->pid);
	count_cell(t, thread->tid, thread->tid);
	count_cell(t, calltree_has_samples(p->tree), thread->samples);
	count_cell(t, has_events(p), thread->events);
	value_cell(t, report, true, thread_cum(p, thread));
	count_cell(t, p->n_switches, thread->switches);
	table_cell(t, *thread->name ? thread->name : ".");
}

int threads_text(const struct report *report, struct err *err)
{
	struct table t = {0};
	uint32_t *ids;
	size_t n = threads_select(report, &ids);

	(void)err;
	table_row(&t, TABLE_STYLE_STRONG);
	table_cell(&t, "Pid");
	table_cell(&t, "Tid");
	table_cell(&t, "Samples");
	table_cell(&t, "Events");
	unit_head(&t, report, "Base");
	table_cell(&t, "Switches");
	table_cell(&t, "Name");
	for (size_t i = 0; i < n; i++)
		print_thread(&t, report, &report->profile->threads[ids[i]]);
	table_print(&t, report->options->color, report->out);
	table_release(&t);
	free(ids);
	return 0;
}

int threads_json(const struct report *report, struct err *err)
{
	const struct profile *p = report->profile;
	struct json j;
	uint32_t *ids;
	size_t n = threads_select(report, &ids);

	(void)err;
	report_json_begin(&j, report, "threads");
	report_json_rows(&j);
	for (size_t i = 0; i < n; i++) {
		const struct profile_thread *thread = &p->threads[ids[i]];

		json_newline(&j);
		json_object_begin(&j, NULL);
		report_json_measured(&j, "pid", thread->pid, thread->pid);
		report_json_measured(&j, "tid", thread->tid, thread->tid);
		report_json_text(&j, "name", thread->name);
		report_json_measured(&j, "samples", calltree_has_samples(p->tree), thread->samples);
		report_json_measured(&j, "events", has_events(p), thread->events);
		json_u64(&j, "base", thread_cum(p, thread));
		report_json_measured(&j, "switches", p->n_switches, thread->switches);
		json_object_end(&j);
	}
	report_json_end(&j, report);
	free(ids);
	return 0;
}
