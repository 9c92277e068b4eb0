/* SPDX-License-Identifier: MIT */
/*
 * One thread under ptrace: seized (which disturbs nothing), interrupted, let go.
 *
 * A thread that is interrupted inside a system call stops with the call's number in orig_rax and
 * -ERESTART... in rax; when it goes on, the kernel makes the call again, or, if a signal handler is
 * to run first, ends it with EINTR where that call does so. As long as both registers are put back
 * at a stop of the same kind (PTRACE_EVENT_STOP, inside the kernel's signal code) this is exact.
 * A few calls say EINTR at once even if nothing but ptrace interrupted them (signal(7),
 * "Interruption of system calls by stop signals"). For those that had no effect yet, EINTR is
 * replaced by -ERESTARTNOHAND here, so that they too are made again unless a handler runs. Their
 * timeout then begins anew.
 *
 * An instruction that has trapped or faulted has a signal of its own, which the kernel's stop comes
 * before. It belongs to the registers as they are then: a handler that finds others takes a breakpoint for
 * a stray one. So the thread takes such a signal first, and is stopped where its handler begins.
 */
#include "process/ptrace/inject_internal.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/proc.h"
#include "process/syscall_names.h"

#define LET_GO_WAIT_NS	1000000000u /* to stop a thread in order to detach from it */
#define WAIT_YIELDS	50	    /* rounds of waiting in which nothing is slept */
#define WAIT_SHORT_NAPS 1000	    /* and up to which it is short */
#define WAIT_SHORT_NS	50000
#define WAIT_LONG_NS	1000000
#define SEIZE_TRIES	3
#define PEEKED		8
#define OWN_SIGNALS_MAX 8 /* one after the other, before a thread stands at an instruction */

/* Not in user space headers: include/linux/errno.h of the kernel. */
#define ERESTARTSYS	      512
#define ERESTARTNOINTR	      513
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif
#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

int remote_thread_gone(const struct remote_thread *t, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND,
		"thread %d of process %d ended or became another program", t->tid, t->pid);
}

int remote_thread_seize(struct remote_thread *t, struct err *err)
{
	long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC;
	unsigned n_tries = 0;

	while (ptrace(PTRACE_SEIZE, t->tid, 0, options) < 0) {
		int errnum = errno;

		/* Another tracer may have been there, and be gone by now. */
		if (errnum == EPERM && n_tries++ < SEIZE_TRIES && !inject_is_traced(t->pid))
			continue;
		/* One that was seized, and ends so that it cannot be told to stop, is listed still. */
		if (errnum == ESRCH || !inject_thread_lives(t->pid, t->tid) ||
			inject_is_traced_here(t->pid, t->tid))
			return remote_thread_gone(t, err);
		return inject_refused(t->pid, errnum, err);
	}
	t->is_seized = true;
	t->is_stopped = t->is_interrupted = false;
	return 0;
}

/* waitpid(2) with a deadline; 0 when that has passed. */
static pid_t wait_until(pid_t tid, int *status, uint64_t deadline_ns)
{
	for (unsigned i = 0;; i++) {
		long nap = i < WAIT_SHORT_NAPS ? WAIT_SHORT_NS : WAIT_LONG_NS;
		pid_t rc = waitpid(tid, status, __WALL | WNOHANG | __WNOTHREAD);

		if (rc > 0 || (rc < 0 && errno != EINTR))
			return rc;
		if (clock_mono_ns() >= deadline_ns)
			return 0;
		if (i < WAIT_YIELDS)
			sched_yield();
		else
			nanosleep(&(struct timespec){0, nap}, NULL);
	}
}

enum remote_stop remote_thread_wait(struct remote_thread *t, uint64_t deadline_ns, int *signal)
{
	int status;
	pid_t rc = wait_until(t->tid, &status, deadline_ns);

