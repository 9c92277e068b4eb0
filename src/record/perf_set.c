/* SPDX-License-Identifier: MIT */
/*
 * Opening perf events. One attr per event is settled by opening it on ourselves and taking away
 * what the kernel refuses, in this order: build-ids (before 5.12), switch records (before 4.3),
 * the kernel side (not permitted). Then every task gets one event per CPU, since the kernel does
 * not map a ring for an inherited event that is not bound to a CPU; the first event of a CPU owns
 * the ring and the others write into it. With a filter there is one event per CPU for all tasks.
 *
 * What the kernel tells of as it happens (kernel_sources.h) are further events, whose records hold
 * next to nothing. They never own a ring, so that they can be closed at any time.
 */
#include "record/perf_set.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/search.h"
#include "process/proc.h"
#include "record/deep_stacks.h"
#include "record/task_filter.h"

#define CPUS_MAX	    4096
#define RING_TOTAL_BYTES    ((size_t)256 << 20) /* over all CPUs */
#define RING_BYTES_MAX	    ((size_t)8 << 20)
#define RING_BYTES_MIN	    ((size_t)128 << 10)
#define STACK_BYTES_DEFAULT 32768u
#define STACK_BYTES_MIN	    4096u
#define STACK_BYTES_MAX	    64512u /* a record, all in all, is less than 64 KiB */
#define SHORT_PERIOD	    0.125  /* of the usual; down to the half of it */
#define RING_SAMPLES_MIN    48	   /* stack copies a ring must hold, else they are made smaller */

/* x86 sample_regs_user: ax bx cx dx si di bp sp ip, r8-r15. */
#define USER_REGS_MASK 0xff01ffu

static int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void note(struct perf_set *set, const char *text)
{
	vec_push(&set->notes, mem_strdup(text));
}

/* 2 when it cannot be read. */
static int paranoid_level(void)
{
	return proc_setting("kernel/perf_event_paranoid", 2);
}

size_t perf_online_cpus(unsigned *cpus, size_t max)
{
	struct buf b = {0};
	size_t n = 0;
	const char *p;

	if (file_read(&b, "/sys/devices/system/cpu/online", 4096, NULL) < 0) {
		long count = sysconf(_SC_NPROCESSORS_ONLN);

		for (n = 0; n < max && (long)n < count; n++)
			cpus[n] = (unsigned)n;
		return n;
	}
	/* "0-3,8,10-11" */
	for (p = buf_text(&b); *p >= '0' && *p <= '9';) {
		char *end;
		unsigned long from = strtoul(p, &end, 10), to = from;

		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		for (; from <= to && n < max; from++)
			cpus[n++] = (unsigned)from;
		p = *end == ',' ? end + 1 : end;
	}
	buf_release(&b);
	return n;
}

static void fill_attr(struct perf_event_attr *a, const struct perf_options *o,
	const struct event_spec *spec, bool first)
{
	memset(a, 0, sizeof(*a));
	a->size = sizeof(*a);
	a->type = spec ? spec->type : PERF_TYPE_SOFTWARE;
	a->config = spec ? spec->config : PERF_COUNT_SW_DUMMY;
	a->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			 PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
	if (!o->pc_only)
		a->sample_type |=
			PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	a->sample_regs_user = o->pc_only ? 0 : USER_REGS_MASK;
	a->sample_stack_user = o->pc_only ? 0 : o->stack_bytes;
	a->exclude_callchain_user = !o->pc_only; /* user frames come from our own walk */
	if (spec && spec->every) {
		a->sample_period = 1;
	} else {
		a->freq = 1;
		a->sample_freq = o->hz;
	}
	a->disabled = 1;
	a->inherit = 1;
	a->sample_id_all = 1;
	a->use_clockid = 1;
	a->clockid = CLOCK_MONOTONIC;
	a->watermark = 1;
	a->exclude_kernel = o->user_only;
	a->exclude_hv = 1;
	if (first) {
		a->mmap = a->mmap2 = a->comm = a->comm_exec = a->task = 1;
		a->build_id = 1;
		a->context_switch = !o->no_switches;
	}
}

