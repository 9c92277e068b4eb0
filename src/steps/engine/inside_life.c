/* SPDX-License-Identifier: MIT */
/*
 * The processes: how they come under tracing, become another program, and end. A process is held by
 * ptrace only at its first instruction, and around an exec; in between nobody traces it.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "record/proc.h"
#include "steps/engine/inside_engine.h"

#define STOP_NS	     5000000000u
#define KILLED	     SIGKILL /* the status of who ended without telling, and the kernel does not say */
#define SYSCALL_CODE "\x0f\x05"

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif
#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif

/* --- lists --------------------------------------------------------------------------------- */

struct inside_process *inside_process_find(struct inside_engine *e, pid_t pid)
{
	for (size_t i = e->processes.n; i--;)
		if (e->processes.v[i]->pid == pid && !e->processes.v[i]->has_ended)
			return e->processes.v[i];
	return NULL;
}

void inside_process_use(struct inside_process *p, struct inside_area *area)
{
	if (p->area)
		p->area->n_processes--;
	p->area = area;
	if (area)
		area->n_processes++;
}

static int open_memory(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	return open(path, O_RDWR | O_CLOEXEC);
}

struct inside_process *inside_process_add(
	struct inside_engine *e, pid_t pid, struct inside_area *area)
{
	struct inside_process *p = mem_zalloc(sizeof(*p));

	p->pid = pid;
	p->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	p->memory_fd = open_memory(pid);
	inside_process_use(p, area);
	vec_push(&e->processes, p);
	return p;
}

struct inside_thread *inside_thread_find(struct inside_engine *e, pid_t tid)
{
	for (size_t i = e->threads.n; i--;)
		if (e->threads.v[i]->tid == tid && !e->threads.v[i]->has_ended)
			return e->threads.v[i];
	return NULL;
}

static bool is_wanted(const struct inside_engine *e, pid_t pid, pid_t tid)
{
	char name[64], *end;
	long wanted;

	if (!e->o->threads)
		return true;
	wanted = strtol(e->o->threads, &end, 10);
	if (!*end)
		return wanted == tid;
	proc_name(pid, tid, name, sizeof(name));
	return !fnmatch(e->o->threads, name, 0);
}

struct inside_thread *inside_thread_add(
	struct inside_engine *e, struct step_track *track, struct inside_area *area)
{
	struct inside_thread *t = mem_zalloc(sizeof(*t));

	t->track = track;
	t->pid = step_track_pid(track);
	t->tid = step_track_tid(track);
	t->area = area;
	t->is_unwanted = t->is_paused = !is_wanted(e, t->pid, t->tid);
	vec_push(&e->threads, t);
	return t;
}

void inside_thread_end(struct inside_engine *e, struct inside_thread *t, int status)
{
	if (t->has_ended)
		return;
	while (inside_drain_thread(e, t))
		;
	if (t->has_exit && !t->is_paused) {
		step_session_step(
			e->s, t->track, t->exit_addr, (const uint8_t *)SYSCALL_CODE, 2, true);
		step_session_mark(e->s, t->track, STEP_MARK_SYSCALL, t->exit_number, 0, 0);
	}
	step_session_exit(e->s, t->track, t->has_exit ? t->exit_status : status);
	inside_free_slot(t);
	e->n_execs -= t->is_in_exec;
	t->is_in_exec = false;
	t->has_ended = true;
}

/* --- ends ---------------------------------------------------------------------------------- */

/* Linux 6.15: the status is told even of a process that is not our child. */
static int status_by_kernel(int pid_fd)
{
	struct {
		uint64_t mask, cgroup;
		uint32_t ids[11];
		int32_t exit_code;
		uint64_t more[4];
	} info = {.mask = 1u << 3}; /* PIDFD_INFO_EXIT */

	if (pid_fd < 0 || ioctl(pid_fd, _IOWR(0xff, 11, char[64]), &info) < 0 ||
		!(info.mask & (1u << 3)))
		return KILLED;
	return info.exit_code;
}

/* The call by which a thread sends a signal came back, and the signal was the end of it. */
static void mark_own_kill(struct inside_engine *e, struct inside_thread *t)
{
	if (t->is_paused)
		return;
	step_session_step(
		e->s, t->track, t->slot->kill_addr, (const uint8_t *)SYSCALL_CODE, 2, true);
	step_session_mark(e->s, t->track, STEP_MARK_SYSCALL, t->slot->kill_number, 0, 0);
}

