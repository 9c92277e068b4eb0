/* SPDX-License-Identifier: MIT */
#include "steps/engine/ptrace_engine.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/lost_rights.h"
#include "process/proc.h"
#include "translate/tracer.h"

#define DETACH_NS_MAX 3000000000u
#define ATTACH_ROUNDS 64
#define WATCHED_CALLS 512 /* stops, two for each call */

#define OPTIONS                                                                                    \
	(PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |     \
		PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD)

/* --- tracees --------------------------------------------------------------------------------- */

struct tracee *tracee_find(const struct ptrace_engine *e, pid_t tid)
{
	const uint64_t *i = map_find(&e->by_tid, (uint64_t)tid);

	return i ? (struct tracee *)(uintptr_t)*i : NULL;
}

static struct tracee *add(struct ptrace_engine *e, struct step_track *track, pid_t pid, pid_t tid)
{
	struct tracee *t = mem_zalloc(sizeof(*t));

	t->track = track;
	t->pid = pid;
	t->tid = tid;
	t->is_64 = true;
	vec_push(&e->tracees, t);
	*map_ensure(&e->by_tid, (uint64_t)tid, NULL) = (uint64_t)(uintptr_t)t;
	e->n_live++;
	return t;
}

static void resume(struct ptrace_engine *e, struct tracee *t, int signal);

/* Who asked for the thread may have it now. */
static void release_claimer(struct ptrace_engine *e, pid_t tid)
{
	struct tracee *by = tid ? tracee_find(e, tid) : NULL;

	if (!by || !by->is_held)
		return;
	by->is_held = false;
	by->has_claimed = true;
	resume(e, by, 0);
}

void engine_forget(struct ptrace_engine *e, struct tracee *t)
{
	size_t i = 0;

	while (e->tracees.v[i] != t)
		i++;
	e->tracees.v[i] = e->tracees.v[--e->tracees.n];
	*map_ensure(&e->by_tid, (uint64_t)t->tid, NULL) = 0;
	e->n_live--;
	free(t);
}

static void gone(struct ptrace_engine *e, struct tracee *t, int status)
{
	pid_t claimer = t->claimed_by;

	if (!t->is_claimed)
		step_session_exit(e->s, t->track, status);
	else if (e->host)
		step_session_leave(e->s, t->track);
	engine_forget(e, t);
	release_claimer(e, claimer);
}

static void let_go(struct ptrace_engine *e, struct tracee *t, int signal);

static void note_claim(struct ptrace_engine *e, struct tracee *t, pid_t by)
{
	step_session_note(e->s, "process %d runs on untraced: process %d traces it", t->pid, by);
	if (e->host)
		step_session_lost(e->s, t->track, 1,
			"a thread is not counted from where another process has begun to trace it");
	t->is_claimed = true;
}

/* True when the thread does not go on now: it is let go, or waits for another to be. */
static bool take_claim(
	struct ptrace_engine *e, struct tracee *t, enum claim claim, struct tracee *target)
{
	if (claim == CLAIM_NONE || t->has_claimed)
		return false;
	if (claim == CLAIM_ITSELF) {
		note_claim(e, t, proc_parent(t->pid));
		let_go(e, t, 0);
		gone(e, t, 0);
		return true;
	}
	if (!target->is_claimed)
		note_claim(e, target, t->pid);
	target->claimed_by = t->tid;
	t->is_held = true;
	if (target->is_held) { /* it stands already */
		let_go(e, target, 0);
		gone(e, target, 0);
	} else {
		ptrace(PTRACE_INTERRUPT, target->tid, NULL, NULL);
	}
	return true;
}

