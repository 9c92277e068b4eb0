/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "record/hooks/wish.h"

static bool matches(const char *wish, const char *symbol)
{
	struct wishes w = {0};
	struct wish_name name = {.name = symbol};
	bool result = wishes_add(&w, wish, HOOK_ACTION_CALL, NULL) == 0 &&
		      wish_matches(&w.all.v[0], &name);

	wish_name_release(&name);
	wishes_release(&w);
	return result;
}

static void test_lists(void)
{
	struct wishes w = {0};

	CHECK_EQ(wishes_add(&w, "main,libz.so*:deflate*,/^a{1,2}:x\\/y$/,std::sort*,lib::x",
			 HOOK_ACTION_CALL, NULL),
		0);
	CHECK_EQ(wishes_add(&w, "libc.so.6:/^mem/", HOOK_ACTION_STACK, NULL), 0);
	CHECK_EQ(w.all.n, 6);
	CHECK(!w.all.v[0].what.image);
	CHECK_STR(w.all.v[0].what.name, "main");
	CHECK_STR(w.all.v[1].what.image, "libz.so*");
	CHECK_STR(w.all.v[1].what.name, "deflate*");
	CHECK_STR(w.all.v[1].text, "libz.so*:deflate*");
	CHECK(w.all.v[2].what.is_regex);
	CHECK(!w.all.v[2].what.image);
	CHECK_STR(w.all.v[2].what.name, "^a{1,2}:x/y$");
	CHECK_STR(w.all.v[3].what.name, "std::sort*");
	CHECK(!w.all.v[3].what.image);
	CHECK_STR(w.all.v[4].what.name, "lib::x");
	CHECK_STR(w.all.v[5].what.image, "libc.so.6");
	CHECK(w.all.v[5].what.is_regex);
	CHECK_EQ(w.all.v[5].what.action, HOOK_ACTION_STACK);
	wishes_release(&w);
}

static void test_image_and_scope(void)
{
	struct wishes w = {0};

	CHECK_EQ(wishes_add(&w, "libx.so:ns::f,/usr/lib/libz.so.1:crc32", HOOK_ACTION_CALL, NULL),
		0);
	CHECK_STR(w.all.v[0].what.image, "libx.so");
	CHECK_STR(w.all.v[0].what.name, "ns::f");
	CHECK_STR(w.all.v[1].what.image, "/usr/lib/libz.so.1");
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

static void test_names(void)
{
	CHECK(matches("parse_*", "parse_expression"));
	CHECK(!matches("parse_*", "reparse_expression"));
	CHECK(matches("[pq]arse", "qarse"));
	CHECK(matches("/^parse_.*n$/", "parse_expression"));
	CHECK(!matches("/^n/", "parse_expression"));
	CHECK(matches("*", "anything"));
}

static void test_demangled_names(void)
{
	static const char method[] =
		"_ZN2ns6Parser5parseERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
	static const char template[] = "_ZN2ns5applyIiEET_S1_"; /* int ns::apply<int>(int) */
	static const char constant[] = "_ZNK2ns6Parser5emptyEv";
	static const char call[] = "_ZN2ns6ParserclEi";
	static const char anonymous[] = "_ZN12_GLOBAL__N_14workEv";
	static const char clone[] = "_ZN2ns4workEi.constprop.0";

	CHECK(matches("ns::Parser::parse", method));
	CHECK(matches("ns::Parser::*", method));
	CHECK(matches("ns::Parser::parse(std::*", method));
	CHECK(matches("*basic_string*", method)); /* of its parameter */
	CHECK(matches(method, method));
	CHECK(!matches("Parser::parse", method));
	CHECK(!matches("ns::Parser::parse(", method));
	CHECK(matches("ns::apply<int>", template));
	CHECK(matches("int ns::apply<int>(int)", template));
	CHECK(matches("int ns::apply*", template));
	CHECK(matches("ns::Parser::empty", constant));
	CHECK(matches("ns::Parser::empty() const", constant));
	CHECK(matches("ns::Parser::operator()", call));
	CHECK(matches("(anonymous namespace)::work", anonymous));
	CHECK(matches("*anonymous*", anonymous)); /* a word that the linkage name does not have */
	CHECK(matches("ns::work", clone));
	CHECK(matches("/^ns::Parser::[a-z]+$/", method));
	CHECK(!matches("ns::Parser::parse", "ns_Parser_parse"));
}

int main(void)
{
	static const struct test tests[] = {
		{"reads lists of names, images and expressions", test_lists},
		{"knows an image from a scope", test_image_and_scope},
		{"says which part of a list is wrong, and adds nothing then", test_mistakes},
		{"has a limit", test_too_many},
		{"matches linkage names", test_names},
		{"matches demangled names with and without what surrounds them",
			test_demangled_names},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
