/* SPDX-License-Identifier: MIT */
/*
 * Rings -> session, in each thread's order. A ring is taken only when its thread's track is known:
 * a new thread's slot waits for the record by which its creator tells of it.
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "steps/engine/inside_engine.h"

#define BATCH 8192u
#define INT3  0xcc

static uint32_t arg(const struct steps_record *r, unsigned at)
{
	uint32_t v;

	memcpy(&v, r->bytes + at, sizeof(v));
	return v;
}

static void wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void read_for(struct inside_engine *e, struct inside_thread *t, uint64_t addr)
{
	struct inside_process *p = inside_process_find(e, t->pid);
	struct steps_slot *s = t->slot;
	ssize_t n = 0;

	/* As much as there is: the end of memory may come before the reply is full. */
	for (size_t want = STEPS_REPLY_BYTES; want && n <= 0; want /= 2)
		n = p ? pread(p->memory_fd, s->reply, want, (off_t)addr) : 0;
	s->reply_n = n > 0 ? (uint32_t)n : 0;
}

static void answer(struct inside_engine *e, struct inside_thread *t, const struct steps_record *r)
{
	struct steps_slot *s = t->slot;
	uint32_t what = arg(r, STEPS_ARG_A);
	bool waits = false;

	switch ((enum steps_sync)(what & STEPS_SYNC_WHAT)) {
	case STEPS_SYNC_MAPS:
		step_session_maps(e->s, t->track);
		break;
	case STEPS_SYNC_EXEC:
		inside_exec_begin(e, t, r->addr);
		t->exec_heritage = what;
		break;
	case STEPS_SYNC_READ:
		read_for(e, t, r->addr);
		break;
	case STEPS_SYNC_CODE:
		read_for(e, t, r->addr);
		/* The breakpoint may be gone since the library read it. */
		if (!step_session_unprobe(e->s, t->track, r->addr, s->reply, s->reply_n, true) &&
			s->reply[0] == INT3)
			s->reply_n = 0;
		break;
	case STEPS_SYNC_NAME:
		step_session_look_at_name(e->s, t->track);
		break;
	case STEPS_SYNC_FILTER:
		s->reply_n = 0;
		waits = inside_leave_for_filter(e, t, what & STEPS_FILTER_ALONE);
		break;
	case STEPS_SYNC_CLAIM:
		waits = inside_leave_for_claim(e, t, (pid_t)r->addr);
		break;
	}
	t->leave_sync = arg(r, STEPS_ARG_B);
	if (waits)
		return;
	__atomic_store_n(&s->synced, arg(r, STEPS_ARG_B), __ATOMIC_RELEASE);
	wake(&s->synced);
}

static void forked(struct inside_engine *e, struct inside_thread *t, pid_t tid, bool is_thread)
{
	pid_t pid = is_thread ? t->pid : tid;
	struct step_track *track = step_session_forked(e->s, t->track, pid, tid);

	if (!is_thread)
		inside_process_add(e, pid, t->area);
	inside_thread_add(e, track, t->area);
}

/* --max: what comes behind it is not of the recording. */
static bool is_full(struct inside_engine *e, struct inside_thread *t)
{
	if (!e->o->max || step_session_n_steps(e->s) < e->o->max)
		return false;
	if (!t->is_paused)
		step_session_mark(e->s, t->track, STEP_MARK_PAUSE, STEP_WHY_MAX, 0, 0);
	t->is_paused = true;
	return true;
}

/* A nop of five bytes that has a uprobe is a call in memory, which is not looked at in the program.
 */
static void take_step(struct inside_engine *e, struct inside_thread *t, struct steps_record *r)
{
	if (t->is_unwanted || step_session_is_kernels(e->s, t->track, r->addr) || is_full(e, t))
		return;
	if (r->bytes[0] == 0xe8)
		step_session_unprobe(e->s, t->track, r->addr, r->bytes, r->kind & 0xf, true);
	if (!step_session_wants(e->s, t->track, r->addr)) {
		if (!t->is_paused)
			step_session_mark(e->s, t->track, STEP_MARK_PAUSE, STEP_WHY_USER, 0, 0);
		t->is_paused = true;
		return;
	}
	if (t->is_paused)
		step_session_mark(e->s, t->track, STEP_MARK_RESUME, STEP_WHY_USER, 0, 0);
	t->is_paused = false;
	step_session_step(e->s, t->track, r->addr, r->bytes, r->kind & 0xf, true);
}

static void take_exit(
	struct inside_engine *e, struct inside_thread *t, const struct steps_record *r)
{
	struct inside_process *p = inside_process_find(e, t->pid);
	bool is_all = arg(r, STEPS_ARG_B);

	step_session_look_at_name(e->s, t->track); /* somebody else may have named it */
	t->has_exit = true;
	t->exit_addr = r->addr;
	t->exit_status = (int)arg(r, STEPS_ARG_A);
	t->exit_number = is_all ? SYS_exit_group : SYS_exit;
	if (is_all && p) {
		p->has_status = true;
		p->status = t->exit_status;
	}
}

