/* SPDX-License-Identifier: MIT */
/* Instrumented programs, and functions that the hook library needs for itself. */
#include "hook_world.h"

#define STUBS 0x2000u
#define SLOTS 0x6000u

/* --- mcount ------------------------------------------------------------------------------ */

CODE(profiled,
	"call 9f; lea 1(%rdi),%rax; ret\n"
	".balign 16,0xcc; push %rbp; mov %rsp,%rbp; call 9f; pop %rbp; lea 2(%rdi),%rax; ret\n"
	".balign 32,0xcc; endbr64; call 9f; lea 3(%rdi),%rax; ret\n"
	".balign 32,0xcc; push %rbp; mov %rsp,%rbp; push %rbx; sub $24,%rsp; call 9f\n"
	"lea 4(%rdi),%rax; add $24,%rsp; pop %rbx; pop %rbp; ret\n"
	".balign 32,0xcc; test %edi,%edi; jne 1f; call 9f; 1: ret\n"
	".balign 32,0xcc; 9: ud2");

static void test_mcount(void)
{
	struct world w;

	world_open(&w, true, SPAN(profiled),
		ROWS({"fentry", 0, 10, FUNC}, {"prologue", 16, 15, FUNC}, {"endbr", 32, 14, FUNC},
			{"saves", 64, 25, FUNC}, {"branches", 96, 10, FUNC},
			{"mcount", 128, 2, FUNC}));
	CHECK_EQ(world_function(&w, "fentry")->method, HOOK_METHOD_MCOUNT);
	CHECK_EQ(world_plan_of(&w, "fentry")->n_code, 5); /* nothing but the jump back */
	CHECK_EQ(world_function(&w, "prologue")->method, HOOK_METHOD_MCOUNT);
	CHECK_EQ(world_plan_of(&w, "prologue")->n_patched, 9);
	CHECK_EQ(world_plan_of(&w, "prologue")->n_code, 4 + 5);
	CHECK_EQ(world_function(&w, "prologue")->n_moves, 2);
	CHECK_EQ(world_function(&w, "endbr")->site.v, TEXT + 36);
	/* The jump covers the first instructions; behind the call it goes on. */
	CHECK_EQ(world_plan_of(&w, "saves")->n_patched, 5);
	CHECK_EQ(world_plan_of(&w, "saves")->n_original, 14);
	CHECK_EQ(world_function(&w, "branches")->method, HOOK_METHOD_JUMP);
	CHECK_EQ(world_function(&w, "mcount")->method, 0);
	world_load(&w);
	CHECK_EQ(world_call(&w, "fentry", 10, 0), 11); /* mcount would end the program */
	CHECK_EQ(world_call(&w, "prologue", 10, 0), 12);
	CHECK_EQ(world_call(&w, "endbr", 10, 0), 13);
	CHECK_EQ(world_call(&w, "saves", 10, 0), 14);
	CHECK_EQ(n_hooked, 4);
	world_close(&w);
}

/* --- calls through the linkage table ------------------------------------------------------- */

