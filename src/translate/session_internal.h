/* SPDX-License-Identifier: MIT */
/*
 * What the files of a recording by the translator share.
 *
 *	translate_session.c	one recording from its start to its end
 *	translate_tracer.c	the stops of ptrace(2), and what each of them means
 *	translate_programs.c	programs and threads: beginning, becoming others, ending; their place in the trace
 *	translate_memory.c	what the translator keeps in the program's memory: areas, blocks, events, counters
 *	translate_service.c	what the translator asks for
 *	translate_leave.c	programs that outlive the recording leave their translator
 */
#ifndef WEIR_TRANSLATE_SESSION_INTERNAL_H
#define WEIR_TRANSLATE_SESSION_INTERNAL_H

#include <signal.h>

#include "base/map.h"
#include "base/mem.h"
#include "process/module_history.h"
#include "run/run.h"
#include "translate/count_trace.h"
#include "translate/inject_translator.h"
#include "translate/translate_session.h"

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

/* Memory whose code is in a file, and need not be kept. */
struct file_code {
	uint64_t start, end;
};

/* One program in one process: from its exec, or a fork, to its exec or end. */
struct traced_program {
	pid_t pid;
	struct process *process;
	int memory_fd; /* /proc/PID/mem; -1: it cannot be read */
	struct counts *counts;
	struct translator_place place; /* base 0: it runs natively */
	bool shares_memory;	       /* with the process that has made it */
	bool is_inherited; /* it is a copy of its parent that does not know yet that it is one */
	uint32_t n_rows;   /* of the block table, handed to counts */
	unsigned n_living; /* threads that are not at their end */
	VEC(struct file_code)
	files; /* in the order in which they were asked for: the last one is right */
};

/* At the end of the recording: translate_leave.c. */
enum leave_state { LEAVE_NOT, LEAVE_STANDS, LEAVE_ASKED, LEAVE_ENTERED, LEAVE_GOES };

struct traced_thread {
	pid_t tid;
	pid_t own_tid; /* that it has in its own pid namespace */
	struct traced_program *program;
	uint64_t number;	 /* never used again */
	uint64_t area;		 /* address of its struct translate_thread; 0: not known */
	uint64_t n_lost_buffers; /* that were told */
	bool is_translated;
	bool is_ending; /* all that there is to know of it is known */
	enum leave_state leaves;
	uint64_t first_call; /* that it waited in when it was attached to; 0: none */
	bool was_restarting; /* when it stopped, by a call that knows how much of a wait is left */
	bool is_left; /* has to be let go to where its registers are (TRANSLATE_WHY_TRACED) */
};

/* A thread whose first stop came before anybody had said whose it is. */
struct early_thread {
	pid_t tid;
	uint64_t since_ns;
};

struct translate_session {
	const struct translate_options *options;
	struct translate_result *result;
	struct run run;
	struct trace_writer *w;
	uint32_t life_stream;
	struct images *images;
	struct processes *processes;
	struct module_history *modules;
	struct count_trace *figures;
	struct translator_image image;
	uint64_t flushed_ns;
	bool is_over; /* threads are asked to leave, and let go then */
	bool is_late; /* they are let go wherever they stand */
	pid_t command;
	bool is_launching; /* it has not made its exec */
	struct err launch_failed;
	uint64_t n_numbers;
	VEC(struct traced_program *) programs;
	VEC(struct traced_thread *) threads;
	struct map by_tid; /* -> struct traced_thread; 0: none */
	VEC(struct early_thread) early;
	struct buf events, copied; /* of a program's memory */
};

