/* SPDX-License-Identifier: MIT */
/*
 * Single steps by ptrace(2). For a thread that is stepped the engine keeps the address at which it
 * stands (`saved`): at the next stop the instruction there has been executed, its page is certainly
 * present, and only then is it fetched.
 */
#ifndef WEIR_STEPS_ENGINE_PTRACE_ENGINE_H
#define WEIR_STEPS_ENGINE_PTRACE_ENGINE_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/map.h"
#include "base/mem.h"
#include "steps/record/step_internal.h"

#define EFLAGS_TRAP  0x100u
#define PLACES_MAX   4	/* debug registers of a thread */
#define TRACEE_CALLS 64 /* that are remembered */

/* si_code of a SIGTRAP */
#define TRAP_STEP_CALL	   1 /* behind a system call */
#define TRAP_STEP	   2
#define TRAP_PLACE	   4	/* debug register */
#define TRAP_HANDLER_ENTRY 5	/* stands at the first instruction of a signal handler */
#define TRAP_UPROBE	   -100 /* ours: a step over an instruction with a uprobe */

enum tracee_mode {
	TRACEE_NEW,  /* its first stop has not come */
	TRACEE_STEP, /* every instruction is a stop */
	TRACEE_FREE, /* runs by itself, up to a breakpoint or an interruption */
};

/* A call that was executed: where it left the return address, and which one. */
struct tracee_call {
	uint64_t sp, next;
};

#define CALL_STOPS 2 /* of a system call that is run through: its entry and its exit */

struct tracee {
	struct step_track *track;
	pid_t pid, tid;
	enum tracee_mode mode;
	bool is_64;
	bool is_ending;	  /* in its last system call */
	bool is_child;	  /* has not run since it was made by a thread that is stepped */
	bool is_unwanted; /* is let go at its first stop */
	bool has_saved;
	bool is_told;	  /* the trace has the instruction at `saved` already */
	bool is_in_block; /* it was let run to a taken branch, not for one step */
	uint64_t saved;
	uint64_t emulated; /* where it really stands while blocks are emulated; 0 = at `saved` */
	struct user_regs_struct regs; /* as of the last stop */
	bool was_restarting; /* the system call in front of `saved` will be made again by the kernel
			      */
	bool has_own_trap;   /* the program itself has set the trap flag */
	bool needs_settling; /* the kernel takes our trap flag for the program's own */
	uint8_t ahead[16]; /* the instruction at `saved`, if it is an execve and its memory goes */
	size_t n_ahead;
	int injected;		/* signal that it was given with the last resumption */
	struct step_mark given; /* that signal, until it is known what becomes of it; a 0: none */
	bool wants_stop;	/* it was interrupted by us */
	/* SIGTRAP in its signal mask (ptrace_mask.c). */
	bool blocks_trap;  /* the program has blocked it */
	bool ignores_trap; /* it would not be given to the program */
	bool holds_trap;   /* one came meanwhile: `held` */
	siginfo_t held;
	unsigned
		call_stops; /* it runs through a system call, and stops so many times more for it */
	/* It runs through a repeated string instruction, up to a breakpoint behind it. */
	bool is_in_string;
	uint64_t count_before; /* its counter then */
	/* Selection. */
	bool is_in;		  /* its steps are wanted (inside a region, a burst) */
	bool is_marked_in;	  /* the trace says so */
	uint64_t around_sp;	  /* stack pointer at the entry of the function; 0 = not in it */
	unsigned n_handlers;	  /* signal handlers entered since */
	uint64_t handler_sp;	  /* stack pointer at the entry of the first of them */
	uint64_t n_burst;	  /* steps left of the burst */
	bool is_waiting_for_code; /* stops at system calls until the function is there */
	bool is_at_entry_wait;	  /* its breakpoint is where the program proper begins */
	/* Where --to is, and for which state of the mappings that was found out. */
	uint64_t to[PLACES_MAX];
	size_t n_to;
	uint32_t to_space;
	uint64_t to_changes;
	uint64_t places[PLACES_MAX]; /* what its debug registers have */
	size_t n_places;
	/* Tracing by the program itself (ptrace_claim.c). */
	bool is_claimed;    /* it is let go for another tracer: */
	pid_t claimed_by;   /* that stands until it is; 0 = nobody does */
	bool is_held;	    /* it is such a one */
	bool has_claimed;   /* the call in front of it may be made */
	unsigned n_watched; /* stops for system calls left, while it runs free */
	bool is_at_int3;    /* stopped by a breakpoint instruction of its own */
	struct tracee_call calls[TRACEE_CALLS]; /* a ring */
	size_t n_calls;
	cpu_set_t affinity; /* its own, while we keep it on our CPU */
	bool is_pinned;
};

