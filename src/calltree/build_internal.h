/* SPDX-License-Identifier: MIT */
/* Between the files that build a profile: build.c (the walk), build_samples.c, build_life.c. */
#ifndef WEIR_CALLTREE_BUILD_INTERNAL_H
#define WEIR_CALLTREE_BUILD_INTERNAL_H

#include "base/map.h"
#include "base/mem.h"
#include "calltree/build.h"
#include "calltree/frame_names.h"

enum metric_kind {
	METRIC_KIND_TIME,    /* passes between events; stands still while switched out */
	METRIC_KIND_WALL,    /* passes between events, whatever the thread does */
	METRIC_KIND_SAMPLES, /* one for each sample */
	METRIC_KIND_CALLS,   /* one for each call */
	METRIC_KIND_COUNT    /* what samples and resource records add up to */
};

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

/* A thread on its way through the trace. */
struct thread_state {
	struct calltree_thread *calls; /* NULL until its first event */
	VEC(uint32_t) open;	       /* routines entered before the window opened */
	uint64_t last_event;
	bool is_out;	     /* switched out */
	uint32_t interrupts; /* that it is under */
};

struct builder {
	struct profile *profile;
	const struct trace_reader *reader;
	struct calltree *tree;
	enum metric_kind kind;
	uint32_t metric_id;	      /* 0: not in the trace's table */
	uint32_t wait_id;	      /* the other half of "wall" in a trace of samples, else 0 */
	uint64_t from, to;	      /* the window, absolute */
	bool continues;		      /* the trace has records behind the window */
	struct thread_state *threads; /* by thread id */
	struct frame_routines names;
	uint32_t *cpu_thread; /* by stream: the thread that runs there, 0 = not known */
	/* samples */
	VEC(struct sample_sum) sums; /* in order of first sight */
	struct map sum_of;	     /* thread << 32 | stack -> index in sums */
	uint64_t *stack_n;	     /* by stack: samples that have it */
	uint64_t *frame_n;	     /* by frame: ticks, later all occurrences */
	struct stack_node *node_of;  /* by stack */
	VEC(uint32_t) path;	     /* routines or stacks being walked */
};

/* build.c */
uint32_t build_root(struct builder *b, uint32_t thread);

/* build_life.c: names of threads and losses from the life streams; roots' names; the filter. */
void build_read_life(struct builder *b);
int build_select_threads(struct builder *b, const char *wanted, struct err *err);
/* A record that is not a sample or an event; unknown codes are counted. */
void build_life_record(struct builder *b, const struct trace_record *record);
/* The reason for which the rest of a stream cannot be read. */
void build_note_damage(struct builder *b, const struct err *err);

/* build_samples.c */
void build_sample(struct builder *b, const struct trace_sample *sample);
void build_tick(
	struct builder *b, uint32_t thread, uint32_t frame, uint32_t metric, uint64_t weight);
/* Once the walk is over: hangs the sums into the tree and counts stacks and frames. */
void build_samples_end(struct builder *b);

#endif
