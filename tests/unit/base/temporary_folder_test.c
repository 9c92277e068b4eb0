/* SPDX-License-Identifier: MIT */
/* Folders and names for a while: what a killed process has left is swept by the next, and nothing else. */
#include "base/temporary_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/staged_file.h"
#include "check.h"

static char place[] = "/tmp/weir-temporary-XXXXXX";

static const char *in_place(const char *name)
{
	static char path[4][128];
	static unsigned next;
	char *p = path[next++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", place, name);
	return p;
}

static unsigned n_there(void)
{
	DIR *dir = opendir(place);
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	closedir(dir);
	return n - 2; /* . and .. */
}

/* Runs it in a process that is killed at its end. */
static void killed_after(void (*run)(void))
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		run();
		raise(SIGKILL);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void make_with_content(void)
{
	struct temporary_folder f;
	char path[256];

	if (temporary_folder_make(&f, place, "x-") < 0)
		_exit(1);
	snprintf(path, sizeof(path), "%s/inner", f.path);
	mkdir(path, 0700);
	strcat(path, "/file");
	close(open(path, O_CREAT | O_WRONLY, 0600));
	snprintf(path, sizeof(path), "%s/link", f.path);
	if (symlink(in_place("kept"), path) < 0)
		_exit(1);
}

static void sweeps_what_the_killed_left(void)
{
	struct temporary_folder f;

	mkdir(in_place("kept"), 0700);
	close(open(in_place("kept/file"), O_CREAT | O_WRONLY, 0600));
	killed_after(make_with_content);
	CHECK_EQ(n_there(), 2);
	CHECK_EQ(temporary_folder_make(&f, place, "y-"), 0); /* of another kind */
	CHECK_EQ(n_there(), 3);
	temporary_folder_remove(&f);
	CHECK_EQ(temporary_folder_make(&f, place, "x-"), 0);
	CHECK_EQ(n_there(), 2);
	temporary_folder_remove(&f);
	temporary_folder_remove(&f);
	CHECK_EQ(n_there(), 1);
	CHECK(access(in_place("kept/file"), F_OK) == 0); /* links are not followed */
	unlink(in_place("kept/file"));
	rmdir(in_place("kept"));
}

static void keeps_what_is_in_use(void)
{
	static const char *const others[] = {
		"x-", "x-1-abcde", "x-1-abcdefg", "x--abcdef", "x-1a-abcdef", "x-abcdef"};
	struct temporary_folder f, g;
	pid_t pid;
	int status;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		CHECK_EQ(mkdir(in_place(others[i]), 0700), 0);
	close(open(in_place("x-1-file12"), O_CREAT | O_WRONLY, 0600));
	CHECK_EQ(temporary_folder_make(&f, place, "x-"), 0);
	pid = fork();
	if (pid == 0)
		_exit(temporary_folder_make(&g, place, "x-") < 0);
	waitpid(pid, &status, 0);
	CHECK_EQ(status, 0);
	CHECK(access(f.path, F_OK) == 0);
	CHECK_EQ(temporary_folder_make(&g, place, "x-"), 0);
	CHECK(access(f.path, F_OK) == 0);
	CHECK_EQ(n_there(), 9); /* these and the others; that of the child is gone */
	temporary_folder_remove(&f);
	temporary_folder_remove(&g);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		CHECK_EQ(rmdir(in_place(others[i])), 0);
	CHECK_EQ(unlink(in_place("x-1-file12")), 0);
	CHECK_EQ(temporary_folder_make(&f, "/no/such/place", "x-"), -2); /* ENOENT */
	CHECK(!f.path);
}

/* As a writer leaves it that is killed between the two steps of a replacement. */
static void leave_partial(void)
{
	close(open(in_place("out.weir-partial-0"), O_CREAT | O_WRONLY, 0600));
}

static void sweeps_names_of_files(void)
{
	struct staged_file f, g;
	struct err err;
	int fd;

	killed_after(leave_partial);
	CHECK_EQ(staged_file_open(&f, in_place("out"), 0600, &err), 0);
	CHECK_EQ(staged_file_put(&f, in_place("out"), true, &err), 0);
	staged_file_close(&f);
	CHECK_EQ(n_there(), 1);
	/* One that is written now has its lock. */
	fd = open(in_place("out.weir-partial-0"), O_CREAT | O_WRONLY, 0600);
	flock(fd, LOCK_EX);
	CHECK_EQ(staged_file_open(&g, in_place("out"), 0600, &err), 0);
	CHECK_EQ(staged_file_put(&g, in_place("out"), true, &err), 0);
	staged_file_close(&g);
	CHECK_EQ(n_there(), 2);
	close(fd);
	unlink(in_place("out.weir-partial-0"));
	unlink(in_place("out"));
}

int main(void)
{
	static const struct test tests[] = {
		{"a folder of a killed process is swept with what is in it",
			sweeps_what_the_killed_left},
		{"a folder in use and what has another name are kept", keeps_what_is_in_use},
		{"a name of a killed writer is swept, and one in use is kept",
			sweeps_names_of_files},
	};
	int rc;

	if (!mkdtemp(place))
		return 1;
	rc = RUN_TESTS(tests);
	rmdir(place);
	return rc;
}
