/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "arch/x86_code.h"
#include "process/proc.h"
#include "process/ptrace/remote_call.h"
#include "steps/engine/ptrace_engine.h"

#define CS_32 0x23u
/* What the kernel has in the result register of a call that it is about to make again. */
#define RESTART_FIRST	   (-516)
#define RESTART_LAST	   (-512)
#define RESTART_NO_HANDLER (-514) /* unless a handler runs */
#define RESTART_OTHERWISE                                                                          \
	(-516) /* by restart_syscall, which filters of system calls may not know */

bool tracee_read_regs(struct tracee *t)
{
	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &t->regs) < 0)
		return false;
	t->is_64 = t->regs.cs != CS_32;
	return true;
}

/* The system call that these registers are of will be made again. */
static bool is_restarting(const struct user_regs_struct *regs)
{
	int32_t result = (int32_t)regs->rax;

	return (int64_t)regs->orig_rax >= 0 && result >= RESTART_FIRST && result <= RESTART_LAST;
}

void tracee_repeat_call(struct tracee *t)
{
	struct user_regs_struct now;
	bool is_64;

	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &now) < 0 || (int64_t)now.orig_rax < 0)
		return;
	is_64 = now.cs != CS_32;
	if ((int32_t)now.rax == RESTART_OTHERWISE) {
		if (!tracee_is_filtered(t))
			return;
	} else if ((int32_t)now.rax != -EINTR ||
		   !remote_syscall_is_repeatable((long)now.orig_rax, is_64)) {
		return;
	}
	now.rax = (uint64_t)RESTART_NO_HANDLER;
	ptrace(PTRACE_SETREGS, t->tid, NULL, &now);
}

void tracee_stand(struct tracee *t)
{
	t->saved = t->regs.rip;
	t->has_saved = true;
	t->was_restarting = false;
	/* Interrupted by us inside a system call, which begins again. */
	if (is_restarting(&t->regs))
		t->saved -= 2;
}

/* Through the kernel, which reads execute-only pages, too, and changes no mapping. */
size_t tracee_fetch_memory(const struct tracee *t, uint64_t addr, uint8_t bytes[16])
{
	size_t n = STEP_CODE_BYTES_MAX, have = 0;

	if (proc_read_memory(t->pid, addr, bytes, n))
		return n;
	/* The end of memory, or a page that may not be read: word by word, by ptrace. */
	while (have < n) {
		uint64_t at = addr + have, word = at & ~7ull;
		size_t skip = (size_t)(at - word), take = 8 - skip;
		long value;

		errno = 0;
		value = ptrace(PTRACE_PEEKTEXT, t->tid, (void *)(uintptr_t)word, NULL);
		if (errno)
			break;
		if (take > n - have)
			take = n - have;
		memcpy(bytes + have, (const uint8_t *)&value + skip, take);
		have += take;
	}
	return have;
}

size_t tracee_fetch(const struct tracee *t, uint64_t addr, uint8_t bytes[16])
{
	const struct step_entry *known = step_space_known(t->track->space, addr);
	const struct step_region *r = step_space_region(t->track->space, addr);
	size_t n;

	/* What cannot change needs no second look. */
	if (known && known->n && r && r->is_file && !r->was_written) {
		memcpy(bytes, known->bytes, known->n);
		return known->n;
	}
	n = tracee_fetch_memory(t, addr, bytes);
	if (!t->is_at_int3)
		step_track_unprobe(t->track, addr, bytes, n, t->is_64);
	return n;
}

/* --- what the program must not see of us ---------------------------------------------------- */

/* Of one byte, behind prefixes. */
static bool has_opcode(const struct tracee *t, const uint8_t *bytes, size_t n, uint8_t opcode)
{
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == opcode)
			return true;
		if (bytes[i] != 0x66 && !(t->is_64 && (bytes[i] & 0xf0) == 0x40))
			return false;
	}
	return false;
}

