/* SPDX-License-Identifier: MIT */
/*
 * The tables are made from the kernel's headers (package linux-libc-dev), for N = 32 and 64, with a
 * comment in front:
 *
 *   sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9]*\)$/SYSCALL(\2, \1)/p' asm/unistd_N.h
 *
 * and are committed, so that a trace has the same names wherever weir was built. A unit test
 * compares them with the headers of the machine.
 */
#include "process/syscall_names.h"

#include <stddef.h>

#define SYSCALL(number, name) [number] = #name,
static const char *const names_64[SYSCALL_NUMBERS_MAX] = {
#include "process/syscalls_64.def"
#include "process/syscalls_newer.def"
};
static const char *const names_32[SYSCALL_NUMBERS_MAX] = {
#include "process/syscalls_32.def"
#include "process/syscalls_newer.def"
};
#undef SYSCALL

const char *syscall_name(bool is_32_bit, int64_t number)
{
	if (number < 0 || number >= SYSCALL_NUMBERS_MAX)
		return NULL;
	return is_32_bit ? names_32[number] : names_64[number];
}
