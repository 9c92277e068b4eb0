/* SPDX-License-Identifier: MIT */
/* Runs once more under a resource limit: LIMIT (RLIMIT_AS ...) to LIMIT_VALUE. */
#define FUNCTIONS(X) X(h_leaf) X(h_deep)
#include "hazard.h"
#include <sys/resource.h>

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
HOOKED long h_deep(long depth)
{
	volatile char room[200];

	CALLED(h_deep);
	room[depth % 200] = (char)depth;
	depth = depth ? h_deep(depth - 1) + 1 : h_leaf(room[0]);
	AFTER_CALL();
	return depth;
}

static unsigned long hazard(int n)
{
	struct rlimit limit = {LIMIT_VALUE, LIMIT_VALUE};
	unsigned long sum = 0;
	char size[16];

	if (!getenv("HAZARD_LIMITED")) {
		setenv("HAZARD_LIMITED", "1", 1);
		snprintf(size, sizeof(size), "%d", n);
		if (setrlimit(LIMIT, &limit))
			return 1;
		execl("/proc/self/exe", "limited", size, "once", NULL);
		return 2;
	}
	for (int i = 0; i < n; i++)
		sum += (unsigned long)h_deep(n > 10 ? 200 : 20);
	return sum;
}
