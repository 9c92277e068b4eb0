/* SPDX-License-Identifier: MIT */
/* tests/oracle/class_rewrite.sh has real classes and JVMs; here is what those rarely have. */
#include "check.h"
#include "classfile/class_rewrite.h"

#define CODE_MAX 70000

static struct class_calls calls = {"java/lang/WeirHook", "enter", "leave", NULL};

static void put16(struct buf *b, uint32_t v)
{
	buf_put_u8(b, (uint8_t)(v >> 8));
	buf_put_u8(b, (uint8_t)v);
}

static void put32(struct buf *b, uint32_t v)
{
	put16(b, v >> 16);
	put16(b, v);
}

static void put_text(struct buf *b, const char *text)
{
	buf_put_u8(b, 1);
	put16(b, (uint32_t)strlen(text));
	buf_put_cstr(b, text);
}

/* class p/T { static void NAME(); } with this code. Constants: 1 T, 2 Object, 7 Object's constructor. */
static struct buf make_class(
	uint16_t major, const char *name, struct span code, struct span exceptions)
{
	struct buf b = {0};

	put32(&b, 0xcafebabe);
	put32(&b, major);
	put16(&b, 10);
	buf_put(&b, "\x07\0\x03\x07\0\x04", 6);
	put_text(&b, "p/T");
	put_text(&b, "java/lang/Object");
	put_text(&b, name);
	put_text(&b, "(I[[JLp/T;)V");
	buf_put(&b, "\x0a\0\x02\0\x08\x0c\0\x05\0\x06", 10);
	put_text(&b, "Code");
	put16(&b, 0x21);
	put16(&b, 1);
	put16(&b, 2);
	put32(&b, 0); /* no interfaces, no fields */
	put16(&b, 1);
	put16(&b, strcmp(name, "<init>") ? 9 : 1);
	put16(&b, 5);
	put16(&b, 6);
	put16(&b, 1);
	put16(&b, 9);
	put32(&b, (uint32_t)(12 + code.n + exceptions.n));
	put16(&b, 3);
	put16(&b, 4);
	put32(&b, (uint32_t)code.n);
	buf_put(&b, code.p, code.n);
	put16(&b, (uint32_t)(exceptions.n / 8));
	buf_put(&b, exceptions.p, exceptions.n);
	put16(&b, 0);
	put16(&b, 0);
	return b;
}

/* The code and the exception table of the rewritten method, or the reason why it was not. */
struct result {
	struct buf bytes;
	struct span code, exceptions;
	const char *reason;
};

static struct result rewrite(
	uint16_t major, const char *name, struct span code, struct span exceptions)
{
	struct buf b = make_class(major, name, code, exceptions);
	struct class_wish wish = {.id = 5};
	struct result r = {0};
	struct class_file c;
	struct err err;

	CHECK_EQ(class_file_read(&c, buf_span(&b), &err), 0);
	CHECK_EQ(c.methods.n, 1);
	CHECK_EQ(class_rewrite(&c, &calls, &wish, &r.bytes), wish.reason ? 0 : 1);
	r.reason = wish.reason;
	class_file_release(&c);
	if (!r.reason && class_file_read(&c, buf_span(&r.bytes), &err) == 0) {
		struct cursor in = cursor_of(span_sub(c.bytes, c.methods.v[0].code_at + 10,
			c.bytes.n - c.methods.v[0].code_at - 10));

		r.code = cursor_bytes(&in, cursor_be32(&in));
		r.exceptions = cursor_bytes(&in, 8 * (uint64_t)cursor_be16(&in));
		class_file_release(&c);
	}
	buf_release(&b);
	return r;
}

#define SPAN(text) ((struct span){(const uint8_t *)(text), sizeof(text) - 1})
#define NOTHING	   ((struct span){NULL, 0})

static void test_calls(void)
{
	/* iload_0; ifeq +4; return; return */
	struct result r = rewrite(49, "f", SPAN("\x1a\x99\0\x04\xb1\xb1"), NOTHING);
	static const uint8_t expected[] = {0x11, 0, 5, 0xb8, 0, 17, /* enter */
		0x1a, 0x99, 0, 10, /* from 7 to 17, the second call of leave */
		0x11, 0, 5, 0xb8, 0, 18, 0xb1, 0x11, 0, 5, 0xb8, 0, 18, 0xb1, /* leave; return */
		0x11, 0, 5, 0xb8, 0, 18, 0xbf};

	CHECK(!r.reason);
	CHECK_EQ(r.code.n, sizeof(expected));
	CHECK(span_equal(r.code, (struct span){expected, sizeof(expected)}));
	/* Neither of the calls of leave is covered. */
	CHECK(span_equal(r.exceptions, SPAN("\0\x06\0\x0a\0\x18\0\0")));
	buf_release(&r.bytes);
}

