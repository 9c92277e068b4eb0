/* SPDX-License-Identifier: MIT */
/*
 * The stops of the program's threads under ptrace(2). Each runs at its own speed; it stops for what it asks of
 * the recorder, when a buffer of events is full, for signals (which it gets unchanged), and when a thread or
 * process begins, becomes another program or ends.
 *
 * One that cannot be translated is followed all the same: what it execs may be.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/lost_rights.h"
#include "process/proc.h"
#include "process/ptrace/inject_internal.h"
#include "translate/tracer.h"

#define LEAVE_NS_MAX  3000000000u /* for threads to leave */
#define DETACH_NS_MAX 1000000000u /* for those that have not */
#define STOP_ALL_NS   5000000000u
#define BEGIN_STEP_NS 100000u /* for a thread to get through what it does before its first block */
#define PATH_BYTES    64
/* So long a thread waits for who has made it, which may have to wait for a processor. */
#define EARLY_NS      4000000000u

#define OPTIONS                                                                                    \
	(PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |     \
		PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD)

/* What is done with a thread that has stopped, instead of letting it go on with a signal. */
enum {
	STOP_STAYS = -1 /* with its process, until SIGCONT */,
	STOP_IS_OVER = -2 /* it goes on already, or is gone */
};

/* Nothing of it is looked at any more, while its memory is there still. */
static void look_last(struct translate_tracer *s, struct traced_thread *t)
{
	struct user_regs_struct regs = {0};

	if (t->is_ending)
		return;
	t->is_ending = true;
	t->program->n_living--;
	ptrace(PTRACE_GETREGS, t->tid, NULL, &regs);
	thread_read(s, t, regs.gs_base);
	if (t->program->place.base && !t->program->n_living) /* nobody is left to change them */
		program_blocks(s, t->program, true);
}

/* It runs without us from here on. */
static void let_go(struct translate_tracer *s, struct traced_thread *t, int signal)
{
	look_last(s, t);
	ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(intptr_t)signal);
	traced_gone(s, t, false, 0);
}

/* The recording is over, and it is on its way out of the translator. */
static bool is_on_its_way(const struct translate_tracer *s, const struct traced_thread *t)
{
	return !s->is_late && leave_is_possible(t);
}

static void go_on(struct translate_tracer *s, struct traced_thread *t, int signal)
{
	if ((s->is_over && !is_on_its_way(s, t)) || t->is_left) {
		let_go(s, t, signal > 0 ? signal : 0);
	} else if (signal == STOP_STAYS) {
		ptrace(PTRACE_LISTEN, t->tid, NULL, NULL);
	} else {
		/* Any stop takes the order to stand back. */
		if (s->is_over && t->leaves == LEAVE_NOT && !t->is_let_on)
			ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
		ptrace(PTRACE_CONT, t->tid, NULL, (void *)(intptr_t)signal);
	}
}

/* --- threads and processes that begin, and end ------------------------------------------------- */

/* Stands in the system call that has made another one: whether both have the same memory. */
static bool shares_memory(const struct traced_thread *by, int event)
{
	struct user_regs_struct regs;
	uint64_t flags = event == PTRACE_EVENT_VFORK ? CLONE_VM : 0;

	if (ptrace(PTRACE_GETREGS, by->tid, NULL, &regs) < 0 || regs.cs != 0x33)
		return flags;
	if (regs.orig_rax == SYS_clone)
		flags = regs.rdi;
	else if (regs.orig_rax == SYS_clone3 &&
		 !program_read(by->program, regs.rdi, &flags, sizeof(flags)))
		flags = 0;
	return flags & CLONE_VM;
}

bool translate_take_early(struct translate_tracer *s, pid_t tid, int *status)
{
	for (size_t i = 0; i < s->early.n; i++)
		if (s->early.v[i].tid == tid) {
			*status = s->early.v[i].status;
			s->early.v[i] = s->early.v[--s->early.n];
			return true;
		}
	return false;
}

static bool take_early(struct translate_tracer *s, pid_t tid)
{
	int status;

	return translate_take_early(s, tid, &status);
}