static int probe_attr(struct perf_set *set, struct perf_event_attr *a, unsigned cpu)
{
	for (;;) {
		int fd = perf_event_open(a, 0, (int)cpu);

		if (fd >= 0) {
			close(fd);
			return 0;
		}
		if (errno == EINVAL && a->build_id) {
			a->build_id = 0;
			set->has_build_id = false;
		} else if (errno == EINVAL && a->context_switch) {
			a->context_switch = 0;
			set->has_switch = false;
			note(set,
				"this kernel gives no context-switch records (they came with 4.3)");
		} else if ((errno == EACCES || errno == EPERM) && !a->exclude_kernel) {
			a->exclude_kernel = 1;
			a->sample_type &= ~(uint64_t)PERF_SAMPLE_CALLCHAIN;
			set->has_kernel = false;
		} else {
			return errno;
		}
	}
}

static int open_failure(const struct event_spec *spec, int errnum, struct err *err)
{
	const char *name = spec ? spec->name : "dummy";

	if (errnum == EACCES || errnum == EPERM)
		return err_set(err, ERR_PERMISSION,
			"'%s': perf events are not permitted (kernel.perf_event_paranoid is %d; "
			"'sysctl kernel.perf_event_paranoid=2', CAP_PERFMON or root would do)",
			name, paranoid_level());
	if (errnum == ENOENT || errnum == EOPNOTSUPP || errnum == ENODEV)
		return err_set(err, ERR_UNSUPPORTED,
			"'%s': this machine has no such counter (virtual machines often have none); "
			"'-e cpu-clock' always works",
			name);
	if (errnum == ENOSYS)
		return err_set(err, ERR_UNSUPPORTED,
			"'%s': this kernel was built without perf events", name);
	if (errnum == EINVAL && spec)
		return err_set(err, ERR_UNSUPPORTED,
			"'%s': the kernel refuses this event at this frequency (the limit is in "
			"/proc/sys/kernel/perf_event_max_sample_rate)",
			name);
	return err_sys(err, errnum, "'%s': cannot open the perf event", name);
}

static int settle_attrs(struct perf_set *set, const struct perf_options *o, struct err *err)
{
	set->has_samples = o->n_events > 0;
	set->n_attrs = o->n_events ? o->n_events : 1;
	set->has_kernel = !o->user_only;
	set->has_build_id = true;
	set->has_switch = !o->no_switches;
	for (size_t i = 0; i < set->n_attrs; i++) {
		const struct event_spec *spec = o->n_events ? &o->events[i] : NULL;
		struct perf_event_attr *a = &set->attrs[i];
		int errnum;

		fill_attr(a, o, spec, i == 0);
		errnum = probe_attr(set, a, set->rings[0].cpu);
		if (errnum)
			return open_failure(spec, errnum, err);
	}
	for (size_t i = 0; i < o->n_events; i++)
		if (o->events[i].is_wait && !set->has_kernel)
			return err_set(err, ERR_PERMISSION,
				"'wall': waiting begins inside the kernel, where samples are not "
				"permitted (kernel.perf_event_paranoid is %d, 1 or less or root is "
				"needed, and no --user-only)",
				paranoid_level());
	if (!set->has_kernel && !o->user_only)
		note(set,
			"kernel time is not shown (kernel.perf_event_paranoid forbids it; 'sysctl "
			"kernel.perf_event_paranoid=1' or root would show it)");
	return 0;
}

static size_t first_ring_size(size_t n_cpus)
{
	size_t bytes = RING_BYTES_MAX;

	while (bytes > RING_BYTES_MIN && bytes * n_cpus > RING_TOTAL_BYTES)
		bytes /= 2;
	return bytes;
}

/* Opens one event and lets its ring write for the CPU, or joins the ring that is there. */
static int attach_ring(struct perf_set *set, struct perf_ring *ring, int fd, struct err *err)
{
	if (ring->page) {
		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0)
			return err_sys(err, errno, "perf events: cannot share the ring of CPU %u",
				ring->cpu);
		return 0;
	}
	while (!perf_ring_map(ring, fd, set->ring_bytes)) {
		/* Over the locked-memory limit: a smaller ring for all that follow. */
		if ((errno != EPERM && errno != ENOMEM) || set->ring_bytes <= RING_BYTES_MIN)
			return err_sys(err, errno,
				"perf events: cannot map a ring of %zu bytes for CPU %u "
				"(kernel.perf_event_mlock_kb or 'ulimit -l' is too small)",
				set->ring_bytes, ring->cpu);
		set->ring_bytes /= 2;
	}
	return 0;
}

static void give_up(struct perf_set *set, enum kernel_group group, const char *why)
{
	char *text = kernel_group_missing(group, why);

	perf_set_stop(set, group);
	note(set, text);
	free(text);
}