static void test_own_handlers_first(void)
{
	struct result r =
		rewrite(49, "f", SPAN("\0\0\xb1\x57\xb1"), SPAN("\0\0\0\x02\0\x03\0\x02"));

	CHECK_EQ(r.exceptions.n, 24);
	CHECK(span_equal(span_sub(r.exceptions, 0, 8), SPAN("\0\x06\0\x08\0\x0f\0\x02")));
	buf_release(&r.bytes);
}

static void test_subroutines(void)
{
	/* jsr +4; return; astore_1; ret 1: classes of old compilers have such */
	struct result r = rewrite(48, "f", SPAN("\xa8\0\x04\xb1\x4c\xa9\x01"), NOTHING);

	CHECK(!r.reason && r.code.n == 6 + 7 + 6 + 7);
	CHECK(r.code.n > 9 && r.code.p[6] == 0xa8 && r.code.p[8] == 10);
	buf_release(&r.bytes);
}

/* `n` nops between a branch and a return, and the branch's target behind them. */
static struct result branch_over(uint8_t op, uint32_t n)
{
	static uint8_t code[CODE_MAX];
	uint32_t distance = n + 3;

	memset(code, 0, sizeof(code));
	code[0] = op;
	code[1] = (uint8_t)(distance >> 8);
	code[2] = (uint8_t)distance;
	code[n + 2] = 0xb1;
	code[n + 3] = 0xb1;
	return rewrite(49, "f", (struct span){code, n + 4}, NOTHING);
}

static void test_far_branches(void)
{
	struct result near = branch_over(0xa7, 32750), far = branch_over(0xa7, 32763);
	struct result conditional = branch_over(0x99, 32763);

	CHECK(!near.reason && near.code.p[6] == 0xa7);
	CHECK(!far.reason && far.code.p[6] == 0xc8);
	/* The distance of a wide one: over the longer branch, the nops, and leave in front of the return. */
	CHECK_EQ(far.code.p[9] << 8 | far.code.p[10], 32763 + 3 + 2 + 6);
	CHECK_STR(conditional.reason, "a branch would become longer than 32 KiB");
	buf_release(&near.bytes);
	buf_release(&far.bytes);
}

static void test_long_method(void)
{
	static uint8_t code[CODE_MAX];
	struct result r;

	code[65515] = 0xb1;
	r = rewrite(49, "f", (struct span){code, 65516}, NOTHING);
	CHECK(!r.reason && r.code.n == 65535);
	buf_release(&r.bytes);
	code[65515] = 0;
	code[65516] = 0xb1;
	r = rewrite(49, "f", (struct span){code, 65517}, NOTHING);
	CHECK_STR(r.reason, "it would become longer than 64 KiB");
}

static void test_method_that_is_compiled(void)
{
	static uint8_t code[8001];
	struct result r;

	code[7980] = 0xb1;
	r = rewrite(49, "f", (struct span){code, 7981}, NOTHING);
	CHECK(!r.reason && r.code.n == 8000);
	buf_release(&r.bytes);
	code[7980] = 0;
	code[7981] = 0xb1;
	r = rewrite(49, "f", (struct span){code, 7982}, NOTHING);
	CHECK_STR(r.reason,
		"it would become longer than 8000 bytes, and the JVM does not compile such methods");
	code[7981] = 0; /* this one is not compiled anyway */
	code[8000] = 0xb1;
	r = rewrite(49, "f", (struct span){code, 8001}, NOTHING);
	CHECK(!r.reason && r.code.n == 8020);
	buf_release(&r.bytes);
}

static void test_switches(void)
{
	/* iload_0; tableswitch, 2 zeros: default +15, 0..0: +15; return */
	struct result r = rewrite(
		49, "f", SPAN("\x1a\xaa\0\0\0\0\0\x13\0\0\0\0\0\0\0\0\0\0\0\x13\xb1"), NOTHING);

	CHECK(!r.reason);
	/* The switch is at 7 now and needs no zeros. */
	CHECK(span_equal(span_sub(r.code, 7, 13), SPAN("\xaa\0\0\0\x11\0\0\0\0\0\0\0\0")));
	buf_release(&r.bytes);
	/* Targets outside of the code. */
	r = rewrite(49, "f", SPAN("\x1a\xab\0\0\0\0\0\x63\0\0\0\0\xb1"), NOTHING);
	CHECK_STR(r.reason, "its code is damaged");
}

