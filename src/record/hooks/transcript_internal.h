/* SPDX-License-Identifier: MIT */
/* transcript.c writes events, transcript_end.c what is known at the end. Inside src/record/hooks.
 */
#ifndef WEIR_RECORD_HOOKS_TRANSCRIPT_INTERNAL_H
#define WEIR_RECORD_HOOKS_TRANSCRIPT_INTERNAL_H

#include "record/hooks/hook_cost.h"
#include "record/hooks/hooks_internal.h"
#include "record/hooks/tick_clock.h"
#include "record/hooks/transcript.h"

/* A function over all processes, by id. */
struct hooked_function {
	uint32_t frame; /* trace id; 0 = not written yet */
	bool is_off;
	bool is_method; /* of Java: --budget cannot unhook it */
	uint64_t hits;
	uint64_t off_ns; /* when it was unhooked */
	/* Since the budget was last looked at: */
	uint64_t calls, ticks;
	/* What all trees had when it was last looked at: */
	uint64_t tree_calls, tree_ticks;
};

/* What the session's thread knows of a hooked process. */
struct process_view {
	struct hook_process *process; /* a reference */
	struct hook_layout *layout; /* a reference; NULL when nothing refers to the view any more */
	uint64_t since_ns;
	size_t n_sources; /* not finished */
	bool is_gone;
	VEC(uint8_t) seen;	    /* by id: its module is known to be used here */
	struct process_view *older; /* of the same pid */
};

struct hooked_thread {
	uint32_t pid, tid;
	struct thread *thread; /* NULL until it has an event */
	uint32_t stream;
	struct process_view *view;	   /* of the source in use */
	VEC(struct hook_source *) sources; /* in order; those before source_i are freed */
	size_t source_i;
	uint32_t at; /* the next record of its first chunk */
	uint64_t last_ns;
	uint64_t n_events; /* since the budget was last looked at */
	struct replay replay;
	bool has_inherited; /* calls that were open at the fork, not written yet */
	uint64_t inherited_ns;
	bool has_exited;
};

/* What a process became by its last exec, until it ends. */
struct program {
	uint32_t pid;
	uint64_t time;	      /* of the exec */
	char *name;	      /* owned; NULL = no longer of interest */
	char *path;	      /* of its file, owned */
	uint32_t n_files;     /* mapped with the right to execute */
	bool has_library;     /* libweir.so is one of them */
	bool has_small_limit; /* on its address space */
	bool has_own_root;    /* another root folder than ours */
};

/* Programs that were not hooked. */
struct program_tally {
	char *name;	    /* owned; "" = others */
	char *path;	    /* of the first of them, owned; NULL = not known */
	const char *reason; /* static */
	bool is_loss;
	uint64_t n;
};

/* Functions that were asked for, and are in a program that was not hooked. */
struct unhooked_functions {
	uint32_t first, last; /* ids */
	const char *reason;
};

struct transcript {
	struct hooks *h;
	struct transcript_world world;
	struct tick_clock clock;
	struct hook_costs costs;
	uint64_t began_ns;
	VEC(struct hooked_thread *) threads;
	struct map by_tid; /* -> pointer; the newest thread of that id, 0 = it is gone */
	VEC(struct process_view *) views;
	struct map by_pid; /* -> index + 1; the newest view */
	uint64_t last_serial;
	VEC(struct hooked_function) functions; /* by id */
	struct hook_chunk *used;
	uint32_t bytes_metric, heap_metric, bytecodes_metric;
	uint64_t budget_ns;	     /* when it was last looked at */
	VEC(uint8_t) library_images; /* by image number: 0 = not looked at, 1 = no, 2 = yes */
	VEC(struct program) programs;
	VEC(uint32_t) free_programs;
	struct map program_of; /* pid -> index + 1; 0 = none */
	VEC(struct program_tally) tallies;
	VEC(struct unhooked_functions) unhooked;

	uint64_t n_events, n_unknown, n_stacks_cut;
	uint64_t n_unmatched_leaves; /* of threads that are gone */
	struct hook_thread_counts totals;
	uint64_t n_unread;
	uint64_t
		n_open_counted; /* Java calls without an end, whose bytecodes are not known therefore */
};

/* transcript_threads.c */
/* The process as it was at that time; NULL when it was not hooked. */
struct process_view *transcript_find_view(const struct transcript *t, uint32_t pid, uint64_t time);
struct hooked_thread *transcript_find_thread(
	const struct transcript *t, uint32_t pid, uint32_t tid);
/* New processes, and those whose modules have changed. */
void transcript_take_processes(struct transcript *t);
void transcript_add_source(void *transcript, struct hook_source *s);
/* Nothing more comes from the source that the thread has in use. */
void transcript_finish_source(struct transcript *t, struct hooked_thread *thread);
void transcript_free_thread(struct transcript *t, struct hooked_thread *thread);
/* Calls of the chain that have no end of their own are counted, if that makes their bytecodes unknown. */
void transcript_miss_bytecodes(
	struct transcript *t, const struct replay_chain *c, size_t first, size_t end);
/* The same of all that are open when the thread is over, or the recording is. */
void transcript_miss_open(struct transcript *t, struct hooked_thread *thread);

/* transcript_programs.c */
/* At the end, before it is said which wishes matched nothing. */
void transcript_judge_programs(struct transcript *t, uint64_t time);
/* Why the function's program was not hooked; NULL when it may have been. */
const char *transcript_unhooked_reason(const struct transcript *t, uint32_t id);
void transcript_write_unheard(struct transcript *t, uint64_t time);
/* Processes and libraries that the recorder should have heard of. */
uint64_t transcript_n_unheard(const struct transcript *t);
void transcript_free_programs(struct transcript *t);

/* transcript_functions.c */
/* The first call of a function in a process. False: there is no such function. */
bool transcript_see_function(
	struct transcript *t, struct hooked_thread *thread, uint32_t id, uint64_t time);
struct hooked_function *transcript_function(struct transcript *t, uint32_t id);
/* The frame of the function's first address; defined when first asked for. */
uint32_t transcript_frame(struct transcript *t, uint32_t id);
/* With --tree: `calls` and `ticks` of each function since the last look. Returns how many trees there are. */
uint64_t transcript_count_trees(struct transcript *t);
/* Looks at what the hooks cost, and unhooks. */
void transcript_keep_budget(struct transcript *t, uint64_t now_ns);

#endif
