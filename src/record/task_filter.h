/* SPDX-License-Identifier: MIT */
/*
 * Samples by CPU, of some tasks only. A timer that belongs to a task begins anew with each task: one
 * that lives shorter than a period is never sampled, and a thousand of them are not either. The timer
 * of a CPU goes on whoever runs, so that each has its share; a BPF program then drops the samples of
 * all but the tasks that are followed, before they are written.
 *
 * Tasks are followed with all that they make, and are known by the address of their structure in the
 * kernel: thread ids mean something in one pid namespace only.
 */
#ifndef WEIR_RECORD_TASK_FILTER_H
#define WEIR_RECORD_TASK_FILTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "bpf/code.h"

struct task_filter;

/* With `on_exec` a task that is added is followed from its next exec on. Fails (with a sentence) where
 * BPF or one of the tracepoints is not permitted or not there. */
int task_filter_open(struct task_filter **out, bool on_exec, struct err *err);
void task_filter_close(struct task_filter *f);

/* A thread, by its id as we see it. Samples are dropped until the first is there. */
int task_filter_add(struct task_filter *f, pid_t tid, struct err *err);
/* Lets nothing but followed tasks through the perf event, for events that have no other program. */
int task_filter_attach(struct task_filter *f, int perf_fd, struct err *err);
/* How many tasks were not followed, because there were too many at a time. */
uint64_t task_filter_n_left_out(const struct task_filter *f);

/* For other programs of perf events: goes to `leave` when the current task is not followed. NULL:
 * all are. Uses r0 to r5, and the stack from TASK_FILTER_STACK downwards. */
#define TASK_FILTER_STACK (-64)
void task_filter_emit(struct bpf_code *c, const struct task_filter *f, int leave);
/* r0 = the id of the current thread as we see it, 0 when it is in another pid namespace; likewise. */
void task_number_emit(struct bpf_code *c);

/* Whether we see the number of every task of the machine: we are in the first pid namespace. */
bool task_numbers_are_whole(void);

#endif
