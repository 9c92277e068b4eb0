/* SPDX-License-Identifier: MIT */
/* Pieces of code as HotSpot makes them, and where the return address is at each instruction. */
#include "jvm/exit_rule.h"

#include "../check.h"

#define BASE 0x10000
#define RSP  4
#define RBP  5
#define R13  13

static struct exit_code code_of(const char *bytes, size_t n)
{
	return (struct exit_code){{(const uint8_t *)bytes, n}, BASE, BASE, BASE + n};
}

static bool is(struct exit_value v, enum exit_value_kind kind, unsigned reg, int64_t disp)
{
	return v.kind == kind && v.reg == reg && v.disp == disp;
}

static void test_epilogue(void)
{
	/* add rsp, 0x20; pop rbp; ret */
	static const char bytes[] = "\x48\x83\xc4\x20\x5d\xc3";
	struct exit_code code = code_of(bytes, 6);
	struct exit_rule r;

	CHECK(exit_rule_find(&r, &code, BASE, 10) && r.how == EXIT_BY_RETURN);
	CHECK(is(r.ret, EXIT_MEMORY, RSP, 0x28) && is(r.regs[RBP], EXIT_MEMORY, RSP, 0x20));
	CHECK(is(r.sp, EXIT_REGISTER, RSP, 0x30));
	CHECK(exit_rule_find(&r, &code, BASE + 4, 10) && is(r.ret, EXIT_MEMORY, RSP, 8));
	CHECK(exit_rule_find(&r, &code, BASE + 5, 10) && is(r.ret, EXIT_MEMORY, RSP, 0));
	CHECK(is(r.regs[RBP], EXIT_REGISTER, RBP, 0));
}

/* As at the end of copying arrays behind a barrier of the collector. */
static void test_frame_pointer_restored(void)
{
	/* mov rbp, [rsp+0x50]; add rsp, 0x80; leave; ret */
	static const char bytes[] = "\x48\x8b\x6c\x24\x50\x48\x81\xc4\x80\x00\x00\x00\xc9\xc3";
	struct exit_code code = code_of(bytes, 14);
	struct exit_rule r;

	CHECK(exit_rule_find(&r, &code, BASE, 10) && r.how == EXIT_BY_RETURN);
	CHECK(is(r.loaded, EXIT_MEMORY, RSP, 0x50) && is(r.ret, EXIT_MEMORY, EXIT_LOADED, 8));
	CHECK(is(r.regs[RBP], EXIT_MEMORY, EXIT_LOADED, 0));
	CHECK(is(r.sp, EXIT_REGISTER, EXIT_LOADED, 16));
}

static void test_interpreter_exit(void)
{
	/* mov rbx, [rbp-8]; leave; pop r13; mov rsp, rbx; jmp r13 */
	static const char bytes[] = "\x48\x8b\x5d\xf8\xc9\x41\x5d\x48\x8b\xe3\x41\xff\xe5";
	struct exit_code code = code_of(bytes, 13);
	struct exit_rule r;

	CHECK_EQ(codelet_state_at_end(span_sub(code.bytes, 0, 4), BASE, false), CODELET_BUILT);
	CHECK_EQ(codelet_state_at_end(span_sub(code.bytes, 0, 5), BASE, false), CODELET_GONE);
	CHECK_EQ(codelet_state_at_end(code.bytes, BASE, false), CODELET_BUILT);
	CHECK(exit_rule_find(&r, &code, BASE + 5, 10) && r.how == EXIT_BY_JUMP);
	CHECK(is(r.target, EXIT_MEMORY, RSP, 0) && is(r.regs[RSP], EXIT_REGISTER, 3, 0));
	CHECK(exit_rule_find(&r, &code, BASE + 10, 10));
	CHECK(is(r.target, EXIT_REGISTER, R13, 0) && is(r.regs[RSP], EXIT_REGISTER, RSP, 0));
}