static void mend_pushed_flags(const struct tracee *t)
{
	uint64_t sp = t->regs.rsp;
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKDATA, t->tid, (void *)(uintptr_t)sp, NULL);
	if (!errno && word & EFLAGS_TRAP)
		ptrace(PTRACE_POKEDATA, t->tid, (void *)(uintptr_t)sp,
			(void *)(word & ~(long)EFLAGS_TRAP));
}

static void mend_flags(struct tracee *t, const uint8_t *bytes, size_t n)
{
	if (has_opcode(t, bytes, n, 0x9d) || has_opcode(t, bytes, n, 0xcf)) { /* popf, iret */
		/* Behind these two the registers say what the program wanted; but from here on the
		 * kernel would take every trap flag for the program's own. */
		t->has_own_trap = t->regs.eflags & EFLAGS_TRAP;
		t->needs_settling = !t->has_own_trap;
	}
	if (!t->has_own_trap && has_opcode(t, bytes, n, 0x9c))
		mend_pushed_flags(t);
}

void tracee_clear_flag(struct tracee *t)
{
	struct user_regs_struct now;

	if (t->has_own_trap || ptrace(PTRACE_GETREGS, t->tid, NULL, &now) < 0 ||
		!(now.eflags & EFLAGS_TRAP))
		return;
	now.eflags &= ~(uint64_t)EFLAGS_TRAP;
	ptrace(PTRACE_SETREGS, t->tid, NULL, &now);
}

enum system_call_way { WAY_NONE, WAY_64, WAY_32 };

static enum system_call_way system_call_way(const uint8_t *bytes, size_t n, bool is_64)
{
	if (!tracee_is_system_call(bytes, n))
		return WAY_NONE;
	return is_64 && bytes[1] == 0x05 ? WAY_64 : WAY_32;
}

static bool changes_maps(long number, bool is_32)
{
	static const long calls_64[] = {SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_shmat,
		SYS_shmdt, SYS_pkey_mprotect, SYS_remap_file_pages, SYS_brk};
	/* mmap, munmap, mprotect, mremap, mmap2, ipc, shmat, shmdt, pkey_mprotect, brk */
	static const long calls_32[] = {90, 91, 125, 163, 192, 117, 397, 398, 380, 45};
	const long *calls = is_32 ? calls_32 : calls_64;
	size_t n = is_32 ? sizeof(calls_32) / sizeof(long) : sizeof(calls_64) / sizeof(long);

	for (size_t i = 0; i < n; i++)
		if (calls[i] == number)
			return true;
	return false;
}

static bool sets_action(long number, bool is_32)
{
	return is_32 ? number == 174 || number == 67 : number == SYS_rt_sigaction;
}

void tracee_mend_r11(struct tracee *t)
{
	if (!(t->regs.r11 & EFLAGS_TRAP) || t->has_own_trap)
		return;
	t->regs.r11 &= ~(uint64_t)EFLAGS_TRAP;
	ptrace(PTRACE_SETREGS, t->tid, NULL, &t->regs);
}

/* A thread that is traced already may not ask for it; untraced it could have. */
static void mend_traceme(struct tracee *t, long number, bool is_32, uint64_t request)
{
	if (number != (is_32 ? 26 : SYS_ptrace) || request != PTRACE_TRACEME)
		return;
	if ((int32_t)t->regs.rax != -EPERM)
		return;
	t->regs.rax = 0;
	ptrace(PTRACE_SETREGS, t->tid, NULL, &t->regs);
}

/* A call that is made again: as it was, or by a call of its own that knows how much is left to wait. */
static long number_of_call(
	const struct tracee *t, const struct user_regs_struct *before, bool is_32)
{
	uint64_t in_rax = is_restarting(before) ? before->orig_rax : before->rax;

	if (is_restarting(before) && (int32_t)before->rax == RESTART_OTHERWISE &&
		!tracee_is_filtered(t))
		return is_32 ? 0 : SYS_restart_syscall;
	return is_32 ? (long)(uint32_t)in_rax : (long)in_rax;
}

static bool is_exit(long number, bool is_32)
{
	return is_32 ? number == 1 || number == 252
		     : number == SYS_exit || number == SYS_exit_group;
}

