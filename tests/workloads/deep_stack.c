/* SPDX-License-Identifier: MIT */
/* deep_stack main|thread DEPTH HOLE: works below DEPTH frames of a thousand bytes, behind HOLE bytes of stack
 * that nobody has touched. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static volatile unsigned long sink;
__attribute__((noipa)) static void work(void)
{
	for (unsigned long i = 0; i < 600000000; i++)
		sink += i;
}
__attribute__((noipa)) static void leave_hole(size_t n)
{
	volatile char *room = __builtin_alloca(n);

	sink += (unsigned long)&room[0] & 1;
	work();
	sink++;
}
__attribute__((noipa)) static void descend(int depth, size_t hole)
{
	volatile char frame[1000];

	frame[0] = frame[999] = 1;
	if (depth)
		descend(depth - 1, hole);
	else if (hole)
		leave_hole(hole);
	else
		work();
	sink += (unsigned long)frame[0];
}
static int depth;
static size_t hole;
__attribute__((noipa)) static void begin(void)
{
	descend(depth, hole);
	sink++;
}
static void *routine(void *p)
{
	begin();
	return p;
}
int main(int argc, char **argv)
{
	pthread_t t;

	(void)argc;
	depth = atoi(argv[2]);
	hole = (size_t)atol(argv[3]);
	if (!strcmp(argv[1], "main"))
		begin();
	else if (!strcmp(argv[1], "thread"))
		return pthread_create(&t, 0, routine, 0) || pthread_join(t, 0);
	return 0;
}
