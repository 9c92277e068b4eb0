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
int tracepoints_each(void (*each)(void *ctx, const char *category, const char *name), void *ctx,
	struct err *err);
/* Calls `each` for every function that may have a kprobe, module "" for the kernel itself; or, of
 * the kernel itself, for every one that fentry knows. */
int kernel_functions_each(
	void (*each)(void *ctx, const char *module, const char *name), void *ctx, struct err *err);
int fentry_functions_each(
	void (*each)(void *ctx, const char *module, const char *name), void *ctx, struct err *err);

#endif