static void after_system_call(struct ptrace_engine *e, struct tracee *t,
	const struct user_regs_struct *before, enum system_call_way way)
{
	bool is_32 = way == WAY_32;
	long number = number_of_call(t, before, is_32);
	uint64_t first = is_32 ? (uint32_t)before->rbx : before->rdi;
	uint64_t second = is_32 ? (uint32_t)before->rcx : before->rsi;

	if (way == WAY_64 && number != SYS_rt_sigreturn) /* that one brings all registers back */
		tracee_mend_r11(t);
	mend_traceme(t, number, is_32, first);
	if (first == SIGTRAP && !t->regs.rax && sets_action(number, is_32) && second)
		tracee_action_was_set(e, t, second);
	tracee_answer_affinity(e, t, before, number, is_32);
	t->track->sp = t->regs.rsp;
	if (t->is_in && !step_track_is_in_kernels(t->track, t->saved))
		step_session_mark(e->s, t->track, STEP_MARK_SYSCALL, number,
			t->is_ending ? 0
			: is_32	     ? (int32_t)t->regs.rax
				     : (int64_t)t->regs.rax,
			(is_32 ? STEP_CALL_I386 : 0) |
				(t->is_ending && !is_exit(number, is_32) ? STEP_CALL_NO_RETURN
									 : 0));
	if (changes_maps(number, is_32))
		step_session_maps(e->s, t->track);
	/* Coming back from a handler. */
	if (number == (is_32 ? 173 : SYS_rt_sigreturn) || (is_32 && number == 119))
		t->n_handlers -= t->n_handlers > 0;
}

/* --- stops ----------------------------------------------------------------------------------- */

/* mov to ss and pop ss hold the trap back until the next instruction has been executed, too. */
static size_t shadows_next(const uint8_t *bytes, size_t n, bool is_64, uint64_t addr)
{
	struct x86_insn insn;
	size_t i = 0;

	while (i < n && (bytes[i] == 0x66 || (is_64 && (bytes[i] & 0xf0) == 0x40)))
		i++;
	if (i + 1 >= n || !((bytes[i] == 0x8e && ((bytes[i + 1] >> 3) & 7) == 2) ||
				  (!is_64 && bytes[i] == 0x17)))
		return 0;
	return x86_decode(&insn, (struct span){bytes, n}, addr, is_64) ? insn.length : 0;
}

void tracee_mark_in(struct ptrace_engine *e, struct tracee *t, enum step_why why)
{
	if (!t->is_marked_in)
		step_session_mark(e->s, t->track, STEP_MARK_RESUME, why, 0, 0);
	t->is_marked_in = true;
}

void tracee_mark_out(struct ptrace_engine *e, struct tracee *t, enum step_why why)
{
	if (t->is_marked_in)
		step_session_mark(e->s, t->track, STEP_MARK_PAUSE, why, 0, 0);
	t->is_marked_in = false;
}

void tracee_tell(struct ptrace_engine *e, struct tracee *t, uint64_t addr, const uint8_t *bytes,
	size_t n, const struct user_regs_struct *before)
{
	if (step_track_is_in_kernels(t->track, addr))
		return;
	if (!t->is_in || !step_session_wants(e->s, t->track, addr)) {
		tracee_mark_out(e, t, STEP_WHY_USER);
		return;
	}
	tracee_mark_in(e, t, STEP_WHY_USER);
	t->track->sp = before ? before->rsp : t->regs.rsp;
	if (step_session_step(e->s, t->track, addr, bytes, n, t->is_64) && e->o->data && before)
		tracee_record_data(e, t, addr, bytes, n, before);
	if (t->n_burst)
		t->n_burst--;
}

