/* SPDX-License-Identifier: MIT */
#include "process/own_file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "process/proc.h"

char *own_file_find(const char *built, const char *installed)
{
	const char *const places[] = {built, installed};
	char exe[PATH_MAX];
	char *slash;

	proc_exe(0, exe, sizeof(exe));
	slash = strrchr(exe, '/');
	if (slash)
		*slash = 0;
	for (size_t i = 0; i < 2; i++) {
		char *path = mem_printf("%s/%s", exe, places[i]);

		if (access(path, F_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}