struct translate_tracer;

struct ptrace_engine {
	struct step_session *s;
	const struct step_options *o;
	bool by_block; /* PTRACE_SINGLEBLOCK, the engine `branch` */
	bool emulates_blocks;
	VEC(struct tracee *) tracees;
	struct map by_tid; /* tid -> tracee */
	struct map early;  /* tid -> its first stop's status, when nobody said yet who it is */
	unsigned n_live;
	struct translate_tracer *host; /* whose loop it works in (ptrace_counts.c); NULL: its own */
	bool is_over;	/* threads are let go at their next stop */
	pid_t command;
	bool is_launching;    /* it has not made its exec */
	bool has_lost_rights; /* a program, and that was told */
	struct err launch_failed;
	uint64_t next_burst_ns;
	cpu_set_t own_affinity;
	int cpu; /* where we and those that are stepped are; -1 = anywhere */
	/* For a word on options that chose nothing, or too much. */
	bool has_found, has_begun, has_wanted_thread;
	bool has_looked_for_end, has_found_end; /* --to */
	bool has_too_many;
};

/* --- ptrace_step.c: what a stop means ------------------------------------------------------- */

bool tracee_read_regs(struct tracee *t);
/* The instruction at t->saved was executed: fetches it, tells the session, mends what the program
 * could see of us. `code` is that of the SIGTRAP. */
void tracee_stepped(struct ptrace_engine *e, struct tracee *t, int code);
/* Stands because we interrupted it, perhaps in a system call that takes this for a signal. */
void tracee_repeat_call(struct tracee *t);
bool tracee_is_filtered(const struct tracee *t); /* by seccomp */
/* Stands before an instruction that is to be stepped. */
void tracee_stand(struct tracee *t);
/* Stands in the middle of a system call that made another thread or process. */
void tracee_tell_call(struct ptrace_engine *e, struct tracee *t);
/* At the entry of a handler in a 32-bit program: was it given a siginfo? */
bool tracee_handler_has_info(const struct tracee *t);
/* It is about to be given a signal; and that does something: a handler, its end, a stop. One that
 * is ignored is none for the program. */
void tracee_signalled(struct tracee *t, int signal);
void tracee_signal_acts(struct ptrace_engine *e, struct tracee *t);

/* The bytes of an instruction that has been executed; returns how many could be read. */
size_t tracee_fetch(const struct tracee *t, uint64_t addr, uint8_t bytes[16]);
/* The same as memory has them now, with the breakpoints of others. */
size_t tracee_fetch_memory(const struct tracee *t, uint64_t addr, uint8_t bytes[16]);
/* An executed instruction, for the trace if it is wanted. `before` NULL: not known. */
void tracee_tell(struct ptrace_engine *e, struct tracee *t, uint64_t addr, const uint8_t *bytes,
	size_t n, const struct user_regs_struct *before);

/* From here on its steps are in the trace, or not: the trace says so. */
void tracee_mark_in(struct ptrace_engine *e, struct tracee *t, enum step_why why);
void tracee_mark_out(struct ptrace_engine *e, struct tracee *t, enum step_why why);

