/* SPDX-License-Identifier: MIT */
/* Runs a recording for a command line: notes and progress on stderr, the exit status. */
#ifndef WEIR_CMD_RECORD_RUN_H
#define WEIR_CMD_RECORD_RUN_H

#include "record/recorder.h"

enum record_talk { RECORD_QUIET, RECORD_NORMAL, RECORD_VERBOSE };

/* `after` (may be NULL) is called with the trace's path once the trace is complete, also when the
 * command goes on running. Returns weir's exit status; a command that died of a signal makes weir
 * die of the same one. */
int record_run(const struct recorder_options *options, enum record_talk talk,
	void (*after)(const char *path));

/* Ends as the command ended: returns the same status, or dies of the same signal, without a second
 * core file. */
int record_pass_on(int wait_status);
/* The exit status of a recording: the command's (`wait_status` NULL: there is none), whatever there is to
 * say of what was asked for and is not there; but not when a trace could not be written. */
int record_status(const int *wait_status, bool is_short, bool has_losses, bool has_failed);

/* The summary report on stderr. */
void record_print_summary(const char *path);

/* In the child of an agent: the trace goes to `fd`, which closes at exec, wherever -o says that it goes. */
void record_expect_agent(int fd);

#endif
