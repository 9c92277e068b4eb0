/* SPDX-License-Identifier: MIT */
#include "hook_world.h"

/* --- ways to patch ----------------------------------------------------------------------- */

CODE(nops, "nop;nop;nop;nop;nop;nop; lea 1(%rdi),%rax; ret\n"
	   ".balign 16,0xcc; endbr64; .byte 0x0f,0x1f,0x44,0,0; lea 2(%rdi),%rax; ret\n"
	   ".balign 16,0xcc; nop; nop; lea 3(%rdi),%rax; ret");

static void test_nops(void)
{
	struct world w;

	world_open(&w, true, SPAN(nops),
		ROWS({"six", 0, 11, FUNC}, {"endbr", 16, 14, FUNC}, {"two", 32, 7, FUNC}));
	CHECK_EQ(world_function(&w, "six")->method, HOOK_METHOD_NOP);
	CHECK_EQ(world_plan_of(&w, "six")->n_patched, 5);
	CHECK_EQ(world_plan_of(&w, "six")->n_code, 5); /* the jump back */
	CHECK_EQ(world_function(&w, "six")->n_moves, 4);
	CHECK_EQ(world_function(&w, "endbr")->method, HOOK_METHOD_NOP);
	CHECK_EQ(world_function(&w, "endbr")->site.v, TEXT + 20);
	CHECK_EQ(world_plan_of(&w, "endbr")->function, TEXT + 16);
	CHECK_EQ(world_function(&w, "two")->method, HOOK_METHOD_JUMP);
	world_load(&w);
	CHECK_EQ(world_call(&w, "six", 10, 0), 11);
	CHECK_EQ(world_call(&w, "endbr", 10, 0), 12);
	CHECK_EQ(world_call(&w, "two", 10, 0), 13);
	CHECK_EQ(n_hooked, 3);
	world_close(&w);
}

CODE(plain, "push %rbx; mov %rdi,%rbx; push %r12; lea (%rsi,%rbx),%rax; pop %r12; pop %rbx; ret");

static void test_moves(void)
{
	struct world w;
	const struct planned_function *f;

	world_open(&w, true, SPAN(plain), ROWS({"f", 0, (uint32_t)(plain_end - plain), FUNC}));
	f = world_function(&w, "f");
	CHECK_EQ(f->method, HOOK_METHOD_JUMP);
	CHECK_EQ(f->id, 1);
	CHECK_EQ(f->n_patched, 6); /* 1 + 3 + 2 bytes */
	CHECK_EQ(f->n_moves, 2);
	CHECK_EQ(f->moves[0].from, 1);
	CHECK_EQ(f->moves[0].to, 1);
	CHECK_EQ(f->moves[1].from, 4);
	CHECK_EQ(f->moves[1].to, 4);
	CHECK_EQ(world_plan_of(&w, "f")->n_code, 6 + 5);
	CHECK_EQ(world_plan_of(&w, "f")->n_fixups, 1);
	world_load(&w);
	CHECK_EQ(world_call(&w, "f", 3, 4), 7);
	CHECK_EQ(n_hooked, 1);
	world_close(&w);
}

/* What the moved instructions mean is the same: each function is called with both outcomes. */
CODE(relative,
	"cmpl $7,data(%rip); mov $1,%eax; jne 1f; dec %eax; 1: ret\n"
	".balign 16,0xcc; lea data(%rip),%rax; sub %rdx,%rax; ret\n"
	".balign 16,0xcc; test %edi,%edi; je 1f; mov $5,%eax; ret; 1: mov $6,%eax; ret\n"
	".balign 32,0xcc; jmp 1f; .fill 6,1,0x90; 1: lea 9(%rdi),%rax; ret\n"
	".balign 32,0xcc; mov %edi,%ecx; jrcxz 1f; lea 1(%rcx),%eax; ret; 1: mov $77,%eax; ret\n"
	".balign 32,0xcc; mov %edi,%ecx; loop 1f; lea 8(%rcx),%eax; ret; 1: mov $99,%eax; ret\n"
	".balign 32,0xcc; .byte 0x67,0xe3,2; jmp 1f; mov $2,%eax; ret; 1: mov $3,%eax; ret\n"
	".balign 32,0xcc; test %edi,%edi; .byte 0x0f,0x84,6,0,0,0; mov $4,%eax; ret; mov $3,%eax; ret\n"
	".balign 16; data: .long 7");

