/* SPDX-License-Identifier: MIT */
/*
 * Tasks that are followed with all that they make: a map of them, and two programs that keep it right. In pseudo-C:
 *
 *   task_newtask:        if (is_followed(current) && is_meant(child) && !(map[key(child)] = 1)) left_out++;
 *   sched_process_free:  delete map[key(task)];
 *
 * A task's structure is given back after the task has run for the last time, and before its address or its number
 * is used again. What tasks are known by is up to whoever follows them: addresses of threads in
 * record/task_filter.c, numbers of processes in probe/run/process_filter.c.
 */
#ifndef WEIR_BPF_FOLLOWED_H
#define WEIR_BPF_FOLLOWED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "bpf/code.h"

struct followed {
	int map_fd;	 /* key -> 1, in up to 4 bytes; borrowed */
	int left_out_fd; /* one counter; set by followed_open */
	int at;		 /* on the stack, free from here downwards for FOLLOWED_STACK bytes */
	/* Goes to `leave` when the current task is not followed. */
	void (*emit_current)(struct bpf_code *c, void *context, int leave);
	/* Puts the key of the task that the tracepoint is about at `at`: of a birth (which goes to `leave` when the
	 * task is not meant), or of an end. The context of the program is in r6. */
	void (*emit_key)(struct bpf_code *c, void *context, bool is_birth, int leave);
	void *context;
};
#define FOLLOWED_STACK 12 /* below the 8 bytes of the key: 4 for its value */

/* Makes the counter. */
int followed_open(struct followed *f, struct err *err);
void followed_close(struct followed *f);
/* How many tasks were not followed, because there were too many at a time. */
uint64_t followed_n_left_out(const struct followed *f);

/* The key at `at` is followed from now on; r0 = 0 when it worked. */
void followed_emit_add(struct bpf_code *c, const struct followed *f, int at);
/* The two programs, for task_newtask and for sched_process_free. */
void followed_emit_born(struct bpf_code *c, const struct followed *f);
void followed_emit_gone(struct bpf_code *c, const struct followed *f);

#endif
