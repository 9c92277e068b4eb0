/* SPDX-License-Identifier: MIT */
/* What instructions are, the mix of them, and the working set of code. */
#include "steps/tables/insn_mix.h"

#include <stdlib.h>

#include "check.h"
#include "models.h"
#include "steps/tables/code_use.h"

#define AT 0x401000u

static struct step_insn insn_of(const char *bytes, size_t n, bool is_64)
{
	struct step_insn insn = {.addr = AT, .n_bytes = (uint8_t)n, .is_64 = is_64};
	struct x86_insn decoded;

	memcpy(insn.bytes, bytes, n);
	if (x86_decode(&decoded, (struct span){insn.bytes, n}, AT, is_64)) {
		insn.length = decoded.length;
		insn.flow = decoded.flow;
		insn.target = decoded.target;
		insn.has_target = decoded.has_target;
	}
	return insn;
}
#define INSN(text) insn_of(text, sizeof(text) - 1, true)

struct trait_case {
	const char *code;
	uint8_t n;
	enum insn_class class;
	enum insn_memory memory;
	uint16_t width;
	enum insn_vector vector;
	bool is_locked, is_repeated;
};
#define CASE(text, class_, memory_, width_, ...)                                                   \
	{                                                                                          \
		.code = (text), .n = sizeof(text) - 1, .class = (class_), .memory = (memory_),     \
		.width = (width_)__VA_OPT__(, ) __VA_ARGS__                                        \
	}
#define N INSN_MEMORY_NONE
#define L INSN_MEMORY_LOAD
#define S INSN_MEMORY_STORE
#define B INSN_MEMORY_BOTH

