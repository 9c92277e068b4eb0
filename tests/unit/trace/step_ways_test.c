/* SPDX-License-Identifier: MIT */
/* Blocks and ways to bytes and back, and bytes that are none. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "trace/step_ways.h"

static uint64_t seed = 0x123456789;

static uint64_t random_u64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void make_way(struct buf *to, const uint32_t *blocks, size_t n)
{
	static struct step_way_coder c;

	step_way_begin(&c, 9, 1, 0, blocks[0]);
	step_way_add(&c, blocks + 1, n - 1);
	c.head.n = (uint32_t)(2 * n - 1);
	c.head.cut = 1;
	step_way_end(&c, to);
	step_way_release(&c);
	memset(&c, 0, sizeof(c));
}

static bool says_as(uint32_t minor, struct span payload, const uint32_t *blocks, size_t n)
{
	static struct step_way_walk w;
	uint32_t block;
	bool is_same = step_way_open(&w, minor, payload);

	for (size_t i = 0; is_same && i < n; i++)
		is_same = step_way_next(&w, &block) == 1 && block == blocks[i];
	is_same = is_same && step_way_next(&w, &block) == 0;
	step_way_walk_release(&w);
	memset(&w, 0, sizeof(w));
	return is_same;
}

static bool says(struct span payload, const uint32_t *blocks, size_t n)
{
	return says_as(RECORD_STEP_WAY, payload, blocks, n);
}

static void the_example_of_the_document(void)
{
	static const uint32_t blocks[] = {4, 5, 4, 5, 4, 5, 4, 5, 4, 5, 4, 5, 4, 5, 4, 5, 6};
	static const uint8_t bytes[] = {
		9, 1, 0, 0x21, 1, 4, 0x0d, 2, 2, 2, 1, 0, 0, 0, 0, 0, 0, 0x1e, 2, 3};
	struct step_way_head head;
	struct buf b = {0};

	make_way(&b, blocks, 17);
	CHECK_EQ(b.n, sizeof(bytes));
	CHECK(!memcmp(b.p, bytes, sizeof(bytes)));
	CHECK(step_way_head(&head, buf_span(&b)));
	CHECK_EQ(head.first, 9);
	CHECK_EQ(head.n, 33);
	CHECK_EQ(head.cut, 1);
	CHECK(says(buf_span(&b), blocks, 17));
	buf_release(&b);
}

static void short_ways_are_still_read(void)
{
	static const uint32_t blocks[] = {4, 5, 4, 5, 4, 5, 4, 5, 4, 5, 6};
	static const uint8_t bytes[] = {9, 1, 0, 0x15, 1, 4, 0x0a, 2, 2, 2, 1, 0, 0, 0, 0x12, 2, 3};
	struct span payload = {bytes, sizeof(bytes)};

	CHECK(says_as(RECORD_STEP_SHORT_WAY, payload, blocks, 11));
	CHECK(!says_as(RECORD_STEP_WAY, payload, blocks, 11));
}

/* More ways than numbers that tell them apart: nothing of one is a guess of another. */
static void ways_know_nothing_of_those_before(void)
{
	static struct step_way_coder c;
	static struct step_way_walk w;
	struct buf first = {0}, b = {0};
	uint32_t blocks[600], block;

	for (size_t i = 0; i < 600; i++)
		blocks[i] = (uint32_t)(i * i % 37);
	for (int round = 0; round < 300; round++) {
		buf_reset(&b);
		step_way_begin(&c, 9, 1, 0, blocks[0]);
		step_way_add(&c, blocks + 1, 599);
		c.head.n = 600;
		step_way_end(&c, round ? &b : &first);
		if (round)
			CHECK(span_equal(buf_span(&b), buf_span(&first)));
		CHECK(step_way_open(&w, RECORD_STEP_WAY, buf_span(&first)));
		for (size_t i = 0; i < 600; i++)
			CHECK(step_way_next(&w, &block) == 1 && block == blocks[i]);
		CHECK_EQ(step_way_next(&w, &block), 0);
	}
	step_way_release(&c);
	step_way_walk_release(&w);
	buf_release(&first);
	buf_release(&b);
}

/* Loops, and now and then anything. */
static void any_way_comes_back(void)
{
	uint32_t *blocks = calloc(20000, sizeof(*blocks));
	struct buf b = {0};

	for (int round = 0; round < 20; round++) {
		size_t n = 1 + random_u64() % 20000;
		uint32_t period = 1 + (uint32_t)(random_u64() % 50);

		for (size_t i = 0; i < n; i++)
			blocks[i] = random_u64() % 100 ? (uint32_t)(i % period) * 3
						       : (uint32_t)(random_u64() % 100000);
		buf_reset(&b);
		make_way(&b, blocks, n);
		CHECK(says(buf_span(&b), blocks, n));
		CHECK(b.n < n / 5 + 500);
	}
	free(blocks);
	buf_release(&b);
}

