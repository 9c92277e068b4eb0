/* SPDX-License-Identifier: MIT */
/* Rows are sorted by process, address and time, and each process has a search tree over its own. */
#include "symbols/resolve/module_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"
#include "symbols/resolve/module_replay.h"
#include "symbols/resolve/module_tree.h"

#define FORK_DEPTH_MAX 64 /* parents of parents that are asked */

struct process_rows {
	struct module_process process; /* .parent is an index + 1 into replay order: see order */
	size_t first, n;
};

struct module_map {
	VEC(struct trace_module_span) rows;
	struct module_reach *reaches;	    /* beside rows */
	VEC(struct process_rows) processes; /* by pid, start */
	uint32_t *order;		    /* the replay's number of a process -> its place here */
	uint64_t n_lost;
};

/* --- making ------------------------------------------------------------------------------ */

/* A process on its way to its place. */
struct numbered {
	struct module_process process;
	uint32_t number; /* the replay's; UINT32_MAX = only the address index has it */
};

ORDER_BY(by_pid_and_start, struct numbered, process.pid, process.start, number)

static bool is_new_process(const struct module_map *m, size_t i)
{
	const struct trace_module_span *s = &m->rows.v[i];

	return !i || s[-1].pid != s->pid || s[-1].process_start != s->process_start;
}

/* Lists the processes of the replay and those of the rows, each once, with its rows. */
static void list_processes(struct module_map *m, const struct module_replay *replay)
{
	VEC(struct numbered) all = {0};
	size_t row_i = 0;

	for (uint32_t i = 0; i < replay->processes.n; i++)
		vec_push(&all, ((struct numbered){replay->processes.v[i], i}));
	for (size_t i = 0; i < m->rows.n; i++)
		if (is_new_process(m, i))
			vec_push(&all,
				((struct numbered){{.pid = m->rows.v[i].pid,
							   .start = m->rows.v[i].process_start},
					UINT32_MAX}));
	vec_sort(&all, by_pid_and_start);
	m->order = mem_calloc(replay->processes.n, sizeof(*m->order));
	for (size_t i = 0; i < all.n; i++) {
		const struct numbered *a = &all.v[i];
		struct process_rows p = {a->process, row_i, 0};
		bool is_known = m->processes.n && a[-1].process.pid == a->process.pid &&
				a[-1].process.start == a->process.start;

		if (a->number != UINT32_MAX)
			m->order[a->number] = (uint32_t)m->processes.n - is_known;
		if (is_known)
			continue;
		while (row_i < m->rows.n && m->rows.v[row_i].pid == p.process.pid &&
			m->rows.v[row_i].process_start == p.process.start)
			row_i++;
		p.n = row_i - p.first;
		vec_push(&m->processes, p);
	}
	vec_release(&all);
}

int module_map_new(struct module_map **out, const struct trace_reader *r, struct err *err)
{
	const struct trace_module_span *spans;
	size_t n = trace_reader_module_spans(r, &spans);
	struct module_replay replay;
	struct module_map *m;
	int rc = module_replay_run(&replay, r, n > 0, err);

	if (rc < 0) {
		module_replay_release(&replay);
		return rc;
	}
	m = mem_zalloc(sizeof(*m));
	m->n_lost = replay.n_lost;
	vec_reserve(&m->rows, n + replay.rows.n);
	for (size_t i = 0; i < n; i++)
		vec_push(&m->rows, spans[i]);
	for (size_t i = 0; i < replay.rows.n; i++)
		vec_push(&m->rows, replay.rows.v[i]);
	vec_sort(&m->rows, trace_module_span_compare);
	list_processes(m, &replay);
	m->reaches = mem_calloc(m->rows.n, sizeof(*m->reaches));
	for (size_t i = 0; i < m->processes.n; i++)
		module_tree_grow(m->rows.v + m->processes.v[i].first,
			m->reaches + m->processes.v[i].first, m->processes.v[i].n);
	module_replay_release(&replay);
	*out = m;
	return 0;
}

