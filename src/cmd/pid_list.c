/* SPDX-License-Identifier: MIT */
#include "cmd/pid_list.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static bool has_pid(const pid_t *pids, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

int pid_list_parse(
	const struct command *command, const char *list, pid_t pids[PID_LIST_MAX], size_t *n)
{
	const char *p = list;

	*n = 0;
	while (*p) {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(p, &end, 10);
		if (errno || end == p || pid <= 0 || pid > INT32_MAX || (*end && *end != ','))
			return options_usage_error(
				command, "-p: '%s' is not a list of process ids", list);
		if (pid == getpid())
			return options_usage_error(command, "-p: %ld is weir itself", pid);
		if (*n == PID_LIST_MAX)
			return options_usage_error(
				command, "-p: more than %d processes", PID_LIST_MAX);
		if (!has_pid(pids, *n, (pid_t)pid))
			pids[(*n)++] = (pid_t)pid;
		p = *end ? end + 1 : end;
	}
	return *n ? 0 : options_usage_error(command, "-p: no process named");
}
