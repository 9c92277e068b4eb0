/* SPDX-License-Identifier: MIT */
/*
 * What the kernel itself can tell of as it happens, beside samples: munmap calls, system calls,
 * page faults, interrupts. Each is a perf event that fires every time, with a small record.
 */
#ifndef WEIR_RECORD_KERNEL_SOURCES_H
#define WEIR_RECORD_KERNEL_SOURCES_H

#include <linux/perf_event.h>
#include <stdbool.h>

#include "base/err.h"
#include "process/tracepoint.h"

/* Exits come first: events are switched on in this order, and an exit without its entry is
 * recognised at once. */
enum kernel_event {
	KERNEL_EVENT_MUNMAP,	    /* address, length; those of 32-bit programs are not told */
	KERNEL_EVENT_SYS_EXIT,	    /* number */
	KERNEL_EVENT_SYS_ENTER,	    /* number */
	KERNEL_EVENT_FAULT,	    /* a page fault */
	KERNEL_EVENT_IRQ_EXIT,	    /* a device's interrupt: its number */
	KERNEL_EVENT_IRQ_ENTRY,	    /* likewise */
	KERNEL_EVENT_SOFTIRQ_EXIT,  /* vector */
	KERNEL_EVENT_SOFTIRQ_ENTRY, /* likewise */
	KERNEL_EVENT_TIMER_EXIT,    /* the CPU's own timer: vector */
	KERNEL_EVENT_TIMER_ENTRY,   /* likewise */
	KERNEL_N_EVENTS
};

/* Events that are of use together only. */
enum kernel_group {
	KERNEL_GROUP_MUNMAP,
	KERNEL_GROUP_SYSCALLS,
	KERNEL_GROUP_FAULTS,
	KERNEL_GROUP_INTERRUPTS,
	KERNEL_N_GROUPS
};

struct kernel_source {
	bool is_on;
	struct tracepoint point; /* id 0: not a tracepoint */
	struct perf_event_attr attr;
};

enum kernel_group kernel_event_group(enum kernel_event event);
/* NULL for an event that is no tracepoint. */
const struct tracepoint_spec *kernel_event_tracepoint(enum kernel_event event);

/* Settles the group's events by opening each on ourselves, and sets is_on; on failure none of them
 * is on. Page faults inside the kernel are left out with `user_only`, or when they are not
 * permitted (*is_partial, then). With `is_later` nothing is opened: it is seen when they are used, if
 * ever, whether the kernel permits them. */
int kernel_sources_settle(struct kernel_source sources[KERNEL_N_EVENTS], enum kernel_group group,
	bool user_only, bool is_later, unsigned cpu, bool *is_partial, struct err *err);

/* "system calls are not recorded (WHY)"; freed by the caller. */
char *kernel_group_missing(enum kernel_group group, const char *why);

#endif
