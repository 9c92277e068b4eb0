/* SPDX-License-Identifier: MIT */
/*
 * The near side of a connection: starts the command that leads to the other machine (ssh), puts the agent there, hands it
 * a command line of weir, and passes on what comes and goes until it has ended there and removed itself.
 *
 * 1. Signals to us are passed on; the third one ends the waiting, and so does the first one before the agent runs.
 * 2. No more is read from the connection while our standard output or error take nothing.
 * 3. What breaks before the agent runs is a failure; what breaks later is a cut, and what came until then is whole.
 */
#ifndef WEIR_REMOTE_REMOTE_RUN_H
#define WEIR_REMOTE_REMOTE_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/span.h"
#include "remote/remote_host.h"

struct remote_argument {
	const char *text; /* of the command line; with a file, what stands in front of its path */
	const char *file_name; /* NULL = there is no file; its last part is the file's name there */
	struct span file;
};

struct remote_options {
	struct remote_host host;
	char *const *program; /* words in place of `ssh`; n_program may be 0 */
	size_t n_program;
	bool keep;				 /* the agent stays there for the next time */
	const struct remote_argument *arguments; /* of weir there, from its command's name on */
	size_t n_arguments;
	int input_fd; /* what the command there reads; -1 = nothing */
	int output_fd, error_fd;

	/* Bytes of the trace; a failure ends the run. */
	int (*trace)(void *ctx, struct span bytes, struct err *err);
	/* A line that weir says there, without its end. */
	void (*say)(void *ctx, const char *line);
	void *ctx;
};

struct remote_result {
	int wait_status; /* of weir there, as from waitpid, unless it is cut */
	struct err cut;	 /* why the end did not arrive; code 0: it did */
	struct err left; /* whether the agent is gone is not known; code 0: it is */
};

/* Negative when nothing was run there. */
int remote_run(const struct remote_options *options, struct remote_result *result, struct err *err);

#endif