static void settle_kernel_events(struct perf_set *set, const struct perf_options *o)
{
	for (int i = 0; i < KERNEL_N_GROUPS; i++) {
		enum kernel_group group = (enum kernel_group)i;
		bool is_partial;
		struct err err;

		if (group != KERNEL_GROUP_MUNMAP && !o->kernel[group])
			continue;
		if (group == KERNEL_GROUP_MUNMAP && getenv("WEIR_NO_MUNMAP"))
			give_up(set, group, "WEIR_NO_MUNMAP is set");
		else if (kernel_sources_settle(set->kernel, group, o->user_only,
				 group == KERNEL_GROUP_MUNMAP && set->filter, set->rings[0].cpu,
				 &is_partial, &err) < 0)
			give_up(set, group, err.text);
		else if (is_partial)
			note(set, "page faults inside the kernel are not counted "
				  "(kernel.perf_event_paranoid forbids it; 'sysctl "
				  "kernel.perf_event_paranoid=1' or root would count them)");
	}
}

static bool is_in_group(uint32_t event_i, enum kernel_group group)
{
	return event_i >= PERF_EVENT_KERNEL && event_i < PERF_EVENT_ANCHOR &&
	       kernel_event_group((enum kernel_event)(event_i - PERF_EVENT_KERNEL)) == group;
}

void perf_set_stop(struct perf_set *set, enum kernel_group group)
{
	size_t n = 0;

	for (size_t i = 0; i < set->fds.n; i++) {
		if (is_in_group(set->fds.v[i].event_i, group))
			close(set->fds.v[i].fd);
		else
			set->fds.v[n++] = set->fds.v[i];
	}
	set->fds.n = n;
	for (uint32_t i = 0; i < KERNEL_N_EVENTS; i++)
		if (is_in_group(PERF_EVENT_KERNEL + i, group))
			set->kernel[i].is_on = false;
}

static bool give_up_first_group(struct perf_set *set)
{
	for (int i = 0; i < KERNEL_N_EVENTS; i++) {
		if (!set->kernel[i].is_on)
			continue;
		give_up(set, kernel_event_group((enum kernel_event)i),
			"too many open files; a higher 'ulimit -n' is needed");
		return true;
	}
	return false;
}

/* A recording does not fail for want of the descriptors that kernel events take. */
static int open_event(struct perf_set *set, pid_t pid, const struct perf_ring *ring,
	uint32_t event_i, struct perf_event_attr *attr)
{
	int fd = perf_event_open(attr, pid, (int)ring->cpu);

	while (fd < 0 && errno == EMFILE && event_i < PERF_EVENT_KERNEL && give_up_first_group(set))
		fd = perf_event_open(attr, pid, (int)ring->cpu);
	return fd;
}

static int add_failure(pid_t pid, unsigned cpu, int errnum, struct err *err)
{
	if (errnum == ESRCH)
		return err_set(err, ERR_NOT_FOUND, "process %d: is gone", pid);
	if (errnum == EMFILE)
		return err_set(err, ERR_LIMIT,
			"perf events: too many open files (a higher 'ulimit -n' is needed)");
	if (pid > 0 && (errnum == EACCES || errnum == EPERM))
		return err_set(err, ERR_PERMISSION,
			"process %d: belongs to somebody else (root or CAP_PERFMON is needed)",
			pid);
	if (pid < 0 && (errnum == EACCES || errnum == EPERM))
		return err_set(err, ERR_PERMISSION,
			"system-wide recording is not permitted (kernel.perf_event_paranoid "
			"is %d, 0 or less, root or CAP_PERFMON is needed)",
			paranoid_level());
	return err_sys(err, errnum, "perf events: cannot open on CPU %u", cpu);
}

/* What runs at each sample of an event. */
static int attach_program(struct perf_set *set, int fd, struct err *err)
{
	if (set->deep)
		return deep_stacks_attach(set->deep, fd, err);
	return set->filter ? task_filter_attach(set->filter, fd, err) : 0;
}

static int add_event(
	struct perf_set *set, pid_t pid, struct perf_ring *ring, uint32_t event_i, struct err *err)
{
	bool is_kernel = event_i >= PERF_EVENT_KERNEL;
	struct perf_event_attr attr =
		is_kernel ? set->kernel[event_i - PERF_EVENT_KERNEL].attr : set->attrs[event_i];
	uint64_t id = 0;
	int fd, rc;

