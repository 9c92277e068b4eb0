/* SPDX-License-Identifier: MIT */
/*
 * The least that a tracer by ptrace(2) can do: the address of each instruction into a buffer in
 * memory. No thread, fork, signal or repeated string instruction is understood, nothing is written.
 *
 *   bare_ptrace any|one COMMAND ARGS...     tracer and program wherever, or both on one CPU
 *
 * Prints the number of stops to standard error.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOM (1UL << 22)

static unsigned long addresses[ROOM];

static void stay_here(void)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
}

int main(int argc, char **argv)
{
	struct user_regs_struct regs;
	unsigned long n = 0;
	int status;
	pid_t pid;

	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "one"))
		stay_here();
	memset(addresses, 1, sizeof(addresses)); /* no page fault later */
	pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		ptrace(PTRACE_GETREGS, pid, NULL, &regs);
		addresses[n++ % ROOM] = regs.rip;
		ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);
	}
	fprintf(stderr, "stops %lu\n", n);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
