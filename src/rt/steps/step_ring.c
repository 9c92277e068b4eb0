/* SPDX-License-Identifier: MIT */
/*
 * The thread's ring: one writer, one reader. A full ring makes the thread wait, or drops and
 * counts. Who waits asks now and then whether the recorder still lives; when it does not, everybody
 * leaves.
 */
#include "stepper.h"

#include <linux/futex.h>
#include <time.h>

#define SPINS	    200
#define WAIT_NS	    20000000	   /* between two looks at the recorder */
#define LOOK_TRAPS  2048	   /* traps between two looks of a thread that never waits */
#define STALE_NS    2000000000ull  /* heartbeat stands still: is the recorder there at all? */
#define GIVEN_UP_NS 60000000000ull /* it is there, or we cannot ask, and does nothing */

static uint64_t now_ns(void)
{
	struct timespec now = {0, 0};

	raw_call(SYS_clock_gettime, CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void give_up(void)
{
	__atomic_store_n(&memory()->is_dead, 1, __ATOMIC_RELAXED);
}

static void look_at_recorder(struct state *t)
{
	uint32_t beat = __atomic_load_n(&area()->heartbeat, __ATOMIC_RELAXED);
	uint64_t now = now_ns();

	if (beat != t->heartbeat || !t->heartbeat_ns) {
		t->heartbeat = beat;
		t->heartbeat_ns = now;
		return;
	}
	if (now - t->heartbeat_ns > GIVEN_UP_NS)
		give_up();
	else if (now - t->heartbeat_ns > STALE_NS &&
		 raw_call(SYS_kill, area()->recorder_pid, 0) == -ERRNO_ESRCH)
		give_up();
}

void ring_look_around(struct state *t)
{
	if (t->n_until_look--)
		return;
	t->n_until_look = LOOK_TRAPS;
	look_at_recorder(t);
}

static void wake_recorder(void)
{
	struct steps_area *a = area();

	if (!__atomic_load_n(&a->is_asleep, __ATOMIC_SEQ_CST))
		return;
	if (__atomic_exchange_n(&a->is_asleep, 0, __ATOMIC_SEQ_CST))
		raw_call(SYS_futex, &a->is_asleep, FUTEX_WAKE, 1);
}

/* Waits until *word is not `old`; false when that will not happen. */
static bool wait_for_change(struct state *t, uint32_t *word, uint32_t old)
{
	const struct timespec wait = {0, WAIT_NS};

	wake_recorder();
	for (uint32_t i = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) == old; i++) {
		if (memory()->is_dead || __atomic_load_n(&area()->is_off, __ATOMIC_RELAXED) > 1)
			return false;
		if (i < SPINS) {
			__builtin_ia32_pause();
			continue;
		}
		raw_call(SYS_futex, word, FUTEX_WAIT, old, &wait);
		look_at_recorder(t);
	}
	return true;
}

/* The place for the next record; NULL when it is to be dropped. */
static struct steps_record *place(struct state *t, bool may_drop)
{
	struct steps_slot *s = t->slot;
	uint32_t n = area()->ring_records;

	for (;;) {
		uint32_t moved = __atomic_load_n(&s->moved, __ATOMIC_ACQUIRE);

		if (s->head - __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE) < n)
			return &t->ring[s->head & (n - 1)];
		if (may_drop && (area()->flags & STEPS_FLAG_LOSSY))
			return NULL;
		if (!wait_for_change(t, &s->moved, moved))
			return NULL;
	}
}

static void publish(struct state *t)
{
	struct steps_slot *s = t->slot;
	uint64_t head = s->head + 1;

	__atomic_store_n(&s->head, head, __ATOMIC_RELEASE);
	/* Early enough that the ring need not become full. */
	if (head - __atomic_load_n(&s->tail, __ATOMIC_RELAXED) == area()->ring_records / 4)
		wake_recorder();
}

static void tell_lost(struct state *t)
{
	uint64_t n = t->n_lost;

	t->n_lost = 0;
	ring_write(t, STEPS_RECORD_LOST, n, 0, 0);
}

void ring_step(struct state *t, uint64_t addr, const uint8_t *bytes, size_t n)
{
	struct steps_record *r;

	if (!t->slot)
		return;
	r = place(t, true);
	if (r && t->n_lost) {
		tell_lost(t);
		r = t->slot ? place(t, true) : NULL;
	}
	if (!r) {
		t->n_lost++;
		return;
	}
	r->addr = addr;
	r->kind = (uint8_t)(STEPS_RECORD_STEP << 4 | n);
	copy_bytes(r->bytes, bytes, n);
	publish(t);
}

void ring_write(struct state *t, enum steps_record_kind kind, uint64_t addr, uint32_t a, uint32_t b)
{
	struct steps_record *r;

	if (!t->slot)
		return;
	if (t->n_lost)
		tell_lost(t);
	r = place(t, false);
	if (!r)
		return;
	r->addr = addr;
	r->kind = (uint8_t)((unsigned)kind << 4);
	copy_bytes(r->bytes + STEPS_ARG_A, &a, sizeof(a));
	copy_bytes(r->bytes + STEPS_ARG_B, &b, sizeof(b));
	publish(t);
}

bool ring_sync(struct state *t, uint32_t what, uint64_t addr)
{
	struct steps_slot *s = t->slot;
	uint32_t before;

	if (!s || is_off())
		return false;
	before = __atomic_load_n(&s->synced, __ATOMIC_ACQUIRE);
	ring_write(t, STEPS_RECORD_SYNC, addr, what, before + 1);
	return wait_for_change(t, &s->synced, before);
}
