/* SPDX-License-Identifier: MIT */
/*
 * What a handler of the program finds on its stack is what the kernel would have put there, at the same place:
 * registers and pc of the program, its mask, its signal stack, the vector state. The kernel's own frames are on
 * the thread's stack for signals, which the program never sees.
 */
#include "kernel_frame.h"
#include "translate.h"

#define RED_ZONE	 128
#define SA_ONSTACK_	 0x08000000u
#define SS_DISABLE_	 2
#define SS_AUTODISARM_	 (1u << 31)
#define FLAGS_CLEARED	 0x10500u /* RF, DF, TF */
#define FP_BYTES_MAX	 (16u << 10)

static bool is_on(const struct signal_stack *s, uint64_t sp)
{
	return s->size && sp - s->sp - 1 < s->size; /* sp > start, sp <= end */
}

static uint64_t stack_for(const struct thread *t, const struct kernel_action *a)
{
	uint64_t sp = t->a.regs[RSP] - RED_ZONE;
	const struct signal_stack *s = &t->altstack;

	if ((a->flags & SA_ONSTACK_) && s->size && !(s->flags & SS_DISABLE_) && !is_on(s, t->a.regs[RSP]))
		sp = s->sp + s->size;
	return sp;
}

/* Writes zeros, to see whether that memory can be written. */
static bool is_writable(uint64_t start, uint64_t bytes)
{
	static const uint8_t zeros[512];

	for (; bytes; start += sizeof(zeros)) {
		uint64_t n = bytes < sizeof(zeros) ? bytes : sizeof(zeros);

		if (!translate_copy((void *)start, zeros, n))
			return false;
		bytes -= n;
	}
	return true;
}

static void save_vectors(struct thread *t, uint64_t at, const struct fp_words *words)
{
	uint32_t end = FP_END_MAGIC;

	translate_xsave((void *)at, words->features);
	*(uint64_t *)(at + FP_HEADER_AT) |= FP_ALWAYS; /* as the kernel does: a handler may write there */
	bytes_copy((void *)(at + FP_WORDS_AT), t->fp_words, sizeof(t->fp_words));
	bytes_copy((void *)(at + words->extended_bytes - 4), &end, 4);
}

/* As a handler finds them: all zero, but for the protection keys. */
static void clear_vectors(const struct fp_words *words, uint64_t area)
{
	uint32_t mxcsr = 0x1f80;
	static const uint8_t zeros[576];

	bytes_copy((void *)area, zeros, sizeof(zeros));
	bytes_copy((void *)(area + FP_MXCSR_AT), &mxcsr, 4);
	translate_xrstor((void *)area, words->features & ~FP_PKRU);
}

static void remember_variant(struct thread *t, uint64_t frame)
{
	uint32_t i = t->n_resumes++ & 7;

	t->resumes[i].frame = frame;
	t->resumes[i].pc = t->a.pc;
	t->resumes[i].variant = t->variant;
}

static void fill(struct thread *t, struct kernel_frame *f, const struct kernel_action *a, uint64_t fp)
{
	struct kernel_context *c = &f->context;

	*f = (struct kernel_frame){.restorer = a->restorer};
	c->flags = t->context_flags;
	c->stack = t->altstack;
	registers_to(&c->r, t);
	c->r.rip = t->a.pc;
	c->r.segments = t->segments;
	c->r.error = t->error;
	c->r.trap = t->trap;
	c->r.cr2 = t->cr2;
	c->r.old_mask = t->waiting_mask | t->kept_mask;
	c->r.fp_state = fp;
	c->mask = t->waiting_mask | t->kept_mask;
	bytes_copy(f->info, t->info, SIGINFO_BYTES);
}

bool frame_push(struct thread *t, const struct kernel_action *a)
{
	const struct fp_words *words = (const struct fp_words *)t->fp_words;
	uint64_t sp = stack_for(t, a), fp, at;
	struct kernel_frame f;

	if (words->magic != FP_WORDS_MAGIC || words->extended_bytes > FP_BYTES_MAX ||
		words->extended_bytes < FP_HEADER_AT + 64 + 4)
		return false;
	fp = (sp - words->extended_bytes) & ~63ull;
	at = ((fp - sizeof(f) + 8) & ~15ull) - 8;
	if (!is_writable(at, fp + words->extended_bytes - at))
		return false;
	save_vectors(t, fp, words);
	fill(t, &f, a, fp);
	bytes_copy((void *)at, &f, sizeof(f));
	/* The space is free for a moment yet: handlers begin with registers that are all zero. */
	clear_vectors(words, ((uint64_t)t->frame_area + 63) & ~63ull);
	remember_variant(t, at);
	if (t->altstack.flags & (int32_t)SS_AUTODISARM_)
		t->altstack = (struct signal_stack){.flags = SS_DISABLE_};
	t->a.regs[RSP] = at;
	t->a.regs[RAX] = 0;
	t->a.regs[RSI] = at + offsetof(struct kernel_frame, info);
	t->a.regs[RDX] = at + offsetof(struct kernel_frame, context);
	t->a.flags &= ~(uint64_t)FLAGS_CLEARED;
	return true;
}

static enum variant variant_again(struct thread *t, uint64_t frame)
{
	for (uint32_t i = 0; i < 8; i++)
		if (t->resumes[i].frame == frame && frame) {
			t->resumes[i].frame = 0;
			return t->resumes[i].pc == t->a.pc ? t->resumes[i].variant : VARIANT_PLAIN;
		}
	return VARIANT_PLAIN;
}

bool frame_pop(struct thread *t)
{
	struct kernel_frame f, *own = (struct kernel_frame *)((t->stack - 0x8000) & ~63ull);
	uint64_t at = t->a.regs[RSP] - 8;

	if (!translate_copy(&f, (const void *)at, sizeof(f)))
		return false;
	registers_from(t, &f.context.r);
	t->a.pc = f.context.r.rip;
	t->variant = variant_again(t, at);
	t->altstack = f.context.stack;
	t->new_mask = f.context.mask;
	t->has_new_mask = true;
	event_put(t, TRANSLATE_EVENT_SIGRETURN, NO_BLOCK, t->a.regs[RSP]);
	call_put(t, SYS_rt_sigreturn, (int64_t)t->a.regs[RAX], false);
	/* The kernel restores the vector state, and goes on here. */
	f.context.r.rip = (uint64_t)translate_behind_sigreturn;
	f.context.r.rsp = t->stack;
	f.context.r.flags = 0x202;
	f.context.mask = ~SIGNALS_KEPT;
	f.context.stack = (struct signal_stack){.sp = t->kernel_stack, .size = SIGNALS_ROOM};
	bytes_copy(own, &f, sizeof(f));
	translate_sigreturn(&own->context);
}
