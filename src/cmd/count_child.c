/* SPDX-License-Identifier: MIT */
/* Files and processes of `weir count`. */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "cmd/count_link.h"
#include "cmd/record_run.h"

static bool is_this_program(const struct stat *st)
{
	struct stat self;

	return stat("/proc/self/exe", &self) == 0 && self.st_dev == st->st_dev &&
	       self.st_ino == st->st_ino;
}

char *count_find_program(const char *folders, const char *name)
{
	while (folders && *folders) {
		size_t n = strcspn(folders, ":");
		char *path = mem_printf("%.*s/%s", n ? (int)n : 1, n ? folders : ".", name);
		struct stat st;

		if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0 &&
			!is_this_program(&st))
			return path;
		free(path);
		folders += n + (folders[n] == ':');
	}
	return NULL;
}

int count_run_child(const char *file, char *const *argv)
{
	posix_spawnattr_t attributes;
	sigset_t to_default;
	struct err err;
	pid_t child;
	int status, rc;

	/* Ctrl-C is for the command; we wait for how it ends. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	sigemptyset(&to_default);
	sigaddset(&to_default, SIGINT);
	sigaddset(&to_default, SIGQUIT);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &to_default);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	rc = posix_spawnp(&child, file, NULL, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	if (rc) {
		err_sys(&err, rc, "'%s': cannot run", file);
		return command_fail(&err);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return record_pass_on(status);
}