static void test_relative(void)
{
	struct world w;

	world_open(&w, true, SPAN(relative),
		ROWS({"compare", 0, 17, FUNC}, {"address", 32, 11, FUNC}, {"branch", 48, 16, FUNC},
			{"forward", 64, 13, FUNC}, {"jrcxz", 96, 14, FUNC}, {"loop", 128, 14, FUNC},
			{"jecxz", 160, 17, FUNC}, {"near", 192, 20, FUNC}));
	for (size_t i = 0; i < w.image->functions.n; i++) {
		CHECK_EQ(w.image->functions.v[i].method, HOOK_METHOD_JUMP);
		CHECK(w.image->functions.v[i].n_patched >= 5);
	}
	CHECK_EQ(w.image->functions.n, 8);
	world_load(&w);
	CHECK_EQ(world_call(&w, "compare", 0, 0), 0);
	CHECK_EQ(world_call(&w, "address", 0, 0), TEXT + 224);
	CHECK_EQ(world_call(&w, "branch", 0, 0), 6);
	CHECK_EQ(world_call(&w, "branch", 1, 0), 5);
	CHECK_EQ(world_call(&w, "forward", 1, 0), 10);
	CHECK_EQ(world_call(&w, "jrcxz", 0, 0), 77);
	CHECK_EQ(world_call(&w, "jrcxz", 3, 0), 4);
	CHECK_EQ(world_call(&w, "loop", 1, 0), 8);
	CHECK_EQ(world_call(&w, "loop", 2, 0), 99);
	CHECK_EQ(world_call(&w, "near", 0, 0), 3);
	CHECK_EQ(world_call(&w, "near", 1, 0), 4);
	CHECK_EQ(n_hooked, 11);
	world_close(&w);
}

/* A moved call pushes the address behind the original one: the callee returns it. */
CODE(calls, "sub $8,%rsp; call 1f; add $8,%rsp; sub %rdx,%rax; ret\n"
	    ".balign 32,0xcc; sub $8,%rsp; call *pointer(%rip); add $8,%rsp; sub %rdx,%rax; ret\n"
	    ".balign 32,0xcc; push %rbx; call *16(%rsp); pop %rbx; ret\n"
	    ".balign 32,0xcc; call 1f; sub %rdx,%rax; ret\n"
	    ".balign 32,0xcc; 1: mov (%rsp),%rax; ret\n"
	    ".balign 32,0xcc; pointer: .quad 0");

static void test_calls(void)
{
	struct world w;
	uint64_t callee;

	world_open(&w, true, SPAN(calls),
		ROWS({"direct", 0, 17, FUNC}, {"through", 32, 18, FUNC}, {"by_stack", 64, 7, FUNC},
			{"first", 96, 9, FUNC}));
	CHECK_EQ(world_function(&w, "direct")->n_patched, 9);
	CHECK_EQ(world_function(&w, "through")->n_patched, 10);
	CHECK_EQ(world_function(&w, "first")->n_patched, 5);
	/* What the call goes to would be looked for at another place of the stack. */
	CHECK_EQ(world_function(&w, "by_stack")->method, HOOK_METHOD_INT3);
	CHECK_STR(reason_of(&w, "by_stack"), "a call is among its first instructions");
	world_load(&w);
	callee = (uintptr_t)w.memory + TEXT + 128;
	memcpy(w.memory + TEXT + 160, &callee, 8);
	CHECK_EQ(world_call(&w, "direct", 0, 0), TEXT + 9);
	CHECK_EQ(world_call(&w, "through", 0, 0), TEXT + 32 + 10);
	CHECK_EQ(world_call(&w, "first", 0, 0), TEXT + 96 + 5);
	CHECK_EQ(n_hooked, 3);
	world_close(&w);
}

CODE(call_early, "call 1f; nop; ret; .balign 16,0xcc; push %rbx; call *%rax; pop %rbx; ret\n"
		 ".balign 16,0xcc; 1: ret; .balign 16,0xcc");

