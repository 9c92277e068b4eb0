/* SPDX-License-Identifier: MIT */
/*
 * Recordings that trace by ptrace(2) run in a process of their own. Two processes: the one that the user has
 * started and sees, which waits, and its child, the keeper, which traces and writes.
 *
 * A tracer that is killed while its program stands in the stop of a single step takes it along: the
 * kernel has nobody left to ask and delivers the SIGTRAP. No signal handler can help against
 * SIGKILL; so the process that gets killed (by the user, by a supervisor, with the terminal) is one
 * that traces nothing. The keeper sees the other end of its socket close, lets the program go and
 * completes the trace.
 *
 *   visible  <-- notes, progress, at last the result or why there is none --  keeper
 *
 * 1. Both are in one process group: what is typed on the terminal (Ctrl-C, Ctrl-Z) reaches both,
 *    and the command. Signals that are sent to the visible process alone are passed on to the keeper.
 * 2. The keeper has the signal mask and the dispositions that the visible process began with, since
 *    the command gets them from it; it is the command's parent.
 * 3. Only the visible process prints.
 * 4. Each is a run (run/run.h): the keeper's is that of the command, the visible one's ends with the
 *    keeper.
 */
#ifndef WEIR_CMD_KEEPER_H
#define WEIR_CMD_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cmd/record_run.h"

#define KEEPER_RESULT_MAX 1024

struct keeper {
	/* The recording, in the keeper: it ends when `fd` is readable, and fills in *result. */
	int (*record)(struct keeper *k, void *result, struct err *err);
	const void *options; /* for `record` */
	size_t result_bytes; /* at most KEEPER_RESULT_MAX; pointers in it are those of constants */
	const char *output;
	bool has_command;
	enum record_talk talk;
	const char *unit; /* of what progress counts, in the plural */

	/* To read, in the keeper. */
	int fd;
	bool has_progress; /* somebody wants to see it */
};

/* For `record`: what there is to say meanwhile. `k` is the struct keeper. */
void keeper_note(void *k, const char *sentence);
void keeper_complain(void *k, const char *sentence);
void keeper_progress(void *k, uint64_t n, double seconds);

/* False: there is no result, which has been said, and *status is weir's exit status. */
bool keeper_run(struct keeper *k, void *result, int *status);

#endif
