/* SPDX-License-Identifier: MIT */
/*
 * A recording in progress: takes collected records in order of time, keeps the processes, threads
 * and mappings they speak of, walks the stacks, and writes the trace.
 *
 *   collector --> session_add (sorts) --> processes --> unwinder --> trace writer
 */
#ifndef WEIR_RECORD_SESSION_H
#define WEIR_RECORD_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "record/collector.h"
#include "record/perf_set.h"
#include "record/process_life.h"
#include "trace/writer.h"

struct hooks;
struct image_identity;
struct name_place;

/* What samples are counted in. */
struct session_event {
	const char *metric, *unit;
	bool is_wait; /* weighed by the time until the thread runs again */
};

/* A recording of another recorder, or of another machine: nothing is asked of the processes that run here, which are
 * others by now. Its perf_set is empty but for event_of_id. All of it is borrowed. */
struct session_past {
	const struct session_event *events;
	size_t n_events;
	const struct image_identity *kernel; /* that ran then, as far as it is known */
	const struct image_place *files;
	const struct name_place *names;
};

struct session_options {
	struct perf_options perf;
	struct life_options life;
	struct hooks *hooks;		 /* functions are hooked; NULL = none are; borrowed */
	const struct session_past *past; /* NULL: it is recorded here and now */
};

struct session_counts {
	uint64_t n_samples, n_lost;
	uint64_t sampled_ns;		  /* CPU time that the samples stand for */
	bool lost_are_mixed;		  /* n_lost counts kernel events, too */
	uint64_t n_events, n_events_lost; /* of hooked functions */
	uint64_t
		n_jumped; /* calls left by a jump; or they went on where they could not be followed */
	uint64_t n_processes, n_threads;
	uint64_t n_stacks, n_stacks_complete; /* samples with a user part, and those that reach the
						 thread's start */
	uint64_t first_sample_ns, last_sample_ns; /* 0: there was none */
};

struct session;
struct session *session_new(
	struct trace_writer *w, struct perf_set *set, const struct session_options *options);
void session_free(struct session *s);

/* Start-up records: a process that runs already (its threads and mappings from /proc), or one that
 * is about to exec the file `program`. */
void session_add_running(struct session *s, pid_t pid);
void session_add_launched(struct session *s, pid_t pid, const char *program);
void session_started(struct session *s);
/* The same of what was recorded earlier, which began at `time`. */
void session_begin_past(struct session *s, uint64_t time);

/* Takes the list's records (and empties it), processes those that are certainly in order. */
void session_add(struct session *s, struct collected_list *list);
/* Of the records that wait to be in order. */
size_t session_waiting_bytes(const struct session *s);
/* Trees that programs keep of themselves, as they are now; without --tree there are none. */
void session_write_trees(struct session *s);
/* Events are off: looks at what the processes have mapped at this moment. */
void session_stopped(struct session *s);
/* Processes the rest, names the frames, writes the end records; `n_completed` stacks were longer than a
 * copy by the kernel would be. */
void session_finish(struct session *s, uint64_t n_completed);

/* CPU time of processes that were made while recording and live on. */
uint64_t session_cpu_ns(const struct session *s);
struct session_counts session_counts(const struct session *s);
/* Whether what was collected should not wait: a JVM is read, which changes what samples refer to. */
bool session_hurries(const struct session *s);
/* A sentence on JVMs that could not be read, at the end; NULL: none. Owned. */
char *session_unread_java(const struct session *s);
/* A sentence on programs whose functions were not hooked, at the end; NULL: none. Owned. */
char *session_unhooked(const struct session *s);

#endif
