/* SPDX-License-Identifier: MIT */
/*
 * deep SECONDS-ISH: a recursive-descent evaluator over nested brackets, three functions a level, up
 * to LEVELS levels: about 1,000 frames and 80 kB of stack at the bottom. Built -O2
 * -fomit-frame-pointer, so nothing but CFI leads out.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS	 340
#define TEXT_MAX (LEVELS * 16)
#define NOINLINE __attribute__((noinline))

struct text {
	const char *p;
	uint64_t seed;
};

static uint64_t expression(struct text *t);

static NOINLINE uint64_t factor(struct text *t)
{
	uint64_t spare[4] = {t->seed, t->seed >> 3, t->seed >> 7, 1}, value = 0;

	if (*t->p == '(') {
		t->p++;
		value = expression(t);
		t->p++;
	} else {
		while (*t->p >= '0' && *t->p <= '9')
			value = value * 10 + (uint64_t)(*t->p++ - '0');
		/* Work at the bottom, so that most samples are deep. */
		for (int i = 0; i < 120; i++)
			value = (value ^ spare[i & 3]) * 0x9e3779b97f4a7c15u + (value >> 29);
	}
	t->seed = t->seed * 6364136223846793005u + spare[value & 3];
	return value ^ spare[t->seed & 3];
}

static NOINLINE uint64_t term(struct text *t)
{
	uint64_t value = factor(t), other;

	while (*t->p == '*') {
		t->p++;
		other = factor(t);
		value = value * (other | 1) + t->seed;
	}
	return value;
}

static NOINLINE uint64_t expression(struct text *t)
{
	uint64_t value = term(t), other;

	while (*t->p == '+') {
		t->p++;
		other = term(t);
		value += other ^ t->seed;
	}
	return value;
}

int main(int argc, char **argv)
{
	static char text[TEXT_MAX];
	long rounds = argc > 1 ? atol(argv[1]) : 1000;
	struct text t = {.seed = 1};
	uint64_t sum = 0;
	char *p = text;

	for (int i = 0; i < LEVELS; i++)
		p += sprintf(p, "%d*7+(", i);
	*p++ = '1';
	for (int i = 0; i < LEVELS; i++)
		p += sprintf(p, ")+%d", i % 10);
	for (long i = 0; i < rounds; i++) {
		t.p = text;
		sum += expression(&t);
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