/* Those that have waited since then: who made them was killed before that could be told. */
static void let_early_go(struct translate_tracer *s, uint64_t since_ns)
{
	for (size_t i = s->early.n; i--;)
		if (s->early.v[i].since_ns <= since_ns) {
			translate_note(s,
				"process %d is not %s: what has made it was killed meanwhile",
				s->early.v[i].tid, s->work->done);
			ptrace(PTRACE_DETACH, s->early.v[i].tid, NULL, NULL);
			s->early.v[i] = s->early.v[--s->early.n];
		}
}

static void event_fork(struct translate_tracer *s, struct traced_thread *by, int event)
{
	unsigned long message = 0;
	struct traced_thread *t;

	if (ptrace(PTRACE_GETEVENTMSG, by->tid, NULL, &message) < 0 || !message)
		return;
	t = traced_forked(s, by, (pid_t)message, shares_memory(by, event));
	if (take_early(s, t->tid))
		go_on(s, t, 0);
}

void translate_look_around(struct translate_tracer *s, uint64_t now_ns)
{
	let_early_go(s, now_ns - EARLY_NS);
}

void translate_take_all(struct translate_tracer *s)
{
	for (size_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i]->is_translated && !s->threads.v[i]->is_ending)
			thread_peek_events(s, s->threads.v[i]);
}

/* The command has made its exec, or has ended without one. */
static void settle(struct translate_tracer *s)
{
	if (s->is_launching)
		launch_settle(&s->run->child, s->command, &s->launch_failed);
	s->is_launching = false;
}

static void ended(struct translate_tracer *s, pid_t tid, int status)
{
	struct traced_thread *t = traced_find(s, tid);

	take_early(s, tid);
	if (tid == s->command_pid) {
		run_command_ended(s->run, status);
		settle(s);
	}
	/* Killed while it stood at its end: others may keep the memory. */
	if (t && !t->is_ending && thread_read(s, t, 0)) {
		t->is_ending = true;
		t->program->n_living--;
		thread_free_area(t);
	}
	if (t)
		traced_gone(s, t, true, status);
}

static void tell_lost_rights(struct translate_tracer *s, pid_t pid)
{
	char *sentence = process_lost_rights(pid, &s->has_lost_rights);

	if (sentence)
		translate_note(s, "%s", sentence);
	free(sentence);
}

static int event_exec(struct translate_tracer *s, pid_t pid)
{
	unsigned long former = 0;
	struct traced_thread *t;
	int status = 0;

	if (pid == s->command_pid)
		settle(s);
	ptrace(PTRACE_GETEVENTMSG, pid, NULL, &former);
	t = traced_exec(s, pid, (pid_t)former);
	tell_lost_rights(s, pid);
	if (s->is_over || traced_begin(s, t, &status))
		return 0;
	ended(s, pid, status);
	return STOP_IS_OVER;
}

/* --- signals ----------------------------------------------------------------------------------- */

static bool is_service(
	const struct traced_thread *t, const siginfo_t *info, const struct user_regs_struct *regs)
{
	return info->si_signo == SIGTRAP && info->si_code == SI_KERNEL && t->program->place.base &&
	       t->is_translated && regs->rip - 1 == t->program->place.service;
}

/* The first write behind the end of the thread's buffer. */
static bool is_full(struct traced_thread *t, const siginfo_t *info,
	const struct user_regs_struct *regs, struct translate_thread *area)
{
	return info->si_signo == SIGSEGV && info->si_code == SEGV_ACCERR && t->is_translated &&
	       (uint64_t)(uintptr_t)info->si_addr - regs->rcx < TRANSLATE_EVENT_BYTES &&
	       thread_area(t, regs->gs_base, area) && regs->rcx == area->events_end;
}

/* The thread goes on in its other buffer, and the full one is read meanwhile. */
static int drain(struct translate_tracer *s, struct traced_thread *t, struct user_regs_struct *regs,
	struct translate_thread *area)
{
	area->events_at = area->events_end;
	program_blocks(s, t->program, false);
	if (!thread_exchange_buffers(t, area))
		return 0; /* its memory is gone, and it with that */
	regs->rcx = area->spare;
	ptrace(PTRACE_SETREGS, t->tid, NULL, regs);
	if (!s->is_over)
		go_on(s, t, 0);
	thread_take_events(s, t, thread_copy_events(s, t, area));
	t->n_taken = 0;
	return s->is_over ? 0 : STOP_IS_OVER;
}

