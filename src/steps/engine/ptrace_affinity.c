/* SPDX-License-Identifier: MIT */
/*
 * A step wakes the tracer and then the thread. On two CPUs each of these is an interrupt of an idle
 * one; on one CPU it is a switch, and a step costs a third. So stepped threads are kept on our CPU,
 * and what they ask about that is answered as if they were not.
 */
#include <sys/syscall.h>

#include "steps/engine/ptrace_engine.h"

#define SCHED_SETAFFINITY_32 241
#define SCHED_GETAFFINITY_32 242

void tracee_pin(struct ptrace_engine *e, struct tracee *t)
{
	cpu_set_t here;

	if (t->is_pinned)
		return;
	if (e->cpu < 0) {
		e->cpu = sched_getcpu();
		CPU_ZERO(&here);
		CPU_SET(e->cpu, &here);
		if (sched_setaffinity(0, sizeof(here), &here) < 0)
			return;
	}
	CPU_ZERO(&here);
	CPU_SET(e->cpu, &here);
	if (sched_getaffinity(t->tid, sizeof(t->affinity), &t->affinity) < 0 ||
		!CPU_ISSET(e->cpu, &t->affinity))
		return;
	t->is_pinned = sched_setaffinity(t->tid, sizeof(here), &here) == 0;
}

void tracee_unpin(struct tracee *t)
{
	if (t->is_pinned)
		sched_setaffinity(t->tid, sizeof(t->affinity), &t->affinity);
	t->is_pinned = false;
}

void tracee_answer_affinity(struct ptrace_engine *e, struct tracee *t,
	const struct user_regs_struct *before, long number, bool is_32)
{
	bool is_get = number == (is_32 ? SCHED_GETAFFINITY_32 : SYS_sched_getaffinity);
	bool is_set = number == (is_32 ? SCHED_SETAFFINITY_32 : SYS_sched_setaffinity);
	int64_t result = is_32 ? (int32_t)t->regs.rax : (int64_t)t->regs.rax;
	pid_t tid = (pid_t)(is_32 ? before->rbx : before->rdi);
	uint64_t to = is_32 ? (uint32_t)before->rdx : before->rdx;
	struct tracee *about;

	if ((!is_get && !is_set) || result < 0)
		return;
	about = tid ? tracee_find(e, tid) : t;
	if (!about || !about->is_pinned)
		return;
	if (is_set) { /* it is done: now it is its own, and ours again */
		about->is_pinned = false;
		tracee_pin(e, about);
		return;
	}
	if ((size_t)result <= sizeof(about->affinity))
		tracee_write(t, to, &about->affinity, (size_t)result);
}
