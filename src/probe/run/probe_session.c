/* SPDX-License-Identifier: MIT */
/*
 * A stream that runs. Everything is attached before begin{} runs, but clauses are switched off
 * (session.enabled) until it has, so that what begin{} sets is there for all of them; at the end
 * they are switched off before the links are closed, which may take a while.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "bpf/kernel_map.h"
#include "bpf/program.h"
#include "probe/run/run.h"

#define NOTE_BYTES  1024
#define NS_A_SECOND 1000000000u
#define TICKS_MAX   1000 /* of an interval that was not served in time; those beyond are a loss */
#define EVENTS_A_GO 16
#define CLOSERS_MAX 32

void session_note(struct probe_session *s, const char *fmt, ...)
{
	char text[NOTE_BYTES];
	va_list args;

	if (!s->output.note)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	s->output.note(s->output.ctx, text);
}

/* What works less well than it could. */
static void note_features(struct probe_session *s)
{
	bool has_files = false, has_switch = false, reads = false;

	for (size_t i = 0; i < s->programs.n; i++) {
		const struct run_program *p = &s->programs.v[i];

		has_files |= point_has(p->kind, POINT_IN_FILES);
		reads |= point_has(p->kind, POINT_IN_FILES) && p->reads_user;
		has_switch |=
			p->is_switched && p->has[MODE_32] && !point_has(p->kind, POINT_OF_CALLS);
	}
	if (has_files && !s->features.has_uprobe_multi)
		session_note(s,
			"no uprobe_multi links (Linux 6.6): each site is a perf event of its own, and detaching takes long");
	if (reads && !s->features.can_sleep)
		session_note(s,
			"programs of uprobes cannot sleep (Linux 6.0): memory that is not resident cannot be read");
	if (has_switch && !s->features.has_btf)
		session_note(s,
			"the kernel's BTF is not there: at kernel points every process is taken for a 64-bit one");
}

/* One name of a glob may fail: that is noted, and the others go on. */
static int forgive(struct probe_session *s, const struct run_program *p, int rc, struct err *err)
{
	if (rc >= 0 || rc == ERR_PERMISSION || !p->name || !p->points.v[0]->spec.is_glob)
		return rc;
	session_note(s, "%s is left out: %s", p->name, err->text);
	return 0;
}

static int load_all(struct probe_session *s, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < s->programs.n && rc == 0; i++) {
		rc = run_program_load(s, &s->programs.v[i], err);
		if (rc != ERR_CHANGED)
			rc = forgive(s, &s->programs.v[i], rc, err);
	}
	return rc;
}

static int attach_all(struct probe_session *s, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < s->programs.n && rc == 0; i++) {
		struct run_program *p = &s->programs.v[i];
		const struct point_kind_def *def = &point_kinds[p->kind];

		if (p->fd < 0 || !def->attach ||
			(s->named.is_on && point_has(p->kind, POINT_IN_FILES)))
			continue;
		s->facts.sleeps |= p->can_sleep;
		rc = point_has(p->kind, POINT_OF_NAMES) ? attach_names(s, p, err)
							: def->attach(s, p, NULL, err);
		rc = forgive(s, p, rc, err);
	}
	return rc;
}

static void close_programs(struct probe_session *s)
{
	for (size_t i = 0; i < s->programs.n; i++)
		fd_cleanup(&s->programs.v[i].fd);
}

static int make_and_load(struct probe_session *s, struct err *err)
{
	int rc = run_maps_open(s, err);

	if (rc == 0)
		rc = load_all(s, err);
	return rc;
}

/* Uprobes of some processes: only there, or else everywhere, by another kind of program. */
static int attach_named(struct probe_session *s, struct err *err)
{
	struct err why = {0};

	if (!s->named.is_on || named_uprobes_attach(s, &why) == 0)
		return 0;
	close_programs(s);
	return load_all(s, err);
}

static int watch_fd(struct probe_session *s, int fd, size_t program_i)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = program_i};

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int open_polling(struct probe_session *s, struct err *err)
{
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return err_sys(err, errno, "probe session: polling");
	if ((s->records.bytes && watch_fd(s, s->records.fd, SIZE_MAX) < 0) ||
		(s->control.bytes && watch_fd(s, s->control.fd, SIZE_MAX) < 0) ||
		(s->copies.bytes && watch_fd(s, s->copies.fd, SIZE_MAX) < 0))
		return err_sys(err, errno, "probe session: polling the ring");
	return 0;
}

