/* SPDX-License-Identifier: MIT */
/*
 * Points of the kernel: raw tracepoints (system calls, too), tracepoints and events through perf,
 * functions through fentry or kprobes.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/attach.h"
#include "bpf/kernel_map.h"
#include "probe/points/perf_counts.h"
#include "probe/run/run.h"
#include "process/tracepoint.h"

void attach_keep(struct probe_session *s, int link_fd, int perf_fd)
{
	if (link_fd > 0)
		vec_push(&s->links, link_fd);
	if (perf_fd >= 0)
		vec_push(&s->perf_events, perf_fd);
	s->facts.n_links++;
}

static const char *text_of(const struct run_program *p)
{
	return p->points.v[0]->spec.text;
}

/* What becomes of a site: `rc` is 0 or -errno. */
static int attached(struct probe_session *s, struct run_program *p, int rc, struct err *err)
{
	if (rc < 0)
		return kernel_refusal(err, -rc, text_of(p));
	s->facts.n_sites++;
	return 0;
}

/* "sched:sched_switch" or "sched_switch": what is behind the colon. */
static const char *short_name(const char *name)
{
	const char *colon = strrchr(name, ':');

	return colon ? colon + 1 : name;
}

int attach_raw(struct probe_session *s, struct run_program *p, const char *name, struct err *err)
{
	int fd = bpf_attach_raw_tracepoint(p->fd, short_name(name));

	if (fd == -ENOENT)
		return err_set(err, ERR_NOT_FOUND, "%s: this kernel has no raw tracepoint '%s'",
			text_of(p), short_name(name));
	if (fd >= 0)
		attach_keep(s, fd, -1);
	return attached(s, p, fd, err);
}

int attach_event(struct probe_session *s, int program_fd, struct perf_event_attr *attr, int cpu,
	uint64_t cookie)
{
	int fd, link;

	attr->size = sizeof(*attr);
	attr->disabled = 1;
	fd = (int)syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	link = bpf_attach_perf(program_fd, fd, cookie);
	if (link < 0)
		close(fd);
	else
		attach_keep(s, link, fd);
	return link < 0 ? link : 0;
}

int attach_tracepoint(
	struct probe_session *s, struct run_program *p, const char *name, struct err *err)
{
	char *path = mem_strdup(name);
	struct tracepoint_spec spec = {.name = path};
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT, .sample_period = 1};
	struct tracepoint found;
	char *colon = strchr(path, ':');
	int rc;

	if (colon)
		*colon = '/';
	rc = tracepoint_find(&found, &spec, err);
	free(path);
	if (rc < 0)
		return err_prefix(err, "%s", text_of(p));
	attr.config = found.id;
	/* On one CPU, and yet the program runs on all: it belongs to the tracepoint. */
	return attached(s, p, attach_event(s, p->fd, &attr, 0, 0), err);
}

/* An event on each CPU. */
static int attach_everywhere(struct probe_session *s, struct run_program *p,
	struct perf_event_attr *attr, struct err *err)
{
	int n = 0;

	for (size_t cpu = 0; cpu < bpf_possible_cpus(); cpu++) {
		int rc = attach_event(s, p->fd, attr, (int)cpu, 0);

		if (rc == -ENODEV) /* possible, but not there */
			continue;
		if (rc == -ENOENT || rc == -EOPNOTSUPP)
			return err_set(err, ERR_UNSUPPORTED,
				"%s: this machine does not have that event", text_of(p));
		if (rc < 0)
			return kernel_refusal(err, -rc, text_of(p));
		n++;
	}
	s->facts.n_sites++;
	return n ? 0 : err_set(err, ERR_FAILED, "%s: no CPU takes the event", text_of(p));
}

int attach_profile(
	struct probe_session *s, struct run_program *p, const char *name, struct err *err)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = p->points.v[0]->spec.period_ns}; /* this clock counts ns */

	(void)name;
	return attach_everywhere(s, p, &attr, err);
}

int attach_counter(
	struct probe_session *s, struct run_program *p, const char *name, struct err *err)
{
	bool is_hardware = p->kind == POINT_HARDWARE;
	const struct point_spec *spec = &p->points.v[0]->spec;
	const struct perf_count *e = perf_count_find(is_hardware, spec->name);
	struct perf_event_attr attr = {
		.type = is_hardware ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE};

	(void)name;
	if (!e)
		return err_set(
			err, ERR_NOT_FOUND, "%s: there is no event '%s'", spec->text, spec->name);
	attr.config = e->config;
	attr.sample_period = spec->count ? spec->count : e->count;
	return attach_everywhere(s, p, &attr, err);
}

int attach_kprobe(struct probe_session *s, struct run_program *p, const char *name, struct err *err)
{
	bool is_return = point_has(p->kind, POINT_AT_RETURN);
	int type = pmu_type("kprobe"), bit = pmu_return_bit("kprobe");
	struct perf_event_attr attr = {.type = (uint32_t)type,
		.config1 = (uintptr_t)name,
		.config2 = p->points.v[0]->spec.offset};

	if (type < 0 || (is_return && bit < 0))
		return err_set(err, ERR_UNSUPPORTED,
			"%s: this kernel has no kprobes (CONFIG_KPROBE_EVENTS); %s:%s sees the same where the kernel has BTF",
			text_of(p), is_return ? "fexit" : "fentry", name);
	if (is_return)
		attr.config = 1ull << bit;
	return attached(s, p, attach_event(s, p->fd, &attr, 0, 0), err);
}

int attach_function(
	struct probe_session *s, struct run_program *p, const char *name, struct err *err)
{
	int fd = bpf_attach_raw_tracepoint(p->fd, NULL);

	(void)name; /* loading has said which */
	if (fd == -EBUSY || fd == -ENOTSUP || fd == -EOPNOTSUPP || fd == -524 || fd == -EINVAL)
		return err_set(err, ERR_UNSUPPORTED,
			"%s: the kernel does not let this function be traced (%s)", text_of(p),
			strerror(-fd));
	if (fd >= 0)
		attach_keep(s, fd, -1);
	return attached(s, p, fd, err);
}

int attach_syscall(
	struct probe_session *s, struct run_program *p, const char *name, struct err *err)
{
	name = point_has(p->kind, POINT_AT_RETURN) ? "sys_exit" : "sys_enter";
	return attach_raw(s, p, name, err);
}

/* The name that a point without a glob has, in the form of struct point's names. */
static const char *own_name(struct probe_session *s, const struct run_program *p)
{
	const struct point_spec *spec = &p->points.v[0]->spec;

	if (p->kind == POINT_TRACEPOINT && spec->provider)
		return arena_printf(s->arena, "%s:%s", spec->provider, spec->name);
	return spec->name;
}

int attach_names(struct probe_session *s, struct run_program *p, struct err *err)
{
	point_attach_fn *attach = point_kinds[p->kind].attach;
	const struct point *found = p->found;
	size_t n_refused = 0;
	int rc;

	if (p->name || !found || !found->n_names)
		return attach(s, p, p->name ? p->name : own_name(s, p), err);
	for (size_t i = 0; i < found->n_names; i++) {
		rc = attach(s, p, found->names[i], err);
		if (rc < 0 && !found->spec.is_glob)
			return rc;
		n_refused += rc < 0;
		if (rc < 0 && n_refused == 1)
			session_note(s, "%s is left out: %s", found->names[i], err->text);
	}
	if (n_refused > 1)
		session_note(s, "%s: %zu of %zu points are left out", text_of(p), n_refused,
			found->n_names);
	return 0;
}
