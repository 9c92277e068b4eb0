/* SPDX-License-Identifier: MIT */
/*
 * Programs that run in the translator (rt/translate/translate_abi.h), followed from outside. What is done with what
 * the translator tells is somebody else's work (struct translate_work): counts of a trace (translate_session.c), or
 * executed instructions (steps/engine/translate_engine.c).
 *
 *	translate_tracer.c	the stops of ptrace(2), and what each of them means
 *	translate_programs.c	programs and threads: beginning, becoming others, ending
 *	translate_memory.c	what the translator keeps in the program's memory: areas, blocks, events, counters
 *	translate_service.c	what the translator asks for
 *	translate_leave.c	programs that outlive the recording leave their translator
 */
#ifndef WEIR_TRANSLATE_TRACER_H
#define WEIR_TRANSLATE_TRACER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "base/mem.h"
#include "process/proc.h"
#include "run/run.h"
#include "translate/inject_translator.h"

/* One program in one process: from its exec, or a fork, to its exec or end. */
struct traced_program {
	pid_t pid;
	int memory_fd;		       /* /proc/PID/mem; -1: it cannot be read */
	struct translator_place place; /* base 0: it runs natively */
	bool shares_memory;	       /* with the process that has made it */
	bool is_inherited; /* it is a copy of its parent that does not know yet that it is one */
	uint32_t n_rows;   /* of the block table, handed over */
	unsigned n_living; /* threads that are not at their end */
	void *data;	   /* of the work */
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
	uint64_t n_taken; /* bytes in its buffer that were handed over while it was running */
	bool is_translated;
	bool is_ending; /* all that there is to know of it is known */
	enum leave_state leaves;
	bool is_let_on; /* until it can be asked */
	bool is_left;	/* has to be let go to where its registers are (TRANSLATE_WHY_TRACED) */
	void *data;	/* of the work */
};

struct translate_tracer;
struct count_session;

/*
 * What is done with it. All functions but those that are said to be optional are there; `data` of programs and threads
 * is theirs alone. Threads stand still in all of them, but for `take`.
 */
struct translate_work {
	uint64_t options; /* TRANSLATE_OPTION_* */
	size_t unit;	  /* bytes of an event */
	const char *done; /* what becomes of programs here, in sentences: "counted" */
	const char *
		for_32bit; /* what can be done with a running 32-bit program instead, in sentences */
	const char *unread; /* what buffers have that nobody has read, in sentences */

	void (*note)(void *ctx, const char *sentence);
	/* The command, or a process that is attached to. */
	void (*process_new)(void *ctx, struct traced_program *p, bool was_running);
	/* A thread of such a process. */
	void (*thread_new)(void *ctx, struct traced_thread *t);
	/* `by` has made `t`: a thread of its program, or the first one of a new program, which shares its memory or has
	 * a copy of it. */
	void (*forked)(void *ctx, struct traced_thread *by, struct traced_thread *t);
	/* A thread of a program that becomes another is gone. */
	void (*thread_replaced)(void *ctx, struct traced_thread *t);
	/* `t` is the only thread of its new program, which was `old`: that is freed behind this. */
	void (*exec)(void *ctx, struct traced_thread *t, struct traced_program *old);
	/* It is about to begin in the translator. */
	void (*begins)(void *ctx, struct traced_thread *t);
	/* Its program runs natively: `why` is a phrase that begins with no subject. */
	void (*not_translated)(void *ctx, struct traced_thread *t, const char *why);
	/* The thread has ended, with a status as from waitpid, or runs on without us. */
	void (*thread_gone)(void *ctx, struct traced_thread *t, bool has_ended, int status);
	/* Behind that of its last thread. */
	void (*program_gone)(void *ctx, struct traced_program *p);

	/* Executable memory is asked for: fills in region->flags, n_functions and writes functions; the answer is that of
	 * TRANSLATE_REGION. */
	int64_t (*region)(void *ctx, struct traced_program *p, const struct proc_mapping *m,
		struct translate_region *region);
	/* Rows of the block table: those from p->n_rows on are new. */
	void (*blocks)(void *ctx, struct traced_program *p, uint32_t first,
		const struct translate_block *rows, size_t n);
	/* What was in a thread's buffer: whole units. It may be running again. */
	void (*take)(void *ctx, struct traced_thread *t, const uint8_t *bytes, size_t n);
	/* Behind the last of that, or now and then: what its area says. */
	void (*look)(void *ctx, struct traced_thread *t, const struct translate_thread *area);
	/* Something that makes the result incomplete (is_loss), or nearly did. */
	void (*tell)(void *ctx, struct traced_program *p, bool is_loss, uint64_t n,
		const char *sentence);