static int start_timers(struct probe_session *s, struct err *err)
{
	for (size_t i = 0; i < s->programs.n; i++) {
		struct run_program *p = &s->programs.v[i];
		uint64_t ns = p->points.v[0]->spec.period_ns;
		struct itimerspec at;

		if (p->kind != POINT_INTERVAL)
			continue;
		ns = ns ? ns : NS_A_SECOND;
		at.it_value.tv_sec = at.it_interval.tv_sec = (time_t)(ns / NS_A_SECOND);
		at.it_value.tv_nsec = at.it_interval.tv_nsec = (long)(ns % NS_A_SECOND);
		p->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		if (p->timer_fd < 0 || timerfd_settime(p->timer_fd, 0, &at, NULL) < 0 ||
			watch_fd(s, p->timer_fd, i) < 0)
			return err_sys(err, errno, "%s: its timer", p->points.v[0]->spec.text);
	}
	return 0;
}

static int find_features(struct probe_session *s, bool loads, struct err *err)
{
	kernel_features_find(&s->features, &s->options, loads);
	return s->features.bpf_errnum
		       ? kernel_refusal(err, s->features.bpf_errnum, "loading BPF programs")
		       : 0;
}

static bool has_files(const struct stream *stream)
{
	for (size_t i = 0; i < stream->points.n; i++)
		if (point_has(stream->points.v[i].spec.kind, POINT_IN_FILES))
			return true;
	return false;
}

/* A stream out of a file whose globs find nothing here would wait for ever. */
static int check_points(const struct probe_session *s, struct err *err)
{
	bool wants = false, has = false;

	for (size_t i = 0; i < s->stream->points.n; i++)
		wants |= !s->stream->points.v[i].found &&
			 point_kinds[s->stream->points.v[i].spec.kind].find;
	for (size_t i = 0; i < s->programs.n; i++)
		has |= !point_has(s->programs.v[i].kind, POINT_IS_ONCE);
	return !wants || has ? 0
			     : err_set(err, ERR_NOT_FOUND,
				       "none of the script's trace points is on this machine");
}

static int open_all(struct probe_session *s, struct err *err)
{
	bool loads = has_files(s->stream);
	int rc = find_features(s, loads, err);

	if (rc == 0) {
		kernel_features_find_turns(&s->features, &s->options, s->stream);
		rc = run_points(s, err);
	}
	if (rc == 0)
		rc = check_points(s, err);
	if (rc == 0)
		named_uprobes_choose(s);
	if (rc == 0)
		rc = make_and_load(s, err);
	if (rc == ERR_CHANGED) { /* once more, with maps that have their memory from the start */
		close_programs(s);
		run_maps_close(s);
		rc = make_and_load(s, err);
	}
	if (rc == ERR_PERMISSION && !loads) { /* is it this map, or all of BPF? */
		int why = find_features(s, true, err);

		return why < 0 ? why : rc;
	}
	if (rc == 0)
		rc = run_sites_fill(s, err);
	if (rc == 0)
		rc = open_polling(s, err);
	if (rc == 0)
		note_features(s);
	if (rc == 0)
		rc = process_filter_open(s, err);
	if (rc == 0)
		rc = attach_named(s, err);
	if (rc == 0)
		rc = attach_all(s, err);
	if (rc == 0)
		blind_processes_note(s);
	return rc;
}

