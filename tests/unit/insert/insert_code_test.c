/* SPDX-License-Identifier: MIT */
/* What is inserted where: blocks, branches, flags, and functions that are left alone. */
#include "insert_world.h"

#define FUNCTION(name) ".type " name ",@function\n" name ": "
#define SIZE(name)     ".size " name ",.-" name "\n"
#define ONE(body)      COMPILED FUNCTION("f") body SIZE("f")

/* The function f of a compiled object, as it comes out. */
static void check_f(enum insert_mode mode, const char *source, const char *expected)
{
	struct world w;

	begin(&w, mode, source);
	CHECK_STR(show(&w, "f"), expected);
	end(&w);
}

static void check_left_alone(const char *source, enum insert_reason reason, const char *expected)
{
	struct world w;

	begin(&w, INSERT_MODE_TREE, source);
	CHECK_STR(reason_of(&w, "f"), insert_reason_text(reason));
	CHECK_STR(show(&w, "f"), expected);
	end(&w);
}

/* ---- blocks ---- */

static void cuts(void)
{
	check_f(INSERT_MODE_COUNTS,
		ONE("test %edi,%edi\n jz 1f\n mov %eax,%edx\n 1: xor %eax,%eax\n ret\n"),
		"inc.0 test jz>5 inc.1 mov inc.2 xor ret");
}

static void calls_stay(void)
{
	check_f(INSERT_MODE_COUNTS, ONE("call ext\n mov %eax,%edi\n call *%rdx\n ret\n"),
		"inc.0 call>ext mov call ret");
}

static void padding_uncounted(void)
{
	check_f(INSERT_MODE_COUNTS,
		ONE("xor %eax,%eax\n jmp 1f\n nopl 0(%rax)\n 1: test %esi,%esi\n jnz 1b\n ret\n"),
		"inc.0 xor jmp>4 nop inc.2 test jnz>4 inc.3 ret");
}

static void tree_words(void)
{
	check_f(INSERT_MODE_TREE, ONE("test %edi,%edi\n jz 1f\n call ext\n 1: ret\n"),
		"enter inc.0 cost.2 test jz>8 inc.1 cost.1 call>ext inc.2 cost.1 leave ret");
}

static void endbr_first(void)
{
	check_f(INSERT_MODE_TREE, ONE("endbr64\n xor %eax,%eax\n ret\n"),
		"endbr64 enter inc.0 cost.3 xor leave ret");
}

static void back_to_start(void)
{
	check_f(INSERT_MODE_TREE, ONE("dec %edi\n jnz f\n ret\n"),
		"enter inc.0 cost.2 dec jnz>1 inc.1 cost.1 leave ret");
	/* A call of itself is one. */
	check_f(INSERT_MODE_TREE, ONE("dec %edi\n call f\n ret\n"),
		"enter inc.0 cost.3 dec call>0 leave ret");
}

static void loop_behind_endbr(void)
{
	check_f(INSERT_MODE_TREE, ONE("endbr64\n 1: dec %edi\n jnz 1b\n ret\n"),
		"endbr64 enter inc.0 inc.1 cost.2 dec jnz>3 inc.2 cost.2 leave ret");
}

/* Nothing is owed at calls and returns. */
static void late_costs(void)
{
	check_f(INSERT_MODE_TREE, ONE("test %edi,%edi\n jz 1f\n xor %eax,%eax\n ret\n 1: ret\n"),
		"enter inc.0 test jz>9 inc.1 cost.4 xor leave ret inc.2 cost.3 leave ret");
	check_f(INSERT_MODE_TREE, ONE("test %edi,%edi\n jz 1f\n xor %eax,%eax\n 1: ret\n"),
		"enter inc.0 test jz>7 inc.1 cost.1 xor inc.2 cost.3 leave ret");
	check_f(INSERT_MODE_TREE, ONE("test %edi,%edi\n jz 1f\n call ext\n 1: ret\n"),
		"enter inc.0 cost.2 test jz>8 inc.1 cost.1 call>ext inc.2 cost.1 leave ret");
	check_f(INSERT_MODE_TREE, ONE("test %edi,%edi\n jz 1f\n int3\n 1: ret\n"),
		"enter inc.0 cost.2 test jz>8 inc.1 cost.1 int3 inc.2 cost.1 leave ret");
}

