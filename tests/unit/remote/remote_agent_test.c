/* SPDX-License-Identifier: MIT */
/* The agent over a pair of sockets, with small children in place of weir. */
#include "remote/remote_agent.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "remote/parcel.h"

static pid_t served;
static struct parcels in;
static int near = -1;

/* The argument is a line for sh; descriptors 8 and 9 are the trace and what weir says. */
static int start(
	void *ctx, int argc, char **argv, const struct agent_child *c, pid_t *pid, struct err *err)
{
	enum { N_ENDS = 5 };
	int from[N_ENDS] = {c->input, c->output, c->error, c->trace, c->sentences};
	static const int to[N_ENDS] = {0, 1, 2, 8, 9};

	(void)ctx, (void)err;
	*pid = fork();
	if (*pid)
		return 0;
	setpgid(0, 0);
	for (int i = 0; i < N_ENDS; i++) /* out of the way of each other */
		from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 20);
	for (int i = 0; i < N_ENDS; i++)
		dup2(from[i], to[i]);
	execv("/bin/sh", (char *[]){(char *)"sh", (char *)"-c", argv[0],
				 argc > 1 ? argv[1] : (char *)"none", NULL});
	_exit(127);
}

static void send_parcel(enum parcel_kind kind, const void *bytes, size_t n)
{
	struct buf b = {0};

	parcel_put(&b, kind, (struct span){bytes, n});
	if (send(near, b.p, b.n, MSG_NOSIGNAL) != (ssize_t)b.n)
		abort();
	buf_release(&b);
}

static void begin(const char *line, bool has_input)
{
	uint8_t flag = has_input;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		abort();
	near = ends[1];
	fflush(stdout);
	served = fork();
	if (!served) {
		struct agent agent = {.in_fd = ends[0], .out_fd = ends[0], .start = start};
		struct err err;

		close(near);
		_exit(agent_serve(&agent, &err) < 0 ? 1 : 0);
	}
	close(ends[0]);
	send_parcel(PARCEL_ARGUMENT, line, strlen(line));
	if (!strncmp(line, "cat \"$0\"", 8))
		send_parcel(PARCEL_FILE, "\0a file\0its\nbytes", 17);
	send_parcel(PARCEL_START, &flag, 1);
}

/* All contents of one kind until the end, of which *status is told; -1 = it did not come. */
static void take_all(enum parcel_kind kind, struct buf *to, int *status)
{
	uint8_t bytes[4096];
	struct parcel p;
	struct err err;
	ssize_t n;

	*status = -1;
	while (*status == -1 && (n = read(near, bytes, sizeof(bytes))) > 0) {
		parcels_add(&in, (struct span){bytes, (size_t)n});
		while (parcels_next(&in, &p, &err) > 0) {
			if (p.kind == kind)
				buf_put(to, p.content.p, p.content.n);
			if (p.kind == PARCEL_END)
				*status = (int)parcel_number(&p);
		}
	}
}

/* Gives the exit status of the agent. */
static int end(void)
{
	int status;

	close(near);
	parcels_release(&in);
	in = (struct parcels){0};
	waitpid(served, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_kind(enum parcel_kind kind, const char *expected)
{
	struct buf got = {0};
	int status;

	begin("echo out; echo err >&2; echo trace >&8; echo said >&9; exit 3", false);
	take_all(kind, &got, &status);
	CHECK_STR(buf_text(&got), expected);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	CHECK_EQ(end(), 0);
	buf_release(&got);
}

static void four_channels(void)
{
	check_kind(PARCEL_STDOUT, "out\n");
	check_kind(PARCEL_STDERR, "err\n");
	check_kind(PARCEL_TRACE, "trace\n");
	check_kind(PARCEL_SENTENCES, "said\n");
}

static void input_and_its_end(void)
{
	struct buf got = {0};
	int status;

	begin("cat; echo end", true);
	send_parcel(PARCEL_STDIN, "some", 4);
	send_parcel(PARCEL_STDIN, "", 0);
	take_all(PARCEL_STDOUT, &got, &status);
	CHECK_STR(buf_text(&got), "someend\n");
	CHECK_EQ(end(), 0);
	buf_release(&got);
}

static void more_input_than_granted(void)
{
	static const uint8_t much[PARCEL_STDIN_ROOM + 1];
	struct buf got = {0};
	int status;

	begin("exec sleep 60", true);
	send_parcel(PARCEL_STDIN, much, sizeof(much));
	take_all(PARCEL_STDOUT, &got, &status);
	CHECK_EQ(status, -1);
	CHECK_EQ(end(), 1);
	buf_release(&got);
}

static void a_file(void)
{
	struct buf got = {0};
	int status;

	begin("cat \"$0\"; echo \" ${0##*/}\"", false);
	take_all(PARCEL_STDOUT, &got, &status);
	CHECK_STR(buf_text(&got), "its\nbytes a file\n");
	CHECK_EQ(end(), 0);
	buf_release(&got);
}

static void signals_reach_the_group(void)
{
	struct buf got = {0};
	int status;

	begin("sleep 60; exit 1", false);
	usleep(100000);
	send_parcel(PARCEL_SIGNAL, "\017", 1);
	take_all(PARCEL_STDOUT, &got, &status);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	CHECK_EQ(end(), 0);
	buf_release(&got);
}

static void a_lost_connection_ends_it(void)
{
	begin("exec sleep 60", false);
	usleep(100000);
	CHECK_EQ(end(), 1);
}

static void wrong_parcels(void)
{
	struct buf got = {0};
	int status;

	begin("exec sleep 60", false);
	send_parcel(PARCEL_TRACE, "x", 1);
	take_all(PARCEL_STDOUT, &got, &status);
	CHECK_EQ(status, -1);
	CHECK_EQ(end(), 1);
	begin("exec sleep 60", false);
	send_parcel(PARCEL_ARGUMENT, "late", 4);
	take_all(PARCEL_STDOUT, &got, &status);
	CHECK_EQ(status, -1);
	CHECK_EQ(end(), 1);
	buf_release(&got);
}

static const struct test tests[] = {
	{"output, error, trace and sentences of a child come apart, and its status", four_channels},
	{"standard input arrives, and its end", input_and_its_end},
	{"more of it than was granted ends the connection", more_input_than_granted},
	{"a file of an argument is there under its name", a_file},
	{"signals reach all that the child has started", signals_reach_the_group},
	{"a lost connection ends the child", a_lost_connection_ends_it},
	{"so do parcels that nobody sends", wrong_parcels},
};

int main(void)
{
	return RUN_TESTS(tests);
}
