/* SPDX-License-Identifier: MIT */
#include "arch/x86_code.h"
#include "check.h"

#define AT 0x401000u

/* Decodes the bytes of a literal at AT. */
#define DECODE(insn, text, is_64)                                                                  \
	x86_decode(insn, (struct span){(const uint8_t *)(text), sizeof(text) - 1}, AT, is_64)

struct flow_case {
	const char *code;
	uint8_t n;
	bool is_64;
	enum x86_flow flow;
	bool has_target;
	uint64_t target;
};
#define CASE(text, is_64, flow, ...)                                                               \
	{                                                                                          \
		text, sizeof(text) - 1, is_64, flow, __VA_ARGS__                                   \
	}

static void test_flow(void)
{
	static const struct flow_case cases[] = {
		CASE("\x55", true, X86_FLOW_NEXT, false, 0),
		CASE("\xe9\x10\x00\x00\x00", true, X86_FLOW_JUMP, true, AT + 0x15),
		CASE("\xeb\xfe", true, X86_FLOW_JUMP, true, AT),
		CASE("\xf2\xe9\x10\x00\x00\x00", true, X86_FLOW_JUMP, true, AT + 0x16), /* bnd */
		CASE("\x74\x02", true, X86_FLOW_BRANCH, true, AT + 4),
		CASE("\x0f\x84\x00\xff\xff\xff", true, X86_FLOW_BRANCH, true, AT + 6 - 0x100),
		CASE("\xe2\x80", true, X86_FLOW_BRANCH, true, AT + 2 - 0x80),
		CASE("\xe3\x7f", false, X86_FLOW_BRANCH, true, AT + 2 + 0x7f),
		CASE("\xc7\xf8\x00\x00\x00\x00", true, X86_FLOW_BRANCH, true, AT + 6), /* xbegin */
		CASE("\xe8\x00\x00\x00\x00", false, X86_FLOW_CALL, true, AT + 5),
		CASE("\xe8\x00\x00\x00\x80", false, X86_FLOW_CALL, true, AT + 5 + 0x80000000u),
		CASE("\xff\xe0", true, X86_FLOW_JUMP_FAR, false, 0),
		CASE("\xff\x25\x00\x00\x00\x00", true, X86_FLOW_JUMP_FAR, false, 0),
		CASE("\xff\xd0", true, X86_FLOW_CALL_FAR, false, 0),
		CASE("\xc3", true, X86_FLOW_RETURN, false, 0),
		CASE("\xf3\xc3", true, X86_FLOW_RETURN, false, 0),
		CASE("\xc2\x04\x00", false, X86_FLOW_RETURN, false, 0),
		CASE("\x0f\x0b", true, X86_FLOW_STOP, false, 0),
		CASE("\xf4", true, X86_FLOW_STOP, false, 0),
		CASE("\xcc", true, X86_FLOW_STOP, false, 0),
		CASE("\x0f\x05", true, X86_FLOW_SYSCALL, false, 0),
		CASE("\xcd\x80", false, X86_FLOW_SYSCALL, false, 0),
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct flow_case *c = &cases[i];
		struct x86_insn insn;

		CHECK(x86_decode(
			&insn, (struct span){(const uint8_t *)c->code, c->n}, AT, c->is_64));
		CHECK_EQ(insn.length, c->n);
		CHECK_EQ(insn.flow, c->flow);
		CHECK_EQ(insn.has_target, c->has_target);
		CHECK_EQ(insn.target, c->target);
	}
}

static void test_offsets(void)
{
	struct x86_insn insn;

	CHECK(DECODE(&insn, "\x74\x02", true));
	CHECK_EQ(insn.rel_at, 1);
	CHECK_EQ(insn.rel_bytes, 1);
	CHECK_EQ(insn.opcode, 0x74);
	CHECK(!insn.is_bound);
	CHECK(DECODE(&insn, "\x67\xe3\x02", true)); /* jecxz */
	CHECK_EQ(insn.rel_at, 2);
	CHECK_EQ(insn.opcode, 0xe3);
	CHECK(DECODE(&insn, "\x0f\x84\x00\x00\x00\x00", true));
	CHECK_EQ(insn.rel_at, 2);
	CHECK_EQ(insn.rel_bytes, 4);
	CHECK_EQ(insn.opcode, 0);
	CHECK(DECODE(&insn, "\x90", true));
	CHECK_EQ(insn.rel_at, 0);
	CHECK_EQ(insn.modrm_at, 0);
	CHECK(DECODE(&insn, "\x41\xff\xd4", true)); /* call *%r12 */
	CHECK_EQ(insn.modrm_at, 2);
}