static const struct trait_case trait_cases[] = {
	CASE("\x48\x89\xd8", INSN_CLASS_MOVE, N, 64),		     /* mov %rbx,%rax */
	CASE("\x8b\x03", INSN_CLASS_MOVE, L, 32),		     /* mov (%rbx),%eax */
	CASE("\x88\x03", INSN_CLASS_MOVE, S, 8),		     /* mov %al,(%rbx) */
	CASE("\x0f\xb6\x00", INSN_CLASS_MOVE, L, 32),		     /* movzbl (%rax),%eax */
	CASE("\x0f\x45\x00", INSN_CLASS_MOVE, L, 32),		     /* cmovne (%rax),%eax */
	CASE("\x87\x02", INSN_CLASS_MOVE, B, 32, .is_locked = true), /* xchg %eax,(%rdx) */
	CASE("\x87\xc2", INSN_CLASS_MOVE, N, 32),		     /* xchg %eax,%edx */
	CASE("\x48\x98", INSN_CLASS_MOVE, N, 0),		     /* cltq */
	CASE("\x50", INSN_CLASS_STACK, S, 64),			     /* push %rax */
	CASE("\xff\x30", INSN_CLASS_STACK, B, 64),		     /* push (%rax) */
	CASE("\x58", INSN_CLASS_STACK, L, 64),			     /* pop %rax */
	CASE("\xc9", INSN_CLASS_STACK, L, 0),			     /* leave */
	CASE("\x48\x8d\x58\x04", INSN_CLASS_ADDRESS, N, 64),	     /* lea 4(%rax),%rbx */
	CASE("\x01\xd8", INSN_CLASS_INTEGER, N, 32),		     /* add %ebx,%eax */
	CASE("\x01\x18", INSN_CLASS_INTEGER, B, 32),		     /* add %ebx,(%rax) */
	CASE("\x39\x18", INSN_CLASS_INTEGER, L, 32),		     /* cmp %ebx,(%rax) */
	CASE("\x0f\x95\xc0", INSN_CLASS_INTEGER, N, 8),		     /* setne %al */
	CASE("\xf0\x0f\xc1\x02", INSN_CLASS_INTEGER, B, 32, .is_locked = true), /* lock xadd */
	CASE("\xf2\x0f\x38\xf0\xd8", INSN_CLASS_INTEGER, N, 32),		/* crc32 %al,%ebx */
	CASE("\xd3\xe0", INSN_CLASS_BITS, N, 32),				/* shl %cl,%eax */
	CASE("\x0f\xbc\xc0", INSN_CLASS_BITS, N, 32),				/* bsf */
	CASE("\xf3\x0f\xb8\xc0", INSN_CLASS_BITS, N, 32),			/* popcnt */
	CASE("\xc4\xe2\x78\xf2\xc0", INSN_CLASS_BITS, N, 32),			/* andn */
	CASE("\x48\x0f\xaf\xd8", INSN_CLASS_MULTIPLY, N, 64),			/* imul */
	CASE("\xf7\x30", INSN_CLASS_DIVIDE, L, 32),				/* divl (%rax) */
	CASE("\x74\x02", INSN_CLASS_BRANCH, N, 0),				/* je */
	CASE("\xe2\xfe", INSN_CLASS_BRANCH, N, 0),				/* loop */
	CASE("\xe3\xfe", INSN_CLASS_BRANCH, N, 0),				/* jrcxz */
	CASE("\xeb\xfe", INSN_CLASS_JUMP, N, 0),
	CASE("\xe8\x00\x00\x00\x00", INSN_CLASS_CALL, S, 0),
	CASE("\xff\xe0", INSN_CLASS_INDIRECT_JUMP, N, 64),
	CASE("\xff\x20", INSN_CLASS_INDIRECT_JUMP, L, 64),
	CASE("\xff\xd0", INSN_CLASS_INDIRECT_CALL, S, 64),
	CASE("\xff\x10", INSN_CLASS_INDIRECT_CALL, B, 64), CASE("\xc3", INSN_CLASS_RETURN, L, 0),
	CASE("\xa4", INSN_CLASS_STRING, B, 8),				     /* movsb */
	CASE("\xf3\xa4", INSN_CLASS_STRING, B, 8, .is_repeated = true),	     /* rep movsb */
	CASE("\xf3\x48\xab", INSN_CLASS_STRING, S, 64, .is_repeated = true), /* rep stosq */
	CASE("\xf2\xae", INSN_CLASS_STRING, L, 8, .is_repeated = true),	     /* repne scasb */
	CASE("\xdd\x00", INSN_CLASS_X87, L, 64),			     /* fldl (%rax) */
	CASE("\xde\xc1", INSN_CLASS_X87, N, 80),			     /* faddp */
	CASE("\x0f\x6e\xc0", INSN_CLASS_MMX, N, 64, .vector = INSN_VECTOR_INTEGER), /* movd */
	CASE("\x0f\x77", INSN_CLASS_MMX, N, 0, .vector = INSN_VECTOR_INTEGER),	    /* emms */
	CASE("\xf2\x0f\x58\x00", INSN_CLASS_SSE, L, 64,
		.vector = INSN_VECTOR_SCALAR_FLOAT), /* addsd */
	CASE("\xf2\x0f\x10\x00", INSN_CLASS_SSE, L, 64,
		.vector = INSN_VECTOR_SCALAR_FLOAT), /* movsd */
	CASE("\x0f\x58\xc1", INSN_CLASS_SSE, N, 128,
		.vector = INSN_VECTOR_PACKED_FLOAT),					 /* addps */
	CASE("\x66\x0f\xfe\xc1", INSN_CLASS_SSE, N, 128, .vector = INSN_VECTOR_INTEGER), /* paddd */
	CASE("\x0f\x29\x00", INSN_CLASS_SSE, S, 128,
		.vector = INSN_VECTOR_PACKED_FLOAT), /* movaps */
	CASE("\x66\x0f\x38\x17\xc8", INSN_CLASS_SSE, N, 128,
		.vector = INSN_VECTOR_INTEGER), /* ptest */
	CASE("\xc5\xf5\x58\xd0", INSN_CLASS_AVX, N, 256,
		.vector = INSN_VECTOR_PACKED_FLOAT), /* vaddpd */
	CASE("\xc4\xe2\xf1\xa9\xd0", INSN_CLASS_AVX, N, 64,
		.vector = INSN_VECTOR_SCALAR_FLOAT), /* fma */
	CASE("\xc4\xe2\x7d\x18\x00", INSN_CLASS_AVX, L, 256,
		.vector = INSN_VECTOR_PACKED_FLOAT),				   /* bcast */
	CASE("\xc5\xf8\x77", INSN_CLASS_AVX, N, 0, .vector = INSN_VECTOR_INTEGER), /* vzeroupper */
	CASE("\x62\xf1\xfe\x48\x6f\x00", INSN_CLASS_AVX512, L, 512, .vector = INSN_VECTOR_INTEGER),
	CASE("\x90", INSN_CLASS_NOP, N, 0),
	CASE("\x0f\x1f\x40\x00", INSN_CLASS_NOP, N, 0), /* nopl 0(%rax) */
	CASE("\xf3\x0f\x1e\xfa", INSN_CLASS_NOP, N, 0), /* endbr64 */
	CASE("\x0f\x18\x08", INSN_CLASS_CACHE, N, 8),	/* prefetcht0 (%rax) */
	CASE("\x0f\xae\xf0", INSN_CLASS_CACHE, N, 0),	/* mfence */
	CASE("\xf3\x90", INSN_CLASS_CACHE, N, 0),	/* pause */
	CASE("\x0f\x05", INSN_CLASS_SYSCALL, N, 0), CASE("\xcd\x80", INSN_CLASS_SYSCALL, N, 0),
	CASE("\x0f\xa2", INSN_CLASS_SYSTEM, N, 0),	/* cpuid */
	CASE("\x0f\x31", INSN_CLASS_SYSTEM, N, 0),	/* rdtsc */
	CASE("\x0f\x0b", INSN_CLASS_SYSTEM, N, 0),	/* ud2 */
	CASE("\x0f\xae\x18", INSN_CLASS_SYSTEM, S, 32), /* stmxcsr (%rax) */
};

