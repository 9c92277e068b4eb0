/* SPDX-License-Identifier: MIT */
#include "unwind/unwind.h"

#include "check.h"
#include "unwind_world.h"

/* Each test runs for both widths. */
#define FOR_BOTH(world)                                                                            \
	for (int is_64_ = 0; is_64_ < 2; is_64_++)                                                 \
		for (bool once_ = (world_init(&world, is_64_), true); once_;                       \
			once_ = (world_release(&world), false))

static void check_frames(const struct world *w, const uint64_t *pcs, size_t n)
{
	CHECK_EQ(w->n_frames, n);
	for (size_t i = 0; i < n && i < w->n_frames; i++)
		CHECK_EQ(w->frames[i].pc.v, pcs[i]);
}
#define CHECK_FRAMES(world, ...)                                                                   \
	check_frames(&world, (const uint64_t[]){__VA_ARGS__},                                      \
		sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static struct world w;

static void to_the_start(void)
{
	FOR_BOTH(w)
	{
		world_push(&w, F_BIG + 9);
		world_push(&w, 1); /* of F_BIG */
		world_push(&w, 2);
		world_push(&w, 3);
		world_push(&w, F_START + 5);
		CHECK_EQ(world_walk(&w, F_LEAF + 4), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_LEAF + 4, F_BIG + 9, F_START + 5);
		CHECK(!w.frames[0].is_caller && w.frames[1].is_caller && w.frames[2].is_caller);
		CHECK(w.frames[1].has_module);
		CHECK_EQ(w.frames[1].cookie, 7);
		CHECK_EQ(w.frames[1].bias, WORLD_BIAS);
	}
}

static void return_address_zero(void)
{
	FOR_BOTH(w)
	{
		world_push(&w, F_LEAF + 2);
		world_push(&w, 0);
		CHECK_EQ(world_walk(&w, F_LEAF), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_LEAF, F_LEAF + 2);
	}
}

/* The last instruction of F_LEAF is a call: the return address is the first byte of F_BIG. */
static void call_that_does_not_return(void)
{
	FOR_BOTH(w)
	{
		world_push(&w, F_BIG);
		world_push(&w, F_START + 1);
		CHECK_EQ(world_walk(&w, F_LEAF), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_LEAF, F_BIG, F_START + 1);
	}
}

/* Interrupted at the first byte of F_BIG, which is exact here; its frame lies below the handler's.
 */
static void signal_frame(void)
{
	FOR_BOTH(w)
	{
		world_push(&w, F_SIGNAL + 1);
		world_push(&w, 0);
		world_push(&w, F_BIG);
		world_push(&w, world_addr(&w, 6));
		world_push(&w, 0xb0);
		world_push(&w, 0xbb);
		for (int i = 0; i < 3; i++)
			world_push(&w, 0);
		world_push(&w, F_START + 1);
		CHECK_EQ(world_walk(&w, F_LEAF), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_LEAF, F_SIGNAL + 1, F_BIG, F_START + 1);
		CHECK(w.frames[1].is_caller && !w.frames[2].is_caller && w.frames[3].is_caller);
	}
}

/* The handler has returned, and the system call that ends it has not: the pc is behind that. */
static void in_the_return_of_a_signal(void)
{
	FOR_BOTH(w)
	{
		w.knows_calls = true; /* else nothing would be guessed in its place */
		world_push(&w, 0);
		world_push(&w, F_BIG);
		world_push(&w, world_addr(&w, 5));
		world_push(&w, 0xb0);
		world_push(&w, 0xbb);
		for (int i = 0; i < 3; i++)
			world_push(&w, 0);
		world_push(&w, F_START + 1);
		CHECK_EQ(world_walk(&w, F_RETURNS + 9), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_RETURNS + 9, F_BIG, F_START + 1);
		CHECK(!w.frames[1].is_caller && w.frames[2].is_caller);
	}
}

/* The handler runs above the interrupted frame, on a stack of its own. */
static void signal_on_another_stack(void)
{
	FOR_BOTH(w)
	{
		world_push(&w, F_START + 1); /* of the interrupted F_LEAF */
		world_push(&w, F_SIGNAL + 1);
		world_push(&w, 0);
		world_push(&w, F_LEAF + 3);
		world_push(&w, world_addr(&w, 0));
		world_push(&w, 0xb0);
		world_push(&w, 0xbb);
		w.regs.r[CPU_REG_RSP] = world_addr(&w, 1);
		CHECK_EQ(world_walk(&w, F_LEAF), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_LEAF, F_SIGNAL + 1, F_LEAF + 3, F_START + 1);
	}
}

/* The interrupted stack is not in the copy: that is a short copy, not bad CFI. */
static void signal_stack_alone_in_the_copy(void)
{
	FOR_BOTH(w)
	{
		world_push(&w, F_SIGNAL + 1);
		world_push(&w, 0);
		world_push(&w, F_LEAF + 3);
		world_push(&w, STACK_ADDR - 0x100000);
		world_push(&w, 0xb0);
		world_push(&w, 0xbb);
		CHECK_EQ(world_walk(&w, F_LEAF), UNWIND_END_STACK_SHORT);
		CHECK_FRAMES(w, F_LEAF, F_SIGNAL + 1, F_LEAF + 3);
	}
}

static void stack_switch(void)
{
	FOR_BOTH(w)
	{
		world_push(&w, F_START + 1);
		world_push(&w, world_addr(&w, 0)); /* of F_SWITCH: the caller's stack is below */
		world_push(&w, F_LEAF + 1);
		w.regs.r[CPU_REG_RSP] = world_addr(&w, 1);
		CHECK_EQ(world_walk(&w, F_SWITCH), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_SWITCH, F_LEAF + 1, F_START + 1);
	}
}

static void frame_pointer_without_cfi(void)
{
	FOR_BOTH(w)
	{
		world_push(&w, 0xaaaa);
		world_push(&w, world_addr(&w, 4)); /* of F_BARE */
		world_push(&w, F_JIT + 0x10);
		world_push(&w, 0xbbbb);
		world_push(&w, world_addr(&w, 7)); /* of F_JIT */
		world_push(&w, F_FP + 1);
		world_push(&w, 0xcccc);
		world_push(&w, 0);
		world_push(&w, F_START + 1);
		w.regs.r[CPU_REG_RBP] = world_addr(&w, 1);
		CHECK_EQ(world_walk(&w, F_BARE + 4), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_BARE + 4, F_JIT + 0x10, F_FP + 1, F_START + 1);
		CHECK_EQ(w.frames[1].cookie, 8);
	}
}

static void leaf_without_cfi(void)
{
	FOR_BOTH(w)
	{
		w.regs.r[CPU_REG_RBP] = 0x1234;
		world_push(&w, F_LEAF + 1);
		world_push(&w, F_START + 1);
		CHECK_EQ(world_walk(&w, F_BARE + 4), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_BARE + 4, F_LEAF + 1, F_START + 1);

		/* Only the innermost one can be such a leaf. */
		w.n_words = 0;
		world_push(&w, F_BARE + 1);
		world_push(&w, F_START + 1);
		CHECK_EQ(world_walk(&w, F_LEAF + 1), UNWIND_END_NO_CFI);
		CHECK_FRAMES(w, F_LEAF + 1, F_BARE + 1);
	}
}

static void call_through_a_bad_pointer(void)
{
	FOR_BOTH(w)
	{
		world_push(&w, F_LEAF + 1);
		world_push(&w, F_START + 1);
		CHECK_EQ(world_walk(&w, 0), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, 0, F_LEAF + 1, F_START + 1);
		CHECK(!w.frames[0].has_module && w.frames[1].has_module);

		w.words[0] = 0x55;
		CHECK_EQ(world_walk(&w, 0x10), UNWIND_END_NO_MODULE);
		CHECK_FRAMES(w, 0x10);
	}
}

static void start_code_without_cfi(void)
{
	FOR_BOTH(w)
	{
		w.regs.r[CPU_REG_RBP] = 0x1234;
		world_push(&w, F_ENTRY + 20);
		world_push(&w, 0x1111);
		CHECK_EQ(world_walk(&w, F_LEAF + 1), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_LEAF + 1, F_ENTRY + 20);

		w.words[0] = F_ENTRY + 70;
		CHECK_EQ(world_walk(&w, F_LEAF + 1), UNWIND_END_NO_CFI);

		/* A frame pointer of zero marks the end of the chain. */
		w.regs.r[CPU_REG_RBP] = 0;
		CHECK_EQ(world_walk(&w, F_LEAF + 1), UNWIND_END_COMPLETE);
	}
}

/* makecontext leaves the address of F_LOST (0x100 bytes behind code without CFI) as return address.
 */
/* musl: main was called by code without CFI, a few words below what the entry's call returns to. */
static void start_routine_without_cfi(void)
{
	static const uint64_t firsts[] = {F_ENTRY + 21, F_THREAD + 1};

	FOR_BOTH(w)
	for (size_t i = 0; i < 2; i++) {
		w.knows_calls = true;
		w.regs.r[CPU_REG_RBP] = 0x1234;
		w.n_words = 0;
		world_push(&w, F_BARE + 1); /* the start routine */
		world_push(&w, 0x1111);
		world_push(&w, F_BARE + 2); /* code, but no return address */
		world_push(&w, firsts[i]);
		world_push(&w, 0x1111);
		CHECK_EQ(world_walk(&w, F_LEAF + 1), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_LEAF + 1, F_BARE + 1, firsts[i]);

		w.words[2] = F_BARE + 3; /* a routine between */
		CHECK_EQ(world_walk(&w, F_LEAF + 1), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_LEAF + 1, F_BARE + 1, firsts[i]);

		w.words[1] = F_BIG + 1; /* more than that: callers would be left out */
		CHECK_EQ(world_walk(&w, F_LEAF + 1), UNWIND_END_NO_CFI);
		CHECK_FRAMES(w, F_LEAF + 1, F_BARE + 1);
	}
}

/* Its stack has nothing yet, or what another thread has left there. */
static void thread_that_has_just_been_made(void)
{
	FOR_BOTH(w)
	{
		w.knows_calls = true;
		w.regs.r[CPU_REG_RBP] = 0x1234;
		world_push(&w, 0x55);
		world_push(&w, F_LEAF + 1);
		world_push(&w, F_START + 1);
		CHECK_EQ(world_walk(&w, F_NEW - 8), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_NEW - 8);

		w.regs.r[CPU_REG_RAX] = 77; /* who makes it has called */
		w.words[0] = F_LEAF + 1;
		w.words[1] = F_START + 1;
		CHECK_EQ(world_walk(&w, F_NEW - 8), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_NEW - 8, F_LEAF + 1, F_START + 1);
	}
}

static void planted_return_address(void)
{
	FOR_BOTH(w)
	{
		w.regs.r[CPU_REG_RBP] = 0x1234;
		world_push(&w, F_LOST);
		world_push(&w, 0x1111);
		CHECK_EQ(world_walk(&w, F_LEAF + 1), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_LEAF + 1, F_LOST);
	}
}

static void short_copies(void)
{
	FOR_BOTH(w)
	{
		for (int i = 0; i < 9; i++)
			world_push(&w, F_LEAF + 1);
		world_push(&w, F_START + 1);
		CHECK_EQ(world_walk_part(&w, F_LEAF + 1, 4), UNWIND_END_STACK_SHORT);
		CHECK_EQ(w.n_frames, 5);
		CHECK_EQ(world_walk_part(&w, F_LEAF + 1, 0), UNWIND_END_STACK_SHORT);
		CHECK_EQ(w.n_frames, 1);
		w.n_readable = 10;
		CHECK_EQ(world_walk_part(&w, F_LEAF + 1, 4), UNWIND_END_COMPLETE);
		CHECK_EQ(w.n_frames, 11);
		w.n_readable = 7;
		CHECK_EQ(world_walk_part(&w, F_LEAF + 1, 4), UNWIND_END_STACK_SHORT);
		CHECK_EQ(w.n_frames, 8);
	}
}

static void bad_ends(void)
{
	FOR_BOTH(w)
	{
		/* A register that the callee has lost. */
		world_push(&w, F_LOST + 1);
		world_push(&w, F_START + 1);
		CHECK_EQ(world_walk(&w, F_AX_LOST), UNWIND_END_BAD_CFI);
		CHECK_FRAMES(w, F_AX_LOST, F_LOST + 1);

		/* A CFA far away from the stack. */
		w.regs.r[CPU_REG_RAX] = 0x1000;
		CHECK_EQ(world_walk(&w, F_LOST + 1), UNWIND_END_BAD_CFI);
		CHECK_FRAMES(w, F_LOST + 1);

		w.words[0] = F_STUCK + 4;
		w.words[1] = F_LEAF;
		CHECK_EQ(world_walk(&w, F_LEAF), UNWIND_END_NO_PROGRESS);
		CHECK_FRAMES(w, F_LEAF, F_STUCK + 4);

		w.words[0] = 0x5000;
		w.words[1] = 0x5000;
		CHECK_EQ(world_walk_part(&w, F_LEAF, 2), UNWIND_END_NO_MODULE);
		CHECK_FRAMES(w, F_LEAF);
	}
}

static void too_deep(void)
{
	FOR_BOTH(w)
	{
		/* A coroutine that is its own caller. */
		world_push(&w, STACK_ADDR);
		world_push(&w, F_SWITCH + 1);
		CHECK_EQ(world_walk(&w, F_SWITCH), UNWIND_END_TOO_DEEP);
		CHECK_EQ(w.n_frames, UNWIND_FRAMES_MAX);
	}
}

/* At `ret` of gcc -O0 the rule still says that bp is saved below the stack pointer. */
static void popped_register(void)
{
	FOR_BOTH(w)
	{
		w.regs.r[CPU_REG_RBP] = world_addr(&w, 2);
		world_push(&w, F_FP + 1);
		world_push(&w, 0xaaaa);
		world_push(&w, 0);
		world_push(&w, F_START + 1);
		CHECK_EQ(world_walk(&w, F_POPPED), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_POPPED, F_FP + 1, F_START + 1);

		/* What stands there is not asked for. */
		w.below[0] = w.below[1] = 0x1111;
		w.n_below = 2;
		CHECK_EQ(world_walk(&w, F_POPPED), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_POPPED, F_FP + 1, F_START + 1);
	}
}

/* libcrypto's SHA-512 keeps its caller's stack pointer below its own. */
static void caller_below_the_stack_pointer(void)
{
	FOR_BOTH(w)
	{
		world_push(&w, 0x1111);
		world_push(&w, 0x2222);
		world_push(&w, F_START + 1);
		w.below[0] = 0x3333;
		w.below[1] = world_addr(&w, 3);
		w.n_readable = STACK_WORDS; /* what is read later is not what was there */
		CHECK_EQ(world_walk(&w, F_RED_ZONE + 1), UNWIND_END_BELOW_COPY);
		CHECK_FRAMES(w, F_RED_ZONE + 1);
		for (w.n_below = 1; w.n_below <= 2; w.n_below++) {
			CHECK_EQ(world_walk(&w, F_RED_ZONE + 1), UNWIND_END_COMPLETE);
			CHECK_FRAMES(w, F_RED_ZONE + 1, F_START + 1);
		}
	}
}

/* Hand-written code that pushed two words more than its CFI knows. */
static void untold_pushes(void)
{
	FOR_BOTH(w)
	{
		world_push(&w, 0x1111);
		world_push(
			&w, F_JIT + 5); /* code, but not code that can be told to be called from */
		world_push(&w, F_BIG + 1);
		for (int i = 0; i < 3; i++)
			world_push(&w, 0);
		world_push(&w, F_START + 1);
		CHECK_EQ(world_walk(&w, F_LEAF), UNWIND_END_COMPLETE);
		CHECK_FRAMES(w, F_LEAF, F_BIG + 1, F_START + 1);
	}
}

static void registers_are_32_bits(void)
{
	world_init(&w, false);
	world_push(&w, F_FP + 1);
	world_push(&w, 0);
	world_push(&w, 0);
	world_push(&w, F_START + 1);
	w.regs.r[CPU_REG_RSP] |= 0xdead00000000u;
	w.regs.r[CPU_REG_RBP] = 0xbeef00000000u | world_addr(&w, 2);
	CHECK_EQ(world_walk(&w, 0xabc00000000u | (F_LEAF + 1)), UNWIND_END_COMPLETE);
	CHECK_FRAMES(w, F_LEAF + 1, F_FP + 1, F_START + 1);
	world_release(&w);
}

static void cache_follows_generations(void)
{
	struct cfi_table *cfi;

	world_init(&w, true);
	world_push(&w, F_LEAF + 1);
	world_push(&w, F_START + 1);
	world_walk(&w, F_LEAF + 1);
	CHECK_EQ(w.n_finds, 3); /* the second frame is looked up one byte earlier */
	world_walk(&w, F_LEAF + 1);
	CHECK_EQ(w.n_finds, 3);
	w.generation = 1;
	cfi = w.cfi;
	w.cfi = NULL; /* in this generation the image is unreadable */
	w.regs.r[CPU_REG_RBP] = 1;
	CHECK_EQ(world_walk(&w, F_LEAF + 1), UNWIND_END_NO_CFI);
	w.cfi = cfi;
	CHECK_EQ(world_walk(&w, F_LEAF + 1), UNWIND_END_NO_CFI);
	/* Many more generations than the cache has slots. */
	for (w.generation = 2; w.generation < 50000 && !check_failures; w.generation++) {
		w.cfi = w.generation % 2 ? cfi : NULL;
		CHECK_EQ(world_walk(&w, F_LEAF + 1),
			w.generation % 2 ? UNWIND_END_COMPLETE : UNWIND_END_NO_CFI);
	}
	w.cfi = cfi;
	world_release(&w);
}

static void every_end_has_a_reason(void)
{
	for (int end = 0; end < UNWIND_N_ENDS; end++) {
		const char *reason = unwind_end_reason(end);

		CHECK(reason && strlen(reason) > 5 && strcmp(reason, "unknown"));
		for (int other = 0; other < end; other++)
			CHECK(strcmp(reason, unwind_end_reason(other)));
	}
	CHECK_STR(unwind_end_reason((enum unwind_end)99), "unknown");
}

static const struct test tests[] = {
	{"walks through CFI to the outermost frame", to_the_start},
	{"a return address of zero is the end of the stack", return_address_zero},
	{"a caller is looked up before its return address", call_that_does_not_return},
	{"the pc under a signal frame is exact", signal_frame},
	{"the system call that ends a handler is the handler's frame", in_the_return_of_a_signal},
	{"a signal handler may run on another stack", signal_on_another_stack},
	{"an interrupted stack outside the copy is a short copy", signal_stack_alone_in_the_copy},
	{"CFI may say where another stack goes on", stack_switch},
	{"follows frame pointers where there is no CFI", frame_pointer_without_cfi},
	{"takes the top of the stack for the innermost frame only", leaf_without_cfi},
	{"finds the caller of a bad function pointer", call_through_a_bad_pointer},
	{"start code without CFI is outermost", start_code_without_cfi},
	{"start routines without CFI are stepped over", start_routine_without_cfi},
	{"a thread that has just been made has one frame", thread_that_has_just_been_made},
	{"a return address at the start of a function was planted", planted_return_address},
	{"a copy that is too short is told, or completed by reading", short_copies},
	{"each kind of broken stack ends with its reason", bad_ends},
	{"stops at the greatest number of frames", too_deep},
	{"a register whose slot is below the stack pointer has been popped", popped_register},
	{"a rule may read what is kept below the stack pointer", caller_below_the_stack_pointer},
	{"finds the caller past pushes that CFI does not mention", untold_pushes},
	{"registers of 32-bit programs are cut to 32 bits", registers_are_32_bits},
	{"the cache forgets with a new generation and with reset", cache_follows_generations},
	{"every end has a reason of its own", every_end_has_a_reason},
};

int main(void)
{
	return RUN_TESTS(tests);
}