static void test_call_among(void)
{
	struct world w;

	/* call *%rax ends before five bytes are covered: it would return into the jump. */
	world_open(&w, true, SPAN(call_early),
		ROWS({"f", 0, 7, FUNC}, {"g", 16, 5, FUNC}, {"h", 32, 1, FUNC}));
	CHECK_EQ(world_function(&w, "f")->n_patched, 5);
	CHECK_EQ(world_function(&w, "g")->n_patched, 2);
	CHECK(world_plan_of(&w, "g")->pad_site != 0);
	CHECK_EQ(world_function(&w, "g")->method, HOOK_METHOD_JUMP);
	world_close(&w);
}

CODE(tiny,
	"ret; .balign 16,0x90; xor %eax,%eax; ret; .balign 16,0xcc\n"
	"mov %edi,%eax; ret; .balign 16,0; xor %eax,%eax; .balign 16,0x90; lea 5(%rdi),%rax; ret");

static void test_tiny(void)
{
	struct world w;

	world_open(&w, true, SPAN(tiny),
		ROWS({"one", 0, 1, FUNC}, {"three", 16, 3, FUNC}, {"zeros", 32, 3, FUNC},
			{"falls", 48, 2, FUNC}, {"next", 64, 5, FUNC}));
	CHECK_EQ(world_function(&w, "one")->n_patched, 5);
	CHECK_EQ(world_plan_of(&w, "one")->n_code, 1);
	CHECK_EQ(world_function(&w, "three")->n_patched, 5);
	CHECK_EQ(world_function(&w, "zeros")->n_patched, 5);
	CHECK(world_function(&w, "falls")->n_patched >= 5);
	world_load(&w);
	CHECK_EQ(world_call(&w, "three", 1, 0), 0);
	CHECK_EQ(world_call(&w, "zeros", 7, 0), 7);
	CHECK_EQ(world_call(&w, "falls", 1, 0), 6); /* runs on into "next" */
	CHECK_EQ(n_hooked, 4);
	world_close(&w);
}

/* Two of the three find padding; each needs five bytes of its own. */
CODE(crowded, "xor %eax,%eax; ret; mov $7,%al; ret; mov $9,%al; ret; .balign 16,0x90\n"
	      "1: lea 1(%rdi),%rax; ret; .balign 16,0xcc; push %rax; pop %rax; jmp 1b");

static void test_short_jumps(void)
{
	struct world w;
	const struct hook_plan *a, *b;

	world_open(&w, true, SPAN(crowded),
		ROWS({"a", 0, 3, FUNC}, {"b", 3, 3, FUNC}, {"c", 6, 3, FUNC}, {"d", 16, 5, FUNC},
			{"e", 32, 4, FUNC}));
	CHECK_EQ(world_function(&w, "c")->n_patched, 5); /* the padding behind it */
	a = world_plan_of(&w, "a");
	b = world_plan_of(&w, "b");
	CHECK_EQ(a->n_patched, 2);
	CHECK_EQ(b->n_patched, 2);
	CHECK_EQ(a->n_original, 2); /* xor alone */
	CHECK(a->pad_site && b->pad_site && a->pad_site != b->pad_site);
	CHECK(a->pad_site >= TEXT + 11); /* "c" has the first two bytes of the padding */
	CHECK(b->pad_site >= a->pad_site + 5);
	CHECK_EQ(world_function(&w, "a")->n_moves, 0);
	world_load(&w);
	CHECK_EQ(world_call(&w, "a", 0, 0), 0);
	CHECK_EQ(world_call(&w, "b", 0, 0) & 0xff, 7);
	CHECK_EQ(world_call(&w, "c", 0, 0) & 0xff, 9);
	CHECK_EQ(world_call(&w, "e", 4, 0), 5);
	CHECK_EQ(n_hooked, 5); /* "e" runs on into "d" by a jump */
	world_close(&w);
}

/* The nops are run, whatever the size of "open" says. */
CODE(open_end,
	"xor %eax,%eax; ret; xor %eax,%eax; ret; xor %eax,%eax; .fill 8,1,0x90; ret; hlt; hlt");

