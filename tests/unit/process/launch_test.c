/* SPDX-License-Identifier: MIT */
/* weir-test: alone: waits for processes for a time */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "process/launch.h"

#define OUTPUT_FD 9 /* the child's commands write there: a shell redirects one digit only */

static int output = -1; /* the end that we read */

static void open_output(void)
{
	int ends[2];

	if (pipe(ends) < 0 || dup2(ends[1], OUTPUT_FD) < 0)
		abort();
	if (ends[1] != OUTPUT_FD)
		close(ends[1]);
	output = ends[0];
	fcntl(output, F_SETFD, FD_CLOEXEC);
}

/* Everything that was written until nobody can write any more. */
static const char *take_output(void)
{
	static char text[4096];
	size_t n = 0;
	ssize_t got;

	close(OUTPUT_FD);
	while ((got = read(output, text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = 0;
	close(output);
	return text;
}

static int n_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static bool has_no_child(void)
{
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

static sigset_t no_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	return set;
}

static void test_held_then_run(void)
{
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)"echo ran >&9; exit 7", NULL};
	struct launch l;
	struct err err = {0};
	sigset_t mask = no_signals();
	int status = 0, before = n_descriptors();
	struct pollfd early;

	open_output();
	CHECK_EQ(launch_prepare(&l, argv, &(struct launch_setup){.mask = &mask}, &err), 0);
	CHECK(l.pid > 0);
	early = (struct pollfd){.fd = output, .events = POLLIN};
	CHECK_EQ(poll(&early, 1, 50), 0); /* nothing ran yet */
	CHECK_EQ(waitpid(l.pid, &status, WNOHANG), 0);
	CHECK_EQ(launch_go(&l, argv, &err), 0);
	CHECK_STR(take_output(), "ran\n");
	CHECK_EQ(waitpid(l.pid, &status, 0), l.pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	CHECK_EQ(n_descriptors(), before);
	CHECK_STR(err.text, "");
}

static void test_mask(void)
{
	char *argv[] = {(char *)"sh", (char *)"-c",
		(char *)"while read -r key value; do [ \"$key\" != SigBlk: ] || echo $value; done "
			"</proc/self/status >&9",
		NULL};
	sigset_t ours, old, mask = no_signals();
	struct launch l;
	struct err err = {0};

	sigaddset(&mask, SIGUSR1); /* bit 9 */
	sigemptyset(&ours);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ours, &old);
	open_output();
	CHECK_EQ(launch_prepare(&l, argv, &(struct launch_setup){.mask = &mask}, &err), 0);
	CHECK_EQ(launch_go(&l, argv, &err), 0);
	CHECK_STR(take_output(), "0000000000000200\n");
	waitpid(l.pid, NULL, 0);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

/* The command sees no descriptor of ours but those it would have had anyway. */
static void test_descriptors(void)
{
	char *argv[] = {(char *)"sh", (char *)"-c",
		(char *)"for f in /proc/$$/fd/*; do echo ${f##*/}; done >&9", NULL};
	sigset_t mask = no_signals();
	struct launch l;
	struct err err = {0};
	char expected[4096] = "";
	char seen[4096];
	pid_t pid;

	/* what a plain fork and exec gives */
	open_output();
	pid = fork();
	if (pid == 0) {
		execvp(argv[0], argv);
		_exit(1);
	}
	snprintf(expected, sizeof(expected), "%s", take_output());
	waitpid(pid, NULL, 0);
	open_output();
	CHECK_EQ(launch_prepare(&l, argv, &(struct launch_setup){.mask = &mask}, &err), 0);
	CHECK_EQ(launch_go(&l, argv, &err), 0);
	snprintf(seen, sizeof(seen), "%s", take_output());
	waitpid(l.pid, NULL, 0);
	CHECK_STR(seen, expected);
	CHECK(strstr(expected, "9\n"));
}

static void refused(const char *name, int code, const char *sentence)
{
	char *argv[] = {(char *)(uintptr_t)name, NULL};
	sigset_t mask = no_signals();
	struct launch l;
	struct err err = {0};
	int before = n_descriptors();

	CHECK_EQ(launch_prepare(&l, argv, &(struct launch_setup){.mask = &mask}, &err), code);
	CHECK_STR(err.text, sentence);
	CHECK(has_no_child());
	CHECK_EQ(n_descriptors(), before);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(text, f) < 0 || fclose(f) || chmod(path, mode) < 0)
		abort();
}

static void test_cannot_be_found(void)
{
	write_file("plain_file", "text", 0644);
	refused("no-such-program-here", ERR_NOT_FOUND,
		"'no-such-program-here': cannot run: No such file or directory");
	refused("./nothing", ERR_NOT_FOUND, "'./nothing': cannot run: No such file or directory");
	refused("", ERR_NOT_FOUND, "'': cannot run: No such file or directory");
	refused("/", ERR_FAILED, "'/': cannot run: Is a directory");
	refused("./plain_file", ERR_PERMISSION, "'./plain_file': cannot run: Permission denied");
	remove("plain_file");
}

static void test_path_search(void)
{
	char *argv[] = {(char *)"only-here", NULL};
	const char *path = getenv("PATH");
	char *old = strdup(path ? path : "");
	sigset_t mask = no_signals();
	struct launch l;
	struct err err = {0};
	int status = -1;

	write_file("only-here", "#!/bin/sh\nexit 5\n", 0755);
	refused("only-here", ERR_NOT_FOUND, "'only-here': cannot run: No such file or directory");
	setenv("PATH", "/nowhere:", 1); /* an empty part is the current folder */
	CHECK_EQ(launch_prepare(&l, argv, &(struct launch_setup){.mask = &mask}, &err), 0);
	CHECK_EQ(launch_go(&l, argv, &err), 0);
	waitpid(l.pid, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
	chmod("only-here", 0644);
	refused("only-here", ERR_PERMISSION, "'only-here': cannot run: Permission denied");
	setenv("PATH", old, 1);
	free(old);
	remove("only-here");
}

/* It looks executable, and only exec finds out that it is not. */
static void test_exec_fails(void)
{
	char *argv[] = {(char *)"./script", NULL};
	sigset_t mask = no_signals();
	struct launch l;
	struct err err = {0};
	int before = n_descriptors();

	write_file("script", "#!/no/such/interpreter\n", 0755);
	CHECK_EQ(launch_prepare(&l, argv, &(struct launch_setup){.mask = &mask}, &err), 0);
	CHECK_EQ(launch_go(&l, argv, &err), ERR_NOT_FOUND);
	CHECK_STR(err.text, "'./script': cannot run: No such file or directory");
	CHECK(has_no_child());
	CHECK_EQ(n_descriptors(), before);
	launch_abandon(&l); /* harmless */
	remove("script");
}

static void test_abandon(void)
{
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)"echo ran >&9", NULL};
	sigset_t mask = no_signals();
	struct launch l;
	struct err err = {0};
	int before = n_descriptors();

	open_output();
	CHECK_EQ(launch_prepare(&l, argv, &(struct launch_setup){.mask = &mask}, &err), 0);
	launch_abandon(&l);
	CHECK(has_no_child());
	CHECK_STR(take_output(), "");
	CHECK_EQ(n_descriptors(), before);
	launch_abandon(&l);
	CHECK_EQ(l.pid, 0);
}