static void test_interpreter_entry(void)
{
	/* pop rax; push 0; push rax; push rbp; mov rbp, rsp; push r13 */
	static const char bytes[] = "\x58\x6a\x00\x50\x55\x48\x8b\xec\x41\x55";
	struct exit_code code = code_of(bytes, 10);
	struct exit_rule r;

	CHECK(exit_rule_find(&r, &code, BASE, 10) && r.how == EXIT_BY_FRAME);
	CHECK(is(r.ret, EXIT_MEMORY, RSP, 0) && is(r.pushed, EXIT_REGISTER, R13, 0));
	CHECK(exit_rule_find(&r, &code, BASE + 1, 10) && is(r.ret, EXIT_REGISTER, 0, 0));
	CHECK(exit_rule_find(&r, &code, BASE + 4, 10) && is(r.ret, EXIT_MEMORY, RSP, 0));
	CHECK(exit_rule_find(&r, &code, BASE + 5, 10) && is(r.ret, EXIT_MEMORY, RSP, 8));
	CHECK(is(r.regs[RBP], EXIT_MEMORY, RSP, 0));
	CHECK_EQ(codelet_state_at_end(span_sub(code.bytes, 0, 5), BASE, true), CODELET_BEFORE);
	CHECK_EQ(codelet_state_at_end(span_sub(code.bytes, 0, 8), BASE, true), CODELET_BUILT);
}

static void test_prologue(void)
{
	/* mov [rsp-0x14000], eax; push rbp; sub rsp, 0x20; nop */
	static const char bytes[] = "\x89\x84\x24\x00\xc0\xfe\xff\x55\x48\x83\xec\x20\x90";
	struct exit_code code = code_of(bytes, 13);
	struct exit_rule r;

	CHECK(exit_rule_find_prologue(&r, &code, BASE, 0x30, 10));
	CHECK(is(r.ret, EXIT_MEMORY, RSP, 0) && is(r.regs[RBP], EXIT_REGISTER, RBP, 0));
	CHECK(exit_rule_find_prologue(&r, &code, BASE + 8, 0x30, 10));
	CHECK(is(r.ret, EXIT_MEMORY, RSP, 8) && is(r.regs[RBP], EXIT_MEMORY, RSP, 0));
	CHECK(!exit_rule_find_prologue(&r, &code, BASE + 12, 0x30, 10));
}

static void test_adapter(void)
{
	/* mov rax, [rsp]; mov r11, rsp; and rsp, -16; push rax; jmp r11 */
	static const char bytes[] = "\x48\x8b\x04\x24\x4c\x8b\xdc\x48\x83\xe4\xf0\x50\x41\xff\xe3";
	struct exit_code code = code_of(bytes, 15);
	struct exit_rule r;

	CHECK(exit_rule_find(&r, &code, BASE, 10) && is(r.ret, EXIT_MEMORY, RSP, 0));
	CHECK_EQ(r.sp.kind, EXIT_UNKNOWN);
	CHECK(exit_rule_find(&r, &code, BASE + 11, 10) && is(r.ret, EXIT_REGISTER, 0, 0));
	CHECK(exit_rule_find(&r, &code, BASE + 12, 10) && is(r.ret, EXIT_MEMORY, RSP, 0));
}

static void test_saved_stack_pointer(void)
{
	/* mov rsp, [rsp+0x40]; pop rbp; ret */
	static const char bytes[] = "\x48\x8b\x64\x24\x40\x5d\xc3";
	struct exit_code code = code_of(bytes, 7);
	struct exit_rule r;

	CHECK(exit_rule_find(&r, &code, BASE, 10) && r.how == EXIT_BY_RETURN);
	CHECK(is(r.loaded, EXIT_MEMORY, RSP, 0x40));
	CHECK(is(r.ret, EXIT_MEMORY, EXIT_LOADED, 8));
	CHECK(is(r.regs[RBP], EXIT_MEMORY, EXIT_LOADED, 0));
	CHECK(is(r.sp, EXIT_REGISTER, EXIT_LOADED, 16));
}

static void test_no_way(void)
{
	static const char loop[] = "\xeb\xfe", stop[] = "\x0f\x0b";
	struct exit_code code = code_of(loop, 2);
	struct exit_rule r;

	CHECK(!exit_rule_find(&r, &code, BASE, 100));
	code = code_of(stop, 2);
	CHECK(!exit_rule_find(&r, &code, BASE, 100));
	CHECK(!exit_rule_find(&r, &code, BASE + 50, 100));
}

int main(void)
{
	static const struct test tests[] = {
		{"an epilogue tells where the return address is", test_epilogue},
		{"a frame pointer that is loaded again leads to the frame",
			test_frame_pointer_restored},
		{"the interpreter's exit is followed behind its frame", test_interpreter_exit},
		{"the interpreter's entry is followed before its frame", test_interpreter_entry},
		{"a compiled method's prologue is told by what comes next", test_prologue},
		{"an adapter that aligns the stack keeps the return address", test_adapter},
		{"a stack pointer saved in memory is followed", test_saved_stack_pointer},
		{"code that is not left has no rule", test_no_way},
	};

	return RUN_TESTS(tests);
}
