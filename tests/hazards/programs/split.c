/* SPDX-License-Identifier: MIT */
/* Functions whose rare halves the compiler puts elsewhere (NAME.cold), and which are entered often
 * enough. */
#define FUNCTIONS(X) X(h_split) X(h_rare) X(h_loop)
#include "hazard.h"

HOOKED __attribute__((cold)) long h_rare(long n)
{
	CALLED(h_rare);
	return n * 7 + hazard_zero;
}
HOOKED long h_split(long n)
{
	CALLED(h_split);
	if (__builtin_expect(n % 10 == 9, 0)) {
		n = h_rare(n) ^ h_rare(n + 1);
		if (n & 64)
			return h_rare(n) - 3;
		n += h_rare(n >> 1);
	}
	return n * 3;
}
HOOKED long h_loop(long n)
{
	long sum = 0;

	CALLED(h_loop);
	do {
		sum += h_split(n);
		if (__builtin_expect(sum < 0, 0))
			sum = h_rare(sum);
	} while (n--);
	return sum;
}

static unsigned long hazard(int n)
{
	unsigned long sum = 0;

	for (int i = 0; i < n * 5; i++)
		sum += (unsigned long)h_loop(i % 8);
	return sum;
}
