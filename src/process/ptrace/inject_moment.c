/* SPDX-License-Identifier: MIT */
/*
 * Whether a thread stands where a function may be called on it. dlopen allocates memory and takes
 * the loader's locks: a thread that was stopped while it held one of those would wait for itself.
 * All other threads run meanwhile, so only this thread's own position matters:
 *
 * 1. Its pc is at a system call (it waits, or has just come back), or in the program's own code. Not
 *    at one that makes or changes memory or threads: the C library calls those with locks held that
 *    dlopen needs (that of the stacks of threads, in pthread_join), by functions without a name.
 * 2. None of its callers is delicate (remote_symbols.c). The callers are found by unwinding. Where
 *    that does not reach the end of the stack, every word beyond that looks like a return address
 *    into delicate code counts as a caller: rather wait than be wrong.
 *
 * dlopen also needs room. Only the first thread's stack surely has it, since it grows, and only as
 * long as the thread is on it: the outermost frame is where the kernel put the program's arguments.
 * A stack pointer that lies in the same mapping proves nothing: coroutines may have small stacks in
 * local arrays. Nor is anything known of the stacks of other threads, which may be made of any
 * memory, without a guard page: the kernel shows neighbours as one mapping.
 */
#include "process/ptrace/inject_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "process/proc.h"

#define STACK_COPY_BYTES   (32u << 10)
#define SCAN_BYTES	   2048 /* of stack beyond the last frame that was found */
#define OWN_STACK_ROOM	   (48u << 10)
#define FIRST_STACK_ROOM   (4u << 10) /* of it is mapped already; it grows */
#define START_FRAME_BYTES  64	      /* of the program's first function, at most */
#define SYSCALL_INSN_BYTES 2
#define STAT_START_STACK   28 /* where the first thread's stack began; 0 when that is not told */

/* Of the pc, in what the kernel puts on the stack of a handler. */
#define RETURN_PC_OFFSET_64	168 /* ucontext_t.uc_mcontext.gregs[REG_RIP] */
#define RETURN_PC_OFFSET_32	76  /* the same of i386 */
#define RETURN_PC_OFFSET_OLD_32 60  /* without siginfo: sigcontext.eip behind the number */

struct moments {
	const struct remote_symbols *symbols;
	const struct remote_thread *thread; /* being looked at */
	struct unwinder *unwinder;
	uint8_t *copy;
	struct unwind_frame frames[UNWIND_FRAMES_MAX];
};

struct moments *moments_new(const struct remote_symbols *symbols)
{
	struct moments *m = mem_zalloc(sizeof(*m));

	m->symbols = symbols;
	m->unwinder = unwinder_new();
	m->copy = mem_alloc(STACK_COPY_BYTES);
	remote_symbols_prepare_walks(symbols);
	return m;
}

void moments_free(struct moments *m)
{
	if (!m)
		return;
	unwinder_free(m->unwinder);
	free(m->copy);
	free(m);
}

static bool find_module(void *ctx, struct vaddr pc, struct unwind_module *module)
{
	const struct remote_symbols *s = ((struct moments *)ctx)->symbols;

	return images_find_module(s->images, s->space, pc, module);
}

static bool follows_call(void *ctx, struct vaddr pc)
{
	const struct remote_symbols *s = ((struct moments *)ctx)->symbols;

	return images_follows_call(s->images, s->space, pc);
}

static bool read_beyond(void *ctx, uint64_t addr, void *to, size_t n)
{
	return remote_read(((struct moments *)ctx)->thread, addr, to, n);
}

/* As much of the stack as there is, up to the size of the copy. */
static size_t copy_stack(struct moments *m, uint64_t sp)
{
	size_t n = 0;

	while (n < STACK_COPY_BYTES) {
		size_t piece = 4096 - ((sp + n) & 4095);

		if (piece > STACK_COPY_BYTES - n)
			piece = STACK_COPY_BYTES - n;
		if (!remote_read(m->thread, sp + n, m->copy + n, piece))
			break;
		n += piece;
	}
	return n;
}

/* Words from `sp` on that may be return addresses into delicate code. */
static bool has_delicate_words(struct moments *m, uint64_t sp)
{
	size_t word_bytes = m->thread->is_64 ? 8 : 4;

	for (size_t at = 0; at < SCAN_BYTES; at += word_bytes) {
		uint64_t value = 0;

		if (!remote_read(m->thread, sp + at, &value, word_bytes))
			return false; /* the stack ends here */
		if (remote_symbols_place(m->symbols, value - 1) == REMOTE_PLACE_DELICATE &&
			follows_call(m, (struct vaddr){value}))
			return true;
	}
	return false;
}

/* Fills m->frames. */
static enum unwind_end walk(struct moments *m, const struct remote_thread *t, size_t *n)
{
	struct unwind_callbacks callbacks = {
		.find_module = find_module, .follows_call = follows_call, .ctx = m};
	struct unwind_memory memory = {.read = read_beyond};
	struct cpu_regs regs;

	m->thread = t;
	remote_thread_unwind_regs(t, &regs);
	memory.start.v = regs.r[CPU_REG_RSP];
	memory.bytes = (struct span){m->copy, copy_stack(m, memory.start.v)};
	return unwinder_walk(
		m->unwinder, &regs, &memory, &callbacks, 1, m->frames, UNWIND_FRAMES_MAX, n);
}

static bool has_delicate_caller(struct moments *m, const struct remote_thread *t)
{
	size_t n = 0;
	enum unwind_end end = walk(m, t, &n);

	for (size_t i = 0; i < n; i++) {
		const struct unwind_frame *f = &m->frames[i];

		if (remote_symbols_place(m->symbols, f->pc.v - f->is_caller) ==
			REMOTE_PLACE_DELICATE)
			return true;
	}
	return end != UNWIND_END_COMPLETE && has_delicate_words(m, m->frames[n - 1].sp.v);
}

