/* SPDX-License-Identifier: MIT */
/*
 * Writes what the kernel told of as it happened (kernel_sources.h) into the trace.
 *
 *   system call --> routine entered, routine left    in the thread's stream
 *   page fault  --> resource used: 1 of "faults"     in the thread's stream
 *   interrupt   --> interrupt begins, ends           in the CPU's stream
 *
 * Records can be missing (a full ring, a recording that begins in the middle of a call): a left is
 * written only for what was entered, and a call whose end is missing ends where the next one of its
 * thread begins.
 */
#ifndef WEIR_RECORD_KERNEL_EVENTS_H
#define WEIR_RECORD_KERNEL_EVENTS_H

#include "record/collected.h"
#include "process/images.h"
#include "record/perf_set.h"
#include "process/processes.h"
#include "trace/writer.h"

struct kernel_events;
/* Borrows its arguments. `has_samples`: the trace has metrics of its own. */
struct kernel_events *kernel_events_new(struct trace_writer *w, const struct perf_set *set,
	struct images *images, bool has_samples);
void kernel_events_free(struct kernel_events *k);

/* Whether anything but munmap is recorded. */
bool kernel_events_are_wanted(const struct perf_set *set);
/* Whether the event belongs to a thread's stream, not to its CPU's. */
bool kernel_event_is_of_thread(enum kernel_event event);

/* A COLLECTED_KERNEL record, in order of time. */
void kernel_events_of_thread(
	struct kernel_events *k, const struct thread *thread, const struct collected *r);
void kernel_events_of_cpu(struct kernel_events *k, uint32_t stream, const struct collected *r);
/* The thread is over: so is the call it was in (exit, or any when it was killed). */
void kernel_events_thread_ended(
	struct kernel_events *k, const struct thread *thread, uint64_t time);
/* What was imperfect, as notes of the life stream. */
void kernel_events_write_notes(struct kernel_events *k, uint32_t life_stream, uint64_t time);

#endif
