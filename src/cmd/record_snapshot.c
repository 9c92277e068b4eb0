/* SPDX-License-Identifier: MIT */
#include "cmd/record_snapshot.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/options.h"
#include "record/snapshot_request.h"

int record_snapshot(const struct command *command, const char *pid)
{
	char *end, *path = NULL;
	pid_t recorder;
	struct err err;
	long number;

	errno = 0;
	number = strtol(pid, &end, 10);
	if (errno || end == pid || *end || number <= 0 || number > INT32_MAX)
		return options_usage_error(command, "--snapshot-of: '%s' is not a process id", pid);
	if (snapshot_find_recorder((pid_t)number, &recorder, &err) < 0 ||
		snapshot_ask(recorder, &path, &err) < 0)
		return command_fail(&err);
	puts(path);
	free(path);
	return STATUS_DONE;
}
