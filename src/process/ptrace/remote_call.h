/* SPDX-License-Identifier: MIT */
/*
 * A thread of another process under ptrace(2), held still, and made to call a function. All of
 * this is for one thread of ours: the one that seized is the one that may ask.
 */
#ifndef WEIR_PROCESS_PTRACE_REMOTE_CALL_H
#define WEIR_PROCESS_PTRACE_REMOTE_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "arch/cpu_regs.h"
#include "base/err.h"

/* The registers of an i386 thread as NT_PRSTATUS has them. */
struct remote_regs32 {
	uint32_t ebx, ecx, edx, esi, edi, ebp, eax, ds, es, fs, gs, orig_eax, eip, cs, eflags, esp,
		ss;
};

struct remote_thread {
	pid_t pid, tid;
	int memory_fd; /* /proc/PID/mem; borrowed */
	bool is_64;
	bool is_seized;
	bool is_interrupted; /* it was told to stop */
	bool is_stopped;
	bool is_gone; /* it ended, or became another program */
	int end_status; /* as from waitpid, when its end was seen here */
	union {
		struct user_regs_struct r64;
		struct remote_regs32 r32;
	} regs; /* as of the stop; what it goes on with when it is let go */
};

/* Fails with ERR_NOT_FOUND when there is no such thread (any more). */
int remote_thread_seize(struct remote_thread *t, struct err *err);

/* Tells a seized thread to stop, without waiting for it. */
void remote_thread_interrupt(struct remote_thread *t);
/* Interrupts a seized thread and waits until it stands. Signals that come first are delivered. A
 * system call that it was in goes on when the thread is let go, as if nothing had been: the kernel
 * restarts it, or, when a signal handler runs first, it ends by the rules of that call. */
int remote_thread_stop(struct remote_thread *t, uint64_t deadline_ns, struct err *err);

/* Lets the thread run without us. One that is not stopped is stopped for it, if it can be. */
void remote_thread_let_go(struct remote_thread *t);

uint64_t remote_thread_pc(const struct remote_thread *t);
uint64_t remote_thread_sp(const struct remote_thread *t);
void remote_thread_unwind_regs(const struct remote_thread *t, struct cpu_regs *regs);
/* The number of the system call that it was stopped in or at the end of; negative: it was in none. */
long remote_thread_syscall(const struct remote_thread *t);
/* Whether its system call will be made again: its pc is then just behind the instruction, which is
 * two bytes long. */
bool remote_thread_is_restarting(const struct remote_thread *t);
/* Whether the call has one of the names, which end with NULL. */
bool remote_syscall_is_among(long number, bool is_64, const char *const *names);
/* Calls that end with EINTR when they are only stopped, and have had no effect then: with
 * -ERESTARTNOHAND (-514) as their result the kernel makes them again, unless a handler runs. */
bool remote_syscall_is_repeatable(long number, bool is_64);
int remote_thread_set_pc(struct remote_thread *t, uint64_t pc, struct err *err);
/* Whether it stands in a restartable sequence (rseq(2)), which would not be restarted if the thread
 * went elsewhere first. */
bool remote_thread_is_in_rseq(const struct remote_thread *t);

bool remote_read(const struct remote_thread *t, uint64_t addr, void *to, size_t n);
bool remote_write(const struct remote_thread *t, uint64_t addr, const void *from, size_t n);

/* --- calls ------------------------------------------------------------------------------- */

/* A few instructions to which called functions return: 16 bytes somewhere in the process's code
 * that nobody needs. */
#define REMOTE_STUB_BYTES 16
#define REMOTE_STUB64_SYSCALL 8 /* offset of the instruction that makes system calls, which has two bytes */
struct remote_stub {
	uint64_t addr;
	bool stays;			     /* it was there before, or is still needed */
	uint8_t original[REMOTE_STUB_BYTES]; /* what it stands in place of */
};
/* `addr`, a multiple of 8, has bytes that are zero or a stub; false when they are not. */
bool remote_stub_fits(const struct remote_thread *t, uint64_t addr);
int remote_stub_plant(
	const struct remote_thread *t, struct remote_stub *stub, uint64_t addr, struct err *err);
/* Does nothing when the thread is not stopped, or the stub stays. */
void remote_stub_remove(const struct remote_thread *t, struct remote_stub *stub);

/* Stack bytes that a call takes by itself, before the function runs. */
#define REMOTE_FRAME_BYTES_MAX (20u << 10)

enum remote_call_late {
	/* The thread is let go as it is, and finishes the call alone: for functions that hold
	 * locks. */
	REMOTE_CALL_LATE_GOES_ON,
	/* The call is given up when it waits in a system call, and gets more time when not. */
	REMOTE_CALL_LATE_GIVES_UP,
};

struct remote_call {
	const char *name; /* of the function, for sentences */
	uint64_t function;
	const char *text; /* copied to the thread's stack, its address is the first argument; or
			     NULL */
	uint64_t arg;	  /* the second argument, or the first one without text */
	uint64_t stack;	  /* where the stack begins, downwards; 0: below the thread's own */
	uint64_t timeout_ns;
	enum remote_call_late late;
};

/* The stopped thread makes the call and is then stopped as before, its registers, vector state and
 * signal mask the same. Signals stay blocked meanwhile. On failure the thread is stopped as before,
 * or let go (is_seized is false), or gone. The result is an address or an int. */
int remote_call(struct remote_thread *t, struct remote_stub *stub, const struct remote_call *call,
	uint64_t *result, struct err *err);

/* The stopped thread makes one system call, without any stack. If we die during these few
 * microseconds the thread is lost, so it is for what has no other way. */
int remote_syscall(struct remote_thread *t, const struct remote_stub *stub, long number,
	const uint64_t args[6], int64_t *result, struct err *err);

#endif
