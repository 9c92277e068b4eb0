/* SPDX-License-Identifier: MIT */
/*
 * The perf events of one recording: what is sampled, on which tasks, and one ring per CPU. What
 * the kernel permits and knows is probed once, by opening; what had to be left out is said in
 * `notes`.
 *
 * Where it is permitted the events belong to the CPUs and a filter drops the samples of other tasks
 * (task_filter.h); records about processes then come of the whole machine, with the ids that we see.
 * Else the events belong to the tasks, and to all that they make.
 */
#ifndef WEIR_RECORD_PERF_SET_H
#define WEIR_RECORD_PERF_SET_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "record/event_spec.h"
#include "record/kernel_sources.h"
#include "record/perf_ring.h"

struct deep_stacks;
struct task_filter;

enum perf_scope {
	PERF_SCOPE_MACHINE, /* every task */
	PERF_SCOPE_COMMAND, /* one task from its exec on, and all that it makes */
	PERF_SCOPE_TASKS    /* some tasks, and all that they make */
};

struct perf_options {
	struct event_spec events[EVENT_SPECS_MAX];
	size_t n_events;      /* 0: side-band records only */
	uint64_t hz;	      /* for timers and counters; software events fire every time */
	bool pc_only;	      /* no stacks */
	bool user_only;	      /* leave the kernel out even where it is permitted */
	uint32_t stack_bytes; /* of the kernel's copy, where BPF does not copy all; 0 = choose */
	bool stack_is_chosen; /* set by perf_set_init */
	bool no_switches;     /* no context-switch records */
	enum perf_scope scope;
	bool kernel[KERNEL_N_GROUPS]; /* events of the kernel that are wanted; munmap always is */
};

#define PERF_EVENT_KERNEL EVENT_SPECS_MAX /* + enum kernel_event: the event_i of such an event */

/* From `time` on the timers that tasks are born with have this period. */
struct perf_period {
	uint64_t time, ns;
};

#define PERF_EVENT_ANCHOR (PERF_EVENT_KERNEL + KERNEL_N_EVENTS) /* counts nothing */

struct perf_fd {
	int fd;
	uint32_t event_i;
};

struct perf_set {
	struct perf_event_attr attrs[EVENT_SPECS_MAX];
	size_t n_attrs;
	VEC(struct perf_fd) fds;
	struct perf_ring *rings; /* one per online CPU */
	size_t n_rings;
	size_t ring_bytes;
	uint32_t stack_bytes;
	bool has_samples, has_kernel, has_build_id, has_switch;
	struct kernel_source kernel[KERNEL_N_EVENTS]; /* those that are on are recorded */
	enum perf_scope scope;
	struct task_filter *filter; /* NULL: not permitted, or every task is recorded */
	bool has_cpu_events;	    /* with a filter: the events of the CPUs are open */
	bool unmaps_wait;	    /* munmap calls could be told of, but are not yet */
	bool is_late;		    /* what is being opened is not in event_of_id */
	uint64_t
		period_ns; /* of timers of the command's tasks, which can be varied; 0: they cannot */
	VEC(struct perf_period) periods; /* as they were varied, in order of time */
	struct deep_stacks *deep;	 /* NULL: not permitted, or no stacks are taken */
	struct map event_of_id;		 /* perf's event id -> event_i */
	VEC(char *) notes;		 /* sentences about what is missing and how to get it */
};

int perf_set_init(struct perf_set *set, const struct perf_options *options, struct err *err);
void perf_set_release(struct perf_set *set);

/* A task (tid) with all it will fork and clone; -1, with PERF_SCOPE_MACHINE: every task on every CPU.
 * With PERF_SCOPE_COMMAND counting begins at its exec, else at perf_set_enable. ERR_NOT_FOUND when the
 * task is gone. */
int perf_set_add(struct perf_set *set, pid_t tid, struct err *err);

void perf_set_enable(struct perf_set *set);
void perf_set_disable(struct perf_set *set);
/* Gives a group of kernel events up, with their descriptors. Their records that are in the rings
 * stay there. */
void perf_set_stop(struct perf_set *set, enum kernel_group group);
/* Timers of tasks begin with a whole period, so that tasks which are shorter have no sample: those that are
 * born from now on get one between a sixteenth and an eighth of the usual. A sample stands for the period
 * of its timer; with `varies` false they are the usual ones again. Does nothing where timers
 * are those of CPUs. */
void perf_set_vary(struct perf_set *set, bool varies, uint64_t time);
/* What a sample that reports this period stands for: the first timer, which all others are copies of,
 * goes on to report the one that it was opened with. */
uint64_t perf_set_weight(const struct perf_set *set, uint64_t period, uint64_t time);

/* From now on munmap calls are told of, of all processes, unless they are already. The tracepoint makes
 * every system call of the machine dearer, so it waits for a program that is to be expected to unmap
 * code. */
void perf_set_watch_unmaps(struct perf_set *set);
/* CPU time of all that was recorded so far, when an event counts it; else 0. */
uint64_t perf_set_cpu_ns(const struct perf_set *set);

/* Whether its events belong to CPUs, and see all tasks. */
static inline bool perf_set_is_of_cpus(const struct perf_set *set)
{
	return set->filter || set->scope == PERF_SCOPE_MACHINE;
}

/* The online CPUs; returns how many. */
size_t perf_online_cpus(unsigned *cpus, size_t max);

#endif
