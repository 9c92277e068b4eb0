/* SPDX-License-Identifier: MIT */
/* The processes that -p names. */
#ifndef WEIR_CMD_PID_LIST_H
#define WEIR_CMD_PID_LIST_H

#include <stddef.h>
#include <sys/types.h>

#include "cmd/options.h"

#define PID_LIST_MAX 1024

/* A comma list; a process that is named twice is in it once. Wrong usage is said here, and the
 * result is then the exit status. */
int pid_list_parse(
	const struct command *command, const char *list, pid_t pids[PID_LIST_MAX], size_t *n);

#endif
