/* SPDX-License-Identifier: MIT */
/* Step records to bytes and back, and bytes that are none. */
#include <stdlib.h>

#include "check.h"
#include "trace/step_records.h"

#define FAR (1ull << 63) /* the difference without a code of its own */

static uint64_t seed;

static uint64_t random_u64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Addresses as programs have them, and some as none has. */
static uint64_t random_addr(uint64_t before)
{
	switch (random_u64() % 16) {
	case 0:
		return random_u64();
	case 1:
		return before + FAR;
	case 2:
		return before;
	case 3:
		return before - random_u64() % 100;
	case 4:
		return before + (random_u64() % 5 - 2) * 63;
	case 5:
		return UINT64_MAX - random_u64() % 3;
	default:
		return before + random_u64() % 15 + 1;
	}
}

static void make_run(struct buf *to, const struct step_at *steps, uint32_t n, uint64_t first)
{
	struct step_run_coder c = {0};

	step_run_begin(&c, first, 3, 4);
	for (uint32_t i = 0; i < n; i++) {
		step_run_add(&c, steps[i].addr);
		for (uint64_t k = 1; k < steps[i].times; k++)
			step_run_again(&c, 1);
	}
	step_run_end(&c, to);
	step_run_release(&c);
}

static bool is_whole(struct span payload, bool by_blocks)
{
	struct step_run_walk w;
	struct step_at some[3];
	int rc;

	if (!step_run_open(&w, payload))
		return false;
	while ((rc = by_blocks ? step_run_take(&w, some, 3) : step_run_next(&w)) > 0)
		;
	return rc == 0;
}

static void test_one_byte(void)
{
	static const uint8_t expected[] = {9, 3, 4, 4, 0x10, 3, 31, 4};
	struct step_at steps[] = {{0x10, 1}, {0x11, 1}, {0x20, 1}, {0x1e, 1}};
	struct buf b = {0};

	make_run(&b, steps, 4, 9);
	CHECK_EQ(b.n, sizeof(expected));
	CHECK(!memcmp(b.p, expected, sizeof(expected)));
	buf_release(&b);
}

static void test_repeated(void)
{
	static const uint8_t expected[] = {0, 3, 4, 2, 0x10, 0, 6, 5, 0, 1};
	struct step_at steps[] = {{0x10, 7}, {0x12, 2}};
	struct buf b = {0};
	struct step_run_walk w;

	make_run(&b, steps, 2, 0);
	CHECK_EQ(b.n, sizeof(expected));
	CHECK(!memcmp(b.p, expected, sizeof(expected)));
	CHECK(step_run_open(&w, buf_span(&b)));
	CHECK_EQ(w.at.times, 7);
	CHECK_EQ(step_run_next(&w), 1);
	CHECK_EQ(w.at.addr, 0x12);
	CHECK_EQ(w.at.times, 2);
	CHECK_EQ(step_run_next(&w), 0);
	buf_release(&b);
}

/* Decodes in both ways and compares with what was encoded. */
static void compare_run(struct span payload, const struct step_at *steps, uint32_t n, uint32_t max)
{
	struct step_at *some = malloc(max * sizeof(*some));
	struct step_run_walk w;
	uint32_t i = 0;
	int got;

	CHECK(step_run_open(&w, payload));
	CHECK_EQ(w.head.n, n);
	CHECK_EQ(w.head.start, steps[0].addr);
	do {
		CHECK_EQ(w.at.addr, steps[i].addr);
		CHECK_EQ(w.at.times, steps[i].times);
		i++;
	} while (i < n && step_run_next(&w) == 1);
	CHECK_EQ(i, n);
	CHECK_EQ(step_run_next(&w), 0);

	CHECK(step_run_open(&w, payload));
	i = 0;
	while ((got = step_run_take(&w, some, max)) > 0) {
		CHECK((uint32_t)got <= max && (uint32_t)got <= n - i);
		for (int k = 0; k < got && i < n; k++, i++)
			if (some[k].addr != steps[i].addr || some[k].times != steps[i].times)
				CHECK_EQ(i, UINT32_MAX);
	}
	CHECK_EQ(got, 0);
	CHECK_EQ(i, n);
	free(some);
}

static void test_round_trip(void)
{
	struct step_at steps[300];
	struct buf b = {0};

	seed = 4711;
	for (int round = 0; round < 300; round++) {
		uint32_t n = (uint32_t)(random_u64() % 300) + 1;
		uint64_t addr = random_u64() >> random_u64() % 64;

		for (uint32_t i = 0; i < n; i++) {
			steps[i].addr = addr = random_addr(addr);
			steps[i].times = random_u64() % 20 ? 1 : random_u64() % 500 + 1;
		}
		buf_reset(&b);
		make_run(&b, steps, n, random_u64() >> 1);
		compare_run(buf_span(&b), steps, n, (uint32_t)(random_u64() % 100) + 1);
	}
	buf_release(&b);
}

