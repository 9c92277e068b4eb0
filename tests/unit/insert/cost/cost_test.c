/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "insert/cost/cost.h"
#include "insert/cost/model.h"

#define CYCLES(n) ((uint32_t)((n)*COST_UNIT))

/* The cost of the bytes of a literal on a processor. */
#define COST(cpu, text)                                                                            \
	cost_block(cost_cpu_find(cpu), (struct span){(const uint8_t *)(text), sizeof(text) - 1})

#define ADD_RBX_RAX  "\x48\x01\xd8"
#define XOR_EAX_EAX  "\x31\xc0"
#define LOAD_RAX_RAX "\x48\x8b\x00"
#define CMP_RAX_RBX  "\x48\x39\xc3"
#define NOP	     "\x90"

static void test_chain_of_adds(void)
{
	for (size_t i = 0; cost_cpu_at(i); i++) {
		const char *name = cost_cpu_name(cost_cpu_at(i));

		CHECK_EQ(COST(name, ADD_RBX_RAX), CYCLES(1));
		CHECK_EQ(COST(name, ADD_RBX_RAX ADD_RBX_RAX ADD_RBX_RAX), CYCLES(3));
		/* lea, neg, movzx of the result before: three links more */
		CHECK_EQ(COST(name, ADD_RBX_RAX "\x48\x8d\x40\x08\x48\xf7\xd8\x0f\xb6\xc0"),
			CYCLES(4));
	}
}

static void test_independent_adds(void)
{
/* add %rbx to rax, rcx, rdx, rsi, rdi, r8, r9, r10 */
#define EIGHT                                                                                      \
	"\x48\x01\xd8\x48\x01\xd9\x48\x01\xda\x48\x01\xde\x48\x01\xdf\x49\x01\xd8\x49\x01\xd9"     \
	"\x49\x01\xda"
	CHECK_EQ(COST("zen4", EIGHT), CYCLES(2));
	CHECK_EQ(COST("zen3", EIGHT), CYCLES(2));
	CHECK_EQ(COST("skylake", EIGHT), CYCLES(2));
	CHECK_EQ(COST("icelake", EIGHT), CYCLES(2));
	CHECK_EQ(COST("goldencove", EIGHT), CYCLES(1.6));
}

static void test_width(void)
{
#define FIVE_NOPS NOP NOP NOP NOP NOP
	CHECK_EQ(COST("skylake", NOP NOP NOP NOP), CYCLES(1));
	CHECK_EQ(COST("icelake", FIVE_NOPS), CYCLES(1));
	CHECK_EQ(COST("zen3", FIVE_NOPS NOP), CYCLES(1));
	CHECK_EQ(COST("zen4", FIVE_NOPS FIVE_NOPS NOP NOP), CYCLES(1)); /* two in a slot */
}

static void test_multiply_and_divide(void)
{
	for (size_t i = 0; cost_cpu_at(i); i++) {
		const char *name = cost_cpu_name(cost_cpu_at(i));

		CHECK_EQ(COST(name, "\x48\x0f\xaf\xc3"), CYCLES(3)); /* imul %rbx,%rax */
		/* imul %rbx to rax, rcx, rdx: one unit */
		CHECK_EQ(COST(name, "\x48\x0f\xaf\xc3\x48\x0f\xaf\xcb\x48\x0f\xaf\xd3"), CYCLES(3));
		/* xor %edx,%edx; div %rbx: rax is a chain */
		CHECK(COST(name, "\x31\xd2\x48\xf7\xf3") >= CYCLES(9));
	}
	CHECK_EQ(COST("zen4", "\x31\xd2\x48\xf7\xf3"), CYCLES(9));
	CHECK(COST("skylake", "\x31\xd2\x48\xf7\xf3") >
		2 * COST("icelake", "\x31\xd2\x48\xf7\xf3"));
	/* mov %rsi,%rax in front: no chain, the unit alone */
	CHECK_EQ(COST("zen4", "\x48\x89\xf0\x31\xd2\x48\xf7\xf3"), CYCLES(7));
}

