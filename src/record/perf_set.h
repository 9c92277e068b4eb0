/* SPDX-License-Identifier: MIT */
/*
 * The perf events of one recording: what is sampled, on which tasks, and one ring per CPU. What
 * the kernel permits and knows is probed once, by opening; what had to be left out is said in
 * `notes`.
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

struct perf_options {
	struct event_spec events[EVENT_SPECS_MAX];
	size_t n_events;	      /* 0: side-band records only */
	uint64_t hz;		      /* for timers and counters; software events fire every time */
	bool pc_only;		      /* no stacks */
	bool user_only;		      /* leave the kernel out even where it is permitted */
	uint32_t stack_bytes;	      /* of the stack copy; 0 = choose */
	bool stack_is_chosen;	      /* set by perf_set_init */
	bool no_switches;	      /* no context-switch records */
	bool kernel[KERNEL_N_GROUPS]; /* events of the kernel that are wanted; munmap always is */
};

#define PERF_EVENT_KERNEL EVENT_SPECS_MAX /* + enum kernel_event: the event_i of such an event */

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
	bool has_kernel, has_build_id, has_switch;
	struct kernel_source kernel[KERNEL_N_EVENTS]; /* those that are on are recorded */
	struct deep_stacks *deep; /* NULL: not permitted, or no stacks are taken */
	struct map event_of_id;	  /* perf's event id -> event_i */
	VEC(char *) notes;	  /* sentences about what is missing and how to get it */
};

int perf_set_init(struct perf_set *set, const struct perf_options *options, struct err *err);
void perf_set_release(struct perf_set *set);

/* A task (tid) with all it will fork and clone; -1: every task on every CPU. With `on_exec` counting
 * begins at its exec, else at perf_set_enable. ERR_NOT_FOUND when the task is gone. */
int perf_set_add(struct perf_set *set, pid_t tid, bool on_exec, struct err *err);

void perf_set_enable(struct perf_set *set);
void perf_set_disable(struct perf_set *set);
/* Gives a group of kernel events up, with their descriptors. Their records that are in the rings
 * stay there. */
void perf_set_stop(struct perf_set *set, enum kernel_group group);
/* Sum of an event's counts so far, children included. */
uint64_t perf_set_count(const struct perf_set *set, uint32_t event_i);

/* The online CPUs; returns how many. */
size_t perf_online_cpus(unsigned *cpus, size_t max);

#endif
