/* SPDX-License-Identifier: MIT */
#include "bpf/load.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

#define LOG_BYTES (256 * 1024)

static int bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* The verifier's complaint is the last line but the statistics. */
static const char *last_complaint(char *log)
{
	char *line = log, *found = log;

	while (line && *line) {
		char *end = strchr(line, '\n');

		if (end)
			*end = 0;
		if (*line && strncmp(line, "processed ", 10) &&
			strncmp(line, "verification time", 17))
			found = line;
		line = end ? end + 1 : NULL;
	}
	return found;
}

int bpf_program_load(
	enum bpf_prog_type type, const char *name, const struct bpf_code *code, struct err *err)
{
	union bpf_attr attr;
	int fd, errnum;
	char *log;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = type;
	attr.insns = (uintptr_t)code->insns.v;
	attr.insn_cnt = (uint32_t)code->insns.n;
	/* The kernel gives the reading helpers to programs under a GPL-compatible licence only. */
	attr.license = (uintptr_t) "Dual MIT/GPL";
	strncpy(attr.prog_name, name, sizeof(attr.prog_name) - 1);
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd >= 0)
		return fd;
	errnum = errno;
	if (errnum != EACCES && errnum != EINVAL)
		return err_sys(err, errnum, "BPF program '%s': cannot be loaded", name);
	log = mem_zalloc(LOG_BYTES);
	attr.log_level = 1;
	attr.log_buf = (uintptr_t)log;
	attr.log_size = LOG_BYTES;
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0)
		err_set(err, ERR_UNSUPPORTED, "BPF program '%s': the kernel refuses it: %s", name,
			log[0] ? last_complaint(log) : strerror(errnum));
	free(log);
	return fd >= 0 ? fd : ERR_UNSUPPORTED;
}

int bpf_lru_map_open(uint32_t n_entries, struct err *err)
{
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_LRU_HASH;
	attr.key_size = sizeof(uint32_t);
	attr.value_size = sizeof(uint64_t);
	attr.max_entries = n_entries;
	fd = bpf(BPF_MAP_CREATE, &attr);
	return fd < 0 ? err_sys(err, errno, "BPF map: cannot be made") : fd;
}

int bpf_map_set(int map_fd, uint32_t key, uint64_t value)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map_fd;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)&value;
	return bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

int bpf_ring_open(struct bpf_ring *ring, size_t bytes, struct err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	union bpf_attr attr;
	void *consumer, *rest;
	int errnum;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_RINGBUF;
	attr.max_entries = (uint32_t)bytes;
	*ring = (struct bpf_ring){.fd = bpf(BPF_MAP_CREATE, &attr), .bytes = bytes};
	if (ring->fd < 0)
		return err_sys(err, errno, "BPF ring buffer: cannot be made");
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

	if (ring->fd < 0)
		return;
	munmap((void *)(uintptr_t)ring->consumer, page);
	munmap((void *)(uintptr_t)ring->producer, page + 2 * ring->bytes);
	fd_cleanup(&ring->fd);
}

void bpf_ring_drain(
	struct bpf_ring *ring, void (*each)(void *ctx, const uint8_t *record, size_t n), void *ctx)
{
	unsigned long at = *ring->consumer;

	for (;;) {
		/* Pairs with the kernel's release of the producer position. */
		unsigned long end = atomic_load_explicit(
			(_Atomic unsigned long *)(uintptr_t)ring->producer, memory_order_acquire);

		if (at >= end)
			return;
		while (at < end) {
			const uint8_t *header = ring->data + (at & (ring->bytes - 1));
			/* Pairs with the kernel's clearing of the busy bit at submission. */
			uint32_t n = atomic_load_explicit(
				(_Atomic uint32_t *)(uintptr_t)header, memory_order_acquire);
			size_t length = n & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

			if (n & BPF_RINGBUF_BUSY_BIT)
				return;
			if (!(n & BPF_RINGBUF_DISCARD_BIT))
				each(ctx, header + BPF_RINGBUF_HDR_SZ, length);
			at += (length + BPF_RINGBUF_HDR_SZ + 7) & ~(size_t)7;
			atomic_store_explicit((_Atomic unsigned long *)(uintptr_t)ring->consumer,
				at, memory_order_release);
		}
	}
}
