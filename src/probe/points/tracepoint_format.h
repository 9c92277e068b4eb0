/* SPDX-License-Identifier: MIT */
/* The fields of a kernel tracepoint, out of its format file in tracefs, as a structure type. */
#ifndef WEIR_PROBE_POINTS_TRACEPOINT_FORMAT_H
#define WEIR_PROBE_POINTS_TRACEPOINT_FORMAT_H

#include "base/err.h"
#include "base/span.h"
#include "probe/types/type.h"

/* `__data_loc char[] name` becomes a field `name` of type TYPE_INT 4 bytes named "__data_loc
 * char[]": length << 16 | offset in the record; "__rel_loc char[]" likewise, but the offset counts
 * from behind the field. Sizes are those of the kernel in both modes. Pointers point to the kernel,
 * except in the records of system calls. What is neither an integer, a pointer nor an array of
 * those is an array of bytes. */
int tracepoint_format_parse(struct types *types, struct span text, const struct type **out,
	uint32_t *id, struct err *err);
int tracepoint_format_read(struct types *types, const char *category, const char *name,
	const struct type **out, uint32_t *id, struct err *err);

#endif