	*signal = 0;
	if (!rc)
		return REMOTE_STOP_LATE;
	if (rc < 0 || !WIFSTOPPED(status)) {
		t->end_status = rc < 0 ? 0 : status;
		t->is_gone = true;
		t->is_seized = t->is_stopped = false;
		return REMOTE_STOP_GONE;
	}
	t->is_stopped = true;
	switch (status >> 16) {
	case PTRACE_EVENT_STOP:
		t->is_interrupted = false;
		return REMOTE_STOP_EVENT;
	case PTRACE_EVENT_EXEC:
		ptrace(PTRACE_DETACH, t->tid, 0, 0);
		t->is_gone = true;
		t->is_seized = t->is_stopped = false;
		return REMOTE_STOP_GONE;
	}
	if (WSTOPSIG(status) == (SIGTRAP | 0x80))
		return REMOTE_STOP_SYSCALL;
	*signal = WSTOPSIG(status);
	return REMOTE_STOP_SIGNAL;
}

/* The sentence for a thread that does not stop. */
static int not_stopped(const struct remote_thread *t, struct err *err)
{
	char name[64];

	proc_name(t->pid, t->tid, name, sizeof(name));
	if (inject_thread_state(t->pid, t->tid) == 'D')
		return err_set(err, ERR_FAILED,
			"thread %d (%s) of process %d cannot be stopped: it is in uninterruptible sleep",
			t->tid, name, t->pid);
	return err_set(err, ERR_FAILED, "thread %d (%s) of process %d did not stop in time", t->tid,
		name, t->pid);
}

int remote_thread_wait_event(struct remote_thread *t, uint64_t deadline_ns, struct err *err)
{
	for (;;) {
		int signal;

		switch (remote_thread_wait(t, deadline_ns, &signal)) {
		case REMOTE_STOP_EVENT:
			return 0;
		case REMOTE_STOP_GONE:
			return remote_thread_gone(t, err);
		case REMOTE_STOP_LATE:
			return not_stopped(t, err);
		case REMOTE_STOP_SYSCALL:
		case REMOTE_STOP_SIGNAL:
			/* Every stop takes back the order to stop. */
			ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
			t->is_stopped = false;
			ptrace(PTRACE_CONT, t->tid, 0, (long)signal);
			break;
		}
	}
}

int remote_thread_get_regs(struct remote_thread *t, struct err *err)
{
	struct iovec io = {&t->regs, sizeof(t->regs)};
	size_t expected = t->is_64 ? sizeof(t->regs.r64) : sizeof(t->regs.r32);

	if (ptrace(PTRACE_GETREGSET, t->tid, NT_PRSTATUS, &io) < 0)
		return err_sys(err, errno, "thread %d: reading its registers", t->tid);
	if (io.iov_len != expected)
		return err_set(err, ERR_UNSUPPORTED,
			"thread %d runs code of another width than its program", t->tid);
	return 0;
}

int remote_thread_set_regs(struct remote_thread *t, struct err *err)
{
	struct iovec io = {&t->regs, t->is_64 ? sizeof(t->regs.r64) : sizeof(t->regs.r32)};

	if (ptrace(PTRACE_SETREGSET, t->tid, NT_PRSTATUS, &io) < 0)
		return err_sys(err, errno, "thread %d: setting its registers", t->tid);
	return 0;
}

int remote_thread_get_mask(const struct remote_thread *t, uint64_t *mask, struct err *err)
{
	if (ptrace(PTRACE_GETSIGMASK, t->tid, sizeof(*mask), mask) < 0)
		return err_sys(err, errno, "thread %d: reading its signal mask", t->tid);
	return 0;
}

int remote_thread_set_mask(const struct remote_thread *t, uint64_t mask, struct err *err)
{
	if (ptrace(PTRACE_SETSIGMASK, t->tid, sizeof(mask), &mask) < 0)
		return err_sys(err, errno, "thread %d: setting its signal mask", t->tid);
	return 0;
}

bool remote_syscall_is_among(long number, bool is_64, const char *const *names)
{
	const char *name = syscall_name(!is_64, number);

	while (name && *names && strcmp(*names, name))
		names++;
	return name && *names;
}

