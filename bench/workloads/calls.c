/* SPDX-License-Identifier: MIT */
/*
 * Nothing but calls: each round calls `outer`, which calls `inner` three times. Prints how many
 * calls there were and the nanoseconds of CPU time and of wall time that they took.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((noinline)) static long inner(long n)
{
	volatile long kept = n; /* some bytes of code that every tool can patch */

	kept += 1;
	return kept;
}

__attribute__((noinline)) static long outer(long n)
{
	n = inner(n);
	n = inner(n);
	return inner(n) + 1;
}

static long now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 1000000, n = 0;
	long cpu = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);

	for (long i = 0; i < rounds; i++)
		n = outer(n);
	cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	wall = now(CLOCK_MONOTONIC) - wall;
	printf("%ld %ld %ld\n", rounds * 4, cpu, wall);
	return n == rounds * 4 ? 0 : 1;
}