static void long_blocks(void)
{
	check_f(INSERT_MODE_TREE, ONE(".rept 200\n nop\n .endr\n ud2\n") ".globl x\n",
		"enter inc.0 cost.201 "
#define TEN   "nop nop nop nop nop nop nop nop nop nop "
#define FIFTY TEN TEN TEN TEN TEN
		FIFTY FIFTY FIFTY FIFTY "ud2");
}

/* ---- leaving ---- */

static void tails(void)
{
	check_f(INSERT_MODE_TREE, ONE("xor %eax,%eax\n jmp ext\n"),
		"enter inc.0 cost.2 xor tail jmp>ext");
	check_f(INSERT_MODE_TREE, ONE("xor %eax,%eax\n jmp *%rdx\n"),
		"enter inc.0 cost.2 xor tail jmp");
}

static void conditional_tails(void)
{
	check_f(INSERT_MODE_TREE, ONE("test %edi,%edi\n jz ext\n ret\n"),
		"enter inc.0 cost.2 test jnz>7 tail jmp>ext inc.1 cost.1 leave ret");
	check_f(INSERT_MODE_COUNTS, ONE("test %edi,%edi\n jz ext\n ret\n"),
		"inc.0 test jz>ext inc.1 ret");
}

static bool all_foreign(void *context, const char *name)
{
	(void)context;
	return strcmp(name, "own") != 0;
}

static void foreign(void)
{
	struct world w = {0};

	run_tool("as --64 -o %s -", ONE("call own\n call other\n jmp other\n"), &w.in);
	insert_with(
		&w, &(struct insert_options){.mode = INSERT_MODE_TREE, .is_foreign = all_foreign});
	CHECK_STR(show(&w, "f"),
		"enter inc.0 cost.3 call>own foreign call>other foreign_done leave_flags jmp>other");
	end(&w);
}

static void returns_twice(void)
{
	check_f(INSERT_MODE_TREE, ONE("call _setjmp\n test %eax,%eax\n ret\n"),
		"enter inc.0 cost.1 call>_setjmp resync inc.1 cost.2 test leave ret");
}

/* ---- branches ---- */

/* Code for programs of any size calls by registers. */
static void called_by_register(void)
{
	static const char *const unknown[] = {
		/* kept in memory; a sum with something else; another symbol on another way */
		ONE("movabs $setjmp,%rax\n mov %rax,-8(%rsp)\n call *-8(%rsp)\n ret\n"),
		ONE("movabs $setjmp,%rax\n add %rcx,%rax\n call *%rax\n ret\n"),
		ONE("movabs $setjmp,%rbx\n test %edi,%edi\n jz 1f\n movabs $ext,%rbx\n 1: call *%rbx\n ret\n"),
	};
	struct world w;

	check_f(INSERT_MODE_TREE, ONE("movabs $setjmp,%rax\n lea (%rdi),%rdi\n call *%rax\n ret\n"),
		"enter inc.0 cost.3 mov[setjmp] lea call resync inc.1 cost.1 leave ret");
	check_f(INSERT_MODE_TREE,
		ONE("movabs $setjmp@PLTOFF,%rax\n add %rbx,%rax\n call *%rax\n ret\n"),
		"enter inc.0 cost.3 mov[setjmp+8] add call resync inc.1 cost.1 leave ret");
	check_f(INSERT_MODE_TREE,
		ONE("movabs $setjmp@PLTOFF,%r12\n 1: lea (%r12,%rbx),%rcx\n call *%rcx\n jmp 1b\n"),
		"enter inc.0 mov[setjmp+8] inc.1 cost.3 lea call resync inc.2 jmp>3");
	check_f(INSERT_MODE_TREE,
		ONE("movabs $setjmp@GOT,%rax\n mov (%rbx,%rax),%r12\n 1: call *%r12\n jmp 1b\n pop %r12\n ret\n"),
		"enter inc.0 cost.1 mov[setjmp+8] mov inc.1 cost.2 call resync inc.2 jmp>5 pop leave ret");
	check_f(INSERT_MODE_TREE,
		ONE("mov setjmp@GOTPCREL(%rip),%r12\n mov %r12,%rax\n call *%rax\n ret\n"),
		"enter inc.0 cost.3 mov[setjmp] mov call resync inc.1 cost.1 leave ret");
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		begin(&w, INSERT_MODE_TREE, unknown[i]);
		CHECK_STR(reason_of(&w, "f"), insert_reason_text(INSERT_REASON_INDIRECT));
		end(&w);
	}
}

