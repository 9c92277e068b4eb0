/* SPDX-License-Identifier: MIT */
/* Sixty functions whose first instructions cross a cache line, called by three threads. */
#define TEN(M, a)                                                                                  \
	M(h_##a##0)                                                                                \
	M(h_##a##1) M(h_##a##2) M(h_##a##3) M(h_##a##4) M(h_##a##5) M(h_##a##6) M(h_##a##7)        \
		M(h_##a##8) M(h_##a##9)
#define FUNCTIONS(M) TEN(M, a) TEN(M, b) TEN(M, c) TEN(M, d) TEN(M, e) TEN(M, f)
#include "hazard.h"
#include <pthread.h>

/* With -fno-toplevel-reorder -falign-functions=1 this stands right before the function. */
#define LINE(f)                                                                                    \
	__asm__(".text\n.p2align 6\n.skip 61, 0x90");                                              \
	HOOKED long f(long n)                                                                      \
	{                                                                                          \
		CALLED(f);                                                                         \
		return n * 3 + hazard_zero;                                                        \
	}
FUNCTIONS(LINE)

#define POINTER(f) f,
static long (*const lines[])(long) = {FUNCTIONS(POINTER)};

static void *work(void *arg)
{
	long sum = 0, n = *(long *)arg;

	for (long i = 0; i < n; i++)
		for (unsigned k = 0; k < sizeof(lines) / sizeof(lines[0]); k++)
			sum += lines[k](i);
	*(long *)arg = sum;
	return NULL;
}

static unsigned long hazard(int n)
{
	pthread_t threads[3];
	long values[3];
	unsigned long sum = 0;

	for (int i = 0; i < 3; i++) {
		values[i] = n;
		if (pthread_create(&threads[i], NULL, work, &values[i]))
			return 1;
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		sum += (unsigned long)values[i];
	}
	return sum;
}
