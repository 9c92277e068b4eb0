/* SPDX-License-Identifier: MIT */
/* Bytes as an assembler makes them; the text is what was assembled. */
#include "arch/x86_code.h"
#include "check.h"

#define CODE(...)                                                                                  \
	(struct span)                                                                              \
	{                                                                                          \
		(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})             \
	}

static void test_thread_ends(void)
{
	/* musl's clone: mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall */
	CHECK(x86_ends_thread(CODE(0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05, 0xf4), true));
	/* mov %rax,%rdi; mov $231,%eax; syscall */
	CHECK(x86_ends_thread(CODE(0x48, 0x89, 0xc7, 0xb8, 231, 0, 0, 0, 0x0f, 0x05), true));
	/* i386: mov %eax,%ebx; xor %eax,%eax; inc %eax; int $0x80 */
	CHECK(x86_ends_thread(CODE(0x89, 0xc3, 0x31, 0xc0, 0x40, 0xcd, 0x80), false));
}

static void test_thread_goes_on(void)
{
	/* another system call */
	CHECK(!x86_ends_thread(CODE(0x31, 0xc0, 0xb0, 0x27, 0x0f, 0x05), true));
	/* cut short */
	CHECK(!x86_ends_thread(CODE(0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f), true));
	CHECK(!x86_ends_thread((struct span){NULL, 0}, true));
	/* exit(main()): mov %eax,%edi; call */
	CHECK(!x86_ends_thread(CODE(0x89, 0xc7, 0xe8, 0, 0, 0, 0), true));
	/* i386's call of 32-bit code in 64-bit code */
	CHECK(!x86_ends_thread(CODE(0x89, 0xc3, 0x31, 0xc0, 0x40, 0xcd, 0x80), true));
}

static void test_stack_writes(void)
{
	/* nop; mov %rdi,%rsp */
	CHECK_EQ(x86_past_stack_write(CODE(0x90, 0x48, 0x89, 0xfc, 0x90), true), 4);
	/* nop; mov 0x38(%rdx),%rsp */
	CHECK_EQ(x86_past_stack_write(CODE(0x90, 0x48, 0x8b, 0x62, 0x38, 0xc3), true), 5);
	/* and $-16,%rsp */
	CHECK_EQ(x86_past_stack_write(CODE(0x48, 0x83, 0xe4, 0xf0, 0xc3), true), 4);
	/* i386: mov %edi,%esp */
	CHECK_EQ(x86_past_stack_write(CODE(0x89, 0xfc, 0xc3), false), 2);
}

static void test_no_stack_writes(void)
{
	/* sub $16,%rsp; mov %rsp,%rdi; mov %rsp,%r12; mov 8(%rsp),%rax; mov %r12,%r12; ret */
	struct span code = CODE(0x48, 0x83, 0xec, 0x10, 0x48, 0x89, 0xe7, 0x49, 0x89, 0xe4, 0x48,
		0x8b, 0x44, 0x24, 0x08, 0x4d, 0x89, 0xe4, 0xc3);

	CHECK_EQ(x86_past_stack_write(code, true), code.n);
	/* what is no instruction ends the search */
	CHECK_EQ(x86_past_stack_write(CODE(0x90, 0x06, 0x48, 0x89, 0xfc), true), 1);
}

static const struct test tests[] = {
	{"a system call that ends the thread is known", test_thread_ends},
	{"other code does not end it", test_thread_goes_on},
	{"the stack pointer is written by mov and and", test_stack_writes},
	{"sums and reads of the stack pointer do not count", test_no_stack_writes},
};

int main(void)
{
	return RUN_TESTS(tests);
}
