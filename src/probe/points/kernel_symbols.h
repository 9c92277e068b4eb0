/* SPDX-License-Identifier: MIT */
/* Addresses of the running kernel's symbols. */
#ifndef WEIR_PROBE_POINTS_KERNEL_SYMBOLS_H
#define WEIR_PROBE_POINTS_KERNEL_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

/* The first of that name in /proc/kallsyms, which is read each time; false when there is none, or its
 * address is hidden (kernel.kptr_restrict). */
bool kernel_symbol_address(const char *name, uint64_t *out);

#endif