void module_map_free(struct module_map *m)
{
	if (!m)
		return;
	vec_release(&m->rows);
	vec_release(&m->processes);
	free(m->reaches);
	free(m->order);
	free(m);
}

uint64_t module_map_n_lost(const struct module_map *m)
{
	return m->n_lost;
}

size_t module_map_n(const struct module_map *m)
{
	return m->rows.n;
}

const struct trace_module_span *module_map_get(const struct module_map *m, size_t i)
{
	return &m->rows.v[i];
}

/* --- looking up -------------------------------------------------------------------------- */

/* The row at `addr` that began last among those that were there in [from, to). */
static const struct trace_module_span *search_rows(const struct module_map *m,
	const struct process_rows *p, uint64_t addr, uint64_t from, uint64_t to)
{
	return module_tree_find(m->rows.v + p->first, m->reaches + p->first, p->n,
		&(struct module_tree_query){addr, from, to});
}

/* The first process that does not come before (pid, start). */
static size_t process_after(const struct module_map *m, uint32_t pid, uint64_t start)
{
	const struct process_rows *v = m->processes.v;

	return SEARCH(0, m->processes.n, i,
		v[i].process.pid < pid || (v[i].process.pid == pid && v[i].process.start < start));
}

static const struct process_rows *find_process(
	const struct module_map *m, const struct module_query *query)
{
	bool is_any = query->process_start == UINT64_MAX;
	uint64_t start = is_any ? query->time : query->process_start;
	size_t i = process_after(m, query->pid, start), end;

	if (i < m->processes.n && m->processes.v[i].process.pid == query->pid &&
		m->processes.v[i].process.start == start)
		return &m->processes.v[i];
	if (!is_any)
		return NULL;
	if (i && m->processes.v[i - 1].process.pid == query->pid)
		return &m->processes.v[i - 1];
	end = i;
	while (end < m->processes.n && m->processes.v[end].process.pid == query->pid)
		end++;
	return end > i ? &m->processes.v[end - 1] : NULL;
}

/* In one process; *to_parent says that its parent has the answer. */
static const struct trace_module_span *find_in(const struct module_map *m,
	const struct process_rows *p, uint64_t addr, uint64_t time, bool *to_parent)
{
	const struct module_process *q = &p->process;
	const struct trace_module_span *found;

	*to_parent = false;
	if (time == UINT64_MAX)
		found = search_rows(m, p, addr, 0, UINT64_MAX);
	else
		found = search_rows(m, p, addr, time, time + 1);
	if (found || !q->parent || (time != UINT64_MAX && (time < q->since || time >= q->until)))
		return found;
	/* What the process did there itself hides what its parent had. */
	*to_parent = !search_rows(m, p, addr, 0, q->until);
	return NULL;
}

const struct trace_module_span *module_map_find(
	const struct module_map *m, const struct module_query *query)
{
	const struct process_rows *p = find_process(m, query);
	uint64_t time = query->time;

	for (int depth = 0; p && depth < FORK_DEPTH_MAX; depth++) {
		bool to_parent;
		const struct trace_module_span *s = find_in(m, p, query->addr.v, time, &to_parent);

		if (!to_parent)
			return s && s->bias != MODULE_BIAS_UNKNOWN ? s : NULL;
		time = p->process.fork_time;
		p = &m->processes.v[m->order[p->process.parent - 1]];
	}
	return NULL;
}

const char *module_end_name(enum module_end end)
{
	static const char *const names[MODULE_N_ENDS] = {
		[MODULE_END_NONE] = "",
		[MODULE_END_OVERLAP] = "overlap",
		[MODULE_END_MUNMAP] = "munmap",
		[MODULE_END_EXEC] = "exec",
		[MODULE_END_EXIT] = "exit",
		[MODULE_END_REUSED] = "pid reused",
		[MODULE_END_SNAPSHOT] = "gone at the end",
	};

	return (unsigned)end < MODULE_N_ENDS ? names[end] : "";
}
