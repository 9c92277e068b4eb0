/* SPDX-License-Identifier: MIT */
/*
 * A step ends with a SIGTRAP that the kernel forces on the thread: where that is blocked it takes
 * the program's handler for it away. Programs block it more often than they know, together with all
 * others. So it is never really blocked in a thread that is stepped; that the program has blocked
 * it is remembered here, and what the program can read of its mask says so.
 *
 * System calls that change the mask are not stepped over (the step would end when it is changed
 * already) but run from stop to stop (PTRACE_SYSCALL), which takes no signal.
 */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "process/proc.h"
#include "steps/engine/ptrace_engine.h"

#define TRAP_BIT (1ull << (SIGTRAP - 1))

/* i386 */
#define SIGRETURN_32	  119
#define SIGPROCMASK_32	  126
#define RT_SIGRETURN_32	  173
#define RT_SIGPROCMASK_32 175

/* Where a handler's frame has the mask that comes back with sigreturn, from its stack pointer. */
#define FRAME_MASK_64	 304 /* return address, then uc_sigmask of struct ucontext */
#define FRAME_MASK_32_RT 268 /* return address, 3 arguments, siginfo, then uc_sigmask */
#define FRAME_MASK_32	 88  /* return address, signal, then oldmask of struct sigcontext */

enum mask_call { MASK_CALL_NONE, MASK_CALL_SET, MASK_CALL_RETURN };

static enum mask_call mask_call_of(const struct tracee *t, const struct user_regs_struct *regs)
{
	uint32_t number = (uint32_t)regs->rax;

	if (t->is_64)
		return regs->rax == SYS_rt_sigprocmask ? MASK_CALL_SET
		       : regs->rax == SYS_rt_sigreturn ? MASK_CALL_RETURN
						       : MASK_CALL_NONE;
	return number == RT_SIGPROCMASK_32 || number == SIGPROCMASK_32 ? MASK_CALL_SET
	       : number == RT_SIGRETURN_32 || number == SIGRETURN_32   ? MASK_CALL_RETURN
								       : MASK_CALL_NONE;
}

void tracee_write(const struct tracee *t, uint64_t addr, void *from, size_t n)
{
	struct iovec local = {from, n}, remote = {(void *)(uintptr_t)addr, n};

	process_vm_writev(t->pid, &local, 1, &remote, 1, 0);
}

/* The real mask, with SIGTRAP taken out of it. Returns whether it was in. */
static bool open_mask(const struct tracee *t)
{
	uint64_t mask;

	if (ptrace(PTRACE_GETSIGMASK, t->tid, (void *)sizeof(mask), &mask) < 0 ||
		!(mask & TRAP_BIT))
		return false;
	mask &= ~TRAP_BIT;
	ptrace(PTRACE_SETSIGMASK, t->tid, (void *)sizeof(mask), &mask);
	return true;
}

void tracee_take_mask(struct tracee *t)
{
	t->blocks_trap |= open_mask(t);
}

void tracee_give_mask(struct tracee *t)
{
	uint64_t mask;

	if (!t->blocks_trap || ptrace(PTRACE_GETSIGMASK, t->tid, (void *)sizeof(mask), &mask) < 0)
		return;
	mask |= TRAP_BIT;
	ptrace(PTRACE_SETSIGMASK, t->tid, (void *)sizeof(mask), &mask);
	t->blocks_trap = false;
}

/* Low words of masks are the same in all of their forms. */
static void add_to_mask(const struct tracee *t, uint64_t addr)
{
	uint32_t low;

	if (!proc_read_memory(t->pid, addr, &low, sizeof(low)))
		return;
	low |= (uint32_t)TRAP_BIT;
	tracee_write(t, addr, &low, sizeof(low));
}

void tracee_entered_handler(struct tracee *t, bool has_info)
{
	bool was_blocked = t->blocks_trap;
	uint64_t at = t->regs.rsp + (t->is_64	       ? FRAME_MASK_64
					    : has_info ? FRAME_MASK_32_RT
						       : FRAME_MASK_32);

	t->blocks_trap |= open_mask(t);
	if (was_blocked)
		add_to_mask(t, at);
}

bool tracee_is_system_call(const uint8_t *bytes, size_t n)
{
	return n >= 2 && ((bytes[0] == 0x0f && (bytes[1] == 0x05 || bytes[1] == 0x34)) ||
				 (bytes[0] == 0xcd && bytes[1] == 0x80));
}

