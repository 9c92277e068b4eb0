/* SPDX-License-Identifier: MIT */
/*
 * Stacks, whole. The kernel can copy a stack into its sample, but a record cannot be larger than 64 KiB,
 * the copy ends at the first page that was never touched (of a large local buffer), and it takes as much as it
 * may, of which most stacks need little. Where BPF is permitted, a small program runs at each sample instead,
 * and copies the stack to its end, up to DEEP_STACK_BYTES_MAX, into a ring of its own; in the middle of larger ones
 * something is left out. Record and sample are made in the same interrupt, so they belong together exactly.
 *
 * Code may keep words below the stack pointer (the red zone of the x86-64 ABI), its caller's frame among
 * them, so that the program copies those of each sample.
 *
 * Where a thread's stack ends is known once one of its samples has been walked to the end; until
 * then what is readable is copied, up to a smaller limit.
 */
#ifndef WEIR_RECORD_DEEP_STACKS_H
#define WEIR_RECORD_DEEP_STACKS_H

#include <stdint.h>

#include "base/err.h"
#include "base/span.h"
#include "record/perf_set.h"

#define DEEP_STACK_BYTES_MAX (1u << 20)
#define DEEP_BELOW_BYTES     128 /* the red zone */

struct deep_stacks;
struct task_filter;

/* Fails (with a sentence) where BPF or one of the helpers is not permitted or not there. The ring grows
 * with the number of CPUs. The program drops the samples of tasks that `filter` does not follow; NULL: none. */
int deep_stacks_open(
	struct deep_stacks **out, size_t n_cpus, const struct task_filter *filter, struct err *err);
void deep_stacks_close(struct deep_stacks *d);
/* Lets the program run at each sample of the event. */
int deep_stacks_attach(struct deep_stacks *d, int perf_fd, struct err *err);

/* Becomes readable when the ring should be emptied before the next round. */
int deep_stacks_fd(const struct deep_stacks *d);

/* The stack of the thread ends at `top`. Any thread may call it. */
void deep_stacks_set_top(struct deep_stacks *d, uint32_t tid, uint64_t top);

/* Takes what has come; call after the perf rings have been emptied. */
void deep_stacks_collect(struct deep_stacks *d);
/* The stack of a sample: bytes from the stack pointer on, pages that were never touched as zeros; and, when
 * the stack is longer than that, its outermost part. */
struct deep_stack {
	struct span bytes;
	uint64_t tail_start;
	struct span tail; /* empty when `bytes` reach the end */
	size_t n_bytes;	  /* of this block, in which both parts are */
};
/* The same stack (which may have moved) with no more than its first bytes. */
struct deep_stack *deep_stack_cut(struct deep_stack *stack, size_t n_bytes);
/* What tells samples apart: the registers are those where user mode was left. */
struct deep_key {
	uint64_t time, sp, ip;
	uint32_t cpu; /* that it was taken on */
};
/* The stack of a sample; NULL when it could not be read, else free() it. The last *n_below of
 * the DEEP_BELOW_BYTES at `below` are then what ends at its stack pointer. */
struct deep_stack *deep_stacks_take(
	struct deep_stacks *d, const struct deep_key *key, uint8_t *below, uint8_t *n_below);
/* Samples that were not written because the ring was full. */
uint64_t deep_stacks_n_lost(const struct deep_stacks *d);
/* Drops what belongs to samples older than `time`. */
void deep_stacks_forget(struct deep_stacks *d, uint64_t time);

#endif
