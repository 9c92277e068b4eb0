/* SPDX-License-Identifier: MIT */
/* Gives up what it may do or see, and forks a worker: HOW_SETUID, HOW_CHROOT or HOW_PIDNS. */
#define FUNCTIONS(X) X(h_leaf) X(h_work)
#include "hazard.h"
#include <grp.h>
#include <sched.h>
#include <sys/stat.h>

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
HOOKED long h_work(long n)
{
	CALLED(h_work);
	return h_leaf(n) + h_leaf(n + 1);
}
static unsigned long work(int n)
{
	unsigned long sum = 0;

	for (int i = 0; i < n * 10; i++)
		sum += (unsigned long)h_work(i);
	return sum;
}
static int give_up(void)
{
#if defined(HOW_SETUID)
	return setgroups(0, NULL) || setgid(65534) || setuid(65534);
#elif defined(HOW_CHROOT)
	mkdir("jail", 0755);
	return chroot("jail") || chdir("/");
#else
	return unshare(CLONE_NEWPID);
#endif
}

static unsigned long hazard(int n)
{
	unsigned long sum = work(n);
	int status = 1;
	pid_t child;

	if (give_up())
		return 1;
	child = fork();
	if (child == 0) {
		calls_reset();
		result_print(work(n));
		calls_print();
		_exit(0);
	}
	waitpid(child, &status, 0);
	return sum + work(n) + (unsigned long)status;
}
