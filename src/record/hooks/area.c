/* SPDX-License-Identifier: MIT */
#include "record/hooks/area.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

/*
 * Sparse: what no thread has written takes no memory, and what none needs is not mapped. A thread also
 * takes a block of the library's region, which is two mappings; of these a process may have 65530, and
 * needs some itself.
 */
#define THREADS_64    8192u
#define THREADS_32    2048u /* as many blocks as there are */
#define RING_BYTES_64 (512u << 10)
#define RING_BYTES_32 (256u << 10)
#define TREE_BYTES_64 (8u << 20) /* more than 100,000 nodes: recursion may be that deep */
#define TREE_BYTES_32 (1u << 20)
#define SLAB_THREADS  16u	  /* mapped together in the program: up to so many, */
#define SLAB_BYTES_64 (16u << 20) /* and in so many bytes */
#define SLAB_BYTES_32 (4u << 20)
#define WINDOW_BYTES  ((size_t)32 << 20) /* mapped together here */
#define PARTS_A_RING  16u
#define PAGE_BYTES    4096u

_Static_assert(sizeof(struct hook_thread) == 128, "one entry is two cache lines");
_Static_assert(sizeof(struct hook_record) == 16, "a record is 16 bytes in both kinds of program");

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) & ~(to - 1);
}

static void fill_control(
	const struct hook_area *a, const struct hook_area_options *o, size_t threads_offset)
{
	*a->control = (struct hook_control){
		.magic = HOOK_ABI_MAGIC,
		.version = HOOK_ABI_VERSION,
		.mode = o->tree ? HOOK_MODE_TREE : HOOK_MODE_EVENTS,
		.n_threads = a->n_threads,
		.area_bytes = a->bytes,
		.threads_offset = threads_offset,
		.rings_offset = a->rings_offset,
		.ring_bytes = a->ring_bytes,
		.part_bytes = (uint32_t)(a->ring_bytes / PARTS_A_RING),
		.prune_permille = o->prune_permille,
		.counts_bytes = o->counts_bytes,
		.slab_threads = (uint32_t)((a->head_bytes - a->rings_offset) / a->ring_bytes),
	};
}

/* A file in memory; its size is for good. */
static int make_file(size_t bytes)
{
	int fd = memfd_create("weir-hooks", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 ||
		(ftruncate(fd, (off_t)bytes) == 0 &&
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0))
		return fd;
	close(fd);
	return -1;
}

static void *map_file(int fd, size_t bytes, size_t offset)
{
	void *p = fd < 0 ? MAP_FAILED
			 : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	return p == MAP_FAILED ? NULL : p;
}

void *hook_memory_open(size_t bytes, int *fd)
{
	*fd = make_file(bytes);
	return map_file(*fd, bytes, 0);
}

/* How many rings the program maps at once: as many as threads are common, but address space is scarce. */
static size_t slab_threads(const struct hook_area *a, bool is_64)
{
	size_t n = (is_64 ? SLAB_BYTES_64 : SLAB_BYTES_32) / a->ring_bytes;
	size_t least = (a->n_threads - 1) / HOOK_SLABS_MAX + 1;

	n = n > SLAB_THREADS ? SLAB_THREADS : n;
	return n > least ? n : least;
}

static void lay_out(struct hook_area *a, const struct hook_area_options *o, size_t threads_offset)
{
	a->n_threads = o->is_64 ? THREADS_64 : THREADS_32;
	a->ring_bytes = o->is_64 ? RING_BYTES_64 : RING_BYTES_32;
	if (o->tree)
		a->ring_bytes = o->is_64 ? TREE_BYTES_64 : TREE_BYTES_32;
	if (o->ring_bytes)
		a->ring_bytes = o->ring_bytes;
	a->ring_mask = a->ring_bytes / sizeof(struct hook_record) - 1;
	a->rings_offset =
		threads_offset + round_up(a->n_threads * sizeof(struct hook_thread), PAGE_BYTES);
	a->bytes = a->rings_offset + a->n_threads * a->ring_bytes;
	a->head_bytes = a->rings_offset + slab_threads(a, o->is_64) * a->ring_bytes;
	a->window_threads =
		a->ring_bytes < WINDOW_BYTES ? (uint32_t)(WINDOW_BYTES / a->ring_bytes) : 1;
}

