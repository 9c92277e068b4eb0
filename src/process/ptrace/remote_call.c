/* SPDX-License-Identifier: MIT */
/*
 * A function call on a thread that was stopped anywhere. The thread's state is saved, a stack is
 * laid out below its own (remote_frame.c), and it runs until the function returns into the stub:
 *
 *   64-bit:  mov %rax,%rdi; 1: mov $15,%eax; syscall; jmp 1b
 *   i386:    mov %eax,%ebx; 1: mov $173,%eax; int $0x80; jmp 1b
 *
 * which is rt_sigreturn with the function's result in the first argument. The thread runs with
 * PTRACE_SYSCALL, so it stops before that call is made, and the result is read. The call is
 * replaced by close(-1), which any program that could load a library may make, and which has no
 * effect; behind it the thread is interrupted again, which brings it to a stop of the same kind as
 * the first one, and its state is put back there.
 *
 * 1. No signal marks the end, so none of the program's signal dispositions matters or changes.
 * 2. All signals but those that instructions cause are blocked during the call, by the thread's
 *    signal mask: they stay in the kernel's queues with all they carry.
 * 3. If we die at any moment, ptrace lets the thread go, and it finds its way back alone. Either
 *    its general registers are its own, then all of its state is; or they lead to the function and
 *    the stub, and rt_sigreturn restores the rest. So the general registers are the first thing to
 *    be changed and the last to be put back. Only remote_syscall has no such way out.
 * 4. The kernel keeps one note about how to go on with a timed wait (nanosleep, poll, futex). If
 *    the function makes one that is itself interrupted, which takes a SIGSTOP just then, or any
 *    nanosleep, the note of the thread's own wait is lost, and that wait ends too early.
 * 5. If we cannot wait any longer, we let the thread go for the same reason; the stub then stays.
 */
#include "process/ptrace/inject_internal.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/clock.h"

#define STOP_NS	       2000000000u  /* for a thread to stop in its tracks */
#define LATE_EXTRA_NS  50000000000u /* more time for a late function that does not wait */
#define FLAGS_AT_ENTRY 0x202u	    /* interrupts on; direction forward, no single step */

#define CLOSE_32 6

static const uint8_t stub64[REMOTE_STUB_BYTES] = {
	0x48, 0x89, 0xc7, 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7, 0xcc, 0xcc, 0xcc, 0xcc};
static const uint8_t stub32[REMOTE_STUB_BYTES] = {
	0x89, 0xc3, 0xb8, 0xad, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc};
#define STUB32_SYSCALL 7

static uint64_t stub_syscall(const struct remote_thread *t, const struct remote_stub *stub)
{
	return stub->addr + (t->is_64 ? REMOTE_STUB64_SYSCALL : STUB32_SYSCALL);
}

bool remote_stub_fits(const struct remote_thread *t, uint64_t addr)
{
	static const uint8_t nothing[REMOTE_STUB_BYTES];
	uint8_t bytes[REMOTE_STUB_BYTES];

	return remote_read(t, addr, bytes, sizeof(bytes)) &&
	       (!memcmp(bytes, nothing, sizeof(bytes)) ||
		       !memcmp(bytes, t->is_64 ? stub64 : stub32, sizeof(bytes)));
}

/* By ptrace, which may write where the process itself may not. */
static int poke(const struct remote_thread *t, uint64_t addr, const uint8_t *bytes)
{
	for (size_t i = 0; i < REMOTE_STUB_BYTES; i += sizeof(long)) {
		long word;

		memcpy(&word, bytes + i, sizeof(word));
		if (ptrace(PTRACE_POKEDATA, t->tid, addr + i, word) < 0)
			return -1;
	}
	return 0;
}

int remote_stub_plant(
	const struct remote_thread *t, struct remote_stub *stub, uint64_t addr, struct err *err)
{
	const uint8_t *code = t->is_64 ? stub64 : stub32;

	*stub = (struct remote_stub){.addr = addr};
	if (!remote_read(t, addr, stub->original, sizeof(stub->original)))
		return err_sys(err, errno, "process %d: reading its memory at 0x%lx", t->pid, addr);
	/* One that an earlier call left behind may still be waited for. */
	stub->stays = !memcmp(stub->original, code, REMOTE_STUB_BYTES);
	if (poke(t, addr, code) < 0)
		return err_sys(err, errno, "process %d: writing its memory at 0x%lx", t->pid, addr);
	return 0;
}