/* Killed while it was held: said, and not waited for without end. */
static void test_killed_while_held(void)
{
	char *argv[] = {(char *)"true", NULL};
	sigset_t mask = no_signals();
	struct launch l;
	struct err err = {0};
	siginfo_t info;
	void (*old)(int) = signal(SIGPIPE, SIG_IGN);

	CHECK_EQ(launch_prepare(&l, argv, &(struct launch_setup){.mask = &mask}, &err), 0);
	kill(l.pid, SIGKILL);
	waitid(P_PID, (id_t)l.pid, &info, WEXITED | WNOWAIT);
	CHECK(launch_go(&l, argv, &err) < 0);
	CHECK(!strncmp(err.text, "'true': ", 8));
	launch_abandon(&l);
	CHECK(has_no_child());
	signal(SIGPIPE, old);
}

int main(void)
{
	static const struct test tests[] = {
		{"a command is held until it is let run", test_held_then_run},
		{"a command gets the signal mask it is given, not ours", test_mask},
		{"a command gets no descriptors of ours", test_descriptors},
		{"a command that is not there fails before anything is forked",
			test_cannot_be_found},
		{"a command is searched for as a shell does", test_path_search},
		{"an exec that fails is told and leaves nothing behind", test_exec_fails},
		{"an abandoned command never runs and leaves no zombie", test_abandon},
		{"a command that was killed while held is told", test_killed_while_held},
	};
	char folder[] = "/tmp/weir-launch-XXXXXX";
	int rc;

	if (!mkdtemp(folder) || chdir(folder) < 0)
		abort();
	rc = RUN_TESTS(tests);
	if (chdir("/") == 0)
		rmdir(folder);
	return rc;
}