/* Stubs for `names`, 16 bytes each, and the tables that name them. */
static void add_stubs(struct world *w, const char *const *names, size_t n, uint16_t version)
{
	struct buf stubs = {0}, relocations = {0}, versions = {0};
	uint32_t plt, dynsym, rela, versym;

	buf_put_u16(&versions, 0);
	for (size_t i = 0; i < n; i++) {
		uint64_t stub = STUBS + 16 * i, slot = SLOTS + 8 * i;

		buf_put_u8(&stubs, 0xff);
		buf_put_u8(&stubs, 0x25);
		buf_put_u32(&stubs, (uint32_t)(slot - (stub + 6)));
		while (stubs.n % 16)
			buf_put_u8(&stubs, 0x90);
		buf_put_u64(&relocations, slot);
		buf_put_u64(&relocations, (i + 1) << 32 | R_X86_64_JUMP_SLOT);
		buf_put_u64(&relocations, 0);
		buf_put_u16(&versions, version);
		elf_maker_symbol(&w->m, names[i], 0, 0, FUNC, SHN_UNDEF);
	}
	plt = elf_maker_section(&w->m, ".plt", SHT_PROGBITS, STUBS, buf_span(&stubs));
	w->m.sections[plt].flags = SHF_ALLOC | SHF_EXECINSTR;
	w->m.sections[plt].entsize = 16;
	dynsym = elf_maker_symbols(&w->m, ".dynsym", SHT_DYNSYM);
	rela = elf_maker_section(&w->m, ".rela.plt", SHT_RELA, 0x7000, buf_span(&relocations));
	w->m.sections[rela].flags = SHF_ALLOC;
	w->m.sections[rela].link = dynsym;
	versym = elf_maker_section(&w->m, ".gnu.version", 0x6fffffff, 0x7800, buf_span(&versions));
	w->m.sections[versym].flags = SHF_ALLOC;
	buf_release(&stubs);
	buf_release(&relocations);
	buf_release(&versions);
}

/* 0x2000 - 0x1000 ahead are the stubs: enter, exit, __fentry__ */
CODE(instrumented, "push %rbx; mov %rdi,%rbx; .byte 0xe8; .long 0x1000-9; mov %rbx,%rax; pop %rbx\n"
		   ".byte 0xe9; .long 0x1010-9-9; .balign 32,0xcc\n"
		   "lea 1(%rdi),%rax; ret; .balign 16,0xcc\n"
		   ".byte 0xe8; .long 0x1020-48-5; lea 2(%rdi),%rax; ret; .balign 16,0xcc\n"
		   ".byte 0xff,0x15; .long 0x5010-64-6; lea 2(%rdi),%rax; ret");

static const char *const stub_names[] = {
	"__cyg_profile_func_enter", "__cyg_profile_func_exit", "__fentry__"};

static void plan_instrumented(struct world *w, const struct row *rows, size_t n, uint16_t version)
{
	world_init(w, true, SPAN(instrumented));
	add_stubs(w, stub_names, 3, version);
	world_symbols(w, ".symtab", SHT_SYMTAB, rows, n);
	world_plan(w, "*", "/bin/program");
}

static void test_instrument_functions(void)
{
	struct world w;
	const struct hook_plan *enter, *exit;

	plan_instrumented(&w,
		ROWS({"f", 0, 18, FUNC}, {"plain", 32, 5, FUNC}, {"fentry", 48, 10, FUNC},
			{"fentry_got", 64, 11, FUNC}),
		2);
	CHECK_EQ(world_function(&w, "f")->method, HOOK_METHOD_CYGPROF);
	CHECK_EQ(world_plan_of(&w, "f")->function, TEXT);
	CHECK_EQ(world_plan_of(&w, "f")->id, world_function(&w, "f")->id);
	CHECK_EQ(world_plan_of(&w, "f")->n_patched, 0);
	CHECK_EQ(world_plan_of(&w, "f")->n_code, 0);
	CHECK_EQ(world_function(&w, "plain")->method, HOOK_METHOD_JUMP);
	CHECK_EQ(world_function(&w, "fentry")->method, HOOK_METHOD_MCOUNT);
	CHECK_EQ(world_function(&w, "fentry_got")->method, HOOK_METHOD_MCOUNT);
	CHECK_EQ(world_plan_of(&w, "fentry_got")->n_patched, 6);
	CHECK_EQ(w.image->n_extra, 2);
	if (w.image->n_extra == 2) {
		enter = (const void *)w.image->plans.p;
		exit = (const void *)(w.image->plans.p + enter->bytes);
		if (enter->detail != HOOK_OWN_CYG_ENTER) {
			const struct hook_plan *swap = enter;

			enter = exit;
			exit = swap;
		}
		CHECK_EQ(enter->action, HOOK_ACTION_REPLACE);
		CHECK_EQ(enter->detail, HOOK_OWN_CYG_ENTER);
		CHECK_EQ(enter->site, STUBS);
		CHECK_EQ(enter->n_patched, 5);
		CHECK_EQ(enter->n_code, 0);
		CHECK_EQ(enter->original[0], 0xff);
		CHECK_EQ(exit->detail, HOOK_OWN_CYG_EXIT);
		CHECK_EQ(exit->site, STUBS + 16);
	}
	world_close(&w);
}