void remote_stub_remove(const struct remote_thread *t, struct remote_stub *stub)
{
	if (stub->addr && !stub->stays && t->is_stopped && poke(t, stub->addr, stub->original) == 0)
		stub->addr = 0;
}

/* --- the thread's state -------------------------------------------------------------------- */

static bool get_set(const struct remote_thread *t, long type, void *to, size_t max, size_t *n)
{
	struct iovec io = {to, max};

	if (ptrace(PTRACE_GETREGSET, t->tid, type, &io) < 0)
		return false;
	*n = io.iov_len;
	return true;
}

static int set_vectors(const struct remote_state *s, struct err *err)
{
	struct iovec io = {(void *)(uintptr_t)s->xstate, s->n_xstate};

	if (ptrace(PTRACE_SETREGSET, s->thread.tid, NT_X86_XSTATE, &io) < 0)
		return err_sys(
			err, errno, "thread %d: setting its vector registers", s->thread.tid);
	return 0;
}

static int state_save(struct remote_state *s, const struct remote_thread *t, struct err *err)
{
	int rc;

	memset(s, 0, sizeof(*s));
	s->thread = *t;
	rc = remote_thread_get_mask(t, &s->signal_mask, err);
	if (rc < 0)
		return rc;
	if (!get_set(t, NT_X86_XSTATE, s->xstate, sizeof(s->xstate), &s->n_xstate))
		return err_sys(err, errno, "thread %d: reading its vector registers", t->tid);
	if (!t->is_64 && !get_set(t, NT_PRFPREG, s->x87, sizeof(s->x87), &s->n_x87))
		return err_sys(err, errno, "thread %d: reading its x87 registers", t->tid);
	return 0;
}

static int state_restore(const struct remote_state *s, struct remote_thread *t, struct err *err)
{
	int rc = set_vectors(s, err);

	if (rc == 0)
		rc = remote_thread_set_mask(t, s->signal_mask, err);
	t->regs = s->thread.regs;
	return rc == 0 ? remote_thread_set_regs(t, err) : rc;
}

/* Blocks what can be blocked; signals of instructions keep their setting, because the kernel resets
 * the program's handler of one that comes while it is blocked. */
static int block_signals(const struct remote_state *s, struct err *err)
{
	static const int kept[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
	uint64_t mask = ~(uint64_t)0;

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		uint64_t bit = (uint64_t)1 << (kept[i] - 1);

		mask = (mask & ~bit) | (s->signal_mask & bit);
	}
	return remote_thread_set_mask(&s->thread, mask, err);
}

/* --- the call ------------------------------------------------------------------------------ */

static int write_frame(const struct remote_thread *t, const struct remote_frame *f, struct err *err)
{
	if (!remote_write(t, f->addr, f->bytes, f->n))
		return err_sys(
			err, errno, "thread %d: writing its stack at 0x%lx", t->tid, f->addr);
	return 0;
}

/* Registers and stack as at the function's first instruction. */
static int enter(struct remote_thread *t, struct remote_state *saved,
	const struct remote_stub *stub, const struct remote_call *call, struct err *err)
{
	struct remote_frame *frame = mem_alloc(sizeof(*frame));
	uint64_t top = call->stack ? call->stack : remote_thread_sp(t);
	struct remote_state *clean;
	uint64_t args[2];
	int rc = remote_frame_build(frame, saved, top, stub->addr, call->text, err);

	args[0] = call->text ? frame->text : call->arg;
	args[1] = call->text ? call->arg : 0;
	for (unsigned i = 0; !t->is_64 && i < 2; i++) {
		uint32_t arg = (uint32_t)args[i];

		memcpy(frame->bytes + 4 + 4 * i, &arg, sizeof(arg));
	}
	if (rc == 0)
		rc = write_frame(t, frame, err);
	if (t->is_64) {
		t->regs.r64.rip = call->function;
		t->regs.r64.rsp = frame->addr;
		t->regs.r64.rdi = args[0];
		t->regs.r64.rsi = args[1];
		t->regs.r64.rax = 0;
		t->regs.r64.rbp = 0;
		t->regs.r64.orig_rax = (unsigned long long)-1;
		t->regs.r64.eflags = FLAGS_AT_ENTRY;
	} else {
		t->regs.r32.eip = (uint32_t)call->function;
		t->regs.r32.esp = (uint32_t)frame->addr;
		t->regs.r32.eax = 0;
		t->regs.r32.ebp = 0;
		t->regs.r32.orig_eax = (uint32_t)-1;
		t->regs.r32.eflags = FLAGS_AT_ENTRY;
	}
	free(frame);
	if (rc < 0)
		return rc;
	clean = mem_dup(saved, sizeof(*saved));
	remote_state_clear_vectors(clean);
	rc = remote_thread_set_regs(t, err);
	if (rc == 0)
		rc = block_signals(saved, err);
	if (rc == 0)
		rc = set_vectors(clean, err);
	free(clean);
	return rc;
}