/* Where the instruction was that was executed. False: it is not known, and counted. */
static bool find_executed(struct ptrace_engine *e, struct tracee *t, int code,
	const struct user_regs_struct *before, uint64_t *addr)
{
	*addr = t->saved;
	/* The kernel went back and made the call again, without asking anybody. */
	if (t->was_restarting && t->regs.rip == t->saved)
		*addr -= 2;
	else if (t->is_in_block)
		*addr = tracee_walk_block(e, t, *addr, t->regs.rip, code);
	else if (tracee_is_at_return(t) && !tracee_find_return(t, before->rsp, addr)) {
		if (t->is_marked_in)
			step_session_lost(e->s, t->track, 1,
				"a function returned through a uretprobe of another observer");
		return false;
	}
	return true;
}

void tracee_stepped(struct ptrace_engine *e, struct tracee *t, int code)
{
	struct user_regs_struct before = t->regs;
	uint64_t addr;
	enum system_call_way way;
	uint8_t bytes[16];
	size_t n, length;
	bool is_64_now;

	t->given.a = 0; /* it goes on as if there had been no signal */
	if (!tracee_read_regs(t))
		return;
	/* The end of the system call that it was in when we came: nothing was executed yet. */
	if (code == TRAP_STEP_CALL && t->regs.rip == t->saved && !t->was_restarting)
		return;
	is_64_now = t->is_64;
	t->is_64 = before.cs != CS_32; /* a far jump changes it */
	n = find_executed(e, t, code, &before, &addr) ? tracee_fetch(t, addr, bytes) : 0;
	if (n && !t->is_told)
		tracee_tell(e, t, addr, bytes, n, &before);
	t->is_told = false;
	mend_flags(t, bytes, n);
	tracee_look_for_call(t, bytes, n, addr);
	while ((length = shadows_next(bytes, n, t->is_64, addr)) && t->regs.rip != addr + length) {
		addr += length;
		n = tracee_fetch(t, addr, bytes);
		tracee_tell(e, t, addr, bytes, n, &before);
		mend_flags(t, bytes, n);
	}
	way = system_call_way(bytes, n, t->is_64);
	if (way != WAY_NONE)
		after_system_call(e, t, &before, way);
	t->is_64 = is_64_now;
	t->saved = t->regs.rip;
	t->has_saved = true;
	t->was_restarting = way != WAY_NONE && is_restarting(&t->regs);
}

/* Inside the system call that makes a thread or process: it has been executed, and what it made is
 * about to begin. */
void tracee_tell_call(struct ptrace_engine *e, struct tracee *t)
{
	uint8_t bytes[16];
	size_t n;

	if (t->mode != TRACEE_STEP || !t->has_saved || t->is_in_block || t->is_told)
		return;
	n = tracee_fetch(t, t->saved, bytes);
	tracee_tell(e, t, t->saved, bytes, n, &t->regs);
	t->is_told = true;
}

/* i386 has two kinds of frame. A handler of the one kind has its address of the siginfo on the
 * stack, right behind it; in the other kind the saved registers are there. */
bool tracee_handler_has_info(const struct tracee *t)
{
	uint32_t words[4];

	return proc_read_memory(t->pid, t->regs.rsp, words, sizeof(words)) &&
	       words[2] == (uint32_t)t->regs.rsp + 16;
}

void tracee_look_ahead(struct tracee *t)
{
	uint64_t number = t->is_64 ? t->regs.rax : (uint32_t)t->regs.rax;

	if (number == (t->is_64 ? SYS_execve : 11u) || number == (t->is_64 ? SYS_execveat : 358u))
		t->n_ahead = tracee_fetch(t, t->saved, t->ahead);
}

void tracee_signalled(struct tracee *t, int signal)
{
	siginfo_t info;
	bool has_address =
		signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE;

	if (ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &info) < 0)
		memset(&info, 0, sizeof(info));
	t->given = (struct step_mark){.kind = STEP_MARK_SIGNAL,
		.a = signal,
		.b = info.si_code,
		.c = has_address ? (int64_t)(uintptr_t)info.si_addr : 0};
}

void tracee_signal_acts(struct ptrace_engine *e, struct tracee *t)
{
	if (t->given.a && t->is_in)
		step_session_mark(
			e->s, t->track, STEP_MARK_SIGNAL, t->given.a, t->given.b, t->given.c);
	t->given.a = 0;
}
