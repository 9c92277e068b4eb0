/* SPDX-License-Identifier: MIT */
/*
 * Emptying rings. A ring's records are taken in order up to the first that is not written yet, and
 * given back to the thread as zeros; a thread that waits for room is woken. Nothing that a program
 * writes into its area can lead outside of it.
 */
#include "record/hooks/hooks_internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/proc.h"
#include "record/hooks/tick_clock.h"

#define QUEUED_RECORDS_MAX ((uint64_t)(512u << 20) / sizeof(struct hook_record))
/* The taker is told when there is this much, or after a while. */
#define TELL_RECORDS (uint64_t)65536
#define TELL_NS	     10000000u
/* A ring is full within a ms at full speed; without any program there is no hurry. */
#define SLEEP_NS_MIN	 250000u
#define SLEEP_NS_MAX	 1000000u
#define SLEEP_NS_ALONE	 20000000u
#define BUSY_RECORDS	 2048u
#define LOOK_FOR_ENDS_NS 100000000u
/* Entries that are free in a row end the scan, but for every so many rounds. */
#define SCAN_AHEAD	 16u
#define FULL_SCAN_ROUNDS 32u
/* Time stamps have 40 bits; a chunk that is open for longer than half of that is closed. */
#define CHUNK_TICKS_MAX ((uint64_t)1 << (HOOK_TIME_BITS - 2))
/* A thread that was killed in the midst of a hook leaves a record unwritten: those behind it are
 * looked for this far. */
#define HOLE_RECORDS_MAX 64u
#define HOLE_LOOKS	 20 /* times LOOK_FOR_ENDS_NS */

/* --- queues ----------------------------------------------------------------------------- */

static struct hook_chunk *new_chunk(struct hooks *h)
{
	struct hook_chunk *c = h->free_chunks;

	if (c) {
		h->free_chunks = c->next;
		h->n_free_chunks--;
	} else {
		c = mem_alloc(sizeof(*c));
	}
	c->next = NULL;
	c->n = 0;
	return c;
}

/* A chunk with room for `n` records. */
static struct hook_chunk *room(struct hooks *h, struct hook_source *s, uint32_t n, uint64_t ticks)
{
	struct hook_chunk *c = s->last;

	if (!c || c->n + n > HOOK_CHUNK_RECORDS ||
		(c->n && ticks - c->first_ticks > CHUNK_TICKS_MAX)) {
		c = new_chunk(h);
		c->first_ticks = ticks;
		if (s->last)
			s->last->next = c;
		else
			s->first = c;
		s->last = c;
	}
	c->ticks = ticks;
	return c;
}

static void list_source(struct hooks *h, struct hook_source *s)
{
	if (s->is_listed)
		return;
	s->is_listed = true;
	vec_push(&h->dirty, s);
}

/* --- one ring --------------------------------------------------------------------------- */

struct ring_view {
	struct hook_record *records;
	uint64_t mask;
	uint32_t max_more; /* records that may follow one of HOOK_RECORD_MORE */
	struct hook_thread *thread;
};

/* Before the heads are set back to 0: the library tells by it what was taken from what was never
 * written. */
