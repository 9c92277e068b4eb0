/* SPDX-License-Identifier: MIT */
/* Spans and cursors, the growing buffer, and CRC-32C with both of its ways. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/crc32c.c" /* its static functions are compared with each other */
#include "base/span.h"
#include "check.h"

#define CURSOR(...)                                                                                \
	cursor_of((struct span){                                                                   \
		(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})})

static void test_numbers(void)
{
	struct cursor c = CURSOR(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

	CHECK_EQ(cursor_u8(&c), 0x01);
	CHECK_EQ(cursor_u16(&c), 0x0302);
	CHECK_EQ(cursor_u32(&c), 0x07060504);
	CHECK_EQ(cursor_u64(&c), 0x0f0e0d0c0b0a0908u);
	CHECK_EQ(cursor_left(&c), 0);
	CHECK(!c.failed);
}

static void test_failed_stays_failed(void)
{
	struct cursor c = CURSOR(1, 2, 3);
	const uint8_t *before;

	CHECK_EQ(cursor_u8(&c), 1);
	before = c.p;
	CHECK_EQ(cursor_u32(&c), 0);
	CHECK(c.failed);
	CHECK(c.p == before);
	CHECK_EQ(cursor_u8(&c), 0); /* two bytes are left, but the position is no longer known */
	CHECK_EQ(cursor_bytes(&c, 1).n, 0);
	CHECK(!cursor_cstr(&c));
	CHECK_EQ(cursor_uleb(&c), 0);
	CHECK_EQ(cursor_sleb(&c), 0);
	CHECK(c.p == before);
}

static void test_empty(void)
{
	struct cursor none = cursor_of((struct span){NULL, 0});
	struct cursor nothing_wanted = cursor_of((struct span){NULL, 0});
	uint64_t word = 7;

	CHECK_EQ(cursor_left(&none), 0);
	CHECK(!cursor_take(&none, &word, sizeof(word)));
	CHECK_EQ(word, 0);
	CHECK(none.failed);
	CHECK_EQ(cursor_bytes(&nothing_wanted, 0).n, 0);
	CHECK(!nothing_wanted.failed);
	CHECK(!cursor_cstr(&nothing_wanted));
	CHECK(nothing_wanted.failed);
}

static void test_huge_lengths(void)
{
	struct cursor c = CURSOR(1, 2, 3, 4);

	CHECK_EQ(cursor_bytes(&c, UINT64_MAX).n, 0);
	CHECK(c.failed);
	c = CURSOR(1, 2, 3, 4);
	cursor_skip(&c, 5);
	CHECK(c.failed);
	c = CURSOR(1, 2, 3, 4);
	cursor_skip(&c, 4);
	CHECK(!c.failed);
}

static void test_cstr(void)
{
	struct cursor c = CURSOR('a', 'b', 0, 0, 'c');

	CHECK_STR(cursor_cstr(&c), "ab");
	CHECK_STR(cursor_cstr(&c), "");
	CHECK(!cursor_cstr(&c));
	CHECK(c.failed);
}

static void test_sub_spans(void)
{
	static const uint8_t bytes[8] = {'a', 'b', 0, 'c', 'd', 'e', 'f', 'g'};
	struct span s = {bytes, sizeof(bytes)};

	CHECK(span_sub(s, 2, 3).p == bytes + 2);
	CHECK_EQ(span_sub(s, 2, 3).n, 3);
	CHECK(span_sub(s, 8, 0).p == bytes + 8);
	CHECK(!span_sub(s, 9, 0).p);
	CHECK(!span_sub(s, 1, 8).p);
	CHECK(!span_sub(s, 1, UINT64_MAX).p);
	CHECK(!span_sub(s, UINT64_MAX, 2).p);
	CHECK(!span_sub((struct span){NULL, 0}, 0, 0).p);
	CHECK_STR(span_cstr(s, 1), "b");
	CHECK(!span_cstr(s, 3)); /* no NUL behind it */
	CHECK(!span_cstr(s, 8));
	CHECK(!span_cstr(s, UINT64_MAX));
}

/* A value and its LEB128 bytes as the DWARF standard's table (figures 22, 23) or arithmetic gives.
 */
static void test_uleb_values(void)
{
	static const uint64_t values[] = {0, 2, 127, 128, 129, 12857, 0x7fffffff, 1ull << 56,
		(1ull << 63) - 1, 1ull << 63, UINT64_MAX};
	static const size_t sizes[] = {1, 1, 1, 2, 2, 2, 5, 9, 9, 10, 10};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct buf b = {0};
		struct cursor c;

		buf_put_uleb(&b, values[i]);
		CHECK_EQ(b.n, sizes[i]);
		c = cursor_of(buf_span(&b));
		CHECK_EQ(cursor_uleb(&c), values[i]);
		CHECK(!c.failed);
		CHECK_EQ(cursor_left(&c), 0);
		for (size_t n = 0; n < b.n; n++) {
			c = cursor_of((struct span){b.p, n});
			CHECK_EQ(cursor_uleb(&c), 0);
			CHECK(c.failed);
		}
		buf_release(&b);
	}
}

