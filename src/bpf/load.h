/* SPDX-License-Identifier: MIT */
/* The bpf(2) calls that are needed, and a ring-buffer map's consumer side. */
#ifndef WEIR_BPF_LOAD_H
#define WEIR_BPF_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "bpf/code.h"

/* A descriptor, or a negative code. Loaded without a log first; when the verifier refuses, once
 * more with one, and its last line is in the sentence. */
int bpf_program_load(
	enum bpf_prog_type type, const char *name, const struct bpf_code *code, struct err *err);

/* A hash map from 32-bit keys to 64-bit values that forgets its oldest entries when it is full. */
int bpf_lru_map_open(uint32_t n_entries, struct err *err);
int bpf_map_set(int map_fd, uint32_t key, uint64_t value);

/* A ring buffer that BPF programs write and one reader empties. */
struct bpf_ring {
	int fd;
	volatile unsigned long *consumer; /* positions: ours, */
	volatile unsigned long *producer; /* and the kernel's */
	const uint8_t *data;		  /* mapped twice in a row, so that records never wrap */
	size_t bytes;			  /* a power of two */
};
int bpf_ring_open(struct bpf_ring *ring, size_t bytes, struct err *err);
void bpf_ring_close(struct bpf_ring *ring);
/* Calls `each` for every finished record; the bytes are gone afterwards. */
void bpf_ring_drain(
	struct bpf_ring *ring, void (*each)(void *ctx, const uint8_t *record, size_t n), void *ctx);

#endif
