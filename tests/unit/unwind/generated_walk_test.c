/* SPDX-License-Identifier: MIT */
/* Walks through code without CFI that somebody knows: a made-up runtime whose frames begin with a number
 * of words. */
#include "unwind/unwind.h"

#include "check.h"
#include "unwind_world.h"

/* A frame of this code is the word at the stack pointer, so many more words, and the return address. */
#define KIND		  3u
#define CODE_OF(pc)	  ((uint32_t)((pc)-F_JIT) >> 4)
#define STANDS_FOR_OTHERS 5		   /* code whose frame has no bytes */
#define BROKEN		  (F_JIT + 0x800u) /* code whose frames nobody understands */
#define FOREIGN		  (F_JIT + 0xc00u) /* and code that the runtime does not know */

static struct world w;
static size_t n_asked;
static bool callers[16]; /* what was asked for */

static enum unwind_generated step_generated(void *ctx, struct cpu_regs *regs, bool is_caller,
	const struct unwind_stack *stack, struct unwind_place *place)
{
	uint64_t pc = regs->r[CPU_REG_RIP], sp = regs->r[CPU_REG_RSP], words[2], n_words;

	(void)ctx;
	callers[n_asked++] = is_caller;
	if (pc < F_JIT || pc >= FOREIGN)
		return UNWIND_GENERATED_UNKNOWN;
	*place = (struct unwind_place){KIND, CODE_OF(pc), (uint32_t)(pc & 0xf)};
	if (pc >= BROKEN)
		return UNWIND_GENERATED_LOST;
	if (!stack->read(stack->ctx, sp, &n_words, 8) ||
		!stack->read(stack->ctx, sp + 8 * n_words, words, sizeof(words)))
		return UNWIND_GENERATED_SHORT;
	regs->r[CPU_REG_RIP] = words[1];
	regs->r[CPU_REG_RSP] = sp + 8 * n_words + 16;
	if (CODE_OF(pc) == STANDS_FOR_OTHERS) {
		regs->r[CPU_REG_RIP] = F_JIT + 0x26;
		regs->r[CPU_REG_RSP] = sp;
	}
	regs->known = 1u << CPU_REG_RIP | 1u << CPU_REG_RSP;
	return UNWIND_GENERATED_STEPPED;
}

static enum unwind_end walk_part(uint64_t pc, size_t n_copied)
{
	struct unwind_callbacks callbacks = {
		.find_module = world_find, .ctx = &w, .step_generated = step_generated};
	struct unwind_memory memory = {.start = {STACK_ADDR}, .bytes = {w.bytes, n_copied * 8}};

	memcpy(w.bytes, w.words, w.n_words * 8);
	memory.read = w.n_readable ? world_read : NULL;
	w.regs.r[CPU_REG_RIP] = pc;
	n_asked = 0;
	return unwinder_walk(w.unwinder, &w.regs, &memory, &callbacks, w.generation, w.frames,
		UNWIND_FRAMES_MAX, &w.n_frames);
}

static enum unwind_end walk(uint64_t pc)
{
	return walk_part(pc, w.n_words);
}

static void push_generated(uint64_t n_words, uint64_t return_address)
{
	world_push(&w, n_words);
	for (uint64_t i = 0; i < n_words; i++)
		world_push(&w, 77);
	world_push(&w, return_address);
}

static void generated_frames_stand_between_native_ones(void)
{
	world_init(&w, true);
	world_push(&w, F_JIT + 0x15); /* of F_LEAF */
	push_generated(2, F_JIT + 0x26);
	push_generated(0, F_START + 5);
	CHECK_EQ(walk(F_LEAF + 4), UNWIND_END_COMPLETE);
	CHECK_EQ(w.n_frames, 4);
	CHECK_EQ(w.frames[0].place.kind, 0);
	CHECK_EQ(w.frames[1].place.kind, KIND);
	CHECK_EQ(w.frames[1].place.code, 1);
	CHECK_EQ(w.frames[1].place.at, 5);
	CHECK_EQ(w.frames[2].place.code, 2);
	CHECK(w.frames[2].is_caller);
	CHECK_EQ(w.frames[3].place.kind, 0);
	CHECK_EQ(w.frames[3].pc.v, F_START + 5);
	CHECK_EQ(n_asked, 2); /* never for code with CFI */
	world_release(&w);
}

static void the_innermost_frame_is_no_caller(void)
{
	world_init(&w, true);
	push_generated(1, F_JIT + 0x26);
	push_generated(1, F_START + 5);
	CHECK_EQ(walk(F_JIT + 0x15), UNWIND_END_COMPLETE);
	CHECK_EQ(n_asked, 2);
	CHECK(!callers[0]);
	CHECK(callers[1]);
	world_release(&w);
}

