/* SPDX-License-Identifier: MIT */
/*
 * The kernel's tracepoint syscalls:sys_enter_munmap: its number, and where its records hold address
 * and length. perf itself tells of new mappings but not of those that go away.
 *
 * The kernel does not report system calls of 32-bit programs there.
 */
#ifndef WEIR_RECORD_MUNMAP_TRACE_H
#define WEIR_RECORD_MUNMAP_TRACE_H

#include <linux/perf_event.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

struct munmap_trace {
	uint64_t id;		  /* perf_event_attr.config */
	uint32_t addr_at, len_at; /* of the 8-byte members in the raw data */
};

/* From the format file in tracefs. Where that is not mounted it is opened without being mounted
 * anywhere, so that nothing changes on the machine. Fails when that is not permitted, or the kernel
 * has no such tracepoint. */
int munmap_trace_init(struct munmap_trace *t, struct err *err);
void munmap_trace_attr(const struct munmap_trace *t, struct perf_event_attr *attr);
/* The text of a format file. */
int munmap_trace_parse(struct munmap_trace *t, struct span format, struct err *err);

#endif
