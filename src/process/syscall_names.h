/* SPDX-License-Identifier: MIT */
/* The kernel's names of its system calls by number; 32-bit programs have numbers of their own. */
#ifndef WEIR_PROCESS_SYSCALL_NAMES_H
#define WEIR_PROCESS_SYSCALL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers with a name are below this. */
#define SYSCALL_NUMBERS_MAX 512

/* "write"; NULL when there is no such call, or it is newer than the tables. */
const char *syscall_name(bool is_32_bit, int64_t number);

#endif
