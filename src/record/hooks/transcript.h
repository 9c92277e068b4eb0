/* SPDX-License-Identifier: MIT */
/*
 * Function events on their way into the trace: takes what the hooks have drained, gives it the
 * trace's time, writes it into the streams of the threads, and keeps the open calls of each thread,
 * so that stacks can be walked through replaced return addresses.
 *
 *   hooks_take --> thread's queue --> transcript_advance(thread, time) --> routine records
 *                                                                      --> replay
 *
 * A stack of a thread at a time is walked after its events up to that time were written. All of
 * this belongs to the session's thread.
 */
#ifndef WEIR_RECORD_HOOKS_TRANSCRIPT_H
#define WEIR_RECORD_HOOKS_TRANSCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/cpu_regs.h"
#include "base/span.h"
#include "record/hooks/hooks.h"
#include "record/hooks/replay.h"
#include "process/images.h"
#include "process/module_history.h"
#include "process/processes.h"

struct hook_layout;

/* What the session lends. */
struct transcript_world {
	struct trace_writer *w;
	struct images *images;
	struct processes *processes;
	struct module_history *modules;
	uint32_t life_stream;
	/* The id of a stack of the thread, from registers and the bytes above the stack pointer. */
	uint32_t (*stack)(void *ctx, struct thread *thread, const struct cpu_regs *regs,
		struct span bytes, uint64_t time);
	void *ctx;
};

struct transcript;
struct transcript *transcript_new(struct hooks *h, const struct transcript_world *world);
/* Ends the threads of the hooks first. */
void transcript_free(struct transcript *t);

/* Takes over what has come. Returns the time before which nothing is missing. */
uint64_t transcript_take(struct transcript *t);
/* Writes the thread's events up to `time`; all threads' events. */
void transcript_advance(struct transcript *t, uint32_t pid, uint32_t tid, uint64_t time);
void transcript_advance_all(struct transcript *t, uint64_t time);

/* A process was made: its thread has the open calls of the one that made it. */
void transcript_fork(struct transcript *t, const struct thread_id *made,
	const struct thread_id *maker, uint64_t time);
/* The process became another program: its calls have ended. */
void transcript_exec(struct transcript *t, uint32_t pid, uint64_t time);
/* For the account of programs that were never hooked: what the process is now called, a file that
 * it has mapped as code, its end. */
void transcript_program(struct transcript *t, uint32_t pid, const char *name, uint64_t time);
void transcript_mapped(struct transcript *t, uint32_t pid, const char *path);
void transcript_program_ends(struct transcript *t, uint32_t pid, uint64_t time);
/* `is_last`: of the threads of its process. */
void transcript_exit(struct transcript *t, uint32_t pid, uint32_t tid, uint64_t time, bool is_last);

/* For a walk over a stack of the thread as it was when its last written event was the last. */
struct hook_walk {
	const struct hook_layout *layout;
	struct replay_walk replay;
	bool has_replay;
};
/* False when the process is not hooked. */
bool transcript_begin_walk(
	struct transcript *t, uint32_t pid, uint32_t tid, uint64_t time, struct hook_walk *walk);
/* For unwind_callbacks: whether `pc` lies where hooks have put something, and what the program
 * would have there; 0 when that is no longer known. */
bool hook_walk_is_ours(const struct hook_walk *walk, uint64_t pc);
uint64_t hook_walk_true_pc(struct hook_walk *walk, uint64_t pc, bool *is_caller);
/* Whether a hook that was called from there is that of a function's entry. */
bool hook_walk_is_entry(const struct hook_walk *walk, uint64_t pc);
/* Whether a thread at `pc` is in a hook, outside of the library. */
bool hook_walk_is_hook(const struct hook_walk *walk, uint64_t pc, bool in_kernel);
/* Whether the image is the hook library. */
bool transcript_is_library(struct transcript *t, uint32_t image);

/* With --tree no events come: the programs keep a tree for each of their threads, which is read and
 * becomes records of the trace (transcript_trees.c). Without --tree these do nothing.
 *
 * All trees as they are now; what a later call writes of a thread replaces it. */
void transcript_write_trees(struct transcript *t, uint64_t time);
/* The thread has ended: its tree is complete, its memory is for another one. */
void transcript_end_tree(struct transcript *t, uint32_t pid, uint32_t tid, uint64_t time);
/* The process became another program: likewise for the trees of the old one. */
void transcript_exec_trees(struct transcript *t, uint32_t pid, uint64_t time);
/* The recording is over: all that are left. Before transcript_finish, which says how often each
 * function was called. */
void transcript_finish_trees(struct transcript *t, uint64_t time);

struct transcript_counts {
	uint64_t n_events, n_lost;
	uint64_t n_jumped; /* calls left by a jump; or they went on where they could not be followed */
};
struct transcript_counts transcript_counts(const struct transcript *t);
/* Once it is finished: a sentence on programs that were executed and not hooked, without those that are
 * lost events; NULL when there is none. Owned by the caller. */
char *transcript_unhooked(const struct transcript *t);
/* What is left of the queues, the functions asked for, what was lost. */
void transcript_finish(struct transcript *t, uint64_t time);

#endif