bool remote_syscall_is_repeatable(long number, bool is_64)
{
	static const char *const names[] = {"epoll_wait", "epoll_pwait", "epoll_pwait2", "ipc",
		"semop", "semtimedop", "semtimedop_time64", "rt_sigtimedwait",
		"rt_sigtimedwait_time64", "io_getevents", "io_pgetevents", "io_pgetevents_time64",
		"io_uring_enter",
		/* With SO_RCVTIMEO or SO_SNDTIMEO: */
		"read", "readv", "write", "writev", "accept", "accept4", "connect", "recvfrom",
		"recvmsg", "recvmmsg", "recvmmsg_time64", "sendto", "sendmsg", "sendmmsg",
		"socketcall", NULL};

	return remote_syscall_is_among(number, is_64, names);
}

long remote_thread_syscall(const struct remote_thread *t)
{
	return t->is_64 ? (long)t->regs.r64.orig_rax : (long)(int32_t)t->regs.r32.orig_eax;
}

static long thread_result(const struct remote_thread *t)
{
	return t->is_64 ? (long)t->regs.r64.rax : (long)(int32_t)t->regs.r32.eax;
}

bool remote_thread_is_restarting(const struct remote_thread *t)
{
	if (remote_thread_syscall(t) < 0)
		return false;
	switch (-thread_result(t)) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
	case ERESTART_RESTARTBLOCK:
		return true;
	}
	return false;
}

/* When it has been stopped twice without being let run, the kernel has put the number in already. */
struct remote_restart remote_thread_restart(const struct remote_thread *t)
{
	const struct user_regs_struct *r = &t->regs.r64;
	struct remote_restart restart = {
		.outcome = (int64_t)r->rax, .call = (int64_t)r->orig_rax, .behind = r->rip};

	if (restart.call >= 0 && restart.outcome == SYS_restart_syscall) {
		restart.outcome = -ERESTART_RESTARTBLOCK;
		restart.behind += REMOTE_SYSCALL_BYTES;
	} else if (!remote_thread_is_restarting(t)) {
		return (struct remote_restart){0};
	}
	restart.again =
		restart.outcome == -ERESTART_RESTARTBLOCK ? SYS_restart_syscall : restart.call;
	return restart;
}

int remote_thread_repeat_call(struct remote_thread *t, struct err *err)
{
	long number = remote_thread_syscall(t);

	if (number < 0 || thread_result(t) != -EINTR)
		return 0;
	if (!remote_syscall_is_repeatable(number, t->is_64))
		return 0;
	if (t->is_64)
		t->regs.r64.rax = (unsigned long long)-ERESTARTNOHAND;
	else
		t->regs.r32.eax = (uint32_t)-ERESTARTNOHAND;
	return remote_thread_set_regs(t, err);
}

void remote_thread_interrupt(struct remote_thread *t)
{
	/* A second time would stop it again when it goes on. */
	if (!t->is_interrupted)
		ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
	t->is_interrupted = true;
}

/* Signals of instructions, sent by the kernel: the codes of those that somebody sends are not above 0. */
static bool is_of_instruction(const siginfo_t *info, uint64_t blocked)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (info->si_signo == signals[i])
			return info->si_code > 0 && !(blocked >> (signals[i] - 1) & 1);
	return false;
}

static bool has_trapped(const struct remote_thread *t)
{
	struct __ptrace_peeksiginfo_args which = {.nr = PEEKED};
	siginfo_t pending[PEEKED];
	uint64_t blocked = 0;
	long n;

	if (remote_thread_get_mask(t, &blocked, NULL) < 0)
		return false;
	while ((n = ptrace(PTRACE_PEEKSIGINFO, t->tid, &which, pending)) > 0) {
		for (long i = 0; i < n; i++)
			if (is_of_instruction(&pending[i], blocked))
				return true;
		which.off += (uint64_t)n;
	}
	return false;
}

/* Not interrupted: that would come first again. */
static int take_own_signal(struct remote_thread *t, uint64_t deadline_ns, struct err *err)
{
	t->is_stopped = false;
	ptrace(PTRACE_CONT, t->tid, 0, 0);
	return remote_thread_wait_event(t, deadline_ns, err);
}

int remote_thread_stop(struct remote_thread *t, uint64_t deadline_ns, struct err *err)
{
	int rc;

	if (t->is_stopped)
		return 0;
	remote_thread_interrupt(t);
	rc = remote_thread_wait_event(t, deadline_ns, err);
	for (unsigned i = 0; rc == 0 && i < OWN_SIGNALS_MAX && has_trapped(t); i++)
		rc = take_own_signal(t, deadline_ns, err);
	if (rc == 0)
		rc = remote_thread_get_regs(t, err);
	if (rc == 0)
		rc = remote_thread_repeat_call(t, err);
	return rc;
}