/* si_code of the signal that the thread sends. */
static int kill_code(const struct steps_slot *s)
{
	if (!s || !s->kill_addr || s->kill_number == SYS_kill)
		return SI_USER;
	return s->kill_number == SYS_tkill || s->kill_number == SYS_tgkill ? SI_TKILL : SI_QUEUE;
}

/* Died of a signal that nobody handles, so the thread could not tell. Of which thread it was, the
 * kernel does not say: one that sent a signal, or the first. SIGKILL is nobody's. */
static void mark_death(struct inside_engine *e, struct inside_process *p, int status)
{
	struct inside_thread *first = NULL;

	if (!WIFSIGNALED(status) || WTERMSIG(status) == SIGKILL)
		return;
	for (size_t i = 0; i < e->threads.n; i++) {
		struct inside_thread *t = e->threads.v[i];

		if (t->pid != p->pid || t->has_ended)
			continue;
		if (t->last_signal == WTERMSIG(status))
			return;
		if (!first || (t->slot && t->slot->kill_addr))
			first = t;
	}
	if (first && first->slot && first->slot->kill_addr)
		mark_own_kill(e, first);
	if (first && !first->is_paused)
		step_session_mark(e->s, first->track, STEP_MARK_SIGNAL, WTERMSIG(status),
			kill_code(first->slot), 0);
}

static void end_process(struct inside_engine *e, struct inside_process *p, int status)
{
	if (p->has_ended)
		return;
	inside_bind_slots(e);
	/* In order: a record may tell of further threads. */
	for (size_t i = 0; i < e->threads.n; i++)
		if (e->threads.v[i]->pid == p->pid)
			while (inside_drain_thread(e, e->threads.v[i]))
				;
	inside_bind_slots(e);
	mark_death(e, p, status);
	for (size_t i = 0; i < e->threads.n; i++)
		if (e->threads.v[i]->pid == p->pid)
			inside_thread_end(e, e->threads.v[i], status);
	p->has_ended = true;
	inside_process_use(p, NULL);
	fd_cleanup(&p->pid_fd);
	fd_cleanup(&p->memory_fd);
}

static bool has_ended(const struct inside_process *p)
{
	struct pollfd one = {.fd = p->pid_fd, .events = POLLIN};

	if (p->pid_fd < 0)
		return kill(p->pid, 0) < 0 && errno == ESRCH;
	return poll(&one, 1, 0) > 0;
}

static bool thread_is_gone(const struct inside_thread *t)
{
	char state = inject_thread_state(t->pid, t->tid);

	return !state || state == 'Z' || state == 'X';
}

static void forget_area(struct inside_engine *e, struct inside_area *area)
{
	if (area->shared->n_slotless)
		step_session_note(e->s, "%u threads ran untraced: no buffer was free for them",
			area->shared->n_slotless);
	if (area->shared->n_foreign)
		step_session_note(e->s, "%u child processes ran untraced: engine 'inside' does not follow "
			"into other namespaces; 'ptrace' does", area->shared->n_foreign);
	for (size_t k = 0; k < e->threads.n; k++) {
		if (e->threads.v[k]->area != area)
			continue;
		e->threads.v[k]->slot = NULL;
		e->threads.v[k]->area = NULL;
	}
	inside_area_free(area);
}

static void free_unused_areas(struct inside_engine *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < e->areas.n; i++) {
		struct inside_area *area = e->areas.v[i];

		if (area->n_processes) {
			e->areas.v[kept++] = area;
			continue;
		}
		forget_area(e, area);
	}
	e->areas.n = kept;
}

/* --- programs ------------------------------------------------------------------------------ */

static bool is_64_bit(pid_t tid)
{
	uint8_t regs[512];
	struct iovec io = {regs, sizeof(regs)};

	return ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &io) == 0 &&
	       io.iov_len == sizeof(struct user_regs_struct);
}

/* The only thread of a program that stands in PTRACE_EVENT_EXEC. */
static int inject_program(
	struct inside_engine *e, struct inside_process *p, uint32_t heritage, struct err *err)
{
	struct remote_threads threads = {
		.pid = p->pid, .memory_fd = p->memory_fd, .is_64 = is_64_bit(p->pid)};
	struct remote_thread *t = remote_threads_add(&threads, p->pid);
	struct inside_area *area = NULL;
	int rc;