/* A frame pointer that looks right goes for nothing: the one who knows says no. */
static void a_frame_that_is_not_understood_ends_the_walk(void)
{
	world_init(&w, true);
	world_push(&w, BROKEN + 5);
	world_push(&w, 0);
	world_push(&w, F_START + 5);
	w.regs.r[CPU_REG_RBP] = STACK_ADDR + 8;
	CHECK_EQ(walk(F_LEAF + 4), UNWIND_END_GENERATED);
	CHECK_EQ(w.n_frames, 2);
	CHECK_EQ(w.frames[1].place.kind, KIND);
	CHECK_STR(
		unwind_end_reason(UNWIND_END_GENERATED), "frame of generated code not understood");
	world_release(&w);
}

static void code_that_it_does_not_know_is_guessed_as_ever(void)
{
	world_init(&w, true);
	world_push(&w, FOREIGN + 5);
	world_push(&w, 0);
	world_push(&w, F_START + 5);
	w.regs.r[CPU_REG_RBP] = STACK_ADDR + 8;
	CHECK_EQ(walk(F_LEAF + 4), UNWIND_END_COMPLETE);
	CHECK_EQ(w.n_frames, 3);
	CHECK_EQ(w.frames[1].place.kind, 0);
	world_release(&w);
}

static void a_stack_that_ends_in_its_frame_is_too_short(void)
{
	world_init(&w, true);
	world_push(&w, F_JIT + 0x15);
	push_generated(9, F_START + 5);
	CHECK_EQ(walk_part(F_LEAF + 4, 4), UNWIND_END_STACK_SHORT);
	CHECK_EQ(w.n_frames, 2);
	w.n_readable = w.n_words;
	CHECK_EQ(walk_part(F_LEAF + 4, 4), UNWIND_END_COMPLETE);
	CHECK_EQ(w.n_frames, 3);
	world_release(&w);
}

/* A length that leads below the frame, whatever was read: no endless walk. */
static void a_step_that_does_not_go_up_ends_the_walk(void)
{
	world_init(&w, true);
	world_push(&w, F_JIT + 0x15);
	world_push(&w, (uint64_t)-2); /* the return address is what is read here */
	world_push(&w, 0);
	w.words[0] = F_JIT + 0x15;
	CHECK(walk(F_LEAF + 4) != UNWIND_END_COMPLETE);
	CHECK(w.n_frames <= 3);
	world_release(&w);
}

static void a_frame_without_bytes_is_passed(void)
{
	world_init(&w, true);
	world_push(&w, F_JIT + 0x55); /* of F_LEAF */
	push_generated(1, F_START + 5);
	CHECK_EQ(walk(F_LEAF + 4), UNWIND_END_COMPLETE);
	CHECK_EQ(w.n_frames, 4);
	CHECK_EQ(w.frames[1].place.code, STANDS_FOR_OTHERS);
	CHECK_EQ(w.frames[2].place.code, 2);
	world_release(&w);
}

/* One address, other code at another time: nothing of it is kept in the cache. */
static void it_is_asked_each_time(void)
{
	world_init(&w, true);
	push_generated(1, F_START + 5);
	CHECK_EQ(walk(F_JIT + 0x15), UNWIND_END_COMPLETE);
	w.words[0] = 2;
	world_push(&w, F_START + 9);
	CHECK_EQ(walk(F_JIT + 0x15), UNWIND_END_COMPLETE);
	CHECK_EQ(w.frames[1].pc.v, F_START + 9);
	CHECK_EQ(n_asked, 1);
	world_release(&w);
}

int main(void)
{
	static const struct test tests[] = {
		{"generated frames stand between native ones",
			generated_frames_stand_between_native_ones},
		{"the innermost frame is no caller", the_innermost_frame_is_no_caller},
		{"a frame that is not understood ends the walk",
			a_frame_that_is_not_understood_ends_the_walk},
		{"code that it does not know is guessed as ever",
			code_that_it_does_not_know_is_guessed_as_ever},
		{"a stack that ends within its frame is too short",
			a_stack_that_ends_in_its_frame_is_too_short},
		{"a step that does not go up ends the walk",
			a_step_that_does_not_go_up_ends_the_walk},
		{"a frame without bytes of its own is passed", a_frame_without_bytes_is_passed},
		{"it is asked each time, since code changes", it_is_asked_each_time},
	};

	return RUN_TESTS(tests);
}
