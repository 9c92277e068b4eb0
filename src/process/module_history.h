/* SPDX-License-Identifier: MIT */
/*
 * Which images were mapped where, in which process, from when to when: keeps the mappings of the
 * processes, writes the module records of the trace and, at the end, its address index.
 *
 *   mmap, munmap, exec, exit --> struct process.space (what is there now)
 *                            --> load, unload and snapshot records, spans of the index
 *
 * 1. A load record is written when a record refers to the mapping for the first time, before that
 *    record (with all_modules: when it is mapped). What was loaded has an unload record when it
 *    ends; a part that is cut away has one for that part, and the rest stays loaded.
 * 2. The index has a span for every mapping that was referred to, and for those in the snapshots
 *    of processes in which something was referred to (or which the user named). A span that is cut
 *    becomes several, which begin at the same time.
 * 3. Mappings that nobody refers to cost nothing but their place in the process's address space.
 */
#ifndef WEIR_PROCESS_MODULE_HISTORY_H
#define WEIR_PROCESS_MODULE_HISTORY_H

#include "process/images.h"
#include "process/processes.h"

struct module_options {
	bool all_modules;    /* write modules that nothing refers to, too */
	bool snapshots_only; /* no load and unload records, no index */
	bool none;	     /* no records of modules at all */
};

struct module_history {
	struct trace_writer *w;
	uint32_t stream;
	struct images *images;
	struct module_options options;
	bool has_started; /* set it: what is mapped from now on was not there before the recording */
	VEC(struct process_modules *) live;
	VEC(struct trace_module_span) spans;
	size_t n_spans; /* with those of live processes */
	bool has_too_many;
	uint64_t n_guessed_32_bit; /* used mappings of 32-bit programs whose end nothing reported */
};
/* Borrows all of its arguments. */
struct module_history *module_history_new(struct trace_writer *w, uint32_t life_stream,
	struct images *images, const struct module_options *options);
void module_history_free(struct module_history *h);

/* An executable mapping; whatever it covers of older ones has ended. */
void module_history_map(
	struct module_history *h, struct process *p, const struct image_query *query, uint64_t time);
/* Nothing is mapped there any more. Returns how many mappings that touched. */
size_t module_history_unmap(struct module_history *h, struct process *p, uint64_t start,
	uint64_t end, uint64_t time, enum module_end how);
/* A record is about to refer to `m`, which is one of the process's mappings. */
void module_history_use(
	struct module_history *h, struct process *p, const struct mapping *m, uint64_t time);
/* The process becomes another program: its mappings have ended. */
void module_history_exec(struct module_history *h, struct process *p, uint64_t time);
/* The process is over, by MODULE_END_EXIT, _REUSED or _SNAPSHOT; its last state becomes a
 * snapshot. */
void module_history_end(
	struct module_history *h, struct process *p, uint64_t time, enum module_end how);

/* The start snapshot of a process that ran before. */
void module_history_start_snapshot(struct module_history *h, struct process *p, uint64_t time);
/* The end of the recording, for a process that lives on: its end snapshot and spans. */
void module_history_end_snapshot(struct module_history *h, struct process *p, uint64_t time);
/* Whether the end snapshot of this process will be written. */
bool module_history_wants(const struct module_history *h, const struct process *p);
/* Writes the address index, after the last process has ended or had its end snapshot. */
void module_history_write_index(struct module_history *h, uint64_t time);

#endif