static void test_begin_again(void)
{
	struct step_run_coder c = {0};
	struct step_run_head head;
	struct buf b = {0};

	step_run_begin(&c, 0, 1, 1);
	step_run_add(&c, 5);
	step_run_add(&c, 7);
	step_run_again(&c, 1);
	step_run_begin(&c, UINT64_MAX - 1, UINT32_MAX, UINT32_MAX - 1);
	step_run_add(&c, UINT64_MAX);
	step_run_end(&c, &b);
	CHECK(step_run_head(&head, buf_span(&b)));
	CHECK_EQ(head.first, UINT64_MAX - 1);
	CHECK_EQ(head.space, UINT32_MAX);
	CHECK_EQ(head.generation, UINT32_MAX - 1);
	CHECK_EQ(head.n, 1);
	CHECK_EQ(head.start, UINT64_MAX);
	CHECK(is_whole(buf_span(&b), true));
	step_run_release(&c);
	buf_release(&b);
}

static void test_full(void)
{
	struct step_run_coder c = {0};
	uint32_t n = 0;

	step_run_begin(&c, 0, 1, 1);
	for (; !step_run_is_full(&c) && n < 2 * STEP_RUN_BYTES_BEST; n++)
		step_run_add(&c, 4 * n);
	CHECK_EQ(n, STEP_RUN_BYTES_BEST + 1);
	step_run_release(&c);
}

static void test_run_damage(void)
{
	struct step_at steps[] = {{0x1000, 3}, {0x1002, 1}, {0x1002 + FAR, 200}, {0x999999, 1}};
	/* each is refused: no steps; more steps than bytes; numbers that pass 2^64; a space of more
	 * than 32 bits; an iteration count cut off; one of 0 in long form; twice in a row; a
	 * difference of 0 in long form; a number of 65 bits; one byte too many */
	static const struct {
		uint8_t n, bytes[24];
	} bad[] = {{5, {0, 1, 1, 0, 5}}, {6, {0, 1, 1, 3, 5, 4}},
		{14, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 1, 1, 5}},
		{9, {0, 0x80, 0x80, 0x80, 0x80, 0x10, 1, 1, 5}}, {6, {0, 1, 1, 1, 5, 0}},
		{8, {0, 1, 1, 1, 5, 0, 0x80, 0}}, {9, {0, 1, 1, 1, 5, 0, 1, 0, 1}},
		{7, {0, 1, 1, 2, 5, 0x80, 0}},
		{15, {0, 1, 1, 2, 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}},
		{7, {0, 1, 1, 2, 5, 4, 4}}, {7, {0, 1, 1, 1, 5, 0, 0}}};
	struct step_run_head head;
	struct buf b = {0};

	make_run(&b, steps, 4, 77);
	CHECK(is_whole(buf_span(&b), false) && is_whole(buf_span(&b), true));
	for (size_t n = 0; n < b.n; n++)
		if (is_whole((struct span){b.p, n}, false) || is_whole((struct span){b.p, n}, true))
			CHECK_EQ(n, SIZE_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (is_whole((struct span){bad[i].bytes, bad[i].n}, false) ||
			is_whole((struct span){bad[i].bytes, bad[i].n}, true))
			CHECK_EQ(i, SIZE_MAX);
	CHECK(!is_whole((struct span){NULL, 0}, true));
	/* The head alone tells, so that nobody makes room for steps that cannot be there. */
	CHECK(!step_run_head(&head, (struct span){bad[1].bytes, bad[1].n}));
	buf_release(&b);
}

static void test_damage_keeps_front(void)
{
	static const uint8_t bytes[] = {0, 1, 1, 5, 5, 4, 4, 0, 0x80, 0x80, 0x80};
	struct step_run_walk w;
	struct step_at some[9];

	CHECK(step_run_open(&w, (struct span){bytes, sizeof(bytes)}));
	CHECK_EQ(step_run_take(&w, some, 9), 2); /* the third one's count is damaged */
	CHECK_EQ(step_run_take(&w, some, 9), -1);
	CHECK_EQ(step_run_take(&w, some, 9), -1);
}

