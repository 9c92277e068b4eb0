/* SPDX-License-Identifier: MIT */
/* Programs by name, and what really runs when a command is a script. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "probe/points/find_file.h"
#include "process/launch.h"

#define INTERPRETERS_MAX  5   /* as many as the kernel follows */
#define SHEBANG_BYTES_MAX 256 /* of the kernel */

const char *program_find(const char *name, struct arena *arena)
{
	char *path;
	const char *kept;

	if (launch_find(name, &path, NULL) < 0)
		return NULL;
	kept = arena_strdup(arena, path);
	free(path);
	return kept;
}

/* "#! /usr/bin/env python3": the interpreter, looked up when that is env. NULL when it is no
 * script. */
static const char *interpreter_of(const char *path, struct arena *arena)
{
	char line[SHEBANG_BYTES_MAX + 1] = "";
	FD_AUTO fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? 0 : read(fd, line, SHEBANG_BYTES_MAX);
	char *word, *argument, *save = NULL;

	if (n < 3 || line[0] != '#' || line[1] != '!')
		return NULL;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	word = strtok_r(line + 2, " \t", &save);
	argument = strtok_r(NULL, " \t", &save);
	if (!word)
		return NULL;
	if (strcmp(path_base_name(word), "env") == 0 && argument) {
		if (strcmp(argument, "-S") == 0)
			argument = strtok_r(NULL, " \t", &save);
		return argument ? program_find(argument, arena) : NULL;
	}
	return arena_strdup(arena, word);
}

const char *program_of_command(const char *command, struct arena *arena)
{
	const char *path = program_find(command, arena);

	for (int i = 0; path && i < INTERPRETERS_MAX; i++) {
		const char *interpreter = interpreter_of(path, arena);

		if (!interpreter)
			break;
		path = interpreter;
	}
	return path;
}
