/* SPDX-License-Identifier: MIT */
/*
 * Processes: HOW_FORK, HOW_VFORK, HOW_CLONE (CLONE_VM, a stack of its own) or HOW_SPAWN. Children
 * of fork and spawn print their own calls, the others count in the memory of their parent.
 */
#define FUNCTIONS(X) X(h_leaf) X(h_parent) X(h_child)
#include "hazard.h"
#include <sched.h>
#include <spawn.h>

extern char **environ;

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
HOOKED long h_child(long n)
{
	CALLED(h_child);
	n = h_leaf(n) + 1;
	AFTER_CALL();
	return n;
}

static int clone_child(void *arg)
{
	long sum = 0;

	for (long i = 0; i < *(long *)arg; i++)
		sum += h_child(i);
	return (int)(sum & 63);
}

HOOKED long h_parent(long n)
{
	static char stack[65536] __attribute__((aligned(16)));
	int status = 0;
	pid_t child;

	CALLED(h_parent);
#if defined(HOW_FORK)
	child = fork();
	if (child == 0) {
		calls_reset();
		status = clone_child(&n);
		calls_print();
		_exit(status);
	}
#elif defined(HOW_VFORK)
	child = vfork();
	if (child == 0) {
		h_child(n);
		_exit(h_leaf(n) & 63);
	}
#elif defined(HOW_CLONE)
	child = clone(clone_child, stack + sizeof(stack), CLONE_VM | SIGCHLD, &n);
#else
	char *argv[] = {(char *)"spawned", NULL};

	setenv("HAZARD_SPAWNED", calls_are_told ? "quiet" : "loud", 1);
	if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ))
		return -1;
	unsetenv("HAZARD_SPAWNED");
#endif
	(void)stack;
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -2;
	return status + h_leaf(n);
}

static unsigned long hazard(int n)
{
	unsigned long sum = 0;
	long spawned = 20;

	if (getenv("HAZARD_SPAWNED")) {
		calls_are_told = *getenv("HAZARD_SPAWNED") == 'q';
		return (unsigned long)clone_child(&spawned);
	}
	for (int i = 0; i < (n + 9) / 10; i++)
		sum = sum * 31 + (unsigned long)h_parent(i + 20);
	return sum;
}