static void test_open_end(void)
{
	struct world w;

	world_open(&w, true, SPAN(open_end),
		ROWS({"a", 0, 3, FUNC}, {"b", 3, 3, FUNC}, {"open", 6, 2, FUNC},
			{"c", 16, 1, FUNC}));
	CHECK_EQ(world_function(&w, "a")->method, HOOK_METHOD_INT3);
	CHECK_EQ(world_function(&w, "open")->n_patched, 5);
	CHECK_EQ(world_plan_of(&w, "open")->n_code, 2 + 5); /* xor, and back to the other nops */
	world_close(&w);
}

CODE(packed,
	"xor %eax,%eax; ret; xor %eax,%eax; ret; push %rbx; 1: dec %edi; jne 1b; pop %rbx; ret");

static void test_int3(void)
{
	struct world w;

	world_open(&w, true, SPAN(packed),
		ROWS({"a", 0, 3, FUNC}, {"b", 3, 3, FUNC}, {"c", 6, 7, FUNC}));
	CHECK_EQ(world_function(&w, "a")->method, HOOK_METHOD_INT3);
	CHECK_EQ(world_function(&w, "a")->n_patched, 1);
	CHECK_EQ(world_plan_of(&w, "a")->n_original, 2);
	CHECK_STR(reason_of(&w, "a"), "it is too short for a jump");
	/* The branch leads to the second byte: not even two are free. */
	CHECK_EQ(world_function(&w, "c")->method, HOOK_METHOD_INT3);
	CHECK_STR(reason_of(&w, "c"), "a branch leads into its first instructions");
	CHECK_EQ(world_function(&w, "c")->n_moves, 0);
	world_close(&w);
}

/* --- who else comes to the first instructions ---------------------------------------------- */

CODE(loops, "dec %edi; .byte 0x0f,0x85,0xf8,0xff,0xff,0xff; ret; .balign 16,0xcc\n"
	    "endbr64; 1: dec %edi; jne 1b; ret; .balign 16,0xcc; sub $8,%rsp; call .-4; ret\n"
	    ".balign 16,0xcc; lea 4(%rdi),%rax; jmp loops\n");

static void test_loops(void)
{
	struct world w;

	world_open(&w, true, SPAN(loops),
		ROWS({"loop", 0, 9, FUNC}, {"endbr", 16, 9, FUNC}, {"recursive", 32, 10, FUNC},
			{"tail", 48, 9, FUNC}));
	CHECK_EQ(world_function(&w, "loop")->method, 0);
	CHECK_STR(reason_of(&w, "loop"), "a loop leads back to its first instruction");
	CHECK_EQ(world_plan_of(&w, "loop")->bytes, 0);
	/* The loop does not lead to the endbr itself. */
	CHECK_EQ(world_function(&w, "endbr")->method, HOOK_METHOD_JUMP);
	CHECK_EQ(world_function(&w, "endbr")->site.v, TEXT + 16);
	CHECK_EQ(world_function(&w, "endbr")->n_patched, 2);
	CHECK_EQ(world_function(&w, "recursive")->n_patched, 9);
	CHECK_EQ(world_function(&w, "tail")->method, HOOK_METHOD_JUMP);
	world_load(&w);
	CHECK_EQ(world_call(&w, "endbr", 5, 0) & 0, 0);
	CHECK_EQ(n_hooked, 1); /* not once a round */
	world_close(&w);
}

CODE(entered,
	"push %rbx; push %rbp; push %r12; lea 1(%rdi),%rax; pop %r12; pop %rbp; pop %rbx; ret\n"
	".balign 16,0xcc; mov %edi,%eax; jmp entered+2; .balign 16,0xcc\n"
	"push %rbx; 1: push %rbp; push %r12; lea 1(%rdi),%rax; ret; .balign 16,0xcc");

