/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "check.h"
#include "symbols/symtab.h"

static void gives(const char *name, const char *expected)
{
	char *got = symbol_demangle(name);

	CHECK_STR(got, expected);
	free(got);
}

static void test_cpp(void)
{
	gives("_Z3foov", "foo()");
	gives("_ZN3foo3barEi", "foo::bar(int)");
	gives("_ZNSt6vectorIiSaIiEE9push_backERKi",
		"std::vector<int, std::allocator<int> >::push_back(int const&)");
	gives("_ZN3foo3barEi.constprop.0", "foo::bar(int) [clone .constprop.0]");
	gives("_GLOBAL__sub_I_main", "_GLOBAL__sub_I_main");
	gives("_ZN3foo3barEi@plt", "foo::bar(int)@plt");
	gives("_Zbad@plt", "_Zbad@plt");
}

static void test_rust(void)
{
	gives("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad");
	gives("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
		"<Test + 'static as foo::Bar<Test>>::bar");
	gives("_RNvC6_123foo3bar", "123foo::bar");
	gives("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
}

static void test_others(void)
{
	gives("", "");
	gives("main", "main");
	gives("_Z", "_Z");
	gives("_ZNSt6vectorIiSaIiEE9push_back", "_ZNSt6vectorIiSaIiEE9push_back");
	gives("_Znonsense", "_Znonsense");
	gives("_R", "_R");
}

/* Each parameter is a pair of the one before it: the text doubles every time. */
static void put_doubling(struct buf *b, int n)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	buf_reset(b);
	buf_put_cstr(b, "_Z1f1SIiiES_IS0_S0_E");
	for (int i = 1; i < n; i++)
		buf_printf(b, "S_IS%c_S%c_E", digits[i], digits[i]);
}

static void test_hostile(void)
{
	struct buf b = {0};
	char *got;

	put_doubling(&b, 6);
	got = symbol_demangle(buf_text(&b));
	CHECK(strncmp(got, "f(S<int, int>, S<S<int, int>, S<int, int> >", 43) == 0);
	CHECK(strlen(got) > 1000);
	free(got);
	put_doubling(&b, 34);
	gives(buf_text(&b), buf_text(&b)); /* 2^34 times "int" */
	buf_reset(&b);
	buf_put_cstr(&b, "_Z1f");
	for (int i = 0; i < 9000; i++)
		buf_put_u8(&b, 'P');
	buf_put_cstr(&b, "i");
	gives(buf_text(&b), buf_text(&b)); /* too long */
	buf_release(&b);
}

int main(void)
{
	static const struct test tests[] = {
		{"demangles C++ with parameters", test_cpp},
		{"demangles both manglings of Rust, without the hash", test_rust},
		{"copies other names", test_others},
		{"does not let a hostile name grow without bound", test_hostile},
	};

	return RUN_TESTS(tests);
}