int probe_session_open(const struct stream *stream, const struct probe_session_options *options,
	const struct probe_session_output *output, struct probe_session **out, struct err *err)
{
	struct probe_session *s = mem_zalloc(sizeof(*s));
	uint64_t start_ns = clock_mono_ns();
	struct err why = {0};
	int rc;

	s->stream = stream;
	s->options = *options;
	s->output = *output;
	s->arena = arena_new();
	s->epoll_fd = s->enabled_map = -1;
	s->named.tracefs = s->named.unseen_map = s->followed.left_out_fd = -1;
	s->records.fd = s->control.fd = s->copies.fd = -1;
	s->exit_ns = UINT64_MAX;
	s->filters = options->n_pids != 0;
	for (size_t i = 0; i < RUN_MAPS; i++)
		s->maps[i] = -1;
	rc = open_all(s, &why);
	if (rc < 0) {
		probe_session_close(s);
		return err_set(err, rc, "%s", why.text);
	}
	s->facts.n_programs = (uint32_t)s->programs.n;
	s->facts.uses_multi = s->features.has_uprobe_multi;
	s->facts.open_ns = clock_mono_ns() - start_ns;
	*out = s;
	return 0;
}

/* The switches as the kernel sees them: all, or those of one kind of points, or none. */
enum { KINDS_ALL = N_POINT_KINDS, KINDS_NONE };

static int write_enabled(struct probe_session *s, unsigned kind)
{
	uint8_t *on = mem_zalloc((s->stream->clauses.n + 8) & ~(size_t)7);
	uint32_t zero = 0;
	int rc;

	for (size_t i = 0; i < s->programs.n; i++) {
		const struct run_program *p = &s->programs.v[i];

		for (size_t j = 0; p->kind == kind && j < p->points.n; j++)
			on[p->points.v[j]->clause_i] = s->enabled[p->points.v[j]->clause_i];
	}
	rc = bpf_map_update(s->enabled_map, &zero, kind == KINDS_ALL ? s->enabled : on);
	free(on);
	return rc;
}

/* begin{} and end{} alone. */
static int run_alone(struct probe_session *s, enum point_kind kind)
{
	int rc = write_enabled(s, kind);

	for (size_t i = 0; i < s->programs.n; i++)
		if (s->programs.v[i].kind == kind && s->programs.v[i].fd >= 0 && rc == 0)
			rc = bpf_program_run(s->programs.v[i].fd);
	run_rings_drain(s);
	return rc;
}

static void write_facts(struct probe_session *s)
{
	uint64_t now_ns = clock_mono_ns();
	uint64_t facts[N_RUN_FACTS] = {[FACT_BEGIN] = now_ns,
		[FACT_WALL_CLOCK] = clock_read_ns(CLOCK_REALTIME) - now_ns,
		[FACT_COMMAND] = (uint64_t)s->options.command_pid,
		[FACT_TAI] = clock_read_ns(CLOCK_TAI) - clock_read_ns(CLOCK_BOOTTIME)};

	for (uint32_t i = 0; i < N_RUN_FACTS && s->maps[STREAM_MAP_FACTS] >= 0; i++)
		bpf_map_update(s->maps[STREAM_MAP_FACTS], &i, &facts[i]);
}

int probe_session_begin(struct probe_session *s, struct err *err)
{
	int rc;

	write_facts(s);
	rc = run_alone(s, POINT_BEGIN);
	if (rc < 0)
		return kernel_refusal(err, -rc, "begin: cannot be run");
	s->is_begun = true;
	if (s->is_exiting)
		return 0;
	rc = write_enabled(s, KINDS_ALL);
	if (rc < 0)
		return kernel_refusal(err, -rc, "switches of clauses");
	missed_hits_begin(s);
	rc = run_iterators(s, err);
	return rc < 0 || s->is_exiting ? rc : start_timers(s, err);
}

bool probe_session_signal(struct probe_session *s, int number)
{
	bool is_taken = false;

	for (size_t i = 0; i < s->programs.n && !s->is_exiting; i++) {
		const struct run_program *p = &s->programs.v[i];

		if (p->kind != POINT_SELF || p->points.v[0]->spec.count != (uint64_t)number)
			continue;
		is_taken = true;
		if (p->fd >= 0)
			bpf_program_run(p->fd);
		run_rings_drain(s);
	}
	return is_taken;
}

int probe_session_fd(const struct probe_session *s)
{
	return s->epoll_fd;
}

/* A late interval runs as often as it was due, so that a count of them is right; but exit() in one
 * tick is the end of those behind it. */
