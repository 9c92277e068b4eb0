/* SPDX-License-Identifier: MIT */
/*
 * System calls of the program. Those about signals are done here, since what the kernel knows is
 * ours and not the program's; the others are made by the thread itself, in its stub, with the
 * program's registers and signal mask, so that they block, fail, restart and are interrupted as
 * ever.
 */
#include "stepper.h"

#include <linux/ptrace.h>
#include <sched.h>
#include <sys/mman.h>

#define PR_SET_SECCOMP_	     22
#define PR_SET_NAME_	     15
#define SIG_IGN_	     1
#define CLONE3_BYTES_MIN     64
#define CLONE_CLEAR_SIGHAND_ 0x100000000ull
#define CLONE_NEWPID_	     0x20000000ull
#define WHY_ENGINE	     6 /* STEP_WHY_ENGINE */

static void finish_here(struct state *t, struct context *c, unsigned length, int64_t result)
{
	uint64_t number = c->r.rax;

	trap_record(t, c->r.rip);
	ring_write(t, STEPS_RECORD_SYSCALL, (uint64_t)result, (uint32_t)number, 0);
	c->r.rax = (uint64_t)result;
	c->r.rip += length;
	c->r.rcx = c->r.rip;
	c->r.r11 = (c->r.flags & ~FLAG_TRAP) | (t->head.has_own_trap ? FLAG_TRAP : 0);
}

/* A call that waits with another signal mask: a handler that ends it runs under that one. */
static void take_mask(struct state *t, uint64_t pointer, uint64_t bytes)
{
	if (pointer && bytes == sizeof(t->call.mask))
		t->call.has_mask = data_read(t, pointer, &t->call.mask, sizeof(t->call.mask));
}

static void take_waiting_mask(struct state *t, const struct regs64 *r)
{
	uint64_t pair[2];

	switch (r->rax) {
	case SYS_rt_sigsuspend:
		take_mask(t, r->rdi, r->rsi);
		break;
	case SYS_ppoll:
		take_mask(t, r->r10, r->r8);
		break;
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		take_mask(t, r->r8, r->r9);
		break;
	case SYS_pselect6:
	case SYS_io_pgetevents:
		if (r->r9 && data_read(t, r->r9, pair, sizeof(pair)))
			take_mask(t, pair[0], pair[1]);
		break;
	}
}

/* Whether memory with code in it may come, go or change. */
static bool changes_code(const struct call *call, const struct regs64 *r)
{
	switch (call->meaning) {
	case SYS_mmap:
		return call->is_32 || r->rdx & PROT_EXEC || r->r10 & MAP_FIXED;
	case SYS_munmap:
	case SYS_mprotect:
	case SYS_mremap:
	case SYS_pkey_mprotect:
	case SYS_shmat:
	case SYS_shmdt:
	case SYS_remap_file_pages:
		return true;
	}
	return false;
}

/* Numbers of the i386 table that matter here, for a 64-bit program that uses int $0x80. Those
 * about signals are not among them: with the i386 layouts no 64-bit program uses them. */
static uint64_t meaning_of_32(uint32_t number)
{
	switch (number) {
	case 1:
		return SYS_exit;
	case 2:
		return SYS_fork;
	case 11:
		return SYS_execve;
	case 90:
	case 192:
		return SYS_mmap;
	case 91:
		return SYS_munmap;
	case 120:
		return SYS_clone;
	case 125:
		return SYS_mprotect;
	case 172:
		return SYS_prctl;
	case 190:
		return SYS_vfork;
	case 252:
		return SYS_exit_group;
	case 354:
		return SYS_seccomp;
	}
	return ~0ull;
}

static bool begin_clone3(struct state *t, struct context *c)
{
	uint64_t flags, bytes = c->r.rsi;

	if (bytes < CLONE3_BYTES_MIN || bytes > sizeof(t->clone_args) ||
		!data_read(t, c->r.rdi, t->clone_args, bytes))
		return true; /* the kernel says what is wrong */
	copy_bytes(&flags, t->clone_args, sizeof(flags));
	if (flags & CLONE_CLEAR_SIGHAND_) {
		/* It would take our handler away, too. */
		uint64_t kept = flags & ~CLONE_CLEAR_SIGHAND_;

		copy_bytes(t->clone_args, &kept, sizeof(kept));
		t->call.clears_actions = true;
		t->call.rdi = c->r.rdi;
		t->call.has_rdi = true;
		c->r.rdi = (uint64_t)(uintptr_t)t->clone_args;
	}
	return clone_begin(t, c, flags);
}

