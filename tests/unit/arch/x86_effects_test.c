/* SPDX-License-Identifier: MIT */
/* What is said of single instructions. Whether it is true: x86_effects_run_test.c */
#include "arch/x86_effects.h"

#include "check.h"

#define RAX 0x0001
#define RCX 0x0002
#define RDX 0x0004
#define RBX 0x0008
#define RSP 0x0010
#define RBP 0x0020
#define RSI 0x0040
#define RDI 0x0080
#define R8  0x0100
#define R12 0x1000
#define CF  0x01
#define PF  0x02
#define AF  0x04
#define ZF  0x08
#define SF  0x10
#define OF  0x20
#define DF  0x40
#define ALL 0x3f

struct effects_case {
	const char *code;
	uint8_t n;
	const char *text;
	uint16_t reads, writes, kills;
	uint8_t flags_read, flags_written, flags_killed;
};
#define SAYS(bytes, ...)                                                                           \
	{                                                                                          \
		bytes, sizeof(bytes) - 1, __VA_ARGS__                                              \
	}

static const struct effects_case effects_cases[] = {
	SAYS("\x48\x89\xd8", "mov %rbx,%rax", RBX, RAX, RAX, 0, 0, 0),
	SAYS("\x89\xd8", "mov %ebx,%eax", RBX, RAX, RAX, 0, 0, 0),
	SAYS("\x66\x89\xd8", "mov %bx,%ax", RBX, RAX, 0, 0, 0, 0),
	SAYS("\x88\xfc", "mov %bh,%ah", RBX, RAX, 0, 0, 0, 0),
	SAYS("\x40\x88\xfc", "mov %dil,%spl", RDI, RSP, 0, 0, 0, 0),
	SAYS("\x48\x8b\x44\x8b\x08", "mov 8(%rbx,%rcx,4),%rax", RBX | RCX, RAX, RAX, 0, 0, 0),
	SAYS("\x4b\x89\x04\x20", "mov %rax,(%r8,%r12)", RAX | R8 | R12, 0, 0, 0, 0, 0),
	SAYS("\x8b\x05\x00\x00\x00\x00", "mov 0(%rip),%eax", 0, RAX, RAX, 0, 0, 0),
	SAYS("\x48\x8d\x14\x8b", "lea (%rbx,%rcx,4),%rdx", RBX | RCX, RDX, RDX, 0, 0, 0),
	SAYS("\x0f\xb6\xc3", "movzx %bl,%eax", RBX, RAX, RAX, 0, 0, 0),
	SAYS("\x01\xd8", "add %ebx,%eax", RAX | RBX, RAX, RAX, 0, ALL, ALL),
	SAYS("\x11\xd8", "adc %ebx,%eax", RAX | RBX, RAX, RAX, CF, ALL, ALL),
	SAYS("\x31\xdb", "xor %ebx,%ebx", 0, RBX, RBX, 0, ALL, ALL),
	SAYS("\x48\x29\xdb", "sub %rbx,%rbx", 0, RBX, RBX, 0, ALL, ALL),
	SAYS("\x19\xdb", "sbb %ebx,%ebx", 0, RBX, RBX, CF, ALL, ALL),
	SAYS("\x31\xd8", "xor %ebx,%eax", RAX | RBX, RAX, RAX, 0, ALL, ALL),
	SAYS("\x30\xe0", "xor %ah,%al", RAX, RAX, 0, 0, ALL, ALL),
	SAYS("\x39\xd8", "cmp %ebx,%eax", RAX | RBX, 0, 0, 0, ALL, ALL),
	SAYS("\xff\xc0", "inc %eax", RAX, RAX, RAX, 0, ALL & ~CF, ALL & ~CF),
	SAYS("\xf7\xd0", "not %eax", RAX, RAX, RAX, 0, 0, 0),
	SAYS("\xd3\xe0", "shl %cl,%eax", RAX | RCX, RAX, RAX, 0, ALL, 0),
	SAYS("\xc1\xe0\x03", "shl $3,%eax", RAX, RAX, RAX, 0, ALL, ALL),
	SAYS("\xc1\xe0\x20", "shl $32,%eax", RAX, RAX, RAX, 0, ALL, 0),
	SAYS("\x48\xc1\xe0\x20", "shl $32,%rax", RAX, RAX, RAX, 0, ALL, ALL),
	SAYS("\x48\xc1\xe0\x40", "shl $64,%rax", RAX, RAX, RAX, 0, ALL, 0),
	SAYS("\xd1\xe0", "shl %eax", RAX, RAX, RAX, 0, ALL, ALL),
	SAYS("\xd1\xc0", "rol %eax", RAX, RAX, RAX, 0, CF | OF, CF | OF),
	SAYS("\xd1\xd0", "rcl %eax", RAX, RAX, RAX, CF, CF | OF, CF | OF),
	SAYS("\x0f\xa5\xd8", "shld %cl,%ebx,%eax", RAX | RBX | RCX, RAX, RAX, 0, ALL, 0),
	SAYS("\x0f\xa4\xd8\x04", "shld $4,%ebx,%eax", RAX | RBX, RAX, RAX, 0, ALL, ALL),
	SAYS("\xc4\xe2\x72\xf7\xc3", "sarx %ecx,%ebx,%eax", RBX | RCX, RAX, RAX, 0, 0, 0),
	SAYS("\xc4\xe2\x60\xf2\xc1", "andn %ecx,%ebx,%eax", RBX | RCX, RAX, RAX, 0, ALL, ALL),
	SAYS("\xc4\xe2\xfb\xf6\xcb", "mulx %rbx,%rax,%rcx", RBX | RDX, RAX | RCX, RAX | RCX, 0, 0,
		0),
	SAYS("\x66\x0f\x38\xf6\xc3", "adcx %ebx,%eax", RAX | RBX, RAX, RAX, CF, CF, CF),
	SAYS("\xf3\x0f\x38\xf6\xc3", "adox %ebx,%eax", RAX | RBX, RAX, RAX, OF, OF, OF),
	SAYS("\x0f\x44\xc3", "cmove %ebx,%eax", RAX | RBX, RAX, 0, ZF, 0, 0),
	SAYS("\x0f\x94\xc0", "sete %al", 0, RAX, 0, ZF, 0, 0),
	SAYS("\x0f\xbc\xc3", "bsf %ebx,%eax", RAX | RBX, RAX, 0, 0, ALL, ALL),
	SAYS("\xf3\x0f\xbc\xc3", "tzcnt %ebx,%eax", RAX | RBX, RAX, 0, 0, ALL, ALL),
	SAYS("\xf3\x48\x0f\x1e\xc8", "rdsspq %rax", RAX, RAX, 0, 0, 0, 0),
	SAYS("\xf7\xe3", "mul %ebx", RAX | RBX, RAX | RDX, RAX | RDX, 0, ALL, ALL),
	SAYS("\xf7\xf3", "div %ebx", RAX | RBX | RDX, RAX | RDX, RAX | RDX, 0, ALL, ALL),
	SAYS("\x99", "cdq", RAX, RDX, RDX, 0, 0, 0),
	SAYS("\x53", "push %rbx", RBX | RSP, RSP, RSP, 0, 0, 0),
	SAYS("\x5b", "pop %rbx", RSP, RBX | RSP, RBX | RSP, 0, 0, 0),
	SAYS("\xc9", "leave", RBP | RSP, RBP | RSP, RBP | RSP, 0, 0, 0),
	SAYS("\x9c", "pushf", RSP, RSP, RSP, ALL | DF, 0, 0),
	SAYS("\x9d", "popf", RSP, RSP, RSP, 0, ALL | DF, ALL | DF),
	SAYS("\x9f", "lahf", 0, RAX, 0, ALL & ~OF, 0, 0),
	SAYS("\x9e", "sahf", RAX, 0, 0, 0, ALL & ~OF, ALL & ~OF),
	SAYS("\xfc", "cld", 0, 0, 0, 0, DF, DF),
	SAYS("\xf5", "cmc", 0, 0, 0, CF, CF, CF),
	SAYS("\xa4", "movsb", RSI | RDI, RSI | RDI, RSI | RDI, DF, 0, 0),
	SAYS("\xf3\xa4", "rep movsb", RSI | RDI | RCX, RSI | RDI | RCX, 0, DF, 0, 0),
	SAYS("\xf3\xab", "rep stosl", RAX | RDI | RCX, RDI | RCX, 0, DF, 0, 0),
	SAYS("\xf3\xa6", "repe cmpsb", RSI | RDI | RCX, RSI | RDI | RCX, 0, DF | ZF, ALL, 0),
	SAYS("\xad", "lodsl", RSI, RAX | RSI, RAX | RSI, DF, 0, 0),
	SAYS("\xd7", "xlat", RAX | RBX, RAX, 0, 0, 0, 0),
	SAYS("\xe2\xfe", "loop", RCX, RCX, RCX, 0, 0, 0),
	SAYS("\xe1\xfe", "loope", RCX, RCX, RCX, ZF, 0, 0),
	SAYS("\xe3\xfe", "jrcxz", RCX, 0, 0, 0, 0, 0),
	SAYS("\x7c\xfe", "jl", 0, 0, 0, SF | OF, 0, 0),
	SAYS("\xff\xe0", "jmp *%rax", RAX, 0, 0, 0, 0, 0),
	SAYS("\xeb\xfe", "jmp", 0, 0, 0, 0, 0, 0),
	SAYS("\x0f\xb1\x0b", "cmpxchg %ecx,(%rbx)", RAX | RBX | RCX, RAX, 0, 0, ALL, ALL),
	SAYS("\x87\xd9", "xchg %ebx,%ecx", RBX | RCX, RBX | RCX, RBX | RCX, 0, 0, 0),
	SAYS("\x0f\xa2", "cpuid", RAX | RCX, RAX | RBX | RCX | RDX, RAX | RBX | RCX | RDX, 0, 0, 0),
	SAYS("\x0f\x31", "rdtsc", 0, RAX | RDX, RAX | RDX, 0, 0, 0),
	SAYS("\x0f\xc7\xf0", "rdrand %eax", 0, RAX, RAX, 0, ALL, ALL),
	SAYS("\x0f\xae\x23", "xsave (%rbx)", RAX | RBX | RDX, 0, 0, 0, 0, 0),
	SAYS("\xc5\xf8\x77", "vzeroupper", 0, 0, 0, 0, 0, 0),
	SAYS("\xc4\xe2\x79\x17\xc1", "vptest %xmm1,%xmm0", 0, 0, 0, 0, ALL, ALL),
	SAYS("\x66\x0f\xd7\xc1", "pmovmskb %xmm1,%eax", 0, RAX, RAX, 0, 0, 0),
	SAYS("\x66\x0f\x1f\x44\x03\x00", "nopw 0(%rbx,%rax)", 0, 0, 0, 0, 0, 0),
	SAYS("\xf3\x0f\x1e\xfa", "endbr64", 0, 0, 0, 0, 0, 0),
};