static void test_entered_elsewhere(void)
{
	struct world w;

	/* From another function, and by a symbol of its own. */
	world_open(&w, true, SPAN(entered),
		ROWS({"f", 0, 14, FUNC}, {"other", 16, 4, FUNC}, {"g", 32, 10, FUNC},
			{"label_in_g", 33, 0, LABEL}));
	CHECK_EQ(world_function(&w, "f")->n_patched, 2);
	CHECK_EQ(world_function(&w, "g")->method, HOOK_METHOD_INT3);
	CHECK_STR(reason_of(&w, "g"), "a branch leads into its first instructions");
	CHECK_EQ(w.image->functions.n, 3);
	world_close(&w);
	world_open(&w, true, SPAN(entered),
		ROWS({"f", 0, 14, FUNC}, {"other", 16, 4, FUNC}, {"g", 32, 10, FUNC},
			{"inner", 35, 4, FUNC}));
	CHECK_EQ(world_function(&w, "g")->n_patched, 2);
	CHECK(world_plan_of(&w, "g")->pad_site != 0);
	world_close(&w);
}

/* A byte pattern that would be a branch to `f` is in the middle of an instruction. */
CODE(lookalike, "push %rbx; push %rbp; push %r12; ret; .balign 16,0xcc; mov $0xefefeb,%eax; ret");

static void test_lookalike(void)
{
	struct world w;

	world_open(&w, true, SPAN(lookalike), ROWS({"f", 0, 5, FUNC}, {"g", 16, 6, FUNC}));
	CHECK_EQ(world_function(&w, "f")->n_patched, 5);
	CHECK_EQ(world_plan_of(&w, "f")->pad_site, 0);
	world_close(&w);
	/* Where nothing says how to read it, it may be one. */
	world_open(&w, true, SPAN(lookalike), ROWS({"f", 0, 5, FUNC}));
	CHECK_EQ(world_plan_of(&w, "f")->n_patched, 2);
	world_close(&w);
}

/* A switch without a prologue: one of its cases is the function's start. */
CODE(switches,
	"mov %edi,%eax; .byte 0x48,0x8d,0x15; .long 0x4000-0x1000-9; movslq (%rdx,%rax,4),%rax\n"
	"add %rdx,%rax; jmp *%rax; .balign 32,0xcc; ret; .balign 16,0xcc\n"
	"cmp $3,%edi; jmp *0x4000(,%rdi,8); ret; .balign 16,0xcc");

static void test_tables(void)
{
	static const int32_t distances[] = {TEXT + 14 - DATA, TEXT + 2 - DATA, TEXT + 12 - DATA};
	static const uint64_t addresses[] = {TEXT + 48 + 10, TEXT + 48 + 3, 1};
	const struct row rows[] = {{"relative", 0, 18, FUNC}, {"absolute", 48, 11, FUNC}};
	struct world w;

	for (int i = 0; i < 2; i++) {
		world_init(&w, true, SPAN(switches));
		w.m.type = i ? ET_EXEC : ET_DYN;
		world_data(&w, ".rodata",
			i ? (struct span){(const void *)addresses, sizeof(addresses)}
			  : (struct span){(const void *)distances, sizeof(distances)});
		world_symbols(&w, ".symtab", SHT_SYMTAB, rows, 2);
		world_plan(&w, "*", "/bin/program");
		/* Offset 2 of the first and 3 of the second are in reach of a jump, not of a short
		 * one. */
		CHECK_EQ(world_function(&w, "relative")->n_patched, i ? 9 : 2);
		CHECK_EQ(world_function(&w, "absolute")->n_patched, i ? 2 : 10);
		world_close(&w);
	}
}

static void test_pointers(void)
{
	static const uint64_t pointer = TEXT + 1;
	struct buf relocations = {0};
	struct world w;
	uint32_t i;

	world_init(&w, true, SPAN(plain));
	world_data(&w, ".data.rel.ro", (struct span){(const void *)&pointer, 8});
	buf_put_u64(&relocations, DATA);
	buf_put_u64(&relocations, R_X86_64_RELATIVE);
	buf_put_u64(&relocations, TEXT + 1);
	i = elf_maker_section(&w.m, ".rela.dyn", SHT_RELA, 0x5000, buf_span(&relocations));
	w.m.sections[i].flags = SHF_ALLOC;
	world_symbols(&w, ".symtab", SHT_SYMTAB, ROWS({"f", 0, 14, FUNC}));
	world_plan(&w, "*", "/bin/program");
	CHECK_EQ(world_function(&w, "f")->method, HOOK_METHOD_INT3);
	CHECK_STR(reason_of(&w, "f"), "a branch leads into its first instructions");
	world_close(&w);
	buf_release(&relocations);
}