static void test_sleb_values(void)
{
	static const int64_t values[] = {0, 2, -2, 63, 64, -64, -65, 127, -127, 128, -128, 129,
		-129, INT32_MIN, INT64_MAX, INT64_MIN};
	static const size_t sizes[] = {1, 1, 1, 1, 2, 1, 2, 2, 2, 2, 2, 2, 2, 5, 10, 10};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct buf b = {0};
		struct cursor c;

		buf_put_sleb(&b, values[i]);
		CHECK_EQ(b.n, sizes[i]);
		c = cursor_of(buf_span(&b));
		CHECK_EQ(cursor_sleb(&c), values[i]);
		CHECK(!c.failed);
		CHECK_EQ(cursor_left(&c), 0);
		for (size_t n = 0; n < b.n; n++) {
			c = cursor_of((struct span){b.p, n});
			CHECK_EQ(cursor_sleb(&c), 0);
			CHECK(c.failed);
		}
		buf_release(&b);
	}
}

static void test_leb_padded(void)
{
	struct cursor c = CURSOR(0x85, 0x80, 0x80, 0x00, 0x55);

	CHECK_EQ(cursor_uleb(&c), 5);
	CHECK_EQ(cursor_u8(&c), 0x55);
	c = CURSOR(0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00);
	CHECK_EQ(cursor_uleb(&c), 5);
	CHECK(!c.failed);
	c = CURSOR(0xfe, 0xff, 0x7f, 0x55);
	CHECK_EQ(cursor_sleb(&c), -2);
	CHECK_EQ(cursor_u8(&c), 0x55);
	c = CURSOR(0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f);
	CHECK_EQ(cursor_sleb(&c), -2);
	CHECK(!c.failed);
}

static void test_uleb_too_wide(void)
{
	struct cursor c = CURSOR(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02);

	CHECK_EQ(cursor_uleb(&c), 0);
	CHECK(c.failed);
	c = CURSOR(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01);
	CHECK_EQ(cursor_uleb(&c), 0);
	CHECK(c.failed);
}

static void test_sleb_too_wide(void)
{
	/* 2^64 + something, and a tenth byte that is neither all sign nor all zero */
	struct cursor c = CURSOR(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02);

	cursor_sleb(&c);
	CHECK(c.failed);
	c = CURSOR(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f);
	cursor_sleb(&c);
	CHECK(c.failed);
	c = CURSOR(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01);
	cursor_sleb(&c);
	CHECK(c.failed);
}

static void test_leb_endless(void)
{
	uint8_t bytes[64];
	struct cursor c;

	memset(bytes, 0x80, sizeof(bytes));
	c = cursor_of((struct span){bytes, sizeof(bytes)});
	CHECK_EQ(cursor_uleb(&c), 0);
	CHECK(c.failed);
	c = cursor_of((struct span){bytes, sizeof(bytes)});
	CHECK_EQ(cursor_sleb(&c), 0);
	CHECK(c.failed);
	memset(bytes, 0xff, sizeof(bytes));
	c = cursor_of((struct span){bytes, sizeof(bytes)});
	CHECK_EQ(cursor_sleb(&c), 0);
	CHECK(c.failed);
}