static void test_single(void)
{
	for (size_t i = 0; i < sizeof(effects_cases) / sizeof(effects_cases[0]); i++) {
		const struct effects_case *c = &effects_cases[i];
		struct x86_effects e;
		struct x86_insn insn;
		int before = check_failures;

		CHECK(x86_decode_effects(
			&insn, &e, (struct span){(const uint8_t *)c->code, c->n}, 0));
		/* What an instruction reads as well is no matter of killing. */
		CHECK_EQ(e.reads, c->reads);
		CHECK_EQ(e.writes, c->writes);
		CHECK_EQ(e.kills & ~e.reads, c->kills & ~c->reads);
		CHECK_EQ(e.flags_read, c->flags_read);
		CHECK_EQ(e.flags_written, c->flags_written);
		CHECK_EQ(e.flags_killed & ~e.flags_read, c->flags_killed & ~c->flags_read);
		CHECK(!e.uses_gs && !e.is_privileged && !e.is_transaction);
		if (check_failures > before)
			printf("# that is of %s\n", c->text);
	}
}

static void test_seen_by_others(void)
{
	static const char *const code_of[] = {"\xe8\x00\x00\x00\x00", "\xff\xd0", "\xc3",
		"\xc2\x08\x00", "\x0f\x05", "\xcd\x80", "\xcc", "\x0f\x0b", "\xf4",
		"\x0f\x01\xd5" /* xend */, "\xc6\xf8\x01" /* xabort */,
		"\xc7\xf8\x01\x01\x01\x01" /* xbegin */, "\x0f\x01\xd9" /* vmmcall */,
		"\x0f\x01\xd7" /* enclu */, "\x0f\x30" /* wrmsr */};
	static const uint8_t length[] = {5, 2, 1, 3, 2, 2, 1, 2, 1, 3, 3, 6, 3, 3, 2};

	for (size_t i = 0; i < sizeof(code_of) / sizeof(code_of[0]); i++) {
		struct span span = {(const uint8_t *)code_of[i], length[i]};
		struct x86_effects e;
		struct x86_insn insn;

		CHECK(x86_decode_effects(&insn, &e, span, 0));
		CHECK_EQ(insn.length, length[i]);
		CHECK_EQ(e.reads, X86_REGS_ALL);
		CHECK_EQ(e.kills, 0);
		CHECK_EQ(e.flags_read, X86_FLAGS_ALL);
		CHECK_EQ(e.flags_killed, 0);
		CHECK_EQ(e.is_transaction, i >= 9 && i <= 11);
		CHECK_EQ(e.is_privileged, i == 8 || i == 14);
	}
}