static void test_loads(void)
{
	CHECK_EQ(COST("icelake", LOAD_RAX_RAX), CYCLES(5));
	CHECK_EQ(COST("skylake", LOAD_RAX_RAX), CYCLES(5));
	CHECK_EQ(COST("zen4", LOAD_RAX_RAX), CYCLES(4));
	/* mov (%rax,%rcx),%rax */
	CHECK_EQ(COST("zen4", "\x48\x8b\x04\x08"), CYCLES(5));
	/* six loads of (%rsi): two or three a cycle */
#define LOAD_RBX "\x48\x8b\x1e"
	CHECK_EQ(COST("icelake", LOAD_RBX LOAD_RBX LOAD_RBX LOAD_RBX LOAD_RBX LOAD_RBX), CYCLES(3));
	CHECK_EQ(COST("zen4", LOAD_RBX LOAD_RBX LOAD_RBX LOAD_RBX LOAD_RBX LOAD_RBX), CYCLES(2));
}

static void test_store_forwarding(void)
{
	/* addq $1,(%rsi): load, add, store, and the next one waits for it */
	CHECK_EQ(COST("icelake", "\x48\x83\x06\x01"), CYCLES(3));
	CHECK_EQ(COST("skylake", "\x48\x83\x06\x01"), CYCLES(5));
	CHECK_EQ(COST("zen4", "\x48\x83\x06\x01"), CYCLES(1)); /* renamed */
	/* mov %al,(%rsi); mov (%rsi),%rax: the store has less than the load wants */
	CHECK(COST("zen4", "\x88\x06\x48\x8b\x06") >= CYCLES(15));
	CHECK(COST("icelake", "\x88\x06\x48\x8b\x06") >= CYCLES(15));
	/* mov %rax,(%rsi); mov 8(%rsi),%rax: another place, no chain */
	CHECK(COST("skylake", "\x48\x89\x06\x48\x8b\x46\x08") <= CYCLES(1));
	/* mov %rax,(%rsi); add $8,%rsi; mov -8(%rsi),%rax: the same place under another name */
	CHECK(COST("skylake", "\x48\x89\x06\x48\x83\xc6\x08\x48\x8b\x46\xf8") >= CYCLES(4));
}

static void test_stores(void)
{
	/* mov %rax,(%rsi); mov %rax,8(%rsi) */
	CHECK_EQ(COST("skylake", "\x48\x89\x06\x48\x89\x46\x08"), CYCLES(2));
	CHECK_EQ(COST("icelake", "\x48\x89\x06\x48\x89\x46\x08"), CYCLES(1));
	CHECK_EQ(COST("zen4", "\x48\x89\x06\x48\x89\x46\x08"), CYCLES(1));
	/* mov %rax,(%rsi); mov %rax,(%rdi): two places take turns */
	CHECK_EQ(COST("zen4", "\x48\x89\x06\x48\x89\x07"), CYCLES(2));
}

static void test_zero_idioms(void)
{
	/* xor %eax,%eax; add %rbx,%rax; imul %rax,%rax: 4 cycles if xor waited for rax */
	CHECK_EQ(COST("zen4", XOR_EAX_EAX ADD_RBX_RAX "\x48\x0f\xaf\xc0"), CYCLES(1));
	CHECK_EQ(COST("icelake", XOR_EAX_EAX ADD_RBX_RAX "\x48\x0f\xaf\xc0"), CYCLES(1));
	/* pxor %xmm0,%xmm0; addps %xmm1,%xmm0 */
	CHECK(COST("zen4", "\x66\x0f\xef\xc0\x0f\x58\xc1") < CYCLES(1));
	/* addps alone is a chain */
	CHECK_EQ(COST("zen4", "\x0f\x58\xc1"), CYCLES(3));
	CHECK_EQ(COST("skylake", "\x0f\x58\xc1"), CYCLES(4));
	/* xor %al,%al keeps the rest of the register */
	CHECK_EQ(COST("zen4", "\x30\xc0"), CYCLES(1));
	/* sbb %eax,%eax; lea (%rax,%rbx),%rax: sbb is made of the carry alone */
	CHECK_EQ(COST("zen4", "\x19\xc0\x48\x8d\x04\x18"), CYCLES(1));
}

