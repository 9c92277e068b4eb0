/* SPDX-License-Identifier: MIT */
#include "bpf/ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "bpf/sys.h"

int bpf_ring_open(struct bpf_ring *ring, size_t bytes, struct err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	union bpf_attr attr;
	void *consumer, *rest;
	int errnum;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_RINGBUF;
	attr.max_entries = (uint32_t)bytes;
	*ring = (struct bpf_ring){.fd = bpf_sys(BPF_MAP_CREATE, &attr), .bytes = bytes};
	if (ring->fd < 0)
		return err_sys(err, -ring->fd, "BPF ring buffer: cannot be made");
	consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	errnum = errno;
	rest = mmap(NULL, page + 2 * bytes, PROT_READ, MAP_SHARED, ring->fd, (off_t)page);
	if (consumer == MAP_FAILED || rest == MAP_FAILED) {
		errnum = consumer == MAP_FAILED ? errnum : errno;
		if (consumer != MAP_FAILED)
			munmap(consumer, page);
		if (rest != MAP_FAILED)
			munmap(rest, page + 2 * bytes);
		fd_cleanup(&ring->fd);
		return err_sys(err, errnum, "BPF ring buffer: cannot be mapped");
	}
	ring->consumer = consumer;
	ring->producer = rest;
	ring->data = (const uint8_t *)rest + page;
	return 0;
}

void bpf_ring_close(struct bpf_ring *ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (ring->fd < 0 || !ring->data)
		return;
	munmap((void *)(uintptr_t)ring->consumer, page);
	munmap((void *)(uintptr_t)ring->producer, page + 2 * ring->bytes);
	fd_cleanup(&ring->fd);
}

unsigned long bpf_ring_start(const struct bpf_ring *ring)
{
	return *ring->consumer;
}

bool bpf_ring_next(const struct bpf_ring *ring, unsigned long *at, struct bpf_ring_record *record)
{
	/* Pairs with the kernel's release of the producer position. */
	unsigned long end = atomic_load_explicit(
		(_Atomic unsigned long *)(uintptr_t)ring->producer, memory_order_acquire);

	while (*at < end) {
		const uint8_t *header = ring->data + (*at & (ring->bytes - 1));
		/* Pairs with the kernel's clearing of the busy bit at submission. */
		uint32_t n = atomic_load_explicit(
			(_Atomic uint32_t *)(uintptr_t)header, memory_order_acquire);
		size_t length = n & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (n & BPF_RINGBUF_BUSY_BIT)
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
	unsigned long at = bpf_ring_start(ring);
	struct bpf_ring_record r;

	while (bpf_ring_next(ring, &at, &r)) {
		each(ctx, r.p, r.n);
		bpf_ring_consume(ring, at);
	}
	/* Discarded records at the end give their room back, too. */
	bpf_ring_consume(ring, at);
}