static void test_marks(void)
{
	static const struct {
		const char *code;
		uint8_t n;
		bool uses_gs, is_rep;
	} cases[] = {
		{"\x65\x48\x8b\x04\x25\x28\x00\x00\x00", 9, true, false}, /* mov %gs:0x28,%rax */
		{"\x64\x48\x8b\x04\x25\x28\x00\x00\x00", 9, false, false},
		{"\xf3\x48\x0f\xae\xd8", 5, true, false},  /* wrgsbase %rax */
		{"\xf3\x48\x0f\xae\xc8", 5, true, false},  /* rdgsbase %rax */
		{"\xf3\x48\x0f\xae\xd0", 5, false, false}, /* wrfsbase %rax */
		{"\x8e\xe8", 2, true, false},		   /* mov %eax,%gs */
		{"\x0f\xa9", 2, true, false},		   /* pop %gs */
		{"\x65\xf3\xa4", 3, true, true},
		{"\xf3\xa4", 2, false, true},
		{"\xf2\xae", 2, false, true},
		{"\xf3\xc3", 2, false, false},
		{"\xf3\x90", 2, false, false},
		{"\xf3\x0f\xbc\xc3", 4, false, false},
		{"\x90", 1, false, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct span code = {(const uint8_t *)cases[i].code, cases[i].n};
		struct x86_effects e;
		struct x86_insn insn;

		CHECK(x86_decode_effects(&insn, &e, code, 0));
		CHECK_EQ(e.uses_gs, cases[i].uses_gs);
		CHECK_EQ(e.is_rep, cases[i].is_rep);
	}
}

static void test_not_an_instruction(void)
{
	struct x86_effects e = {.reads = 77};
	struct x86_insn insn = {.length = 77};

	CHECK(!x86_decode_effects(&insn, &e, (struct span){NULL, 0}, 0));
	CHECK(!x86_decode_effects(&insn, &e, (struct span){(const uint8_t *)"\x06", 1}, 0));
	CHECK(!x86_decode_effects(&insn, &e, (struct span){(const uint8_t *)"\x48\x8b", 2}, 0));
	CHECK(e.reads == 77 && insn.length == 77);
}

int main(void)
{
	static const struct test tests[] = {
		{"says what single instructions do", test_single},
		{"calls, traps and the system see everything", test_seen_by_others},
		{"marks gs and repetition", test_marks},
		{"refuses what is no instruction", test_not_an_instruction},
	};

	return RUN_TESTS(tests);
}
