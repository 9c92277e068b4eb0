/* SPDX-License-Identifier: MIT */
/*
 * A made-up process for walks: one image with a function of each kind, one region of code without
 * an image, a stack of words. Addresses of functions are F_...; each is 0x100 bytes long.
 */
#ifndef WEIR_TESTS_UNWIND_WORLD_H
#define WEIR_TESTS_UNWIND_WORLD_H

#include "cfi_maker.h"
#include "unwind/unwind.h"

#define WORLD_BIAS 0x10000000u
#define IMAGE_ADDR (WORLD_BIAS + CODE_ADDR)

enum {
	F_LEAF = IMAGE_ADDR,		 /* CFA = sp + 1 word */
	F_BIG = IMAGE_ADDR + 0x100,	 /* CFA = sp + 4 words, rbx at CFA - 2 words */
	F_FP = IMAGE_ADDR + 0x200,	 /* CFA = bp + 2 words, bp at CFA - 2 words */
	F_START = IMAGE_ADDR + 0x300,	 /* outermost */
	F_SIGNAL = IMAGE_ADDR + 0x400,	 /* pc, sp, bp, bx are the words at sp + 1, 2, 3, 4 */
	F_SWITCH = IMAGE_ADDR + 0x500,	 /* the caller's sp is the word at sp, its pc the next */
	F_BARE = IMAGE_ADDR + 0x600,	 /* no CFI */
	F_NEW = IMAGE_ADDR + 0x640,	 /* 16 bytes in there: outermost */
	F_LOST = IMAGE_ADDR + 0x700,	 /* CFA = ax, which is not known in callers */
	F_STUCK = IMAGE_ADDR + 0x800,	 /* CFA = sp, the return address at CFA */
	F_POPPED = IMAGE_ADDR + 0x900,	 /* CFA = sp + 1 word, bp at CFA - 2 words */
	F_AX_LOST = IMAGE_ADDR + 0xa00,	 /* as F_LEAF, ax undefined in its caller */
	F_RED_ZONE = IMAGE_ADDR + 0xb00, /* CFA = the word below sp */
	F_RETURNS = IMAGE_ADDR + 0xc00,	 /* as F_SIGNAL; 9 bytes, and no CFI behind them */
	F_JIT = 0x90000000,		 /* executable, no image */
	F_THREAD = IMAGE_ADDR + 0x6f0,	 /* ends the thread, no CFI */
	F_ENTRY = IMAGE_ADDR + 0x680	 /* the image's entry point, no CFI */
};

#define STACK_ADDR  0x70001000u
#define STACK_WORDS 64

struct world {
	bool is_64;
	struct cfi_table *cfi;
	struct unwinder *unwinder;
	struct cpu_regs regs;
	uint64_t words[STACK_WORDS];
	size_t n_words;	   /* in the copy */
	size_t n_readable; /* through read; 0: no read function */
	uint64_t below[2]; /* words that end at the stack pointer */
	size_t n_below;	   /* of them are known */
	size_t n_finds;	   /* calls of find_module */
	bool knows_calls;  /* any odd address follows a call */
	uint64_t generation;
	uint8_t bytes[STACK_WORDS * 8];
	struct unwind_frame frames[UNWIND_FRAMES_MAX];
	size_t n_frames;
};

/* The registers of i386 in its own numbers. */
static inline void world_add_functions(struct cfi_maker *m)
{
	uint8_t w = m->is_64 ? 8 : 4, sp = m->is_64 ? 7 : 4, bp = m->is_64 ? 6 : 5,
		pc = m->is_64 ? 16 : 8;
	size_t usual = cfi_maker_usual_cie(m, "zR"), signal = cfi_maker_usual_cie(m, "zRS");
	uint8_t breg = 0x70 | sp;
	uint64_t at = CODE_ADDR;
	static const struct {
		uint32_t start, bytes;
	} signals[] = {{0x400, 0x100}, {0xc00, 9}};

	cfi_maker_fde(m, usual, at, 0x100, PROGRAM(0), true);
	cfi_maker_fde(
		m, usual, at + 0x100, 0x100, PROGRAM(DEF_CFA_OFFSET(4 * w), OFFSET(3, 2)), true);
	cfi_maker_fde(
		m, usual, at + 0x200, 0x100, PROGRAM(DEF_CFA(bp, 2 * w), OFFSET(bp, 2)), true);
	cfi_maker_fde(m, usual, at + 0x300, 0x100, PROGRAM(UNDEFINED(pc)), true);
	for (size_t i = 0; i < 2; i++)
		cfi_maker_fde(m, signal, at + signals[i].start, signals[i].bytes,
			PROGRAM(0x0f, 3, breg, 2 * w, 0x06, /* CFA = [sp + 2w] */
				0x10, pc, 2, breg, w,	    /* pc at sp + w */
				0x10, bp, 2, breg, 3 * w,   /* bp at sp + 3w */
				0x10, 3, 2, breg, 4 * w),   /* bx at sp + 4w */
			true);
	cfi_maker_fde(m, usual, at + 0x500, 0x100,
		PROGRAM(DEF_CFA_OFFSET(2 * w), 0x16, sp, 3, breg, 0, 0x06), true);
	cfi_maker_fde(m, usual, at + 0x640, 0x10, PROGRAM(UNDEFINED(pc)), true);
	cfi_maker_fde(m, usual, at + 0x700, 0x100, PROGRAM(DEF_CFA(0, 0)), true);
	cfi_maker_fde(m, usual, at + 0x800, 0x100, PROGRAM(DEF_CFA_OFFSET(0), 0x11, pc, 0), true);
	cfi_maker_fde(m, usual, at + 0x900, 0x100, PROGRAM(OFFSET(bp, 2)), true);
	cfi_maker_fde(m, usual, at + 0xa00, 0x100, PROGRAM(UNDEFINED(0)), true);
	cfi_maker_fde(m, usual, at + 0xb00, 0x100,
		PROGRAM(0x0f, 3, breg, (uint8_t)(0x80 - w), 0x06), true);
}

