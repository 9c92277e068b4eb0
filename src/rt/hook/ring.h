/* SPDX-License-Identifier: MIT */
/*
 * Writing records while signal handlers may come, and write their own, or jump away. A writer is
 * said in its chain before it takes a record, and no longer when the record is complete:
 *
 *   chain->writers   [0] the call that was interrupted first, [1] one of its handler's calls, ...
 *
 * 1. Whoever finds a writer further down the stack than itself, or at the same place, knows that
 *    it was left by a jump (or was given up): what it took and never wrote becomes padding
 *    (thread_settle), so that the recorder does not wait for it.
 * 2. What lies between a writer's `from` and the thread's `pos` belongs to it or to what has
 *    interrupted it; so nothing of the writers before it is touched.
 */
#ifndef WEIR_RT_HOOK_RING_H
#define WEIR_RT_HOOK_RING_H

#include "hook.h"

/* Between a writer and the first call of a handler that interrupts it lie the hook's frame and that
 * of the signal: a call that is closer to the writer, or above it, was not made in between. */
#define HANDLER_BYTES_MIN 512u

static inline bool writer_is_over(const struct writer *w, uintptr_t slot)
{
	return slot > w->slot || w->slot - slot < HANDLER_BYTES_MIN;
}

/* Atomic with respect to signals on this thread, which is all that is needed. */
static inline struct hook_record *take_record(struct thread *t)
{
	uintptr_t n = sizeof(struct hook_record);

	__asm__ volatile("xadd %0, %1" : "+r"(n), "+m"(t->pos) : : "memory", "cc");
	return (struct hook_record *)n;
}

/* The recorder sees the head as a whole, or not at all. */
static inline void write_record(struct hook_record *r, uint64_t head, uint64_t data)
{
	*(volatile uint64_t *)&r->data = data;
#ifdef __x86_64__
	*(volatile uint64_t *)&r->head = head;
#else
	uint64_t none = 0;

	__asm__ volatile("lock cmpxchg8b %0"
			 : "+m"(r->head), "+A"(none)
			 : "b"((uint32_t)head), "c"((uint32_t)(head >> 32))
			 : "memory", "cc");
#endif
}

/* False when the part is full, or when a handler has written in between: then the part may be
 * another one, and thread_settle() sees to what was taken. */
static inline bool record_as(
	struct thread *t, struct writer *w, uintptr_t slot, uint64_t head, uint64_t data)
{
	struct hook_record *from = *(struct hook_record *volatile *)&t->pos, *r;
	struct hook_record *limit = *(struct hook_record *volatile *)&t->limit;

	*(struct hook_record *volatile *)&w->from = from;
	*(volatile uintptr_t *)&w->slot = slot;
	r = take_record(t);
	if (unlikely(r >= limit) || unlikely(r != from))
		return false;
	write_record(r, head, data);
	*(volatile uintptr_t *)&w->slot = 0;
	return true;
}

/* events.c: the same from a handler that has interrupted a writer. By registers, so that the fast way needs no
 * stack for it; 32-bit code has too few. */
KEEPS_REGISTERS bool record_nested(
	struct thread *t, struct chain *c, uintptr_t slot, uint64_t head, uint64_t data);

/* Records a call whose return address is at `slot` of the chain; false: the slow way. A handler may
 * have left the thread on another chain meanwhile: so it is not asked for that. */
static inline bool record_call(
	struct thread *t, struct chain *c, const uintptr_t *slot, uint64_t head, uint64_t data)
{
	if (unlikely(*(volatile uintptr_t *)&c->writers[0].slot))
		return record_nested(t, c, (uintptr_t)slot, head, data);
	return record_as(t, c->writers, (uintptr_t)slot, head, data);
}

/* --- entries ------------------------------------------------------------------------------ */

#define LOOK_AROUND_ENTRIES                                                                        \
	65536 /* a power of two: so often, with --tree, without a record's part to end */

static inline struct hook_entry *take_entry(struct chain *c)
{
	uintptr_t n = sizeof(struct hook_entry);

	__asm__ volatile("xadd %0, %1" : "+r"(n), "+m"(c->top) : : "memory", "cc");
	return (struct hook_entry *)n;
}

/* In this order: a handler that jumps away in between leaves no entry that looks like one to be
 * filled. One that takes it in between has given it back by the time this goes on. */
static inline void give_entry(struct chain *c, struct hook_entry *e)
{
	*(struct hook_entry *volatile *)&c->top = e;
	entry_set_not_sp(e, 0);
}

/* A handler may fork: in the child all of *t is 0 from one instruction to the next. So this comes
 * first, and after it what tells. */
static inline struct chain *chain_now(const struct thread *t)
{
	return *(struct chain *volatile const *)&t->chain;
}

/* Another thread may end the recording at any time, and this may become a child: so it is looked at
 * once, and after the note that makes the memory be there in a child (start.c). */
static inline struct hook_tree *tree_now(const struct thread *t)
{
	return *(struct hook_tree *volatile const *)&t->tree;
}

/*
 * Where a call without a return address (a Java method) is said to be on the stack: where the call below it is, since
 * its own frame may be laid out anew at any time (compiled, interpreted). So it is over when that one is, or
 * when it says so.
 */
static inline uintptr_t entry_mark(const struct hook_entry *e)
{
	uintptr_t below = (uintptr_t)e[-1].not_sp;

	return below > HOOK_LEFT ? below : HOOK_LEFT + 1;
}

#endif
