/* SPDX-License-Identifier: MIT */
#include "arch/x86_code.h"
#include "check.h"

struct code {
	const char *text; /* as the GNU assembler writes it */
	uint8_t n;	  /* with prefixes */
	uint8_t needs;	  /* bytes without prefixes: fewer must not be taken for a call */
	uint8_t bytes[9];
};

/* Encodings made by the GNU assembler. */
static const struct code calls[] = {
	{"call .+0x1234", 5, 5, {0xe8, 0x2f, 0x12, 0x00, 0x00}},
	{"call *%rax", 2, 2, {0xff, 0xd0}},
	{"call *%r11", 3, 2, {0x41, 0xff, 0xd3}},
	{"call *(%rax)", 2, 2, {0xff, 0x10}},
	{"call *(%r9)", 3, 2, {0x41, 0xff, 0x11}},
	{"call *0x10(%rax)", 3, 3, {0xff, 0x50, 0x10}},
	{"call *-8(%rbp)", 3, 3, {0xff, 0x55, 0xf8}},
	{"call *0x12345678(%rbx)", 6, 6, {0xff, 0x93, 0x78, 0x56, 0x34, 0x12}},
	{"call *0x12345678(%r15)", 7, 6, {0x41, 0xff, 0x97, 0x78, 0x56, 0x34, 0x12}},
	{"call *(%rsp)", 3, 3, {0xff, 0x14, 0x24}},
	{"call *(%r12)", 4, 3, {0x41, 0xff, 0x14, 0x24}},
	{"call *8(%rsp)", 4, 4, {0xff, 0x54, 0x24, 0x08}},
	{"call *0x1000(%rsp)", 7, 7, {0xff, 0x94, 0x24, 0x00, 0x10, 0x00, 0x00}},
	{"call *(%rax,%rbx,8)", 3, 3, {0xff, 0x14, 0xd8}},
	{"call *(%r13,%r14,4)", 5, 4, {0x43, 0xff, 0x54, 0xb5, 0x00}},
	{"call *0x20(%rax,%rcx,2)", 4, 4, {0xff, 0x54, 0x48, 0x20}},
	{"call *0x1000(%rax,%rcx,2)", 7, 7, {0xff, 0x94, 0x48, 0x00, 0x10, 0x00, 0x00}},
	{"call *0x1000(,%rcx,8)", 7, 7, {0xff, 0x14, 0xcd, 0x00, 0x10, 0x00, 0x00}},
	{"call *0x1000(%rip)", 6, 6, {0xff, 0x15, 0x00, 0x10, 0x00, 0x00}},
	{"call *0x1000", 7, 7, {0xff, 0x14, 0x25, 0x00, 0x10, 0x00, 0x00}},
	{"notrack call *%rax", 3, 2, {0x3e, 0xff, 0xd0}},
	{"call *%fs:0x28", 8, 7, {0x64, 0xff, 0x14, 0x25, 0x28, 0x00, 0x00, 0x00}},
};

static const struct code others[] = {
	{"jmp *%rax", 2, 0, {0xff, 0xe0}},
	{"jmp *0x10(%rax)", 3, 0, {0xff, 0x60, 0x10}},
	{"jmp .+0x1234", 5, 0, {0xe9, 0x2f, 0x12, 0x00, 0x00}},
	{"push 0x10(%rax)", 3, 0, {0xff, 0x70, 0x10}},
	{"lcall *(%rax)", 2, 0, {0xff, 0x18}},
	{"incl (%rax)", 2, 0, {0xff, 0x00}},
	{"syscall", 2, 0, {0x0f, 0x05}},
	{"ret", 1, 0, {0xc3}},
	{"call cut short", 4, 0, {0xe8, 0x2f, 0x12, 0x00}},
};

/* The bytes with int3 before them, which takes part in no call. */
static bool follows(const struct code *c)
{
	uint8_t code[16];

	memset(code, 0xcc, sizeof(code));
	memcpy(code + sizeof(code) - c->n, c->bytes, c->n);
	return x86_follows_call(code + sizeof(code), sizeof(code));
}

static void test_calls(void)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (!follows(&calls[i]))
			printf("not taken for a call: %s\n", calls[i].text);
		CHECK(follows(&calls[i]));
	}
}

static void test_others(void)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (follows(&others[i]))
			printf("taken for a call: %s\n", others[i].text);
		CHECK(!follows(&others[i]));
	}
	CHECK(!follows(&(struct code){"int3 only", 0, 0, {0}}));
}

/* The bytes are there, but only the last n may be looked at. */
static void test_short(void)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const uint8_t *end = calls[i].bytes + calls[i].n;

		for (size_t n = 0; n < calls[i].needs; n++)
			CHECK(!x86_follows_call(end, n));
		for (size_t n = calls[i].needs; n <= calls[i].n; n++)
			CHECK(x86_follows_call(end, n));
	}
}

/* Intel's manual volume 2, tables 2-2 and 2-3: bytes behind opcode and ModRM. */
static size_t operand_bytes(unsigned mod, unsigned rm, unsigned base)
{
	static const size_t displacement[4] = {0, 1, 4, 0};
	size_t n = displacement[mod];

	if (mod == 3)
		return 0;
	if (rm == 4)
		n += 1 + (mod == 0 && base == 5 ? 4u : 0u);
	else if (mod == 0 && rm == 5)
		n += 4;
	return n;
}

static void test_every_form(void)
{
	for (unsigned modrm = 0; modrm < 256; modrm++) {
		for (unsigned sib = 0; sib < 256; sib++) {
			size_t n = 2 + operand_bytes(modrm >> 6, modrm & 7, sib & 7);
			struct code c = {"", (uint8_t)n, 0, {0}};

			/* operand bytes that begin another call themselves */
			if (modrm == 0xff || sib == 0xff || modrm == 0xe8 || sib == 0xe8)
				continue;
			memset(c.bytes, 0xcc, sizeof(c.bytes));
			c.bytes[0] = 0xff;
			c.bytes[1] = (uint8_t)modrm;
			if ((modrm & 7) == 4 && modrm >> 6 != 3)
				c.bytes[2] = (uint8_t)sib;
			CHECK_EQ(follows(&c), (modrm >> 3 & 7) == 2);
			c.n++; /* a byte more, and it does not end there */
			c.bytes[n] = 0xcc;
			CHECK(!follows(&c));
		}
	}
}

int main(void)
{
	static const struct test tests[] = {
		{"calls as the assembler writes them are known", test_calls},
		{"jumps, pushes and far calls are not", test_others},
		{"no byte before the given ones is looked at", test_short},
		{"every operand form has the length of the manual", test_every_form},
	};

	return RUN_TESTS(tests);
}
