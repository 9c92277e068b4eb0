/* SPDX-License-Identifier: MIT */
/* weir called by the name of the agent: the far side of --host (remote/remote_agent.h). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/path_name.h"
#include "cmd/commands.h"
#include "cmd/record_run.h"
#include "remote/remote_agent.h"
#include "remote/agent_files.h"
#include "run/run.h"

bool is_agent_name(const char *path)
{
	return !strcmp(path_base_name(path), AGENT_PROGRAM);
}

static int run_command(int argc, char **argv)
{
	const struct command *command = argc ? command_find(argv[0]) : NULL;
	int status;

	if (!command) {
		fputs("weir: no command came\n", stderr);
		return STATUS_USAGE;
	}
	status = command->run(command, argc, argv);
	if (fflush(stdout) && status == STATUS_DONE)
		status = STATUS_FAILED;
	return status;
}

/* What weir itself says goes its own way, so that it is told from what the command writes to standard error. */
static void say_apart(int fd)
{
	FILE *sentences = fdopen(fd, "w");

	if (!sentences)
		return;
	setvbuf(sentences, NULL, _IOLBF, 0);
	stderr = sentences;
}

static __attribute__((noreturn)) void child_main(int argc, char **argv, const struct agent_child *c)
{
	for (size_t i = 0; i < AGENT_N_KEPT; i++)
		close(c->kept[i]);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGHUP); /* a killed agent leaves nobody behind */
	signal(SIGPIPE, SIG_DFL);
	if (dup2(c->input, STDIN_FILENO) < 0 || dup2(c->output, STDOUT_FILENO) < 0 ||
		dup2(c->error, STDERR_FILENO) < 0)
		_exit(STATUS_FAILED);
	say_apart(c->sentences);
	record_expect_agent(c->trace);
	run_expect_group_signals();
	exit(run_command(argc, argv));
}

static int start(
	void *ctx, int argc, char **argv, const struct agent_child *c, pid_t *pid, struct err *err)
{
	(void)ctx;
	*pid = fork();
	if (*pid < 0)
		return err_sys(err, errno, "cannot fork");
	if (!*pid)
		child_main(argc, argv, c);
	setpgid(*pid, *pid); /* whoever comes first */
	return 0;
}

/* Nothing else may come between the parcels: standard output becomes standard error. */
int agent_main(void)
{
	struct agent agent = {.in_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1),
		.out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1),
		.start = start};
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct err err;

	if (agent.in_fd < 0 || agent.out_fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ||
		(nothing >= 0 && dup2(nothing, STDIN_FILENO) < 0)) {
		perror("weir: the agent");
		return STATUS_FAILED;
	}
	signal(SIGPIPE, SIG_IGN);
	return agent_serve(&agent, &err) < 0 ? command_fail(&err) : STATUS_DONE;
}