	/* Optional. */
	/* `t` is the only thread of a program that a stepper has given back. */
	void (*adopted)(void *ctx, struct traced_thread *t);
	void (*maps)(void *ctx, struct traced_thread *t);
	void (*before_exec)(
		void *ctx, struct traced_thread *t, const struct translate_thread *area);
	/* It is about to get a signal that is not the translator's. `is_native`: it stands in its own code. */
	void (*signal)(void *ctx, struct traced_thread *t, const siginfo_t *info);
	/* It stands with its whole process, by the signal that came last. */
	void (*stands)(void *ctx, struct traced_thread *t);
	/* It leaves the translator before its end; `why` NULL: since it dies. */
	void (*leaves)(void *ctx, struct traced_thread *t, const char *why);
	/* It ends, with this status, and what it has written was handed over: PTRACE_EVENT_EXIT. */
	void (*ending)(void *ctx, struct traced_thread *t, int status);
	/* Between two stops, often. */
	void (*idle)(void *ctx);
};

/*
 * Somebody who follows 32-bit programs in his own way, by the stops of the same loop. Processes change hands when they
 * exec, in both directions; what a thread makes is in the hands that it is in itself.
 */
struct translate_stepper {
	/* For a recording of counts: begins without any thread. */
	void *(*open)(struct count_session *s);
	/* All that is known goes to the recording. */
	void (*close)(void *ctx);
	bool (*wants)(const void *ctx, bool is_32); /* such a program */
	/* The only thread of a process stands at PTRACE_EVENT_EXEC, and is the stepper's from here on. */
	void (*take)(void *ctx, pid_t pid);
	bool (*has)(const void *ctx, pid_t tid);
	/* As from waitpid, of a thread that it has; it lets the thread go on. */
	void (*stopped)(void *ctx, pid_t tid, int status);
	/* The recording is over: all threads are interrupted, and run without us behind their next stop. */
	void (*leave)(void *ctx);
	size_t (*n_threads)(const void *ctx);
};

/* A thread whose first stop came before anybody had said whose it is. */
struct early_thread {
	pid_t tid;
	int status; /* as from waitpid */
	uint64_t since_ns;
};

struct translate_tracer {
	/* From the caller. */
	const struct translate_work *work;
	void *ctx;
	struct run *run;
	char *const *command; /* NULL-terminated, or NULL and then: */
	const pid_t *pids;
	size_t n_pids;
	struct translator_image image; /* open */
	const struct translate_stepper *stepper; /* NULL: 32-bit programs run natively */
	void *stepper_ctx;

	/* Its own; zero at first. */
	bool is_over; /* threads are asked to leave, and let go then */
	bool is_late; /* they are let go wherever they stand */
	pid_t command_pid;
	bool is_launching;    /* it has not made its exec */
	bool has_lost_rights; /* a program, and that was told */
	struct err launch_failed;
	uint64_t n_numbers;
	VEC(struct traced_program *) programs;
	VEC(struct traced_thread *) threads;
	struct map by_tid; /* -> struct traced_thread; 0: none */
	VEC(struct early_thread) early;
	VEC(uint8_t) events; /* of a program's memory, too: */
	struct buf copied;
};