static bool is_exit(uint64_t number)
{
	return number == SYS_exit || number == SYS_exit_group;
}

/* What the program that comes inherits; the kernel knows only ours. */
static uint32_t trap_heritage(const struct state *t)
{
	uint32_t flags = t->head.is_trap_blocked ? STEPS_EXEC_TRAP_BLOCKED : 0;

	return t->process->actions[SIG_TRAP].handler == SIG_IGN_ ? flags | STEPS_EXEC_TRAP_IGNORED
								 : flags;
}

/* The call may be the end of the process, of which the thread could not tell any more. */
static void note_kill(struct state *t, const struct regs64 *r)
{
	if (!t->slot)
		return;
	t->slot->kill_number = (uint32_t)r->rax;
	__atomic_store_n(&t->slot->kill_addr, r->rip, __ATOMIC_RELEASE);
}

static void forget_kill(struct state *t)
{
	if (t->slot && t->slot->kill_addr)
		__atomic_store_n(&t->slot->kill_addr, 0, __ATOMIC_RELEASE);
}

/* Whoever traces a thread would be told of each of our traps: one that asks for it leaves, and a
 * process that it asks for has left before the call is made. */
static bool begin_ptrace(struct state *t, const struct regs64 *r)
{
	if (r->rdi == PTRACE_ATTACH || r->rdi == PTRACE_SEIZE)
		ring_sync(t, STEPS_SYNC_CLAIM, (uint32_t)r->rsi);
	return r->rdi != PTRACE_TRACEME;
}

/* Strict mode, too. */
static bool installs_filter(const struct call *call, const struct regs64 *r)
{
	uint64_t first = call->is_32 ? (uint32_t)r->rbx : r->rdi;
	uint64_t second = call->is_32 ? (uint32_t)r->rcx : r->rsi;

	if (call->meaning == SYS_prctl)
		return first == PR_SET_SECCOMP_ && (second == 1 || second == 2);
	return first == 0 || first == 1; /* SECCOMP_SET_MODE_STRICT, _FILTER */
}

/* Under a filter none of our own system calls is safe, nor the way back from our handler: the whole
 * process is left to itself before the filter is there. */
static void leave_for_filter(struct state *t, uint64_t addr)
{
	bool is_alone = t->n_vforks > 0;
	uint32_t what = STEPS_SYNC_FILTER | (is_alone ? STEPS_FILTER_ALONE : 0);
	bool are_out = ring_sync(t, what, addr) && t->slot->reply_n;

	if (is_alone)
		return;
	__atomic_store_n(&memory()->config.is_over, 1, __ATOMIC_RELAXED);
	if (are_out)
		raw_call(SYS_rt_sigaction, SIG_TRAP, &t->process->actions[SIG_TRAP], 0, 8);
}

/* What has to be known or done before the thread makes the call itself. False: tracing ends. */
static bool prepare(struct state *t, struct context *c)
{
	struct regs64 *r = &c->r;
	uint64_t first = t->call.is_32 ? (uint32_t)r->rbx : r->rdi;

	switch (t->call.meaning) {
	case SYS_clone:
		return clone_begin(t, c, first);
	case SYS_fork:
		return clone_begin(t, c, 0);
	case SYS_vfork:
		return clone_begin(t, c, CLONE_VM | CLONE_VFORK);
	case SYS_clone3:
		return begin_clone3(t, c);
	case SYS_execve:
	case SYS_execveat:
		/* Without the recorder it makes the call where it stands, as itself. */
		return ring_sync(t, STEPS_SYNC_EXEC | trap_heritage(t), r->rip);
	case SYS_exit:
	case SYS_exit_group:
		exit_begin(t, r->rip, ((uint32_t)first & 0xff) << 8,
			t->call.meaning == SYS_exit_group);
		break;
	case SYS_ptrace:
		return begin_ptrace(t, r);
	case SYS_prctl:
	case SYS_seccomp:
		if (!installs_filter(&t->call, r))
			break;
		leave_for_filter(t, r->rip);
		return false;
	case SYS_kill:
	case SYS_tkill:
	case SYS_tgkill:
	case SYS_rt_sigqueueinfo:
	case SYS_rt_tgsigqueueinfo:
		note_kill(t, r);
		break;
	case SYS_unshare:
		if (r->rdi & CLONE_NEWPID_)
			t->process->is_unfollowed = 1;
		break;
	case SYS_setns: /* of which kind the descriptor is, nobody says: pids may be meant */
		t->process->is_unfollowed = 1;
		break;
	default:
		take_waiting_mask(t, r);
	}
	return true;
}