static void test_code(void)
{
	struct step_code entries[] = {
		{.addr = 0x401000, .frame = 7, .n = 3, .bytes = {0x48, 0x89, 0xe5}},
		{.addr = 0x401003, .frame = 8, .n = 1, .bytes = {0xc3}},
		{.addr = 5, .frame = UINT32_MAX, .n = 15, .bytes = {1, 2, 3, [14] = 9}},
		{.addr = UINT64_MAX, .frame = 0, .n = 0},
	};
	struct step_code_head head = {
		.space = 2, .generation = UINT32_MAX, .pid = 4242, .is_64 = true, .n = 4};
	struct step_code_walk w;
	struct step_code got;
	struct buf b = {0};

	step_code_encode(&b, &head, entries);
	CHECK(step_code_open(&w, buf_span(&b)));
	CHECK(w.head.space == 2 && w.head.generation == UINT32_MAX && w.head.pid == 4242);
	CHECK(w.head.is_64 && w.head.n == 4);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(step_code_next(&w, &got), 1);
		CHECK_EQ(got.addr, entries[i].addr);
		CHECK_EQ(got.frame, entries[i].frame);
		CHECK_EQ(got.n, entries[i].n);
		CHECK(!memcmp(got.bytes, entries[i].bytes, sizeof(got.bytes)));
	}
	CHECK_EQ(step_code_next(&w, &got), 0);
	for (size_t n = 0; n < b.n; n++) { /* cut off anywhere it ends with damage */
		int rc = step_code_open(&w, (struct span){b.p, n}) ? 1 : -1;

		while (rc > 0)
			rc = step_code_next(&w, &got);
		CHECK_EQ(rc, -1);
	}
	buf_release(&b);
}

static int last_of_code(const uint8_t *bytes, size_t n)
{
	struct step_code_walk w;
	struct step_code got;
	int rc = step_code_open(&w, (struct span){bytes, n}) ? 1 : -1;

	while (rc > 0)
		rc = step_code_next(&w, &got);
	return rc;
}

static void test_code_damage(void)
{
	static const uint8_t good[] = {1, 0, 9, 0, 1, 2, 4, 1, 0x90};
	static const uint8_t unknown_flag[] = {1, 0, 9, 2, 1, 2, 4, 1, 0x90};
	static const uint8_t long_code[] = {
		1, 0, 9, 1, 1, 2, 4, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t left_over[] = {1, 0, 9, 0, 1, 2, 4, 1, 0x90, 0};
	static const uint8_t frame_below_0[] = {1, 0, 9, 0, 1, 2, 3, 1, 0x90};
	static const uint8_t too_many[] = {1, 0, 9, 0, 0xff, 0xff, 0xff, 0xff, 0xf, 2, 4, 0};

	CHECK_EQ(last_of_code(good, sizeof(good)), 0);
	CHECK_EQ(last_of_code(unknown_flag, sizeof(unknown_flag)), -1);
	CHECK_EQ(last_of_code(long_code, sizeof(long_code)), -1);
	CHECK_EQ(last_of_code(left_over, sizeof(left_over)), -1);
	CHECK_EQ(last_of_code(frame_below_0, sizeof(frame_below_0)), -1);
	CHECK_EQ(last_of_code(too_many, sizeof(too_many)), -1);
}

static void test_marks(void)
{
	struct buf b = {0};

	for (unsigned kind = 0; kind <= STEP_N_MARKS; kind++) {
		struct step_mark m = {.at = UINT64_MAX - kind,
			.kind = (enum step_mark_kind)kind,
			.a = INT64_MIN,
			.b = INT64_MAX,
			.c = -1,
			.text = UINT32_MAX};
		struct step_mark got;
		bool is_known = kind > 0 && kind < STEP_N_MARKS;

		buf_reset(&b);
		step_mark_encode(&b, &m);
		CHECK_EQ(step_mark_decode(&got, buf_span(&b)), is_known);
		if (!is_known)
			continue;
		CHECK(got.at == m.at && got.kind == m.kind && got.text == m.text);
		CHECK(got.a == m.a && got.b == m.b && got.c == m.c);
		for (size_t n = 0; n < b.n; n++)
			CHECK(!step_mark_decode(&got, (struct span){b.p, n}));
		buf_put_u8(&b, 0);
		CHECK(!step_mark_decode(&got, buf_span(&b)));
	}
	buf_release(&b);
}

static int last_of_data(struct span payload)
{
	struct step_data_walk w;
	struct step_datum got;
	int rc = step_data_open(&w, payload) ? 1 : -1;

	while (rc > 0)
		rc = step_data_next(&w, &got);
	return rc;
}

static void test_data(void)
{
	struct step_datum data[] = {
		{.at = 5,
			.addr = 0x7fff0000,
			.how = STEP_DATA_READ,
			.n = 8,
			.has_value = true,
			.value = {1, 2, 3, 4, 5, 6, 7, 8}},
		{.at = 5,
			.addr = 0x7ffe0000,
			.how = STEP_DATA_WRITE,
			.n = 64,
			.has_value = true,
			.value = {[63] = 0xff}},
		{.at = UINT64_MAX, .addr = 0, .how = STEP_DATA_READ | STEP_DATA_WRITE, .n = 64},
	};
	struct step_data_walk w;
	struct step_datum got;
	struct buf b = {0};

	step_data_encode(&b, data, 3);
	CHECK(step_data_open(&w, buf_span(&b)));
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(step_data_next(&w, &got), 1);
		CHECK_EQ(got.at, data[i].at);
		CHECK_EQ(got.addr, data[i].addr);
		CHECK(got.how == data[i].how && got.n == data[i].n);
		CHECK_EQ(got.has_value, data[i].has_value);
		CHECK(!memcmp(got.value, data[i].value, sizeof(got.value)));
	}
	CHECK_EQ(step_data_next(&w, &got), 0);
	for (size_t n = 0; n < b.n; n++)
		CHECK_EQ(last_of_data((struct span){b.p, n}), -1);
	buf_put_u8(&b, 0);
	CHECK_EQ(last_of_data(buf_span(&b)), -1);
	buf_reset(&b);
	step_data_encode(&b, NULL, 0);
	CHECK_EQ(last_of_data(buf_span(&b)), 0);
	buf_release(&b);
}