static void test_rip_relative(void)
{
	struct x86_insn insn;

	CHECK(DECODE(&insn, "\x48\x8d\x05\x10\x00\x00\x00", true));
	CHECK_EQ(insn.disp_at, 3);
	CHECK_EQ(insn.disp_target, AT + 7 + 0x10);
	/* cmpl $1,-4(%rip): an immediate lies behind the displacement */
	CHECK(DECODE(&insn, "\x83\x3d\xfc\xff\xff\xff\x01", true));
	CHECK_EQ(insn.disp_at, 2);
	CHECK_EQ(insn.disp_target, AT + 7 - 4);
	/* VEX: vmovups 0x20(%rip),%ymm0 */
	CHECK(DECODE(&insn, "\xc5\xfc\x10\x05\x20\x00\x00\x00", true));
	CHECK_EQ(insn.disp_at, 4);
	CHECK_EQ(insn.disp_target, AT + 8 + 0x20);
	/* In 32-bit code the same bytes are an address. */
	CHECK(DECODE(&insn, "\x8d\x05\x10\x00\x00\x00", false));
	CHECK_EQ(insn.disp_at, 0);
	/* disp(%rsp) and disp32 without a base are not relative. */
	CHECK(DECODE(&insn, "\x48\x8b\x04\x25\x00\x10\x00\x00", true));
	CHECK_EQ(insn.disp_at, 0);
}

static void test_bound(void)
{
	struct x86_insn insn;

	CHECK(DECODE(&insn, "\x67\x8d\x05\x10\x00\x00\x00", true)); /* lea 0x10(%eip),%eax */
	CHECK(insn.is_bound);
	CHECK(DECODE(&insn, "\xc7\xf8\x00\x00\x00\x00", true)); /* xbegin */
	CHECK(insn.is_bound);
	CHECK(DECODE(&insn, "\x66\xe9\x00\x00", false)); /* jmp to a 16-bit address */
	CHECK(insn.is_bound);
	CHECK(DECODE(&insn, "\x48\x8d\x05\x10\x00\x00\x00", true));
	CHECK(!insn.is_bound);
}

struct nop_case {
	const char *code;
	uint8_t n;
	bool nop_64, nop_32;
};
#define NOP(text, nop_64, nop_32)                                                                  \
	{                                                                                          \
		text, sizeof(text) - 1, nop_64, nop_32                                             \
	}

static void test_nops(void)
{
	static const struct nop_case cases[] = {
		NOP("\x90", true, true),
		NOP("\x66\x90", true, true),
		NOP("\x0f\x1f\x00", true, true),
		NOP("\x0f\x1f\x44\x00\x00", true, true),
		NOP("\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", true, true),
		NOP("\x8d\x76\x00", false, true),		  /* lea 0(%esi),%esi */
		NOP("\x8d\xb6\x00\x00\x00\x00", false, true),	  /* the same, longer */
		NOP("\x8d\xb4\x26\x00\x00\x00\x00", false, true), /* with a SIB byte */
		NOP("\x2e\x8d\x74\x26\x00", false, true),
		NOP("\x89\xf6", false, true),	   /* mov %esi,%esi */
		NOP("\x8d\x76\x01", false, false), /* lea 1(%esi),%esi */
		NOP("\x8d\x7e\x00", false, false), /* lea 0(%esi),%edi */
		NOP("\x8d\x34\x36", false, false), /* lea (%esi,%esi),%esi */
		NOP("\x8b\x36", false, false),	   /* mov (%esi),%esi */
		NOP("\xf3\x90", false, false),	   /* pause */
		NOP("\xcc", false, false),
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct span code = {(const uint8_t *)cases[i].code, cases[i].n};
		struct x86_insn insn;

		CHECK(x86_decode(&insn, code, AT, true));
		CHECK_EQ(insn.is_nop, cases[i].nop_64);
		CHECK(x86_decode(&insn, code, AT, false));
		CHECK_EQ(insn.is_nop, cases[i].nop_32);
	}
}

static void test_padding(void)
{
	struct x86_insn insn;

	CHECK(DECODE(&insn, "\xcc", true));
	CHECK(insn.is_padding);
	CHECK(DECODE(&insn, "\x00\x00", true));
	CHECK(insn.is_padding);
	CHECK(DECODE(&insn, "\x0f\x1f\x00", true));
	CHECK(insn.is_padding);
	CHECK(DECODE(&insn, "\x0f\x0b", true));
	CHECK(!insn.is_padding);
	CHECK(DECODE(&insn, "\xf3\x0f\x1e\xfa", true));
	CHECK(insn.is_endbr);
	CHECK(!insn.is_padding);
	CHECK(DECODE(&insn, "\xf3\x0f\x1e\xfb", false));
	CHECK(insn.is_endbr);
}

static void test_not_an_instruction(void)
{
	struct x86_insn insn;

	CHECK(!DECODE(&insn, "\x06", true)); /* push %es is gone in 64-bit code */
	CHECK(DECODE(&insn, "\x06", false));
	CHECK(!DECODE(&insn, "\xe8\x00\x00", true)); /* cut off */
	CHECK(!x86_decode(&insn, (struct span){NULL, 0}, AT, true));
	/* Sixteen bytes of prefixes. */
	CHECK(!DECODE(
		&insn, "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90", true));
}

int main(void)
{
	static const struct test tests[] = {
		{"says where control goes behind an instruction", test_flow},
		{"says where the offset of a branch lies", test_offsets},
		{"finds operands relative to the instruction", test_rip_relative},
		{"knows what cannot be moved", test_bound},
		{"knows the nops of 64- and 32-bit code apart", test_nops},
		{"knows what lies between functions", test_padding},
		{"refuses what is no instruction", test_not_an_instruction},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