void remote_thread_let_go(struct remote_thread *t)
{
	if (!t->is_seized)
		return;
	remote_thread_stop(t, clock_mono_ns() + LET_GO_WAIT_NS, NULL);
	/* One that cannot be stopped is let go by the end of the thread that seized it. */
	if (t->is_stopped && ptrace(PTRACE_DETACH, t->tid, 0, 0) < 0) {
		int signal;

		/* It was killed meanwhile: its end is for us to see first. */
		remote_thread_wait(t, clock_mono_ns() + LET_GO_WAIT_NS, &signal);
	}
	t->is_seized = t->is_stopped = false;
}

uint64_t remote_thread_pc(const struct remote_thread *t)
{
	return t->is_64 ? t->regs.r64.rip : t->regs.r32.eip;
}

uint64_t remote_thread_sp(const struct remote_thread *t)
{
	return t->is_64 ? t->regs.r64.rsp : t->regs.r32.esp;
}

int remote_thread_set_pc(struct remote_thread *t, uint64_t pc, struct err *err)
{
	if (t->is_64)
		t->regs.r64.rip = pc;
	else
		t->regs.r32.eip = (uint32_t)pc;
	return remote_thread_set_regs(t, err);
}

void remote_thread_unwind_regs(const struct remote_thread *t, struct cpu_regs *regs)
{
	const struct user_regs_struct *r = &t->regs.r64;
	const struct remote_regs32 *e = &t->regs.r32;

	*regs = (struct cpu_regs){.is_64 = t->is_64};
	if (t->is_64) {
		const unsigned long long values[CPU_N_REGS] = {r->rax, r->rdx, r->rcx, r->rbx,
			r->rsi, r->rdi, r->rbp, r->rsp, r->r8, r->r9, r->r10, r->r11, r->r12,
			r->r13, r->r14, r->r15, r->rip};

		for (unsigned i = 0; i < CPU_N_REGS; i++)
			regs->r[i] = values[i];
		regs->known = (1u << CPU_N_REGS) - 1;
		return;
	}
	for (unsigned i = 0; i <= CPU_REG_RSP; i++)
		regs->r[i] = (const uint32_t[]){
			e->eax, e->edx, e->ecx, e->ebx, e->esi, e->edi, e->ebp, e->esp}[i];
	regs->r[CPU_REG_RIP] = e->eip;
	regs->known = ((1u << (CPU_REG_RSP + 1)) - 1) | 1u << CPU_REG_RIP;
}

bool remote_read(const struct remote_thread *t, uint64_t addr, void *to, size_t n)
{
	return pread(t->memory_fd, to, n, (off_t)addr) == (ssize_t)n;
}

bool remote_write(const struct remote_thread *t, uint64_t addr, const void *from, size_t n)
{
	return pwrite(t->memory_fd, from, n, (off_t)addr) == (ssize_t)n;
}

bool remote_thread_has_rseq(const struct remote_thread *t, uint64_t *section)
{
	struct {
		uint64_t pointer;
		uint32_t bytes, signature, flags, pad;
	} where = {0};

	*section = 0;
	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, t->tid, (long)sizeof(where), &where) < 0)
		return true; /* older than Linux 5.13: not known */
	/* struct rseq: cpu_id_start, cpu_id, then the address of the section's description. */
	if (where.pointer && !remote_read(t, where.pointer + 8, section, sizeof(*section)))
		*section = 0;
	return where.pointer;
}

bool remote_thread_is_in_rseq(const struct remote_thread *t)
{
	struct {
		uint32_t version, flags;
		uint64_t start, bytes, abort;
	} section;
	uint64_t descriptor, pc = remote_thread_pc(t);

	if (!remote_thread_has_rseq(t, &descriptor) || !descriptor ||
		!remote_read(t, descriptor, &section, sizeof(section)))
		return false;
	return pc - section.start < section.bytes;
}