static void test_copies(void)
{
	/* mov %rax,%rbx; mov %rbx,%rax: done by renaming, or a chain of two */
	CHECK(COST("zen4", "\x48\x89\xc3\x48\x89\xd8") < CYCLES(0.5));
	CHECK_EQ(COST("icelake", "\x48\x89\xc3\x48\x89\xd8"), CYCLES(2));
}

static void test_fusion(void)
{
	/* cmp %rax,%rbx; je: one slot, and two when something stands between */
	CHECK_EQ(COST("skylake", NOP NOP NOP CMP_RAX_RBX "\x74\x00"), CYCLES(1));
	CHECK_EQ(COST("skylake", NOP NOP CMP_RAX_RBX NOP "\x74\x00"), CYCLES(1.25));
	/* dec %eax; jb: the carry is not its own */
	CHECK_EQ(COST("skylake", NOP NOP NOP "\xff\xc8\x72\x00"), CYCLES(1.25));
	/* dec %eax; jne on Zen 2: only cmp and test */
	CHECK(COST("zen2", NOP NOP NOP NOP "\xff\xc8\x75\x00") > CYCLES(1));
}

static void test_push_and_pop(void)
{
	/* push %rax, %rbx, %rcx, %rdx: the stack pointer is no chain */
	CHECK_EQ(COST("skylake", "\x50\x53\x51\x52"), CYCLES(4));
	CHECK_EQ(COST("icelake", "\x50\x53\x51\x52"), CYCLES(2));
	CHECK_EQ(COST("zen4", "\x50\x53\x51\x52"), CYCLES(2));
	/* pop %rax, %rbx, %rcx */
	CHECK_EQ(COST("zen4", "\x58\x5b\x59"), CYCLES(1));
	/* push %rax; pop %rax: what was pushed comes back */
	CHECK(COST("skylake", "\x50\x58") >= CYCLES(4));
	/* sub $24,%rsp; add $24,%rsp is a chain */
	CHECK_EQ(COST("zen4", "\x48\x83\xec\x18\x48\x83\xc4\x18"), CYCLES(2));
	/* push %rax; add $8,%rsp: the front end hands the pointer back first */
	CHECK_EQ(COST("zen4", "\x50\x48\x83\xc4\x08"), CYCLES(2));
}

static void test_calls(void)
{
	/* imul %rbx,%rax; call: what the callee returns does not wait for the product */
	CHECK(COST("icelake", "\x48\x0f\xaf\xc3\xe8\x00\x00\x00\x00") < CYCLES(3));
	/* a jump that is always taken: a cycle at least */
	CHECK_EQ(COST("icelake", "\xeb\x00"), CYCLES(1));
	CHECK_EQ(COST("zen4", "\xc3"), CYCLES(1));
}

static void test_prefix_stall(void)
{
	/* testw $0x1234,%ax: the prefix changes the length, which stalls Intel's decoder */
	CHECK(COST("icelake", "\x66\xa9\x34\x12") >= CYCLES(3));
	CHECK(COST("zen4", "\x66\xa9\x34\x12") < CYCLES(1));
}

static void test_edges(void)
{
	uint8_t many[3 * 2000];

	CHECK_EQ(cost_block(cost_cpu_find("zen4"), (struct span){NULL, 0}), 0);
	CHECK_EQ(COST("zen4", "\x06"), 0);     /* no instruction */
	CHECK_EQ(COST("zen4", "\x48\x01"), 0); /* not all of one */
	CHECK_EQ(COST("zen4", ADD_RBX_RAX "\x06" ADD_RBX_RAX), CYCLES(1));
	for (size_t i = 0; i < sizeof(many); i += 3)
		memcpy(many + i, ADD_RBX_RAX, 3);
	CHECK_EQ(
		cost_block(cost_cpu_find("zen4"), (struct span){many, sizeof(many)}), CYCLES(2000));
}