static void tell_signal(struct translate_tracer *s, struct traced_thread *t, const siginfo_t *info)
{
	if (s->work->signal)
		s->work->signal(s->ctx, t, info);
}

/* Signals are the program's, but for those that the translator has raised. */
static int stopped_by_signal(struct translate_tracer *s, struct traced_thread *t, int signal)
{
	struct user_regs_struct regs;
	struct translate_thread area;
	siginfo_t info;

	if (ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &info) < 0)
		return signal;
	if ((signal != SIGTRAP && signal != SIGSEGV) || !t->program->place.base ||
		ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) < 0) {
		tell_signal(s, t, &info);
		return signal;
	}
	if (leave_takes_trap(t, &info))
		return STOP_IS_OVER;
	if (is_service(t, &info, &regs)) {
		regs.orig_rax = (uint64_t)-1;
		thread_serve(s, t, &regs);
		ptrace(PTRACE_SETREGS, t->tid, NULL, &regs);
		if (!t->is_translated && !t->is_left)
			leave_unmaps(s, t);
		return 0;
	}
	if (is_full(t, &info, &regs, &area))
		return drain(s, t, &regs, &area);
	tell_signal(s, t, &info);
	return signal;
}

/* --- all stops --------------------------------------------------------------------------------- */

/* In a system call it is as if nothing had been. */
static void repeat_call(const struct traced_thread *t)
{
	struct remote_thread r = traced_remote(t);

	if (remote_thread_get_regs(&r, NULL) == 0)
		remote_thread_repeat_call(&r, NULL);
}

/* By PTRACE_INTERRUPT, or with its whole process. */
static int stopped_by_event(struct translate_tracer *s, struct traced_thread *t, int signal)
{
	if (!s->is_over && signal != SIGTRAP && s->work->stands)
		s->work->stands(s->ctx, t);
	if (!s->is_over)
		return signal == SIGTRAP ? 0 : STOP_STAYS;
	if (signal == SIGTRAP)
		repeat_call(t);
	else /* it does not run, and so cannot leave */
		look_last(s, t);
	if (is_on_its_way(s, t) && !leave_can_be_asked(t)) {
		t->is_let_on = true;
		ptrace(PTRACE_CONT, t->tid, NULL, NULL);
		return STOP_IS_OVER;
	}
	return is_on_its_way(s, t) && leave_stands(t) ? STOP_IS_OVER : 0;
}

static int exit_status(const struct traced_thread *t)
{
	unsigned long message = 0;

	ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &message);
	return (int)message;
}

static int stopped(struct translate_tracer *s, struct traced_thread *t, int status)
{
	int signal = WSTOPSIG(status), event = status >> 16;

	switch (event) {
	case 0:
		return stopped_by_signal(s, t, signal);
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		event_fork(s, t, event);
		return 0;
	case PTRACE_EVENT_EXEC:
		return event_exec(s, t->tid);
	case PTRACE_EVENT_EXIT:
		look_last(s, t);
		if (s->work->ending)
			s->work->ending(s->ctx, t, exit_status(t));
		thread_free_area(t);
		return 0;
	case PTRACE_EVENT_STOP:
		return stopped_by_event(s, t, signal);
	}
	return 0;
}

void translate_adopt(struct translate_tracer *s, pid_t pid)
{
	struct traced_thread *t = traced_adopt(s, pid);
	int status = 0;

	if (!traced_begin(s, t, &status))
		ended(s, pid, status);
	else if (traced_find(s, pid))
		go_on(s, t, 0);
}

