/* SPDX-License-Identifier: MIT */
#include "process/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
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
static int find_command(const char *name, char **found)
{
	const char *path = getenv("PATH");
	int result = *name && strchr(name, '/') ? check_file(name) : ENOENT;

	if (!result)
		*found = mem_strdup(name);
	if (strchr(name, '/') || !*name)
		return result;
	for (path = path ? path : "/bin:/usr/bin";; path++) {
		size_t n = strcspn(path, ":");
		char *full = mem_printf("%.*s/%s", n ? (int)n : 1, n ? path : ".", name);
		int errnum = check_file(full);

		if (!errnum) {
			*found = full;
			return 0;
		}
		free(full);
		if (errnum == EACCES)
			result = EACCES;
		path += n;
		if (!*path)
			return result;
	}
}

int launch_find(const char *name, char **path, struct err *err)
{
	int errnum = find_command(name, path);

	return errnum ? err_sys(err, errnum, "'%s': cannot run", name) : 0;
}

static bool has_name_of(const char *text, const char *other)
{
	size_t n = strcspn(other, "=");

	return !strncmp(text, other, n) && text[n] == '=';
}

/* Ours with `extra` in place of what has the same names; the texts are not copied. */
static char **make_environment(char *const *extra)
{
	VEC(char *) all = {0};

	for (char **e = environ; e && *e; e++) {
		size_t i = 0;

		while (extra[i] && !has_name_of(*e, extra[i]))
			i++;
		if (!extra[i])
			vec_push(&all, *e);
	}
	for (size_t i = 0; extra[i]; i++)
		vec_push(&all, extra[i]);
	vec_push(&all, NULL);
	return all.v;
}

static void settle_child(const struct launch_setup *setup)
{
	if (setup->stdio && (dup2(setup->stdio[0], 0) < 0 || dup2(setup->stdio[1], 1) < 0))
		_exit(127);
	if (setup->own_group)
		setpgid(0, 0);
	if (setup->ignores_typed) {
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
	}
	sigprocmask(SIG_SETMASK, setup->mask, NULL);
}

static void child_main(
	struct launch *l, int go_fd, int error_fd, char *const *argv, const struct launch_setup *setup)
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
	settle_child(setup);
	if (l->environment)
		environ = l->environment;
	execv(l->path, argv); /* one call: whoever traces it sees no search */
	if (errno == ENOEXEC)
		execvp(argv[0], argv); /* a script without #! */
	errnum = errno;
	if (write(error_fd, &errnum, sizeof(errnum)) < 0)
		_exit(126);
	_exit(127);
}

/* What is left open. */
static void close_launch(struct launch *l)
{
	fd_cleanup(&l->go_fd); /* a child that is held reads end of file and leaves */
	fd_cleanup(&l->error_fd);
	free(l->path);
	free(l->environment);
	l->path = NULL;
	l->environment = NULL;
}

int launch_prepare(struct launch *l, char *const *argv, const struct launch_setup *setup, struct err *err)
{
	int go[2] = {-1, -1}, error[2] = {-1, -1}, errnum;
	char *path = NULL;

	if (launch_find(argv[0], &path, err) < 0)
		return err ? err->code : ERR_FAILED;
	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(error, O_CLOEXEC) < 0) {
		errnum = errno;
		free(path);
		fd_cleanup(&go[0]);
		fd_cleanup(&go[1]);
		return err_sys(err, errnum, "cannot make a pipe");
	}
	*l = (struct launch){.path = path, .go_fd = go[1], .error_fd = error[0]};
	if (setup->extra) /* now: there may be other threads, and then a child may not allocate */
		l->environment = make_environment(setup->extra);
	l->pid = fork();
	if (l->pid == 0)
		child_main(l, go[0], error[1], argv, setup);
	errnum = errno;
	close(go[0]);
	close(error[1]);
	if (l->pid < 0) {
		close_launch(l);
		return err_sys(err, errnum, "cannot fork");
	}
	return 0;
}

int launch_begin(struct launch *l, char *const *argv, struct err *err)
{
	if (write(l->go_fd, "g", 1) != 1)
		return err_sys(err, errno, "'%s': cannot be started", argv[0]);
	return 0;
}

int launch_go(struct launch *l, char *const *argv, struct err *err)
{
	int rc = launch_begin(l, argv, err);

	return rc < 0 ? rc : launch_settle(l, argv, err);
}

int launch_settle(struct launch *l, char *const *argv, struct err *err)
{
	int errnum = 0;
	ssize_t n;

	do
		n = read(l->error_fd, &errnum, sizeof(errnum));
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(errnum)) {
		launch_abandon(l);
		return err_sys(err, errnum, "'%s': cannot run", argv[0]);
	}
	close_launch(l);
	return 0;
}

void launch_abandon(struct launch *l)
{
	close_launch(l);
	if (l->pid > 0)
		waitpid(l->pid, NULL, 0);
	l->pid = 0;
}