static void go_on(struct remote_thread *t, int signal)
{
	t->is_stopped = false;
	ptrace(PTRACE_SYSCALL, t->tid, 0, (long)signal);
}

static bool is_at_stub(struct remote_thread *t, const struct remote_stub *stub)
{
	return remote_thread_get_regs(t, NULL) == 0 &&
	       remote_thread_pc(t) == stub_syscall(t, stub) + 2;
}

static int crashed(
	const struct remote_thread *t, const struct remote_call *call, int signal, struct err *err)
{
	return err_set(err, ERR_FAILED, "%s in process %d was ended by a signal (%s) at 0x%lx",
		call->name, t->pid, strsignal(signal), remote_thread_pc(t));
}

/* Runs to the stub. 0; ERR_LIMIT when it is too late; or what else has happened. */
static int run_to_stub(struct remote_thread *t, const struct remote_stub *stub,
	const struct remote_call *call, uint64_t deadline_ns, struct err *err)
{
	for (;;) {
		int signal;

		switch (remote_thread_wait(t, deadline_ns, &signal)) {
		case REMOTE_STOP_GONE:
			return remote_thread_gone(t, err);
		case REMOTE_STOP_LATE:
			return err_set(err, ERR_LIMIT,
				"%s in process %d, thread %d, did not return in %u s", call->name,
				t->pid, t->tid, (unsigned)(call->timeout_ns / 1000000000u));
		case REMOTE_STOP_SYSCALL:
			if (is_at_stub(t, stub))
				return 0;
			break;
		case REMOTE_STOP_SIGNAL:
			/* SIGSTOP cannot be blocked, SIGTRAP may be the program's own business. */
			if (signal == SIGSTOP || signal == SIGTRAP)
				break;
			remote_thread_get_regs(t, NULL);
			return crashed(t, call, signal, err);
		case REMOTE_STOP_EVENT:
			break;
		}
		go_on(t, signal);
	}
}

static int go_on_to_event(struct remote_thread *t, struct err *err)
{
	remote_thread_interrupt(t);
	t->is_stopped = false;
	ptrace(PTRACE_CONT, t->tid, 0, 0);
	return remote_thread_wait_event(t, clock_mono_ns() + STOP_NS, err);
}

/* The thread is what it was, if it stands; `saved` is freed. */
static int put_back(
	struct remote_thread *t, struct remote_state *saved, int rc, struct err *err)
{
	if (t->is_stopped && saved->n_xstate) {
		/* A sentence that is there already says more. */
		int back = state_restore(saved, t, rc < 0 ? NULL : err);

		rc = rc < 0 ? rc : back;
	}
	free(saved);
	return rc;
}

/* From the entry of the stub's system call to a stop as by an interruption. */
static int leave_stub(struct remote_thread *t, struct err *err)
{
	int rc;

	if (t->is_64) {
		t->regs.r64.orig_rax = SYS_close;
		t->regs.r64.rdi = (unsigned long long)-1;
	} else {
		t->regs.r32.orig_eax = CLOSE_32;
		t->regs.r32.ebx = (uint32_t)-1;
	}
	rc = remote_thread_set_regs(t, err);
	return rc < 0 ? rc : go_on_to_event(t, err);
}