static void take_mark(
	struct inside_engine *e, struct inside_thread *t, const struct steps_record *r)
{
	uint32_t a = arg(r, STEPS_ARG_A), b = arg(r, STEPS_ARG_B);

	switch ((enum steps_record_kind)(r->kind >> 4)) {
	case STEPS_RECORD_SYSCALL:
		step_session_mark(e->s, t->track, STEP_MARK_SYSCALL, a, (int64_t)r->addr, b);
		break;
	case STEPS_RECORD_SIGNAL:
		t->last_signal = (int)a;
		step_session_mark(
			e->s, t->track, STEP_MARK_SIGNAL, a, (int32_t)b, (int64_t)r->addr);
		break;
	case STEPS_RECORD_LOST:
		step_session_lost(
			e->s, t->track, r->addr, "the buffer of the thread was full");
		break;
	case STEPS_RECORD_RESUME:
		step_session_mark(e->s, t->track, STEP_MARK_RESUME, a, 0, 0);
		break;
	case STEPS_RECORD_PAUSE:
		step_session_mark(e->s, t->track, STEP_MARK_PAUSE, a, 0, 0);
		t->is_paused = true;
		break;
	default:
		break;
	}
}

static void take_other(
	struct inside_engine *e, struct inside_thread *t, const struct steps_record *r)
{
	switch ((enum steps_record_kind)(r->kind >> 4)) {
	case STEPS_RECORD_SYNC:
		answer(e, t, r);
		break;
	case STEPS_RECORD_FORK:
		forked(e, t, (pid_t)r->addr, arg(r, STEPS_ARG_A));
		break;
	case STEPS_RECORD_EXIT:
		take_exit(e, t, r);
		break;
	default:
		if (!t->is_paused)
			take_mark(e, t, r);
	}
}

void inside_free_slot(struct inside_thread *t)
{
	struct steps_slot *s = t->slot;

	if (!s)
		return;
	t->slot = NULL;
	t->area->is_bound[s - t->area->slots] = false;
	s->head = s->tail = 0;
	s->synced = 0;
	s->kill_addr = 0;
	s->pid = s->tid = 0;
	__atomic_store_n(&s->state, STEPS_SLOT_FREE, __ATOMIC_RELEASE);
}

size_t inside_drain_thread(struct inside_engine *e, struct inside_thread *t)
{
	struct steps_slot *s = t->slot;
	const struct steps_area *a;
	const struct steps_record *ring;
	uint64_t head, fill;
	uint32_t state;
	size_t n = 0;

	if (!s)
		return 0;
	a = t->area->shared;
	ring = (const struct steps_record *)((const uint8_t *)a + a->rings_at +
					     (uint64_t)(s - t->area->slots) * a->ring_stride);
	/* Before the head: an ended slot has all its records. */
	state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
	head = __atomic_load_n(&s->head, __ATOMIC_ACQUIRE);
	fill = head - s->tail;
	while (s->tail != head && n < BATCH) {
		const struct steps_record *r = &ring[s->tail & (a->ring_records - 1)];
		struct steps_record copy = *r;

		t->has_exit = false; /* a signal came before the call that would have ended it */
		if (copy.kind >> 4 == STEPS_RECORD_STEP)
			take_step(e, t, &copy);
		else
			take_other(e, t, &copy);
		__atomic_store_n(&s->tail, s->tail + 1, __ATOMIC_RELEASE);
		n++;
	}
	if (n) {
		__atomic_fetch_add(&s->moved, 1, __ATOMIC_RELEASE);
		if (fill >= a->ring_records / 2)
			wake(&s->moved);
	}
	if (state == STEPS_SLOT_ENDED && s->tail == head) {
		/* It had no room to say why. */
		if (!t->is_paused)
			step_session_mark(e->s, t->track, STEP_MARK_PAUSE, STEP_WHY_ENGINE, 0, 0);
		inside_free_slot(t);
		t->is_paused = true;
	}
	return n;
}

static struct inside_thread *thread_for(
	struct inside_engine *e, struct inside_area *area, const struct steps_slot *s)
{
	struct inside_thread *t = inside_thread_find(e, (pid_t)s->tid);

	if (t)
		return t->area == area && !t->slot ? t : NULL;
	/* Its creator tells of it, unless that was killed before it could. */
	if (s->how != STEPS_HOW_START && inside_thread_find(e, (pid_t)s->by_tid))
		return NULL;
	if (!inside_process_find(e, (pid_t)s->pid))
		inside_process_add(e, (pid_t)s->pid, area);
	return inside_thread_add(e, step_session_thread(e->s, (pid_t)s->pid, (pid_t)s->tid), area);
}

void inside_bind_slots(struct inside_engine *e)
{
	for (size_t i = 0; i < e->areas.n; i++) {
		struct inside_area *area = e->areas.v[i];

		for (uint32_t k = 0; k < area->shared->n_slots; k++) {
			struct steps_slot *s = &area->slots[k];
			struct inside_thread *t;

			if (area->is_bound[k] ||
				__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) < STEPS_SLOT_LIVE)
				continue;
			t = thread_for(e, area, s);
			if (!t)
				continue;
			t->slot = s;
			area->is_bound[k] = true;
		}
	}
}
