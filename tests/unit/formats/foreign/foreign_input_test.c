/* SPDX-License-Identifier: MIT */
#include "../../check.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buf.h"
#include "formats/foreign/foreign_input.h"

#define MUCH ((size_t)3 << 20)

static struct foreign_input *input_of(const struct buf *b)
{
	return foreign_input_of_bytes(buf_span(b), "x");
}

static void put_gzip(struct buf *b, const void *p, size_t n)
{
	size_t max = n + n / 100 + 1000;
	uint8_t *to = malloc(max);
	z_stream z = {
		.next_in = (Bytef *)p, .avail_in = (uInt)n, .next_out = to, .avail_out = (uInt)max};

	CHECK(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
	buf_put(b, to, max - z.avail_out);
	deflateEnd(&z);
	free(to);
}

static void put_zstd(struct buf *b, const void *p, size_t n)
{
	size_t max = ZSTD_compressBound(n);
	uint8_t *to = malloc(max);

	buf_put(b, to, ZSTD_compress(to, max, p, n, 1));
	free(to);
}

/* Numbers of four bytes, so that each place is known by what is there. */
static void put_numbers(struct buf *b, size_t n_bytes)
{
	for (uint32_t i = 0; i < n_bytes / 4; i++)
		buf_put_u32(b, i * 2654435761u);
}

static void check_numbers(struct foreign_input *in, size_t n_bytes)
{
	struct buf all = {0};
	size_t at = 0;

	put_numbers(&all, n_bytes);
	for (size_t step = 1; at < n_bytes; step = step * 3 % 100003) {
		struct span peeked = foreign_input_peek(in, step), taken;
		size_t left = n_bytes - at;

		CHECK_EQ(peeked.n, step < left ? step : left);
		taken = foreign_input_take(in, step);
		if (taken.n != peeked.n || memcmp(taken.p, all.p + at, taken.n) != 0) {
			CHECK(!"the same bytes");
			break;
		}
		at += taken.n;
		CHECK_EQ(foreign_input_offset(in), at);
		if (foreign_input_skip(in, 7))
			at += 7;
		else
			at = n_bytes;
	}
	CHECK(foreign_input_is_at_end(in));
	CHECK_EQ(foreign_input_failure(in, NULL), 0);
	buf_release(&all);
}

static void test_plain(void)
{
	struct buf b = {0};
	struct foreign_input *in;
	uint32_t number;

	put_numbers(&b, MUCH);
	in = input_of(&b);
	CHECK(foreign_input_is_seekable(in));
	CHECK_EQ(foreign_input_bytes(in), MUCH);
	CHECK(foreign_input_at(in, MUCH - 4, &number, 4));
	CHECK_EQ(number, (uint32_t)(MUCH / 4 - 1) * 2654435761u);
	CHECK(!foreign_input_at(in, MUCH - 3, &number, 4));
	check_numbers(in, MUCH);
	foreign_input_close(in);
	buf_release(&b);
}

static void test_packed(void)
{
	for (int i = 0; i < 4; i++) {
		void (*put)(struct buf *, const void *, size_t) = i & 1 ? put_zstd : put_gzip;
		struct buf plain = {0}, b = {0};
		struct foreign_input *in;

		put_numbers(&plain, MUCH);
		if (i < 2) {
			put(&b, plain.p, plain.n);
		} else { /* two members */
			put(&b, plain.p, 1000);
			put(&b, plain.p + 1000, plain.n - 1000);
		}
		in = input_of(&b);
		CHECK(!foreign_input_is_seekable(in));
		check_numbers(in, MUCH);
		foreign_input_close(in);
		buf_release(&plain);
		buf_release(&b);
	}
}

static void test_cut(void)
{
	for (int i = 0; i < 2; i++) {
		struct buf plain = {0}, b = {0};
		struct foreign_input *in;
		struct err err = {0};

		put_numbers(&plain, MUCH);
		(i ? put_zstd : put_gzip)(&b, plain.p, plain.n);
		b.n -= b.n / 3;
		in = input_of(&b);
		while (foreign_input_take(in, 1 << 16).n)
			continue;
		CHECK(foreign_input_failure(in, &err) < 0);
		CHECK(strstr(err.text, "ends in the midst of what is packed") != NULL);
		foreign_input_close(in);
		in = input_of(&b);
		b.p[b.n / 2] ^= 0x55;
		b.p[b.n / 2 + 1] ^= 0x55;
		while (foreign_input_take(in, 1 << 16).n)
			continue;
		CHECK(foreign_input_failure(in, &err) < 0);
		CHECK(foreign_input_wrong(in, &err, "looks odd") < 0);
		CHECK(strstr(err.text, "looks odd") == NULL);
		foreign_input_close(in);
		buf_release(&plain);
		buf_release(&b);
	}
}

static void test_lines(void)
{
	static const char *const expected[] = {"a", "", "bc", "last"};
	static const char text[] = "a\r\n\nbc\nlast";
	struct foreign_input *in =
		foreign_input_of_bytes((struct span){(const uint8_t *)text, strlen(text)}, "x");
	struct span line;
	struct err err = {0};

	for (size_t i = 0; i < 4; i++) {
		CHECK(foreign_input_line(in, &line));
		CHECK_EQ(line.n, strlen(expected[i]));
		CHECK(!memcmp(line.p, expected[i], line.n));
		CHECK_EQ(foreign_input_line_number(in), i + 1);
	}
	CHECK(!foreign_input_line(in, &line));
	CHECK(foreign_input_wrong(in, &err, "what %d", 7) < 0);
	CHECK_STR(err.text, "'x':4: what 7");
	foreign_input_close(in);
}

static void test_long_line(void)
{
	struct buf b = {0};
	struct foreign_input *in;
	struct span line;

	memset(buf_put_zeros(&b, FOREIGN_LINE_MAX + 100), 'a', FOREIGN_LINE_MAX + 100);
	buf_put_cstr(&b, "\nnext\n");
	in = input_of(&b);
	CHECK(foreign_input_line(in, &line));
	CHECK_EQ(line.n, FOREIGN_LINE_MAX);
	CHECK_EQ(foreign_input_n_cut(in), 1);
	CHECK(foreign_input_line(in, &line));
	CHECK_EQ(line.n, 4);
	CHECK_EQ(foreign_input_n_cut(in), 1);
	CHECK(!foreign_input_line(in, &line));
	foreign_input_close(in);
	buf_release(&b);
}

static void test_line_of_one_block(void)
{
	static const size_t blocks[] = {
		256 << 10, 512 << 10, FOREIGN_LINE_MAX - 1, FOREIGN_LINE_MAX};

	for (size_t i = 0; i < 4; i++) {
		struct buf b = {0};
		struct foreign_input *in;
		struct span line;

		memset(buf_put_zeros(&b, blocks[i]), 'a', blocks[i]);
		in = input_of(&b);
		CHECK(foreign_input_line(in, &line));
		CHECK_EQ(line.n, blocks[i]);
		CHECK_EQ(foreign_input_n_cut(in), 0);
		CHECK(!foreign_input_line(in, &line));
		foreign_input_close(in);
		buf_release(&b);
	}
}

int main(void)
{
	static const struct test tests[] = {
		{"plain bytes are seen in order, whatever is taken at once", test_plain},
		{"what is packed is unpacked, of one member or several", test_packed},
		{"what is cut or damaged ends with a sentence", test_cut},
		{"lines end with either line end, or with the file", test_lines},
		{"a line that is too long is cut and counted", test_long_line},
		{"a line as long as a block is whole", test_line_of_one_block},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
