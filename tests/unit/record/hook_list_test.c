/* SPDX-License-Identifier: MIT */
/* The list of --hooks: names, codes, and how they change the defaults. */
#include "check.h"
#include "record/hook_list.h"

#define UNTOUCHED 0x12345678u

static uint32_t parsed(const char *list)
{
	uint32_t hooks = UNTOUCHED;
	struct err err;

	if (hook_list_parse("--hooks", list, &hooks, &err) < 0)
		printf("'%s': %s\n", list, err.text);
	return hooks;
}

static const char *refusal(const char *list)
{
	static struct err err;
	uint32_t hooks = UNTOUCHED;

	err.text[0] = 0;
	CHECK(hook_list_parse("--hooks", list, &hooks, &err) < 0);
	CHECK_EQ(hooks, UNTOUCHED);
	return err.text;
}

static void test_names(void)
{
	CHECK_EQ(parsed("method"), HOOK_METHOD);
	CHECK_EQ(parsed("stack"), HOOK_STACK);
	CHECK_EQ(parsed("stack-at"), HOOK_STACK_AT);
	CHECK_EQ(parsed("switch"), HOOK_SWITCH);
	CHECK_EQ(parsed("syscall"), HOOK_SYSCALL);
	CHECK_EQ(parsed("fault"), HOOK_FAULT);
	CHECK_EQ(parsed("alloc"), HOOK_ALLOC);
	CHECK_EQ(parsed("heap"), HOOK_HEAP);
	CHECK_EQ(parsed("bytecode"), HOOK_BYTECODE);
	CHECK_EQ(parsed("interrupt"), HOOK_INTERRUPT);
	CHECK_EQ(parsed("module"), HOOK_MODULE);
	CHECK_EQ(parsed("syscall,fault,syscall"), HOOK_SYSCALL | HOOK_FAULT);
}

static void test_codes(void)
{
	CHECK_EQ(parsed("0x50"), HOOK_METHOD);
	CHECK_EQ(parsed("0x50/0x10"), HOOK_METHOD);
	CHECK_EQ(parsed("0x50/0x80000010"), HOOK_METHOD);
	CHECK_EQ(parsed("0x40/0x7fffffff"), HOOK_STACK);
	CHECK_EQ(parsed("64"), HOOK_STACK);
	CHECK_EQ(parsed("0x41"), HOOK_STACK_AT);
	CHECK_EQ(parsed("0x61/1"), HOOK_SWITCH);
	CHECK_EQ(parsed("0x62"), HOOK_FAULT | HOOK_ALLOC | HOOK_HEAP | HOOK_BYTECODE);
	CHECK_EQ(parsed("0x04"), HOOK_INTERRUPT);
	CHECK_EQ(parsed("0x04/0x80000005"), HOOK_INTERRUPT);
	CHECK_EQ(parsed("0x19/0x38"), HOOK_MODULE);
	CHECK_EQ(parsed("0x30,0x40/0x7fffffff"), HOOK_STACK);
	CHECK_EQ(parsed("0x60"), 0);
}

static void test_signs(void)
{
	CHECK_EQ(parsed("+syscall"), HOOKS_DEFAULT | HOOK_SYSCALL);
	CHECK_EQ(parsed("-switch"), HOOKS_DEFAULT & ~(uint32_t)HOOK_SWITCH);
	CHECK_EQ(parsed("no-switch"), HOOKS_DEFAULT & ~(uint32_t)HOOK_SWITCH);
	CHECK_EQ(parsed("no-stack-at,+0x04"), HOOKS_DEFAULT | HOOK_INTERRUPT);
	CHECK_EQ(parsed("-0x40/0x7fffffff"), HOOKS_DEFAULT & ~(uint32_t)HOOK_STACK);
	CHECK_EQ(parsed("+fault,-stack,-fault"), HOOKS_DEFAULT & ~(uint32_t)HOOK_STACK);
	CHECK_EQ(parsed("-fault,+fault"), HOOKS_DEFAULT | HOOK_FAULT);
	/* A plain item anywhere: the list stands for itself. */
	CHECK_EQ(parsed("+fault,syscall"), HOOK_FAULT | HOOK_SYSCALL);
	CHECK_EQ(parsed("stack,switch,-switch"), HOOK_STACK);
}

static void test_refused(void)
{
	static const char *const bad[] = {"", ",", "syscall,", "sys", "syscalls", "+", "-", "no-",
		"++syscall", "0x", "0x99", "0x40/", "0x40/0x10", "0x40/0x7fffffff/1", "0x40x",
		"0x100000040", "0x0", "-1", " syscall"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(strstr(refusal(bad[i]), "is not known (there are method, stack, stack-at, "));
	CHECK(strstr(refusal("syscall,bogus,fault"), "'bogus' is not known"));
	CHECK_STR(refusal("-0x60"), "--hooks: '-0x60': these records are always made");
}

int main(void)
{
	static const struct test tests[] = {
		{"each name stands for itself", test_names},
		{"codes stand for the records that have them", test_codes},
		{"signs add to the defaults and take away", test_signs},
		{"what is not known is refused with all names", test_refused},
	};

	return RUN_TESTS(tests);
}