static void publish_taken(struct hook_thread *t, uint64_t taken)
{
	__atomic_store_n(&t->taken, taken, __ATOMIC_RELAXED);
	/* Pairs with the library's reading of a head, then of `taken`. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static void clear_heads(const struct ring_view *v, uint64_t at, uint64_t end)
{
	publish_taken(v->thread, end);
	for (; at < end; at++)
		__atomic_store_n(&v->records[at & v->mask].head, 0, __ATOMIC_RELAXED);
}

static void publish(struct hook_thread *t, uint64_t taken)
{
	/* Pairs with the library's acquire of `consumed`: the heads are zero before it moves. */
	__atomic_store_n(&t->consumed, taken, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&t->is_waiting, __ATOMIC_RELAXED)) {
		__atomic_store_n(&t->is_waiting, 0, __ATOMIC_RELAXED);
		syscall(SYS_futex, &t->is_waiting, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
}

/* How many records belong to the one of HOOK_RECORD_MORE, itself included; 0: nonsense. */
static uint32_t extent(const struct ring_view *v, uint64_t head, uint64_t data)
{
	uint32_t id = HOOK_HEAD_ID(head);
	uint64_t n = 1;

	if (id == HOOK_MORE_STACK)
		n += data / sizeof(struct hook_record) + (data % sizeof(struct hook_record) != 0);
	else if (id == HOOK_MORE_PAD)
		n += data;
	return n > v->max_more ? 0 : (uint32_t)n;
}

/* Takes a record with what follows it; what does not fit into a chunk is left out and counted. */
static void take_many(struct hooks *h, struct hook_source *s, const struct ring_view *v,
	uint64_t at, uint32_t n, uint64_t ticks)
{
	bool is_pad = HOOK_HEAD_ID(v->records[at & v->mask].head) == HOOK_MORE_PAD;
	struct hook_chunk *c = is_pad || n > HOOK_CHUNK_RECORDS ? NULL : room(h, s, n, ticks);

	for (uint32_t i = 0; c && i < n; i++)
		c->records[c->n++] = v->records[(at + i) & v->mask];
	clear_heads(v, at, at + n);
	if (!c && !is_pad)
		s->n_unread++;
}

/* Plain records up to the first that is not written or not plain. Returns the new position. */
static uint64_t take_plain(
	const struct ring_view *v, struct hook_chunk *c, uint64_t at, uint64_t end)
{
	struct hook_record *to = &c->records[c->n];
	uint64_t began = at;

	for (; at < end; at++) {
		const struct hook_record *r = &v->records[at & v->mask];
		/* Pairs with the library's store of the head, which comes after the data. */
		uint64_t head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);

		if (!head || HOOK_HEAD_KIND(head) == HOOK_RECORD_MORE)
			break;
		to->head = head;
		to->data = r->data;
		to++;
	}
	clear_heads(v, began, at);
	c->n = (uint32_t)(to - c->records);
	return at;
}

/* At most once around the ring. With h->lock held. */
static uint64_t drain_ring(struct hooks *h, struct hook_process *p, uint32_t thread_i)
{
	const struct hook_area *a = &p->area;
	struct drain_ring *ring = &p->rings[thread_i];
	struct ring_view v = {hook_area_ring(a, thread_i), a->ring_mask,
		(uint32_t)(a->ring_mask + 1), &a->threads[thread_i]};
	uint64_t part = (a->ring_mask + 1) / 16, end = ring->taken + a->ring_mask + 1;
	uint64_t at = ring->taken, began = at, published = at, ticks = tick_clock_read();

	while (at < end && !ring->is_broken) {
		uint64_t head = __atomic_load_n(&v.records[at & v.mask].head, __ATOMIC_ACQUIRE);
		uint64_t before = at;

		if (!head)
			break;
		if (HOOK_HEAD_KIND(head) == HOOK_RECORD_MORE) {
			uint32_t n = extent(&v, head, v.records[at & v.mask].data);

			ticks = tick_clock_read();
			ring->is_broken = !n;
			take_many(h, ring->source, &v, at, n, ticks);
			at += n;
		} else {
			struct hook_chunk *c = room(h, ring->source, 1, ticks);
			uint64_t limit = at + (HOOK_CHUNK_RECORDS - c->n);

			limit = limit < published + part ? limit : published + part;
			at = take_plain(&v, c, at, limit < end ? limit : end);
			c->ticks = ticks = tick_clock_read(); /* after the last was read */
		}
		if (at - published >= part || at == before) {
			publish(&a->threads[thread_i], at);
			published = at;
		}
	}
	if (at != published)
		publish(&a->threads[thread_i], at);
	if (ring->is_broken) /* nobody may wait for room that never comes */
		__atomic_store_n(&a->control->is_off, 1, __ATOMIC_RELAXED);
	ring->taken = at;
	if (at == began)
		return 0;
	list_source(h, ring->source);
	h->n_queued += at - began;
	return at - began;
}

/* --- threads that come and go ----------------------------------------------------------- */

/* With h->lock held: others count references, too. */
static void open_source(struct hook_process *p, uint32_t thread_i)
{
	struct hook_source *s = mem_zalloc(sizeof(*s));

	s->process = p;
	p->n_refs++;
	s->tid = p->area.threads[thread_i].tid;
	s->thread_i = thread_i;
	s->is_fresh = true;
	p->rings[thread_i] = (struct drain_ring){.source = s};
}

