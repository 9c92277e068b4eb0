/* SPDX-License-Identifier: MIT */
/* What came out of a ring: one heap block a record, decoded, with its variable part behind it. */
#ifndef WEIR_RECORD_COLLECTED_H
#define WEIR_RECORD_COLLECTED_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "process/proc.h"
#include "record/deep_stacks.h"
#include "record/kernel_sources.h"
#include "trace/defs.h"
#include "unwind/unwind.h"

enum collected_kind {
	COLLECTED_SAMPLE,
	COLLECTED_MMAP,
	COLLECTED_MUNMAP,
	COLLECTED_KERNEL, /* any other event of the kernel */
	COLLECTED_COMM,
	COLLECTED_FORK,
	COLLECTED_EXIT,
	COLLECTED_SWITCH,
	COLLECTED_LOST,
	COLLECTED_THROTTLE
};

struct collected_sample {
	uint64_t id; /* perf's id of the event */
	uint64_t ip;
	uint64_t period;   /* 0: the record does not say it */
	uint32_t cpu_mode; /* PERF_RECORD_MISC_KERNEL, _USER, _GUEST_USER, ... */
	bool in_kernel;
	bool has_regs; /* user registers are there */
	struct cpu_regs regs;
	uint32_t n_kernel; /* kernel addresses, innermost first */
	const uint64_t *kernel;
	/* Likewise of the program, as the kernel or the CPU's branch records followed them; return addresses but for
	 * the first. Ours have none: they have the stack. */
	uint32_t n_user;
	const uint64_t *user;
	bool is_bare; /* nothing but the program counter was recorded of its place */
	bool is_deferred; /* the program's part of the call chain is in another record, which is not joined */
	struct span stack; /* copy from the stack pointer up */
	uint8_t *below;	 /* DEEP_BELOW_BYTES, of which the last n_below end at the stack pointer */
	uint8_t n_below; /* 0 = not known */
	struct deep_stack *deep; /* what `stack` is of, owned; NULL = it is the kernel's copy */
};

struct collected_mmap {
	struct proc_mapping mapping; /* inode 0: build_id is given instead */
	uint8_t build_id_n;	     /* 0: dev and inode are given instead */
	uint8_t build_id[BUILD_ID_MAX];
};

struct collected {
	uint64_t time;
	enum collected_kind kind;
	uint32_t cpu;
	uint32_t pid, tid;
	size_t bytes;	/* of this block, for the queue's limit */
	uint64_t order; /* of arrival at the session, which keeps it among equal times */
	union {
		struct collected_sample sample;
		struct collected_mmap mmap;
		struct {
			uint64_t start, bytes;
		} munmap;
		struct {
			enum kernel_event event;
			int64_t number; /* of the system call, the interrupt, ...; 0 for faults */
		} kernel;
		struct {
			const char *name;
			bool is_exec;
		} comm;
		struct {
			uint32_t parent_pid, parent_tid;
		} fork; /* and exit */
		struct {
			bool is_out, is_preempted;
		} sw;
		struct {
			uint64_t n; /* records of any kind */
		} lost;
	};
};

/* Decodes one perf record as the kernel wrote it with `attr`, whatever its fields are. NULL for kinds
 * that are of no interest and for records that are too short for their kind. What a record does not hold is
 * 0: the time, too. */
struct collected *collected_decode(const struct perf_event_attr *attr, struct span record);
/* The id of the event that a sample is of; false when the record is no sample. */
bool collected_sample_event(struct span record, uint64_t *id);
/* Likewise, a sample of an event of the kernel, whose fields are where `t` says. */
struct collected *collected_decode_kernel(
	enum kernel_event event, const struct tracepoint *t, struct span record);
void collected_free(struct collected *r);

#endif
