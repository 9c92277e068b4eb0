/* SPDX-License-Identifier: MIT */
#include "bpf/ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "bpf/kernel_map.h"

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Maps `n` bytes of the data from `at` on instead of what was mapped. */
static int map_window(struct bpf_ring *ring, size_t at, size_t n)
{
	size_t page = page_bytes();
	size_t from = at & ~(page - 1);
	size_t to = (at + n + page - 1) & ~(page - 1);
	void *p;

	to = to < 2 * ring->bytes ? to : 2 * ring->bytes;
	if (ring->window)
		munmap((void *)(uintptr_t)ring->window, ring->window_bytes);
	ring->window = NULL;
	p = mmap(NULL, to - from, PROT_READ, MAP_SHARED, ring->fd, (off_t)(2 * page + from));
	if (p == MAP_FAILED)
		return -errno;
	ring->window = p;
	ring->window_at = from;
	ring->window_bytes = to - from;
	return 0;
}

static int map_positions(struct bpf_ring *ring)
{
	size_t page = page_bytes();
	void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	ring->consumer = p;
	p = mmap(NULL, page, PROT_READ, MAP_SHARED, ring->fd, (off_t)page);
	if (p == MAP_FAILED)
		return -errno;
	ring->producer = p;
	return 0;
}

int bpf_ring_open_window(struct bpf_ring *ring, size_t bytes, size_t window_bytes, struct err *err)
{
	struct bpf_map_spec spec = {
		.type = BPF_MAP_TYPE_RINGBUF, .n_entries = (uint32_t)bytes, .name = ""};
	int rc;

	*ring = (struct bpf_ring){
		.fd = bpf_map_open(&spec), .bytes = bytes, .window_usual = window_bytes};
	if (ring->fd < 0)
		return err_sys(err, -ring->fd, "BPF ring buffer: cannot be made");
	rc = map_positions(ring);
	if (rc == 0)
		rc = map_window(ring, 0, window_bytes);
	if (rc == 0)
		return 0;
	bpf_ring_close(ring);
	return err_sys(err, -rc, "BPF ring buffer: cannot be mapped");
}

int bpf_ring_open(struct bpf_ring *ring, size_t bytes, struct err *err)
{
	return bpf_ring_open_window(ring, bytes, 2 * bytes, err);
}

void bpf_ring_close(struct bpf_ring *ring)
{
	size_t page = page_bytes();

	if (!ring->bytes)
		return;
	if (ring->consumer)
		munmap((void *)(uintptr_t)ring->consumer, page);
	if (ring->producer)
		munmap((void *)(uintptr_t)ring->producer, page);
	if (ring->window)
		munmap((void *)(uintptr_t)ring->window, ring->window_bytes);
	fd_cleanup(&ring->fd);
	*ring = (struct bpf_ring){.fd = -1};
}

/* The n bytes of the data at position `at`, NULL when they are not in the window and it cannot be
 * moved, because records of it may be in use: those between the consumer's place and `at`. */
static const uint8_t *data_at(struct bpf_ring *ring, unsigned long at, size_t n)
{
	size_t offset = at & (ring->bytes - 1);

	if (!ring->window || offset < ring->window_at ||
		offset + n > ring->window_at + ring->window_bytes) {
		if (at != *ring->consumer)
			return NULL;
		if (map_window(ring, offset, n > ring->window_usual ? n : ring->window_usual) < 0)
			return NULL;
	}
	return ring->window + (offset - ring->window_at);
}

bool bpf_ring_next(struct bpf_ring *ring, unsigned long *at, struct bpf_ring_record *record)
{
	/* Pairs with the kernel's release of the producer position. */
	unsigned long end = atomic_load_explicit(
		(_Atomic unsigned long *)(uintptr_t)ring->producer, memory_order_acquire);

	while (*at < end) {
		const uint8_t *header = data_at(ring, *at, BPF_RINGBUF_HDR_SZ);
		size_t length;
		uint32_t n;

		if (!header)
			return false;
		/* Pairs with the kernel's clearing of the busy bit at submission. */
		n = atomic_load_explicit(
			(_Atomic uint32_t *)(uintptr_t)header, memory_order_acquire);
		if (n & BPF_RINGBUF_BUSY_BIT)
			return false;
		length = n & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		header = data_at(ring, *at, BPF_RINGBUF_HDR_SZ + length);
		if (!header)
			return false;
		*at += (length + BPF_RINGBUF_HDR_SZ + 7) & ~(size_t)7;
		if (n & BPF_RINGBUF_DISCARD_BIT)
			continue;
		*record = (struct bpf_ring_record){header + BPF_RINGBUF_HDR_SZ, length};
		return true;
	}
	return false;
}

void bpf_ring_consume(struct bpf_ring *ring, unsigned long at)
{
	/* Sequentially consistent: the kernel wakes the reader of a record only when it sees that
	 * the reader has come up to it, so looking for a further record must not be done before
	 * this is seen. */
	atomic_store((_Atomic unsigned long *)(uintptr_t)ring->consumer, at);
}

void bpf_ring_drain(
	struct bpf_ring *ring, void (*each)(void *ctx, const uint8_t *record, size_t n), void *ctx)
{
	unsigned long at = *ring->consumer, before;
	struct bpf_ring_record r;

	do {
		before = at;
		while (bpf_ring_next(ring, &at, &r)) {
			each(ctx, r.p, r.n);
			bpf_ring_consume(ring, at);
		}
		/* Discarded records give their room back, too; the window may move now. */
		bpf_ring_consume(ring, at);
	} while (at != before);
}