	attr.enable_on_exec = pid >= 0 && set->scope == PERF_SCOPE_COMMAND;
	attr.inherit = pid >= 0;
	attr.sample_stack_user = attr.sample_stack_user ? set->stack_bytes : 0;
	attr.wakeup_watermark = (uint32_t)(set->ring_bytes / 4);
	fd = open_event(set, pid, ring, event_i, &attr);
	if (fd < 0)
		return add_failure(pid, ring->cpu, errno, err);
	rc = attach_ring(set, ring, fd, err);
	if (rc == 0 && !is_kernel && set->has_samples)
		rc = attach_program(set, fd, err);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	/* The collector reads the map once it runs: what is opened later is known by not being in it. */
	if (!set->is_late && ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0)
		*map_ensure(&set->event_of_id, id, NULL) = event_i;
	vec_push(&set->fds, ((struct perf_fd){fd, event_i}));
	return 0;
}

static int add_kernel_events(struct perf_set *set, pid_t pid, struct err *err)
{
	for (uint32_t e = 0; e < KERNEL_N_EVENTS; e++) {
		if (e == KERNEL_EVENT_MUNMAP && set->unmaps_wait)
			continue;
		for (size_t r = 0; r < set->n_rings && set->kernel[e].is_on; r++) {
			int rc = add_event(set, pid, &set->rings[r], PERF_EVENT_KERNEL + e, err);

			if (rc == ERR_NOT_FOUND)
				return rc;
			if (rc < 0)
				give_up(set, kernel_event_group((enum kernel_event)e), err->text);
		}
	}
	return 0;
}