void translate_note(struct translate_session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* What was counted in the program goes to the trace. */
void translate_write_counts(struct translate_session *s, struct traced_program *p);

/* --- translate_tracer.c ------------------------------------------------------------------------ */

/* Launches or attaches, and returns when the run is over and every thread was let go. */
int translate_drive(struct translate_session *s, struct err *err);
/* Those early threads that have waited since then. */
void translate_let_early_go(struct translate_session *s, uint64_t since_ns);

/* --- translate_leave.c ---------------------------------------------------------------------- */

/* It is in the translator, and can leave it. */
bool leave_is_possible(const struct traced_thread *t);
/* It has its handlers by now. */
bool leave_can_be_asked(struct traced_thread *t);
/* Stands because we interrupted it, and waits for the others of its process. False: it did so before. */
bool leave_stands(struct traced_thread *t);
/* The stop was one on the way out, and has been seen to. */
bool leave_takes_trap(struct traced_thread *t, const siginfo_t *info);
/* Behind each stop: processes all of whose threads stand go further. */
void leave_together(struct translate_session *s);
/* The thread has just left, and goes on natively: with the last one of its process the translator's memory goes. */
void leave_unmaps(struct translate_session *s, struct traced_thread *t);
/* It stands still, for others that never will: it may be let go as it is. */
bool leave_is_given_up(const struct traced_thread *t);

/* --- translate_programs.c ---------------------------------------------------------------------- */

struct traced_thread *traced_find(const struct translate_session *s, pid_t tid);
struct traced_program *traced_add_process(struct translate_session *s, pid_t pid, bool was_running);
struct traced_thread *traced_add_thread(
	struct translate_session *s, struct traced_program *p, pid_t tid);
/* The thread `by` has made one: a thread, or a process that has a copy of its memory, or shares it. */
struct traced_thread *traced_forked(
	struct translate_session *s, struct traced_thread *by, pid_t tid, bool shares_memory);
/* The process has become another program, its only thread has the process's number. Returns that. */
struct traced_thread *traced_exec(struct translate_session *s, pid_t pid, pid_t former_tid);
/* It has ended, or runs without us from here on. */
void traced_gone(struct translate_session *s, struct traced_thread *t, bool has_ended);
void traced_end_all(struct translate_session *s);
/* The translator begins in it, or the reason why it does not is told. The thread stands at PTRACE_EVENT_EXEC.
 * False: it has ended meanwhile, *status is as from waitpid. */
bool traced_begin(struct translate_session *s, struct traced_thread *t, int *status);

/* --- translate_memory.c ------------------------------------------------------------------------ */

bool program_read(const struct traced_program *p, uint64_t addr, void *to, size_t n);
bool program_write(const struct traced_program *p, uint64_t addr, const void *from, size_t n);
/* The thread's area as it is; false: it has none. `gs_base` is the thread's, 0: not known. */
bool thread_area(struct traced_thread *t, uint64_t gs_base, struct translate_thread *area);
/* Rows of the block table that are new; with `all` those that have changed, too. */
void program_blocks(struct translate_session *s, struct traced_program *p, bool all);
/* The child has a copy of its parent's memory, and is not running yet: the parent's rows up to where the copy ends
 * are handed over. False: the parent has more by now. */
bool program_share_blocks(
	struct translate_session *s, struct traced_program *parent, struct traced_program *child);
/* What `area` says is in the buffer, into s->events. Returns how many events. */
size_t thread_copy_events(struct translate_session *s, const struct traced_thread *t,
	const struct translate_thread *area);
void thread_take_events(struct translate_session *s, const struct traced_thread *t, size_t n);
/* Those that are in the buffer, of blocks that were handed over. */
void thread_read_events(struct translate_session *s, struct traced_thread *t, uint64_t gs_base);
/* All that is to be known of the thread now; false: its memory says nothing of it. */
bool thread_read(struct translate_session *s, struct traced_thread *t, uint64_t gs_base);
/* Its area may be another thread's. */
void thread_free_area(struct traced_thread *t);

/* --- translate_service.c ----------------------------------------------------------------------- */

struct user_regs_struct;
/* The thread has asked for something, and gets the answer in `regs`. */
void thread_serve(
	struct translate_session *s, struct traced_thread *t, struct user_regs_struct *regs);

#endif