static inline void world_init(struct world *w, bool is_64)
{
	struct cfi_maker m = cfi_maker_eh(is_64);

	*w = (struct world){.is_64 = is_64, .unwinder = unwinder_new()};
	world_add_functions(&m);
	w->cfi = cfi_maker_table(&m);
	w->regs.is_64 = is_64;
	w->regs.r[CPU_REG_RSP] = STACK_ADDR;
	w->regs.known = is_64 ? 0x1ffff : 0x100ff;
}

static inline void world_release(struct world *w)
{
	cfi_table_free(w->cfi);
	unwinder_free(w->unwinder);
}

static inline uint64_t world_addr(const struct world *w, size_t word)
{
	return STACK_ADDR + word * (w->is_64 ? 8 : 4);
}

static inline void world_push(struct world *w, uint64_t word)
{
	w->words[w->n_words++] = word;
}

static inline bool world_find(void *ctx, struct vaddr pc, struct unwind_module *module)
{
	struct world *w = ctx;

	w->n_finds++;
	if (pc.v >= IMAGE_ADDR && pc.v < IMAGE_ADDR + CODE_BYTES) {
		*module = (struct unwind_module){.cfi = w->cfi,
			.bias = WORLD_BIAS,
			.entry = {F_ENTRY - WORLD_BIAS},
			.cookie = 7};
		return true;
	}
	if (pc.v >= F_JIT && pc.v < F_JIT + 0x1000u) {
		*module = (struct unwind_module){.cookie = 8};
		return true;
	}
	return false;
}

static inline bool world_read(void *ctx, uint64_t addr, void *to, size_t n)
{
	struct world *w = ctx;
	size_t word = w->is_64 ? 8 : 4;

	if (addr < STACK_ADDR || addr - STACK_ADDR + n > w->n_readable * word)
		return false;
	memcpy(to, w->bytes + (addr - STACK_ADDR), n);
	return true;
}

static inline bool world_follows_call(void *ctx, struct vaddr pc)
{
	(void)ctx;
	return pc.v & 1;
}

static inline bool world_ends_thread(void *ctx, struct vaddr pc)
{
	(void)ctx;
	return pc.v == F_THREAD + 1;
}

/* Walks from `pc` with the words pushed so far; the copy holds n_copied of them. */
static inline enum unwind_end world_walk_part(struct world *w, uint64_t pc, size_t n_copied)
{
	size_t word = w->is_64 ? 8 : 4;
	struct unwind_callbacks callbacks = {.find_module = world_find, .ctx = w};
	struct unwind_memory memory = {.start = {STACK_ADDR}};
	uint8_t below[sizeof(w->below)];
	uint8_t *copy = malloc(n_copied * word + 1);
	enum unwind_end end;

	for (size_t i = 0; i < w->n_words; i++)
		memcpy(w->bytes + i * word, &w->words[i], word);
	memcpy(copy, w->bytes, n_copied * word);
	memory.bytes = (struct span){copy, n_copied * word};
	for (size_t i = 0; i < 2; i++)
		memcpy(below + i * word, &w->below[i], word);
	memory.below = (struct span){below + (2 - w->n_below) * word, w->n_below * word};
	memory.read = w->n_readable ? world_read : NULL;
	if (w->knows_calls) {
		callbacks.follows_call = world_follows_call;
		callbacks.ends_thread = world_ends_thread;
	}
	w->regs.r[CPU_REG_RIP] = pc;
	end = unwinder_walk(w->unwinder, &w->regs, &memory, &callbacks, w->generation, w->frames,
		UNWIND_FRAMES_MAX, &w->n_frames);
	free(copy);
	return end;
}

static inline enum unwind_end world_walk(struct world *w, uint64_t pc)
{
	return world_walk_part(w, pc, w->n_words);
}

#endif
