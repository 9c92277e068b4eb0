/* SPDX-License-Identifier: MIT */
#include "record/hooks/area.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"

/* Sparse: what no thread has written takes no memory. A 32-bit program has little room for it. */
#define THREADS_64    1024u
#define THREADS_32    64u
#define RING_BYTES_64 (512u << 10)
#define RING_BYTES_32 (256u << 10)
#define TREE_BYTES_64 (8u << 20) /* more than 100,000 nodes: recursion may be that deep */
#define TREE_BYTES_32 (1u << 20)
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
	};
}

void *hook_memory_open(size_t bytes, int *fd)
{
	void *p = MAP_FAILED;

	*fd = memfd_create("weir-hooks", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd >= 0 && ftruncate(*fd, (off_t)bytes) == 0 &&
		fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

int hook_area_open(struct hook_area *a, const struct hook_area_options *o, struct err *err)
{
	size_t threads_offset = round_up(sizeof(struct hook_control), PAGE_BYTES);
	void *p;
	int errnum;

	memset(a, 0, sizeof(*a));
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
	p = hook_memory_open(a->bytes, &a->fd);
	if (!p) {
		errnum = errno;
		fd_cleanup(&a->fd);
		a->fd = -1;
		return err_sys(err, errnum, "cannot make %zu bytes of shared memory", a->bytes);
	}
	a->base = p;
	a->control = p;
	a->threads = (struct hook_thread *)(void *)(a->base + threads_offset);
	fill_control(a, o, threads_offset);
	return 0;
}

void hook_area_close(struct hook_area *a)
{
	if (a->base)
		munmap(a->base, a->bytes);
	fd_cleanup(&a->fd);
	*a = (struct hook_area){.fd = -1};
}

void hook_area_free_thread(const struct hook_area *a, uint32_t thread_i)
{
	struct hook_thread *thread = &a->threads[thread_i];

	if (fallocate(a->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		    (off_t)(a->rings_offset + (size_t)thread_i * a->ring_bytes),
		    (off_t)a->ring_bytes) < 0)
		memset(hook_area_ring(a, thread_i), 0, a->ring_bytes);
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
