/* SPDX-License-Identifier: MIT */
/*
 * The agent: the far side of a connection. It starts weir's command there as a child in a process group of its own, sends
 * on what that reads and writes, and ends it when the near side says so or is not heard any more.
 *
 * 1. It always reads what comes, so that signals and the end of the connection arrive; how much standard input may
 *    come is what it has granted (PARCEL_TAKEN).
 * 2. It reads no more from the child while the near side does not take what it has.
 * 3. What the child wrote before it ended is sent before its status.
 */
#ifndef WEIR_REMOTE_REMOTE_AGENT_H
#define WEIR_REMOTE_REMOTE_AGENT_H

#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

#define AGENT_N_KEPT 7

/* Descriptors of the child; all close at exec. */
struct agent_child {
	int input, output, error, trace, sentences;
	int kept[AGENT_N_KEPT]; /* the agent's own, which the child closes: its standard input would never end */
};

struct agent {
	int in_fd, out_fd; /* the connection */
	/* Forks the command, which leads a process group of its own; argv ends with a NULL. Negative with a sentence when
	 * it cannot. */
	int (*start)(void *ctx, int argc, char **argv, const struct agent_child *child, pid_t *pid,
		struct err *err);
	void *ctx;
};

/* 0 when the command ended and all was sent; negative when the connection was lost, or with a sentence why nothing was
 * started. */
int agent_serve(const struct agent *options, struct err *err);

#endif
