/* SPDX-License-Identifier: MIT */
/* What the kernel puts on a stack for the handler of a signal, x86-64. */
#ifndef WEIR_RT_TRANSLATE_KERNEL_FRAME_H
#define WEIR_RT_TRANSLATE_KERNEL_FRAME_H

#include "../base/text.h"
#include "thread_area.h"

struct kernel_registers {
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, flags;
	uint64_t segments; /* cs, gs, fs, ss: 16 bits each */
	uint64_t error, trap, old_mask, cr2;
	uint64_t fp_state;
	uint64_t reserved[8];
};

struct kernel_context {
	uint64_t flags, link;
	struct signal_stack stack;
	struct kernel_registers r;
	uint64_t mask;
};

struct kernel_frame {
	uint64_t restorer;
	struct kernel_context context;
	uint8_t info[SIGINFO_BYTES];
};

/* In a vector state: where the kernel says how large it is, and its parts. */
#define FP_WORDS_AT   464
#define FP_WORDS_MAGIC 0x46505853u
#define FP_END_MAGIC  0x46505845u
#define FP_HEADER_AT  512
#define FP_MXCSR_AT   24
#define FP_PKRU	      (1ull << 9)
struct fp_words {
	uint32_t magic, extended_bytes;
	uint64_t features;
	uint32_t state_bytes;
	uint32_t padding[7];
};

static inline void registers_from(struct thread *t, const struct kernel_registers *r)
{
	const uint64_t regs[16] = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi, r->r8, r->r9,
		r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};

	bytes_copy(t->a.regs, regs, sizeof(regs));
	t->a.flags = r->flags;
}

static inline void registers_to(struct kernel_registers *r, const struct thread *t)
{
	const uint64_t *g = t->a.regs;

	r->rax = g[RAX], r->rcx = g[RCX], r->rdx = g[RDX], r->rbx = g[RBX];
	r->rsp = g[RSP], r->rbp = g[RBP], r->rsi = g[RSI], r->rdi = g[RDI];
	r->r8 = g[R8], r->r9 = g[R9], r->r10 = g[R10], r->r11 = g[R11];
	r->r12 = g[R12], r->r13 = g[R13], r->r14 = g[R14], r->r15 = g[R15];
	r->flags = t->a.flags;
}

#endif
