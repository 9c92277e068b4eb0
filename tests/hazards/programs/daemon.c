/* SPDX-License-Identifier: MIT */
/*
 * A daemon: the program ends when its grandchild has done some work, and that goes on for a while.
 * Calls behind the end of the program may be recorded or not. With IDLE it does nothing until the
 * program has ended.
 */
#define FUNCTIONS(X) X(h_leaf) X(h_before) X(h_work)
#include "hazard.h"

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
HOOKED long h_before(long n)
{
	CALLED(h_before);
	return h_leaf(n) + 1;
}
HOOKED long h_work(long n)
{
	CALLED(h_work);
	n = h_leaf(n) + h_leaf(n);
	AFTER_CALL();
	return n;
}

static void serve(int n, int to_parent)
{
	unsigned long before[N_CALLS];
	char text[512];
	size_t used = 0;

	calls_reset();
#ifndef IDLE
	for (int i = 0; i < n * 10; i++)
		h_work(i);
#endif
	memcpy(before, calls_n, sizeof(before));
	if (write(to_parent, "x", 1) != 1)
		_exit(1);
	close(to_parent);
#ifdef IDLE
	usleep(1500000);
#endif
	for (int i = 0; i < (n > 10 ? 300 : 30); i++) {
		h_work(i);
		usleep(2000);
	}
	for (int i = 0; i < N_CALLS; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "here %s %lu %lu\n",
			calls_names[i], before[i], calls_n[i]);
	say(text);
	say("the daemon has served\n");
	_exit(0);
}

static unsigned long hazard(int n)
{
	int ends[2];
	char c;
	pid_t child;

	h_before(n);
	if (pipe(ends))
		return 1;
	child = fork();
	if (child == 0) {
		setsid();
		if (fork() == 0)
			serve(n, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	waitpid(child, NULL, 0);
	return read(ends[0], &c, 1) == 1;
}