static int add_events(struct perf_set *set, pid_t pid, struct err *err)
{
	for (size_t r = 0; r < set->n_rings; r++) {
		for (uint32_t e = 0; e < set->n_attrs; e++) {
			int rc = add_event(set, pid, &set->rings[r], e, err);

			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

static void enable(struct perf_set *set, bool of_cpus_only)
{
	for (size_t i = 0; i < set->fds.n; i++)
		if (!of_cpus_only || set->fds.v[i].event_i < set->n_attrs)
			ioctl(set->fds.v[i].fd, PERF_EVENT_IOC_ENABLE, 0);
}

/* The command's exec begins what the filter lets through, so its events can be on before. */
static int follow(struct perf_set *set, pid_t pid, struct err *err)
{
	int rc = 0;

	if (!set->has_cpu_events)
		rc = add_events(set, -1, err);
	if (rc == 0 && !set->has_cpu_events && set->scope == PERF_SCOPE_COMMAND)
		enable(set, true);
	set->has_cpu_events = true;
	if (rc == 0 && kill(pid, 0) < 0 && errno == ESRCH)
		rc = err_set(err, ERR_NOT_FOUND, "process %d: is gone", pid);
	return rc < 0 ? rc : task_filter_add(set->filter, pid, err);
}

static bool is_clock(const struct perf_set *set, uint32_t event_i)
{
	const struct perf_event_attr *a = event_i < set->n_attrs ? &set->attrs[event_i] : NULL;

	return a && a->type == PERF_TYPE_SOFTWARE &&
	       (a->config == PERF_COUNT_SW_CPU_CLOCK || a->config == PERF_COUNT_SW_TASK_CLOCK);
}

static void set_period(struct perf_set *set, uint64_t ns)
{
	for (size_t i = 0; i < set->fds.n; i++)
		if (is_clock(set, set->fds.v[i].event_i))
			ioctl(set->fds.v[i].fd, PERF_EVENT_IOC_PERIOD, &ns);
}

/* The kernel lets two tasks exchange their events when it switches between them, where those are all copies
 * of the same ones; and the events of a task that has ended cannot be changed any more. One event that
 * has no copies keeps the first ones with the first task. */
static void add_anchor(struct perf_set *set, pid_t pid)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1};
	int fd = perf_event_open(&attr, pid, -1);

	if (fd >= 0)
		vec_push(&set->fds, ((struct perf_fd){fd, PERF_EVENT_ANCHOR}));
}

int perf_set_add(struct perf_set *set, pid_t pid, struct err *err)
{
	int rc = set->filter ? follow(set, pid, err) : add_events(set, pid, err);

	/* What its copies report is told from what it reports itself. */
	if (rc == 0 && set->period_ns) {
		add_anchor(set, pid);
		set_period(set, set->period_ns - 1);
	}
	return rc < 0 ? rc : add_kernel_events(set, pid, err);
}

void perf_set_watch_unmaps(struct perf_set *set)
{
	struct err err;
	int rc = 0;

	if (!set->unmaps_wait)
		return;
	set->unmaps_wait = false;
	set->is_late = true;
	for (size_t r = 0; r < set->n_rings && rc == 0 && set->kernel[KERNEL_EVENT_MUNMAP].is_on;
		r++) {
		rc = add_event(
			set, -1, &set->rings[r], PERF_EVENT_KERNEL + KERNEL_EVENT_MUNMAP, &err);
		if (rc == 0)
			ioctl(set->fds.v[set->fds.n - 1].fd, PERF_EVENT_IOC_ENABLE, 0);
	}
	if (rc < 0)
		give_up(set, KERNEL_GROUP_MUNMAP, err.text);
	set->is_late = false;
}

/* A sample weighs what its timer took, so that only what is left at a task's end is missing: half a period
 * of a short one. Not always the same, so that tasks of one length are not all cut at one place: the
 * steps of the golden ratio fill the range evenly. */
void perf_set_vary(struct perf_set *set, bool varies, uint64_t time)
{
	double step = (double)set->periods.n * 0.6180339887498949;
	uint64_t ns = set->period_ns - 1;

	if (!set->period_ns || (!varies && !set->periods.n))
		return;
	if (varies)
		ns = (uint64_t)((double)ns * SHORT_PERIOD * exp2(floor(step) - step));
	vec_push(&set->periods, ((struct perf_period){time, ns}));
	set_period(set, ns);
}

uint64_t perf_set_weight(const struct perf_set *set, uint64_t period, uint64_t time)
{
	size_t i;

	if (period != set->period_ns || !set->periods.n)
		return period;
	i = SEARCH(0, set->periods.n, k, set->periods.v[k].time <= time);
	return i ? set->periods.v[i - 1].ns : period;
}

static uint32_t fitting_stack_bytes(const struct perf_set *set, uint32_t bytes)
{
	while (bytes > STACK_BYTES_MIN && (size_t)bytes * RING_SAMPLES_MIN > set->ring_bytes)
		bytes /= 2;
	return bytes & ~7u;
}

/*
 * How large rings may be is found by mapping one for ourselves and giving it back; the stack copy
 * is then made small enough that a ring holds RING_SAMPLES_MIN of them.
 */
static int settle_sizes(struct perf_set *set, const struct perf_options *o, struct err *err)
{
	struct perf_ring *trial = mem_calloc(set->n_rings, sizeof(*trial));
	int rc = 0;

	set->ring_bytes = first_ring_size(set->n_rings);
	for (size_t i = 0; i < set->n_rings && rc == 0; i++) {
		int fd = perf_event_open(&set->attrs[0], 0, (int)set->rings[i].cpu);

		trial[i].cpu = set->rings[i].cpu;
		trial[i].fd = fd;
		if (fd < 0)
			rc = err_sys(
				err, errno, "perf events: cannot open on CPU %u", trial[i].cpu);
		else
			rc = attach_ring(set, &trial[i], fd, err);
	}
	for (size_t i = 0; i < set->n_rings; i++) {
		perf_ring_unmap(&trial[i]);
		if (trial[i].fd > 0)
			close(trial[i].fd);
	}
	free(trial);
	set->stack_bytes = fitting_stack_bytes(set, o->stack_bytes);
	return rc;
}

/* Whether each event that is sampled takes the program: then the kernel need copy nothing. */
static int leave_stacks_to_bpf(struct perf_set *set, struct err *err)
{
	int rc = deep_stacks_open(&set->deep, set->n_rings, set->filter, err);

	for (size_t i = 0; i < set->n_attrs && rc == 0; i++) {
		FD_AUTO fd = perf_event_open(&set->attrs[i], 0, (int)set->rings[0].cpu);

		rc = fd < 0 ? err_sys(err, errno, "perf events: cannot open")
			    : deep_stacks_attach(set->deep, fd, err);
	}
	if (rc < 0) {
		deep_stacks_close(set->deep);
		set->deep = NULL;
		return rc;
	}
	for (size_t i = 0; i < set->n_attrs; i++) {
		set->attrs[i].sample_type &= ~(uint64_t)PERF_SAMPLE_STACK_USER;
		set->attrs[i].sample_stack_user = 0;
	}
	return 0;
}

/* Without BPF the kernel's copy is all there is, so it is made as large as it may be. */
static void settle_deep_stacks(struct perf_set *set, const struct perf_options *o)
{
	char text[320];

	if (!set->stack_bytes || o->pc_only || !o->n_events)
		return;
	if (leave_stacks_to_bpf(set, NULL) == 0)
		return;
	if (!o->stack_is_chosen)
		set->stack_bytes = fitting_stack_bytes(set, STACK_BYTES_MAX);
	snprintf(text, sizeof(text),
		"stacks deeper than %u bytes, and of code that keeps its caller's place below the stack "
		"pointer, are shown from the inside only (BPF is not permitted; root or CAP_BPF and "
		"CAP_PERFMON would complete them)",
		set->stack_bytes);
	note(set, text);
}

/* Nothing is said where it is not permitted: what the samples do not cover is, at the end. */
static void settle_filter(struct perf_set *set, const struct perf_options *o)
{
	int fd;

	if (o->scope == PERF_SCOPE_MACHINE && !task_numbers_are_whole())
		note(set,
			"processes outside of this pid namespace have no number here: all of them are "
			"shown as process 0");
	if (o->scope == PERF_SCOPE_MACHINE || getenv("WEIR_NO_FILTER"))
		return;
	fd = perf_event_open(&set->attrs[0], -1, (int)set->rings[0].cpu);
	if (fd < 0)
		return;
	close(fd);
	if (task_filter_open(&set->filter, o->scope == PERF_SCOPE_COMMAND, NULL) < 0)
		return;
	for (size_t i = 0; i < set->n_attrs; i++)
		set->attrs[i].exclude_idle = set->attrs[i].type == PERF_TYPE_SOFTWARE;
}

int perf_set_init(struct perf_set *set, const struct perf_options *options, struct err *err)
{
	struct perf_options o = *options;
	unsigned cpus[CPUS_MAX];
	int rc;

	memset(set, 0, sizeof(*set));
	o.stack_is_chosen = o.stack_bytes != 0;
	if (!o.stack_bytes)
		o.stack_bytes = STACK_BYTES_DEFAULT;
	set->n_rings = perf_online_cpus(cpus, CPUS_MAX);
	set->rings = mem_calloc(set->n_rings + 1, sizeof(*set->rings));
	for (size_t i = 0; i < set->n_rings; i++)
		set->rings[i] = (struct perf_ring){.cpu = cpus[i], .fd = -1};
	rc = settle_attrs(set, &o, err);
	if (rc == 0)
		rc = settle_sizes(set, &o, err);
	set->scope = o.scope;
	if (rc == 0)
		settle_filter(set, &o);
	if (rc == 0)
		settle_deep_stacks(set, &o);
	if (rc == 0)
		settle_kernel_events(set, &o);
	if (o.scope == PERF_SCOPE_COMMAND && !set->filter && is_clock(set, 0))
		set->period_ns = 1000000000u / o.hz;
	set->unmaps_wait = set->filter && set->kernel[KERNEL_EVENT_MUNMAP].is_on;
	if (rc < 0)
		perf_set_release(set);
	return rc;
}

void perf_set_release(struct perf_set *set)
{
	for (size_t i = 0; i < set->n_rings; i++)
		perf_ring_unmap(&set->rings[i]);
	for (size_t i = 0; i < set->fds.n; i++)
		close(set->fds.v[i].fd);
	deep_stacks_close(set->deep);
	task_filter_close(set->filter);
	vec_release_all(&set->notes);
	vec_release(&set->fds);
	vec_release(&set->periods);
	map_release(&set->event_of_id);
	free(set->rings);
	memset(set, 0, sizeof(*set));
}

void perf_set_enable(struct perf_set *set)
{
	enable(set, false);
}

/* Backwards: entries end before exits do, as they began after them. */
void perf_set_disable(struct perf_set *set)
{
	for (size_t i = set->fds.n; i-- > 0;)
		ioctl(set->fds.v[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

uint64_t perf_set_cpu_ns(const struct perf_set *set)
{
	uint64_t sum = 0, count;

	for (size_t i = 0; i < set->fds.n; i++)
		if (!set->filter && is_clock(set, set->fds.v[i].event_i) &&
			read(set->fds.v[i].fd, &count, sizeof(count)) == sizeof(count))
			sum += count;
	return sum;
}
