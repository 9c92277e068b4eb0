/* SPDX-License-Identifier: MIT */
#include <sys/mman.h>

#include "translate.h"

static uint64_t rows[TRANSLATE_THREADS_MAX];

static void set_up(struct thread *t)
{
	t->a.self = (uint64_t)t;
	t->a.counters = (uint64_t)t + AREA_COUNTERS;
	t->a.events = (uint64_t)t + AREA_GUARD - EVENTS_BYTES;
	t->a.spare = (uint64_t)t + AREA_GUARD_2 - EVENTS_BYTES;
	t->a.events_end = (uint64_t)t + AREA_GUARD;
	t->a.events_at = t->a.events;
	t->enter = (uint64_t)translate_enter;
	t->miss_ret = (uint64_t)translate_miss_return;
	t->miss_jump = (uint64_t)translate_miss_jump;
	t->stack = (uint64_t)t + AREA_STACK + STACK_ROOM;
	t->kernel_stack = (uint64_t)t + AREA_SIGNALS;
	*(uint64_t *)((uint8_t *)t + T_RETURNS) = 1; /* no address with these low bits */
	*(uint64_t *)((uint8_t *)t + T_JUMPS) = 1;
}

static void clear(void *p, uint64_t n)
{
	__asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(0) : "memory");
}

/* One that has ended, and that the recorder has read. */
static struct thread *again(void)
{
	for (uint32_t i = 0; i < header.n_threads; i++) {
		struct thread *t = (struct thread *)rows[i];
		uint32_t state = TRANSLATE_THREAD_FREE;

		if (t && __atomic_compare_exchange_n(&t->a.state, &state, TRANSLATE_THREAD_LIVE, false,
				 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) { /* pairs with the recorder's write */
			struct translate_thread *a = &t->a;

			clear((uint8_t *)t + T_COST, T_PAGE_BYTES - T_COST);
			clear((void *)((uint64_t)t + AREA_COUNTERS), 8ull * header.n_blocks);
			a->state = TRANSLATE_THREAD_LIVE;
			return t;
		}
	}
	return NULL;
}

static struct thread *more(void)
{
	uint32_t i;
	struct thread *t;

	if (header.n_threads == TRANSLATE_THREADS_MAX)
		return NULL;
	t = memory_reserve(AREA_BYTES);
	if (!t)
		return NULL;
	raw_call(SYS_mprotect, (uint64_t)t + AREA_GUARD, GUARD_ROOM, PROT_NONE);
	raw_call(SYS_mprotect, (uint64_t)t + AREA_GUARD_2, GUARD_ROOM, PROT_NONE);
	t->a.state = TRANSLATE_THREAD_LIVE;
	header.threads = (uint64_t)rows;
	i = __atomic_fetch_add(&header.n_threads, 1, __ATOMIC_RELAXED);
	if (i >= TRANSLATE_THREADS_MAX)
		return NULL;
	rows[i] = (uint64_t)t;
	return t;
}

struct thread *thread_new(void)
{
	struct thread *t = again();

	if (!t)
		t = more();
	if (t)
		set_up(t);
	return t;
}

bool threads_live(void)
{
	for (uint32_t i = 0; i < header.n_threads && i < TRANSLATE_THREADS_MAX; i++)
		if (rows[i] && __atomic_load_n(&((struct thread *)rows[i])->a.state, __ATOMIC_SEQ_CST) ==
				       TRANSLATE_THREAD_LIVE)
			return true;
	return false;
}

void threads_forget_others(struct thread *t)
{
	for (uint32_t i = 0; i < header.n_threads; i++)
		if (rows[i] && rows[i] != (uint64_t)t)
			((struct thread *)rows[i])->a.state = TRANSLATE_THREAD_FREE;
	clear((void *)t->a.counters, 8ull * header.n_blocks);
	clear(t->a.cost, sizeof(t->a.cost));
	t->a.events_at = t->a.events;
	t->a.n_lost_buffers = 0;
}