static void test_traits(void)
{
	for (size_t i = 0; i < sizeof(trait_cases) / sizeof(trait_cases[0]); i++) {
		const struct trait_case *c = &trait_cases[i];
		struct step_insn insn = insn_of(c->code, c->n, true);
		struct insn_traits t;
		int before = check_failures;

		insn_traits_get(&t, &insn);
		CHECK_EQ(t.class, c->class);
		CHECK_EQ(t.memory, c->memory);
		CHECK_EQ(t.width, c->width);
		CHECK_EQ(t.vector, c->vector);
		CHECK_EQ(t.is_locked, c->is_locked);
		CHECK_EQ(t.is_repeated, c->is_repeated);
		CHECK(*t.mnemonic && *t.extension);
		if (check_failures != before)
			printf("case %zu: %s\n", i, t.mnemonic);
	}
}

static void test_traits_32(void)
{
	struct step_insn insn = insn_of("\x40", 1, false); /* inc %eax; a prefix in 64-bit code */
	struct insn_traits t;

	insn_traits_get(&t, &insn);
	CHECK_EQ(t.class, INSN_CLASS_INTEGER);
	CHECK_STR(t.mnemonic, "inc");
	insn = insn_of("\x50", 1, false);
	insn_traits_get(&t, &insn);
	CHECK_EQ(t.width, 32);
	CHECK_EQ(t.memory, INSN_MEMORY_STORE);
}

static void test_unknown(void)
{
	static const char *const odd[] = {"", "\xff\xff", "\x0f\x0f\x0f", "\xc4"};
	struct insn_traits t;

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct step_insn insn = insn_of(odd[i], strlen(odd[i]), true);

		insn_traits_get(&t, &insn);
		CHECK_EQ(t.class, INSN_CLASS_UNKNOWN);
		CHECK_STR(t.mnemonic, "");
	}
}

