/* SPDX-License-Identifier: MIT */
/* Files that are truncated while they are mapped: zeros and a reason in place of a death. */
#include "base/map_guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "check.h"

#define FILE_BYTES (1u << 20)

static char path[] = "/tmp/weir-guard-XXXXXX";

static void fill(void)
{
	static char bytes[FILE_BYTES];
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	memset(bytes, 'x', sizeof(bytes));
	CHECK_EQ(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	close(fd);
}

static void reads_zeros(void)
{
	struct file_map map, other;
	struct err err;

	fill();
	CHECK_EQ(file_map_open(&map, path, &err), 0);
	CHECK_EQ(file_map_open(&other, "/proc/self/exe", &err), 0);
	CHECK_EQ(map.bytes.p[FILE_BYTES / 2], 'x');
	CHECK_EQ(truncate(path, FILE_BYTES / 4), 0);
	CHECK(!file_map_is_cut(&map));
	CHECK_EQ(map.bytes.p[FILE_BYTES / 2], 0);
	CHECK_EQ(map.bytes.p[FILE_BYTES - 1], 0);
	CHECK_EQ(map.bytes.p[FILE_BYTES / 8], 'x'); /* what is there is still read */
	CHECK(file_map_is_cut(&map) && map_guard_is_cut(map.bytes.p + 100));
	CHECK(!file_map_is_cut(&other));
	file_map_release(&map);
	file_map_release(&other);
	fill();
	CHECK_EQ(file_map_open(&map, path, &err), 0);
	CHECK(!file_map_is_cut(&map)); /* also in the slot of another one before */
	file_map_release(&map);
}

static void *read_last(void *bytes)
{
	const struct span *s = bytes;

	return (void *)(uintptr_t)(s->p[s->n - 1] + 1u);
}

static void works_in_threads(void)
{
	struct file_map map;
	sigset_t all, old;
	struct err err;
	pthread_t t;
	void *got;

	fill();
	CHECK_EQ(file_map_open(&map, path, &err), 0);
	CHECK_EQ(truncate(path, 0), 0);
	map_guard_fill_mask(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	CHECK_EQ(pthread_create(&t, NULL, read_last, &map.bytes), 0);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_join(t, &got);
	CHECK_EQ((uintptr_t)got, 1);
	CHECK(file_map_is_cut(&map));
	file_map_release(&map);
}

static int end_of(void (*run)(void))
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		run();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void read_unguarded(void)
{
	int fd = open(path, O_RDWR);
	volatile char *p = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);

	if (ftruncate(fd, 0) == 0)
		(void)p[0];
}

static void is_sent_one(void)
{
	kill(getpid(), SIGBUS);
}

static void leaves_others_alone(void)
{
	fill();
	CHECK_EQ(end_of(read_unguarded), SIGBUS);
	CHECK_EQ(end_of(is_sent_one), SIGBUS);
}

int main(void)
{
	static const struct test tests[] = {
		{"what is gone of a mapped file reads as zeros, and the mapping says so",
			reads_zeros},
		{"also in a thread that leaves signals to others", works_in_threads},
		{"a SIGBUS of other origin ends the process", leaves_others_alone},
	};
	int fd = mkstemp(path), rc;

	close(fd);
	rc = RUN_TESTS(tests);
	unlink(path);
	return rc;
}
