/* SPDX-License-Identifier: MIT */
/*
 * The recorder's side of the engine `inside`: the program steps itself (src/rt/steps), and what it
 * writes into the shared rings is taken out here.
 *
 *   inside_library.c  the library's bytes
 *   inside_inject.c   puts them into a stopped program, by ptrace, and lets go
 *   inside_attach.c   into a process that runs
 *   inside_take_out.c out of it again
 *   inside_leave.c    out of one that must not be traced any more, while others are
 *   inside_drain.c    rings -> session
 *   inside_life.c     processes: forks, execs, ends
 *   inside_engine.c   the loop
 */
#ifndef WEIR_STEPS_ENGINE_INSIDE_ENGINE_H
#define WEIR_STEPS_ENGINE_INSIDE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"
#include "record/hooks/inject_internal.h"
#include "rt/steps/steps_abi.h"
#include "steps/record/step_session.h"

struct inside_library {
	uint8_t image[STEPS_IMAGE_BYTES]; /* as it lies in memory */
	uint64_t entry;			  /* offset of the handler */
};
int inside_library_read(struct inside_library *library, struct err *err);

/* The memory shared with a program and the processes it forks. */
struct inside_area {
	struct steps_area *shared;
	struct steps_slot *slots;
	size_t bytes;
	uint64_t base;	/* of the whole range in the program */
	bool *is_bound; /* by slot */
	unsigned n_processes;
};

struct inside_process {
	pid_t pid;
	int pid_fd;
	int memory_fd;
	struct inside_area *area; /* NULL: it is not traced (any more) */
	bool has_ended;
	bool is_left;	 /* to itself: the library is there, and nobody uses it */
	bool has_status; /* by its own exit call */
	int status;
};

struct inside_thread {
	struct step_track *track;
	pid_t pid, tid;
	struct inside_area *area;
	struct steps_slot *slot; /* NULL: none yet, or none any more */
	bool has_ended;
	bool is_paused;	  /* the trace says so */
	bool is_unwanted; /* by --threads */
	bool has_exit;	  /* it was about to end: */
	uint64_t exit_addr;
	int exit_status;
	long exit_number; /* of the system call */
	int last_signal;  /* that was marked */
	bool is_in_exec;  /* seized: */
	uint64_t exec_addr;
	uint32_t exec_heritage; /* STEPS_EXEC_* */
	/* It waits until a process is out (inside_leave.c): */
	pid_t leaver;	      /* 0 = it does not */
	pid_t leaves_but;     /* the thread of it that may stay, itself; 0 = none */
	uint32_t leave_sync;  /* number of the SYNC record that is answered then */
	uint64_t leave_until; /* time */
};

struct inside_engine {
	struct step_session *s;
	const struct step_options *o;
	struct inside_library library;
	VEC(struct inside_area *) areas;
	VEC(struct inside_process *) processes;
	VEC(struct inside_thread *) threads;
	pid_t command; /* 0 = none, or its end is known */
	unsigned n_execs;
	bool is_off;
};

/* --- inside_inject.c ------------------------------------------------------------------------ */

/* The `syscall` instruction of the program's vdso, and a call that a standing thread makes there.
 */
struct inside_call {
	long number;
	const char *name;
	uint64_t args[6];
};
int inside_find_syscall(const struct remote_thread *t, struct remote_stub *stub, struct err *err);
int inside_call(struct remote_thread *t, const struct remote_stub *stub,
	const struct inside_call *call, int64_t *result, struct err *err);
/* The threads stand. On success they have been let go and are traced; on failure they are as they
 * were, and stopped. */
int inside_inject(struct inside_engine *e, struct remote_threads *threads,
	struct inside_area **area, struct err *err);
/* The standing thread of a new program ignores SIGTRAP, as the program before did. */
int inside_ignore_trap(struct remote_threads *threads, struct err *err);
void inside_area_free(struct inside_area *area);

/* --- inside_take_out.c ---------------------------------------------------------------------- */

/* The range of the library in a process. */
struct inside_range {
	pid_t pid;
	int memory_fd;
	uint64_t base, bytes;
};
/* Tracing is off. Takes threads that wait in system calls out of the library, gives the program its
 * signal actions and the memory back. Fails when a thread still needs the library: nothing but
 * threads that are out has changed then, and it can be tried again. */
int inside_take_out(const struct inside_range *range, struct err *err);
/* The same for all threads but one, which needs the library still: memory and actions stay. */
int inside_take_out_others(const struct inside_range *range, pid_t but, struct err *err);
/* What an earlier recording left in the process, if anything. */
int inside_take_out_old(pid_t pid, int memory_fd, struct err *err);

/* --- inside_leave.c -------------------------------------------------------------------------- */

/* The thread waits until its process is out, which puts itself under a filter; or that of another
 * thread is, which it is going to trace. False: it need not wait. */
bool inside_leave_for_filter(struct inside_engine *e, struct inside_thread *t, bool is_alone);
bool inside_leave_for_claim(struct inside_engine *e, struct inside_thread *t, pid_t claimed);
/* Answers those that wait and need not any more. */
void inside_leave_go_on(struct inside_engine *e);
/* Nothing of us is in the process any more. */
void inside_process_is_out(struct inside_engine *e, struct inside_process *p);

/* --- inside_attach.c ------------------------------------------------------------------------ */

int inside_attach(struct inside_engine *e, pid_t pid, struct err *err);
/* Whether the command is something that can be traced; else a sentence. */
int inside_check_command(const char *name, struct err *err);
/* Whether a seccomp filter looks at the calls of a thread of the process: then a sentence. */
int inside_check_filter(pid_t pid, struct err *err);

/* --- inside_drain.c ------------------------------------------------------------------------- */

/* Takes up to a bounded number of records; returns how many. */
size_t inside_drain_thread(struct inside_engine *e, struct inside_thread *t);
/* Gives slots that were taken to the threads they are of. */
void inside_bind_slots(struct inside_engine *e);
void inside_free_slot(struct inside_thread *t);

/* --- inside_life.c -------------------------------------------------------------------------- */

struct inside_process *inside_process_find(struct inside_engine *e, pid_t pid);
struct inside_process *inside_process_add(
	struct inside_engine *e, pid_t pid, struct inside_area *area);
/* Its memory is that area's from now on; NULL: it is not traced any more. */
void inside_process_use(struct inside_process *p, struct inside_area *area);
struct inside_thread *inside_thread_find(struct inside_engine *e, pid_t tid);
struct inside_thread *inside_thread_add(
	struct inside_engine *e, struct step_track *track, struct inside_area *area);
void inside_thread_end(struct inside_engine *e, struct inside_thread *t, int status);
/* The thread waits for us to seize it, and then makes the call. */
void inside_exec_begin(struct inside_engine *e, struct inside_thread *t, uint64_t addr);
int inside_start_command(struct inside_engine *e, struct launch *l, struct err *err);
/* Takes what waitpid(2) has to say, and looks who has ended. */
void inside_look_at_processes(struct inside_engine *e);
void inside_engine_release(struct inside_engine *e);

#endif
