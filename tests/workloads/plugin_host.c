/* SPDX-License-Identifier: MIT */
/*
 * plugin_host FOLDER    does what the lines of its standard input say:
 *
 *   load I       loads FOLDER/libI.so
 *   burn I MS    runs MS milliseconds of CPU in its function burn_I
 *   unload I     unloads it
 *   munmap N     maps and unmaps a page N times
 *   die          ends without closing anything
 *
 * and prints each line when it is done, with the address of burn_I and CLOCK_MONOTONIC before and
 * after, in nanoseconds.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LIBRARIES_MAX 1000

static struct {
	void *handle;
	unsigned (*burn)(unsigned);
} libraries[LIBRARIES_MAX];

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int load(const char *folder, int i)
{
	char path[4096], name[32];

	snprintf(path, sizeof(path), "%s/lib%d.so", folder, i);
	snprintf(name, sizeof(name), "burn_%d", i);
	libraries[i].handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!libraries[i].handle)
		return -1;
	*(void **)&libraries[i].burn = dlsym(libraries[i].handle, name);
	return libraries[i].burn ? 0 : -1;
}

static void burn(int i, int ms)
{
	uint64_t until = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + (uint64_t)ms * 1000000u;

	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
		libraries[i].burn(100000);
}

static void map_and_unmap(int n)
{
	while (n--)
		munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
}

static int obey(const char *folder, const char *word, int i, int ms)
{
	if (!strcmp(word, "munmap"))
		map_and_unmap(i);
	else if (!strcmp(word, "die"))
		_exit(0);
	else if (i < 0 || i >= LIBRARIES_MAX)
		return -1;
	else if (!strcmp(word, "load"))
		return load(folder, i);
	else if (!strcmp(word, "burn") && libraries[i].burn)
		burn(i, ms);
	else if (!strcmp(word, "unload") && libraries[i].handle)
		return dlclose(libraries[i].handle);
	else
		return -1;
	return 0;
}

int main(int argc, char **argv)
{
	char line[256], word[16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (argc == 2 && fgets(line, sizeof(line), stdin)) {
		uint64_t before = clock_ns(CLOCK_MONOTONIC);
		int i = 0, ms = 0;

		if (sscanf(line, "%15s %d %d", word, &i, &ms) < 1 || obey(argv[1], word, i, ms))
			return 1;
		printf("%s %d %llu %llu %llu\n", word, i,
			(unsigned long long)(uintptr_t)libraries[i % LIBRARIES_MAX].burn,
			(unsigned long long)before, (unsigned long long)clock_ns(CLOCK_MONOTONIC));
	}
	return argc == 2 ? 0 : 2;
}
