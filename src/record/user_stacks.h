/* SPDX-License-Identifier: MIT */
/*
 * The user part of stacks while recording: walks a sample's registers and stack copy and gives the
 * stack its id in the trace. Hooked functions and the library's own frames are seen through.
 */
#ifndef WEIR_RECORD_USER_STACKS_H
#define WEIR_RECORD_USER_STACKS_H

#include <stdint.h>

#include "process/images.h"
#include "process/module_history.h"
#include "process/processes.h"
#include "record/collected.h"
#include "record/perf_set.h"
#include "record/hooks/transcript.h"
#include "record/java_processes.h"
#include "trace/writer.h"

/* All of it is borrowed. */
struct user_stacks_world {
	struct trace_writer *w;
	uint32_t life_stream;
	struct images *images;
	struct module_history *modules;
	const struct perf_set *set;
	struct java_processes *java; /* NULL: JVMs cannot be asked */
};

struct user_stacks_counts {
	uint64_t n, n_complete; /* walks, and those that reached the thread's start */
	uint64_t n_in_hooks;	/* samples within a hook */
};

struct user_stacks;
struct user_stacks *user_stacks_new(const struct user_stacks_world *world);
void user_stacks_free(struct user_stacks *u);
/* Functions are hooked; borrowed. */
void user_stacks_set_transcript(struct user_stacks *u, struct transcript *transcript);

/* The stack's id, on top of `stack` (0 = nothing is below). The sample has registers. */
uint32_t user_stacks_intern(
	struct user_stacks *u, const struct collected *r, struct thread *thread, uint32_t stack);
/* The same by the addresses that the sample has of the program, or else the one where it was. */
uint32_t user_stacks_intern_chain(
	struct user_stacks *u, const struct collected *r, struct thread *thread);
/* A frame of which nothing but the program counter is known. */
uint32_t user_stacks_tick(struct user_stacks *u, struct thread *thread, uint64_t pc, uint64_t time);
struct user_stacks_counts user_stacks_counts(const struct user_stacks *u);

#endif