static void test_buf_layout(void)
{
	static const uint8_t expected[] = {0x01, 0x03, 0x02, 0x07, 0x06, 0x05, 0x04, 0x0f, 0x0e,
		0x0d, 0x0c, 0x0b, 0x0a, 0x09, 0x08, 'x', 'y', '4', '2'};
	struct buf b = {0};

	buf_put_u8(&b, 0x01);
	buf_put_u16(&b, 0x0203);
	buf_put_u32(&b, 0x04050607);
	buf_put_u64(&b, 0x08090a0b0c0d0e0fu);
	buf_put_cstr(&b, "xy");
	buf_put(&b, NULL, 0);
	buf_printf(&b, "%d", 42);
	CHECK_EQ(b.n, sizeof(expected));
	CHECK(b.n == sizeof(expected) && !memcmp(b.p, expected, sizeof(expected)));
	CHECK_EQ(buf_span(&b).n, b.n);
	buf_reset(&b);
	CHECK_EQ(b.n, 0);
	CHECK(b.cap > 0);
	CHECK_STR(buf_text(&b), "");
	buf_release(&b);
	CHECK(!b.p && !b.n && !b.cap);
	buf_release(&b);
}

static void test_buf_text(void)
{
	struct buf b = {0};

	CHECK_STR(buf_text(&b), "");
	for (int i = 0; i < 100; i++) {
		buf_printf(&b, "%c", 'a' + i % 26);
		CHECK_EQ(strlen(buf_text(&b)), (size_t)i + 1);
	}
	CHECK_EQ(b.n, 100); /* the NUL is not content */
	buf_printf(&b, "%5000d", 1);
	CHECK_EQ(b.n, 5100);
	CHECK_EQ(b.p[5099], '1');
	CHECK_EQ(b.p[99], 'a' + 99 % 26);
	buf_release(&b);
}

static void test_crc_vectors(void)
{
	uint8_t bytes[32];

	/* RFC 3720 appendix B.4, and the usual check value */
	CHECK_EQ(crc32c(0, "123456789", 9), 0xe3069283);
	memset(bytes, 0, sizeof(bytes));
	CHECK_EQ(crc32c(0, bytes, 32), 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	CHECK_EQ(crc32c(0, bytes, 32), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		bytes[i] = (uint8_t)i;
	CHECK_EQ(crc32c(0, bytes, 32), 0x46dd794e);
	CHECK_EQ(crc32c(0, "", 0), 0);
	CHECK_EQ(crc32c(0x1234, "", 0), 0x1234);
}

static void test_crc_pieces(void)
{
	static const char text[] = "the quick brown fox jumps over the lazy dog";
	uint32_t whole = crc32c(0, text, sizeof(text));

	for (size_t cut = 0; cut <= sizeof(text); cut++)
		CHECK_EQ(crc32c(crc32c(0, text, cut), text + cut, sizeof(text) - cut), whole);
}

static void test_crc_ways_agree(void)
{
	uint8_t bytes[128];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 167 + 13);
	for (size_t start = 0; start < 9; start++)
		for (size_t n = 0; n + start <= sizeof(bytes); n++)
			CHECK_EQ(by_instruction(0x5a5a1234, bytes + start, n),
				by_bits(0x5a5a1234, bytes + start, n));
}

int main(void)
{
	static const struct test tests[] = {
		{"a cursor reads little-endian numbers up to the last byte", test_numbers},
		{"a cursor that failed moves no more and gives zeros", test_failed_stays_failed},
		{"a cursor over nothing fails at the first byte wanted", test_empty},
		{"a length far past the end fails without overflow", test_huge_lengths},
		{"a text without a NUL fails, an empty one does not", test_cstr},
		{"a part of a span lies inside it or is empty", test_sub_spans},
		{"unsigned LEB128 round-trips in the shortest form and fails when cut",
			test_uleb_values},
		{"signed LEB128 round-trips in the shortest form and fails when cut",
			test_sleb_values},
		{"padded LEB128 is read and all of it consumed", test_leb_padded},
		{"unsigned LEB128 of more than 64 bits fails", test_uleb_too_wide},
		{"signed LEB128 of more than 64 bits fails", test_sleb_too_wide},
		{"endless LEB128 padding fails", test_leb_endless},
		{"a buffer holds what was put, little-endian and in order", test_buf_layout},
		{"the text of a buffer ends with a NUL that is not content", test_buf_text},
		{"CRC-32C gives the published check values", test_crc_vectors},
		{"CRC-32C in two pieces equals CRC-32C of the whole", test_crc_pieces},
	};
	static const struct test with_sse42[] = {
		{"CRC-32C by instruction equals CRC-32C by bits", test_crc_ways_agree},
	};
	int rc = RUN_TESTS(tests);

	if (__builtin_cpu_supports("sse4.2"))
		rc |= RUN_TESTS(with_sse42);
	else
		printf("skip %s: this CPU has no SSE 4.2\n", with_sse42[0].sentence);
	return rc;
}
