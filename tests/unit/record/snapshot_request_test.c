/* SPDX-License-Identifier: MIT */
/* One process asks another for a snapshot; a child of the test stands for the recorder. */
#include "record/snapshot_request.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Answers requests until it is killed. Reads a line from the pipe when it is ready. */
static pid_t start_recorder(bool fails)
{
	int ready[2];
	char c;
	pid_t pid;

	CHECK_EQ(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct err err = {.code = ERR_FAILED, .text = "the disk is full"};
		struct signalfd_siginfo info;
		struct snapshot_desk desk = {0};
		sigset_t mask;
		int fd;

		sigemptyset(&mask);
		sigaddset(&mask, SIGUSR1);
		sigprocmask(SIG_BLOCK, &mask, NULL);
		fd = signalfd(-1, &mask, 0);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		while (read(fd, &info, sizeof(info)) == sizeof(info))
			if (snapshot_desk_take(&desk, &info, false))
				snapshot_desk_answer(&desk, "/a/trace.weir.1", fails ? &err : NULL);
		_exit(0);
	}
	close(ready[1]);
	CHECK_EQ(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static void end_recorder(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_answer(void)
{
	pid_t pid = start_recorder(false);
	struct err err = {0};

	for (int i = 0; i < 3; i++) {
		char *path = NULL;

		CHECK_EQ(snapshot_ask(pid, &path, &err), 0);
		CHECK_STR(path, "/a/trace.weir.1");
		free(path);
		kill(pid, SIGUSR1); /* not a request: nothing comes of it */
	}
	end_recorder(pid);
}

static void test_refusal(void)
{
	pid_t pid = start_recorder(true);
	struct err err = {0};
	char *path = NULL;

	CHECK_EQ(snapshot_ask(pid, &path, &err), ERR_FAILED);
	CHECK(strstr(err.text, "the disk is full") != NULL);
	CHECK(!path);
	end_recorder(pid);
}

static void test_ended(void)
{
	pid_t pid = fork();
	struct err err = {0};
	char *path = NULL;

	if (pid == 0) {
		sigset_t mask;

		sigfillset(&mask);
		sigprocmask(SIG_BLOCK, &mask, NULL);
		usleep(300000);
		_exit(0);
	}
	signal(SIGCHLD, SIG_IGN); /* so that nothing is left of it */
	CHECK(snapshot_ask(pid, &path, &err) < 0);
	signal(SIGCHLD, SIG_DFL);
	CHECK(!path);
}

static void test_which_signals(void)
{
	struct signalfd_siginfo info = {.ssi_signo = SIGUSR1, .ssi_code = SI_USER};
	struct snapshot_desk desk = {0};

	CHECK(!snapshot_desk_take(&desk, &info, false));
	CHECK_EQ(desk.waiting.n, 0);
	CHECK(snapshot_desk_take(&desk, &info, true));
	CHECK_EQ(desk.waiting.n, 1);
	snapshot_desk_answer(&desk, "/nobody/listens", NULL);
	CHECK_EQ(desk.waiting.n, 0);
	info.ssi_code = SI_QUEUE; /* the program's own, with some value */
	info.ssi_ptr = 5;
	CHECK(!snapshot_desk_take(&desk, &info, true));
	info.ssi_signo = SIGUSR2;
	info.ssi_code = SI_USER;
	CHECK(!snapshot_desk_take(&desk, &info, true));
	vec_release(&desk.waiting);
}

static void test_same_again(void)
{
	struct signalfd_siginfo info = {.ssi_signo = SIGUSR1,
		.ssi_code = SI_QUEUE,
		.ssi_ptr = (uint64_t)0x77736e61 << 32 | 4711};
	struct snapshot_desk desk = {0};

	for (int i = 0; i < 3; i++)
		CHECK(snapshot_desk_take(&desk, &info, false));
	CHECK_EQ(desk.waiting.n, 1);
	info.ssi_ptr++;
	CHECK(snapshot_desk_take(&desk, &info, false));
	CHECK_EQ(desk.waiting.n, 2);
	vec_release(&desk.waiting);
}

static void test_no_recorder(void)
{
	struct err err = {0};
	pid_t pid, found = 0;

	CHECK_EQ(snapshot_find_recorder(0x7ffffff0, &found, &err), ERR_NOT_FOUND);
	CHECK(strstr(err.text, "no such process") != NULL);
	/* A child of ours that blocks the signal is no weir. */
	pid = start_recorder(false);
	CHECK_EQ(snapshot_find_recorder(pid, &found, &err), ERR_NOT_FOUND);
	CHECK_EQ(found, 0);
	end_recorder(pid);
}

static void test_paths(void)
{
	char output[64], first[80];
	struct snapshot_desk desk = {0};
	char *path;

	snprintf(output, sizeof(output), "/tmp/snapshot_request_test.%d", getpid());
	snprintf(first, sizeof(first), "%s.1", output);
	close(open(first, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)); /* of an earlier recording */
	path = snapshot_desk_path(&desk, output);
	CHECK(!strncmp(path, output, strlen(output)) && !strcmp(path + strlen(output), ".2"));
	free(path);
	unlink(first);
	path = snapshot_desk_path(&desk, output);
	CHECK(!strcmp(path + strlen(output), ".3"));
	free(path);
}

int main(void)
{
	static const struct test tests[] = {
		{"who asks is told the path", test_answer},
		{"who asks is told why there is none", test_refusal},
		{"who asks a process that ends meanwhile is not left waiting", test_ended},
		{"only requests are taken for requests", test_which_signals},
		{"a request that is repeated is one request", test_same_again},
		{"a process that is no recorder is left in peace", test_no_recorder},
		{"a snapshot replaces no older file", test_paths},
	};

	return RUN_TESTS(tests);
}
