/* SPDX-License-Identifier: MIT */
/* What this process has: free room near its code, modules, filters, threads. */
#ifndef WEIR_RT_BASE_PROC_SELF_H
#define WEIR_RT_BASE_PROC_SELF_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* A free stretch of `bytes` at most `reach` away from [start, end); 0 = none. */
uintptr_t maps_find_gap(uintptr_t start, uintptr_t end, uintptr_t bytes, uintptr_t reach);
/* Calls `each` with every stretch in which one file is mapped, from its first page on. */
bool maps_each_module(void (*each)(void *ctx, uintptr_t start, uintptr_t end), void *ctx);

unsigned filters_count(void); /* system call filters of this thread; 0 = none, or not known */
unsigned tasks_count(void);   /* threads of this process; 0 = not known */

#pragma GCC visibility pop

#endif
