/* SPDX-License-Identifier: MIT */
/*
 * The JVMs of a recording. A process that has mapped libjvm.so gets a reader of its memory
 * (jvm/jvm.h) at its first sample; from then on it makes the steps through the JVM's code and says
 * what frames there mean, how the threads are called in Java, and which classes there are.
 *
 *   sample --> java_process_of() --> java_process_step(), java_process_frame() --> the trace
 *
 * 1. A JVM is read a few milliseconds after the sample was taken, and what is in it changes: so a
 *    frame gets its name the moment it is seen, and is never asked about again.
 * 2. A `struct java_process` is one program of one process: exec ends it. A forked child that has
 *    not become another program shares its parent's: its own memory is a copy that is gone in a
 *    moment.
 * 3. What was read of a JVM that has ended remains known for a while.
 * 4. Frames of one that cannot be read stay addresses, and a note in the trace says why.
 */
#ifndef WEIR_RECORD_JAVA_PROCESSES_H
#define WEIR_RECORD_JAVA_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "process/images.h"
#include "process/processes.h"
#include "trace/writer.h"

struct java_processes;
struct java_process;

/* All of it is borrowed. */
struct java_world {
	struct trace_writer *w;
	uint32_t life_stream;
	struct images *images;
	struct processes *processes;
};
struct java_processes *java_processes_new(const struct java_world *world);
void java_processes_free(struct java_processes *j);

/* A batch of records is about to be processed: what was read before is compared with the memory
 * again, threads and classes are looked at when it is time. `time` is that of the last record. */
void java_processes_begin_batch(struct java_processes *j, uint64_t time);
/* Whether some JVM is being read: records should not wait. */
bool java_processes_hurry(const struct java_processes *j);
/* NULL: no JVM, none that can be read, or not ready yet. Cheap but for the first time. */
struct java_process *java_process_of(struct java_processes *j, struct process *p);
/* The process becomes another program; it has ended. */
void java_processes_exec(struct java_processes *j, struct process *p);
void java_processes_exit(struct java_processes *j, struct process *p);
/* A thread of the process is about to get this name from the kernel: what its role is by that, until the
 * JVM is asked. A JVM that lives for 50 ms is asked only once. */
void java_processes_guess_role(
	struct java_processes *j, struct process *p, uint32_t tid, const char *name);
/* Recording is over: those that live on are looked at for the last time. */
void java_processes_stopped(struct java_processes *j, uint64_t time);
/* Notes on what could not be read. */
void java_processes_write_notes(struct java_processes *j, uint64_t time);
/* A sentence on JVMs that could not be read; NULL: there were none. Owned. */
char *java_processes_unread(const struct java_processes *j);

#endif
