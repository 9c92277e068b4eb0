/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "record/hooks/wish.h"

static void test_lists(void)
{
	struct wishes w = {0};

	CHECK_EQ(wishes_add(&w, "main,libz.so*:deflate*,/^a{1,2}:x\\/y$/,std::sort*,lib::x",
			 HOOK_ACTION_CALL, NULL),
		0);
	CHECK_EQ(wishes_add(&w, "libc.so.6:/^mem/", HOOK_ACTION_STACK, NULL), 0);
	CHECK_EQ(w.all.n, 6);
	CHECK(!w.all.v[0].pattern.image);
	CHECK_STR(w.all.v[0].pattern.name, "main");
	CHECK_STR(w.all.v[1].pattern.image, "libz.so*");
	CHECK_STR(w.all.v[1].pattern.name, "deflate*");
	CHECK_STR(w.all.v[1].pattern.text, "libz.so*:deflate*");
	CHECK(w.all.v[2].pattern.is_regex);
	CHECK(!w.all.v[2].pattern.image);
	CHECK_STR(w.all.v[2].pattern.name, "^a{1,2}:x/y$");
	CHECK_STR(w.all.v[3].pattern.name, "std::sort*");
	CHECK(!w.all.v[3].pattern.image);
	CHECK_STR(w.all.v[4].pattern.name, "lib::x");
	CHECK_STR(w.all.v[5].pattern.image, "libc.so.6");
	CHECK(w.all.v[5].pattern.is_regex);
	CHECK_EQ(w.all.v[5].action, HOOK_ACTION_STACK);
	wishes_release(&w);
}

static void test_image_and_scope(void)
{
	struct wishes w = {0};

	CHECK_EQ(wishes_add(&w, "libx.so:ns::f,/usr/lib/libz.so.1:crc32", HOOK_ACTION_CALL, NULL),
		0);
	CHECK_STR(w.all.v[0].pattern.image, "libx.so");
	CHECK_STR(w.all.v[0].pattern.name, "ns::f");
	CHECK_STR(w.all.v[1].pattern.image, "/usr/lib/libz.so.1");
	CHECK(wish_concerns(&w.all.v[1], "/usr/lib/libz.so.1", false));
	CHECK(!wish_concerns(&w.all.v[1], "/opt/libz.so.1", false));
	CHECK(wish_concerns(&w.all.v[0], "/any/libx.so", false));
	CHECK(!wish_concerns(&w.all.v[0], "/any/libx.so.1", false));
	wishes_release(&w);
	CHECK_EQ(wishes_add(&w, "f", HOOK_ACTION_CALL, NULL), 0);
	CHECK(wish_concerns(&w.all.v[0], "/bin/program", true));
	CHECK(!wish_concerns(&w.all.v[0], "/lib/libx.so", false));
	wishes_release(&w);
}

static void test_mistakes(void)
{
	static const struct {
		const char *list, *text;
	} cases[] = {
		{"", "a name is missing before or behind a comma"},
		{"a,,b", "a name is missing before or behind a comma"},
		{"a,", "a name is missing before or behind a comma"},
		{":f", "':f': no image before the colon"},
		{"libz:", "'libz:': no name behind the colon"},
		{"libz:,f", "'libz:': no name behind the colon"},
		{"a,//", "'//': the expression is empty"},
		{"a,/(/", "'/(/': Unmatched ( or \\("},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wishes w = {0};
		struct err err = {0};

		CHECK(wishes_add(&w, "before", HOOK_ACTION_CALL, NULL) == 0);
		CHECK_EQ(wishes_add(&w, cases[i].list, HOOK_ACTION_CALL, &err), ERR_FORMAT);
		CHECK_STR(err.text, cases[i].text);
		CHECK_EQ(w.all.n, 1);
		wishes_release(&w);
	}
}

static void test_too_many(void)
{
	struct wishes w = {0};
	struct err err = {0};
	int rc = 0;

	for (int i = 0; i <= WISHES_MAX && rc == 0; i++)
		rc = wishes_add(&w, "x", HOOK_ACTION_CALL, &err);
	CHECK_EQ(rc, ERR_LIMIT);
	CHECK_EQ(w.all.n, WISHES_MAX);
	wishes_release(&w);
}

int main(void)
{
	static const struct test tests[] = {
		{"reads lists of names, images and expressions", test_lists},
		{"knows an image from a scope", test_image_and_scope},
		{"says which part of a list is wrong, and adds nothing then", test_mistakes},
		{"has a limit", test_too_many},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