	t->is_seized = true;
	if (!threads.is_64) {
		rc = err_set(
			err, ERR_UNSUPPORTED, "process %d: it is now a 32-bit program", p->pid);
		ptrace(PTRACE_DETACH, p->pid, 0, 0);
		vec_release(&threads.all);
		return rc;
	}
	/* On to a stop of the kind that attaching has: before its first instruction. */
	remote_thread_interrupt(t);
	ptrace(PTRACE_CONT, p->pid, 0, 0);
	rc = remote_thread_stop(t, clock_mono_ns() + STOP_NS, err);
	if (rc == 0)
		rc = inside_check_filter(p->pid, err);
	if (rc == 0 && heritage & STEPS_EXEC_TRAP_IGNORED)
		rc = inside_ignore_trap(&threads, err);
	if (rc == 0 && e->is_off)
		rc = err_set(err, ERR_UNSUPPORTED, "the recording has ended");
	if (rc == 0)
		rc = inside_inject(e, &threads, &area, err);
	if (rc < 0)
		remote_thread_let_go(t);
	vec_release(&threads.all);
	if (rc < 0)
		return rc;
	vec_push(&e->areas, area);
	inside_process_use(p, area);
	return 0;
}

/* It runs untraced from now on. */
static void give_up(struct inside_engine *e, struct inside_process *p, struct inside_thread *t,
	const struct err *why)
{
	step_session_note(e->s, "process %d runs on untraced: %s", p->pid, why->text);
	step_session_mark(e->s, t->track, STEP_MARK_PAUSE, STEP_WHY_ENGINE, 0, 0);
	inside_process_use(p, NULL);
}

void inside_exec_begin(struct inside_engine *e, struct inside_thread *t, uint64_t addr)
{
	long options = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;

	if (ptrace(PTRACE_SEIZE, t->tid, 0, options) < 0) {
		step_session_note(
			e->s, "thread %d cannot be held at its exec: %s", t->tid, strerror(errno));
		return;
	}
	t->exec_addr = addr;
	e->n_execs += !t->is_in_exec;
	t->is_in_exec = true;
}

static struct inside_thread *exec_of(struct inside_engine *e, pid_t pid)
{
	for (size_t i = 0; i < e->threads.n; i++)
		if (e->threads.v[i]->is_in_exec && e->threads.v[i]->pid == pid)
			return e->threads.v[i];
	return NULL;
}

/* In a mask that the program before had, and the kernel did not. */
static void block_trap(pid_t tid)
{
	uint64_t mask;

	if (ptrace(PTRACE_GETSIGMASK, tid, sizeof(mask), &mask) < 0)
		return;
	mask |= 1ull << (SIGTRAP - 1);
	ptrace(PTRACE_SETSIGMASK, tid, sizeof(mask), &mask);
}

static void exec_done(struct inside_engine *e, pid_t pid)
{
	struct inside_thread *t = exec_of(e, pid);
	struct inside_process *p = inside_process_find(e, pid);
	struct err err = {0};

	if (!t || !p) {
		ptrace(PTRACE_DETACH, pid, 0, 0);
		return;
	}
	e->n_execs--;
	t->is_in_exec = false;
	for (size_t i = 0; i < e->threads.n; i++)
		if (e->threads.v[i]->pid == pid && e->threads.v[i] != t)
			inside_thread_end(e, e->threads.v[i], 0);
	if (!t->is_paused) {
		step_session_step(
			e->s, t->track, t->exec_addr, (const uint8_t *)SYSCALL_CODE, 2, true);
		step_session_mark(e->s, t->track, STEP_MARK_SYSCALL, SYS_execve, 0, 0);
	}
	step_session_exec(e->s, t->track);
	inside_free_slot(t);
	t->tid = pid;
	/* The file that shows its memory is of the program before. */
	fd_cleanup(&p->memory_fd);
	p->memory_fd = open_memory(pid);
	if (t->exec_heritage & STEPS_EXEC_TRAP_BLOCKED)
		block_trap(pid);
	if (inject_program(e, p, t->exec_heritage, &err) < 0) {
		if (e->is_off)
			inside_process_use(p, NULL);
		else
			give_up(e, p, t, &err);
		return;
	}
	t->area = p->area;
}

static void exec_failed(struct inside_engine *e, pid_t tid, int signal)
{
	struct inside_thread *t = inside_thread_find(e, tid);

	ptrace(PTRACE_DETACH, tid, 0, (long)signal);
	if (t && t->is_in_exec) {
		t->is_in_exec = false;
		e->n_execs--;
	}
}