static void widened(void)
{
	/* Twenty short branches over each other grow until the first one does not reach. */
	check_f(INSERT_MODE_COUNTS,
		ONE("1: test %eax,%eax\n jz 9f\n .rept 16\n jmp .+2\n .endr\n jmp 1b\n 9: ret\n"),
		"inc.0 test jz>37 inc.1 jmp>5 inc.2 jmp>7 inc.3 jmp>9 inc.4 jmp>11 inc.5 jmp>13 inc.6 "
		"jmp>15 inc.7 jmp>17 inc.8 jmp>19 inc.9 jmp>21 inc.10 jmp>23 inc.11 jmp>25 inc.12 jmp>27 "
		"inc.13 jmp>29 inc.14 jmp>31 inc.15 jmp>33 inc.16 jmp>35 inc.17 jmp>0 inc.18 ret");
}

static void widened_loop(void)
{
	/* loop 1f; jmp 2f; 1: jmp target; 2: */
	check_f(INSERT_MODE_COUNTS,
		ONE("1: xor %eax,%eax\n .rept 16\n jmp .+2\n .endr\n loop 1b\n jrcxz 1b\n ret\n"),
		"inc.0 xor jmp>3 inc.1 jmp>5 inc.2 jmp>7 inc.3 jmp>9 inc.4 jmp>11 inc.5 jmp>13 inc.6 "
		"jmp>15 inc.7 jmp>17 inc.8 jmp>19 inc.9 jmp>21 inc.10 jmp>23 inc.11 jmp>25 inc.12 jmp>27 "
		"inc.13 jmp>29 inc.14 jmp>31 inc.15 jmp>33 inc.16 loop>36 jmp>37 jmp>0 "
		"inc.17 jrcxz>40 jmp>41 jmp>0 inc.18 ret");
}

/* ---- flags ---- */

static void flags_later(void)
{
	/* Flags arrive and are dead behind the seta. */
	check_f(INSERT_MODE_COUNTS,
		ONE("add %rdi,%rsi\n mov (%rax),%rdx\n jo 1f\n seta (%rdi)\n xor %ecx,%ecx\n ret\n 1: ret\n"),
		"inc.0 add mov jo>8 setnbe inc.1 xor ret inc.2 ret");
}

static void flags_compare(void)
{
	check_f(INSERT_MODE_COUNTS, ONE("cmp $3,%edi\n jz 1f\n ja 2f\n 1: ret\n 2: ud2\n"),
		"inc.0 cmp jz>6 inc.1 cmp jnbe>8 inc.2 ret inc.3 ud2");
}

static void flags_edges(void)
{
	/* The comparison reads memory: it is not made again. */
	check_f(INSERT_MODE_COUNTS, ONE("cmpl $3,(%rdi)\n jz 1f\n ja 2f\n 1: ret\n 2: ud2\n"),
		"inc.0 cmp jz>7 jbe>6 inc.1 jmp>9 inc.1 inc.2 ret inc.3 ud2");
}