static void take_counts(struct hook_source *s, const struct hook_thread *t)
{
	s->counts = (struct hook_thread_counts){
		.n_dropped = t->n_dropped,
		.n_stalls = t->n_stalls,
		.n_unhooked = t->n_unhooked,
		.n_jumped = t->n_jumped,
	};
}

/* Records from `taken` to the first that is written; 0: none is, or the first is. */
static uint32_t hole_records(const struct hook_process *p, uint32_t thread_i)
{
	const struct hook_record *records = hook_area_ring(&p->area, thread_i);
	uint64_t taken = p->rings[thread_i].taken;

	if (p->rings[thread_i].is_broken)
		return 0;
	for (uint32_t i = 0; i < HOLE_RECORDS_MAX; i++)
		if (__atomic_load_n(
			    &records[(taken + i) & p->area.ring_mask].head, __ATOMIC_ACQUIRE))
			return i;
	return 0;
}

/* They become padding, whose data are 0 as the records' are. */
static void skip_hole(struct hook_process *p, uint32_t thread_i, uint32_t n)
{
	struct hook_record *records = hook_area_ring(&p->area, thread_i);
	uint64_t taken = p->rings[thread_i].taken;

	for (uint32_t i = 0; i < n; i++) {
		struct hook_record *r = &records[(taken + i) & p->area.ring_mask];
		uint64_t none = 0;

		/* The library may be about to do the same. */
		__atomic_compare_exchange_n(&r->head, &none,
			HOOK_HEAD(HOOK_RECORD_MORE, HOOK_MORE_PAD, tick_clock_read()), false,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
	p->rings[thread_i].source->n_unread++;
}

/*
 * A signal handler that jumped out of a hook leaves a record that will never be written. One that
 * is only long will write it: it gets its time.
 */
static void look_at_hole(struct hook_process *p, uint32_t thread_i)
{
	struct drain_ring *ring = &p->rings[thread_i];
	uint32_t n = hole_records(p, thread_i);

	if (!n || ring->hole_at != ring->taken) {
		ring->hole_at = ring->taken;
		ring->hole_looks = 0;
	} else if (++ring->hole_looks == HOLE_LOOKS) {
		skip_hole(p, thread_i, n);
	}
}

/* The thread writes no more. */
static uint64_t drain_dead(struct hooks *h, struct hook_process *p, uint32_t thread_i)
{
	uint64_t n = 0, got;
	uint32_t hole;

	do {
		got = drain_ring(h, p, thread_i);
		n += got;
		hole = got ? 0 : hole_records(p, thread_i);
		if (hole)
			skip_hole(p, thread_i, hole);
	} while (got || hole);
	return n;
}

static uint64_t finish_thread(struct hooks *h, struct hook_process *p, uint32_t thread_i)
{
	struct hook_source *s = p->rings[thread_i].source;
	uint64_t n = drain_dead(h, p, thread_i);

	take_counts(s, &p->area.threads[thread_i]);
	s->n_unread += p->rings[thread_i].is_broken;
	s->is_over = true;
	list_source(h, s);
	p->rings[thread_i] = (struct drain_ring){0};
	hook_area_free_thread(&p->area, thread_i);
	return n;
}

static bool thread_has_ended(const struct hook_process *p, uint32_t thread_i)
{
	return syscall(SYS_tgkill, (pid_t)p->pid, (pid_t)p->rings[thread_i].source->tid, 0) < 0 &&
	       errno == ESRCH;
}

static bool process_has_ended(const struct hook_process *p)
{
	struct pollfd fd = {.fd = p->pid_fd, .events = POLLIN};

	return poll(&fd, 1, 0) > 0;
}

/* --- processes -------------------------------------------------------------------------- */

struct tid_search {
	pid_t pid;
	uint32_t own_tid, found;
};

static void try_tid(void *ctx, pid_t tid)
{
	struct tid_search *s = ctx;
	pid_t own;

	if (!s->found && proc_own_number(s->pid, tid, &own) && (uint32_t)own == s->own_tid)
		s->found = (uint32_t)tid;
}

/* Our number for the thread that has the number `own_tid` in the process's own namespace; 0 when
 * there is none. Reads a file for each thread. */
static uint32_t find_tid(pid_t pid, uint32_t own_tid)
{
	struct tid_search s = {.pid = pid, .own_tid = own_tid};

	try_tid(&s, pid);
	if (!s.found)
		proc_each_task(pid, try_tid, &s);
	return s.found;
}

/*
 * A thread that waits to be told who it is (pid namespaces). One that is not found has ended or
 * will give up by itself. Returns the state that it has then.
 */
static uint32_t identify_thread(struct hook_process *p, uint32_t thread_i)
{
	struct hook_thread *t = &p->area.threads[thread_i];
	uint32_t tid = p->needs_tids ? find_tid((pid_t)p->pid, t->own_tid) : 0;
	uint32_t state = HOOK_THREAD_NEW;

	if (!tid)
		return state;
	t->tid = tid;
	if (!__atomic_compare_exchange_n(&t->state, &state, HOOK_THREAD_LIVE, false,
		    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return state;
	syscall(SYS_futex, &t->state, FUTEX_WAKE, 1, NULL, NULL, 0);
	return HOOK_THREAD_LIVE;
}

/* With trees nobody looks at the threads otherwise. */
static void identify_threads(struct hook_process *p)
{
	uint32_t n_free = 0;

	for (uint32_t i = 0; i < hook_area_n_used(&p->area) && n_free < SCAN_AHEAD; i++) {
		uint32_t state = __atomic_load_n(&p->area.threads[i].state, __ATOMIC_ACQUIRE);

		n_free = state == HOOK_THREAD_FREE ? n_free + 1 : 0;
		if (state == HOOK_THREAD_NEW)
			identify_thread(p, i);
	}
}

static uint64_t drain_thread(
	struct hooks *h, struct hook_process *p, uint32_t i, bool looks_for_ends)
{
	uint32_t state = __atomic_load_n(&p->area.threads[i].state, __ATOMIC_ACQUIRE);
	bool has_ended = state == HOOK_THREAD_GONE;
	uint64_t n;

	if (state == HOOK_THREAD_NEW)
		state = identify_thread(p, i);
	if (!p->rings[i].source && state != HOOK_THREAD_LIVE && state != HOOK_THREAD_GONE)
		return 0;
	if (!hook_area_ring(&p->area, i)) /* it fills up, and what is then lost is counted */
		return 0;
	if (looks_for_ends && p->rings[i].source)
		has_ended |= thread_has_ended(p, i);
	HOLD(&h->lock);
	if (!p->rings[i].source)
		open_source(p, i);
	n = has_ended ? finish_thread(h, p, i) : drain_ring(h, p, i);
	if (looks_for_ends && !has_ended)
		look_at_hole(p, i);
	return n;
}

static void finish_process(struct hooks *h, struct hook_process *p)
{
	HOLD(&h->lock);
	for (uint32_t i = 0; i < hook_area_n_used(&p->area); i++)
		if (p->rings[i].source)
			finish_thread(h, p, i);
	p->has_ended = true;
	hooks_take_counts(h, p);
	h->version++;
	if (!p->n_exchanges && !h->options.tree)
		hook_area_close(&p->area);
}

static uint64_t drain_process(
	struct hooks *h, struct hook_process *p, bool scans_all, bool looks_for_ends)
{
	bool has_ended = p->is_superseded || (looks_for_ends && process_has_ended(p));
	/* In this order: a thread may have begun, and the process have ended, just now. */
	uint32_t n_used = hook_area_n_used(&p->area);
	uint32_t limit = scans_all || has_ended ? n_used : p->n_scanned + SCAN_AHEAD;
	uint64_t n = 0;

	__atomic_fetch_add(&p->area.control->heartbeat, 1, __ATOMIC_RELAXED);
	if (h->options.tree) { /* trees are read where they are, by whoever wants to see them */
		if (p->needs_tids)
			identify_threads(p);
		if (has_ended)
			finish_process(h, p);
		return 0;
	}
	p->n_scanned = 0;
	for (uint32_t i = 0; i < limit && i < n_used; i++) {
		n += drain_thread(h, p, i, looks_for_ends && !has_ended);
		if (p->rings[i].source)
			p->n_scanned = i + 1;
		if (limit < p->n_scanned + SCAN_AHEAD)
			limit = p->n_scanned + SCAN_AHEAD;
	}
	if (has_ended)
		finish_process(h, p);
	return n;
}

uint64_t hook_drain_round(struct hooks *h, bool looks_for_ends)
{
	uint64_t began = tick_clock_read(), n = 0;
	unsigned round = atomic_load(&h->rounds_done);
	bool scans_all = looks_for_ends || round % FULL_SCAN_ROUNDS == 0;

	pthread_mutex_lock(&h->lock);
	if (h->drained_version != h->version) {
		h->drained.n = 0;
		for (size_t i = 0; i < h->processes.n; i++)
			if (!h->processes.v[i]->has_ended)
				vec_push(&h->drained, h->processes.v[i]);
		h->drained_version = h->version;
	}
	pthread_mutex_unlock(&h->lock);
	/* A process leaves the list only when it has ended, which is said by this thread. */
	for (size_t i = 0; i < h->drained.n; i++)
		n += drain_process(h, h->drained.v[i], scans_all, looks_for_ends);
	pthread_mutex_lock(&h->lock);
	h->drained_ticks = began;
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
	atomic_fetch_add(&h->rounds_done, 1);
	return n;
}

/* --- the thread ------------------------------------------------------------------------- */

struct pace {
	uint64_t sleep_ns, told_ns, looked_ns;
};

static void tell(struct hooks *h, struct pace *pace, uint64_t n, uint64_t now)
{
	uint64_t one = 1, queued;

	pthread_mutex_lock(&h->lock);
	queued = h->n_queued;
	pthread_mutex_unlock(&h->lock);
	if (!queued && !n)
		return;
	if (queued < TELL_RECORDS && now - pace->told_ns < TELL_NS)
		return;
	pace->told_ns = now;
	if (write(h->event_fd, &one, sizeof(one)) < 0)
		return; /* it is readable already */
}

/* The taker is far behind: the programs have to wait, too. They must not think we were dead. */
static bool is_full(struct hooks *h)
{
	bool is = false;

	HOLD(&h->lock);
	if (h->n_queued > QUEUED_RECORDS_MAX) {
		struct timespec until = clock_in_ns(CLOCK_MONOTONIC, SLEEP_NS_ALONE);

		is = true;
		pthread_cond_timedwait(&h->changed, &h->lock, &until);
		/* Not those of the last round: what has ended since may have been freed. */
		for (size_t i = 0; i < h->processes.n; i++)
			if (!h->processes.v[i]->has_ended)
				__atomic_fetch_add(&h->processes.v[i]->area.control->heartbeat, 1,
					__ATOMIC_RELAXED);
	}
	return is;
}

static void pause_a_while(struct pace *pace, uint64_t n, bool is_alone)
{
	if (n)
		pace->sleep_ns = SLEEP_NS_MIN;
	if (n >= BUSY_RECORDS)
		return; /* it comes faster than we sleep */
	if (!n && pace->sleep_ns < (is_alone ? SLEEP_NS_ALONE : SLEEP_NS_MAX))
		pace->sleep_ns *= 2;
	if (!is_alone && pace->sleep_ns > SLEEP_NS_MAX)
		pace->sleep_ns = SLEEP_NS_MAX;
	nanosleep(&(struct timespec){0, (long)pace->sleep_ns}, NULL);
}

void *hook_drain_main(void *hooks)
{
	struct hooks *h = hooks;
	struct pace pace = {.sleep_ns = SLEEP_NS_MIN};

	while (!atomic_load(&h->stop)) {
		uint64_t now = clock_mono_ns(), n;
		bool looks = now - pace.looked_ns >= LOOK_FOR_ENDS_NS;

		if (is_full(h))
			continue;
		if (looks)
			pace.looked_ns = now;
		n = hook_drain_round(h, looks);
		tell(h, &pace, n, now);
		pause_a_while(&pace, n, !h->drained.n);
	}
	return NULL;
}