static void handle(struct translate_tracer *s, pid_t tid, int status)
{
	struct traced_thread *t = traced_find(s, tid);

	if (s->stepper && s->stepper->has(s->stepper_ctx, tid)) {
		if (!WIFSTOPPED(status) && tid == s->command_pid)
			run_command_ended(s->run, status);
		s->stepper->stopped(s->stepper_ctx, tid, status);
	} else if (WIFEXITED(status) || WIFSIGNALED(status)) {
		ended(s, tid, status);
	} else if (WIFSTOPPED(status) && t) {
		int how = stopped(s, t, status);

		/* It is another one behind an exec. */
		t = how == STOP_IS_OVER ? NULL : traced_find(s, tid);
		if (t)
			go_on(s, t, how);
	} else if (status >> 16 == PTRACE_EVENT_EXIT) { /* before anybody has said whose it is */
		take_early(s, tid);
		ptrace(PTRACE_CONT, tid, NULL, NULL);
	} else if (WIFSTOPPED(status) && !s->is_late) {
		vec_push(&s->early, ((struct early_thread){tid, status, clock_mono_ns()}));
	} else if (WIFSTOPPED(status)) {
		ptrace(PTRACE_DETACH, tid, NULL, NULL);
	}
}

/* --- beginning and ending ---------------------------------------------------------------------- */

static int launch(struct translate_tracer *s, struct err *err)
{
	struct launch *l = &s->run->child;
	char *const *command = s->command;

	if (ptrace(PTRACE_SEIZE, l->pid, NULL, (void *)(uintptr_t)OPTIONS) < 0)
		return err_sys(err, errno, "'%s': cannot be traced", command[0]);
	s->command_pid = l->pid;
	s->is_launching = true;
	traced_add_thread(s, traced_add_process(s, l->pid, false), l->pid);
	return launch_begin(l, command, err);
}

/* Its gs points to an area: a recording that ended has left it translated. */
static bool is_translated(const struct remote_thread *t)
{
	struct translate_thread area;
	uint64_t at = t->regs.r64.gs_base;

	return at && remote_read(t, at, &area, sizeof(area)) && area.self == at &&
	       area.state == TRANSLATE_THREAD_LIVE && area.events < area.events_end &&
	       area.events_at >= area.events && area.events_at <= area.events_end;
}

/* All stand; those that are there begin in the translator. */
static int begin_all(struct translate_tracer *s, struct traced_program *p,
	struct remote_threads *all, struct err *err)
{
	struct remote_thread *first = NULL;
	int rc = 0;

	for (size_t i = all->all.n; rc == 0 && i--;) {
		struct remote_thread *t = &all->all.v[i];
		uint64_t section;

		if (!t->is_stopped)
			continue;
		first = t;
		if (is_translated(t))
			return err_set(err, ERR_UNSUPPORTED,
				"it was recorded before, and still runs in the translator of that recording");
		/* The kernel looks for pc between their own addresses. */
		if (remote_thread_has_rseq(t, &section) && section)
			return err_set(err, ERR_UNSUPPORTED,
				"it uses restartable sequences (rseq), which would not be restarted in translated code");
	}
	if (rc == 0 && !first)
		return err_set(err, ERR_NOT_FOUND, "it has just ended");
	if (rc == 0)
		rc = translator_inject(
			&s->image, first, all->all.n, s->work->options, &p->place, err);
	for (size_t i = 0; rc == 0 && i < all->all.n; i++) {
		struct remote_thread *t = &all->all.v[i];
		struct traced_thread *traced;

		if (!t->is_stopped)
			continue;
		rc = translator_start(&p->place, t, i, true, err);
		ptrace(PTRACE_SETOPTIONS, t->tid, NULL, (void *)(uintptr_t)OPTIONS);
		traced = traced_add_thread(s, p, t->tid);
		traced->is_translated = true;
		s->work->begins(s->ctx, traced);
	}
	for (size_t i = 0; rc == 0 && i < all->all.n; i++)
		if (all->all.v[i].is_stopped)
			ptrace(PTRACE_CONT, all->all.v[i].tid, NULL, NULL);
	return rc;
}

static int check_process(const struct translate_tracer *s, pid_t pid, struct err *err)
{
	char path[PATH_BYTES];
	int rc = inject_check_process(pid, err);

	snprintf(path, sizeof(path), "/proc/%d/exe", proc_number(pid));
	if (rc == 0 && program_is_32bit(path))
		rc = err_set(err, ERR_UNSUPPORTED,
			"process %d cannot be %s: it is a 32-bit program, and only 64-bit ones can be while they run; %s",
			pid, s->work->done, s->work->for_32bit);
	return rc;
}