static void test_fixed_pointers(void)
{
	static const uint64_t pointers[] = {7, TEXT, TEXT + 4};

	for (int i = 0; i < 2; i++) {
		struct world w;

		world_init(&w, true, SPAN(plain));
		w.m.type = ET_EXEC;
		/* The function's own address is a function pointer. */
		world_data(&w, ".data", (struct span){(const void *)pointers, i ? 24 : 16});
		world_symbols(&w, ".symtab", SHT_SYMTAB, ROWS({"f", 0, 14, FUNC}));
		world_plan(&w, "*", "/bin/program");
		CHECK_EQ(world_function(&w, "f")->method, i ? HOOK_METHOD_INT3 : HOOK_METHOD_JUMP);
		world_close(&w);
	}
}

CODE(garbage, ".byte 0x06,0x06,0x06,0x06,0x06,0x06,0xc3; .balign 16,0xcc\n"
	      ".byte 0x67,0x8d,0x05,0,0,0,0; ret");

static void test_not_movable(void)
{
	struct world w;

	world_open(&w, true, SPAN(garbage), ROWS({"garbage", 0, 7, FUNC}, {"eip", 16, 8, FUNC}));
	CHECK_EQ(world_function(&w, "garbage")->method, 0);
	CHECK_STR(reason_of(&w, "garbage"), "its code is not understood");
	CHECK_EQ(world_function(&w, "eip")->method, 0);
	CHECK_STR(reason_of(&w, "eip"), "one of its first instructions means its own address");
	world_close(&w);
}

/* --- 32 bit ------------------------------------------------------------------------------ */

CODE32(thirty_two,
	"call 1f; addl $0x2000,%ebx; ret; .balign 16,0xcc\n"
	"push %ebp; mov %esp,%ebp; push %edi; call 2f; pop %edi; ret; .balign 16,0xcc\n"
	"call 3f; 3: pop %ebx; ret; .balign 16,0xcc\n"
	"1: mov (%esp),%ebx; ret; .balign 16,0xcc; 2: xor %eax,%eax; ret; leal 0(%esi),%esi");

static void test_32_bit(void)
{
	/* call next; next: pop %ebx; lea x(%ebx),%ebx; jmp back */
	static const uint8_t expected[] = {
		0xe8, 0, 0, 0, 0, 0x5b, 0x8d, 0x9b, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0};
	struct world w;
	const struct hook_plan *plan;
	const struct hook_fixup *fixups;

	world_open(&w, false, SPAN(thirty_two),
		ROWS({"pic", 0, 12, FUNC}, {"prologue", 16, 11, FUNC}, {"pc", 32, 7, FUNC},
			{"thunk", 48, 4, FUNC}, {"tiny", 64, 3, FUNC}));
	plan = world_plan_of(&w, "pic");
	CHECK_EQ(plan->n_patched, 5);
	CHECK_EQ(plan->n_code, sizeof(expected));
	CHECK_EQ(memcmp(plan + 1, expected, sizeof(expected)), 0);
	CHECK_EQ(plan->n_fixups, 2);
	fixups = (const void *)((const uint8_t *)(plan + 1) + 24);
	CHECK_EQ(fixups[0].at, 8);
	CHECK_EQ(fixups[0].next, 5); /* from where pop takes the address */
	CHECK_EQ(fixups[0].target, TEXT + 5);
	CHECK_EQ(fixups[1].at, 13);
	CHECK_EQ(fixups[1].next, 17);
	CHECK_EQ(fixups[1].target, TEXT + 5);
	CHECK_EQ(world_function(&w, "prologue")->n_patched, 9);
	/* A call of the next instruction pushes what the original one would push. */
	CHECK_EQ(world_function(&w, "pc")->n_patched, 5);
	CHECK_EQ(world_plan_of(&w, "pc")->n_fixups, 2);
	CHECK_EQ(world_function(&w, "thunk")->method, 0);
	CHECK_STR(reason_of(&w, "thunk"), "reads its own return address");
	CHECK_EQ(world_function(&w, "tiny")->n_patched, 5); /* over a nop that is a lea */
	world_close(&w);
}

