/* SPDX-License-Identifier: MIT */
/* Forced unwinding through hooked frames: pthread_exit, and cancellation at a cancellation point.
 */
#define FUNCTIONS(X) X(h_exits) X(h_waits) X(h_leaf) X(h_cleans)
#define HAZARD_THREADS
#include "hazard.h"
#include <pthread.h>
#include <semaphore.h>

static sem_t waiting;
static int depth_of_all; /* little where every instruction is traced */

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
HOOKED void h_cleans(void *arg)
{
	CALLED(h_cleans);
	*(long *)arg += h_leaf(1);
}
HOOKED long h_exits(long depth, long *sum)
{
	CALLED(h_exits);
	pthread_cleanup_push(h_cleans, sum);
	if (depth == 0)
		pthread_exit(sum);
	depth = h_exits(depth - 1, sum) + 1;
	pthread_cleanup_pop(0);
	return depth;
}
HOOKED long h_waits(long depth, long *sum)
{
	CALLED(h_waits);
	pthread_cleanup_push(h_cleans, sum);
	if (depth == 0) {
		sem_post(&waiting);
		for (;;)
			pause();
	}
	depth = h_waits(depth - 1, sum) + 1;
	pthread_cleanup_pop(0);
	return depth;
}
static void *exits(void *arg)
{
	TICKS_HERE();
	h_exits(depth_of_all, (long *)arg);
	return NULL;
}
static void *waits(void *arg)
{
	TICKS_HERE();
	h_waits(depth_of_all, (long *)arg);
	return NULL;
}

static unsigned long hazard(int n)
{
	long sum = 0;

	depth_of_all = n > 10 ? 10 : 1;
	sem_init(&waiting, 0, 0);
	for (int i = 0; i < n; i++) {
		pthread_t thread;
		void *value = NULL;

		if (pthread_create(&thread, NULL, i % 2 ? waits : exits, &sum))
			return 1;
		if (i % 2) {
			sem_wait(&waiting);
#ifdef HAZARD_TICKS
			calls_cut++; /* perhaps in a handler's call that has not counted yet */
#endif
			pthread_cancel(thread);
		}
		pthread_join(thread, &value);
		sum += i % 2 ? value == PTHREAD_CANCELED : value == &sum;
	}
	return (unsigned long)sum;
}
