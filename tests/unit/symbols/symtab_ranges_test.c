/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "check.h"
#include "symbols/range_paint.h"

static void test_simple(void)
{
	static const struct range ranges[] = {{0, 10}, {10, 20}, {30, 40}};
	struct range_piece *pieces;

	CHECK_EQ(range_paint(ranges, 3, &pieces), 3);
	CHECK(pieces[2].start == 30 && pieces[2].end == 40 && pieces[2].range_i == 2);
	free(pieces);
	CHECK_EQ(range_paint(NULL, 0, &pieces), 0);
	free(pieces);
}

static void test_paint_over(void)
{
	static const struct range ranges[] = {{0, 100}, {20, 30}, {50, 50}, {90, 120}, {20, 25}};
	static const struct range_piece expected[] = {
		{0, 20, 0}, {20, 25, 4}, {25, 30, 1}, {30, 90, 0}, {90, 120, 3}};
	struct range_piece *pieces;
	size_t n = range_paint(ranges, 5, &pieces);

	CHECK_EQ(n, 5);
	for (size_t i = 0; i < n && i < 5; i++) {
		CHECK_EQ(pieces[i].start, expected[i].start);
		CHECK_EQ(pieces[i].end, expected[i].end);
		CHECK_EQ(pieces[i].range_i, expected[i].range_i);
	}
	free(pieces);
}

/* Against a picture of 256 addresses, painted one by one. */
static void check_random(uint64_t *seed)
{
	enum { N = 40, WIDTH = 256, NOBODY = 255 };
	struct range ranges[N];
	uint8_t picture[WIDTH], got[WIDTH];
	struct range_piece *pieces;
	size_t n;

	memset(picture, NOBODY, sizeof(picture));
	memset(got, NOBODY, sizeof(got));
	for (int i = 0; i < N; i++) {
		*seed = *seed * 6364136223846793005u + 1442695040888963407u;
		ranges[i].start = (*seed >> 33) % WIDTH;
		ranges[i].end = ranges[i].start + (*seed >> 45) % 40;
		if (ranges[i].end > WIDTH)
			ranges[i].end = WIDTH;
		for (uint64_t a = ranges[i].start; a < ranges[i].end; a++)
			picture[a] = (uint8_t)i;
	}
	n = range_paint(ranges, N, &pieces);
	for (size_t i = 0; i < n; i++) {
		CHECK(pieces[i].start < pieces[i].end && pieces[i].end <= WIDTH);
		CHECK(i == 0 || pieces[i - 1].end <= pieces[i].start);
		for (uint64_t a = pieces[i].start; a < pieces[i].end && a < WIDTH; a++)
			got[a] = (uint8_t)pieces[i].range_i;
	}
	CHECK(memcmp(picture, got, sizeof(got)) == 0);
	free(pieces);
}

static void test_random(void)
{
	uint64_t seed = 1;

	for (int i = 0; i < 2000; i++)
		check_random(&seed);
}

static void test_extremes(void)
{
	static const struct range ranges[] = {
		{0, UINT64_MAX}, {UINT64_MAX - 1, UINT64_MAX}, {5, 3}};
	struct range_piece *pieces;

	CHECK_EQ(range_paint(ranges, 3, &pieces), 2);
	CHECK_EQ(pieces[0].end, UINT64_MAX - 1);
	free(pieces);
}

int main(void)
{
	static const struct test tests[] = {
		{"keeps ranges that do not overlap", test_simple},
		{"paints later ranges over earlier ones", test_paint_over},
		{"agrees with a picture painted address by address", test_random},
		{"works up to the last address, and ignores empty ranges", test_extremes},
	};

	return RUN_TESTS(tests);
}
