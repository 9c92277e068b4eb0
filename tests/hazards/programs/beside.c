/* SPDX-License-Identifier: MIT */
/* Works, with pauses, while something else happens to it: until there is a file beside.done. */
#define FUNCTIONS(X) X(h_leaf) X(h_work) X(h_thread)
#include "hazard.h"
#include <pthread.h>

static volatile int done;
static volatile unsigned long wrong;

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
HOOKED long h_work(long n)
{
	CALLED(h_work);
	n = h_leaf(n) + h_leaf(n + 1);
	AFTER_CALL();
	return n;
}
HOOKED void *h_thread(void *arg)
{
	CALLED(h_thread);
	for (long i = 0; !done; i++) {
		for (int k = 0; k < *(int *)arg; k++)
			wrong += h_work(i + k) != 6 * (i + k) + 3;
		usleep(500);
	}
	return NULL;
}

static unsigned long hazard(int n)
{
	pthread_t thread;

	calls_word = "here";
	done = 0;
	if (pthread_create(&thread, NULL, h_thread, &n))
		return 1;
	do {
		for (int i = 0; i < n; i++)
			wrong += h_work(i) != 6 * i + 3;
		usleep(1000);
	} while (access("beside.done", F_OK));
	done = 1;
	pthread_join(thread, NULL);
	return wrong;
}
