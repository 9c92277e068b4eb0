/* SPDX-License-Identifier: MIT */
/*
 * How fast code is inserted: `insert_speed ROUNDS tree|counts|cycles FILE...` prints for each file
 * the bytes of text before and after, blocks, and the least CPU time in seconds. Reading and
 * writing files is not in it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "insert/insert.h"

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void measure(const char *path, int rounds, const struct insert_options *options)
{
	struct buf in = {0};
	struct err err = {0};
	double least = 1e9;

	if (file_read(&in, path, (size_t)1 << 31, &err)) {
		fprintf(stderr, "insert_speed: %s\n", err.text);
		exit(1);
	}
	for (int i = 0; i < rounds; i++) {
		struct insert_report report = {0};
		struct buf out = {0};
		double start = cpu_s(), s;

		if (insert_file(buf_span(&in), ".", options, &out, &report, &err))
			exit(1);
		s = cpu_s() - start;
		least = s < least ? s : least;
		if (i == rounds - 1)
			printf("%s\t%llu\t%llu\t%llu\t%.6f\n", path,
				(unsigned long long)report.old_text,
				(unsigned long long)report.new_text,
				(unsigned long long)report.n_blocks, least);
		insert_report_release(&report);
		buf_release(&out);
	}
	buf_release(&in);
}

int main(int argc, char **argv)
{
	struct insert_options options = {.mode = INSERT_MODE_TREE};

	if (argc < 4)
		return 2;
	if (!strcmp(argv[2], "counts"))
		options.mode = INSERT_MODE_COUNTS;
	options.with_cycles = !strcmp(argv[2], "cycles");
	for (int i = 3; i < argc; i++)
		measure(argv[i], atoi(argv[1]), &options);
	return 0;
}
