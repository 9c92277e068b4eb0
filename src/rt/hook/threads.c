/* SPDX-License-Identifier: MIT */
/* The threads of the program and their rings. All of this runs with signals blocked. */
#include "ring.h"

#define WAIT_NS		100000000
#define WAITS_MAX	50 /* five seconds without any progress of the recorder */
#define LIFE_WAITS	3  /* then the recorder is looked for */
#define ROOM_WAIT_NS	2000000
#define ROOM_WAITS_MAX	50
#define ROOM_TICKS	1000000000ull
#define HEARTBEAT_TICKS 3000000000ull /* about a second: then the recorder is looked for */

__thread struct thread *weir_thread;

static struct hook_thread *shared_threads(void)
{
	return (struct hook_thread *)(library.area + (uintptr_t)library.control->threads_offset);
}

/* Entries that were ever taken. */
static uint32_t n_used(void)
{
	const struct hook_control *control = library.control;
	uint32_t n = __atomic_load_n(&control->n_used, __ATOMIC_ACQUIRE);

	return n < control->n_threads ? n : control->n_threads;
}

static void use_entry(uint32_t i)
{
	uint32_t *n = &library.control->n_used;
	uint32_t was = __atomic_load_n(n, __ATOMIC_RELAXED);

	while (was <= i && !__atomic_compare_exchange_n(
				   n, &was, i + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
}

static void set_limit(struct thread *t)
{
	uintptr_t part = library.control->part_bytes;
	uintptr_t offset = (uintptr_t)t->pos - (uintptr_t)t->ring;

	t->limit = (struct hook_record *)((uintptr_t)t->ring + (offset / part + 1) * part);
}

static bool begin_writing(struct thread *t)
{
	struct hook_control *control = library.control;
	uint64_t now = ticks_now();

	t->tree = NULL;
	t->costs_known = 0;
	t->is_measuring = false;
	if (control->mode != HOOK_MODE_TREE) {
		set_limit(t);
	} else {
		if (!hook_tree_init(t->ring, control->ring_bytes, control->prune_permille, now))
			return false;
		t->tree = (struct hook_tree *)t->ring;
		if (library.is_forked)
			chains_adopt(t->tree);
	}
	library.is_forked = false;
	t->session = library.session;
	return true;
}

static bool is_registered(const struct thread *t)
{
	return t && t->session == library.session;
}

/* State and tid at once: the entry may be another thread's by now. */
static void mark_gone(struct hook_thread *shared, uint64_t was)
{
	uint64_t gone = (was & ~(uint64_t)UINT32_MAX) | HOOK_THREAD_GONE;

	exchange_word((uint64_t *)&shared->state, &was, gone);
}

/* Threads that have ended, when the recorder has not noticed yet. It empties their rings at once.
 */
static bool has_ended_threads(void)
{
	struct hook_thread *shared = shared_threads();
	bool has = false;

	for (uint32_t i = 0; i < n_used(); i++) {
		uint64_t was = *(volatile uint64_t *)&shared[i].state;

		if ((uint32_t)was == HOOK_THREAD_LIVE && thread_has_ended(shared[i].own_tid))
			mark_gone(&shared[i], was);
		has |= shared[i].state == HOOK_THREAD_GONE;
	}
	return has;
}

/*
 * In a pid namespace only the recorder can say which thread this is to the rest of the machine, and
 * only while it lives: so it waits. False when nobody answers.
 */
static bool wait_for_tid(struct hook_thread *shared)
{
	uint32_t new = HOOK_THREAD_NEW;

	__atomic_store_n(&shared->state, new, __ATOMIC_SEQ_CST);
	for (int i = 0; i < WAITS_MAX && shared->state == HOOK_THREAD_NEW; i++) {
		if (library.control->is_off ||
			(i && i % LIFE_WAITS == 0 && !exchange_recorder_lives()))
			break;
		futex_wait(&shared->state, HOOK_THREAD_NEW, 0, WAIT_NS);
	}
	return !__atomic_compare_exchange_n(
		&shared->state, &new, HOOK_THREAD_FREE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Fills an entry that was taken; false when there is no memory for it. */
static bool fill_thread(struct thread *t, struct hook_thread *shared, uint32_t i, uintptr_t sp)
{
	struct hook_control *control = library.control;
	uint32_t tid = raw_tid();

	shared->tid = shared->own_tid = tid;
	shared->start_ticks = ticks_now();
	shared->written = shared->consumed;
	t->shared = shared;
	t->tid = tid;
	t->ring = slabs_ring(i);
	if (!t->ring)
		return false;
	t->ring_end = (struct hook_record *)((uintptr_t)t->ring + (uintptr_t)control->ring_bytes);
	t->pos = t->ring + (uint32_t)shared->consumed %
				   (uint32_t)(control->ring_bytes / sizeof(struct hook_record));
	t->number = 0;
	t->java_bytes = 0;
	t->heartbeat = 0;
	t->ticks_of_heartbeat = t->gave_up_at = t->n_entries = 0;
	t->own = chain_own(sp, tid);
	t->chain = t->own;
	return t->own && begin_writing(t);
}

/* The number of an entry that was free and is taken now; UINT32_MAX: there is none. */
static uint32_t take_place(void)
{
	struct hook_thread *shared = shared_threads();

	for (uint32_t i = 0; i < library.control->n_threads; i++) {
		uint32_t free = HOOK_THREAD_FREE;

		if (shared[i].state == HOOK_THREAD_FREE &&
			__atomic_compare_exchange_n(&shared[i].state, &free, HOOK_THREAD_TAKEN,
				false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return i;
	}
	return UINT32_MAX;
}

/* NULL: *counter is that of the threads that have no place for the same reason. */
static struct thread *take_entry_for(uintptr_t sp, uint32_t **counter)
{
	struct hook_control *control = library.control;
	struct hook_thread *shared = shared_threads();
	struct thread *t = library.threads;
	uint32_t i = take_place();

	*counter = &control->n_threadless;
	if (i == UINT32_MAX)
		return NULL;
	shared += i;
	t += i;
	use_entry(i);
	if (!fill_thread(t, shared, i, sp)) {
		*counter = &control->n_memoryless;
		__atomic_store_n(&shared->state, HOOK_THREAD_FREE, __ATOMIC_RELEASE);
		return NULL;
	}
	if (!control->needs_tids)
		__atomic_store_n(&shared->state, HOOK_THREAD_LIVE, __ATOMIC_RELEASE);
	else if (!wait_for_tid(shared))
		return NULL;
	weir_thread = t;
	return t;
}

static __thread uint32_t told_session; /* for which the thread was counted, without a place */

/* A thread that finds no room looks again now and then. */
static struct thread *thread_register(uintptr_t sp)
{
	static __thread uint64_t again_at;
	uint32_t *counter;
	struct thread *t;

	if (told_session == library.session && ticks_now() < again_at)
		return NULL;
	for (int i = 0; i < ROOM_WAITS_MAX; i++) {
		t = take_entry_for(sp, &counter);
		if (t || !has_ended_threads())
			break;
		wait_ns(ROOM_WAIT_NS);
	}
	if (t)
		return t;
	again_at = ticks_now() + ROOM_TICKS;
	if (told_session != library.session)
		__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
	told_session = library.session;
	return NULL;
}

void thread_miss_call(void)
{
	struct hook_control *control = library.control;
	uint64_t n;

	if (!control || library.is_off || told_session != library.session)
		return;
	n = control->n_missed;
	while (!exchange_word(&control->n_missed, &n, n + 1))
		;
}

struct thread *thread_ensure(uintptr_t sp)
{
	if (!library.control || library.is_off)
		return NULL;
	if (is_registered(weir_thread))
		return weir_thread;
	if (!library_is_own())
		return NULL;
	return thread_register(sp);
}

void thread_stop_all(void)
{
	if (!library.control)
		return;
	for (uint32_t i = 0; i < n_used(); i++) {
		*(struct hook_record *volatile *)&library.threads[i].limit = NULL;
		*(struct hook_tree *volatile *)&library.threads[i].tree = NULL;
	}
}

/* Functions that the recorder no longer wants (--budget). One thread does it. */
static void unhook_wanted(struct hook_control *control)
{
	uint32_t done = __atomic_load_n(&control->n_off_done, __ATOMIC_ACQUIRE);
	uint32_t n = __atomic_load_n(&control->n_off, __ATOMIC_ACQUIRE);

	if (done >= n || n > HOOK_OFF_MAX ||
		!__atomic_compare_exchange_n(
			&control->n_off_done, &done, n, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	for (; done < n; done++)
		patch_remove(control->off[done]);
}

/* The low half is enough, and is read at once in 32-bit programs, too. */
static uint32_t consumed_now(const struct thread *t)
{
	return __atomic_load_n((const uint32_t *)&t->shared->consumed, __ATOMIC_ACQUIRE);
}

static uint32_t records_ahead(const struct thread *t, uint64_t written)
{
	return (uint32_t)written - consumed_now(t);
}

/* Until the recorder has emptied the part that comes next. */
static bool wait_for_room(struct thread *t, uint64_t written, uint32_t room)
{
	uint64_t began = ticks_now();
	uint32_t seen = consumed_now(t);
	bool has_room = false;
	int n_waits = 0;

	if (t->gave_up_at == (uint64_t)seen + 1)
		return false;
	t->gave_up_at = 0;
	t->shared->n_stalls++;
	while (!library.is_off && !library.control->is_off) {
		__atomic_store_n(&t->shared->is_waiting, 1, __ATOMIC_SEQ_CST);
		has_room = records_ahead(t, written) <= room;
		if (has_room)
			break;
		futex_wait(&t->shared->is_waiting, 1, 0, WAIT_NS);
		if (consumed_now(t) != seen) {
			seen = consumed_now(t);
			n_waits = 0;
		} else if (++n_waits == WAITS_MAX) {
			t->gave_up_at = (uint64_t)seen + 1;
			break;
		} else if (n_waits % LIFE_WAITS == 0 && !exchange_recorder_lives()) {
			library_stop();
			break;
		}
	}
	t->shared->is_waiting = 0;
	t->shared->stalled_ticks += ticks_now() - began;
	return has_room;
}

/* A recorder that was killed says nothing any more: then nothing of ours stays in the code. */
static bool recorder_is_gone(struct thread *t)
{
	uint64_t now = ticks_now();
	uint32_t heartbeat = __atomic_load_n(&library.control->heartbeat, __ATOMIC_RELAXED);

	if (heartbeat != t->heartbeat || !t->ticks_of_heartbeat) {
		t->heartbeat = heartbeat;
		t->ticks_of_heartbeat = now;
		return false;
	}
	if (now - t->ticks_of_heartbeat < HEARTBEAT_TICKS)
		return false;
	t->ticks_of_heartbeat = now;
	return !exchange_recorder_lives();
}

/* The recorder has published what it takes before it sets heads back to 0: so a record whose head
 * is 0, and which is not taken even when looked at after that, was never written. */
static bool is_unwritten(const struct thread *t, const struct hook_record *r, uint32_t index)
{
	if (*(const volatile uint64_t *)&r->head)
		return false;
	return (int32_t)(index - __atomic_load_n((const uint32_t *)&t->shared->taken,
					 __ATOMIC_ACQUIRE)) >= 0;
}

/* What was taken at `from` or later, and never written. */
static void pad_unwritten(struct thread *t, const struct hook_record *from)
{
	uint32_t ring = (uint32_t)library.control->ring_bytes / sizeof(*from);
	uint32_t part = library.control->part_bytes / sizeof(*from); /* both are powers of two */
	const struct hook_record *pos = t->pos < t->limit ? t->pos : t->limit;
	uint32_t end, i;

	if (!t->limit || from < t->ring || from > t->ring_end)
		return; /* of another recording */
	end = ((uint32_t)t->shared->written & ~(part - 1)) + part - (uint32_t)(t->limit - pos);
	for (i = end - ((uint32_t)(pos - from) & (ring - 1)); i != end; i++) {
		struct hook_record *r = &t->ring[i & (ring - 1)];

		if (is_unwritten(t, r, i))
			write_record(r, HOOK_HEAD(HOOK_RECORD_MORE, HOOK_MORE_PAD, ticks_now()), 0);
	}
}

void thread_settle(struct thread *t, struct chain *c, uintptr_t slot)
{
	uint32_t n = N_WRITERS;

	while (n && (!c->writers[n - 1].slot || writer_is_over(&c->writers[n - 1], slot)))
		n--;
	if (n == N_WRITERS || !c->writers[n].slot)
		return;
	pad_unwritten(t, c->writers[n].from);
	for (uint32_t i = N_WRITERS; i-- > n;)
		c->writers[i].slot = 0;
}

bool thread_look_around(struct thread *t)
{
	if (library.control->is_off || recorder_is_gone(t)) {
		library_stop();
		return false;
	}
	unhook_wanted(library.control);
	return true;
}

bool thread_next_part(struct thread *t)
{
	struct hook_control *control = library.control;
	uint32_t ring = (uint32_t)control->ring_bytes / sizeof(struct hook_record);
	uint32_t part = control->part_bytes / sizeof(struct hook_record); /* a power of two */
	uint32_t room = ring - part;
	uint64_t written;

	if (!t->limit)
		return false;
	/* Nobody else writes; `pos` may have run over the limit by attempts that were given up. */
	t->pos = t->limit;
	written = (t->shared->written & ~(uint64_t)(part - 1)) + part;
	if (!thread_look_around(t))
		return false;
	if (records_ahead(t, written) > room && !wait_for_room(t, written, room)) {
		t->shared->n_dropped++;
		return false;
	}
	t->shared->written = written;
	if (t->pos == t->ring_end)
		t->pos = t->ring;
	t->limit = (struct hook_record *)((uintptr_t)t->pos + control->part_bytes);
	return true;
}
