/* SPDX-License-Identifier: MIT */
#include "record/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

static int check_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	return access(path, X_OK) < 0 ? errno : 0;
}

/* As execvp looks: a name with a slash is a path, others are searched for in PATH. */
static int check_command(const char *name)
{
	const char *path = getenv("PATH");
	int result = ENOENT;

	if (strchr(name, '/') || !*name)
		return *name ? check_file(name) : ENOENT;
	for (path = path ? path : "/bin:/usr/bin";; path++) {
		size_t n = strcspn(path, ":");
		char *full = mem_printf("%.*s/%s", n ? (int)n : 1, n ? path : ".", name);
		int errnum = check_file(full);

		free(full);
		if (!errnum)
			return 0;
		if (errnum == EACCES)
			result = EACCES;
		path += n;
		if (!*path)
			return result;
	}
}

static void child_main(
	struct launch *l, int go_fd, int error_fd, char *const *argv, const sigset_t *mask)
{
	int errnum;
	char byte;
	ssize_t n;

	close(l->go_fd);
	close(l->error_fd);
	do
		n = read(go_fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(127); /* abandoned */
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	errnum = errno;
	if (write(error_fd, &errnum, sizeof(errnum)) < 0)
		_exit(126);
	_exit(127);
}

int launch_prepare(struct launch *l, char *const *argv, const sigset_t *mask, struct err *err)
{
	int go[2], error[2];
	int errnum = check_command(argv[0]);

	if (errnum)
		return err_sys(err, errnum, "'%s': cannot run", argv[0]);
	if (pipe2(go, O_CLOEXEC) < 0)
		return err_sys(err, errno, "cannot make a pipe");
	if (pipe2(error, O_CLOEXEC) < 0) {
		errnum = errno;
		close(go[0]);
		close(go[1]);
		return err_sys(err, errnum, "cannot make a pipe");
	}
	*l = (struct launch){.go_fd = go[1], .error_fd = error[0]};
	l->pid = fork();
	if (l->pid == 0)
		child_main(l, go[0], error[1], argv, mask);
	errnum = errno;
	close(go[0]);
	close(error[1]);
	if (l->pid < 0) {
		close(go[1]);
		close(error[0]);
		return err_sys(err, errnum, "cannot fork");
	}
	return 0;
}

int launch_go(struct launch *l, char *const *argv, struct err *err)
{
	int errnum = 0;
	ssize_t n;

	if (write(l->go_fd, "g", 1) != 1)
		return err_sys(err, errno, "'%s': cannot be let run", argv[0]);
	do
		n = read(l->error_fd, &errnum, sizeof(errnum));
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(errnum)) {
		launch_abandon(l);
		return err_sys(err, errnum, "'%s': cannot run", argv[0]);
	}
	fd_cleanup(&l->go_fd);
	fd_cleanup(&l->error_fd);
	return 0;
}

void launch_abandon(struct launch *l)
{
	fd_cleanup(&l->go_fd); /* the child reads end of file and leaves */
	fd_cleanup(&l->error_fd);
	if (l->pid > 0)
		waitpid(l->pid, NULL, 0);
	l->pid = 0;
}
