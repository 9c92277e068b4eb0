/* SPDX-License-Identifier: MIT */
/* Tracepoints and functions that this kernel has. */
#ifndef WEIR_PROBE_POINTS_FIND_KERNEL_H
#define WEIR_PROBE_POINTS_FIND_KERNEL_H

#include "probe/points/point.h"

/* Is there a way to attach them at all? A kernel built without CONFIG_KPROBES has no such events,
 * one without CONFIG_DYNAMIC_FTRACE no functions to follow. */
bool kernel_has_kprobes(void);
bool kernel_has_fentry(void);

/* Calls `each` for every tracepoint ("sched", "sched_switch"). */
typedef void kernel_name_fn(void *ctx, const char *group, const char *name);
int tracepoints_each(kernel_name_fn *each, void *ctx, struct err *err);
/* Calls `each` for every function that may have a kprobe, its module in front ("" for the kernel
 * itself); or, of the kernel itself, for every one that fentry knows (for `one` alone when it is there). */
int kernel_functions_each(kernel_name_fn *each, void *ctx, struct err *err);
int fentry_functions_each(const char *one, kernel_name_fn *each, void *ctx, struct err *err);

#endif