/* --- ptrace_blocks.c: stops at taken branches only -------------------------------------------- */

/* Tells of what was executed from `from` up to the instruction that led to `to`, and returns that
 * one's address, for which tracee_stepped does the rest. */
uint64_t tracee_walk_block(
	struct ptrace_engine *e, struct tracee *t, uint64_t from, uint64_t to, int code);
/* Decides, before a thread is resumed, whether it runs up to the next taken branch. */
bool tracee_runs_block(struct ptrace_engine *e, struct tracee *t);
/* See struct step_engine. */
const char *ptrace_blocks_hindrance(void);
/* WEIR_STEPS_EMULATE_BLOCKS in the environment: single steps stand in for the processor, and all
 * but those at taken branches are passed over, so that the rest can be tested on any machine. */
bool ptrace_blocks_are_emulated(void);
/* Whether this single step is one that a processor with branch stepping would not have stopped at.
 */
bool tracee_passes_over(struct ptrace_engine *e, struct tracee *t, int code);

/* Behind a system call instruction, which leaves the flags there. */
void tracee_mend_r11(struct tracee *t);
/* A thread that is not stepped any more must not keep a trap flag that the kernel takes for its
 * own. */
void tracee_clear_flag(struct tracee *t);
/* Before an execve, which takes its own instruction away. */
void tracee_look_ahead(struct tracee *t);

/* --- ptrace_uprobe.c: uprobes of others -------------------------------------------------------- */

/* Whether the signal may be the end of a step over a uprobe; and whether it is. */
bool tracee_is_sent_by_uprobe(const struct tracee *t, const siginfo_t *info);
bool tracee_stepped_over_uprobe(const struct tracee *t, const siginfo_t *info);
bool tracee_has_uprobe(const struct tracee *t, uint64_t addr);
/* Remembers the instruction that was just executed, if it is a call. */
void tracee_look_for_call(struct tracee *t, const uint8_t *bytes, size_t n, uint64_t addr);
/* Stood before the int3 by which the kernel returns from a function with a uretprobe; and which
 * instruction the step has executed there. False: that is not known. */
bool tracee_is_at_return(const struct tracee *t);
bool tracee_find_return(const struct tracee *t, uint64_t sp, uint64_t *addr);

/* --- ptrace_claim.c: programs that trace others ---------------------------------------------- */

enum claim { CLAIM_NONE, CLAIM_ITSELF, CLAIM_OTHER };

/* Stands before a call that makes it the tracer of `*target`, or another thread its own tracer. */
enum claim tracee_claims(struct ptrace_engine *e, struct tracee *t, struct tracee **target);
/* The same for one that runs free, at the entry of a call. */
enum claim tracee_claims_in_call(struct ptrace_engine *e, struct tracee *t, struct tracee **target);
/* --- ptrace_engine.c --- */
struct tracee *tracee_find(const struct ptrace_engine *e, pid_t tid);
/* For a host. A process with one thread stands at PTRACE_EVENT_EXEC and goes on as ours. */
void engine_take(struct ptrace_engine *e, struct step_track *track, pid_t pid);
void engine_handle(struct ptrace_engine *e, pid_t tid, int status); /* as from waitpid */
/* Threads are interrupted, and let go when they stop. */
void engine_leave(struct ptrace_engine *e);
/* It is no longer ours, nor is anything said of it. */
void engine_forget(struct ptrace_engine *e, struct tracee *t);

/* --- ptrace_counts.c: in the loop of another tracer, for counts ------------------------------- */

/* Stands at PTRACE_EVENT_EXEC: true when the host goes on with what it has become. */
bool engine_gives_back(struct ptrace_engine *e, struct tracee *t);

/* --- ptrace_select.c: what is stepped, what runs free ----------------------------------------- */

