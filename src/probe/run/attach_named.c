/* SPDX-License-Identifier: MIT */
/*
 * Uprobes in the processes of -c and -p only: no other process gets a breakpoint. A link of BPF
 * for one process does not follow its children, and perf's own uprobes with `inherit` must never
 * be used: the kernel reads their path again at each fork, by the pointer that was ours, and fork
 * fails in the program (EFAULT, seen on Linux 6.18). So there are events with names in tracefs
 * (uprobe_names.c), opened by perf for each thread, with `inherit`. What that rests on:
 *
 *  1. The kernel sets breakpoints where a task that has the event has its memory: so threads, vfork
 *     and exec come out right. fork copies the code with them.
 *  2. The program belongs to the event's name and runs once for each hit, however many threads
 *     have the event; it is set once. So it does no harm when a thread gets the event twice. It is
 *     set by an event without `inherit`: copies of the one that has it take it away from all when
 *     the first of them ends (seen on Linux 6.18).
 *  3. The kernel exchanges the events of two tasks that have the same ones when it switches between
 *     them, but still sets breakpoints by the task that an event was made for: when the other one
 *     ends they are gone in a program that goes on. It does not exchange those that are inherited
 *     and have PERF_SAMPLE_READ; before Linux 6.12 both together are refused, and so is this way.
 *  4. The events stay disabled, so that nothing is done for them when tasks are switched.
 *  5. The last close of an event takes some 70 ms, and meanwhile no task that has inherited events
 *     can fork or end. So these are closed before. And there are few events: one for all sites of a
 *     program, unless it asks which one was hit.
 *  6. A program with other rights loses them: exec_watch.c.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "bpf/attach.h"
#include "bpf/kernel_map.h"
#include "probe/run/run.h"
#include "process/proc.h"
#include "process/tracepoint.h"

#define EVENTS_MAX 8   /* 0.6 s to close them */
#define SITES_MAX  256 /* each is a line in tracefs */
#define ROUNDS_MAX 100 /* of looking for new threads: each finds those that the last one missed */

static void plan_program(struct named_uprobes *named, struct run_program *p)
{
	struct named_event e = {
		.program = p, .first_site = p->first_site, .n_sites = p->n_sites, .fd = -1};

	if (!p->uses_site) {
		vec_push(&named->events, e);
		return;
	}
	e.n_sites = 1;
	for (uint32_t i = 0; i < p->n_sites && named->events.n <= EVENTS_MAX; i++) {
		vec_push(&named->events, e);
		e.first_site++;
	}
}

/* NULL: they can be used. */
static const char *why_not(const struct probe_session *s, size_t n_sites)
{
	if (!s->features.has_uprobe_multi || !s->features.has_btf)
		return "the kernel is too old, or its BTF is not there";
	if (!s->features.has_tracefs)
		return "tracefs is switched off";
	if (n_sites > SITES_MAX)
		return "there are more than 256 sites";
	if (s->named.events.n > EVENTS_MAX)
		return "more than 8 sites are told apart (probe, func)";
	return NULL;
}

void named_uprobes_choose(struct probe_session *s)
{
	const char *why;
	size_t n_sites = 0;

	if (!s->filters)
		return;
	for (size_t i = 0; i < s->programs.n; i++) {
		if (!point_has(s->programs.v[i].kind, POINT_IN_FILES))
			continue;
		n_sites += s->programs.v[i].n_sites;
		plan_program(&s->named, &s->programs.v[i]);
	}
	if (!n_sites)
		return;
	why = why_not(s, n_sites);
	s->named.is_on = !why;
	if (why)
		snprintf(s->facts.why_everywhere, sizeof(s->facts.why_everywhere), "%s", why);
}

/* ---- threads ---- */

struct thread_search {
	struct probe_session *s;
	size_t n_new;
	size_t n_max; /* events: half of the descriptors that we may have */
	int errnum;   /* why the events cannot be opened for a thread that is there */
};

static int open_event(const struct named_event *e, pid_t tid, bool is_inherited)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
		.type = PERF_TYPE_TRACEPOINT,
		.config = e->id,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_TID,
		.disabled = 1,
		.inherit = is_inherited};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static bool is_open(struct thread_search *t, int fd)
{
	if (fd < 0 && fd != -ESRCH) /* else it has ended */
		t->errnum = -fd;
	return fd >= 0;
}

