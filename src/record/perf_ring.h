/* SPDX-License-Identifier: MIT */
/* The ring that a perf event writes its records into. */
#ifndef WEIR_RECORD_PERF_RING_H
#define WEIR_RECORD_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

#define PERF_RECORD_BYTES_MAX 65536

struct perf_ring {
	unsigned cpu;
	int fd; /* the event whose ring this is */
	struct perf_event_mmap_page *page;
	uint8_t *data;
	size_t bytes; /* of data, a power of two */
};

/* Maps the ring of an event, which stays the caller's; false, with errno. */
bool perf_ring_map(struct perf_ring *ring, int fd, size_t bytes);
void perf_ring_unmap(struct perf_ring *ring); /* nothing when it is not mapped */
/* Hands out the records that are there; their room is given back. `scratch` (PERF_RECORD_BYTES_MAX) is
 * for one that wraps around the ring's end. */
void perf_ring_drain(struct perf_ring *ring, uint8_t *scratch,
	void (*each)(void *ctx, struct span record), void *ctx);

#endif
