/* SPDX-License-Identifier: MIT */
/* switches N: two processes on one CPU hand a byte to and fro N times: two context switches each. */
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void pass(int from, int to, long n, int is_first)
{
	char byte = 'x';

	for (long i = 0; i < n; i++) {
		if (is_first && write(to, &byte, 1) != 1)
			_exit(1);
		if (read(from, &byte, 1) != 1)
			_exit(1);
		if (!is_first && write(to, &byte, 1) != 1)
			_exit(1);
	}
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 100000;
	int there[2], back[2], status = 1;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (pipe(there) || pipe(back))
		return 1;
	switch (fork()) {
	case -1:
		return 1;
	case 0:
		pass(there[0], back[1], n, 0);
		_exit(0);
	}
	pass(back[0], there[1], n, 1);
	wait(&status);
	return status != 0;
}
