/* SPDX-License-Identifier: MIT */
#include "record/perf_ring.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool perf_ring_map(struct perf_ring *ring, int fd, size_t bytes)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page_bytes + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return false;
	ring->page = p;
	ring->data = (uint8_t *)p + page_bytes;
	ring->bytes = bytes;
	ring->fd = fd;
	return true;
}

void perf_ring_unmap(struct perf_ring *ring)
{
	if (ring->page)
		munmap(ring->page, ring->bytes + (size_t)sysconf(_SC_PAGESIZE));
	ring->page = NULL;
}

void perf_ring_drain(struct perf_ring *ring, uint8_t *scratch,
	void (*each)(void *ctx, struct span record), void *ctx)
{
	/* Pairs with the kernel's write barrier before it moves data_head. */
	uint64_t head =
		atomic_load_explicit((_Atomic __u64 *)&ring->page->data_head, memory_order_acquire);
	uint64_t tail = ring->page->data_tail;

	while (tail < head) {
		struct perf_event_header h;
		size_t at = tail & (ring->bytes - 1), first;
		struct span record = {ring->data + at, 0};

		/* Headers are 8-byte aligned, so they never wrap. */
		memcpy(&h, ring->data + at, sizeof(h));
		if (h.size < sizeof(h) || h.size > head - tail)
			break;
		first = ring->bytes - at;
		record.n = h.size;
		if (first < h.size) {
			memcpy(scratch, ring->data + at, first);
			memcpy(scratch + first, ring->data, h.size - first);
			record.p = scratch;
		}
		each(ctx, record);
		tail += h.size;
		/* Pairs with the kernel's read of data_tail: the bytes are ours no more. */
		atomic_store_explicit(
			(_Atomic __u64 *)&ring->page->data_tail, tail, memory_order_release);
	}
}