/* syscall, int $0x80 or sysenter just before the pc. */
static bool is_behind_syscall(const struct remote_thread *t)
{
	static const uint8_t insns[][SYSCALL_INSN_BYTES] = {
		{0x0f, 0x05}, {0xcd, 0x80}, {0x0f, 0x34}};
	uint8_t bytes[SYSCALL_INSN_BYTES];

	if (!remote_read(t, remote_thread_pc(t) - sizeof(bytes), bytes, sizeof(bytes)))
		return false;
	for (size_t i = 0; i < sizeof(insns) / sizeof(insns[0]); i++)
		if (!memcmp(bytes, insns[i], sizeof(bytes)))
			return true;
	return false;
}

const char *moment_hinders_dlopen(struct moments *m, const struct remote_thread *t)
{
	static const char *const memory_calls[] = {"mmap", "mmap2", "mprotect", "munmap", "brk",
		"mremap", "madvise", "clone", "clone3", NULL};
	/* One that was interrupted behind the instruction, later, is in no call: it may be anywhere
	 * on its way. */
	long number = is_behind_syscall(t) ? remote_thread_syscall(t) : -1;
	bool at_syscall = number >= 0;

	if (at_syscall && remote_syscall_is_among(number, t->is_64, memory_calls))
		return "was changing its memory";
	switch (remote_symbols_place(m->symbols, remote_thread_pc(t))) {
	case REMOTE_PLACE_DELICATE:
		return "was in the allocator or the loader";
	case REMOTE_PLACE_LIBC:
		if (!at_syscall)
			return "was in the C library";
		break;
	case REMOTE_PLACE_NOWHERE:
		return "was in code that is not known";
	case REMOTE_PLACE_PROGRAM:
		if (!at_syscall && remote_symbols_program_allocates(m->symbols))
			return "was in a program that has its own allocator";
		break;
	}
	if (remote_thread_is_in_rseq(t))
		return "was in a restartable sequence";
	if (has_delicate_caller(m, t))
		return "was called by the allocator or the loader";
	return NULL;
}

/* The word that rt_sigreturn (or sigreturn) will load the pc from, by the stack pointer at the end
 * of the handler; 0 when it does not hold `pc`. */
static uint64_t find_return_word(const struct remote_thread *t, uint64_t sp, uint64_t pc)
{
	uint64_t context = 0, candidates[2], value;
	size_t word_bytes = t->is_64 ? 8 : 4;

	if (t->is_64) {
		candidates[0] = candidates[1] = sp + RETURN_PC_OFFSET_64;
	} else {
		/* With SA_SIGINFO: signal, siginfo, context by address; else the signal and the
		 * registers. */
		remote_read(t, sp + 8, &context, word_bytes);
		candidates[0] = context + RETURN_PC_OFFSET_32;
		candidates[1] = sp + RETURN_PC_OFFSET_OLD_32;
	}
	for (int i = 0; i < 2; i++) {
		value = 0;
		if (remote_read(t, candidates[i], &value, word_bytes) && value == pc)
			return candidates[i];
	}
	return 0;
}

size_t moment_handler_returns(
	struct moments *m, const struct remote_thread *t, struct moment_return *returns, size_t max)
{
	size_t n_frames = 0, n = 0;

	walk(m, t, &n_frames);
	/* A frame that is not left by a call, other than the innermost, was left by a signal. */
	for (size_t i = 1; i < n_frames && n < max; i++) {
		const struct unwind_frame *f = &m->frames[i];
		uint64_t where = f->is_caller ? 0 : find_return_word(t, f[-1].sp.v, f->pc.v);

		if (where)
			returns[n++] = (struct moment_return){f->pc.v, where};
	}
	return n;
}

struct stack_search {
	uint64_t sp;
	uint64_t start, end; /* of the first thread's stack, when sp is in it */
};

static void search_stack(void *ctx, const struct proc_mapping *m)
{
	struct stack_search *search = ctx;

	if (search->sp <= m->start || search->sp > m->end || strcmp(m->path, "[stack]") != 0)
		return;
	search->start = m->start;
	search->end = m->end;
}

/* Whether its callers lead to where the kernel has started the program. */
static bool is_called_by_start(struct moments *m, const struct remote_thread *t)
{
	uint64_t first = proc_stat_number(t->pid, STAT_START_STACK);
	size_t n = 0;

	return walk(m, t, &n) == UNWIND_END_COMPLETE && n && first >= m->frames[n - 1].sp.v &&
	       first - m->frames[n - 1].sp.v <= START_FRAME_BYTES;
}

static bool may_grow(const struct remote_thread *t, uint64_t bytes)
{
	struct rlimit limit;

	return prlimit(t->pid, RLIMIT_STACK, NULL, &limit) == 0 &&
	       (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes);
}

const char *moment_hinders_own_stack(struct moments *m, const struct remote_thread *t)
{
	struct stack_search search = {.sp = remote_thread_sp(t)};

	if (proc_each_mapping(t->tid, search_stack, &search, NULL) < 0)
		return "has a stack that cannot be found";
	if (t->tid != t->pid || !search.end || !is_called_by_start(m, t))
		return "was on a stack of which nothing is known";
	if (search.sp - search.start < REMOTE_FRAME_BYTES_MAX + FIRST_STACK_ROOM ||
		!may_grow(t, search.end - search.sp + REMOTE_FRAME_BYTES_MAX + OWN_STACK_ROOM))
		return "has too little room on its stack";
	return NULL;
}
