/* SPDX-License-Identifier: MIT */
/* Becomes the program in the other word size, or, with EXEC_SELF, itself once more. */
#define FUNCTIONS(X) X(h_before) X(h_after)
#include "hazard.h"

HOOKED long h_before(long n)
{
	CALLED(h_before);
	return n * 3 + hazard_zero;
}
HOOKED long h_after(long n)
{
	CALLED(h_after);
	return n * 5 + hazard_zero;
}

static unsigned long hazard(int n)
{
	const char *other = getenv("HAZARD_OTHER");
	char size[16];
	long sum = 0;

#ifdef EXEC_SELF
	other = "/proc/self/exe";
#endif
	if (getenv("HAZARD_EXECED")) {
		for (int i = 0; i < n * 10; i++)
			sum += h_after(i);
		return (unsigned long)sum;
	}
	for (int i = 0; i < n * 10; i++)
		sum += h_before(i);
	result_print((unsigned long)sum);
	calls_print();
	setenv("HAZARD_EXECED", "1", 1);
	snprintf(size, sizeof(size), "%d", n);
	execl(other, "other", size, "once", NULL);
	return 0;
}