/* The flags are read more than once and never dead in the block; `free` is overwritten later. */
#define FLAGS_LIVE(free)                                                                           \
	ONE("cmpl $3,(%rdi)\n jz 1f\n setb (%rdi)\n jmp 3f\n 1: ret\n"                             \
	    "3: mov $1," free "\n ja 1b\n ret\n")

static void flags_register(void)
{
	struct world w;

	check_f(INSERT_MODE_COUNTS, FLAGS_LIVE("%eax"),
		"inc.0 cmp jz>10 lahf seto inc.1 add sahf setb jmp>12 inc.2 ret "
		"lahf seto inc.3 add sahf mov jnbe>10 inc.4 ret");
	begin(&w, INSERT_MODE_COUNTS, FLAGS_LIVE("%r9d"));
	CHECK_STR(show(&w, "f"),
		"inc.0 cmp jz>12 mov lahf seto inc.1 add sahf mov setb jmp>14 inc.2 ret "
		"mov lahf seto inc.3 add sahf mov mov jnbe>12 inc.4 ret");
	/* mov %rax,%r9 and back */
	CHECK(!memcmp(w.o.sections.v[w.section].data.p + w.at[3], "\x49\x89\xc1", 3));
	CHECK(!memcmp(w.o.sections.v[w.section].data.p + w.at[9], "\x4c\x89\xc8", 3));
	end(&w);
}

/* A carry that goes round a loop; `more` may make another flag live. No register is free in front of a call. */
#define CARRY_LOOP(more)                                                                           \
	"test %eax,%eax\n 1: adc (%rdi),%rdx\n lea 8(%rdi),%rdi\n dec %ecx\n jnz 1b\n " more

static void flags_stack(void)
{
	/* The carry alone takes less. */
	check_f(INSERT_MODE_TREE, ONE(CARRY_LOOP("adc $0,%rdx\n jmp ext\n")),
		"enter inc.0 test lea mov setb inc.1 cost.4 add mov lea adc lea dec jnz>3 "
		"adc inc.2 cost.3 tail jmp>ext");
	/* inc does not touch it. */
	check_f(INSERT_MODE_COUNTS, ONE(CARRY_LOOP("adc $0,%rdx\n jmp ext\n")),
		"inc.0 test inc.1 adc lea dec jnz>2 inc.2 adc jmp>ext");
	check_f(INSERT_MODE_TREE, ONE(CARRY_LOOP("jo ext\n jmp ext\n")),
		"enter inc.0 test lea mov setb inc.1 cost.4 add mov lea adc lea dec jnz>3 "
		"lea mov lahf seto inc.2 cost.2 add sahf mov lea jno>28 tail jmp>ext "
		"inc.3 cost.1 tail jmp>ext");
}

/* Hand-written code that has no register left, and walks data with rsp: nothing may be written there. */
#define WALKS(set, reset)                                                                          \
	FUNCTION("f")                                                                              \
	"movq %rsp,%xmm0\n" set                                                                    \
	"\n test %eax,%eax\n 1: adc (%rsp),%rdx\n lea 8(%rsp),%rsp\n dec %ecx\n"                   \
	"jnz 1b\n adc $0,%rdx\n" reset "\n jmp ext\n" SIZE("f")

