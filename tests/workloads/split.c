/* SPDX-License-Identifier: MIT */
/*
 * Programs of known shape; the first argument picks one. Work is measured by the thread's own CPU
 * clock, so that the shares hold on a busy machine too.
 *   split      70 / 20 / 10 % of the time in seventy(), twenty(), ten()
 *   recursion  down(20) > ... > spin_recursive()
 *   threads    two threads, 75 / 25 %
 *   sleep      half a second of work, a second of sleep
 *   forks N    N children that work a little and exit, one after the other
 *   many N     N threads that exist at the same time and work a little
 *   status N   exits with status N
 *   signal N   dies of signal N
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline __attribute__((always_inline)) void spin(double seconds)
{
	double end = cpu_seconds() + seconds;

	do
		for (int i = 0; i < 20000; i++)
			sink = sink * 31 + (unsigned long)i;
	while (cpu_seconds() < end);
}

/* noipa: equal bodies must not be folded into one. */
#define WORKER(name)                                                                               \
	__attribute__((noipa)) static void name(double seconds)                                 \
	{                                                                                          \
		spin(seconds);                                                                     \
		sink++;                                                                            \
	}
WORKER(seventy)
WORKER(twenty)
WORKER(ten)
WORKER(spin_recursive)
WORKER(spin_before_sleep)
WORKER(spin_child)

__attribute__((noipa)) static void down(int depth, double seconds)
{
	if (depth)
		down(depth - 1, seconds);
	else
		spin_recursive(seconds);
	sink++; /* not a tail call */
}

static void *heavy_thread(void *arg)
{
	(void)arg;
	seventy(0.9);
	return NULL;
}

static void *light_thread(void *arg)
{
	(void)arg;
	twenty(0.3);
	return NULL;
}

static void run_threads(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, heavy_thread, NULL);
	pthread_create(&b, NULL, light_thread, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
}

static pthread_barrier_t all_there;

static void *one_of_many(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&all_there);
	spin_child(0.002);
	return NULL;
}

static void run_many(int n)
{
	pthread_t *t = calloc((size_t)n, sizeof(*t));
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 * 1024);
	pthread_barrier_init(&all_there, NULL, (unsigned)n);
	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], &attr, one_of_many, NULL))
			exit(9);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	free(t);
}

static void run_forks(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			spin_child(0.001);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	const char *shape = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	if (!strcmp(shape, "split")) {
		for (int i = 0; i < 10; i++) {
			seventy(0.14);
			twenty(0.04);
			ten(0.02);
		}
	} else if (!strcmp(shape, "recursion")) {
		down(20, 0.6);
	} else if (!strcmp(shape, "threads")) {
		run_threads();
	} else if (!strcmp(shape, "sleep")) {
		spin_before_sleep(0.5);
		sleep(1);
	} else if (!strcmp(shape, "forks")) {
		run_forks(n);
	} else if (!strcmp(shape, "many")) {
		run_many(n);
	} else if (!strcmp(shape, "status")) {
		exit(n);
	} else if (!strcmp(shape, "signal")) {
		struct rlimit no_core = {0, 0};

		setrlimit(RLIMIT_CORE, &no_core);
		raise(n);
	} else if (!strcmp(shape, "forever")) {
		for (;;)
			seventy(1);
	} else {
		return 2;
	}
	printf("done %s\n", shape);
	return 0;
}
