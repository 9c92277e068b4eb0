/* SPDX-License-Identifier: MIT */
/* The fields of a kernel tracepoint, out of its format file in tracefs, as a structure type. */
#ifndef WEIR_PROBE_POINTS_TRACEPOINT_FORMAT_H
#define WEIR_PROBE_POINTS_TRACEPOINT_FORMAT_H

#include "base/err.h"
#include "base/span.h"
#include "probe/types/type.h"

/* `__data_loc char[] name` becomes a field `name` of type TYPE_INT 4 bytes named "__data_loc
 * char[]": length << 16 | offset in the record. Pointers point to user space unless the type says
 * otherwise. */
int tracepoint_format_parse(struct types *types, struct span text, const struct type **out,
	uint32_t *id, struct err *err);
int tracepoint_format_read(struct types *types, const char *category, const char *name,
	const struct type **out, uint32_t *id, struct err *err);

#endif
