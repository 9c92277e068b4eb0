/* SPDX-License-Identifier: MIT */
/*
 * Where the program has the area. At first only its control page, its table of threads and the rings of
 * a few threads are mapped; a slab of rings more when a thread comes that needs one. The descriptor of
 * the area is closed by then, as it is none of the program's: a shared mapping can be made again,
 * and longer, out of itself (mremap with an old size of 0).
 *
 * All of it lies away from the program's libraries: there it would take what their moved code needs
 * within reach of a jump, also of libraries that come later.
 */
#include <sys/mman.h>

#include "hook.h"

#define AREA_DISTANCE 0x100000000u /* more than twice what a jump reaches */
/* A program with little left of its address space has this for itself. */
#define MARGIN_BYTES	 (64u << 20)
#define MAPPER_WAIT_NS	 100000000
#define MAPPER_WAITS_MAX 20

static uintptr_t slabs[HOOK_SLABS_MAX]; /* 0 = not mapped yet; none is without those before it */
static uint32_t n_slabs, slab_threads;
static uintptr_t slab_bytes, ring_bytes;
/* A thread maps a slab just now; others wait for it, perhaps. 0: none does. */
enum { MAPPER_ONE = 1, MAPPER_AWAITED };
static uint32_t mapper;

/* `below`: bytes between the highest place for any of the area and this one. */
static void *place(uint64_t below, uint64_t bytes)
{
#ifdef __x86_64__
	uint64_t here = (uint64_t)PAGE_DOWN(weir_region);

	if (here > below + bytes + 2 * AREA_DISTANCE)
		return (void *)(here - below - bytes - AREA_DISTANCE);
#else
	(void)below; /* everything is within reach */
	(void)bytes;
#endif
	return NULL;
}

struct hook_control *slabs_open(int fd, uint64_t bytes)
{
	struct hook_control *control = raw_mmap(place(0, bytes), (size_t)bytes,
		PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd);

	if (raw_failed(control))
		return NULL;
	raw_call(SYS_madvise, control, (size_t)bytes, MADV_DONTFORK);
	return control;
}

bool slabs_begin(const struct hook_control *control, uint64_t bytes)
{
	uint32_t a_slab = control->slab_threads, n;

	if (!a_slab || !control->n_threads || control->rings_offset > bytes ||
		control->ring_bytes > bytes ||
		control->ring_bytes * a_slab > bytes - control->rings_offset)
		return false;
	n = (control->n_threads - 1) / a_slab + 1;
	if (n > HOOK_SLABS_MAX)
		return false;
	slab_threads = a_slab;
	ring_bytes = (uintptr_t)control->ring_bytes;
	slab_bytes = ring_bytes * a_slab;
	for (uint32_t i = 1; i < n_slabs; i++)
		slabs[i] =
			0; /* of another recording, or of the parent: whoever is in one knows where */
	mapper = 0;
	slabs[0] = (uintptr_t)control + (uintptr_t)control->rings_offset;
	n_slabs = n;
	return true;
}

/* The slab behind the one at `from`, number i; 0: there is no room. First comes room that is ours, then the
 * area is laid over it: nothing of the program can have come there. */
static uintptr_t map_behind(uintptr_t from, uint32_t i)
{
	uintptr_t bytes = 2 * slab_bytes;
	uintptr_t at = (uintptr_t)raw_memory(place((uint64_t)i * bytes, bytes + MARGIN_BYTES),
		bytes + MARGIN_BYTES, PROT_NONE, MAP_NORESERVE);

	if (!at)
		return 0;
	raw_call(SYS_munmap, at, MARGIN_BYTES);
	at += MARGIN_BYTES;
	if ((uintptr_t)raw_call(SYS_mremap, from, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) !=
		at) {
		raw_call(SYS_munmap, at, bytes);
		return 0;
	}
	raw_call(SYS_munmap, at, slab_bytes);
	at += slab_bytes;
	raw_call(SYS_madvise, at, slab_bytes, MADV_DONTFORK);
	return at;
}

/* One thread maps at a time: what each takes for a moment, many at once do not have. A thread that is not there
 * any more, in a child of fork, keeps nobody waiting for ever: then it is done without. */
static bool lock_mapper(void)
{
	uint32_t free = 0;

	if (__atomic_compare_exchange_n(
		    &mapper, &free, MAPPER_ONE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return true;
	for (unsigned i = 0; i < MAPPER_WAITS_MAX; i++) {
		if (!__atomic_exchange_n(&mapper, MAPPER_AWAITED, __ATOMIC_ACQ_REL))
			return true;
		futex_wait(&mapper, MAPPER_AWAITED, FUTEX_PRIVATE_FLAG, MAPPER_WAIT_NS);
	}
	return false;
}

static void unlock_mapper(void)
{
	if (__atomic_exchange_n(&mapper, 0, __ATOMIC_ACQ_REL) == MAPPER_AWAITED)
		futex_wake_one(&mapper, FUTEX_PRIVATE_FLAG);
}

static bool map_slab(uint32_t k)
{
	bool is_locked = lock_mapper();
	uintptr_t none = 0, at;

	at = __atomic_load_n(&slabs[k], __ATOMIC_ACQUIRE) ? 0 : map_behind(slabs[k - 1], k);
	if (at && !__atomic_compare_exchange_n(
			  &slabs[k], &none, at, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		raw_call(SYS_munmap, at, slab_bytes);
	if (is_locked)
		unlock_mapper();
	return __atomic_load_n(&slabs[k], __ATOMIC_ACQUIRE);
}

static bool slab_ensure(uint32_t i)
{
	for (uint32_t k = 1; k <= i; k++)
		if (!__atomic_load_n(&slabs[k], __ATOMIC_ACQUIRE) && !map_slab(k))
			return false;
	return true;
}

struct hook_record *slabs_ring(uint32_t thread_i)
{
	uint32_t i = thread_i / slab_threads;

	if (i >= n_slabs || !slab_ensure(i))
		return NULL;
	return (struct hook_record *)(slabs[i] + thread_i % slab_threads * ring_bytes);
}

bool slabs_fill(void)
{
	for (uint32_t i = 1; i < n_slabs && slabs[i]; i++) {
		void *at = (void *)slabs[i];

		if (raw_memory(at, slab_bytes, PROT_READ | PROT_WRITE,
			    MAP_NORESERVE | MAP_FIXED_NOREPLACE) != at)
			return false;
	}
	return true;
}
