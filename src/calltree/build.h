/* SPDX-License-Identifier: MIT */
/*
 * From a trace to a profile: the call tree for one metric, the threads, and what was lost on the
 * way. Reports and exports start here.
 */
#ifndef WEIR_CALLTREE_BUILD_H
#define WEIR_CALLTREE_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "calltree/calltree.h"
#include "calltree/loss.h"
#include "calltree/sample_weight.h"
#include "trace/progress.h"
#include "trace/reader.h"
#include "trace/records.h"

struct build_options {
	const char *metric; /* NULL: instructions, cpu, samples, else the first of the trace */
	const char *thread; /* only this one: a tid, PID_TID or a name; NULL: all */
	uint64_t from, to;  /* from <= time < to, since the start of the trace */
	bool keeps_cost;    /* of hooks, in the times: nothing is taken out */
	struct progress *progress; /* NULL: nobody looks */
};
#define BUILD_OPTIONS_ALL ((struct build_options){.to = UINT64_MAX})

struct profile_thread {
	uint32_t pid, tid;
	const char *name;	      /* the last one it had; "" when it never had one */
	char *root_name;	      /* PID_TID */
	uint32_t root;		      /* node; 0 when nothing of it is in the profile */
	bool is_wanted;		      /* passes the filter */
	enum record_thread_role role; /* in a language's runtime */
	uint64_t samples, events, switches;
};

/* How a function was hooked; the numbers are those of records 0x51/0x01. */
enum profile_hook_method {
	PROFILE_HOOK_REFUSED = 0,
	PROFILE_HOOK_JUMP = 1,
	PROFILE_HOOK_INT3 = 2,
	PROFILE_HOOK_NOP = 3,
	PROFILE_HOOK_MCOUNT = 4,
	PROFILE_HOOK_INSTRUMENT = 5,
	PROFILE_HOOK_BYTECODE = 6
};
#define PROFILE_HOOK_N_METHODS 7

/* A function that was asked for. */
struct profile_hook {
	uint32_t frame;
	enum profile_hook_method method;
	const char *reason; /* why it was refused, or not hooked by a jump; "" when there is none */
	uint64_t hits;
	bool is_off;	   /* it was unhooked to keep the budget */
	uint64_t off_time; /* then, since the start of the trace */
	uint32_t cost;	   /* number of the profile_cost of its calls; 0 = not known */
};

/* What a way to hook adds to a call; records 0x51/0x03. */
#define PROFILE_PS_A_NS	    1000
#define PROFILE_COST_PS_MAX ((uint64_t)1000000000000) /* a second */
struct profile_cost {
	uint32_t number;
	const char *name;
	uint64_t n;		     /* how often it was measured */
	uint64_t inner_ps, outer_ps; /* in the function's time, in its caller's; means */
	uint64_t deviation_ps;	     /* of their sum, from one measurement to another */
};

/* What a program that counts itself (records 0x55) says as a whole. */
struct profile_counts {
	uint64_t n_nodes;      /* of its call trees, the threads themselves included */
	uint64_t n_functions;  /* known, executed or not; parts split off are not counted apart */
	uint64_t n_executed;   /* of them */
	uint64_t n_left_alone; /* of them: without counters */
	uint64_t n_missed;     /* of those: not on purpose; what they execute is in no figure */
	uint64_t missed_ns;    /* in calls of them that were timed */
	bool has_missed_time;
	uint64_t n_missed_objects; /* of n_missed: no functions, but whole objects */
	const char *missed_object; /* what the first of them is called; NULL: there is none */
	struct loss missed;	   /* why, by function; only reasons are in it */
	uint64_t n_blocks, n_blocks_executed;
	uint64_t foreign_ns; /* in functions that are timed instead of counted */
	bool has_foreign;
	bool has_calls; /* it kept call trees */
	/* The metric is known for functions, not for calls: they hang below their threads, and cum
	 * and callers are not known. */
	bool is_flat;
};

struct profile {
	const struct trace_reader *reader; /* borrowed */
	struct calltree *tree;		   /* finished */
	const char *metric,
		*unit; /* borrowed from reader or options; unit is "1" for plain counts */
	struct sample_weighing weighing;
	bool is_time;	     /* the metric is a time of which elapsed is measured too */
	uint64_t start, end; /* time of the first and of the last record read */
	uint64_t from, to;   /* the window: from <= time < to, as in the trace */
	uint64_t total;	     /* of the metric, over all threads */
	bool is_merged;	     /* it has figures by events and figures by samples */
	uint64_t n_samples, n_events, n_switches;
	uint64_t n_stack_events; /* stacks at the entry of routines */
	uint64_t n_kept_nodes;	 /* of trees that were kept in the program */
	uint64_t n_pruned;	 /* of them that were folded into their parents */
	struct profile_counts counts;
	struct profile_hook *hooks; /* in order of the records*/
	size_t n_hooks, cap_hooks;
	struct profile_cost *costs;
	size_t n_costs, cap_costs;
	bool keeps_cost; /* times have the cost of hooks in them: it was asked for */
	struct calltree_cost_sums cost_sums; /* else: what is not in them, and what still is */
	uint64_t cost_error;		     /* of the former, ns */
	uint64_t n_without_cost; /* functions that were called, whose cost is not known */
	uint64_t n_hook_samples, hook_weight; /* samples of hooks' own time, in no function's */
	struct profile_thread *threads;	      /* by thread id; [0] is not used */
	uint32_t n_threads;
	bool *image_is_used; /* by image id: a sample or an event was there */
	struct loss loss;
};

/* Fails when the metric or the thread is not in the trace, and when nobody wants it any more. What cannot be read because the trace is
 * damaged is a loss, not a failure. */
int profile_build(struct profile **out, const struct trace_reader *r,
	const struct build_options *options, struct err *err);
void profile_free(struct profile *p);
/* NULL when there is none. */
const struct profile_cost *profile_cost_find(const struct profile *p, uint32_t number);
/* How far a call's cost may be off: the deviation, and a tenth since other calls are not empty ones. */
uint64_t profile_cost_error_ps(const struct profile_cost *cost);

#endif