static void a_loop_costs_nothing(void)
{
	uint32_t *blocks = calloc(1000000, sizeof(*blocks));
	struct buf b = {0};

	for (size_t i = 0; i < 1000000; i++)
		blocks[i] = (uint32_t)(i % 3);
	make_way(&b, blocks, 1000000);
	CHECK(b.n < 32);
	CHECK(says(buf_span(&b), blocks, 1000000));
	free(blocks);
	buf_release(&b);
}

static void cut_and_changed_ways_are_damage(void)
{
	static const uint32_t blocks[] = {4, 5, 4, 5, 4, 5, 4, 5, 4, 5, 6};
	struct buf b = {0};

	make_way(&b, blocks, 11);
	for (size_t n = 0; n < b.n; n++)
		CHECK(!says((struct span){b.p, n}, blocks, 11));
	buf_put_u8(&b, 1); /* the rounds of a string instruction that is not there */
	CHECK(!says(buf_span(&b), blocks, 11));
	buf_release(&b);
	/* A right guess of nothing; a block behind 2^24; no steps; too many. */
	CHECK(!says((struct span){(const uint8_t *)"\x00\x01\x00\x02\x00\x04\x02\x04\x03", 9},
		blocks, 1));
	CHECK(!says(
		(struct span){
			(const uint8_t *)"\x00\x01\x00\x02\x00\x04\x06\x02\x80\x80\x80\x10\x03",
			13},
		blocks, 1));
	CHECK(!says(
		(struct span){(const uint8_t *)"\x00\x01\x00\x00\x00\x04\x01\x03", 8}, blocks, 1));
	CHECK(!says(
		(struct span){(const uint8_t *)"\x00\x01\x00\x81\x80\x80\x02\x00\x04\x01\x03", 11},
		blocks, 1));
	CHECK(says(
		(struct span){(const uint8_t *)"\x00\x01\x00\x80\x80\x80\x02\x00\x04\x01\x03", 11},
		blocks, 1));
}

static void blocks_come_back(void)
{
	struct step_block all[] = {{.addr = 0x401000, .n = 3, .lengths = {1, 15, 3}, .strings = 2},
		{.addr = 0x401013, .n = 1, .lengths = {2}},
		{.addr = 0x7fffffffffffffff, .n = 2, .lengths = {4, 4}}};
	const struct step_blocks_head head = {.space = 7, .first = 100, .n = 3};
	struct step_blocks_walk w;
	struct step_block block;
	struct buf b = {0};

	step_blocks_encode(&b, &head, all);
	CHECK(step_blocks_open(&w, buf_span(&b)));
	CHECK_EQ(w.head.first, 100);
	for (size_t i = 0; i < 3; i++) {
		CHECK_EQ(step_blocks_next(&w, &block), 1);
		CHECK_EQ(block.addr, all[i].addr);
		CHECK_EQ(block.strings, all[i].strings);
		CHECK(!memcmp(block.lengths, all[i].lengths, STEP_BLOCK_INSNS_MAX));
	}
	CHECK_EQ(step_blocks_next(&w, &block), 0);
	for (size_t n = 0; n < b.n; n++) {
		struct span cut = {b.p, n};
		int rc = step_blocks_open(&w, cut) ? 1 : -1;

		while (rc > 0)
			rc = step_blocks_next(&w, &block);
		CHECK_EQ(rc, -1);
	}
	b.p[b.n - 1] = 0; /* an instruction of no bytes */
	CHECK(step_blocks_open(&w, buf_span(&b)));
	step_blocks_next(&w, &block);
	step_blocks_next(&w, &block);
	CHECK_EQ(step_blocks_next(&w, &block), -1);
	buf_release(&b);
}

int main(void)
{
	static const struct test tests[] = {
		{"a way is the bytes that the document shows", the_example_of_the_document},
		{"short ways, as older versions wrote them, are still read",
			short_ways_are_still_read},
		{"any way comes back", any_way_comes_back},
		{"ways know nothing of those before", ways_know_nothing_of_those_before},
		{"a loop costs nothing", a_loop_costs_nothing},
		{"damaged ways are refused", cut_and_changed_ways_are_damage},
		{"blocks come back, damaged ones are refused", blocks_come_back},
	};

	return RUN_TESTS(tests);
}
