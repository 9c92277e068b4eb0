/* SPDX-License-Identifier: MIT */
/* The BPF program of deep_stacks.h, and the records that it writes. */
#ifndef WEIR_RECORD_DEEP_PROGRAM_H
#define WEIR_RECORD_DEEP_PROGRAM_H

#include <stdint.h>

#include "bpf/code.h"
#include "bpf/ring.h"
#include "record/deep_stacks.h"

#define DEEP_TAIL_BYTES	 (64 * 1024)
#define DEEP_LARGE_BYTES ((int)DEEP_STACK_BYTES_MAX - DEEP_TAIL_BYTES)

struct deep_record {
	uint64_t time;
	uint64_t cpu;
	uint64_t sp, ip;
	uint64_t
		start; /* of `bytes`: at the stack pointer, or the start of the page that it is in */
	uint64_t n;
	uint64_t tail_start; /* of the tail behind DEEP_LARGE_BYTES; 0 = there is no tail */
	uint64_t n_below;    /* of the last bytes of `below`, which end at sp */
	uint8_t below[DEEP_BELOW_BYTES]; /* right before `bytes`: both may be read at once */
	uint8_t bytes[];
};

struct deep_maps {
	const struct bpf_ring *ring;
	int tops_fd; /* tid -> end of its stack */
	int lost_fd; /* one number: samples that the ring had no room for */
};

/* `filter`: may be NULL. */
void deep_program_make(
	struct bpf_code *c, const struct deep_maps *maps, const struct task_filter *filter);

#endif