static void resume(struct ptrace_engine *e, struct tracee *t, int signal)
{
	enum __ptrace_request how = PTRACE_CONT;
	struct tracee *target = NULL;
	enum claim claim = CLAIM_NONE;

	if (t->mode == TRACEE_STEP && t->has_saved && !signal && !t->call_stops)
		claim = tracee_claims(e, t, &target);
	if (take_claim(e, t, claim, target))
		return;
	t->has_claimed = false;
	if (t->mode == TRACEE_STEP && t->has_saved)
		tracee_look_ahead(t);
	if (t->needs_settling && !signal && t->mode == TRACEE_STEP) {
		/* A resumption that is no step, and ends before anything is executed. */
		t->needs_settling = false;
		ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
	} else if (t->call_stops) {
		how = PTRACE_SYSCALL;
	} else if (t->mode == TRACEE_STEP && t->has_saved && !signal &&
		   tracee_is_before_mask_call(t)) {
		t->call_stops = CALL_STOPS;
		t->is_in_block = false;
		how = PTRACE_SYSCALL;
	} else if (t->mode == TRACEE_STEP && t->has_saved && !signal && tracee_runs_string(e, t)) {
		how = PTRACE_CONT;
	} else if (t->mode == TRACEE_STEP) {
		how = !t->emulated && tracee_runs_block(e, t) && !e->emulates_blocks
			      ? PTRACE_SINGLEBLOCK
			      : PTRACE_SINGLESTEP;
	} else if (t->is_waiting_for_code || t->n_watched) {
		how = PTRACE_SYSCALL;
	}
	t->injected = signal;
	ptrace(how, t->tid, NULL, (void *)(intptr_t)signal);
}

/* Stands elsewhere than where it stood: the instruction there has been executed. */
static void finish_step(struct ptrace_engine *e, struct tracee *t)
{
	struct user_regs_struct now;

	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &now) == 0 && now.rip != t->saved)
		tracee_stepped(e, t, 0);
}

static void let_go(struct ptrace_engine *e, struct tracee *t, int signal)
{
	if (t->mode == TRACEE_STEP && t->has_saved)
		finish_step(e, t);
	tracee_mark_out(e, t, t->is_claimed ? STEP_WHY_ENGINE : step_session_why_over(e->s));
	step_session_look_at_name(e->s, t->track);
	tracee_clear_places(t);
	tracee_unpin(t);
	tracee_give_mask(t);
	tracee_clear_flag(t);
	ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(intptr_t)signal);
}

/* --- events ---------------------------------------------------------------------------------- */

static pid_t group_of(pid_t tid)
{
	pid_t pid = (pid_t)proc_status_number(tid, tid, "Tgid", 10);

	return pid ? pid : tid;
}

static void at_first_stop(struct ptrace_engine *e, struct tracee *t)
{
	if (!tracee_read_regs(t))
		return;
	if (t->is_child && t->is_64)
		tracee_mend_r11(t);
	if (!t->is_child)
		tracee_take_action(t);
	t->is_child = false;
	tracee_stand(t);
	tracee_begin(e, t, STEP_WHY_START);
	resume(e, t, 0);
}

static void stopped(struct ptrace_engine *e, struct tracee *t, int status);

static bool take_early(struct ptrace_engine *e, pid_t tid, int *status)
{
	uint64_t *early = map_find(&e->early, (uint64_t)tid);

	if (e->host)
		return translate_take_early(e->host, tid, status);
	if (!early || !*early)
		return false;
	*status = (int)*early;
	*early = 0;
	return true;
}

static void event_fork(struct ptrace_engine *e, struct tracee *by)
{
	unsigned long message = 0;
	struct tracee *t;
	pid_t tid, pid;
	int status;

	if (ptrace(PTRACE_GETEVENTMSG, by->tid, NULL, &message) < 0 || !message)
		return;
	tid = (pid_t)message;
	pid = group_of(tid);
	tracee_tell_call(e, by);
	t = add(e, step_session_forked(e->s, by->track, pid, tid), pid, tid);
	t->affinity = by->affinity;
	t->is_pinned = by->is_pinned;
	t->blocks_trap = by->blocks_trap;
	t->ignores_trap = by->ignores_trap;
	t->is_child =
		by->mode == TRACEE_STEP; /* it has the registers of a thread that was stepped */
	t->is_in = by->is_in;
	t->around_sp = pid != by->pid ? by->around_sp : 0; /* a copy is in the same calls */
	t->n_handlers = pid != by->pid ? by->n_handlers : 0;
	t->is_unwanted = e->o->no_follow && pid != by->pid;
	if (pid != by->pid)
		t->n_watched = by->n_watched = WATCHED_CALLS;
	if (take_early(e, tid, &status))
		stopped(e, t, status);
}

