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
/* The kernel's structure that a pointer argument points to in that mode: "old_timespec32"; or NULL. */
const char *syscall_struct(enum mode mode, const char *call, const char *arg);
/* Whether programs of either mode hand over structures of this name. */
bool syscall_hands_struct(const char *name);
/* What a call returns: a number, an address (or an error, -4095 to -1), or the id of a user or group,
 * which is never negative. */
enum syscall_result { SYSCALL_RESULT_NUMBER, SYSCALL_RESULT_ADDRESS, SYSCALL_RESULT_ID };
enum syscall_result syscall_result(const char *name);
#define SYSCALL_ERROR_MAX 4095
/* Calls the function with the number of each call of the mode that returns an address. */
void syscall_each_address(enum mode mode, void (*each)(void *ctx, int number), void *ctx);
/* Its arguments in that mode, up to a NULL name; NULL when they are not known. */
const struct syscall_arg *syscall_args(enum mode mode, const char *name);

#endif