bool tracee_is_before_mask_call(const struct tracee *t)
{
	uint8_t bytes[16];

	return mask_call_of(t, &t->regs) != MASK_CALL_NONE &&
	       tracee_is_system_call(bytes, tracee_fetch(t, t->saved, bytes));
}

static void mask_was_set(struct tracee *t, const struct user_regs_struct *before)
{
	int how = (int)(t->is_64 ? before->rdi : before->rbx);
	uint64_t set = t->is_64 ? before->rsi : (uint32_t)before->rcx;
	uint64_t old = t->is_64 ? before->rdx : (uint32_t)before->rdx;
	bool was_blocked = t->blocks_trap, is_now = open_mask(t);
	uint32_t low = 0;

	if (how == SIG_BLOCK)
		t->blocks_trap |= is_now;
	else if (how == SIG_SETMASK && set)
		t->blocks_trap = is_now;
	/* What was to be unblocked can be read unless the old mask has been written over it. */
	else if (how == SIG_UNBLOCK && set && set != old &&
		 proc_read_memory(t->pid, set, &low, sizeof(low)))
		t->blocks_trap &= !(low & TRAP_BIT);
	if (old && was_blocked)
		add_to_mask(t, old);
}

void tracee_mask_changed(struct tracee *t, const struct user_regs_struct *before)
{
	if (mask_call_of(t, before) == MASK_CALL_RETURN) {
		t->blocks_trap = open_mask(t);
	} else {
		int64_t result = t->is_64 ? (int64_t)t->regs.rax : (int32_t)t->regs.rax;

		if (result == 0)
			mask_was_set(t, before);
	}
	if (t->holds_trap && !t->blocks_trap)
		syscall(SYS_tgkill, t->pid, t->tid, SIGTRAP);
}

bool tracee_is_doomed(struct ptrace_engine *e, struct tracee *t, const siginfo_t *info)
{
	uint64_t at = t->saved;

	if (t->mode != TRACEE_STEP || !t->blocks_trap || info->si_code != SI_KERNEL)
		return false;
	tracee_stepped(e, t, 0);
	tracee_signalled(t, SIGTRAP);
	tracee_signal_acts(e, t);
	/* Once more, without us: the kernel then does what it does. */
	t->regs.rip = at;
	ptrace(PTRACE_SETREGS, t->tid, NULL, &t->regs);
	tracee_give_mask(t);
	tracee_clear_flag(t);
	t->mode = TRACEE_FREE;
	t->has_saved = false;
	return true;
}

/* A forced SIGTRAP ends a disposition to ignore it, too; nobody can set that again from outside, so
 * it is remembered, and those that others send are not given to the program. */
void tracee_action_was_set(struct ptrace_engine *e, struct tracee *t, uint64_t action)
{
	uint64_t handler = 0;

	if (!proc_read_memory(t->pid, action, &handler, t->is_64 ? 8 : 4))
		return;
	for (size_t i = 0; i < e->tracees.n; i++)
		if (e->tracees.v[i]->pid == t->pid)
			e->tracees.v[i]->ignores_trap = handler == (uintptr_t)SIG_IGN;
}

/* Whether a signal is in one of the sets of /proc/PID/status. */
static bool is_in_set(const struct tracee *t, const char *set, int signal)
{
	return proc_status_number(t->pid, t->pid, set, 16) >> (signal - 1) & 1;
}

bool tracee_is_filtered(const struct tracee *t)
{
	return proc_status_number(t->pid, t->tid, "Seccomp", 10) != 0;
}

void tracee_take_action(struct tracee *t)
{
	t->ignores_trap |= is_in_set(t, "SigIgn", SIGTRAP);
}

void tracee_signal_before_call(struct tracee *t, int signal)
{
	if (t->call_stops == CALL_STOPS && is_in_set(t, "SigCgt", signal))
		t->call_stops = 0;
}

bool tracee_holds_trap(struct tracee *t, siginfo_t *info)
{
	if (t->ignores_trap && info->si_code <= 0)
		return true;
	if (t->holds_trap && !t->blocks_trap && info->si_code == SI_TKILL &&
		info->si_pid == getpid()) { /* the one that was held comes now */
		t->holds_trap = false;
		*info = t->held;
		ptrace(PTRACE_SETSIGINFO, t->tid, NULL, info);
		return false;
	}
	if (!t->blocks_trap || info->si_code > 0)
		return false;
	t->held = *info; /* one stands for many, as for all signals below the real-time ones */
	t->holds_trap = true;
	return true;
}
