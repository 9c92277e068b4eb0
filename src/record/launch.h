/* SPDX-License-Identifier: MIT */
/*
 * Starting the command: forked at once, held before its exec until the events are attached, and
 * left as it would have been without us (signal mask, limits, descriptors, environment).
 */
#ifndef WEIR_RECORD_LAUNCH_H
#define WEIR_RECORD_LAUNCH_H

#include <signal.h>
#include <sys/types.h>

#include "base/err.h"

struct launch {
	pid_t pid;
	int go_fd;    /* write one byte to let it exec */
	int error_fd; /* closes at exec, or carries errno */
};

/* Fails when `argv[0]` cannot be found or is not executable, before anything is forked. The child
 * execs with the signal mask `mask`. */
int launch_prepare(struct launch *l, char *const *argv, const sigset_t *mask, struct err *err);
/* Lets the command run; fails with a sentence when exec does. */
int launch_go(struct launch *l, char *const *argv, struct err *err);
/* Gives up a prepared command, or closes what is left open. */
void launch_abandon(struct launch *l);

#endif