static void test_constructors(void)
{
	/* aload_0; invokespecial Object.<init>; return */
	struct result r = rewrite(49, "<init>", SPAN("\x2a\xb7\0\x07\0\xb1"), NOTHING);

	CHECK(!r.reason);
	CHECK(span_equal(r.exceptions, SPAN("\0\x0a\0\x0b\0\x12\0\0")));
	buf_release(&r.bytes);
	r = rewrite(49, "<init>", SPAN("\xb1"), NOTHING);
	CHECK_STR(
		r.reason, "it is a constructor in which the call of the other one cannot be found");
	/* new T; dup; invokespecial <init>; pop: of another object */
	r = rewrite(49, "<init>", SPAN("\xbb\0\x01\x59\xb7\0\x07\x57\x2a\xb7\0\x07\xb1"), NOTHING);
	CHECK_EQ(r.exceptions.n, 0); /* nothing is between the call and the return */
	buf_release(&r.bytes);
}

static void test_counts(void)
{
	/* iload_0; ifeq 6; nop; nop; return: groups of 2, 2, and 1; the counter is variable 4 */
	struct result r;

	calls.done = "done";
	r = rewrite(49, "run", SPAN("\x1a\x99\0\x05\0\0\xb1"), NOTHING);
	calls.done = NULL;
	CHECK(!r.reason);
	CHECK_EQ(r.code.n, 3 + 6 + (9 + 4) + (9 + 2) + (6 + 5 + 3 + 1) + 9);
	CHECK(span_equal(span_sub(r.code, 0, 4), SPAN("\x09\x37\x04\x11")));
	/* lload 4; sipush 2; i2l; ladd; lstore 4; iload_0; ifeq */
	CHECK(span_equal(span_sub(r.code, 9, 14),
		SPAN("\x16\x04\x11\0\x02\x85\x61\x37\x04\x1a\x99\0\x0e\x16")));
	/* lload 4; lconst_1; ladd; lstore 4; sipush 5; lload 4; invokestatic; return */
	CHECK(span_equal(span_sub(r.code, 33, 13),
		SPAN("\x16\x04\x0a\x61\x37\x04\x11\0\x05\x16\x04\xb8\0")));
	buf_release(&r.bytes);
}

static void test_names(void)
{
	struct buf b = make_class(52, "run", SPAN("\xb1"), NOTHING);
	struct class_file c;
	struct err err;
	char *full, *plain;

	CHECK_EQ(class_file_read(&c, buf_span(&b), &err), 0);
	full = class_method_full_name(&c, &c.methods.v[0]);
	plain = class_method_short_name(&c.methods.v[0]);
	CHECK_STR(full, "p.T.run(int, long[][], p.T)");
	CHECK_STR(plain, "run(int, long[][], p.T)");
	free(full);
	free(plain);
	class_file_release(&c);
	buf_release(&b);
}

static void test_damage(void)
{
	struct buf b = make_class(52, "run", SPAN("\xb1"), NOTHING);
	struct class_file c;
	struct err err;

	for (size_t n = 0; n < b.n; n++)
		CHECK(class_file_read(&c, (struct span){b.p, n}, &err) < 0);
	buf_release(&b);
}

int main(void)
{
	static const struct test tests[] = {
		{"a method calls enter first, and leave before each return and in its handler",
			test_calls},
		{"handlers that were there come before that of leave", test_own_handlers_first},
		{"subroutines of old classes are moved", test_subroutines},
		{"a goto that no longer reaches becomes a wide one; a condition is refused",
			test_far_branches},
		{"a method that would become too long is refused", test_long_method},
		{"a method that would become too long for the compiler is refused",
			test_method_that_is_compiled},
		{"switches are padded anew", test_switches},
		{"a constructor is covered from the call of the other one on", test_constructors},
		{"bytecodes are counted where runs of them begin, and handed over at the end",
			test_counts},
		{"names are written as Java writes them", test_names},
		{"a class file that is cut off is refused", test_damage},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
