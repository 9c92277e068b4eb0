/* SPDX-License-Identifier: MIT */
/*
 * A program with a known number of system calls and page faults:
 *
 *   calls N      N getppid, 37 write, 5 rt_sigreturn (sigreturn on i386), 11 getppid in a thread
 *   exec FILE    a child that becomes FILE with the argument "child"
 *   child        3 getppid
 *   pages N      touches N fresh pages
 *   into N       lets the kernel touch N fresh pages, in read
 *   forever      getppid until it is killed
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

static void call(long n)
{
	while (n--)
		syscall(SYS_getppid);
}

static void *call_in_thread(void *n)
{
	call((long)n);
	return NULL;
}

static void on_signal(int number)
{
	(void)number;
}

static int calls(long n)
{
	int fd = open("/dev/null", O_WRONLY);
	pthread_t thread;

	call(n);
	for (int i = 0; i < 37; i++)
		if (write(fd, "x", 1) != 1)
			return 1;
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 5; i++)
		raise(SIGUSR1);
	if (pthread_create(&thread, NULL, call_in_thread, (void *)11))
		return 1;
	return pthread_join(thread, NULL);
}

static int run(char *file)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		execl(file, file, "child", NULL);
		_exit(1);
	}
	return waitpid(pid, &status, 0) != pid || status;
}

static char *fresh_pages(size_t n)
{
	char *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	madvise(p, n * PAGE, MADV_NOHUGEPAGE);
	return p;
}

static int touch(size_t n)
{
	char *p = fresh_pages(n);

	for (size_t i = 0; i < n; i++)
		p[i * PAGE] = 1;
	return 0;
}

static int touch_in_kernel(size_t n)
{
	int fd = open("/dev/zero", O_RDONLY);

	return read(fd, fresh_pages(n), n * PAGE) != (ssize_t)(n * PAGE);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "calls") && argc > 2)
		return calls(atol(argv[2]));
	if (!strcmp(what, "exec") && argc > 2)
		return run(argv[2]);
	if (!strcmp(what, "pages") && argc > 2)
		return touch((size_t)atol(argv[2]));
	if (!strcmp(what, "into") && argc > 2)
		return touch_in_kernel((size_t)atol(argv[2]));
	while (!strcmp(what, "forever"))
		call(1000);
	call(3);
	return strcmp(what, "child") != 0;
}