/* At the first stop of a thread or program: decides how it goes on. */
void tracee_begin(struct ptrace_engine *e, struct tracee *t, enum step_why why);
/* After a step or at a breakpoint: does the selection change? */
void tracee_select(struct ptrace_engine *e, struct tracee *t);
/* A free thread stopped by SIGTRAP at one of its breakpoints. */
void tracee_at_place(struct ptrace_engine *e, struct tracee *t);
/* At a system call of a thread that waits for its function to be mapped. */
void tracee_look_for_code(struct ptrace_engine *e, struct tracee *t);
void tracee_clear_places(struct tracee *t);
bool tracee_set_places(struct tracee *t, const uint64_t *places, size_t n);
/* It becomes another program, in which the region has not begun. */
void tracee_leave_regions(struct ptrace_engine *e, struct tracee *t);
/* It stands because we interrupted it. */
void tracee_interrupted(struct ptrace_engine *e, struct tracee *t);
/* Says so when what was asked for was never there. */
void engine_note_silence(const struct ptrace_engine *e);
/* Whether a burst is due; interrupts the free threads when it is. */
void engine_bursts(struct ptrace_engine *e);

/* --- ptrace_string.c: repeated string instructions in one go --------------------------------- */

/* Stands before one with many rounds to go: sets the breakpoint. */
bool tracee_runs_string(struct ptrace_engine *e, struct tracee *t);
/* Stopped, at the breakpoint or by something else on the way: tells of the rounds that were made.
 */
void tracee_string_stopped(struct ptrace_engine *e, struct tracee *t);

/* --- ptrace_mask.c: SIGTRAP stays open ------------------------------------------------------- */

/* Into its memory; what cannot be written is left. */
void tracee_write(const struct tracee *t, uint64_t addr, void *from, size_t n);
/* Before a thread is stepped, and before it runs free or without us. */
void tracee_take_mask(struct tracee *t);
void tracee_give_mask(struct tracee *t);
/* Stands at the first instruction of a handler, whose frame tells siginfo or not. */
void tracee_entered_handler(struct tracee *t, bool has_info);
bool tracee_is_system_call(const uint8_t *bytes, size_t n);
/* Stands before a system call that changes the mask. */
bool tracee_is_before_mask_call(const struct tracee *t);
/* Such a call was made; `before` are the registers in front of it. */
void tracee_mask_changed(struct tracee *t, const struct user_regs_struct *before);
/* A signal is delivered before the call that was to be run through has begun. Where it has a handler, that
 * comes first, and is stepped. */
void tracee_signal_before_call(struct tracee *t, int signal);
/* How the program takes SIGTRAP: as it is when we come, and when it says so (the address of its
 * struct sigaction). */
void tracee_take_action(struct tracee *t);
void tracee_action_was_set(struct ptrace_engine *e, struct tracee *t, uint64_t action);
/* A breakpoint instruction where the program has blocked SIGTRAP kills it; so be it. */
bool tracee_is_doomed(struct ptrace_engine *e, struct tracee *t, const siginfo_t *info);
/* A SIGTRAP that is not ours: true when the program has blocked it, and gets it later, or ignores
 * it. */
bool tracee_holds_trap(struct tracee *t, siginfo_t *info);

/* --- ptrace_affinity.c ---------------------------------------------------------------------- */

/* Keeps a stepped thread on our CPU, since a step then costs a third; and undoes it. */
void tracee_pin(struct ptrace_engine *e, struct tracee *t);
void tracee_unpin(struct tracee *t);
/* The program asked or set its affinity by the system call that it just made. */
void tracee_answer_affinity(struct ptrace_engine *e, struct tracee *t,
	const struct user_regs_struct *before, long number, bool is_32);

/* --- ptrace_data.c -------------------------------------------------------------------------- */

/* What the instruction that was just executed, with these registers before it, read and wrote. */
void tracee_record_data(struct ptrace_engine *e, struct tracee *t, uint64_t addr,
	const uint8_t *bytes, size_t n, const struct user_regs_struct *before);

int ptrace_engine_run(struct step_session *s, bool by_block, struct err *err);

#endif
