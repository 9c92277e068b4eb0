/* SPDX-License-Identifier: MIT */
/* printf of scripts: conversions on canonical values. */
#include "check.h"
#include "probe_print_world.h"

/* What printf(text, args...) prints. */
static const char *formatted(
	const char *text, struct shape **shapes, uint32_t n, const struct buf *values)
{
	static struct buf out;
	struct stream_format format = {
		.kind = FORMAT_PRINTF, .text = text, .args = shapes, .n_args = n};
	struct printer *p = printer_new(NULL, PRINTER_TEXT, &world_names);

	buf_reset(&out);
	printer_text(p, &format, buf_span(values), &out);
	printer_free(p);
	return buf_text(&out);
}

static const char *with_int(const char *text, int64_t v)
{
	struct shape *shapes[] = {&shape_of_int};
	struct buf values = {0};
	const char *out;

	put_word(&values, (uint64_t)v);
	out = formatted(text, shapes, 1, &values);
	buf_release(&values);
	return out;
}

static void test_integers(void)
{
	CHECK_STR(with_int("%d", -5), "-5");
	CHECK_STR(with_int("%i|", -5), "-5|");
	CHECK_STR(with_int("%u", -1), "18446744073709551615");
	CHECK_STR(with_int("%x", 255), "ff");
	CHECK_STR(with_int("%X", 255), "FF");
	CHECK_STR(with_int("%#x", 255), "0xff");
	CHECK_STR(with_int("%o", 8), "10");
	CHECK_STR(with_int("%c", 'A'), "A");
	CHECK_STR(with_int("%p", 0xffff), "0xffff");
	CHECK_STR(with_int("%p", 0), "0x0");
	CHECK_STR(with_int("%s", 7), "7");
	CHECK_STR(with_int("%d", INT64_MIN), "-9223372036854775808");
}

static void test_widths(void)
{
	CHECK_STR(with_int("[%6d]", 42), "[    42]");
	CHECK_STR(with_int("[%-6d]", 42), "[42    ]");
	CHECK_STR(with_int("[%08x]", 0xabc), "[00000abc]");
	CHECK_STR(with_int("[%+d]", 42), "[+42]");
	CHECK_STR(with_int("[%.4d]", 42), "[0042]");
	CHECK_STR(with_int("[%3c]", 'A'), "[  A]");
	CHECK_STR(with_int("[%10p]", 0xff), "[      0xff]");
	CHECK_STR(with_int("[%-4s]", 42), "[42  ]");
}

static void test_lengths(void)
{
	int64_t v = 0x12345678abcdef;

	CHECK_STR(with_int("%lld", v), "5124095577148911");
	CHECK_STR(with_int("%x", v), "12345678abcdef");
	CHECK_STR(with_int("%lx", v), "12345678abcdef");
	CHECK_STR(with_int("%jx", v), "12345678abcdef");
	CHECK_STR(with_int("%zu", 9), "9");
	CHECK_STR(with_int("%hx", v), "cdef");
	CHECK_STR(with_int("%hhx", v), "ef");
	CHECK_STR(with_int("%hhd", 0xff), "-1");
}

static void test_plain_text(void)
{
	struct buf none = {0};

	CHECK_STR(formatted("100%% sure", NULL, 0, &none), "100% sure");
	CHECK_STR(formatted("%d is missing", NULL, 0, &none), "%d is missing");
	CHECK_STR(with_int("%q %d", 3), "%q 3");
	CHECK_STR(with_int("%d and %", 3), "3 and %");
	CHECK_STR(with_int("%", 3), "%");
	CHECK_STR(with_int("%-", 3), "%-");
	CHECK_STR(with_int("%*d", 3), "%*d");
	/* A width that nobody wants is cut, not obeyed. */
	CHECK_EQ(strlen(with_int("%999999999999d", 3)), 4096);
}

static void test_texts(void)
{
	struct shape *shapes[] = {&shape_of_text, &shape_of_text, &shape_of_int};
	struct buf values = {0};

	put_chars(&values, "abc", 16);
	put_chars(&values, "0123456789abcdef", 16); /* no NUL: the shape ends it */
	put_word(&values, 5);
	CHECK_STR(formatted("%s %s %d", shapes, 3, &values), "abc 0123456789abcdef 5");
	CHECK_STR(formatted("%-6s|%.3s|%d", shapes, 3, &values), "abc   |012|5");
	CHECK_STR(formatted("%6s", shapes, 3, &values), "   abc");
	CHECK_STR(formatted("%d", shapes, 3, &values), "abc");
	CHECK_STR(formatted("%rx", shapes, 3, &values), "\\x61\\x62\\x63");
	buf_release(&values);
}

