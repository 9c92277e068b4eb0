/* SPDX-License-Identifier: MIT */
#include "arch/x86_format.h"

#include "check.h"

static const char *text_of(const uint8_t *bytes, size_t n)
{
	static char text[X86_TEXT_BYTES];

	return x86_format(text, (struct span){bytes, n}, 0x1000, true) ? text : "none";
}

static void test_text(void)
{
	static const uint8_t mov[] = {0x89, 0xf8}, jump[] = {0xeb, 0x10};

	CHECK_STR(text_of(mov, sizeof(mov)), "mov %edi, %eax");
	CHECK_STR(text_of(jump, sizeof(jump)), "jmp 0x1012");
}

static void test_intel(void)
{
	static const uint8_t mov[] = {0x48, 0x8b, 0x47, 0x08}, jump[] = {0xeb, 0x10};
	char text[X86_TEXT_BYTES];

	CHECK(x86_format_as(X86_SYNTAX_INTEL, text, (struct span){mov, 4}, 0x1000, true));
	CHECK_STR(text, "mov rax, [rdi+0x08]");
	CHECK(x86_format_as(X86_SYNTAX_INTEL, text, (struct span){jump, 2}, 0x1000, false));
	CHECK_STR(text, "jmp 0x1012");
}

static void test_none(void)
{
	static const uint8_t cut[] = {0x48, 0x8b}, wrong[] = {0x06};

	CHECK_STR(text_of(cut, sizeof(cut)), "none");
	CHECK_STR(text_of(wrong, sizeof(wrong)), "none");
	CHECK_STR(text_of(cut, 0), "none");
}

int main(void)
{
	static const struct test tests[] = {
		{"instructions are AT&T text with absolute addresses", test_text},
		{"they are Intel text when that is asked for", test_intel},
		{"what is no instruction has no text", test_none},
	};

	return RUN_TESTS(tests);
}