/* --- what must not be hooked --------------------------------------------------------------- */

static void test_unsafe_names(void)
{
	static const struct {
		const char *name, *reason;
	} cases[] = {
		{"__sigsetjmp", "it returns twice"},
		{"vfork", "it returns twice"},
		{"swapcontext", "it changes the stack under its caller"},
		{"mcount", "compilers insert calls of it that keep all registers"},
		{"__cyg_profile_func_enter",
			"compilers insert calls of it that keep all registers"},
		{"_dl_runtime_resolve_xsave", "it belongs to the dynamic linker"},
		{"__restore_rt", "it is returned to, not called"},
		{"_Unwind_Resume_or_Rethrow", "it unwinds the stack from its own frame"},
		{"uw_init_context_1", "it unwinds the stack from its own frame"},
		{"__x86.get_pc_thunk.bx", "reads its own return address"},
		{"dlsym", "reads its own return address"},
		{"_start", "it runs before or after the program"},
		{"longjmp", ""},
		{"_Unwind_GetIP", ""},
		{"mcounter", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;

		/* Also when it is only one of the function's names. */
		world_open(&w, true, SPAN(plain),
			ROWS({cases[i].name, 0, 14, LOCAL}, {"a", 0, 14, FUNC}));
		CHECK_EQ(w.image->functions.n, 1);
		CHECK_STR(reason_of(&w, "a"), cases[i].reason);
		CHECK_EQ(world_function(&w, "a")->method, *cases[i].reason ? 0 : HOOK_METHOD_JUMP);
		world_close(&w);
	}
}

static void test_kinds_of_symbols(void)
{
	struct world w;

	world_open(&w, true, SPAN(entered),
		ROWS({"ifunc", 0, 14, IFUNC}, {"resolver", 0, 14, LOCAL}, {"f.cold", 16, 4, LOCAL},
			{"i.warm", 20, 4, LOCAL}, {"g.part.0", 32, 4, LOCAL},
			{"h.cold.3", 36, 2, LOCAL},
			{"asm", 38, 0, ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE)}));
	CHECK_EQ(w.image->functions.n, 3);
	CHECK_STR(reason_of(&w, "ifunc"), "an IFUNC resolver runs before the program does");
	CHECK_EQ(world_function(&w, "g.part.0")->n_patched, 2);
	CHECK_STR(reason_of(&w, "asm"), "its symbol does not say that it is a function");
	world_close(&w);
}

