/* SPDX-License-Identifier: MIT */
/*
 * The end of a recording that its programs outlive: they go on in their own code.
 *
 * A thread leaves at the end of the block that it is in when it gets a SIGTRAP that says so; and with the first
 * one that leaves, the program gets its own handlers of signals back. So nobody may run before all have got theirs:
 *
 *	1. All threads of a process stand still (LEAVE_STANDS).
 *	2. Each is sent the signal, and stepped into its handler (LEAVE_ENTERED). One that waits in a system call is
 *	   sent on its way where it stands, since what the kernel knows of a wait (how much of it is left) does not
 *	   outlive a handler.
 *	3. All are let run, and each asks to leave (TRANSLATE_LEAVE). One that has waited gets what it had in its
 *	   registers in the midst of the call: the kernel makes it again, or ends it for a signal, as it would have.
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

#define TRAP_HANDLER SIGTRAP /* si_code: stands at the first instruction of a handler */

bool leave_is_possible(const struct traced_thread *t)
{
	return t->is_translated && !t->is_ending && !t->program->shares_memory;
}

/* As remote_thread.c knows it. It stands. */
static struct remote_thread remote_of(const struct traced_thread *t)
{
	struct remote_thread r = traced_remote(t);

	remote_thread_get_regs(&r, NULL);
	return r;
}

/* It waits in a system call of the program, which the translator makes in its place. */
static struct remote_restart wait_of(const struct traced_thread *t, const struct remote_thread *r)
{
	struct remote_restart wait = remote_thread_restart(r);

	return wait.behind == t->program->place.waits ? wait : (struct remote_restart){0};
}

/* Where it may have a lock that others need, to get to where they can be asked. */
static bool is_in_translator(const struct traced_thread *t, const struct remote_thread *r)
{
	return remote_thread_pc(r) - t->program->place.base <
	       t->program->place.slots - t->program->place.base;
}

bool leave_can_be_asked(struct traced_thread *t)
{
	const struct remote_thread r = remote_of(t);
	struct translate_thread area;

	if (t->leaves != LEAVE_NOT)
		return true;
	if (!thread_area(t, r.regs.r64.gs_base, &area) || area.self != r.regs.r64.gs_base)
		return false;
	return wait_of(t, &r).outcome || (!area.outcome && !is_in_translator(t, &r));
}

bool leave_stands(struct traced_thread *t)
{
	if (t->leaves != LEAVE_NOT)
		return false;
	t->leaves = LEAVE_STANDS;
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

/* A handler would end what the kernel knows of its wait. The mask last: if we die in between, it leaves with the one
 * that it has in rdi. */
static void ask_waiting(
	struct traced_thread *t, struct remote_thread *r, const struct remote_restart *wait)
{
	struct user_regs_struct *regs = &r->regs.r64;
	uint64_t mask = 0;

	remote_thread_get_mask(r, &mask, NULL);
	regs->rip = t->program->place.asked;
	regs->rdi = mask;
	regs->rsi = (uint64_t)wait->outcome;
	regs->rdx = (uint64_t)wait->call;
	regs->orig_rax = (uint64_t)-1;
	remote_thread_set_regs(r, NULL);
	remote_thread_set_mask(r, ~TRANSLATE_SIGNALS_RAISED, NULL);
	t->leaves = LEAVE_ENTERED;
}

static void ask(struct traced_thread *t)
{
	struct remote_thread r = remote_of(t);
	const struct remote_restart wait = wait_of(t, &r);
	siginfo_t info = {.si_code = SI_QUEUE};

	if (wait.outcome) {
		ask_waiting(t, &r, &wait);
		return;
	}
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

/* Whether there are some that can leave, and are not further than this. */
static bool are_behind(
	const struct translate_tracer *s, const struct traced_program *p, enum leave_state state)
{
	for (size_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i]->program == p && leave_is_possible(s->threads.v[i]) &&
			s->threads.v[i]->leaves <= state)
			return true;
	return false;
}

void leave_together(struct translate_tracer *s)
{
	for (size_t i = 0; i < s->programs.n; i++) {
		const struct traced_program *p = s->programs.v[i];

		if (are_behind(s, p, LEAVE_NOT))
			continue;
		each_in(s, p, LEAVE_STANDS, ask);
		if (!are_behind(s, p, LEAVE_ASKED))
			each_in(s, p, LEAVE_ENTERED, go);
	}
}

bool leave_is_given_up(const struct traced_thread *t)
{
	return t->leaves == LEAVE_STANDS;
}

/* The first threads that have left run already, so nothing may be changed but what nobody uses any more. */
void leave_unmaps(struct translate_tracer *s, struct traced_thread *t)
{
	struct traced_program *p = t->program;
	struct remote_thread r = traced_remote(t);

	if (t->is_translated || p->shares_memory || !p->place.base || s->early.n)
		return;
	for (size_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i]->program == p && s->threads.v[i]->is_translated)
			return;
	program_blocks(s, p, true);
	if (remote_thread_get_regs(&r, NULL) == 0 && translator_remove(&p->place, &r))
		p->place = (struct translator_place){0};
}