static uint64_t sum_of(const struct insn_mix *mix, enum mix_group group)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < mix->rows.n; i++)
		if (mix->rows.v[i].group == group)
			sum += mix->rows.v[i].count;
	return sum;
}

static void fill(struct insn_mix *mix)
{
	struct step_insn je = INSN("\x74\x02"), rep = INSN("\xf3\xa4"), add = INSN("\x01\xd8");
	struct step_insn sse = INSN("\xf2\x0f\x58\xc1"), none = {.addr = AT};
	struct branch branch = {.taken = 5, .not_taken = 2};

	insn_mix_add(mix, &je, 8, 0, &branch); /* the outcome of one is not known */
	insn_mix_add(mix, &je, 2, 0, NULL);
	insn_mix_add(mix, &rep, 3, 97, NULL);
	insn_mix_add(mix, &add, 40, 0, NULL);
	insn_mix_add(mix, &add, 2, 0, NULL); /* at another address */
	insn_mix_add(mix, &sse, 6, 0, NULL);
	insn_mix_add(mix, &none, 1, 0, NULL);
	insn_mix_add_unknown(mix, 4);
	insn_mix_finish(mix);
}

static void test_mix(void)
{
	struct insn_mix mix = {0};

	fill(&mix);
	CHECK_EQ(mix.total, 66);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_CLASS, "branch taken"), 5);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_CLASS, "branch not taken"), 2);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_CLASS, "branch, side unknown"), 3);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_CLASS, "string"), 3);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_CLASS, "integer"), 42);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_CLASS, "SSE"), 6);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_CLASS, "not captured"), 5);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_MEMORY, "load and store"), 3);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_MEMORY, "no memory"), 58);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_VECTOR, "scalar float"), 6);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_ATTRIBUTE, "repeated"), 3);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_EXTENSION, "SSE2"), 6);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_WIDTH, "32"), 42);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_LENGTH, "2"), 55);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_MNEMONIC, "add"), 42);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_ITERATIONS, "rep movsb"), 100);
	CHECK_EQ(insn_mix_count(&mix, MIX_GROUP_MNEMONIC, "sub"), 0);
	insn_mix_release(&mix);
}

static void test_whole(void)
{
	struct insn_mix mix = {0};
	size_t n_whole = 0;

	for (size_t i = 0; i < sizeof(trait_cases) / sizeof(trait_cases[0]); i++) {
		struct step_insn insn = insn_of(trait_cases[i].code, trait_cases[i].n, true);

		insn_mix_add(&mix, &insn, i + 1, i % 3, NULL);
	}
	fill(&mix);
	for (int group = 0; group < MIX_N_GROUPS; group++)
		if (mix_groups[group].is_whole) {
			CHECK_EQ(sum_of(&mix, (enum mix_group)group), mix.total);
			n_whole++;
		}
	CHECK_EQ(n_whole, 6);
	insn_mix_release(&mix);
}

static void test_order(void)
{
	struct insn_mix mix = {0};

	fill(&mix);
	for (size_t i = 1; i < mix.rows.n; i++) {
		const struct mix_row *x = &mix.rows.v[i - 1], *y = &mix.rows.v[i];

		CHECK(x->group <= y->group);
		if (x->group != y->group)
			continue;
		if (x->group == MIX_GROUP_LENGTH || x->group == MIX_GROUP_WIDTH)
			CHECK(x->place < y->place);
		else if (strcmp(y->name, "not captured"))
			CHECK(x->count >= y->count);
	}
	insn_mix_release(&mix);
}

