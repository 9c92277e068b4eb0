/* SPDX-License-Identifier: MIT */
/* What the files of the injection share beside remote_call.h and remote_symbols.h. */
#ifndef WEIR_PROCESS_PTRACE_INJECT_INTERNAL_H
#define WEIR_PROCESS_PTRACE_INJECT_INTERNAL_H

#include "base/mem.h"
#include "process/ptrace/remote_call.h"
#include "process/ptrace/remote_symbols.h"

/* --- remote_thread.c ---------------------------------------------------------------------- */

enum remote_stop {
	REMOTE_STOP_EVENT,   /* by PTRACE_INTERRUPT, or a stop of the whole process */
	REMOTE_STOP_SYSCALL, /* at the entry or exit of a system call */
	REMOTE_STOP_SIGNAL,  /* before a signal is delivered */
	REMOTE_STOP_GONE,    /* ended or became another program; not ours any more */
	REMOTE_STOP_LATE,    /* none of these until the deadline */
};
/* Waits for the next stop of a seized, running thread. */
enum remote_stop remote_thread_wait(struct remote_thread *t, uint64_t deadline_ns, int *signal);
/* Waits for REMOTE_STOP_EVENT, delivering what signals come before. Nothing but `t`'s state
 * changes: its registers are not read. */
int remote_thread_wait_event(struct remote_thread *t, uint64_t deadline_ns, struct err *err);

int remote_thread_get_regs(struct remote_thread *t, struct err *err);
int remote_thread_set_regs(struct remote_thread *t, struct err *err);
/* Of signals: the one that it has when no system call (sigsuspend) has lent it another. */
int remote_thread_get_mask(const struct remote_thread *t, uint64_t *mask, struct err *err);
int remote_thread_set_mask(const struct remote_thread *t, uint64_t mask, struct err *err);
int remote_thread_gone(const struct remote_thread *t, struct err *err);
/* It stands, by an interruption: replaces an EINTR that only we have caused. */
int remote_thread_repeat_call(struct remote_thread *t, struct err *err);

/* Whether it has registered itself for restartable sequences, as glibc does with each thread. *section: address of what
 * describes the last one that it has begun, as far as the kernel has not forgotten that; 0: none. */
bool remote_thread_has_rseq(const struct remote_thread *t, uint64_t *section);

#define REMOTE_SYSCALL_BYTES 2 /* of the 64-bit instruction */

/* A system call that the kernel is about to make again, of a 64-bit thread. */
struct remote_restart {
	int64_t outcome; /* in rax: -ERESTARTSYS and its like; 0: there is none */
	int64_t call;	 /* in orig_rax */
	uint64_t behind; /* the instruction */
	int64_t again;	 /* number of the call that it makes: the same, or restart_syscall */
};
struct remote_restart remote_thread_restart(const struct remote_thread *t);

/* --- remote_frame.c ----------------------------------------------------------------------- */

#define REMOTE_XSTATE_MAX (12u << 10)

/* All that a thread is, beside its memory. */
struct remote_state {
	struct remote_thread thread; /* for its registers */
	uint64_t signal_mask;
	size_t n_xstate; /* 0: not known */
	size_t n_x87;
	uint8_t xstate[REMOTE_XSTATE_MAX]; /* as NT_X86_XSTATE */
	uint8_t x87[112];		   /* i386: as NT_PRFPREG, the FSAVE form */
};

struct remote_frame {
	uint64_t addr; /* of bytes[0], which is the stack pointer at the function's entry */
	uint64_t text; /* where the text came to lie */
	size_t n;
	uint8_t bytes[REMOTE_FRAME_BYTES_MAX];
};

/* The stack of a call below `top`: at its lowest address the return address `ret`, and what
 * rt_sigreturn needs to bring the thread back into `state`; then the text. */
int remote_frame_build(struct remote_frame *frame, const struct remote_state *state, uint64_t top,
	uint64_t ret, const char *text, struct err *err);
/* Makes the state's vector registers what a function expects at its entry. */
void remote_state_clear_vectors(struct remote_state *state);

