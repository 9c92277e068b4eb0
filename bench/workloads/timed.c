/* SPDX-License-Identifier: MIT */
/*
 * timed COMMAND...: runs the command and appends to the file $BENCH_USAGE one line with what it
 * used: user us, system us, largest resident kB, wall ns, wait status. A profiler that runs
 * `timed COMMAND` has the command as a grandchild, and cannot tell its CPU time from its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static long long micros(struct timeval t)
{
	return t.tv_sec * 1000000LL + t.tv_usec;
}

int main(int argc, char **argv)
{
	const char *path = getenv("BENCH_USAGE");
	struct rusage usage;
	long long start;
	int status;
	pid_t pid;
	FILE *f;

	if (argc < 2 || !path) {
		fprintf(stderr, "usage: BENCH_USAGE=FILE timed COMMAND...\n");
		return 2;
	}
	start = now_ns();
	pid = fork();
	if (pid == 0) {
		execvp(argv[1], argv + 1);
		perror(argv[1]);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) < 0) {
		perror("timed");
		return 1;
	}
	f = fopen(path, "a");
	if (!f ||
		fprintf(f, "%lld %lld %ld %lld %d\n", micros(usage.ru_utime),
			micros(usage.ru_stime), usage.ru_maxrss, now_ns() - start, status) < 0 ||
		fclose(f)) {
		perror(path);
		return 1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