/* A thread that is seized for its exec stopped. */
static void exec_stopped(struct inside_engine *e, pid_t tid, int status)
{
	int signal = WSTOPSIG(status);

	switch (status >> 16) {
	case PTRACE_EVENT_EXEC:
		exec_done(e, tid);
		return;
	case PTRACE_EVENT_STOP:
		ptrace(signal == SIGTRAP ? PTRACE_CONT : PTRACE_LISTEN, tid, 0, 0);
		return;
	}
	if (signal == SIGTRAP)
		exec_failed(e, tid, signal); /* it traps: the call came back */
	else
		ptrace(PTRACE_CONT, tid, 0, (long)signal);
}

static void take_wait(struct inside_engine *e, pid_t pid, int status)
{
	struct inside_process *p = inside_process_find(e, pid);

	if (WIFSTOPPED(status)) {
		exec_stopped(e, pid, status);
		return;
	}
	if (pid == e->command) {
		step_session_command_ended(e->s, status);
		e->command = 0;
	}
	if (p)
		end_process(e, p, status);
}

/* The command's end is told by waitpid, with its status; unless it was killed while we held it, and
 * who waited for it to stand took that. */
static bool is_told_by_wait(const struct inside_engine *e, const struct inside_process *p)
{
	return p->pid == e->command &&
	       (waitid(P_PID, (id_t)p->pid, NULL, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 ||
		       errno != ECHILD);
}

void inside_look_at_processes(struct inside_engine *e)
{
	bool has_gone = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0)
		take_wait(e, pid, status);
	for (size_t i = 0; i < e->processes.n; i++) {
		struct inside_process *p = e->processes.v[i];

		if (p->has_ended || !has_ended(p) || is_told_by_wait(e, p))
			continue;
		status = p->has_status ? p->status : status_by_kernel(p->pid_fd);
		if (p->pid == e->command) {
			step_session_command_ended(e->s, status);
			e->command = 0;
		}
		end_process(e, p, status);
		has_gone = true;
	}
	for (size_t i = 0; i < e->threads.n; i++) {
		struct inside_thread *t = e->threads.v[i];

		if (t->has_exit && !t->has_ended && t->slot && t->slot->head == t->slot->tail &&
			t->pid != t->tid && thread_is_gone(t))
			inside_thread_end(e, t, t->exit_status);
	}
	if (has_gone)
		free_unused_areas(e);
}

/* --- beginnings ---------------------------------------------------------------------------- */

int inside_start_command(struct inside_engine *e, struct launch *l, struct err *err)
{
	struct inside_process *p;
	struct inside_thread *t;
	int rc, status;
	pid_t pid = l->pid;

	if (ptrace(PTRACE_SEIZE, pid, 0, (long)(PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD)) < 0)
		return err_sys(err, errno, "the command cannot be held at its start");
	rc = launch_go(l, e->o->command, err);
	if (rc < 0)
		return rc;
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status) &&
		status >> 16 != PTRACE_EVENT_EXEC)
		ptrace(PTRACE_CONT, pid, 0, (long)(status >> 16 ? 0 : WSTOPSIG(status)));
	e->command = pid;
	p = inside_process_add(e, pid, NULL);
	t = inside_thread_add(e, step_session_thread(e->s, pid, pid), NULL);
	if (!WIFSTOPPED(status)) {
		take_wait(e, pid, status);
		return 0;
	}
	step_session_exec(e->s, t->track);
	rc = inject_program(e, p, 0, err);
	if (rc < 0) {
		struct err why = err ? *err : (struct err){0};

		give_up(e, p, t, &why);
		return 0;
	}
	t->area = p->area;
	return 0;
}

void inside_engine_release(struct inside_engine *e)
{
	for (size_t i = 0; i < e->areas.n; i++)
		forget_area(e, e->areas.v[i]);
	vec_release(&e->areas);
	for (size_t i = 0; i < e->processes.n; i++) {
		fd_cleanup(&e->processes.v[i]->pid_fd);
		fd_cleanup(&e->processes.v[i]->memory_fd);
		free(e->processes.v[i]);
	}
	vec_release(&e->processes);
	for (size_t i = 0; i < e->threads.n; i++)
		free(e->threads.v[i]);
	vec_release(&e->threads);
	free(e);
}
