/* SPDX-License-Identifier: MIT */
/*
 * The end of a recording that its programs outlive: they go on in their own code.
 *
 * A thread leaves at the end of the block that it is in when it gets a SIGTRAP that says so; and with the first
 * one that leaves, the program gets its own handlers of signals back. So nobody may run before all have got theirs:
 *
 *	1. All threads of a process stand still (LEAVE_STANDS), those in system calls in front of the call.
 *	2. Each is sent the signal, and stepped into its handler (LEAVE_ENTERED).
 *	3. All are let run, and each asks to leave (TRANSLATE_LEAVE).
 *
 * A process one of whose threads cannot be stopped stays translated, and so does one that shares its memory with
 * another (vfork). The translator goes on there without us.
 */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/ptrace/inject_internal.h"
#include "translate/tracer.h"

/* What the kernel has in rax of a call that goes on by another one. */
#define RESTART_OTHERWISE (-516)
#define TRAP_HANDLER	  SIGTRAP /* si_code: stands at the first instruction of a handler */

bool leave_is_possible(const struct traced_thread *t)
{
	return t->is_translated && !t->is_ending && !t->program->shares_memory;
}

bool leave_can_be_asked(struct traced_thread *t)
{
	struct user_regs_struct regs;
	struct translate_thread area;

	return t->leaves != LEAVE_NOT || ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) < 0 ||
	       (thread_area(t, regs.gs_base, &area) && area.self == regs.gs_base);
}

/* A system call of the program, which the translator makes in its place, has not begun then: the program makes it
 * itself when it has left. A wait for some time begins anew then: what the kernel knows of it does not outlive the
 * handler. */
static void stand_in_front(struct traced_thread *t)
{
	struct remote_thread r = {
		.pid = t->program->pid, .tid = t->tid, .is_64 = true, .is_stopped = true};
	struct user_regs_struct *regs = &r.regs.r64;

	if (remote_thread_get_regs(&r, NULL) < 0 || regs->rip != t->program->place.waits ||
		!remote_thread_is_restarting(&r))
		return;
	t->was_restarting = (int32_t)regs->rax == RESTART_OTHERWISE;
	regs->rax = regs->orig_rax;
	regs->orig_rax = (uint64_t)-1;
	regs->rip -= 2;
	remote_thread_set_regs(&r, NULL);
}

bool leave_stands(struct traced_thread *t)
{
	if (t->leaves != LEAVE_NOT)
		return false;
	t->leaves = LEAVE_STANDS;
	stand_in_front(t);
	return true;
}

/* By which we ask it to leave. */
static bool is_question(const struct traced_thread *t, const siginfo_t *info)
{
	return info->si_signo == SIGTRAP && info->si_code == SI_QUEUE &&
	       (uint64_t)(uintptr_t)info->si_value.sival_ptr == t->program->place.header;
}

bool leave_takes_trap(struct traced_thread *t, const siginfo_t *info)
{
	if (t->leaves != LEAVE_ASKED)
		return false;
	if (is_question(t, info)) {
		ptrace(PTRACE_SINGLESTEP, t->tid, NULL, (void *)SIGTRAP);
		return true;
	}
	if (info->si_signo != SIGTRAP || info->si_code != TRAP_HANDLER)
		return false;
	t->leaves = LEAVE_ENTERED;
	return true;
}

static void ask(struct traced_thread *t)
{
	siginfo_t info = {.si_code = SI_QUEUE};

	info.si_value.sival_ptr = (void *)(uintptr_t)t->program->place.header;
	syscall(SYS_rt_tgsigqueueinfo, t->program->pid, t->tid, SIGTRAP, &info);
	t->leaves = LEAVE_ASKED;
	ptrace(PTRACE_CONT, t->tid, NULL, NULL);
}

static void go(struct traced_thread *t)
{
	t->leaves = LEAVE_GOES;
	ptrace(PTRACE_CONT, t->tid, NULL, NULL);
}

/* Each thread of the program that is in this state. */
static void each_in(struct translate_tracer *s, const struct traced_program *p,
	enum leave_state state, void (*what)(struct traced_thread *t))
{
	for (size_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i]->program == p && s->threads.v[i]->leaves == state)
			what(s->threads.v[i]);
}

void leave_together(struct translate_tracer *s)
{
	for (size_t i = 0; i < s->programs.n; i++) {
		size_t n[LEAVE_GOES + 1] = {0};

		for (size_t k = 0; k < s->threads.n; k++)
			if (s->threads.v[k]->program == s->programs.v[i] &&
				leave_is_possible(s->threads.v[k]))
				n[s->threads.v[k]->leaves]++;
		if (!n[LEAVE_NOT])
			each_in(s, s->programs.v[i], LEAVE_STANDS, ask);
		if (!n[LEAVE_NOT] && !n[LEAVE_STANDS] && !n[LEAVE_ASKED])
			each_in(s, s->programs.v[i], LEAVE_ENTERED, go);
	}
}

bool leave_is_given_up(const struct traced_thread *t)
{
	struct user_regs_struct regs;

	if (t->leaves != LEAVE_STANDS)
		return false;
	if (t->was_restarting && ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) == 0) {
		regs.rax = SYS_restart_syscall;
		ptrace(PTRACE_SETREGS, t->tid, NULL, &regs);
	}
	return true;
}

/* The first threads that have left run already, so nothing may be changed but what nobody uses any more. */
void leave_unmaps(struct translate_tracer *s, struct traced_thread *t)
{
	struct traced_program *p = t->program;
	struct remote_thread r = {.pid = p->pid,
		.tid = t->tid,
		.memory_fd = p->memory_fd,
		.is_64 = true,
		.is_seized = true,
		.is_stopped = true};

	if (t->is_translated || p->shares_memory || !p->place.base || s->early.n)
		return;
	for (size_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i]->program == p && s->threads.v[i]->is_translated)
			return;
	program_blocks(s, p, true);
	if (remote_thread_get_regs(&r, NULL) == 0 && translator_remove(&p->place, &r))
		p->place = (struct translator_place){0};
}
