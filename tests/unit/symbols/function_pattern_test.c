/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/glob.h"
#include "check.h"
#include "symbols/function_pattern.h"

static enum function_match match(const char *pattern, const char *linkage)
{
	struct function_name name = {.linkage = linkage};
	enum function_match result = FUNCTION_MATCH_NONE;
	struct function_pattern p;

	CHECK_EQ(function_pattern_init(&p, pattern, NULL, NULL), 0);
	result = function_pattern_match(&p, &name);
	function_name_release(&name);
	function_pattern_release(&p);
	return result;
}

static bool matches(const char *pattern, const char *symbol)
{
	return match(pattern, symbol) != FUNCTION_MATCH_NONE;
}

/* By what it is called in the source. */
static bool means(const char *asked, const char *mangled)
{
	enum function_match how = match(asked, mangled);

	return how == FUNCTION_MATCH_READABLE || how == FUNCTION_MATCH_PATTERN;
}

static void test_globs(void)
{
	CHECK(glob_match("*alloc", "malloc") && !glob_match("*alloc", "allocx"));
	CHECK(glob_match("m?m*", "memcpy") && !glob_match("m?m*", "mmcpy"));
	CHECK(glob_match("str[a-c]*", "strchr") && !glob_match("str[a-c]*", "strlen"));
	CHECK(glob_match("[!a]x", "bx") && !glob_match("[!a]x", "ax"));
	CHECK(glob_match("*a*b*c", "xxaxxbxxbxxc") && !glob_match("*a*b*c", "abcd"));
	CHECK(glob_match("", "") && glob_match("*", "") && !glob_match("?", ""));
	CHECK(glob_has("a*") && glob_has("[ab]") && !glob_has("operator[]") && !glob_has("a[b"));
	CHECK(glob_match("operator[]", "operator[]"));
}

static void test_nearest(void)
{
	struct nearest_names near = {.wanted = "maloc"};
	char text[256];

	CHECK_EQ(name_distance("maloc", "malloc", 3), 1);
	CHECK_EQ(name_distance("mlaloc", "malloc", 3), 1);
	CHECK_EQ(name_distance("mxaloc", "malloc", 3), 2);
	CHECK_EQ(name_distance("ab", "ba", 3), 1);
	CHECK_EQ(name_distance("abc", "xyz", 2), 3);
	CHECK(!nearest_names_text(&near, text, sizeof(text)));
	nearest_names_add(&near, "free");
	nearest_names_add(&near, "calloc");
	nearest_names_add(&near, "malloc");
	nearest_names_add(&near, "maloc.part.0");
	nearest_names_add(&near, "malloc");
	CHECK(nearest_names_text(&near, text, sizeof(text)));
	CHECK_STR(text, "'maloc.part.0', 'malloc' or 'calloc'");
}

static void test_more_globs(void)
{
	CHECK(glob_match("h_[[:digit:]]*", "h_7x") && !glob_match("h_[[:digit:]]*", "h_x7"));
	CHECK(glob_match("[^[:upper:]_]f", "xf") && !glob_match("[^[:upper:]_]f", "_f"));
	CHECK(glob_match("[[:alpha:]0]", "0") && !glob_match("[[:nothing:]]", "x"));
	CHECK(glob_match("operator\\*", "operator*") && !glob_match("operator\\*", "operator*="));
	CHECK(glob_match("a\\?b", "a?b") && !glob_match("a\\?b", "axb") && glob_has("a\\?b"));
	CHECK(glob_match("a\\b", "a\\b") && !glob_has("a\\b"));
	CHECK(glob_match("*/lib*", "/usr/lib/x") && !glob_match("[a", "a") &&
		glob_match("[a", "[a"));
}

