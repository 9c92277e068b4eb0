/* SPDX-License-Identifier: MIT */
/*
 * Starting the command: forked at once, held before its exec until the events are attached, and
 * left as it would have been without us (signal mask, limits, descriptors, environment).
 */
#ifndef WEIR_PROCESS_LAUNCH_H
#define WEIR_PROCESS_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct launch {
	pid_t pid;
	char *path;	    /* what is run, owned */
	char **environment; /* of the command, owned; NULL = ours */
	int go_fd;	    /* write one byte to let it exec */
	int error_fd;	    /* closes at exec, or carries errno */
};

/* The file that execvp would run, as far as PATH and permissions tell; owned by the caller. Fails
 * with a sentence when there is none. */
int launch_find(const char *name, char **path, struct err *err);

/* What the child is given in place of what we have. */
struct launch_setup {
	const sigset_t *mask; /* of signals */
	char *const *extra;   /* NAME=VALUE texts up to a NULL, in place of what has the same names; NULL = none */
	const int *stdio;     /* its standard input and output; NULL = ours */
	bool ignores_typed;   /* SIGINT and SIGQUIT do not end it: its parent tells it when to end */
	bool own_group;	      /* of processes: what is typed does not reach it */
};

/* Fails when `argv[0]` cannot be found or is not executable, before anything is forked. */
int launch_prepare(struct launch *l, char *const *argv, const struct launch_setup *setup, struct err *err);
/* Lets the command run; fails with a sentence when exec does. */
int launch_go(struct launch *l, char *const *argv, struct err *err);
/* The same in two parts, for its tracer, which has to look at what stops it meanwhile: the first one does not wait, the
 * second one waits until it has made its exec, or has ended. */
int launch_begin(struct launch *l, char *const *argv, struct err *err);
int launch_settle(struct launch *l, char *const *argv, struct err *err);
/* Gives up a prepared command, or closes what is left open. */
void launch_abandon(struct launch *l);

#endif