static void run_interval(struct probe_session *s, struct run_program *p)
{
	uint64_t n_due = 0;

	if (read(p->timer_fd, &n_due, sizeof(n_due)) != sizeof(n_due))
		return;
	for (uint64_t i = 0; i < n_due && i < TICKS_MAX && p->fd >= 0 && !s->is_exiting; i++) {
		bpf_program_run(p->fd);
		run_rings_drain(s);
	}
	if (n_due > TICKS_MAX && !s->is_exiting)
		p->n_late += n_due - TICKS_MAX;
}

bool probe_session_work(struct probe_session *s)
{
	struct epoll_event events[EVENTS_A_GO];
	int n = epoll_wait(s->epoll_fd, events, EVENTS_A_GO, 0);

	run_rings_drain(s);
	for (int i = 0; i < n && !s->is_exiting; i++) {
		if (events[i].data.u64 >= s->programs.n)
			continue;
		run_interval(s, &s->programs.v[events[i].data.u64]);
	}
	return !s->is_exiting;
}

/* Closing a link of uprobes waits until no CPU can be inside of its program. Several such waits at
 * once are over at the same time, so closers take turns at one list. */
struct closing {
	int *fds;
	size_t n;
	_Atomic size_t next; /* each closer takes the one that it finds here */
};

static void *close_some(void *ctx)
{
	struct closing *c = ctx;
	size_t i;

	while ((i = atomic_fetch_add(&c->next, 1)) < c->n)
		fd_cleanup(&c->fds[i]);
	return NULL;
}

static void close_all(int *fds, size_t n)
{
	struct closing c = {.fds = fds, .n = n};
	pthread_t threads[CLOSERS_MAX];
	size_t n_threads = 0;

	while (n_threads < CLOSERS_MAX && n_threads + 1 < n &&
		!pthread_create(&threads[n_threads], NULL, close_some, &c))
		n_threads++;
	close_some(&c);
	for (size_t i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
}

void attach_drop(struct probe_session *s, size_t n_links, size_t n_perf_events)
{
	close_all(s->links.v + n_links, s->links.n - n_links);
	close_all(s->perf_events.v + n_perf_events, s->perf_events.n - n_perf_events);
	s->links.n = n_links;
	s->perf_events.n = n_perf_events;
}

static void detach(struct probe_session *s)
{
	if (s->is_detached)
		return;
	s->is_detached = true;
	missed_hits_end(s);
	if (s->enabled_map >= 0 && s->enabled)
		write_enabled(s, KINDS_NONE);
	attach_drop(s, 0, 0);
	named_uprobes_release(s);
	for (size_t i = 0; i < s->programs.n; i++) {
		fd_cleanup(&s->programs.v[i].timer_fd);
		fd_cleanup(&s->programs.v[i].iterator_fd);
	}
}

void probe_session_end(struct probe_session *s)
{
	detach(s);
	changed_files_note(s);
	run_rings_empty(s);
	s->exit_ns = UINT64_MAX; /* what end{} says is later than exit() */
	run_alone(s, POINT_END);
	run_rings_empty(s);
}

void probe_session_close(struct probe_session *s)
{
	if (!s)
		return;
	detach(s);
	for (size_t i = 0; i < s->programs.n; i++)
		vec_release(&s->programs.v[i].points);
	close_programs(s);
	run_maps_close(s);
	fd_cleanup(&s->epoll_fd);
	fd_cleanup(&s->named.unseen_map);
	followed_close(&s->followed);
	btf_types_close(s->btf);
	file_map_release(&s->btf_file);
	vec_release(&s->programs);
	vec_release(&s->sites);
	vec_release(&s->links);
	vec_release(&s->perf_events);
	map_release(&s->site_names);
	map_release(&s->found);
	free(s->enabled);
	arena_free(s->arena);
	free(s);
}

int probe_session_exit_status(const struct probe_session *s)
{
	return s->exit_status;
}

int probe_session_enable(struct probe_session *s, uint32_t clause_i, bool is_on)
{
	if (clause_i >= s->stream->clauses.n)
		return ERR_NOT_FOUND;
	s->enabled[clause_i] = is_on;
	if (!s->is_begun || s->is_detached)
		return 0;
	return write_enabled(s, KINDS_ALL) < 0 ? ERR_FAILED : 0;
}

void probe_session_facts(const struct probe_session *s, struct probe_session_facts *out)
{
	*out = s->facts;
}
