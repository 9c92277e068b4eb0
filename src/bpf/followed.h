/* SPDX-License-Identifier: MIT */
/*
 * Tasks that are followed with all that they make: a map of them, and two programs that keep it right. In pseudo-C:
 *
 *   task_newtask:        if (!is_meant(child)) return;
 *                        if (!is_followed(current)) { delete map[key(child)]; return; }
 *                        if (!(map[key(child)] = mark(child))) left_out++;
 *   sched_process_free:  if (map[key(task)] == mark(task)) delete map[key(task)];
 *
 * A task's structure is given back after the task has run for the last time, and before its address is used again. Its
 * number is free before that: it may belong to another task by then, which the mark tells, and which may be none that
 * is followed. What tasks are known by is up to whoever follows them: addresses of threads in record/task_filter.c,
 * numbers of processes in probe/run/process_filter.c.
 */
#ifndef WEIR_BPF_FOLLOWED_H
#define WEIR_BPF_FOLLOWED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "bpf/code.h"

struct followed {
	int map_fd;	    /* key -> mark, 4 bytes; borrowed */
	int left_out_fd;    /* one counter; set by followed_open */
	uint64_t n_refused; /* there was no room when their owner put them into the map */
	int at;		    /* on the stack, free from here downwards for FOLLOWED_STACK bytes */
	/* Goes to `leave` when the current task is not followed. */
	void (*emit_current)(struct bpf_code *c, void *context, int leave);
	/* Puts the key of the task that the tracepoint is about at `at`: of a birth (which goes to `leave` when the
	 * task is not meant), or of an end. The context of the program is in r6. */
	void (*emit_key)(struct bpf_code *c, void *context, bool is_birth, int leave);
	/* r0 = what tells that task from others that have had the same key, not 0, in 4 bytes. NULL: keys are not
	 * given again before their end is seen, and the mark of all is 1. */
	void (*emit_mark)(struct bpf_code *c, void *context);
	void *context;
};
#define FOLLOWED_STACK	 12 /* below the 8 bytes of the key: 4 for its mark */
#define FOLLOWED_NO_MARK 0  /* of one whose mark was not known when it was put into the map */

/* Makes the counter. */
int followed_open(struct followed *f, struct err *err);
void followed_close(struct followed *f);
/* How many tasks were not followed, because there were too many at a time. */
uint64_t followed_n_left_out(const struct followed *f);

/* The key at `at` is followed from now on, with the mark 1; r0 = 0 when it worked. */
void followed_emit_add(struct bpf_code *c, const struct followed *f, int at);
/* The two programs, for task_newtask and for sched_process_free. */
void followed_emit_born(struct bpf_code *c, const struct followed *f);
void followed_emit_gone(struct bpf_code *c, const struct followed *f);

#endif
