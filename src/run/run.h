/* SPDX-License-Identifier: MIT */
/*
 * One life of a run, the same for all that measure: the command is started and held, or processes
 * are watched; the work (sampling, stepping, probing) gets ready; the command is let go; then there
 * is one loop, until the command or the processes have ended, the time is up, a signal comes or the
 * work has enough; the work ends; and a command that goes on is waited for.
 *
 *   prepare -> fork -> start -> let go -> (wait, work)* or drive -> finish -> wait for the command
 *
 * 1. Signals are blocked and read from a descriptor: those that are ignored would be so in the command.
 * 2. What is sent to us by kill is passed on to the command; what is typed on the terminal has
 *    reached it already. SIGUSR1 and SIGUSR2 are passed on and end nothing.
 * 3. The same signal at once again is an echo: timeout(1) sends it to its child and to the group.
 * 4. A first signal ends the run, a second one the waiting for the command as well. Who ended the run
 *    by a signal to us does not want to wait for a command that ignores it.
 */
#ifndef WEIR_RUN_RUN_H
#define WEIR_RUN_RUN_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"
#include "process/launch.h"

#define RUN_FDS_MAX	4
#define RUN_SETTLED_MAX 5

/* What is done in a run. Functions may be NULL where it is said. */
struct run_work {
	/* Before the fork. The command gets *environment in place of what it has under those names
	 * (NAME=VALUE texts up to a NULL). NULL: nothing is to be done. */
	int (*prepare)(void *ctx, char *const **environment, struct err *err);
	/* The command is held before its exec: all that has to be there before it runs. May be NULL. */
	int (*start)(void *ctx, struct err *err);
	/* The command was let go, and all has worked so far. May be NULL. */
	void (*started)(void *ctx);
	/* Up to RUN_FDS_MAX descriptors that are readable when there is work (they are -1 before the
	 * call); returns for how many milliseconds to wait at most, -1 = for them alone. */
	int (*wait)(void *ctx, int *fds);
	/* After each waiting. False: the run is over. NULL: there is nothing to do. */
	bool (*work)(void *ctx);
	/* In place of the loop, and of `wait`: lets the command go, waits in its own way, and asks
	 * run_is_over() often. */
	int (*drive)(void *ctx, struct err *err);
	/* A signal has come. True: it was for the work, and means nothing to the run. May be NULL. */
	bool (*take_signal)(void *ctx, const struct signalfd_siginfo *info);
	/* The run is over, `rc` 0, or it could not begin: completes what was measured, or drops it. */
	void (*finish)(void *ctx, int rc);
	/* All is complete, and the command goes on. May be NULL. */
	void (*goes_on)(void *ctx);
};

struct run {
	/* From the caller. */
	char *const *command; /* NULL-terminated; NULL = none */
	const pid_t *pids;    /* without a command, the run ends with the last of them; none: for ever */
	size_t n_pids;
	double duration_s;    /* 0 = until the end */
	int end_signal;	      /* for a command that outlives the run, in place of what ended us; 0 = none */
	bool dies_of_second;  /* a second SIGINT or SIGTERM ends us at once */
	struct launch_setup setup; /* of the command; its mask and environment are set here */
	int parent_fd;	      /* readable when nobody waits for us any more; -1 = none */
	const struct run_work *work;
	void *ctx;

	/* To read. */
	struct launch child; /* its pid is 0 when it has ended */
	bool has_status;     /* of the command */
	int wait_status;     /* as from waitpid */
	struct rusage usage; /* with a status, when it was not reaped by others */
	uint64_t began_ns;
	bool is_over; /* anybody may set it */

	/* Its own. */
	int signal_fd;
	sigset_t old_mask;
	struct sigaction found[RUN_SETTLED_MAX];
	bool is_settled;     /* `found` is filled in */
	VEC(struct pollfd) fds; /* of the work, signals, parent, then the watched processes */
	bool is_interrupted; /* by a signal */
	bool is_impatient;   /* a second one came */
	bool is_orphan;
	bool was_killed; /* the last signal was sent, not typed */
	int last_signal;
	uint64_t last_signal_ns;
};

/* From the start to the end. Negative when it could not begin, or `drive` failed. */
int run_live(struct run *r, struct err *err);

/* For work that drives: looks around when some time has passed, does the `work`, and tells whether the
 * run is over. Cheap, and calls that block are interrupted now and then, so that they can ask. */
bool run_is_over(struct run *r);
/* The command was reaped by somebody else. */
void run_command_ended(struct run *r, int wait_status);
/* Our parent sends its signals to the process group: those that come from it have reached the command already. */
void run_expect_group_signals(void);
/* In a forked child of ours that is neither the command nor part of the run: signals as they were
 * before it. */
void run_leave(const struct run *r);

#endif