void translate_tracer_release(struct translate_tracer *s);
void translate_note(struct translate_tracer *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* --- translate_tracer.c ------------------------------------------------------------------------ */

/* Launches or attaches, and returns when the run is over and every thread was let go. */
int translate_drive(struct translate_tracer *s, struct err *err);
/* Now and then: threads that nobody has made are let go. */
void translate_look_around(struct translate_tracer *s, uint64_t now_ns);
/* What running threads have in their buffers now is handed over. */
void translate_take_all(struct translate_tracer *s);
/* For a stepper. It has made this thread, which may have stopped already: *status is that stop. */
bool translate_take_early(struct translate_tracer *s, pid_t tid, int *status);
/* The process stands at PTRACE_EVENT_EXEC with its only thread, which is no longer the stepper's. */
void translate_adopt(struct translate_tracer *s, pid_t pid);

/* --- translate_leave.c ---------------------------------------------------------------------- */

/* It is in the translator, and can leave it. */
bool leave_is_possible(const struct traced_thread *t);
/* It has its handlers by now, has made the call again that it was interrupted in by us, and holds nobody up. */
bool leave_can_be_asked(struct traced_thread *t);
/* Stands because we interrupted it, and waits for the others of its process. False: it did so before. */
bool leave_stands(struct traced_thread *t);
/* The stop was one on the way out, and has been seen to. */
bool leave_takes_trap(struct traced_thread *t, const siginfo_t *info);
/* Behind each stop: processes all of whose threads stand go further. */
void leave_together(struct translate_tracer *s);
/* The thread has just left, and goes on natively: with the last one of its process the translator's memory goes. */
void leave_unmaps(struct translate_tracer *s, struct traced_thread *t);
/* It stands still, for others that never will: it may be let go as it is. */
bool leave_is_given_up(const struct traced_thread *t);

/* --- translate_programs.c ---------------------------------------------------------------------- */

/* One that stands, as process/ptrace/ has it; its registers are not read. */
struct remote_thread traced_remote(const struct traced_thread *t);
struct traced_thread *traced_find(const struct translate_tracer *s, pid_t tid);
struct traced_program *traced_add_process(struct translate_tracer *s, pid_t pid, bool was_running);
struct traced_thread *traced_add_thread(
	struct translate_tracer *s, struct traced_program *p, pid_t tid);
/* The thread `by` has made one: a thread, or a process that has a copy of its memory, or shares it. */
struct traced_thread *traced_forked(
	struct translate_tracer *s, struct traced_thread *by, pid_t tid, bool shares_memory);
/* The process has become another program, its only thread has the process's number. Returns that. */
struct traced_thread *traced_exec(struct translate_tracer *s, pid_t pid, pid_t former_tid);
/* It is a stepper's from here on; and it was one's. */
void traced_hand_over(struct translate_tracer *s, struct traced_thread *t);
struct traced_thread *traced_adopt(struct translate_tracer *s, pid_t pid);
/* It has ended, or runs without us from here on. */
void traced_gone(struct translate_tracer *s, struct traced_thread *t, bool has_ended, int status);
void traced_end_all(struct translate_tracer *s);
bool program_is_32bit(const char *path);
/* The translator begins in it, or the reason why it does not is told. The thread stands at PTRACE_EVENT_EXEC.
 * False: it has ended meanwhile, *status is as from waitpid. */
bool traced_begin(struct translate_tracer *s, struct traced_thread *t, int *status);

/* --- translate_memory.c ------------------------------------------------------------------------ */

bool program_read(const struct traced_program *p, uint64_t addr, void *to, size_t n);
bool program_write(const struct traced_program *p, uint64_t addr, const void *from, size_t n);
bool program_header(const struct traced_program *p, struct translate_header *header);
/* The thread's area as it is; false: it has none. `gs_base` is the thread's, 0: not known. */
bool thread_area(struct traced_thread *t, uint64_t gs_base, struct translate_thread *area);
/* Rows of the block table that are new; with `all` those that have changed, too. */
void program_blocks(struct translate_tracer *s, struct traced_program *p, bool all);
/* The child has a copy of its parent's memory, and is not running yet: the parent's rows up to where the copy ends
 * are handed over. False: the parent has more by now. */
bool program_share_blocks(
	struct translate_tracer *s, struct traced_program *parent, struct traced_program *child);
/* The thread's buffer is full: it goes on in the other one, once its registers are told so. */
bool thread_exchange_buffers(struct traced_thread *t, const struct translate_thread *area);
/* What `area` says is in the buffer, into s->events. Returns how many bytes. */
size_t thread_copy_events(
	struct translate_tracer *s, struct traced_thread *t, const struct translate_thread *area);
void thread_take_events(struct translate_tracer *s, struct traced_thread *t, size_t n);
/* Those that are in the buffer, of blocks that were handed over; the thread stands where it writes none. */
void thread_read_events(struct translate_tracer *s, struct traced_thread *t, uint64_t gs_base);
/* The same with blocks, of a thread that may be running. */
void thread_peek_events(struct translate_tracer *s, struct traced_thread *t);
/* All that is to be known of the thread now; false: its memory says nothing of it. */
bool thread_read(struct translate_tracer *s, struct traced_thread *t, uint64_t gs_base);
/* Its area may be another thread's. */
void thread_free_area(struct traced_thread *t);

/* --- translate_service.c ----------------------------------------------------------------------- */

struct user_regs_struct;
/* The thread has asked for something, and gets the answer in `regs`. */
void thread_serve(
	struct translate_tracer *s, struct traced_thread *t, struct user_regs_struct *regs);
/* For work that has no functions to tell: what kind of memory it is. */
uint32_t region_flags(const struct proc_mapping *m);

#endif
