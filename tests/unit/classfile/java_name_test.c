/* SPDX-License-Identifier: MIT */
#include "classfile/java_name.h"

#include "../check.h"

static struct span text(const char *s)
{
	return (struct span){(const uint8_t *)s, strlen(s)};
}

static void check_parameters(const char *signature, const char *expected)
{
	struct buf b = {0};

	CHECK(java_parameters_put(&b, text(signature)) == (expected != NULL));
	CHECK_STR(buf_text(&b), expected ? expected : "");
	buf_release(&b);
}

static void test_parameters(void)
{
	check_parameters("()V", "()");
	check_parameters("(I[Ljava/lang/String;)V", "(int, java.lang.String[])");
	check_parameters("([[JZBCSFD)I", "(long[][], boolean, byte, char, short, float, double)");
	check_parameters("(LOuter$Inner;)LX;", "(Outer$Inner)");
}

static void test_bad_parameters(void)
{
	check_parameters("", NULL);
	check_parameters("I", NULL);
	check_parameters("(", NULL);
	check_parameters("(I", NULL);
	check_parameters("(Lx)V", NULL);
	check_parameters("([)V", NULL);
	check_parameters("(V)V", NULL);
}

static void check_class(const char *name, const char *expected)
{
	struct buf b = {0};

	java_class_put(&b, text(name));
	CHECK_STR(buf_text(&b), expected);
	buf_release(&b);
}

static void test_classes(void)
{
	check_class("com/example/Outer$Inner", "com.example.Outer$Inner");
	check_class("Main$$Lambda$1+0x0000000800c03000", "Main$$Lambda$1/0x0000000800c03000");
	check_class("A+b", "A+b");
}

static void test_characters(void)
{
	check_class("\xc3\xa4", "\xc3\xa4");
	/* U+1F600 as two surrogates */
	check_class("\xed\xa0\xbd\xed\xb8\x80", "\xf0\x9f\x98\x80");
	check_class("\xed\xa0\xbd", "?");
	check_class("a\xc0\x80z", "a?z");
}

static void test_legal(void)
{
	CHECK(java_name_is_legal(text("java/lang/String"), JAVA_CLASS));
	CHECK(java_name_is_legal(text("<init>"), JAVA_METHOD));
	CHECK(java_name_is_legal(text("lambda$main$0"), JAVA_METHOD));
	CHECK(java_name_is_legal(text("\xe4\xb8\x96"), JAVA_METHOD));
	CHECK(!java_name_is_legal(text(""), JAVA_CLASS));
	CHECK(!java_name_is_legal(text("[I"), JAVA_CLASS));
	CHECK(!java_name_is_legal(text("a.b"), JAVA_METHOD));
	CHECK(!java_name_is_legal(text("<other>"), JAVA_METHOD));
	CHECK(!java_name_is_legal(text("a\x01"), JAVA_METHOD));
	CHECK(!java_name_is_legal(text("\xe9"), JAVA_METHOD));
	CHECK(!java_name_is_legal(text("\xc1\x81"), JAVA_METHOD));
	CHECK(!java_name_is_legal((struct span){(const uint8_t *)"a\0b", 3}, JAVA_METHOD));
}

int main(void)
{
	static const struct test tests[] = {
		{"parameters are written as in Java", test_parameters},
		{"what is no signature is refused", test_bad_parameters},
		{"classes are written with dots, hidden ones as the JVM does", test_classes},
		{"modified UTF-8 becomes UTF-8", test_characters},
		{"names that no class file can have are known", test_legal},
	};

	return RUN_TESTS(tests);
}
