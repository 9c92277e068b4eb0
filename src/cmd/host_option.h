/* SPDX-License-Identifier: MIT */
/*
 * --host of record, probe and doctor: the command line is understood here, so that what is wrong with it is said at once,
 * and then runs on the other machine (remote/remote_run.h).
 */
#ifndef WEIR_CMD_HOST_OPTION_H
#define WEIR_CMD_HOST_OPTION_H

#include <stdbool.h>

#include "cmd/options.h"

struct host_arguments {
	const char *host, *ssh;
	bool keep;
};

/* Their rows; `at` is the offset of a struct host_arguments. */
#define HOST_OPTIONS(at)                                                                           \
	{0, "host", OPTION_TEXT, "HOST",                                                           \
		"do it there: [USER@]HOST by ssh, docker:NAME or kubectl:POD",                     \
		(at) + offsetof(struct host_arguments, host)},                                     \
		{0, "ssh", OPTION_TEXT, "COMMAND",                                                 \
			"with --host: run that in place of ssh (docker, kubectl)",                 \
			(at) + offsetof(struct host_arguments, ssh)},                              \
	{                                                                                          \
		0, "keep", OPTION_FLAG, NULL, "with --host: leave weir there for the next time",   \
			(at) + offsetof(struct host_arguments, keep)                               \
	}

struct host_request {
	const struct command *command;
	const void *from; /* its options, parsed */
	uint64_t given;
	const struct host_arguments *host;
	const char *without; /* long names of options that stay here */
	const char *files;   /* of those whose values are files here */
	char *const *operands;
	size_t n_operands;
	bool first_is_file; /* the first operand is a file here */
	bool reads_input;   /* what runs there reads our standard input */
	const char *output; /* where the trace goes; NULL = there is none */
	int output_fd;	    /* likewise; 0 = to the path */
};

/* 0, or the status of a wrong usage, which has been said: --ssh and --keep without --host, or what is no host. */
int host_check(const struct command *command, const struct host_arguments *a);
/* Runs it there, to its end; gives the exit status. */
int host_run(const struct host_request *request);

#endif
