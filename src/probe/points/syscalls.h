/* SPDX-License-Identifier: MIT */
/*
 * System calls by name: numbers in both modes (process/syscall_names.h), and names and C types of
 * their arguments. 32-bit programs have calls of their own (mmap2, _llseek, socketcall) and pass
 * the halves of 64-bit values in two arguments.
 */
#ifndef WEIR_PROBE_POINTS_SYSCALLS_H
#define WEIR_PROBE_POINTS_SYSCALLS_H

#include "probe/script/ast.h"

#define SYSCALL_ARGS_MAX 6

struct syscall_arg {
	const char *name; /* "filename" */
	const char *type; /* "const char *": a C declaration of built-in types only */
};

/* Number in that mode, or -1: there is no such call. */
int syscall_number(enum mode mode, const char *name);
/* The call that the kernel's tracepoints name after its function: "stat" for "newstat"; else NULL.
 */
const char *syscall_of_function(const char *function);
/* Its arguments in that mode, up to a NULL name; NULL when they are not known. */
const struct syscall_arg *syscall_args(enum mode mode, const char *name);

#endif
