/* SPDX-License-Identifier: MIT */
/* Little CPU: nice 19, on one processor, beside four processes that never wait. */
#define FUNCTIONS(X) X(h_leaf) X(h_work)
#include "hazard.h"
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

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

static unsigned long hazard(int n)
{
	unsigned long sum = 0;
	cpu_set_t before, one;
	pid_t spinners[4];
	pid_t parent = getpid();

	sched_getaffinity(0, sizeof(before), &before);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (int i = 0; i < 4; i++) {
		spinners[i] = fork();
		if (spinners[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (nice(10) == -1 || getppid() != parent)
				_exit(1);
			for (;;)
				__asm__ volatile("pause");
		}
	}
	if (nice(19) == -1)
		return 1;
	for (int i = 0; i < n * 10; i++)
		sum += (unsigned long)h_work(i);
	for (int i = 0; i < 4; i++) {
		kill(spinners[i], SIGKILL);
		waitpid(spinners[i], NULL, 0);
	}
	sched_setaffinity(0, sizeof(before), &before);
	return sum;
}