static void test_use(void)
{
	/* Group 1: two instructions on one line, one that crosses into the next page, one that was
	 * overwritten, one that begins inside another. Group 2: another image, same addresses. */
	struct code_spot spots[] = {
		{1, 1, 0x1000, 10, 4},
		{1, 1, 0x1004, 10, 2},
		{1, 1, 0x1004, 3, 3},
		{1, 1, 0x1005, 1, 4},
		{1, 1, 0x1ffe, 7, 5},
		{2, 2, 0x1000, 100, 1},
		{2, 3, 0x1000, 1, 1},
	};
	struct code_use *uses;
	size_t n = code_use_of_groups(&uses, spots, sizeof(spots) / sizeof(spots[0]));

	CHECK_EQ(n, 2);
	CHECK_EQ(uses[0].group, 2);
	CHECK_EQ(uses[0].executed, 101);
	CHECK_EQ(uses[0].n_insns, 2);
	CHECK_EQ(uses[0].n_bytes, 2);
	CHECK_EQ(uses[0].n_lines, 2);
	CHECK_EQ(uses[0].n_pages, 2);
	CHECK_EQ(uses[1].group, 1);
	CHECK_EQ(uses[1].executed, 31);
	CHECK_EQ(uses[1].n_insns, 5);
	CHECK_EQ(uses[1].n_bytes, 9 + 5);
	CHECK_EQ(uses[1].n_lines, 3);
	CHECK_EQ(uses[1].n_pages, 2);
	free(uses);
	CHECK_EQ(code_use_of_groups(&uses, NULL, 0), 0);
	CHECK(!uses);
}

static void test_use_at_the_end(void)
{
	struct code_spot spots[] = {{0, 0, UINT64_MAX, 1, 15}, {0, 0, UINT64_MAX - 3, 1, 15}};
	struct code_use *uses;

	CHECK_EQ(code_use_of_groups(&uses, spots, 2), 1);
	CHECK_EQ(uses[0].n_insns, 2);
	CHECK_EQ(uses[0].n_lines, 1);
	CHECK_EQ(uses[0].n_pages, 1);
	free(uses);
}

static void test_covers(void)
{
	struct code_cover covers[CODE_N_COVERS];
	struct code_spot spots[102];
	size_t n = 0;

	/* Half of all in one instruction, two fifths in another page, the rest in 100 lines. */
	spots[n++] = (struct code_spot){0, 0, 0x1000, 5000, 4};
	spots[n++] = (struct code_spot){0, 0, 0x3000, 4000, 4};
	for (uint64_t i = 0; i < 100; i++)
		spots[n++] = (struct code_spot){0, 0, 0x10000 + i * 64, 10, 4};
	code_covers_get(covers, spots, n);
	CHECK_EQ(covers[0].percent, 50);
	CHECK_EQ(covers[0].n_insns, 1);
	CHECK_EQ(covers[0].n_lines, 1);
	CHECK_EQ(covers[0].n_pages, 1);
	CHECK_EQ(covers[1].percent, 90);
	CHECK_EQ(covers[1].n_insns, 2);
	CHECK_EQ(covers[1].n_lines, 2);
	CHECK_EQ(covers[1].n_pages, 2);
	CHECK_EQ(covers[2].percent, 99);
	CHECK_EQ(covers[2].n_insns, 92);
	CHECK_EQ(covers[2].n_lines, 92);
	CHECK_EQ(covers[2].n_pages, 4);
	code_covers_get(covers, NULL, 0);
	CHECK_EQ(covers[2].n_lines, 0);
}

int main(void)
{
	static const struct test tests[] = {
		{"each instruction has its class, accesses, width and attributes", test_traits},
		{"32-bit code is decoded as such", test_traits_32},
		{"what is no instruction is unknown", test_unknown},
		{"the mix counts steps by what they are, branches by their side", test_mix},
		{"the rows of whole groups add up to the steps", test_whole},
		{"rows stand by count, lengths and widths by themselves", test_order},
		{"bytes, lines and pages are counted once in each group", test_use},
		{"code at the end of the address space is counted", test_use_at_the_end},
		{"covers are the fewest lines and pages", test_covers},
	};

	return RUN_TESTS(tests);
}