static void test_buffers(void)
{
	struct shape *shapes[] = {&shape_of_bytes};
	struct buf values = {0};

	put_bytes(&values, "Hello\0\xff", 7);
	CHECK_STR(formatted("%r", shapes, 1, &values), "Hello\\x00\\xff");
	CHECK_STR(formatted("%rx", shapes, 1, &values), "\\x48\\x65\\x6c\\x6c\\x6f\\x00\\xff");
	CHECK_STR(formatted("%rh", shapes, 1, &values), "48 65 6c 6c 6f 00 ff");
	CHECK_STR(formatted("%s", shapes, 1, &values), "Hello\\x00\\xff");
	/* A length beyond the bytes that are there. */
	memset(values.p, 0xff, 4);
	CHECK_STR(formatted("%rh", shapes, 1, &values),
		"48 65 6c 6c 6f 00 ff 00 00 00 00 00 00 00 00 00");
	buf_release(&values);
}

static void test_floats(void)
{
	struct shape narrow = {.kind = SHAPE_FLOAT, .n = 4, .size = 8};
	struct shape *shapes[] = {&shape_of_double, &narrow};
	struct buf values = {0};
	float f = 0.5f;
	uint64_t bits = 0;

	memcpy(&bits, &f, sizeof(f));
	put_double(&values, 2.25);
	put_word(&values, bits);
	CHECK_STR(formatted("%f %f", shapes, 2, &values), "2.250000 0.500000");
	CHECK_STR(formatted("%.1f|%8.3f", shapes, 2, &values), "2.2|   0.500");
	CHECK_STR(formatted("%g %e", shapes, 2, &values), "2.25 5.000000e-01");
	CHECK_STR(formatted("%d %s", shapes, 2, &values), "2 0.5");
	CHECK_STR(with_int("%.2f", -3), "-3.00");
	buf_reset(&values);
	put_double(&values, 1e300);
	CHECK_STR(formatted("%d", shapes, 1, &values), "0");
	buf_release(&values);
}

static void test_names(void)
{
	struct shape probe = {.kind = SHAPE_PROBE, .size = 8};
	struct shape function = {.kind = SHAPE_FUNC, .size = 8};
	struct shape usym = {.kind = SHAPE_USYM, .size = 16};
	struct shape ksym = {.kind = SHAPE_KSYM, .size = 8};
	struct shape *shapes[] = {&probe, &function, &usym, &ksym};
	struct buf values = {0};

	put_word(&values, 1);
	put_word(&values, 1);
	put_word(&values, 0x1004);
	buf_put_u32(&values, 42);
	buf_put_u32(&values, 64);
	put_word(&values, 0x2000);
	CHECK_STR(
		formatted("%s %s %s %s", shapes, 4, &values), "uprobe:/bin/x:leaf leaf leaf main");
	CHECK_STR(formatted("%d %x %x", shapes, 4, &values), "1 1 1004");
	buf_reset(&values);
	put_word(&values, 99);
	put_word(&values, 99);
	put_word(&values, 0x1004);
	buf_put_u32(&values, 43); /* another process */
	buf_put_u32(&values, 64);
	put_word(&values, 1);
	CHECK_STR(formatted("%s %s %s %s", shapes, 4, &values), "99 99 0x1004 0x1");
	buf_release(&values);
}

static void test_stacks(void)
{
	struct shape *shapes[] = {&shape_of_ustack, &shape_of_kstack};
	struct buf values = {0};

	put_word(&values, 7);
	buf_put_u32(&values, 42);
	buf_put_u32(&values, 64);
	put_word(&values, 0);
	CHECK_STR(formatted("from:%send%s.", shapes, 2, &values),
		"from:\n        leaf+0\n        main+25\n        0xdead\nend\n.");
	buf_release(&values);
}

static void test_addresses(void)
{
	struct shape inet = {.kind = SHAPE_INET, .size = 24};
	struct shape *shapes[] = {&inet, &inet};
	struct buf values = {0};

	put_word(&values, 4);
	buf_put(&values, "\x7f\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	put_word(&values, 16);
	buf_put(&values, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01", 16);
	CHECK_STR(formatted("%s %s", shapes, 2, &values), "127.0.0.1 ::1");
	buf_release(&values);
}

static void test_short_values(void)
{
	struct shape *shapes[] = {&shape_of_int, &shape_of_text, &shape_of_bytes, &shape_of_ustack};
	struct buf values = {0};

	CHECK_STR(formatted("%d|%s|%r|%s", shapes, 4, &values), "0|||\n");
	buf_put_u32(&values, 5);
	CHECK_STR(formatted("%d|%s|%r|%s", shapes, 4, &values), "0|||\n");
	buf_release(&values);
}

int main(void)
{
	const struct test tests[] = {
		{"integers have C's conversions", test_integers},
		{"flags, widths and precisions are obeyed", test_widths},
		{"values have 64 bits unless h or hh cuts them", test_lengths},
		{"percent signs and what is no conversion stay in the text", test_plain_text},
		{"texts end at a NUL or with their shape", test_texts},
		{"buffers are escaped, or hex with %rx and %rh", test_buffers},
		{"floats are printed, also as integers", test_floats},
		{"probes, functions and symbols have names where they are known", test_names},
		{"a stack has a line for each function", test_stacks},
		{"network addresses are written as usual", test_addresses},
		{"a record that is too short gives zeros and empty texts", test_short_values},
	};

	return RUN_TESTS(tests);
}
