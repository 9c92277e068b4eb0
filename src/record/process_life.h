/* SPDX-License-Identifier: MIT */
/*
 * The life of what is recorded: applies the records about processes and their mappings (and, at the
 * start and at the end, what /proc says) to the tables of processes and modules.
 */
#ifndef WEIR_RECORD_PROCESS_LIFE_H
#define WEIR_RECORD_PROCESS_LIFE_H

#include <sys/types.h>

#include "record/collected.h"
#include "process/module_check.h"
#include "process/module_history.h"
#include "record/perf_set.h"
#include "process/processes.h"

struct life_options {
	bool system_wide; /* the running processes were not named one by one */
	struct module_options modules;
};

struct process_life {
	struct trace_writer *w;
	uint32_t stream; /* that all of its records go to */
	struct perf_set *set;
	struct life_options options;
	struct processes *processes;
	struct module_history *modules;
	struct images *images;
	struct module_check check;
	uint64_t began_ns;
	uint64_t munmap_second; /* when the second began in which n_munmaps came */
	uint64_t n_munmaps;
};
/* Borrows all of its arguments. */
struct process_life *process_life_new(struct trace_writer *w, struct perf_set *set,
	struct images *images, const struct life_options *options);
void process_life_free(struct process_life *l);

/* Start-up: a process that runs already (its threads and mappings from /proc), or one that is about
 * to exec the file `program`. Then the snapshot of what ran before. */
void process_life_add_running(struct process_life *l, pid_t pid, uint64_t time);
void process_life_add_launched(
	struct process_life *l, pid_t pid, const char *program, uint64_t time);
void process_life_started(struct process_life *l, uint64_t time);

/* Where records come of the whole machine: whether this one is of a process that is recorded. One that is
 * made by somebody else has no part in it, even under a pid that is known. Call it for each record, in
 * order of time. */
bool process_life_concerns(struct process_life *l, const struct collected *r);
/* Whether an exit record is of a task that goes on: the kernel reports one, too, when it takes a task's own
 * perf events away at the exec of a program with other rights (setuid, file capabilities). */
bool process_life_goes_on(const struct process_life *l, const struct collected *r);
/* mmap, munmap, comm, fork and exit records; others are ignored. */
void process_life_apply(struct process_life *l, const struct collected *r);

/* Events are off: looks at what the processes have mapped at this moment. */
void process_life_stopped(struct process_life *l);
/* CPU time of processes that were made while recording and live on. */
uint64_t process_life_cpu_ns(const struct process_life *l);
/* The last record has been applied: end snapshots, notes, address index. */
void process_life_finish(struct process_life *l, uint64_t time);

#endif
