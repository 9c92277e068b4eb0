/* SPDX-License-Identifier: MIT */
/* One JVM of a recording: its frames (java_frames.c), its threads and classes over time
 * (java_snapshots.c). Who has one is for java_processes.h. */
#ifndef WEIR_RECORD_JAVA_PROCESS_H
#define WEIR_RECORD_JAVA_PROCESS_H

#include "base/map.h"
#include "base/mem.h"
#include "jvm/jvm.h"
#include "record/java_processes.h"
#include "unwind/unwind.h"

/* What is looked at now and then, the next time long after the last in proportion to what it cost. */
struct java_look {
	uint64_t next_ns;     /* CLOCK_MONOTONIC */
	uint64_t earliest_ns; /* the same for a look that is asked for */
	uint64_t interval_ns;
};

struct java_process {
	const struct java_world *world;
	uint32_t pid;
	uint64_t start_ns;	/* of the process, as in the thread table */
	uint64_t began_ns;	/* the program; 0 = not known */
	uint64_t since_1970_ns; /* add this to a time of the trace */
	bool was_running;	/* before the recording */
	uint64_t libjvm_start;
	struct jvm *jvm; /* NULL = it cannot be read: */
	char *problem;	 /* why; owned */
	uint64_t batch;	 /* in which it was last asked for anything */
	bool has_ended;
	VEC(struct process *) users;

	uint32_t image;	      /* of the trace; 0 = not defined yet */
	struct map frames[2]; /* address in the image -> frame; of callers in the second */
	uint64_t n_unnamed;   /* places whose methods could not be read any more */

	struct java_look threads_look, classes_look;
	struct map tids;	  /* its own pid namespace's -> ours, when it has one */
	struct intern classes;	  /* loader and name */
	VEC(uint64_t) class_seen; /* by class: number of the list it was in last, 0: it is gone */
	uint64_t n_class_lists;
	unsigned n_cut_lists; /* in a row, until now, that could not be read to their end */
	bool classes_are_cut; /* more than one: no matter of a JVM that is just ending */
};

/* For unwind_callbacks. *why is set with UNWIND_GENERATED_LOST, and lives as long as the program. */
enum unwind_generated java_process_step(struct java_process *p, struct cpu_regs *regs,
	bool is_caller, const struct unwind_stack *stack, struct unwind_place *place,
	const char **why);
/* The frame's id in the trace; the place is one that a step has given. */
uint32_t java_process_frame(
	struct java_process *p, const struct unwind_place *place, bool is_caller);

/* The thread has a sample: when it is its first one the threads are looked at, since it may be short. */
void java_process_meet(struct java_process *p, struct thread *thread, uint64_t time);
/* Looks when it is time, or in any case. `time` is for records. */
void java_process_look(struct java_process *p, uint64_t time, bool is_last);

#endif
