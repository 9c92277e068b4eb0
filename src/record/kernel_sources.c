/* SPDX-License-Identifier: MIT */
/*
 * Permissions, as the kernel has them: a tracepoint's number is readable by whoever may read
 * tracefs. Its records hold raw data, which is permitted for the system call tracepoints of one's
 * own tasks, and for all others with CAP_PERFMON only. The tracepoints of single system calls count
 * as user code (they are given the user's registers), all others as the kernel's.
 */
#include "record/kernel_sources.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

static const struct kernel_event_row {
	enum kernel_group group;
	bool is_optional; /* the group works without it */
	bool is_user;	  /* the kernel counts it as user code */
	struct tracepoint_spec point;
} events[KERNEL_N_EVENTS] = {
	[KERNEL_EVENT_MUNMAP] = {KERNEL_GROUP_MUNMAP, false, true,
		{"syscalls/sys_enter_munmap", {"addr", "len"}}},
	[KERNEL_EVENT_SYS_ENTER] = {KERNEL_GROUP_SYSCALLS, false, false,
		{"raw_syscalls/sys_enter", {"id"}}},
	[KERNEL_EVENT_SYS_EXIT] = {KERNEL_GROUP_SYSCALLS, false, false,
		{"raw_syscalls/sys_exit", {"id"}}},
	[KERNEL_EVENT_FAULT] = {KERNEL_GROUP_FAULTS, false, false, {0}},
	[KERNEL_EVENT_IRQ_ENTRY] = {KERNEL_GROUP_INTERRUPTS, false, false,
		{"irq/irq_handler_entry", {"irq"}}},
	[KERNEL_EVENT_IRQ_EXIT] = {KERNEL_GROUP_INTERRUPTS, false, false,
		{"irq/irq_handler_exit", {"irq"}}},
	[KERNEL_EVENT_SOFTIRQ_ENTRY] = {KERNEL_GROUP_INTERRUPTS, false, false,
		{"irq/softirq_entry", {"vec"}}},
	[KERNEL_EVENT_SOFTIRQ_EXIT] = {KERNEL_GROUP_INTERRUPTS, false, false,
		{"irq/softirq_exit", {"vec"}}},
	[KERNEL_EVENT_TIMER_ENTRY] = {KERNEL_GROUP_INTERRUPTS, true, false,
		{"irq_vectors/local_timer_entry", {"vector"}}},
	[KERNEL_EVENT_TIMER_EXIT] = {KERNEL_GROUP_INTERRUPTS, true, false,
		{"irq_vectors/local_timer_exit", {"vector"}}},
};

static const struct {
	const char *missing; /* the sentence up to the reason */
	const char *refusal; /* what the kernel would want */
} groups[KERNEL_N_GROUPS] = {
	[KERNEL_GROUP_MUNMAP] = {"the end of a mapping is known only by what takes its place "
				 "(munmap calls are not recorded: ",
		"the kernel refuses; root may"},
	[KERNEL_GROUP_SYSCALLS] = {"system calls are not recorded (",
		"the kernel refuses; kernel.perf_event_paranoid 1 or less, CAP_PERFMON or root is "
		"needed"},
	[KERNEL_GROUP_FAULTS] = {"page faults are not recorded as events (",
		"the kernel refuses; root may"},
	[KERNEL_GROUP_INTERRUPTS] = {"interrupts are not recorded (",
		"the kernel refuses; CAP_PERFMON or root is needed"},
};

enum kernel_group kernel_event_group(enum kernel_event event)
{
	return events[event].group;
}

const struct tracepoint_spec *kernel_event_tracepoint(enum kernel_event event)
{
	return events[event].point.name ? &events[event].point : NULL;
}

char *kernel_group_missing(enum kernel_group group, const char *why)
{
	return mem_printf("%s%s)", groups[group].missing, why);
}

static int try_open(const struct perf_event_attr *attr, unsigned cpu)
{
	struct perf_event_attr copy = *attr;
	int fd = (int)syscall(SYS_perf_event_open, &copy, 0, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* The same as for a tracepoint, without raw data. */
static void fault_attr(struct perf_event_attr *attr)
{
	tracepoint_attr(&(struct tracepoint){0}, attr);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_PAGE_FAULTS;
	attr->sample_type &= ~(uint64_t)PERF_SAMPLE_RAW;
}

static int settle_event(struct kernel_source *source, enum kernel_event event, bool user_only,
	bool is_later, unsigned cpu, bool *is_partial, struct err *err)
{
	const struct kernel_event_row *row = &events[event];
	int errnum, rc;

	if (row->point.name) {
		rc = tracepoint_find(&source->point, &row->point, err);
		if (rc < 0)
			return rc;
		tracepoint_attr(&source->point, &source->attr);
		source->attr.exclude_kernel = row->is_user;
	} else {
		fault_attr(&source->attr);
		source->attr.exclude_kernel = user_only;
	}
	/* Closing a tracepoint takes tens of milliseconds. */
	errnum = is_later ? 0 : try_open(&source->attr, cpu);
	if ((errnum == EACCES || errnum == EPERM) && !row->point.name &&
		!source->attr.exclude_kernel) {
		source->attr.exclude_kernel = 1;
		*is_partial = true;
		errnum = try_open(&source->attr, cpu);
	}
	source->is_on = !errnum;
	if (errnum == EACCES || errnum == EPERM)
		return err_set(err, ERR_PERMISSION, "%s", groups[row->group].refusal);
	return errnum ? err_sys(err, errnum, "the kernel refuses") : 0;
}

int kernel_sources_settle(struct kernel_source sources[KERNEL_N_EVENTS], enum kernel_group group,
	bool user_only, bool is_later, unsigned cpu, bool *is_partial, struct err *err)
{
	int rc = 0;

	*is_partial = false;
	for (int i = 0; i < KERNEL_N_EVENTS && rc == 0; i++) {
		if (events[i].group != group)
			continue;
		rc = settle_event(&sources[i], (enum kernel_event)i, user_only, is_later, cpu,
			is_partial, err);
		if (rc < 0 && events[i].is_optional)
			rc = 0;
	}
	for (int i = 0; i < KERNEL_N_EVENTS && rc < 0; i++)
		if (events[i].group == group)
			sources[i].is_on = false;
	/* An entry without its exit would never end. */
	sources[KERNEL_EVENT_TIMER_ENTRY].is_on &= sources[KERNEL_EVENT_TIMER_EXIT].is_on;
	return rc;
}