/* The command has made its exec, or has ended without one. */
static void settle(struct ptrace_engine *e)
{
	if (e->is_launching)
		launch_settle(&e->s->run.child, e->o->command, &e->launch_failed);
	e->is_launching = false;
}

static void tell_lost_rights(struct ptrace_engine *e, const struct tracee *t)
{
	char *sentence = process_lost_rights(t->pid, &e->has_lost_rights);

	if (sentence)
		step_session_note(e->s, "%s", sentence);
	free(sentence);
}

/* Only the thread that called execve is left, and it has the number of the process now. */
static struct tracee *event_exec(struct ptrace_engine *e, struct tracee *t)
{
	unsigned long message = 0;
	struct tracee *caller;

	ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &message);
	caller = message && message != (unsigned long)t->tid ? tracee_find(e, (pid_t)message) : t;
	caller = caller ? caller : t;
	if (caller->mode == TRACEE_STEP && caller->has_saved && caller->is_in &&
		step_session_wants(e->s, caller->track, caller->saved)) {
		caller->track->sp = caller->regs.rsp;
		step_session_step(e->s, caller->track, caller->saved, caller->ahead,
			caller->n_ahead, caller->is_64);
		step_session_mark(e->s, caller->track, STEP_MARK_SYSCALL, (int64_t)caller->regs.rax,
			0, !caller->is_64);
	}
	for (size_t i = e->tracees.n; i--;)
		if (e->tracees.v[i]->pid == t->pid && e->tracees.v[i] != t)
			gone(e, e->tracees.v[i], 0);
	step_session_exec(e->s, t->track);
	tell_lost_rights(e, t);
	t->n_places = 0; /* exec clears the debug registers */
	tracee_leave_regions(e, t);
	t->mode = TRACEE_NEW;
	return t;
}

/* The thread is about to end: what it executed last does not stop any more. */
static void event_exit(struct ptrace_engine *e, struct tracee *t)
{
	step_session_look_at_name(e->s, t->track);
	tracee_signal_acts(e, t);
	if (t->mode != TRACEE_STEP || !t->has_saved)
		return;
	t->is_ending = true;
	finish_step(e, t);
	t->mode = TRACEE_FREE;
	t->has_saved = false;
}

static void stopped_by_event(struct ptrace_engine *e, struct tracee *t, int event, int signal)
{
	switch (event) {
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		event_fork(e, t);
		resume(e, t, 0);
		break;
	case PTRACE_EVENT_EXEC:
		if (t->tid == e->command)
			settle(e);
		t = event_exec(e, t);
		if (!engine_gives_back(e, t))
			at_first_stop(e, t);
		break;
	case PTRACE_EVENT_EXIT:
		event_exit(e, t);
		resume(e, t, 0);
		break;
	case PTRACE_EVENT_STOP:
		if (signal == SIGTRAP)
			tracee_repeat_call(t);
		if (t->mode == TRACEE_NEW && !(e->is_launching && t->tid == e->command)) {
			at_first_stop(e, t);
		} else if (signal != SIGTRAP) {
			tracee_signal_acts(e, t);
			ptrace(PTRACE_LISTEN, t->tid, NULL, NULL); /* the whole process stands */
		} else {
			if (t->wants_stop && tracee_read_regs(t)) {
				t->wants_stop = false;
				tracee_interrupted(e, t);
			}
			resume(e, t, 0);
		}
		break;
	default:
		resume(e, t, 0);
	}
}

/* --- signals --------------------------------------------------------------------------------- */