static void flags_no_stack(void)
{
	static const struct {
		const char *source;
		enum insert_reason reason;
	} cases[] = {
		{WALKS("mov %rdi,%rsp", "movq %xmm0,%rsp"), INSERT_REASON_NO_REGISTER},
		{WALKS("mov (%rdi),%rsp", "movq %xmm0,%rsp"), INSERT_REASON_NO_REGISTER},
		{WALKS("xchg %rdi,%rsp", "xchg %rdi,%rsp"), INSERT_REASON_NO_REGISTER},
		/* its own stack: computed from rsp, here by way of two registers */
		{WALKS("mov %rsp,%rbx\n lea -64(%rbx,%rcx),%rsi\n mov %rsi,%rsp", "mov %rbx,%rsp"),
			INSERT_REASON_DONE},
		{WALKS("push %rbx\n sub $64,%rsp\n and $-64,%rsp", "pop %rbx"), INSERT_REASON_DONE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;

		begin(&w, INSERT_MODE_TREE, cases[i].source);
		CHECK_STR(reason_of(&w, "f"), insert_reason_text(cases[i].reason));
		end(&w);
	}
}

static void flags_taken(void)
{
	struct world w;

	/* A function that reads flags before it sets them takes them, its caller sets them for it,
	 * and a function whose caller reads them returns them. */
	begin(&w, INSERT_MODE_TREE,
		COMPILED FUNCTION("g") "adc %eax,%eax\n add %eax,%eax\n ret\n" SIZE("g")
			FUNCTION("f") "add %ecx,%ecx\n call g\n jc 1f\n nop\n 1: ret\n" SIZE("f"));
	CHECK_STR(show(&w, "g"), "enter_flags adc inc.0 cost.3 add leave_flags ret");
	CHECK_STR(show(&w, "f"),
		"enter inc.1 cost.3 add call>-1 jb>9 inc.2 cost.1 nop inc.3 cost.1 leave ret");
	end(&w);
}

/* ---- left alone ---- */

static void left_alone(void)
{
	check_left_alone(ONE("mov %gs:8,%rax\n ret\n"), INSERT_REASON_GS, "mov ret");
	check_left_alone(ONE("call __morestack\n ret\n ret\n"), INSERT_REASON_BOUND,
		"call>__morestack ret ret");
	check_left_alone(
		ONE("call 1f\n 1: pop %rax\n ret\n"), INSERT_REASON_BOUND, "call>1 pop ret");
	check_left_alone(
		ONE("xbegin 1f\n xend\n 1: ret\n"), INSERT_REASON_TRANSACTION, "xbegin>2 xend ret");
	check_left_alone(ONE("jrcxz ext\n ret\n"), INSERT_REASON_BOUND, "jrcxz>ext ret");
	check_left_alone(ONE("push %rdx\n jmp *(%rsp)\n"), INSERT_REASON_INDIRECT, "push jmp");
}

/* Where the jump of this word leads to. */
static uint32_t target_of(const struct world *w, size_t word)
{
	struct x86_insn x;
	struct span bytes = w->o.sections.v[w->section].data;

	CHECK(x86_decode(
		&x, span_sub(bytes, w->at[word], bytes.n - w->at[word]), w->at[word], true));
	return (uint32_t)x.target;
}

#define PAST_LOCK "cmpl $0,x(%rip)\n jz 1f\n lock\n 1: incl (%rdi)\n ret\n"

static void lock_prefix(void)
{
	struct world w;

	/* As glibc does; both ways are counted. */
	begin(&w, INSERT_MODE_COUNTS, COMPILED FUNCTION("f") PAST_LOCK SIZE("f"));
	CHECK_STR(show(&w, "f"), "inc.0 cmp[x] jnz>5 inc.1 jmp>-1 inc.1 inc ret");
	CHECK_EQ(target_of(&w, 4), w.at[6] + 1);
	end(&w);
	/* And in a function that is left alone. */
	begin(&w, INSERT_MODE_COUNTS,
		COMPILED FUNCTION("e") "ret\n" SIZE("e")
			FUNCTION("f") "mov %gs:0,%eax\n" PAST_LOCK SIZE("f"));
	CHECK_STR(show(&w, "f"), "mov cmp[x] jz>-1 inc ret");
	CHECK_EQ(target_of(&w, 2), w.at[3] + 1);
	CHECK_STR(show(&w, "e"), "inc.0 ret");
	end(&w);
}

static void gs_neighbours(void)
{
	struct world w;

	begin(&w, INSERT_MODE_COUNTS,
		COMPILED FUNCTION("f") "mov %gs:8,%rax\n jmp g\n" SIZE("f")
			FUNCTION("g") "test %eax,%eax\n jz f\n ret\n" SIZE("g"));
	CHECK_STR(show(&w, "f"), "mov jmp>-1");
	CHECK_STR(show(&w, "g"), "inc.1 test jz>-1 inc.2 ret");
	end(&w);
}

static void unnamed(void)
{
	struct world w;

	/* Top-level assembly without .type and .size: what is called becomes a function. */
	begin(&w, INSERT_MODE_TREE,
		COMPILED ".globl bare\n bare: test %edi,%edi\n jz 1f\n xor %eax,%eax\n 1: ret\n"
			 ".p2align 4\n" FUNCTION("f") "call bare\n ret\n" SIZE("f"));
	CHECK_STR(reason_of(&w, "bare"), "inserted");
	CHECK_STR(show(&w, "f"), "enter inc.3 cost.2 call>bare leave ret");
	end(&w);
}

static void data_is_none(void)
{
	struct world w;

	/* Zeros that an instruction reads are no padding. */
	begin(&w, INSERT_MODE_COUNTS,
		COMPILED FUNCTION("f") "mov 1f(%rip),%rax\n ret\n" SIZE(
			"f") "1: .quad 0\n" FUNCTION("g") "ret\n" SIZE("g"));
	CHECK_STR(show(&w, "f"), "inc.0 mov[-1] ret");
	{
		const uint8_t *text = w.o.sections.v[w.section].data.p;
		uint32_t at = w.at[1], target;
		static const uint8_t zeros[8];
		int32_t distance;

		memcpy(&distance, text + at + 3, 4);
		target = at + 7 + (uint32_t)distance;
		CHECK(!memcmp(text + target, zeros, 8));
	}
	end(&w);
}

int main(void)
{
	static const struct test tests[] = {
		{"blocks begin at branch targets and behind branches", cuts},
		{"a call does not end a block", calls_stay},
		{"padding that nothing reaches has no counter", padding_uncounted},
		{"a tree needs entry, exit and costs", tree_words},
		{"endbr64 stays first", endbr_first},
		{"a branch back to the start skips the entry code, a call does not", back_to_start},
		{"a loop right behind endbr64 skips the entry code too", loop_behind_endbr},
		{"blocks leave their costs to those behind them", late_costs},
		{"a block of more than 127 instructions has its cost in a word", long_blocks},
		{"a jump out of a function is a tail call", tails},
		{"a conditional jump out of a function leaves only when it is taken",
			conditional_tails},
		{"calls of foreign functions are timed and jumps to them leave", foreign},
		{"behind a function that returns twice frames are looked at again", returns_twice},
		{"a call by a register that has a symbol's address is one of the symbol",
			called_by_register},
		{"short branches that do not reach any more are made long", widened},
		{"loop and jrcxz that do not reach any more jump over a jump", widened_loop},
		{"live flags: a counter waits until they are dead", flags_later},
		{"live flags: a comparison of registers is made again", flags_compare},
		{"live flags: a branch is counted on both its sides", flags_edges},
		{"live flags: else they are kept in a free register", flags_register},
		{"live flags: where none is free they are kept on the stack", flags_stack},
		{"live flags: the stack of hand-written code may be none", flags_no_stack},
		{"functions that take or return flags keep them", flags_taken},
		{"functions that cannot be moved about are left alone", left_alone},
		{"a jump past a lock prefix stays right", lock_prefix},
		{"inserted functions and those left alone find each other", gs_neighbours},
		{"code without a type is found when it is called", unnamed},
		{"zeros that are read are no padding", data_is_none},
	};

	return RUN_TESTS(tests);
}
