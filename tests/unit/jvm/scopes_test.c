/* SPDX-License-Identifier: MIT */
/* Compressed numbers, line tables and scopes, by hand from their description. */
#include "jvm/scopes.h"

#include "../check.h"
#include "jvm/bytecode_lines.h"
#include "jvm/unsigned5.h"

static uint32_t number(const char *bytes, size_t n, unsigned least)
{
	struct cursor c = cursor_of((struct span){(const uint8_t *)bytes, n});

	return unsigned5_read(&c, least);
}

static void test_numbers(void)
{
	CHECK_EQ(number("\0", 1, 0), 0);
	CHECK_EQ(number("\xbf", 1, 0), 191);
	CHECK_EQ(number("\xc0\x00", 2, 0), 192);
	CHECK_EQ(number("\xc0\x01", 2, 0), 256);
	CHECK_EQ(number("\x01", 1, 1), 0);
	CHECK_EQ(number("\xbf", 1, 1), 190);
	CHECK_EQ(number("\xc0\x01", 2, 1), 191);
	CHECK_EQ(number("\xff\xff\xff\xff\xff", 5, 1),
		(uint32_t)(254ull * (1 + 64 + 4096 + 262144 + 16777216)));
}

static void test_cut_numbers(void)
{
	struct cursor c = cursor_of((struct span){(const uint8_t *)"\xc0", 1});

	unsigned5_read(&c, 0);
	CHECK(c.failed);
	c = cursor_of((struct span){(const uint8_t *)"\0", 1});
	unsigned5_read(&c, 1);
	CHECK(c.failed);
}

static void test_lines(void)
{
	/* 0 -> 10 (long: 0, +20 signed), 3 -> 12, 8 -> 11 (long), end */
	static const uint8_t stream[] = {0xff, 0, 20, 3 << 3 | 2, 0xff, 10, 1, 0, 9};
	struct line_entries lines = {0};

	line_entries_read(&lines, (struct span){stream, sizeof(stream)}, 0);
	CHECK_EQ(lines.n, 3);
	CHECK_EQ(line_entries_find(&lines, 0), 10);
	CHECK_EQ(line_entries_find(&lines, 2), 10);
	CHECK_EQ(line_entries_find(&lines, 3), 12);
	CHECK_EQ(line_entries_find(&lines, 7), 12);
	CHECK_EQ(line_entries_find(&lines, 100), 11);
	vec_release(&lines);
}

static void test_scopes(void)
{
	static const int32_t pcs[] = {-1, 0, 0, 0, 20, 1, 0, 0, 40, 4, 0, 0, INT32_MAX, 0, 0, 0};
	/* at 1: outermost, method 1, bytecode 4; at 4: in 1, method 2, bytecode 0 */
	static const uint8_t data[] = {0xff, 0, 1, 5, 1, 2, 1};
	static const uint64_t metadata[] = {0x1000, 0x2000};
	struct scopes s = {{(const uint8_t *)pcs, sizeof(pcs)}, {data, sizeof(data)},
		{(const uint8_t *)metadata, sizeof(metadata)}, 0};
	struct vm_layout l = {.pc_desc_bytes = 16,
		.pc_desc_pc = {0, 4, true},
		.pc_desc_scope = {4, 4, true},
		.invocation_bci = {-1, true}};
	struct scope found[4];

	CHECK_EQ(scopes_find(&s, &l, 20, found, 4), 1);
	CHECK(found[0].method == 0x1000 && found[0].bci == 4);
	CHECK_EQ(scopes_find(&s, &l, 21, found, 4), 2);
	CHECK(found[0].method == 0x2000 && found[0].bci == 0);
	CHECK(found[1].method == 0x1000 && found[1].bci == 4);
	CHECK_EQ(scopes_find(&s, &l, 21, found, 1), 0);
	/* Behind the last descriptor but that of the end. */
	CHECK_EQ(scopes_find(&s, &l, 41, found, 4), 2);
	CHECK(found[0].method == 0x2000 && found[1].method == 0x1000);
	s.metadata.n = 8; /* the index of a method that is not there */
	CHECK_EQ(scopes_find(&s, &l, 21, found, 4), 0);
	s.data.n = 5;
	CHECK_EQ(scopes_find(&s, &l, 21, found, 4), 0);
}

int main(void)
{
	static const struct test tests[] = {
		{"compressed numbers are read, with and without a byte 0", test_numbers},
		{"a number that is cut, or has a byte it cannot have, fails", test_cut_numbers},
		{"lines are found by bytecode", test_lines},
		{"scopes lead from the inlined method to the outermost", test_scopes},
	};

	return RUN_TESTS(tests);
}