static void test_data_damage(void)
{
	static const uint8_t good[] = {1, 9, 2, 5, 1, 0xaa};
	static const uint8_t neither[] = {1, 9, 2, 4, 1, 0xaa}; /* read nor written */
	static const uint8_t unknown_bit[] = {1, 9, 2, 9, 1, 0xaa};
	static const uint8_t long_value[] = {1, 9, 2, 1, 65};
	static const uint8_t past_the_end[] = {
		2, 9, 2, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 1, 1};

	CHECK_EQ(last_of_data((struct span){good, sizeof(good)}), 0);
	CHECK_EQ(last_of_data((struct span){neither, sizeof(neither)}), -1);
	CHECK_EQ(last_of_data((struct span){unknown_bit, sizeof(unknown_bit)}), -1);
	CHECK_EQ(last_of_data((struct span){long_value, sizeof(long_value)}), -1);
	CHECK_EQ(last_of_data((struct span){past_the_end, sizeof(past_the_end)}), -1);
}

static void test_place(void)
{
	struct step_place places[] = {
		{1, STEP_PLACE_VARIABLE, 0x404040, 64, 3, 8, 9},
		{UINT32_MAX, STEP_PLACE_FILE, 0, UINT64_MAX, UINT32_MAX, UINT64_MAX, UINT32_MAX},
		{7, STEP_PLACE_NONE, UINT64_MAX - 1, 1, 0, 0, 0},
	};
	struct step_place got;
	struct buf b = {0};

	for (int i = 0; i < 3; i++) {
		buf_reset(&b);
		step_place_encode(&b, &places[i]);
		CHECK(step_place_decode(&got, buf_span(&b)));
		CHECK(got.space == places[i].space && got.kind == places[i].kind);
		CHECK(got.start == places[i].start && got.bytes == places[i].bytes);
		CHECK(got.image == places[i].image && got.name == places[i].name);
		CHECK_EQ(got.at, places[i].at);
		for (size_t n = 0; n < b.n; n++)
			CHECK(!step_place_decode(&got, (struct span){b.p, n}));
		buf_put_u8(&b, 0);
		CHECK(!step_place_decode(&got, buf_span(&b)));
	}
	buf_release(&b);
}

static void test_place_damage(void)
{
	static const uint8_t good[] = {1, 4, 9, 2, 0, 0, 0};
	static const uint8_t unknown_kind[] = {1, 5, 9, 2, 0, 0, 0};
	static const uint8_t empty[] = {1, 4, 9, 0, 0, 0, 0};
	static const uint8_t past_the_end[] = {
		1, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 0, 0, 0};
	struct step_place got;

	CHECK(step_place_decode(&got, (struct span){good, sizeof(good)}));
	CHECK(!step_place_decode(&got, (struct span){unknown_kind, sizeof(unknown_kind)}));
	CHECK(!step_place_decode(&got, (struct span){empty, sizeof(empty)}));
	CHECK(!step_place_decode(&got, (struct span){past_the_end, sizeof(past_the_end)}));
}

int main(void)
{
	static const struct test tests[] = {
		{"places are read back", test_place},
		{"what is no place is refused", test_place_damage},
		{"a step in a straight line is one byte", test_one_byte},
		{"iterations of a string instruction are counted", test_repeated},
		{"any row of addresses comes back, one by one and in blocks", test_round_trip},
		{"a coder begins anew without what it had before", test_begin_again},
		{"a run is full at the bytes that are best", test_full},
		{"a damaged run is refused", test_run_damage},
		{"steps in front of damage are given", test_damage_keeps_front},
		{"code comes back with frames and bytes", test_code},
		{"damaged code is refused", test_code_damage},
		{"marks of all kinds come back, others are refused", test_marks},
		{"data come back with their values", test_data},
		{"damaged data are refused", test_data_damage},
	};

	return RUN_TESTS(tests);
}
