/* SPDX-License-Identifier: MIT */
/*
 * The kernel's tracepoints as perf events: the number of one, and where its records hold the fields
 * that are wanted. Both are in its format file in tracefs.
 */
#ifndef WEIR_PROCESS_TRACEPOINT_H
#define WEIR_PROCESS_TRACEPOINT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#define TRACEPOINT_FIELDS_MAX 2

struct tracepoint_spec {
	const char *name;			   /* "raw_syscalls/sys_enter" */
	const char *fields[TRACEPOINT_FIELDS_MAX]; /* NULL: no further one */
};

struct tracepoint_field {
	uint32_t at;   /* in the raw data */
	uint8_t bytes; /* 4 or 8; 0 = there is no such field */
	bool is_signed;
};

struct tracepoint {
	uint64_t id; /* perf_event_attr.config */
	struct tracepoint_field fields[TRACEPOINT_FIELDS_MAX];
};

/* The root folder of tracefs as a descriptor, or a negative code. Where it is not mounted it is
 * opened without being mounted anywhere, so that nothing changes on the machine. */
int tracefs_open(struct err *err);
/* Appends a file of it ("events/sched/sched_switch/format"), at most `max` bytes. */
int tracefs_read(struct buf *to, int tracefs, const char *name, size_t max, struct err *err);

/* From the format file. Fails when tracefs may not be read, or the kernel has no such tracepoint.
 */
int tracepoint_find(struct tracepoint *t, const struct tracepoint_spec *spec, struct err *err);
/* The text of a format file. */
int tracepoint_parse(struct tracepoint *t, const struct tracepoint_spec *spec, struct span format,
	struct err *err);

/* An event at each occurrence, with task, time, CPU and the raw data. */
void tracepoint_attr(const struct tracepoint *t, struct perf_event_attr *attr);
/* A field out of the raw data, extended to 64 bits; false when it does not lie in them. */
bool tracepoint_value(const struct tracepoint *t, size_t field_i, struct span raw, uint64_t *value);

#endif
