/* SPDX-License-Identifier: MIT */
/* A ring buffer that BPF programs write and one reader empties. */
#ifndef WEIR_BPF_RING_H
#define WEIR_BPF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct bpf_ring {
	int fd;
	volatile unsigned long *consumer; /* positions: ours, */
	volatile unsigned long *producer; /* and the kernel's */
	size_t bytes;			  /* a power of two */
	/* The data are there twice in a row, so that records never wrap. What of that is mapped: */
	const uint8_t *window; /* NULL = the ring is not open */
	size_t window_at, window_bytes;
	size_t window_usual; /* bytes of further windows */
};
/* All of it mapped, which counts as memory of this process: twice its bytes. */
int bpf_ring_open(struct bpf_ring *ring, size_t bytes, struct err *err);
/* Mapped in windows of so many bytes, or more where a record is longer. */
int bpf_ring_open_window(struct bpf_ring *ring, size_t bytes, size_t window_bytes, struct err *err);
void bpf_ring_close(struct bpf_ring *ring);
/* Calls `each` for every finished record; the bytes are gone afterwards. */
void bpf_ring_drain(
	struct bpf_ring *ring, void (*each)(void *ctx, const uint8_t *record, size_t n), void *ctx);

/* The same in two steps, for readers of several rings: records are looked at from *consumer on
 * and stay where they are until bpf_ring_consume gives their room back. */
struct bpf_ring_record {
	const uint8_t *p;
	size_t n;
};
/* The next finished record behind `at`, which moves on; false when there is none yet, or none in
 * the window: then consuming what was seen makes room for the next window. */
bool bpf_ring_next(struct bpf_ring *ring, unsigned long *at, struct bpf_ring_record *record);
void bpf_ring_consume(struct bpf_ring *ring, unsigned long at);

#endif