static void stopped_by_signal(struct ptrace_engine *e, struct tracee *t, int signal)
{
	if (t->mode == TRACEE_STEP) {
		/* A breakpoint instruction of the program's own has been executed; what faults
		 * has not. */
		finish_step(e, t);
		tracee_signalled(t, signal);
		tracee_signal_before_call(t, signal);
	}
	resume(e, t, signal);
}

static void stopped_by_trap(struct ptrace_engine *e, struct tracee *t)
{
	siginfo_t info;

	if (ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &info) < 0)
		return; /* it has just been killed */
	t->is_at_int3 = info.si_code == SI_KERNEL;
	if (info.si_code == TRAP_PLACE && t->n_places) {
		tracee_at_place(e, t);
	} else if (info.si_code == TRAP_PLACE && t->mode == TRACEE_STEP) {
		tracee_select(e, t); /* behind a string instruction */
	} else if (t->mode == TRACEE_STEP &&
		   (info.si_code == TRAP_STEP || info.si_code == TRAP_STEP_CALL)) {
		if (!tracee_passes_over(e, t, info.si_code)) {
			tracee_stepped(e, t, info.si_code);
			tracee_select(e, t);
		}
	} else if (tracee_stepped_over_uprobe(t, &info)) {
		t->emulated = 0;
		tracee_stepped(e, t, TRAP_UPROBE);
		tracee_select(e, t);
	} else if (t->mode == TRACEE_STEP && info.si_code == TRAP_HANDLER_ENTRY && t->injected) {
		tracee_signal_acts(e, t);
		t->track->sp = t->regs.rsp;
		if (t->is_in)
			step_session_handler(e->s, t->track, t->saved);
		if (tracee_read_regs(t)) {
			t->handler_sp = t->n_handlers++ ? t->handler_sp : t->regs.rsp;
			tracee_entered_handler(t, tracee_handler_has_info(t));
			tracee_stand(t);
		}
	} else if (!tracee_is_doomed(e, t, &info) && !tracee_holds_trap(t, &info)) {
		stopped_by_signal(e, t, SIGTRAP);
		return;
	}
	resume(e, t, 0);
}

/* At the entry or exit of a system call. */
static void stopped_by_call(struct ptrace_engine *e, struct tracee *t)
{
	struct user_regs_struct before = t->regs;
	struct tracee *target = NULL;
	enum claim claim = tracee_claims_in_call(e, t, &target);

	if (take_claim(e, t, claim, target))
		return;
	if (!t->call_stops) {
		tracee_look_for_code(e, t);
	} else if (!--t->call_stops) {
		tracee_stepped(e, t, TRAP_STEP_CALL);
		tracee_mask_changed(t, &before);
		tracee_select(e, t);
	}
	resume(e, t, 0);
}

static void detach_stopped(struct ptrace_engine *e, struct tracee *t, int status);

static void stopped(struct ptrace_engine *e, struct tracee *t, int status)
{
	int signal = WSTOPSIG(status), event = status >> 16;

	t->is_at_int3 = false;
	if (t->is_claimed) {
		detach_stopped(e, t, status);
		return;
	}
	if (t->is_in_string)
		tracee_string_stopped(e, t);
	if (t->is_unwanted && event == PTRACE_EVENT_STOP) {
		if (t->is_child && tracee_read_regs(t) && t->is_64)
			tracee_mend_r11(t);
		let_go(e, t, 0);
		gone(e, t, 0);
	} else if (event) {
		stopped_by_event(e, t, event, signal);
	} else if (signal == (SIGTRAP | 0x80)) {
		stopped_by_call(e, t);
	} else if (signal == SIGTRAP) {
		stopped_by_trap(e, t);
	} else {
		stopped_by_signal(e, t, signal);
	}
}