static bool do_here(struct state *t, struct context *c, unsigned length)
{
	switch (c->r.rax) {
	case SYS_rt_sigaction:
		finish_here(t, c, length, signal_call_action(t, &c->r));
		return true;
	case SYS_rt_sigprocmask:
		finish_here(t, c, length, signal_call_mask(t, c));
		signal_check_pending(t, c);
		return true;
	case SYS_sigaltstack:
		finish_here(t, c, length, signal_call_stack(t, &c->r));
		return true;
	case SYS_rt_sigreturn:
		return signal_return(t, c);
	}
	return false;
}

bool call_begin(struct state *t, struct context *c, unsigned length, bool is_32)
{
	if (!is_32 && do_here(t, c, length))
		return true;
	t->call = (struct call){.number = c->r.rax,
		.meaning = is_32 ? meaning_of_32((uint32_t)c->r.rax) : c->r.rax,
		.is_32 = is_32,
		.ret = c->r.rip + length,
		.at = stub_of(t->index) + (is_32 ? STUB_32 : 0),
		.by_tid = t->head.tid};
	t->head.is_cloning = 0;
	if (!prepare(t, c)) {
		thread_leave(t, c, WHY_ENGINE);
		return false;
	}
	t->call.changes_maps = changes_code(&t->call, &c->r);
	if (t->call.changes_maps)
		__atomic_fetch_add(&memory()->map_generation, 1, __ATOMIC_ACQ_REL);
	t->call.is_on = true;
	t->head.call_at = t->call.at;
	t->head.call_ret = t->call.ret;
	if (t->call.child)
		state_at(t->call.child)->call = t->call;
	c->r.rip = t->call.at;
	return false;
}

static void mend_registers(struct state *t, struct context *c)
{
	if (!t->call.is_32 && c->r.rcx == t->call.at + STUB_BEHIND) {
		c->r.rcx = t->call.ret;
		c->r.r11 = (c->r.r11 & ~FLAG_TRAP) | (t->head.has_own_trap ? FLAG_TRAP : 0);
	}
	if (t->call.has_rdi)
		c->r.rdi = t->call.rdi;
}

void call_take_back(struct state *t, struct context *c)
{
	mend_registers(t, c);
	c->r.rip = t->head.saved;
	if (t->call.child)
		clone_end_parent(t, -1);
	if (is_exit(t->call.meaning))
		exit_take_back(t);
	forget_kill(t);
	t->call.is_on = false;
	t->head.call_at = 0;
}

static bool is_clone(uint64_t number)
{
	return number == SYS_clone || number == SYS_fork || number == SYS_vfork ||
	       number == SYS_clone3;
}

void call_end(struct state *t, struct context *c)
{
	int64_t result = (int64_t)c->r.rax;

	mend_registers(t, c);
	c->r.rip = t->call.ret;
	t->call.is_on = false;
	t->head.call_at = 0;
	forget_kill(t);
	if (is_clone(t->call.meaning) && result == 0) {
		clone_end_child(t, c);
		return;
	}
	trap_record(t, t->head.saved);
	if (is_clone(t->call.meaning))
		clone_end_parent(t, result);
	ring_write(
		t, STEPS_RECORD_SYSCALL, (uint64_t)result, (uint32_t)t->call.number, t->call.is_32);
	if (t->call.changes_maps) {
		__atomic_fetch_add(&memory()->map_generation, 1, __ATOMIC_ACQ_REL);
		ring_sync(t, STEPS_SYNC_MAPS, 0);
	}
	if (t->call.number == SYS_prctl && !t->call.is_32 && c->r.rdi == PR_SET_NAME_)
		ring_sync(t, STEPS_SYNC_NAME, 0);
}
