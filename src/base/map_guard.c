/* SPDX-License-Identifier: MIT */
/*
 * The handler may run in any thread at any moment, so it uses a table of fixed size and atomics only.
 * A slot is taken by its `start` (compare and swap), usable once `bytes` is set, and free again when
 * `start` is 0. Slots are added and removed by whoever owns the mapping; the fault of a mapping
 * happens in a thread that reads it, so its slot does not change meanwhile.
 */
#include "base/map_guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS_MAX 16384u

static struct slot {
	atomic_uintptr_t start; /* 0 = free */
	atomic_size_t bytes;	/* 0 = being filled in; pairs with the handler's load */
	atomic_bool is_cut;	/* set by the handler */
} slots[SLOTS_MAX];
static atomic_uint n_used; /* slots beyond were never taken */
static uintptr_t page_bytes = 4096;

static struct slot *find_slot(uintptr_t at)
{
	unsigned n = atomic_load(&n_used);

	for (unsigned i = 0; i < n && i < SLOTS_MAX; i++) {
		uintptr_t start = atomic_load(&slots[i].start);

		if (start && at >= start && at - start < atomic_load(&slots[i].bytes))
			return &slots[i];
	}
	return NULL;
}

/* What lies behind the end of a truncated file is gone up to the end of the mapping. */
static bool put_zeros(struct slot *s, uintptr_t at)
{
	uintptr_t from = at & ~(page_bytes - 1);
	uintptr_t end = atomic_load(&s->start) + atomic_load(&s->bytes);

	atomic_store(&s->is_cut, true);
	return mmap((void *)from, end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		       -1, 0) != MAP_FAILED;
}

static void handle(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	struct slot *s = NULL;

	(void)context;
	if (info->si_code > 0) /* of the kernel, so there is an address */
		s = find_slot((uintptr_t)info->si_addr);
	if (!s || !put_zeros(s, (uintptr_t)info->si_addr)) {
		signal(number, SIG_DFL);
		if (info->si_code <= 0)
			raise(number); /* sent by somebody; else the access is made again */
	}
	errno = saved;
}

static void install(void)
{
	struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART};

	page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}

bool map_guard_add(const void *start, size_t bytes)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
	for (unsigned i = 0; i < SLOTS_MAX; i++) {
		uintptr_t none = 0;

		if (atomic_load(&slots[i].start) ||
			!atomic_compare_exchange_strong(
				&slots[i].start, &none, (uintptr_t)start))
			continue;
		atomic_store(&slots[i].is_cut, false);
		for (unsigned n = atomic_load(&n_used); n < i + 1;)
			if (atomic_compare_exchange_weak(&n_used, &n, i + 1))
				break;
		atomic_store(&slots[i].bytes, bytes);
		return true;
	}
	return false;
}

void map_guard_remove(const void *start)
{
	struct slot *s = find_slot((uintptr_t)start);

	if (!s)
		return;
	atomic_store(&s->bytes, 0);
	atomic_store(&s->start, 0);
}

bool map_guard_is_cut(const void *p)
{
	struct slot *s = find_slot((uintptr_t)p);

	return s && atomic_load(&s->is_cut);
}

void map_guard_fill_mask(sigset_t *mask)
{
	sigfillset(mask);
	sigdelset(mask, SIGBUS);
}
