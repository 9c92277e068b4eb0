/* SPDX-License-Identifier: MIT */
/* Threads that are cancelled asynchronously, anywhere in recursive functions. */
#define FUNCTIONS(X) X(h_recursive) X(h_leaf)
#define HAZARD_THREADS
#include "hazard.h"
#include <pthread.h>

static volatile long rounds;
static int depth_of_all; /* little where every instruction is traced: unwinding takes thousands for
			    each frame */

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
HOOKED long h_recursive(long depth)
{
	volatile char room[64];

	CALLED(h_recursive);
	room[depth & 63] = 1;
	depth = depth ? h_recursive(depth - 1) + h_leaf(depth) : room[0];
	AFTER_CALL();
	return depth;
}
static void *work(void *arg)
{
	(void)arg;
	TICKS_HERE();
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;) {
		h_recursive(depth_of_all);
		rounds++;
	}
	return NULL;
}

static unsigned long hazard(int n)
{
	unsigned long cancelled = 0;

	calls_word = "here";
	depth_of_all = n > 10 ? 20 : 2;
	for (int i = 0; i < n; i++) {
		pthread_t thread;
		void *value;

		rounds = 0;
		if (pthread_create(&thread, NULL, work, NULL))
			return 1;
		while (!rounds)
			usleep(100);
		/* Each thread may have entered a function and not counted it yet. */
		calls_cut++;
		pthread_cancel(thread);
		pthread_join(thread, &value);
		cancelled += value == PTHREAD_CANCELED;
	}
	return cancelled == (unsigned long)n;
}
