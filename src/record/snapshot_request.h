/* SPDX-License-Identifier: MIT */
/*
 * `weir record --snapshot-of PID`: one weir asks another one that is recording for what it has so
 * far.
 *
 *   asks:     SIGUSR1, queued with a value that has a magic number and a number of its own; again
 *             and again, because a signal is lost when another SIGUSR1 is pending already
 *   answers:  datagrams to the abstract Unix socket of that number: "+" at once, then "=PATH" or
 *             "!SENTENCE"
 *
 * All other SIGUSR1 are for the recorded command, but for those without any value where the program
 * keeps a tree of itself: they ask as well, and nobody waits for an answer.
 */
#ifndef WEIR_RECORD_SNAPSHOT_REQUEST_H
#define WEIR_RECORD_SNAPSHOT_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

struct signalfd_siginfo;

/* --- the recorder's side --- */

/* Requests that wait for their answer. Zero-initialise it, vec_release what waits. */
struct snapshot_desk {
	VEC(uint32_t) waiting;	   /* numbers; 0 = nobody waits for the answer */
	uint32_t last_number;	   /* the last request: the same again is no other */
	uint32_t last_path_number; /* see snapshot_desk_path */
};

/* Takes the signal when it asks for a snapshot; false when it is for others. */
bool snapshot_desk_take(
	struct snapshot_desk *d, const struct signalfd_siginfo *info, bool plain_ones_ask);
/* Answers all that wait: `err` NULL: it is there, at `path`. Never blocks; who does not listen any
 * more gets nothing. */
void snapshot_desk_answer(struct snapshot_desk *d, const char *path, const struct err *err);
/* Where the next snapshot goes: OUTPUT.1, OUTPUT.2, ..., the first that is not there. Owned. */
char *snapshot_desk_path(struct snapshot_desk *d, const char *output);

/* --- the side that asks --- */

/* The recorder with this pid, or the one that records this process: started it or one of its
 * ancestors, or is attached to it. */
int snapshot_find_recorder(pid_t pid, pid_t *recorder, struct err *err);
/* The path of the snapshot (owned), when it is there. */
int snapshot_ask(pid_t recorder, char **path, struct err *err);

#endif