static void test_own_instrumentation(void)
{
	struct world w;

	/* The program has its own, or another library than libc has it. */
	plan_instrumented(
		&w, ROWS({"f", 0, 18, FUNC}, {"__cyg_profile_func_enter", 32, 5, FUNC}), 2);
	CHECK_EQ(world_function(&w, "f")->method, HOOK_METHOD_JUMP);
	CHECK_EQ(w.image->n_extra, 0);
	world_close(&w);
	plan_instrumented(&w, ROWS({"f", 0, 18, FUNC}), 1);
	CHECK_EQ(world_function(&w, "f")->method, HOOK_METHOD_JUMP);
	CHECK_EQ(w.image->n_extra, 0);
	world_close(&w);
}

/* --- libc -------------------------------------------------------------------------------- */

CODE(libc_like, "sub $8,%rsp; call 1f; add $8,%rsp; ret; .balign 32,0xcc\n"
		"1: mov %edi,%eax; mov %rsi,%rdi; mov %rdx,%rsi; ret; .balign 32,0xcc\n"
		"push %rbx; mov %rdi,%rbx; pop %rbx; ret; .balign 32,0xcc\n"
		"mov %rdi,%rax; mov %rsi,%rdx; ret; .balign 32,0xcc\n"
		"push %rbx; 2: dec %edi; jne 2b; pop %rbx; ret");

static const struct row libc_rows[] = {
	{"sigprocmask", 0, 14, FUNC},
	{"pthread_sigmask", 32, 9, FUNC},
	{"sigaction", 64, 6, FUNC},
	{"__sigaction", 64, 6, FUNC},
	{"makecontext", 96, 7, FUNC},
	{"needs_int3", 128, 7, FUNC},
};

static void plan_libc(struct world *w, const char *wishes)
{
	world_init(w, true, SPAN(libc_like));
	world_symbols(
		w, ".dynsym", SHT_DYNSYM, libc_rows, sizeof(libc_rows) / sizeof(libc_rows[0]));
	world_plan(w, wishes, "/usr/lib/x86_64-linux-gnu/libc.so.6");
}

static const struct hook_plan *extra(const struct world *w, size_t i)
{
	const struct hook_plan *plan = (const void *)w->image->plans.p;

	while (i--)
		plan = (const void *)((const uint8_t *)plan + plan->bytes);
	return plan;
}

static void test_libc_notes(void)
{
	struct world w;

	plan_libc(&w, NULL);
	CHECK_EQ(w.image->functions.n, 0);
	CHECK_EQ(w.image->n_extra, 1);
	CHECK_EQ(extra(&w, 0)->action, HOOK_ACTION_NOTE);
	CHECK_EQ(extra(&w, 0)->detail, HOOK_OWN_MAKECONTEXT);
	CHECK_EQ(extra(&w, 0)->id, 0);
	CHECK_EQ(extra(&w, 0)->site, TEXT + 96);
	CHECK_EQ(extra(&w, 0)->n_code, 6 + 5);
	CHECK_EQ(w.image->plans.n, extra(&w, 0)->bytes);
	world_close(&w);
}

