/* SPDX-License-Identifier: MIT */
/* Very many threads, some of which are always just beginning or ending. */
#define FUNCTIONS(X) X(h_leaf) X(h_thread)
#define HAZARD_THREADS
#include "hazard.h"
#include <pthread.h>

enum { AT_A_TIME = 40 };

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
HOOKED void *h_thread(void *arg)
{
	long sum = 0;

	CALLED(h_thread);
	TICKS_HERE();
	for (long i = 0; i < 20; i++)
		sum += h_leaf(i);
	*(long *)arg = sum;
	return NULL;
}

static unsigned long hazard(int n)
{
	int at_a_time = n > 10 ? AT_A_TIME : 2;
	pthread_t threads[AT_A_TIME];
	long sums[AT_A_TIME] = {0};
	unsigned long sum = 0;

	for (int i = 0; i < n * 20 / AT_A_TIME + 1; i++) {
		for (int t = 0; t < at_a_time; t++)
			if (pthread_create(&threads[t], NULL, h_thread, &sums[t]))
				return 1;
		for (int t = 0; t < at_a_time; t++) {
			pthread_join(threads[t], NULL);
			sum += (unsigned long)sums[t];
		}
	}
	return sum;
}
