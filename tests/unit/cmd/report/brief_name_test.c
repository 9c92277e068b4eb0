/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "cmd/report/brief_name.h"

static void becomes(const char *name, const char *expected)
{
	struct buf b = {0};

	brief_name_put(&b, name);
	CHECK_STR(buf_text(&b), expected);
	buf_release(&b);
}

static void plain_names_stay(void)
{
	becomes("main", "main");
	becomes("", "");
	becomes("libfoo.so.6+0x1234", "libfoo.so.6+0x1234");
	becomes("main.(*Server).Serve", "main.(*Server).Serve");
	becomes("LazyCompile:~run /tmp/a.js", "LazyCompile:~run /tmp/a.js");
	becomes("operator new[]", "operator new[]");
}

static void brackets_are_emptied(void)
{
	becomes("work(int)", "work(...)");
	becomes("work()", "work()");
	becomes("std::map<int, std::vector<int> >::operator[](int const&)",
		"std::map<...>::operator[](...)");
	becomes("void std::__invoke_impl<void, void (*)(int), int>(std::__invoke_other, void (*&&)(int))",
		"std::__invoke_impl<...>(...)");
	becomes("unsigned int std::__detail::__to_chars_len<unsigned int>(unsigned int, int)",
		"std::__detail::__to_chars_len<...>(...)");
	becomes("std::char_traits<char>::compare(char const*, char const*, unsigned long)",
		"std::char_traits<...>::compare(...)");
	becomes("A<B>::size() const", "A<...>::size()");
	becomes("ns::f(int) [clone .part.0]", "ns::f(...)");
	becomes("(anonymous namespace)::parse(char const*)", "(anonymous namespace)::parse(...)");
}

static void operators_keep_their_signs(void)
{
	becomes("operator<<(std::ostream&, A const&)", "operator<<(...)");
	becomes("A::operator()(int, int) const", "A::operator()(...)");
	becomes("bool std::operator< <int>(int, int)", "std::operator< <...>(...)");
	becomes("A::operator->()", "A::operator->()");
}

static void broken_names_end(void)
{
	becomes("a<b", "a<>");
	becomes("a(((", "a(...)");
	becomes(")))", ")))");
	becomes("<", "<");
	becomes("operator", "operator");
}

int main(void)
{
	static const struct test tests[] = {
		{"names without brackets stay as they are", plain_names_stay},
		{"what is in brackets goes, and the type that is returned", brackets_are_emptied},
		{"operators keep their signs", operators_keep_their_signs},
		{"names that are cut or broken do no harm", broken_names_end},
	};

	return RUN_TESTS(tests);
}