void engine_handle(struct ptrace_engine *e, pid_t tid, int status)
{
	struct tracee *t = tracee_find(e, tid);

	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		if (tid == e->command && !e->host) {
			run_command_ended(&e->s->run, status);
			settle(e);
		}
		if (t)
			gone(e, t, status);
	} else if (WIFSTOPPED(status)) {
		if (t && e->is_over)
			detach_stopped(e, t, status);
		else if (t)
			stopped(e, t, status);
		else if (e->is_over)
			ptrace(PTRACE_DETACH, tid, NULL, NULL);
		else
			*map_ensure(&e->early, (uint64_t)tid, NULL) = (uint64_t)status;
	}
}

/* --- beginning and ending -------------------------------------------------------------------- */

static int launch(struct ptrace_engine *e, struct err *err)
{
	struct launch *l = &e->s->run.child;
	int rc;

	if (ptrace(PTRACE_SEIZE, l->pid, NULL, (void *)(uintptr_t)OPTIONS) < 0)
		return err_sys(err, errno, "'%s': cannot be traced", e->o->command[0]);
	e->command = l->pid;
	e->is_launching = true;
	rc = launch_begin(l, e->o->command, err);
	if (rc == 0)
		add(e, step_session_thread(e->s, e->command, e->command), e->command, e->command);
	return rc;
}

struct attaching {
	struct ptrace_engine *e;
	pid_t pid;
	size_t n_new;
	int errnum;
};

static pid_t tracer_of(pid_t tid)
{
	return (pid_t)proc_status_number(tid, tid, "TracerPid", 10);
}

static void attach_thread(void *ctx, pid_t tid)
{
	struct attaching *a = ctx;

	if (a->errnum || tracee_find(a->e, tid))
		return;
	if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)(uintptr_t)OPTIONS) < 0) {
		int errnum = errno;

		/* One that a thread of ours has made meanwhile is ours already. */
		if (errnum != ESRCH && tracer_of(tid) != getpid())
			a->errnum = errnum;
		return;
	}
	add(a->e, step_session_thread(a->e->s, a->pid, tid), a->pid, tid);
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	a->n_new++;
}

static int attach(struct ptrace_engine *e, pid_t pid, struct err *err)
{
	struct attaching a = {.e = e, .pid = pid};
	size_t before = e->tracees.n;

	if (!proc_exists(pid))
		return err_set(err, ERR_NOT_FOUND, "process %d: there is no such process", pid);
	for (int i = 0; i < ATTACH_ROUNDS; i++) {
		a.n_new = 0;
		proc_each_task(pid, attach_thread, &a);
		if (!a.n_new)
			break;
	}
	if (a.errnum && tracer_of(pid))
		return err_set(err, ERR_PERMISSION,
			"process %d: is traced by process %d already, and only one can", pid,
			tracer_of(pid));
	if (a.errnum && geteuid() == 0)
		return err_sys(err, a.errnum,
			"process %d: cannot be traced (it has ended, or is one of the kernel's own)",
			pid);
	if (a.errnum)
		return err_sys(err, a.errnum,
			"process %d: may not be traced (root may, or its owner where "
			"kernel.yama.ptrace_scope is 0)",
			pid);
	if (e->tracees.n == before)
		return err_set(err, ERR_NOT_FOUND, "process %d: has just ended", pid);
	return 0;
}

/* A step that ended while the thread was being interrupted has sent its SIGTRAP already, and would
 * kill a thread that nobody traces. */
static bool has_pending_trap(const struct tracee *t)
{
	struct __ptrace_peeksiginfo_args from = {.off = 0, .flags = 0, .nr = 1};
	siginfo_t info;

	while (ptrace(PTRACE_PEEKSIGINFO, t->tid, &from, &info) == 1) {
		if (info.si_signo == SIGTRAP && info.si_code > 0 &&
			info.si_code <= TRAP_HANDLER_ENTRY)
			return true;
		if (tracee_is_sent_by_uprobe(t, &info)) /* for the thread alone: a step */
			return true;
		from.off++;
	}
	return false;
}

