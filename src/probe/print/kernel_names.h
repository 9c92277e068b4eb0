/* SPDX-License-Identifier: MIT */
/* Names of kernel addresses, from /proc/kallsyms, which is read when the first name is asked for.
 */
#ifndef WEIR_PROBE_PRINT_KERNEL_NAMES_H
#define WEIR_PROBE_PRINT_KERNEL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "probe/print/printer.h"

struct kernel_names;
/* `path` is borrowed; NULL: /proc/kallsyms. */
struct kernel_names *kernel_names_new(const char *path);
void kernel_names_free(struct kernel_names *kn);

/* False when no function is known there, or addresses are hidden (kernel.kptr_restrict). Texts live
 * until the next call. */
bool kernel_names_find(struct kernel_names *kn, uint64_t address, struct printer_symbol *out);

#endif
