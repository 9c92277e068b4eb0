/* SPDX-License-Identifier: MIT */
/* Trace points of the kernel: system calls by number, tracepoints, functions. */
#ifndef WEIR_PROBE_POINTS_FIND_KERNEL_H
#define WEIR_PROBE_POINTS_FIND_KERNEL_H

#include "base/arena.h"
#include "base/mem.h"
#include "probe/points/point.h"

#define KERNEL_NAMES_MAX (1u << 20) /* names that one point may mean */

struct name_list {
	VEC(const char *) v; /* in the arena; the caller releases the vector */
};
/* In byte order, each once. */
void name_list_sort(struct name_list *names);

/* Fills numbers and is_all_calls. */
bool find_syscalls(struct point *out, struct arena *arena, struct diags *d);
/* The number of a call as a script, or the kernel's tracepoints, name it; -1 = there is none. */
int syscall_number_of(enum mode mode, const char *name);

/* Fill names: "sched:sched_switch"; "sched_switch" of raw tracepoints; "MODULE:FUNC" or "FUNC" of
 * kernel functions. */
bool find_tracepoints(struct point *out, struct arena *arena, struct diags *d);
bool find_kernel_functions(struct point *out, struct arena *arena, struct diags *d);

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