static void test_libc_signals(void)
{
	struct world w;
	struct err err = {0};

	/* The same code as a program, which is planned first, and as libc. */
	world_init(&w, true, SPAN(libc_like));
	world_symbols(
		&w, ".dynsym", SHT_DYNSYM, libc_rows, sizeof(libc_rows) / sizeof(libc_rows[0]));
	world_plan(&w, "*,libc.so*:*", "/bin/program");
	CHECK_EQ(world_function(&w, "needs_int3")->method, HOOK_METHOD_INT3);
	CHECK_EQ(hook_planner_image(w.p, &(struct planned_file){.key = 2}, &w.elf,
			 "/usr/lib/x86_64-linux-gnu/libc.so.6", false, &w.image, &err),
		0);
	CHECK_EQ(world_function(&w, "needs_int3")->method, 0);
	CHECK_STR(reason_of(&w, "needs_int3"),
		"no room for a jump, and libc may block the signal of a breakpoint");
	CHECK_EQ(w.image->n_extra, 3);
	/* sigprocmask calls pthread_sigmask, so one of them is enough. */
	CHECK_EQ(extra(&w, 1)->action, HOOK_ACTION_REPLACE);
	CHECK_EQ(extra(&w, 1)->detail, HOOK_OWN_SIGMASK);
	CHECK_EQ(extra(&w, 1)->site, TEXT + 32);
	CHECK_EQ(extra(&w, 2)->detail, HOOK_OWN_SIGACTION);
	CHECK_EQ(extra(&w, 2)->site, TEXT + 64);
	CHECK_EQ(extra(&w, 2)->n_code, 0);
	CHECK_EQ(world_function(&w, "sigprocmask")->method, HOOK_METHOD_JUMP);
	CHECK_EQ(world_function(&w, "sigaction")->method, 0);
	CHECK_STR(reason_of(&w, "sigaction"), "the hook library needs it for itself");
	CHECK_EQ(world_plan_of(&w, "sigprocmask")->id, world_function(&w, "sigprocmask")->id);
	world_close(&w);
	/* Nothing needs a breakpoint: nothing is replaced. */
	plan_libc(&w, "libc.so*:sigprocmask");
	CHECK_EQ(w.image->n_extra, 1);
	world_close(&w);
}

/* --- allocations ------------------------------------------------------------------------- */

static void test_allocations(void)
{
	static const struct row rows[] = {
		{"malloc", 0, 14, FUNC},
		{"reallocarray", 32, 9, FUNC},
		{"_ZnwmSt11align_val_t", 64, 6, FUNC},
		{"posix_memalign", 96, 7, FUNC},
		{"free", 128, 7, FUNC},
	};
	struct world w;

	world_init(&w, true, SPAN(libc_like));
	w.p->wants_allocations = true;
	world_symbols(&w, ".dynsym", SHT_DYNSYM, rows, 5);
	world_plan(&w, NULL, "/usr/lib/libjemalloc.so.2");
	CHECK_EQ(w.image->functions.n, 4);
	CHECK_EQ(world_function(&w, "malloc")->action, HOOK_ACTION_AMOUNT);
	CHECK_EQ(world_plan_of(&w, "malloc")->detail, HOOK_AMOUNT_ARG0);
	CHECK_EQ(world_plan_of(&w, "reallocarray")->detail, HOOK_AMOUNT_ARG1_ARG2);
	CHECK_EQ(world_plan_of(&w, "posix_memalign")->detail, HOOK_AMOUNT_ARG2);
	CHECK_EQ(world_plan_of(&w, "_ZnwmSt11align_val_t")->action, HOOK_ACTION_AMOUNT);
	world_close(&w);
	/* A function of that name which nobody else can call is not an allocator. */
	world_init(&w, true, SPAN(libc_like));
	w.p->wants_allocations = true;
	world_symbols(&w, ".symtab", SHT_SYMTAB, rows, 5);
	world_plan(&w, "*", "/bin/program");
	CHECK_EQ(world_function(&w, "malloc")->action, HOOK_ACTION_CALL);
	world_close(&w);
}

int main(void)
{
	static const struct test tests[] = {
		{"takes the place of a call of mcount", test_mcount},
		{"leaves functions alone that -finstrument-functions compiled",
			test_instrument_functions},
		{"does not take over a program's own instrumentation", test_own_instrumentation},
		{"watches makecontext whatever is wished for", test_libc_notes},
		{"replaces the signal functions when int3 is used", test_libc_signals},
		{"finds the allocators that an image gives to others", test_allocations},
	};

	return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