static int attach(struct translate_tracer *s, pid_t pid, struct err *err)
{
	struct remote_threads all = {.pid = pid, .is_64 = true};
	struct traced_program *p;
	int rc = check_process(s, pid, err);

	if (rc < 0)
		return rc;
	p = traced_add_process(s, pid, true);
	all.memory_fd = p->memory_fd;
	rc = remote_threads_stop(&all, clock_mono_ns() + STOP_ALL_NS, err);
	if (rc == 0) {
		rc = begin_all(s, p, &all, err);
		if (rc < 0)
			err_prefix(err, "process %d cannot be %s", pid, s->work->done);
	}
	if (rc < 0)
		remote_threads_let_go(&all);
	vec_release(&all.all);
	return rc;
}

/* Threads that could not be asked yet have run for a moment. False: there are none. */
static bool ask_again(struct translate_tracer *s)
{
	bool are_let_on = false;

	for (size_t i = 0; i < s->threads.n; i++)
		are_let_on |= s->threads.v[i]->is_let_on;
	if (are_let_on)
		nanosleep(&(struct timespec){0, BEGIN_STEP_NS}, NULL);
	for (size_t i = 0; are_let_on && i < s->threads.n; i++) {
		struct traced_thread *t = s->threads.v[i];

		if (t->is_let_on)
			ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
		t->is_let_on = false;
	}
	return are_let_on;
}

static size_t n_stepped(const struct translate_tracer *s)
{
	return s->stepper ? s->stepper->n_threads(s->stepper_ctx) : 0;
}

static void let_all_go(struct translate_tracer *s, uint64_t until_ns)
{
	if (s->stepper)
		s->stepper->leave(s->stepper_ctx);
	for (size_t i = 0; i < s->threads.n; i++)
		ptrace(PTRACE_INTERRUPT, s->threads.v[i]->tid, NULL, NULL);
	while ((s->threads.n || n_stepped(s)) && clock_mono_ns() < until_ns) {
		int status;
		pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);

		if (tid == 0 && !ask_again(s))
			tid = waitpid(-1, &status, __WALL);
		if (tid > 0)
			handle(s, tid, status);
		else if (tid < 0 && errno == ECHILD)
			break;
		leave_together(s);
	}
}

static void detach_all(struct translate_tracer *s)
{
	s->is_over = true;
	let_all_go(s, clock_mono_ns() + LEAVE_NS_MAX);
	let_early_go(s, UINT64_MAX);
	s->is_late = true;
	for (size_t i = s->threads.n; i--;)
		if (leave_is_given_up(s->threads.v[i]))
			let_go(s, s->threads.v[i], 0);
	let_all_go(s, clock_mono_ns() + DETACH_NS_MAX);
	traced_end_all(s);
	settle(s);
}

static bool is_done(const struct translate_tracer *s)
{
	return s->command ? s->run->has_status : !s->threads.n && !n_stepped(s);
}

int translate_drive(struct translate_tracer *s, struct err *err)
{
	int rc = s->command ? launch(s, err) : 0;

	for (size_t i = 0; rc == 0 && i < s->n_pids; i++)
		rc = attach(s, s->pids[i], err);
	while (rc == 0 && !is_done(s) && !run_is_over(s->run)) {
		int status;
		pid_t tid = waitpid(-1, &status, __WALL);

		if (tid > 0)
			handle(s, tid, status);
		else if (errno != EINTR)
			break;
		if (s->work->idle)
			s->work->idle(s->ctx);
	}
	detach_all(s);
	if (rc == 0 && s->launch_failed.code) {
		*err = s->launch_failed;
		rc = err->code;
	}
	return rc;
}

void translate_note(struct translate_tracer *s, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	s->work->note(s->ctx, text);
}

void translate_tracer_release(struct translate_tracer *s)
{
	vec_release(&s->programs);
	vec_release(&s->threads);
	map_release(&s->by_tid);
	vec_release(&s->early);
	vec_release(&s->events);
	buf_release(&s->copied);
	translator_image_close(&s->image);
}