/* --- inject_moment.c ---------------------------------------------------------------------- */

struct moments;
struct moments *moments_new(const struct remote_symbols *symbols);
void moments_free(struct moments *m);
/* NULL when the stopped thread may call dlopen: it holds no lock of the loader or the allocator.
 * Else why not, a phrase. */
const char *moment_hinders_dlopen(struct moments *m, const struct remote_thread *t);
/* NULL when functions may be called on the thread's own stack, else why not. */
const char *moment_hinders_own_stack(struct moments *m, const struct remote_thread *t);

/* Where signal handlers that are running on the stopped thread will return to. */
struct moment_return {
	uint64_t pc;
	uint64_t where; /* address of the word that holds it */
};
size_t moment_handler_returns(struct moments *m, const struct remote_thread *t,
	struct moment_return *returns, size_t max);

/* --- inject_refusal.c --------------------------------------------------------------------- */

/* Why nothing can ever be called in this process, as a sentence; 0 when nothing is known against
 * it. */
int inject_check_process(pid_t pid, struct err *err);
/* The path must lead to the library from where the process is (container, chroot), whose files are
 * those of `view`. */
int inject_check_library(pid_t pid, pid_t view, const char *library, struct err *err);
/* What the library's function has answered: 0, or a sentence. */
int inject_answer(pid_t pid, const char *function, uint64_t result, struct err *err);
/* ptrace said `errnum` for the process. */
int inject_refused(pid_t pid, int errnum, struct err *err);
/* State of the thread by /proc ('R', 'S', 'D', 'Z', ...); 0 when it is gone. */
char inject_thread_state(pid_t pid, pid_t tid);
bool inject_thread_lives(pid_t pid, pid_t tid); /* it is there, and has not ended */
/* Whether another process traces this one just now, and the sentence that says so. */
bool inject_is_traced(pid_t pid);
bool inject_is_traced_here(pid_t pid, pid_t tid); /* the thread, by the calling one */
int inject_check_tracer(pid_t pid, struct err *err);

/* System call filters (seccomp) that the process runs under: the most of any of its threads; strict
 * mode counts as one. */
unsigned inject_n_filters(pid_t pid);

/* --- remote_threads.c --------------------------------------------------------------------- */

struct remote_threads {
	pid_t pid;
	int memory_fd;
	bool is_64;
	VEC(struct remote_thread) all;
};
/* Stops every thread of the process that is not stopped yet. */
int remote_threads_stop(struct remote_threads *threads, uint64_t deadline_ns, struct err *err);
void remote_threads_let_go(struct remote_threads *threads);
struct remote_thread *remote_threads_add(struct remote_threads *threads, pid_t tid);


/* --- remote_caller.c ---------------------------------------------------------------------- */

#define REMOTE_MOMENT_NS 5000000000u /* so long a safe moment is looked for */

/* By which functions are called in a process. */
struct remote_caller {
	pid_t pid;
	int memory_fd; /* /proc/PID/mem */
	struct remote_symbols *symbols;
	struct remote_threads threads;
	struct remote_thread *thread; /* of `threads`, stopped; NULL = none */
	struct remote_stub stub;
	uint64_t stack;	     /* top of the one that calls are made on; 0 = the thread's own */
	uint64_t stack_addr; /* of memory mapped for it; 0 = none is */
	struct err *err;     /* where sentences go */
};
/* Finds a thread on which a function can be called now, and stops it. With `moments`: dlopen, and
 * there is a stack for it. */
int remote_caller_stop(struct remote_caller *c, struct moments *moments);
/* Every thread stands still, c->thread is one of them. */
int remote_caller_stop_all(struct remote_caller *c);
/* Memory for calls where no stack is known to be large enough. */
int remote_caller_map_stack(struct remote_caller *c);
/* On the stopped thread, and on the stack that was chosen for it, which `call` need not say. */
int remote_caller_call(
	struct remote_caller *c, struct remote_call call, uint64_t *result, struct err *err);
/* Leaves nothing behind, as far as a stopped thread is left to see to it. */
void remote_caller_let_go(struct remote_caller *c);

#endif
