/* SPDX-License-Identifier: MIT */
/*
 * Replays a fuzz target over its corpus without libFuzzer: every file as it is, then a fixed number
 * of seeded mutations of it, so that `make check` finds the shallow bugs on every machine.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUTATIONS_PER_FILE 300
#define INPUT_BYTES_MAX	   (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Runs on an exact-size heap copy, so that ASan sees a read one past the end. */
static void run_copy(const uint8_t *data, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	if (!copy)
		exit(1);
	memcpy(copy, data, n);
	LLVMFuzzerTestOneInput(copy, n);
	free(copy);
}

static void mutate_and_run(const uint8_t *data, size_t n)
{
	static uint8_t work[INPUT_BYTES_MAX];

	for (int i = 0; i < MUTATIONS_PER_FILE; i++) {
		size_t len = n;
		int edits = 1 + (int)(next_random() % 8);

		memcpy(work, data, n);
		if (next_random() % 4 == 0 && n)
			len = next_random() % n;
		while (edits-- && len) {
			static const uint8_t odd[] = {0, 1, 0x7f, 0x80, 0xff};
			size_t at = next_random() % len;

			if (next_random() % 2)
				work[at] ^= (uint8_t)(1u << next_random() % 8);
			else
				work[at] = odd[next_random() % sizeof(odd)];
		}
		run_copy(work, len);
	}
}

static int replay_file(const char *path)
{
	static uint8_t data[INPUT_BYTES_MAX];
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f)
		return -1;
	n = fread(data, 1, sizeof(data), f);
	fclose(f);
	run_copy(data, n);
	mutate_and_run(data, n);
	return 0;
}

int main(int argc, char **argv)
{
	struct dirent *entry;
	char path[4096];
	int n_files = 0;
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;

	if (!dir) {
		fprintf(stderr, "not ok no corpus folder: %s\n", argc == 2 ? argv[1] : "(none given)");
		return 1;
	}
	run_copy((const uint8_t *)"", 0);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		if (replay_file(path) < 0) {
			printf("not ok cannot read %s\n", path);
			return 1;
		}
		n_files++;
	}
	closedir(dir);
	if (!n_files) {
		printf("not ok the corpus folder %s is empty\n", argv[1]);
		return 1;
	}
	printf("ok replays %d files and %d mutations of each\nend\n", n_files, MUTATIONS_PER_FILE);
	return 0;
}