/* The function has not come back in time. 0 when it has come back after all. */
static int late(struct remote_thread *t, struct remote_stub *stub, const struct remote_call *call,
	struct err *err)
{
	if (call->late == REMOTE_CALL_LATE_GIVES_UP) {
		if (remote_thread_stop(t, clock_mono_ns() + STOP_NS, NULL) == 0 &&
			!remote_thread_is_restarting(t)) {
			go_on(t, 0);
			if (run_to_stub(t, stub, call, clock_mono_ns() + LATE_EXTRA_NS, err) == 0)
				return 0;
			remote_thread_stop(t, clock_mono_ns() + STOP_NS, NULL);
		}
		if (t->is_stopped || t->is_gone)
			return ERR_LIMIT;
	}
	stub->stays = true;
	remote_thread_let_go(t);
	return err_set(err, ERR_LIMIT,
		"%s in process %d, thread %d, did not return in %u s: it was left to finish alone",
		call->name, t->pid, t->tid, (unsigned)(call->timeout_ns / 1000000000u));
}

int remote_call(struct remote_thread *t, struct remote_stub *stub, const struct remote_call *call,
	uint64_t *result, struct err *err)
{
	struct remote_state *saved = mem_alloc(sizeof(*saved));
	uint64_t value = 0;
	int rc = state_save(saved, t, err);

	if (rc < 0) {
		free(saved);
		return rc;
	}
	rc = enter(t, saved, stub, call, err);
	if (rc == 0) {
		go_on(t, 0);
		rc = run_to_stub(t, stub, call, clock_mono_ns() + call->timeout_ns, err);
		if (rc == ERR_LIMIT)
			rc = late(t, stub, call, err);
		value = t->is_64 ? t->regs.r64.rdi : t->regs.r32.ebx;
		if (rc == 0)
			rc = leave_stub(t, err);
	}
	rc = put_back(t, saved, rc, err);
	if (rc == 0)
		*result = value;
	return rc;
}

/* --- a system call ------------------------------------------------------------------------- */

static void enter_syscall(struct remote_thread *t, const struct remote_stub *stub, long number,
	const uint64_t args[6])
{
	if (t->is_64) {
		struct user_regs_struct *r = &t->regs.r64;

		r->rip = stub_syscall(t, stub);
		r->rax = (unsigned long long)number;
		r->orig_rax = (unsigned long long)-1;
		r->rdi = args[0];
		r->rsi = args[1];
		r->rdx = args[2];
		r->r10 = args[3];
		r->r8 = args[4];
		r->r9 = args[5];
	} else {
		struct remote_regs32 *r = &t->regs.r32;

		r->eip = (uint32_t)stub_syscall(t, stub);
		r->eax = (uint32_t)number;
		r->orig_eax = (uint32_t)-1;
		r->ebx = (uint32_t)args[0];
		r->ecx = (uint32_t)args[1];
		r->edx = (uint32_t)args[2];
		r->esi = (uint32_t)args[3];
		r->edi = (uint32_t)args[4];
		r->ebp = (uint32_t)args[5];
	}
}

/* Runs to the next stop at a system call; other stops on the way are passed. */
static int run_to_syscall_stop(struct remote_thread *t, struct err *err)
{
	uint64_t deadline = clock_mono_ns() + STOP_NS;
	enum remote_stop stop;
	int signal = 0;

	do {
		go_on(t, signal);
		stop = remote_thread_wait(t, deadline, &signal);
		if (stop == REMOTE_STOP_GONE)
			return remote_thread_gone(t, err);
		if (stop == REMOTE_STOP_LATE)
			return err_set(err, ERR_FAILED,
				"thread %d of process %d did not make a system call in time",
				t->tid, t->pid);
	} while (stop != REMOTE_STOP_SYSCALL);
	return 0;
}

int remote_syscall(struct remote_thread *t, const struct remote_stub *stub, long number,
	const uint64_t args[6], int64_t *result, struct err *err)
{
	struct remote_state *saved = mem_alloc(sizeof(*saved));
	int64_t value = 0;
	int rc = state_save(saved, t, err);

	if (rc == 0)
		rc = block_signals(saved, err);
	if (rc == 0) {
		enter_syscall(t, stub, number, args);
		rc = remote_thread_set_regs(t, err);
	}
	if (rc == 0)
		rc = run_to_syscall_stop(t, err); /* its entry */
	if (rc == 0)
		rc = run_to_syscall_stop(t, err); /* its exit */
	if (rc == 0)
		rc = remote_thread_get_regs(t, err);
	if (rc == 0) {
		value = t->is_64 ? (int64_t)t->regs.r64.rax : (int32_t)t->regs.r32.eax;
		rc = go_on_to_event(t, err);
	}
	rc = put_back(t, saved, rc, err);
	if (rc == 0)
		*result = value;
	return rc;
}