static void test_near_globs(void)
{
	struct nearest_names near = {.wanted = "deflat_*"};
	char text[256];

	CHECK_EQ(name_distance("deflat_*", "deflate_fast", 3), 1);
	CHECK_EQ(name_distance("*", "anything", 3), 0);
	CHECK_EQ(name_distance("a?c*", "abcdef", 3), 0);
	CHECK_EQ(name_distance("abcdef*", "xy", 3), 4);
	nearest_names_add(&near, "deflate_fast");
	nearest_names_add(&near, "inflate");
	nearest_names_add(&near, "deflat\033e_");
	CHECK(nearest_names_text(&near, text, sizeof(text)));
	CHECK_STR(text, "'deflate_fast'");
	near = (struct nearest_names){.wanted = "zz*"}; /* says too little */
	nearest_names_add(&near, "zx");
	CHECK(!nearest_names_text(&near, text, sizeof(text)));
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

static void test_cpp(void)
{
	CHECK(means("ns::f", "_ZN2ns1fEi") && means("ns::f", "_ZN2ns1fEPc"));
	CHECK(!means("ns::f", "_ZN2ns2ffEi") && !means("f", "_ZN2ns1fEi"));
	CHECK(means("ns::f(int)", "_ZN2ns1fEi") && !means("ns::f(int)", "_ZN2ns1fEPc"));
	CHECK(means("ns::f(char *)", "_ZN2ns1fEPc") && means("ns::f(char*)", "_ZN2ns1fEPc"));
	CHECK(means("ns::f(unsigned int, long)", "_ZN2ns1fEjl"));
	CHECK(!means("ns::f(unsignedint)", "_ZN2ns1fEj"));
	CHECK(means("f", "_Z1fi") && means("f()", "_Z1fv"));
	CHECK(means("ns::f", "_ZN2ns1fIiEET_S1_") && means("ns::f<int>", "_ZN2ns1fIiEET_S1_"));
	CHECK(!means("ns::f<long>", "_ZN2ns1fIiEET_S1_"));
	CHECK(means("C::get", "_ZNK1C3getEv") && means("C::get() const", "_ZNK1C3getEv"));
	CHECK(means("C::operator()", "_ZN1CclEi") && means("C::operator[]", "_ZN1CixEi"));
	CHECK(means("ns::*", "_ZN2ns1fEi") && !means("ns::*", "_ZN2nt1fEi"));
	CHECK(means("(anonymous namespace)::f", "_ZN12_GLOBAL__N_11fEv"));
	CHECK(means("std::string::append", "_ZNSs6appendEPKc") ||
		means("std::basic_string<*>::append", "_ZNSs6appendEPKc"));
	CHECK(!means("f", "f") && !means("ns::f", "_ZN2ns1fEi.cold"));
}

/* What one command could and others could not. */
static void test_all_forms(void)
{
	static const char clone[] = "_ZN2ns5applyIiEET_S1_.constprop.0";
	static const char compare[] = "_ZN2nsltIiEEbRKNS_1AIT_EES5_"; /* bool .. */

	CHECK_EQ(match("int ns::apply<int>(int) [clone .constprop.0]", clone),
		FUNCTION_MATCH_READABLE);
	CHECK_EQ(match("int ns::apply<int>(int)", clone), FUNCTION_MATCH_READABLE);
	CHECK_EQ(match("ns::apply<int>( int )", clone), FUNCTION_MATCH_READABLE);
	CHECK_EQ(match("int ns::apply<int>", clone), FUNCTION_MATCH_READABLE);
	CHECK_EQ(match("ns::apply<int>", clone), FUNCTION_MATCH_READABLE);
	CHECK_EQ(match("ns::apply", clone), FUNCTION_MATCH_READABLE);
	CHECK_EQ(match("ns::app*", clone), FUNCTION_MATCH_PATTERN);
	CHECK_EQ(match("/^ns::apply$/", clone), FUNCTION_MATCH_PATTERN);
	CHECK_EQ(match("*apply*", clone), FUNCTION_MATCH_PATTERN);
	CHECK_EQ(match(clone, clone), FUNCTION_MATCH_LINKAGE);
	CHECK_EQ(match("apply", clone), FUNCTION_MATCH_NONE);
	CHECK_EQ(match("ns::operator< <int>", compare), FUNCTION_MATCH_READABLE);
	CHECK_EQ(match("ns::operator<", compare), FUNCTION_MATCH_READABLE);
	CHECK_EQ(match("C::operator->", "_ZN1CptEv"), FUNCTION_MATCH_READABLE);
	CHECK_EQ(match("C::operator bool", "_ZNK1CcvbEv"), FUNCTION_MATCH_READABLE);
	CHECK_EQ(match("operator*", "_ZmlRK1AS1_"), FUNCTION_MATCH_READABLE);
	CHECK_EQ(match("operator*", "_ZmLR1AS0_"), FUNCTION_MATCH_PATTERN); /* operator*= */
	CHECK_EQ(match("operator\\*", "_ZmLR1AS0_"), FUNCTION_MATCH_NONE);
}

static void test_versions_and_parts(void)
{
	CHECK_EQ(match("memcpy", "memcpy@@GLIBC_2.14"), FUNCTION_MATCH_LINKAGE);
	CHECK_EQ(match("memcpy@GLIBC_2.2.5", "memcpy@GLIBC_2.2.5"), FUNCTION_MATCH_LINKAGE);
	CHECK_EQ(match("*cpy", "memcpy@@GLIBC_2.14"), FUNCTION_MATCH_PATTERN);
	CHECK(!matches("memcpy", "memcpy_s@@V") && !matches("mem", "memcpy@@V"));
	CHECK(means("ns::f", "_ZN2ns1fEi@@V_1"));
	CHECK(!matches("*", "f.cold") && !matches("f*", "f.cold.3") && !matches("/f/", "f.warm"));
	CHECK(matches("f.cold", "f.cold") && matches("*cold*", "f.cold"));
	CHECK(matches("*", "f.colder") && matches("*", ".cold"));
	CHECK(!matches("f", "f.part.0") && matches("f*", "f.part.0"));
}

static void test_exact(void)
{
	static const struct {
		const char *pattern;
		bool is_exact;
	} cases[] = {
		{"f", true},
		{"ns::f(char *)", true},
		{"C::operator()", true},
		{"C::operator[]", true},
		{"lib*:f", true},
		{"f*", false},
		{"(anonymous namespace)::f*", false},
		{"C::operator()*", false},
		{"/f/", false},
		{"f[ab]", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct function_pattern p;

		CHECK_EQ(function_pattern_init(&p, cases[i].pattern, NULL, NULL), 0);
		CHECK_EQ(p.is_exact, cases[i].is_exact);
		function_pattern_release(&p);
	}
}

static bool wants(const char *pattern, const char *path)
{
	struct function_pattern p;
	bool result;

	CHECK_EQ(function_pattern_init(&p, pattern, NULL, NULL), 0);
	result = function_pattern_wants_image(&p, path);
	function_pattern_release(&p);
	return result;
}

static void test_images(void)
{
	CHECK(wants("f", "/bin/program") && wants("ns::f", "/bin/program"));
	CHECK(wants("*:f", "/lib/libx.so") && wants("libx*:f", "/lib/libx.so.1"));
	CHECK(!wants("lib:f", "/lib/libx.so") && !wants("*lib:f", "/usr/lib/x"));
	CHECK(wants("/usr/*/libx.so.1:f", "/usr/lib/libx.so.1") &&
		!wants("/opt/*:f", "/usr/lib/x"));
	CHECK(wants("libc:f", "/lib/libc.so.6") && wants("libc:f", "/lib/libc-2.31.so"));
	CHECK(!wants("libc.so:f", "/lib/libc.so.6") && !wants("libc:f", "/lib/libcap.so.2"));
	CHECK(!wants("c:f", "/lib/libc.so.6") && wants("libc:f", "/opt/libc"));
	CHECK(wants("libx:/^f:/", "/lib/libx.so"));
}

static void test_lengths(void)
{
	static const char *const whole[] = {"f", "ns::f(int, int)", "f<a, b>::g",
		"libx:f(a, (b, c))", "/^a{1,2}$/", "libx:/a,b/", "operator()(int, int)",
		"std::map<int, A<b, c> >::at"};
	static const struct {
		const char *list;
		size_t bytes;
	} cut[] = {
		{",", 0},
		{"f,g", 1},
		{"f(int,g", 5},
		{"operator<,operator>", 9},
		{"a(b),c(d)", 4},
		{"/a/,/b/", 3},
		{"libz:,f", 5},
	};

	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		CHECK_EQ(function_pattern_bytes(whole[i]), strlen(whole[i]));
	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++)
		CHECK_EQ(function_pattern_bytes(cut[i].list), cut[i].bytes);
}

static void test_places(void)
{
	static const struct {
		const char *text, *sentence;
		size_t at;
	} cases[] = {
		{"", "no function is named", 0},
		{":f", "':f': no image before the colon", 0},
		{"libz:", "'libz:': no name behind the colon", 5},
		{"libz://", "'libz://': the expression is empty", 5},
		{"libz:/(/", "'libz:/(/': Unmatched ( or \\(", 5},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct function_pattern p;
		struct err err = {0};
		size_t at = 99;

		CHECK_EQ(function_pattern_init(&p, cases[i].text, &at, &err), ERR_FORMAT);
		CHECK_STR(err.text, cases[i].sentence);
		CHECK_EQ(at, cases[i].at);
	}
}

static const char *near_to(const char *pattern, const char *const *names)
{
	static char text[512];
	struct function_pattern p;
	struct nearest_names near = {0};

	CHECK_EQ(function_pattern_init(&p, pattern, NULL, NULL), 0);
	near.wanted = p.name;
	for (size_t i = 0; names[i]; i++)
		function_pattern_offer(&p, &near, names[i]);
	nearest_names_text(&near, text, sizeof(text));
	function_pattern_release(&p);
	return text;
}

static void test_offers(void)
{
	static const char *const names[] = {"work", "work.cold", "worked@@V_1",
		"_ZN2ns5applyIiEET_S1_", "_ZN2ns1fEi", "_ZNK1C3getEv", NULL};

	CHECK_STR(near_to("wrok", names), "'work'");
	CHECK_STR(near_to("libx:worke", names), "'work' or 'worked'");
	CHECK_STR(near_to("ns::aply", names), "'ns::apply'");
	CHECK_STR(near_to("ns::aply<int>", names), "'ns::apply<int>'");
	CHECK_STR(near_to("ns::aply<int>(int)", names), "'ns::apply<int>(int)'");
	CHECK_STR(near_to("C::got", names), "'C::get'");
	CHECK_STR(near_to("wrk*", names), "'work' or 'worked'");
	CHECK_STR(near_to("/wrok/", names), "");
	CHECK_STR(near_to("nothing_like_it", names), "");
	CHECK_STR(near_to("_ZN2ns1gEi", names), "'_ZN2ns1fEi'");
}

int main(void)
{
	static const struct test tests[] = {
		{"patterns match as a shell's do, and brackets of C++ are none", test_globs},
		{"classes and escapes of a shell are known, too", test_more_globs},
		{"names that somebody may have meant are found by distance", test_nearest},
		{"and those that a pattern with wildcards may have meant", test_near_globs},
		{"matches linkage names", test_names},
		{"matches demangled names with and without what surrounds them",
			test_demangled_names},
		{"C++ functions are found by name, parameters and pattern", test_cpp},
		{"every form of a name can be written, blanks as one likes", test_all_forms},
		{"versions need not be written, parts that were split off must be",
			test_versions_and_parts},
		{"knows whether it names one function", test_exact},
		{"finds images by file name, path or library", test_images},
		{"a comma in brackets or in an expression ends no pattern", test_lengths},
		{"says what is wrong, and where", test_places},
		{"offers what is near in the form that was asked for", test_offers},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