static void take_thread(void *ctx, pid_t tid)
{
	struct thread_search *t = ctx;
	bool is_new = false;

	map_ensure(&t->s->named.threads, (uint64_t)tid, &is_new);
	if (!is_new || t->errnum)
		return;
	t->n_new++;
	for (size_t i = 0; i < t->s->named.events.n; i++) {
		struct named_event *e = &t->s->named.events.v[i];
		int fd = t->s->perf_events.n < t->n_max ? open_event(e, tid, true) : -EMFILE;

		if (!is_open(t, fd))
			return;
		vec_push(&t->s->perf_events, fd);
		if (e->fd < 0)
			e->fd = open_event(e, tid, false);
		if (!is_open(t, e->fd))
			return;
	}
}

static void take_process(void *ctx, const void *key, const void *value)
{
	(void)value;
	proc_each_task(*(const pid_t *)key, take_thread, ctx);
}

/* A thread or child that was made by one which had no events yet has none either: so it goes on
 * until a round finds nobody new. Children are in the map by then (process_filter.c). */
static int open_events(struct probe_session *s, struct err *err)
{
	struct thread_search t = {.s = s};
	struct rlimit limit = {0};

	getrlimit(RLIMIT_NOFILE, &limit);
	t.n_max = limit.rlim_cur / 2;
	for (int i = 0; i < ROUNDS_MAX; i++) {
		int rc;

		t.n_new = 0;
		rc = bpf_map_each(s->maps[STREAM_MAP_PROCESSES], sizeof(uint32_t), sizeof(uint32_t),
			take_process, &t);
		if (rc < 0)
			return err_sys(err, -rc, "the map of processes");
		if (t.errnum)
			return err_sys(err, t.errnum, "perf events");
		if (!t.n_new)
			return 0;
	}
	return err_set(err, ERR_LIMIT, "threads are made faster than they are found");
}

/* ---- all together ---- */

static int make_names(struct probe_session *s, struct err *err)
{
	static _Atomic unsigned n_groups; /* a process may have several sessions */
	struct named_uprobes *named = &s->named;
	int rc = 0;

	named->tracefs = tracefs_open(err);
	if (named->tracefs < 0)
		return named->tracefs;
	uprobe_names_sweep(named->tracefs);
	snprintf(named->group, sizeof(named->group), "weir_%d_%u", getpid(),
		atomic_fetch_add(&n_groups, 1));
	for (size_t i = 0; i < named->events.n && rc == 0; i++)
		rc = uprobe_names_add(s, &named->events.v[i], err);
	return rc;
}

static int set_programs(struct probe_session *s, struct err *err)
{
	for (size_t i = 0; i < s->named.events.n; i++) {
		struct named_event *e = &s->named.events.v[i];
		int link;

		if (e->fd < 0)
			return err_set(err, ERR_NOT_FOUND, "the processes have ended");
		link = bpf_link_perf(
			e->program->fd, e->fd, e->program->uses_site ? e->first_site : 0);
		if (link < 0)
			return err_sys(err, -link, "BPF on an event of tracefs");
		attach_keep(s, link, -1);
		s->facts.n_sites += e->n_sites;
		s->facts.sleeps |= e->program->can_sleep;
	}
	return 0;
}

int named_uprobes_attach(struct probe_session *s, struct err *err)
{
	size_t n_links = s->links.n, n_events = s->perf_events.n;
	struct probe_session_facts facts = s->facts;
	uint64_t none = 0;
	uint32_t zero = 0;
	int rc = make_names(s, err);

	if (rc == 0)
		rc = exec_watch_open(s, err);
	if (rc == 0)
		rc = open_events(s, err);
	if (rc == 0)
		rc = set_programs(s, err);
	if (rc == 0) { /* programs that were begun before the process had its events */
		bpf_map_update(s->named.unseen_map, &zero, &none);
		s->facts.arms_only_asked = true;
		return 0;
	}
	attach_drop(s, n_links, n_events);
	named_uprobes_release(s);
	s->facts = facts;
	snprintf(s->facts.why_everywhere, sizeof(s->facts.why_everywhere), "%s", err->text);
	return rc;
}

uint64_t named_uprobes_unseen(const struct probe_session *s)
{
	uint32_t zero = 0;
	uint64_t n = 0;

	if (s->named.unseen_map >= 0 && bpf_map_find(s->named.unseen_map, &zero, &n) < 0)
		n = 0;
	return n;
}

void named_uprobes_release(struct probe_session *s)
{
	for (size_t i = 0; i < s->named.events.n; i++)
		fd_cleanup(&s->named.events.v[i].fd);
	if (s->named.tracefs >= 0)
		uprobe_names_remove(&s->named);
	fd_cleanup(&s->named.tracefs);
	vec_release(&s->named.events);
	map_release(&s->named.threads);
	s->named.is_on = false;
}