static void test_kinds_of_images(void)
{
	static const struct {
		const char *path, *section, *reason;
	} cases[] = {
		{"/lib64/ld-linux-x86-64.so.2", ".comment", "it belongs to the dynamic linker"},
		{"/usr/lib/weir/libweir.so", ".comment", "it is the hook library itself"},
		{"/usr/bin/gopher", ".gopclntab", "Go moves its stacks"},
		{"/usr/bin/gopher", ".comment", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;

		world_init(&w, true, SPAN(plain));
		world_data(&w, cases[i].section, (struct span){(const void *)"x", 1});
		world_symbols(&w, ".symtab", SHT_SYMTAB, ROWS({"f", 0, 14, FUNC}));
		world_plan(&w, "*", cases[i].path);
		CHECK_EQ(w.image->functions.n, 1);
		CHECK_STR(reason_of(&w, "f"), cases[i].reason);
		world_close(&w);
	}
}

static void test_unusable_images(void)
{
	struct world w;
	struct err err = {0};

	world_init(&w, true, SPAN(plain));
	w.m.machine = EM_AARCH64;
	CHECK_EQ(elf_file_init(&w.elf, elf_maker_finish(&w.m), NULL), 0);
	CHECK(hook_planner_image(w.p, &(struct planned_file){.key = 1}, &w.elf, "/bin/arm", true,
		      &w.image, &err) < 0);
	CHECK_STR(err.text, "'/bin/arm': code of machine 183 (64 bits) is not known");
	world_close(&w);
	world_init(&w, true, SPAN(plain));
	w.m.type = ET_REL;
	CHECK_EQ(elf_file_init(&w.elf, elf_maker_finish(&w.m), NULL), 0);
	CHECK(hook_planner_image(w.p, &(struct planned_file){.key = 1}, &w.elf, "x.o", true,
		      &w.image, &err) < 0);
	CHECK_STR(err.text, "'x.o': is no program or library");
	world_close(&w);
}

/* --- numbers ----------------------------------------------------------------------------- */

static void test_numbers(void)
{
	struct world w;
	const struct planned_image *again, *other, *third, *found = NULL;

	world_open(&w, true, SPAN(tiny), ROWS({"b", 16, 3, FUNC}, {"a", 0, 1, FUNC}));
	CHECK_EQ(wishes_add(&w.p->wishes, "lib*:b", HOOK_ACTION_STACK, NULL), 0);
	CHECK_EQ(hook_planner_image(w.p, &(struct planned_file){.key = 1}, &w.elf, "/bin/program",
			 true, &again, NULL),
		0);
	CHECK(again == w.image);
	CHECK_EQ(hook_planner_image(w.p, &(struct planned_file){.key = 2}, &w.elf, "/lib/other.so",
			 false, &other, NULL),
		0);
	CHECK_EQ(other->functions.n, 0);
	CHECK_EQ(hook_planner_image(w.p, &(struct planned_file){.key = 3}, &w.elf, "/lib/libb.so.1",
			 false, &third, NULL),
		0);
	CHECK_EQ(third->functions.n, 1);
	CHECK_EQ(w.p->n_ids, 3);
	CHECK_STR(hook_planner_function(w.p, 1, &found)->name, "a");
	CHECK(found == w.image);
	CHECK_STR(hook_planner_function(w.p, 3, &found)->name, "b");
	CHECK(found == third);
	CHECK_EQ(hook_planner_function(w.p, 3, NULL)->action, HOOK_ACTION_STACK);
	CHECK_EQ(hook_planner_function(w.p, 2, NULL)->action, HOOK_ACTION_CALL);
	CHECK(!hook_planner_function(w.p, 0, NULL));
	CHECK(!hook_planner_function(w.p, 4, NULL));
	world_close(&w);
}

static void test_phrases(void)
{
	for (int i = 0; i <= HOOK_REFUSAL_N; i++)
		CHECK(strlen(hook_refusal_phrase((enum hook_refusal)i)) > 0);
	CHECK_STR(hook_method_name(HOOK_METHOD_JUMP), "jump");
	CHECK_STR(hook_method_name(HOOK_METHOD_CYGPROF), "instrument");
	CHECK_STR(hook_method_name((enum hook_method)0), "refused");
}

int main(void)
{
	static const struct test tests[] = {
		{"uses nops at the entry, behind an endbr, too", test_nops},
		{"says where moved instructions are", test_moves},
		{"moves what is relative to its own address", test_relative},
		{"moves a call so that it returns to the original code", test_calls},
		{"moves a call only as the last instruction", test_call_among},
		{"overwrites the padding behind a tiny function", test_tiny},
		{"reaches padding of its own by a short jump", test_short_jumps},
		{"takes no padding that is run", test_open_end},
		{"takes int3 where no jump fits", test_int3},
		{"refuses a loop to the first instruction, unless an endbr is before it",
			test_loops},
		{"leaves bytes alone that somebody else enters", test_entered_elsewhere},
		{"knows a branch from bytes that look like one", test_lookalike},
		{"reads the tables of switches", test_tables},
		{"reads pointers by relocations", test_pointers},
		{"reads pointers of images with fixed addresses", test_fixed_pointers},
		{"refuses what it does not understand or cannot move", test_not_movable},
		{"plans 32-bit code, get_pc_thunk included", test_32_bit},
		{"refuses functions by their names", test_unsafe_names},
		{"knows resolvers, fragments and labels", test_kinds_of_symbols},
		{"refuses the dynamic linker, itself and Go", test_kinds_of_images},
		{"fails for images that are no x86 program", test_unusable_images},
		{"numbers the functions of all images", test_numbers},
		{"has a phrase for everything", test_phrases},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
