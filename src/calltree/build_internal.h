/* SPDX-License-Identifier: MIT */
/*
 * Between the files that build a profile: build.c (the walk), build_events.c (events of threads),
 * build_samples.c, build_nodes.c (trees kept in the program), build_hooks.c, build_counts.c (programs
 * that count themselves), build_life.c (the rest).
 */
#ifndef WEIR_CALLTREE_BUILD_INTERNAL_H
#define WEIR_CALLTREE_BUILD_INTERNAL_H

#include "base/map.h"
#include "base/mem.h"
#include "calltree/build.h"
#include "calltree/frame_names.h"
#include "trace/record_run.h"

/* Samples of one thread with one stack. */
struct sample_sum {
	uint32_t thread, stack;
	uint64_t weight, n;
	size_t order; /* of first sight */
};

/* The node of a stack below the root that was looked at last. */
struct stack_node {
	uint32_t root, node;
};

/* Routines that were entered on one stack before the window opened. */
struct early_calls {
	uint64_t chain;
	VEC(uint32_t) open;
};

/* A thread on its way through the trace. */
struct thread_state {
	struct calltree_thread *calls; /* NULL until its first event */
	VEC(struct early_calls) early; /* by stack, in order of first sight */
	size_t early_i;		       /* the current one */
	struct map early_of;	       /* chain -> index in early */
	uint64_t chain;		       /* current */
	uint64_t last;		       /* time of the last record that concerns it */
	bool is_out;		       /* switched out */
	uint32_t interrupts;	       /* that it is under */
	/* until the first event: what is known about when it ran */
	bool is_seen;
	uint64_t begun; /* when first seen */
	uint64_t since; /* running since, unless is_out or interrupted */
	uint64_t ran;	/* time before `since` */
	/* its own stream, a run of chunks that is played as far as others need it */
	uint32_t stream; /* 0 = none */
	struct trace_runs *runs;
	struct trace_run run;
	bool continues; /* its stream has records behind the window */
};

struct builder {
	struct profile *profile;
	const struct trace_reader *reader;
	struct calltree *tree;
	enum metric_kind kind; /* as in profile->weighing, and the next two */
	uint32_t metric_id;
	uint32_t wait_id;
	bool has_resource;	      /* a record of the metric's use was seen */
	uint64_t from, to;	      /* the window, absolute */
	struct progress *progress;    /* NULL: nobody looks */
	bool continues;		      /* the trace has records behind the window */
	struct thread_state *threads; /* by thread id */
	struct frame_routines names;
	uint32_t n_frames;
	uint32_t *routine_of; /* by frame: its outermost routine; 0 = not looked at */
	uint8_t *action_of;   /* by kind of record: enum play_action */
	struct trace_ahead *ahead;
	bool *is_played;       /* by stream: some thread's own */
	uint32_t *cpu_thread;  /* by stream: the thread that runs there, 0 = not known */
	bool has_switches;     /* the trace says when threads are switched in and out */
	uint64_t *alive_since; /* by thread: time of its first record of life + 1; 0 = not known */
	/* hooks */
	uint32_t hook_frame; /* innermost in samples of hooks' own time; 0 = none */
	/* samples */
	VEC(struct sample_sum) sums; /* in order of first sight */
	struct map sum_of;	     /* thread << 32 | stack -> index in sums */
	uint64_t *stack_n;	     /* by stack: samples that have it */
	uint64_t *frame_n;	     /* by frame: ticks, later all occurrences */
	struct stack_node *node_of;  /* by stack */
	VEC(uint32_t) path;	     /* routines or stacks being walked */
	/* trees that were kept in the program */
	VEC(struct kept_node) kept; /* of the last snapshots */
	VEC(struct kept_tree) kept_trees;
	struct kept_by *kept_by; /* by thread; NULL until the first node */
	struct counted *counted; /* what was counted; NULL until the first record */
};

/* build.c */
uint32_t build_root(struct builder *b, uint32_t thread);
/* The function that has the code of a frame, whose image is used then; what is inlined into it has
 * no entry of its own. */
uint32_t build_routine(struct builder *b, uint32_t frame);
/* Any record that is neither enter nor leave in a thread's own stream. */
void build_record(struct builder *b, const struct trace_record *record);
/* Samples, events and what else build_record does not leave to build_life_record. */
bool build_is_of_the_walk(const struct trace_record *record);

/* build_events.c */
void build_events_init(struct builder *b);
void build_events_release(struct builder *b);
/* Plays the thread's own stream up to what stands before the record. */
void build_play_before(struct builder *b, uint32_t thread, const struct trace_record *record);
/* The thread ran at this time. */
void build_thread_runs(struct builder *b, uint32_t thread, uint64_t time);
/* The thread's calls when it has events or calls that were open when the window opened, else
 * NULL. */
struct calltree_thread *build_open_calls(struct builder *b, uint32_t thread, uint64_t time);
void build_event_record(struct builder *b, const struct trace_record *record);
void build_switch_record(struct builder *b, const struct trace_record *record);
void build_interrupt_record(struct builder *b, const struct trace_record *record);
/* Plays what is left of all threads and ends them. */
void build_events_end(struct builder *b);

/* build_hooks.c */
/* A function that was asked for, a cost, the frame of hooks. */
void build_hook_record(struct builder *b, const struct trace_record *record);
/* Before the walk, after the records of life; with `keeps_cost` nothing is taken out. */
void build_hooks_begin(struct builder *b, bool keeps_cost);
void build_hooks_end(struct builder *b);

/* build_nodes.c */
void build_tree_record(struct builder *b, const struct trace_record *record);
/* Hangs the trees into the tree; before the samples. */
void build_nodes_end(struct builder *b);
void build_nodes_release(struct builder *b);
bool build_has_kept_tree(const struct builder *b, uint32_t thread);

/* build_counts.c: programs that count themselves. */
void build_count_record(struct builder *b, const struct trace_record *record);
void build_counts_end(struct builder *b);
void build_counts_release(struct builder *b);

/* build_life.c: names of threads and losses from the life streams; roots' names; the filter. */
void build_read_life(struct builder *b);
int build_select_threads(struct builder *b, const char *wanted, struct err *err);
/* A record that is not a sample or an event; unknown codes are counted. */
void build_life_record(struct builder *b, const struct trace_record *record);
/* The reason for which the rest of a stream cannot be read. */
void build_note_damage(struct builder *b, const struct err *err);

/* build_samples.c */
void build_sample_record(struct builder *b, const struct trace_record *record);
void build_stack_event_record(struct builder *b, const struct trace_record *record);
void build_tick_record(struct builder *b, const struct trace_record *record);
/* Once the walk is over: hangs the sums into the tree and counts stacks and frames. */
void build_samples_end(struct builder *b);

#endif
