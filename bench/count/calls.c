/* SPDX-License-Identifier: MIT */
/*
 * Calls and little else.
 *	calls tight N	N calls of a function that adds
 *	calls fib N	fib(N), the slow way: prints how many calls that were
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile long sum;
static long n_calls;

static __attribute__((noinline)) void add(long x)
{
	sum += x;
}

static __attribute__((noinline, optimize("no-optimize-sibling-calls"))) long fib(long n)
{
	n_calls++;
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 0;

	if (argc > 2 && !strcmp(argv[1], "fib")) {
		fib(n);
		printf("%ld\n", n_calls);
		return 0;
	}
	for (long i = 0; i < n; i++)
		add(i);
	printf("%ld\n", n);
	return 0;
}
