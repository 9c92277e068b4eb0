/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "check.h"

#define REPLACED "\xef\xbf\xbd"

struct page {
	struct json j;
	char *text;
	size_t n;
};

static struct json *page_open(struct page *p)
{
	FILE *out = open_memstream(&p->text, &p->n);

	if (!out)
		abort();
	json_init(&p->j, out);
	return &p->j;
}

/* Compares what was written and frees it. */
static void page_is(struct page *p, const char *expected)
{
	fclose(p->j.out);
	CHECK_STR(p->text, expected);
	free(p->text);
}

static void string_becomes(const char *value, const char *expected)
{
	struct page p;

	json_string(page_open(&p), NULL, value);
	page_is(&p, expected);
}

static void test_escapes(void)
{
	string_becomes("", "\"\"");
	string_becomes("plain", "\"plain\"");
	string_becomes("a\"b\\c/d", "\"a\\\"b\\\\c/d\"");
	string_becomes(
		"\n\t\r\b\f\x01\x1f\x7f", "\"\\n\\t\\u000d\\u0008\\u000c\\u0001\\u001f\\u007f\"");
	string_becomes(NULL, "null");
}

static void test_valid_utf8(void)
{
	/* the first and last code points of each length, and around the surrogates */
	static const char *const good[] = {"\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
		"\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		char expected[16];

		snprintf(expected, sizeof(expected), "\"%s\"", good[i]);
		string_becomes(good[i], expected);
	}
}

static void test_invalid_utf8(void)
{
	string_becomes("a\xff", "\"a" REPLACED "\"");
	string_becomes("\x80z", "\"" REPLACED "z\"");
	string_becomes("\xc0\x80", "\"" REPLACED REPLACED "\""); /* overlong NUL */
	string_becomes("\xc1\xbf", "\"" REPLACED REPLACED "\"");
	string_becomes("\xe0\x9f\xbf", "\"" REPLACED REPLACED REPLACED "\""); /* overlong */
	string_becomes("\xed\xa0\x80", "\"" REPLACED REPLACED REPLACED "\""); /* surrogate */
	string_becomes("\xf0\x8f\xbf\xbf", "\"" REPLACED REPLACED REPLACED REPLACED "\"");
	string_becomes("\xf4\x90\x80\x80", "\"" REPLACED REPLACED REPLACED REPLACED "\"");
	string_becomes("\xf5\x80\x80\x80", "\"" REPLACED REPLACED REPLACED REPLACED "\"");
}

static void test_cut_utf8(void)
{
	string_becomes("a\xc3", "\"a" REPLACED "\"");
	string_becomes("a\xe2\x82", "\"a" REPLACED REPLACED "\"");
	string_becomes("a\xf0\x9f\x98", "\"a" REPLACED REPLACED REPLACED "\"");
	string_becomes("\xe2\"", "\"" REPLACED "\\\"\""); /* the quote is not swallowed */
	string_becomes("\xf0\x9f\\", "\"" REPLACED REPLACED "\\\\\"");
}

static void test_nesting(void)
{
	struct page p;
	struct json *j = page_open(&p);

	json_object_begin(j, NULL);
	json_u64(j, "a", 1);
	json_array_begin(j, "rows");
	json_array_begin(j, NULL);
	json_array_end(j);
	json_object_begin(j, NULL);
	json_object_end(j);
	json_i64(j, NULL, -5);
	json_string(j, NULL, "x");
	json_array_end(j);
	json_bool(j, "yes", true);
	json_bool(j, "no", false);
	json_null(j, "none");
	json_object_end(j);
	page_is(&p, "{\"a\": 1, \"rows\": [[], {}, -5, \"x\"], \"yes\": true, \"no\": false, "
		    "\"none\": null}\n");
}

static void test_keys_are_escaped(void)
{
	struct page p;
	struct json *j = page_open(&p);

	json_object_begin(j, NULL);
	json_u64(j, "a\"\xff", 1);
	json_object_end(j);
	page_is(&p, "{\"a\\\"" REPLACED "\": 1}\n");
}

static void test_numbers(void)
{
	struct page p;
	struct json *j = page_open(&p);

	json_array_begin(j, NULL);
	json_u64(j, NULL, UINT64_MAX);
	json_i64(j, NULL, INT64_MIN);
	json_double(j, NULL, 0.5);
	json_double(j, NULL, -1e300);
	json_double(j, NULL, (double)NAN);
	json_double(j, NULL, (double)INFINITY);
	json_double(j, NULL, -(double)INFINITY);
	json_array_end(j);
	page_is(&p,
		"[18446744073709551615, -9223372036854775808, 0.5, -1e+300, null, null, null]\n");
}

static void test_depth(void)
{
	struct page p;
	struct json *j = page_open(&p);
	char expected[2 * JSON_DEPTH_MAX];
	int depth = JSON_DEPTH_MAX - 1;

	for (int i = 0; i < depth; i++) {
		json_array_begin(j, NULL);
		expected[i] = '[';
		expected[2 * depth - 1 - i] = ']';
	}
	for (int i = 0; i < depth; i++)
		json_array_end(j);
	expected[2 * depth] = '\n';
	expected[2 * depth + 1] = 0;
	page_is(&p, expected);
}

int main(void)
{
	static const struct test tests[] = {
		{"quotes, backslashes and control characters are escaped", test_escapes},
		{"valid UTF-8 passes unchanged", test_valid_utf8},
		{"bytes that are not UTF-8 become U+FFFD", test_invalid_utf8},
		{"a sequence cut short does not swallow what follows", test_cut_utf8},
		{"commas stand between items only, at every level", test_nesting},
		{"keys are escaped as values are", test_keys_are_escaped},
		{"numbers that JSON cannot hold become null", test_numbers},
		{"levels nest up to the stated depth", test_depth},
	};

	return RUN_TESTS(tests);
}