static size_t n_windows(const struct hook_area *a)
{
	return (a->n_threads - 1) / a->window_threads + 1;
}

/* The last one may be shorter. */
static size_t window_bytes(const struct hook_area *a, size_t i)
{
	size_t n = a->n_threads - i * a->window_threads;

	return (n < a->window_threads ? n : a->window_threads) * a->ring_bytes;
}

int hook_area_open(struct hook_area *a, const struct hook_area_options *o, struct err *err)
{
	size_t threads_offset = round_up(sizeof(struct hook_control), PAGE_BYTES);
	void *p;
	int errnum;

	memset(a, 0, sizeof(*a));
	lay_out(a, o, threads_offset);
	a->fd = make_file(a->bytes);
	p = map_file(a->fd, a->rings_offset, 0);
	if (!p) {
		errnum = errno;
		fd_cleanup(&a->fd);
		a->fd = -1;
		return err_sys(err, errnum, "cannot make %zu bytes of shared memory", a->bytes);
	}
	a->base = p;
	a->control = p;
	a->threads = (struct hook_thread *)(void *)(a->base + threads_offset);
	a->windows = mem_calloc(n_windows(a), sizeof(*a->windows));
	fill_control(a, o, threads_offset);
	return 0;
}

struct hook_record *hook_area_ring(const struct hook_area *a, uint32_t thread_i)
{
	size_t i = thread_i / a->window_threads;
	uint8_t *window = __atomic_load_n(&a->windows[i], __ATOMIC_ACQUIRE), *none = NULL;

	if (!window) {
		window = map_file(a->fd, window_bytes(a, i),
			a->rings_offset + i * a->window_threads * a->ring_bytes);
		if (!window)
			return NULL;
		/* Another thread may have been faster. */
		if (!__atomic_compare_exchange_n(&a->windows[i], &none, window, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			munmap(window, window_bytes(a, i));
			window = none;
		}
	}
	return (struct hook_record *)(void *)(window +
					      thread_i % a->window_threads * a->ring_bytes);
}

void hook_area_close(struct hook_area *a)
{
	for (size_t i = 0; a->windows && i < n_windows(a); i++)
		if (a->windows[i])
			munmap(a->windows[i], window_bytes(a, i));
	free(a->windows);
	if (a->base)
		munmap(a->base, a->rings_offset);
	fd_cleanup(&a->fd);
	*a = (struct hook_area){.fd = -1};
}

void hook_area_free_thread(const struct hook_area *a, uint32_t thread_i)
{
	struct hook_thread *thread = &a->threads[thread_i];
	struct hook_record *ring;

	if (fallocate(a->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		    (off_t)(a->rings_offset + (size_t)thread_i * a->ring_bytes),
		    (off_t)a->ring_bytes) < 0) {
		ring = hook_area_ring(a, thread_i);
		if (!ring)
			return; /* nobody else gets it */
		memset(ring, 0, a->ring_bytes);
	}
	memset((uint8_t *)thread + offsetof(struct hook_thread, tid), 0,
		sizeof(*thread) - offsetof(struct hook_thread, tid));
	/* Pairs with the library's compare and swap. */
	__atomic_store_n(&thread->state, HOOK_THREAD_FREE, __ATOMIC_RELEASE);
}

bool hook_area_turn_off(struct hook_area *a, uint32_t id)
{
	struct hook_control *c = a->control;
	uint32_t n = __atomic_load_n(&c->n_off, __ATOMIC_RELAXED);

	if (n >= HOOK_OFF_MAX)
		return false;
	c->off[n] = id;
	/* Pairs with the library's acquire of n_off: the entry is there before it counts. */
	__atomic_store_n(&c->n_off, n + 1, __ATOMIC_RELEASE);
	return true;
}
