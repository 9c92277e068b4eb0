/* SPDX-License-Identifier: MIT */
/*
 * Programs that give up system calls (seccomp), or the time-stamp counter, for good: the next one that we
 * made, or its next reading, would kill them. Inserted code asks in front of the calls by which that is
 * done. All that may be needed later is taken then, as far as that can be known; what is needed beyond
 * that is lost, and the count file says so.
 */
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "runtime.h"

#define NODES_RESERVED 65536u
#define NO_CALLS       1u
#define NO_TICKS       2u

/* Without a filter it only asks whether the kernel has filters. */
static uint32_t judge_prctl(uint64_t option, uint64_t value, uint64_t filter)
{
	if ((uint32_t)option == PR_SET_SECCOMP)
		return value == SECCOMP_MODE_STRICT ? NO_CALLS | NO_TICKS : filter ? NO_CALLS : 0;
	return (uint32_t)option == PR_SET_TSC && value == PR_TSC_SIGSEGV ? NO_TICKS : 0;
}

static uint32_t judge(enum gate gate, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	if (gate == GATE_PRCTL)
		return judge_prctl(a, b, c);
	if (gate == GATE_LOAD)
		return NO_CALLS;
	if (a == SYS_prctl)
		return judge_prctl(b, c, d);
	if (a != SYS_seccomp)
		return 0;
	if ((uint32_t)b == SECCOMP_SET_MODE_STRICT)
		return NO_CALLS | NO_TICKS;
	return (uint32_t)b == SECCOMP_SET_MODE_FILTER && d ? NO_CALLS : 0;
}

static void unclock_frames(struct frame *first, struct frame *top)
{
	for (struct frame *f = first + 1; f <= top; f++)
		if ((-f->sp & FRAME_FOREIGN) && !(-f->sp & FRAME_LOST)) {
			f->sp -= FRAME_LOST; /* the fast way does not know it any more */
			f->ticks = 0;
		}
}

/* Nothing that is open may look at the clock, nor may what has been called before. */
static void unclock(struct state *s)
{
	for (uint32_t i = 0; i < N_STACKS && s->stacks[i].frames_bytes; i++)
		if (s->stacks[i].hi)
			unclock_frames(s->stacks[i].frames, i == s->stack ? s->top : s->stacks[i].top);
	for (uint32_t i = 0; i < N_CACHE; i++)
		if (s->cache[i].key & COUNT_KEY_FOREIGN)
			s->cache[i].key = 0;
}

/* Before Linux 5.9 even the question which thread this is takes a system call. */
static void stop_all(void)
{
	for (uint32_t i = 0; i < count_library.n_slots; i++)
		if (count_library.slots[i].copy)
			count_slot_state(&count_library.slots[i])->busy = UINT64_MAX;
}

static void confine(void *arg)
{
	const uint32_t *what = arg;
	struct count_header *h = count_library.header;
	struct state *s = count_gs_get() ? count_gs_state() : NULL;

	if (s && (!s->self || s->busy == UINT64_MAX || s->fs != count_fs_get()))
		s = NULL;
	if ((*what & NO_CALLS) && !count_library.is_confined) {
		if (s && (h->flags & COUNT_FILE_TREE)) {
			count_nodes_reserve(s, NODES_RESERVED);
			count_stacks_reserve(s);
		}
		count_thread_make_lost();
		if (!count_library.has_fsgsbase)
			stop_all();
		count_library.is_confined = true;
		__atomic_fetch_or(&h->flags, COUNT_FILE_CONFINED, __ATOMIC_RELAXED);
	}
	if (*what & NO_TICKS) {
		count_library.is_timeless = true;
		if (s)
			unclock(s);
		__atomic_fetch_or(&h->flags, COUNT_FILE_TIMELESS, __ATOMIC_RELAXED);
	}
}

void count_gate(uint32_t gate, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	uint32_t what = judge((enum gate)gate, a, b, c, d);

	if (what && count_library.is_ready)
		count_apart(confine, &what);
}

void count_child_is_lost(void)
{
	__atomic_fetch_or(&count_library.header->flags, COUNT_FILE_CHILD_LOST, __ATOMIC_RELAXED);
	count_library.is_ready = false;
	if (count_library.has_fsgsbase)
		count_gs_set(0);
}