/* A small generator: the same bytes each time. */
static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void test_never_nothing(void)
{
	uint32_t state = 5;

	for (unsigned k = 0; k < 20000; k++) {
		const struct cost_cpu *cpu = cost_cpu_at(k % 6);
		struct op_block block;
		uint8_t code[15];
		size_t n;

		for (size_t i = 0; i < sizeof(code); i++)
			code[i] = (uint8_t)next_random(&state);
		n = block_decode(&block, cpu, (struct span){code, sizeof(code)});
		CHECK((cost_block(cpu, (struct span){code, sizeof(code)}) != 0) == (n != 0));
	}
}

/* Twice the same block in a row costs at least as much as once, and hardly more than twice. */
static void test_monotony(void)
{
	static const char *const blocks[] = {
		"\x48\x8b\x06\x48\x01\xd8\x48\x89\x07", /* mov (%rsi),%rax; add; mov %rax,(%rdi) */
		"\x50\x53\x48\x8d\x44\x24\x08\x5b\x5a", /* push, push, lea 8(%rsp),%rax, pop, pop */
		"\xf3\x0f\x59\xc1\xf3\x0f\x58\xd0",	/* mulss, addss */
		"\x48\xc1\xe0\x03\x48\x31\xc8\x48\x0f\xaf\xd0", /* shl, xor, imul */
	};

	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
		for (size_t c = 0; cost_cpu_at(c); c++) {
			size_t n = strlen(blocks[i]);
			uint32_t once, twice;
			uint8_t code[64];

			memcpy(code, blocks[i], n);
			memcpy(code + n, blocks[i], n);
			once = cost_block(cost_cpu_at(c), (struct span){code, n});
			twice = cost_block(cost_cpu_at(c), (struct span){code, 2 * n});
			CHECK(twice >= once);
			CHECK(twice <= 2 * once + CYCLES(1));
		}
}

static void test_names(void)
{
	const struct cost_cpu *native = cost_cpu_find(NULL);
	bool is_listed = false;
	size_t n = 0;

	for (; cost_cpu_at(n); n++) {
		CHECK(cost_cpu_find(cost_cpu_name(cost_cpu_at(n))) == cost_cpu_at(n));
		is_listed |= cost_cpu_at(n) == native;
	}
	CHECK_EQ(n, 6);
	CHECK(!cost_cpu_at(n + 1));
	CHECK(is_listed);
	CHECK(cost_cpu_find("native") == native);
	CHECK(!cost_cpu_find("z80"));
	CHECK(!cost_cpu_find(""));
	CHECK_STR(cost_cpu_name(cost_cpu_find("icelake")), "icelake");
}

static void test_tables(void)
{
	for (size_t c = 0; cost_cpu_at(c); c++) {
		const struct cost_cpu *cpu = cost_cpu_at(c);

		CHECK(cpu->width && cpu->rob >= 100 && cpu->rob <= 1000);
		for (unsigned class = 0; class < COST_CLASS_COUNT; class ++) {
			const struct cost_row *row = cost_row_of(cpu, class);

			CHECK(row->slots);
			for (unsigned s = 0; s < COST_STEPS_MAX && row->steps[s].ports; s++)
				CHECK(row->steps[s].hold && row->steps[s].hold < 160);
		}
	}
}

int main(void)
{
	static const struct test tests[] = {
		{"a chain of adds costs a cycle each", test_chain_of_adds},
		{"adds without a chain cost their share of the units", test_independent_adds},
		{"nops cost their share of the width", test_width},
		{"products and quotients wait for their unit", test_multiply_and_divide},
		{"a chain of loads costs the latency of the first cache", test_loads},
		{"a load waits for the store that it reads", test_store_forwarding},
		{"stores share the ports and the way out", test_stores},
		{"zero idioms wait for nothing", test_zero_idioms},
		{"copies are free where renaming makes them", test_copies},
		{"a compare becomes one with its branch", test_fusion},
		{"push and pop do not wait for the stack pointer", test_push_and_pop},
		{"results of a call do not wait for its arguments", test_calls},
		{"a prefix that changes the length stalls the decoder", test_prefix_stall},
		{"bytes that are no instruction end a block", test_edges},
		{"a block with instructions never costs nothing", test_never_nothing},
		{"a block twice costs at least as much as once", test_monotony},
		{"processors are found by name", test_names},
		{"every class has a row on every processor", test_tables},
	};

	return RUN_TESTS(tests);
}