/* One stop of each, after which it runs without us. */
static void detach_stopped(struct ptrace_engine *e, struct tracee *t, int status)
{
	int signal = WSTOPSIG(status), event = status >> 16;
	siginfo_t info;

	if (t->is_in_string)
		tracee_string_stopped(e, t);
	if (event == PTRACE_EVENT_STOP && signal == SIGTRAP)
		tracee_repeat_call(t);
	if (t->is_child && tracee_read_regs(t) && t->is_64)
		tracee_mend_r11(t);
	if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
		event == PTRACE_EVENT_CLONE) {
		event_fork(e, t);
		signal = 0;
	} else if (event == PTRACE_EVENT_EXEC) {
		t = event_exec(e, t);
		signal = 0;
	} else if (event == PTRACE_EVENT_STOP && has_pending_trap(t)) {
		ptrace(PTRACE_CONT, t->tid, NULL, NULL); /* to that signal, and no further */
		return;
	} else if (event || signal == (SIGTRAP | 0x80)) {
		signal = 0;
	} else if (signal == SIGTRAP && ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &info) == 0 &&
		   ((info.si_code > 0 && info.si_code <= TRAP_HANDLER_ENTRY) ||
			   tracee_stepped_over_uprobe(t, &info))) {
		if (info.si_code == TRAP_HANDLER_ENTRY)
			t->has_saved = false; /* what stood before it was not executed */
		signal = 0;
	}
	let_go(e, t, signal);
	gone(e, t, 0);
}

void engine_take(struct ptrace_engine *e, struct step_track *track, pid_t pid)
{
	at_first_stop(e, add(e, track, pid, pid));
}

void engine_leave(struct ptrace_engine *e)
{
	e->is_over = true;
	for (size_t i = 0; i < e->tracees.n; i++) {
		ptrace(PTRACE_INTERRUPT, e->tracees.v[i]->tid, NULL, NULL);
		if (e->tracees.v[i]->is_held) /* to that stop */
			ptrace(PTRACE_CONT, e->tracees.v[i]->tid, NULL, NULL);
		e->tracees.v[i]->is_held = false;
	}
}

static void detach_all(struct ptrace_engine *e)
{
	uint64_t until = clock_mono_ns() + DETACH_NS_MAX;

	engine_leave(e);
	while (e->n_live && clock_mono_ns() < until) {
		int status;
		pid_t tid = waitpid(-1, &status, __WALL);

		if (tid < 0 && errno == ECHILD)
			break;
		if (tid > 0)
			engine_handle(e, tid, status);
	}
}

static bool is_done(const struct ptrace_engine *e)
{
	return !e->n_live || (e->command && e->s->run.has_status);
}

static void loop(struct ptrace_engine *e)
{
	while (!is_done(e) && !run_is_over(&e->s->run)) {
		int status;
		pid_t tid = waitpid(-1, &status, __WALL);

		if (tid > 0)
			engine_handle(e, tid, status);
		else if (errno != EINTR)
			break;
		if (e->o->burst)
			engine_bursts(e);
		step_session_progress(e->s);
	}
}

int ptrace_engine_run(struct step_session *s, bool by_block, struct err *err)
{
	struct ptrace_engine e = {.s = s, .o = s->options, .by_block = by_block, .cpu = -1};
	int rc = 0;

	if (e.o->command)
		rc = launch(&e, err);
	for (size_t i = 0; rc == 0 && i < e.o->n_pids; i++)
		rc = attach(&e, e.o->pids[i], err);
	e.emulates_blocks = by_block && ptrace_blocks_are_emulated();
	sched_getaffinity(0, sizeof(e.own_affinity), &e.own_affinity);
	if (rc == 0)
		loop(&e);
	if (e.n_live)
		detach_all(&e);
	settle(&e);
	if (rc == 0 && e.launch_failed.code) {
		*err = e.launch_failed;
		rc = err->code;
	}
	if (rc == 0)
		engine_note_silence(&e);
	sched_setaffinity(0, sizeof(e.own_affinity), &e.own_affinity);
	vec_release_all(&e.tracees);
	map_release(&e.by_tid);
	map_release(&e.early);
	return rc;
}
