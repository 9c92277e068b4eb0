/* SPDX-License-Identifier: MIT */
/*
 * Processes that must not be traced any more while the recording goes on: one that puts itself under
 * a seccomp filter, which would end it for a system call of ours; and one that another traced
 * process wants to trace, which would be told of each of our traps. Who makes the call waits until
 * its process, or the other's, is out. Threads leave at their next trap, those that wait in system
 * calls are taken out.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/proc.h"
#include "steps/engine/inside_engine.h"

#define LEAVE_NS 2000000000u /* then the call is made all the same */

/* Nothing of us is in the process any more. */
void inside_process_is_out(struct inside_engine *e, struct inside_process *p)
{
	for (size_t i = 0; i < e->threads.n; i++) {
		struct inside_thread *t = e->threads.v[i];

		if (t->pid != p->pid || t->has_ended)
			continue;
		while (inside_drain_thread(e, t))
			;
		if (!t->is_paused)
			step_session_mark(e->s, t->track, STEP_MARK_PAUSE, STEP_WHY_END, 0, 0);
		t->is_paused = true;
		inside_free_slot(t);
	}
	inside_process_use(p, NULL);
}

/* All its threads leave at their next trap. */
static void tell_process(const struct inside_process *p)
{
	uint32_t is_over = 1;
	uint64_t at = p->area->base + STEPS_PRIVATE_AT + offsetof(struct steps_config, is_over);

	/* When it cannot be written the process has just ended. */
	if (pwrite(p->memory_fd, &is_over, sizeof(is_over), (off_t)at) < 0)
		errno = 0;
}

static void wait_for(struct inside_thread *t, struct inside_process *p, pid_t but)
{
	tell_process(p);
	t->leaver = p->pid;
	t->leaves_but = but;
	t->leave_until = clock_mono_ns() + LEAVE_NS;
}

bool inside_leave_for_filter(struct inside_engine *e, struct inside_thread *t, bool is_alone)
{
	struct inside_process *p = inside_process_find(e, t->pid);

	step_session_note(e->s,
		"process %d runs on untraced: it puts itself under a seccomp filter, and the engine 'inside' cannot work under one",
		t->pid);
	if (is_alone || !p || !p->area)
		return false;
	p->is_left = true;
	wait_for(t, p, t->tid);
	return true;
}

static struct inside_process *process_of_thread(struct inside_engine *e, pid_t tid)
{
	struct inside_thread *t = inside_thread_find(e, tid);

	return inside_process_find(e, t ? t->pid : tid);
}

bool inside_leave_for_claim(struct inside_engine *e, struct inside_thread *t, pid_t claimed)
{
	struct inside_process *p = process_of_thread(e, claimed);

	if (!p || !p->area || p->is_left || p->pid == t->pid)
		return false;
	step_session_note(
		e->s, "process %d runs on untraced: process %d traces it", p->pid, t->pid);
	wait_for(t, p, 0);
	return true;
}

/* Whether the process is out now. */
static bool try_to_leave(struct inside_engine *e, const struct inside_thread *t)
{
	struct inside_process *p = inside_process_find(e, t->leaver);
	struct inside_area *area = p ? p->area : NULL;

	if (!area)
		return true;
	if (inside_take_out_others(&(struct inside_range){p->pid, p->memory_fd, area->base,
					   STEPS_AREA_AT + area->bytes},
		    t->leaves_but, NULL) < 0)
		return false;
	if (!t->leaves_but)
		inside_process_is_out(e, p);
	return true;
}

void inside_leave_go_on(struct inside_engine *e)
{
	for (size_t i = 0; i < e->threads.n; i++) {
		struct inside_thread *t = e->threads.v[i];
		struct steps_slot *s = t->slot;
		bool is_out;

		if (!t->leaver || !s)
			continue;
		is_out = try_to_leave(e, t);
		if (!is_out && clock_mono_ns() < t->leave_until && !e->is_off)
			continue;
		t->leaver = 0;
		s->reply_n = is_out;
		__atomic_store_n(&s->synced, t->leave_sync, __ATOMIC_RELEASE);
		syscall(SYS_futex, &s->synced, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
}
