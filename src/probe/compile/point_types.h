/* SPDX-License-Identifier: MIT */
/*
 * What is known about types at a trace point: debug information of the probed files, the kernel's
 * BTF, formats of tracepoints. Files are opened when something of them is asked, and once.
 */
#ifndef WEIR_PROBE_COMPILE_POINT_TYPES_H
#define WEIR_PROBE_COMPILE_POINT_TYPES_H

#include "probe/compile/check.h"
#include "probe/types/type.h"

/* Whether a clause has words that need the type of the function: args, retval. Debug information is
 * large, so it is read for these only. */
bool point_types_wants_function(const struct clause *clause);

struct point_types;
/* Borrows the types of both modes. */
struct point_types *point_types_new(struct types *const *types);
void point_types_free(struct point_types *p);

/* Makes the types of the clause's mode ask the sources of its point, and fills in what the checker
 * wants to know of it (function, fields, operands, system call). */
void point_types_set(struct point_types *p, struct types *types, struct check_clause *clause);

/* Notes at each point the files that its code depends on, once all code is made; and the kernel, when the
 * code has its structures or `reads_records` of its tracepoints. */
void point_types_note_images(struct point_types *p, struct stream *s, bool reads_records);

/* Byte offset in a structure of the kernel; -1 when it is not known. */
int64_t point_types_kernel_offset(struct point_types *p, const char *struct_name, const char *path);

#endif
