/* SPDX-License-Identifier: MIT */
/* Rows that are put away by thread come back in their order, from memory and from the temporary file. */
#include "check.h"

#include "formats/row_spool.h"

#define ROW 3
#define N   200000 /* rows of a lane: some megabytes */

static void put(struct row_spool *s, uint32_t lane, uint64_t i)
{
	uint64_t row[ROW] = {i, i * 0x9e3779b97f4a7c15u, lane};

	row_spool_put(s, lane, row);
}

static uint64_t n_right(struct row_spool *s, uint32_t lane)
{
	struct row_reader reader;
	uint64_t row[ROW], n = 0;

	row_reader_open(&reader, s, lane);
	while (row_reader_next(&reader, row)) {
		if (row[0] != n || row[1] != n * 0x9e3779b97f4a7c15u || row[2] != lane)
			break;
		n++;
	}
	row_reader_close(&reader);
	return n;
}

static void large_and_small_lanes(void)
{
	struct row_spool s;
	struct err err = {0};

	row_spool_init(&s, ROW);
	for (uint64_t i = 0; i < N; i++) {
		put(&s, 1, i);
		put(&s, 7, i);
		if (i < 5)
			put(&s, 3, i);
	}
	CHECK(s.file != NULL); /* else the file was not tried */
	CHECK_EQ(row_spool_n_rows(&s, 1), N);
	CHECK_EQ(n_right(&s, 1), N);
	CHECK_EQ(n_right(&s, 7), N);
	CHECK_EQ(n_right(&s, 7), N); /* as often as one likes */
	CHECK_EQ(n_right(&s, 3), 5);
	CHECK_EQ(row_spool_n_rows(&s, 2), 0);
	CHECK_EQ(n_right(&s, 2), 0);
	CHECK_EQ(n_right(&s, 99), 0);
	CHECK_EQ(row_spool_check(&s, &err), 0);
	row_spool_release(&s);
}

static void small_in_memory(void)
{
	struct row_spool s;

	row_spool_init(&s, ROW);
	for (uint64_t i = 0; i < 100; i++)
		put(&s, 2, i);
	CHECK(s.file == NULL);
	CHECK_EQ(n_right(&s, 2), 100);
	row_spool_release(&s);
}

static const struct test tests[] = {
	{"lanes of megabytes come back from the temporary file, others from memory",
		large_and_small_lanes},
	{"a few rows need no file", small_in_memory},
};

int main(void)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
