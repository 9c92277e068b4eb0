/* SPDX-License-Identifier: MIT */
/*
 * The processes and threads of a recording, as of the record being processed. A pid that is used
 * again is a new process.
 */
#ifndef WEIR_PROCESS_PROCESSES_H
#define WEIR_PROCESS_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/mem.h"
#include "process/stack_memo.h"
#include "symbols/addrspace.h"
#include "trace/writer.h"

struct process {
	uint32_t pid;
	uint64_t start_ns; /* 0 = before the trace, not known */
	uint64_t exec_ns;  /* when its program began; 0 = not known */
	struct addrspace *space;
	bool in_exec; /* exec was seen, but no user code of the new program yet */
	bool has_ended;
	bool was_running; /* it was there before the recording began */
	bool is_named;	  /* by the user, to be recorded */
	bool is_32_bit;	  /* by its samples */
	uint32_t n_live;  /* threads that have not ended */
	uint64_t
		read_ns; /* when /proc was read for it: older records tell nothing new; 0 = never */
	struct process_modules
		*modules;     /* owned by module_history.c; NULL = none of interest yet */
	uint32_t forked_from; /* pid; 0 = not known, or it has become another program since */
	struct java_process
		*java;	      /* owned by record/java_processes.c; NULL = it is no JVM, or ... */
	uint64_t java_looked; /* ... generation of the space in which none was found; 0 = not yet */
};

struct thread {
	struct process *process;
	uint32_t tid;
	uint32_t trace_id;
	uint32_t name;	       /* string of the trace; 0 = not known */
	uint32_t role;	       /* RECORD_THREAD_IS_* */
	bool has_runtime_name; /* which its runtime has told, and is longer than the system's */
	bool is_met;	       /* by java_process_meet(): its runtime was asked for its name */
	bool wants_name;       /* it ended, as far as is known, before its runtime could be asked */
	uint64_t stack_top;    /* where its stack ends; 0 = not known yet, and */
	unsigned n_top_asked;  /* how often its mapping was asked for that */
	struct stack_memo memo;
	/* A wait that has begun: its stack (0 = none), metric and time. */
	uint32_t wait_stack, wait_metric;
	uint64_t wait_since;
	bool has_ended; /* what it leaves the CPU for then is no wait */
};

struct thread_id {
	uint32_t pid, tid;
};

/* Every process and thread that was ever known, in order of appearance. */
#define PROCESSES_LEAVING 64
struct processes {
	struct trace_writer *w;
	uint32_t stream;
	struct map
		by_pid; /* -> index + 1 into all; the newest process of that pid; 0: none any more */
	struct map by_tid; /* -> index + 1 into threads */
	VEC(struct process *) all;
	VEC(struct thread *) threads;
	/* The last that have ended, whose mappings are still known; in turn. */
	struct process *leaving[PROCESSES_LEAVING];
	size_t n_left;
};
struct processes *processes_new(struct trace_writer *w, uint32_t life_stream);
void processes_free(struct processes *t);

/* The thread, made known (with its process, taken from `pid`) when it was not. */
struct thread *processes_thread(struct processes *t, uint32_t pid, uint32_t tid, uint64_t time);
/* NULL: not known (any more). */
struct thread *processes_find_thread(const struct processes *t, uint32_t pid, uint32_t tid);
struct process *processes_get(struct processes *t, uint32_t pid, uint64_t time);
/* The newest process of that pid, ended or not; NULL when there was none. */
struct process *processes_find(const struct processes *t, uint32_t pid);

/* Somebody else's process has the pid now. */
void processes_forget(struct processes *t, uint32_t pid);

/* A process that was there before: `start_ns` 0 when not known. */
struct process *processes_start(struct processes *t, uint32_t pid, uint32_t parent,
	uint64_t start_ns, uint64_t time, const char *command_line);
/* The new thread (and process, when pid is not the parent's) begins with its maker's name. */
void processes_fork(struct processes *t, const struct thread_id *made,
	const struct thread_id *maker, uint64_t time);
void processes_exec(struct processes *t, uint32_t pid, uint64_t time, const char *name);
void processes_name_thread(
	struct processes *t, uint32_t pid, uint32_t tid, uint64_t time, const char *name);
/* By a language's runtime, which knows better than the kernel; nothing is written when that is known. */
void processes_name_runtime_thread(
	struct processes *t, struct thread *thread, uint64_t time, const char *name, uint32_t role);
void processes_exit(struct processes *t, uint32_t pid, uint32_t tid, uint64_t time);
/* Nothing is mapped in it any more. */
void process_forget_mappings(struct process *p);

#endif
