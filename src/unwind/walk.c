/* SPDX-License-Identifier: MIT */
/*
 * The walk: look the pc up, write the frame down, step to the caller, and know when to stop.
 *
 * A return address may lie behind the last instruction of its function (a call that never
 * returns), so that callers are looked up one byte before it; the pc that a signal interrupted is
 * exact. Look-ups go through a direct-mapped cache keyed by (generation, pc), because programs
 * spend their time at few addresses, and because find_module and the row search cost more than the
 * step itself.
 */
#include "unwind/unwind.h"

#include <stdlib.h>

#include "base/mem.h"
#include "dwarf/cfi_rule.h"
#include "unwind/stack_reader.h"
#include "unwind/step.h"

#define CACHE_BITS  12
#define CACHE_SLOTS (1u << CACHE_BITS)
/* Start code without CFI (ld.so's, static programs') calls the first real function within this. */
#define ENTRY_CODE_BYTES 64
/* Words that hand-written code may have pushed without saying so in its CFI. */
#define UNTOLD_PUSHES_MAX 3
/* Words looked at for the return address of a function without CFI. */
#define SCAN_WORDS_MAX 32
/* Words looked at for the return address of a process's or thread's first call. */
#define FIRST_CALL_WORDS_MAX 64
/* Calls that start routines without CFI make among themselves: in the image that has the entry, where
 * they could be the program's own, and in another one. */
#define START_CALLS_MAX		1
#define START_CALLS_LIBRARY_MAX 3

/* From behind the system call that makes a thread to where the new one begins. */
#define NEW_TASK_BYTES_MAX 16

enum lookup_state { LOOKUP_EMPTY, LOOKUP_NO_MODULE, LOOKUP_MODULE };

/* One cache line. */
struct lookup {
	uint64_t generation;
	uint64_t pc;
	const struct cfi_rule *rule; /* NULL: no CFI there */
	struct unwind_module module;
	uint8_t state; /* enum lookup_state */
};

struct unwinder {
	struct lookup cache[CACHE_SLOTS];
};

struct walk {
	struct unwinder *u;
	const struct unwind_callbacks *callbacks;
	uint64_t generation;
	struct stack_reader reader;
	struct cpu_regs regs; /* of the frame being looked at */
	bool is_caller;	      /* regs' pc is a return address */
	bool is_innermost;    /* nothing of this function's frame has been given to a callee */
	const struct cfi_rule *rule; /* that led to regs; NULL: none did */
};

const char *unwind_end_reason(enum unwind_end end)
{
	static const char *const reasons[UNWIND_N_ENDS] = {
		[UNWIND_END_COMPLETE] = "complete",
		[UNWIND_END_STACK_SHORT] = "stack deeper than the copy",
		[UNWIND_END_NO_MODULE] = "caller in no executable mapping",
		[UNWIND_END_NO_CFI] = "code without CFI or frame pointer",
		[UNWIND_END_BAD_CFI] = "CFI that cannot be followed",
		[UNWIND_END_NO_PROGRESS] = "caller's frame not above the callee's",
		[UNWIND_END_TOO_DEEP] = "more frames than the limit",
		[UNWIND_END_BELOW_COPY] =
			"caller's place kept below the stack pointer, which the kernel does not copy",
		[UNWIND_END_ELSEWHERE] = "caller on another stack, which is not copied",
		[UNWIND_END_HOOKED] = "hooked call no longer known",
		[UNWIND_END_UPROBE] =
			"in the kernel's copy of a probed instruction, whose function is not known",
		[UNWIND_END_GENERATED] = "frame of generated code not understood",
	};

	return (unsigned)end < UNWIND_N_ENDS ? reasons[end] : "unknown";
}

struct unwinder *unwinder_new(void)
{
	return mem_zalloc(sizeof(struct unwinder));
}

void unwinder_free(struct unwinder *u)
{
	free(u);
}

static void fill_lookup(struct walk *w, uint64_t pc, struct lookup *slot)
{
	*slot = (struct lookup){.generation = w->generation, .pc = pc, .state = LOOKUP_NO_MODULE};
	if (!w->callbacks->find_module(w->callbacks->ctx, (struct vaddr){pc}, &slot->module))
		return;
	slot->state = LOOKUP_MODULE;
	if (slot->module.cfi)
		slot->rule =
			cfi_table_find(slot->module.cfi, (struct iaddr){pc - slot->module.bias});
}

/* Valid until the next look-up, which may take the same slot. */
static const struct lookup *look_up(struct walk *w, uint64_t pc)
{
	uint64_t mixed = (pc + w->generation * 0xd6e8feb86659fd93u) * 0x9e3779b97f4a7c15u;
	struct lookup *slot = &w->u->cache[mixed >> (64 - CACHE_BITS)];

	if (slot->pc != pc || slot->generation != w->generation || slot->state == LOOKUP_EMPTY)
		fill_lookup(w, pc, slot);
	return slot;
}

static bool is_replaced(const struct walk *w, uint64_t pc)
{
	return w->callbacks->is_replaced && w->callbacks->is_replaced(w->callbacks->ctx, pc);
}

static bool is_code(struct walk *w, uint64_t return_address)
{
	return is_replaced(w, return_address) ||
	       (return_address && look_up(w, return_address - 1)->state == LOOKUP_MODULE);
}

/* A return address into code with CFI, or one that was replaced. */
static bool has_rule(struct walk *w, uint64_t return_address)
{
	return is_replaced(w, return_address) ||
	       (is_code(w, return_address) && look_up(w, return_address - 1)->rule);
}

/* False when the walk cannot go on. */
static bool restore_pc(struct walk *w)
{
	uint64_t *pc = &w->regs.r[CPU_REG_RIP];

	if (!is_replaced(w, *pc))
		return *pc != 0;
	*pc = w->callbacks->true_pc(w->callbacks->ctx, *pc, &w->is_caller);
	w->is_innermost |= !w->is_caller; /* what was called is the tool's, not the program's */
	return *pc != 0;
}

static bool is_entry_code(const struct lookup *at, uint64_t pc)
{
	const struct unwind_module *m = &at->module;

	return at->state == LOOKUP_MODULE && m->entry.v &&
	       pc - m->bias - m->entry.v < ENTRY_CODE_BYTES;
}

/*
 * A return address at the very start of a function, with nothing before it, was put there by hand:
 * makecontext does so with the code that ends a coroutine.
 */
static bool is_planted(const struct walk *w, const struct lookup *at)
{
	struct iaddr pc = {w->regs.r[CPU_REG_RIP] - at->module.bias}, start;
	uint64_t size;

	return w->is_caller && at->module.cfi &&
	       cfi_table_function_at(at->module.cfi, pc, &start, &size) && start.v == pc.v;
}

static bool follows_call(const struct walk *w, uint64_t pc)
{
	return is_replaced(w, pc) ||
	       w->callbacks->follows_call(w->callbacks->ctx, (struct vaddr){pc});
}

/* Only the innermost function can be without a frame of its own. */
static bool try_stack_top(struct walk *w, struct step_guess *guess)
{
	return w->is_innermost && step_guess_by_stack_word(&w->reader, &w->regs, 0, guess) &&
	       is_code(w, guess->pc) && (!w->callbacks->follows_call || follows_call(w, guess->pc));
}

/* Hand-written code without CFI (crti's _init, GMP's loops) pushes a few words and calls nobody:
 * the nearest word that follows a call and leads into code with CFI is its return address. */
static bool try_stack_words(struct walk *w, struct step_guess *guess)
{
	if (!w->is_innermost || !w->callbacks->follows_call)
		return false;
	for (unsigned i = 1; i < SCAN_WORDS_MAX; i++) {
		if (!step_guess_by_stack_word(&w->reader, &w->regs, i, guess))
			return false;
		if (has_rule(w, guess->pc) && follows_call(w, guess->pc))
			return true;
	}
	return false;
}

/* Whether the call that returns there is the first one of its process or thread. */
static bool is_first_call(struct walk *w, const struct lookup *at, uint64_t pc)
{
	return is_entry_code(at, pc) ||
	       (at->state == LOOKUP_MODULE && w->callbacks->ends_thread &&
		       w->callbacks->ends_thread(w->callbacks->ctx, (struct vaddr){pc}));
}

/* musl's start routines have neither CFI nor frame pointers, and their frames are small: the return
 * address of the first call is near, with few others before it, which are the library's own. */
static bool try_first_call(struct walk *w, uint32_t cookie, struct step_guess *guess)
{
	int n_others = 0;

	if (!w->callbacks->follows_call)
		return false;
	for (unsigned i = 0; i < FIRST_CALL_WORDS_MAX; i++) {
		const struct lookup *at;
		bool is_own;

		if (!step_guess_by_stack_word(&w->reader, &w->regs, i, guess))
			return false;
		if (!is_code(w, guess->pc) || !follows_call(w, guess->pc))
			continue;
		at = look_up(w, guess->pc - 1);
		is_own = at->module.cookie == cookie;
		if (is_first_call(w, at, guess->pc))
			return n_others <= (is_own ? START_CALLS_MAX : START_CALLS_LIBRARY_MAX);
		if (!is_own)
			return false; /* the program's: its callers would be left out */
		n_others++;
	}
	return false;
}

static bool try_frame_pointer(struct walk *w, struct step_guess *guess)
{
	return step_guess_by_frame_pointer(&w->reader, &w->regs, guess) && is_code(w, guess->pc) &&
	       (!w->callbacks->follows_call || follows_call(w, guess->pc));
}

/*
 * A thread that has just been made, and is not yet where it begins: glibc's clone has no CFI behind its system call, since
 * the maker's stack is not the new thread's, and an outermost frame right behind that. In the maker the call has not given 0.
 */
static bool is_new_task(struct walk *w)
{
	if (!w->is_innermost || !(w->regs.known >> CPU_REG_RAX & 1) || w->regs.r[CPU_REG_RAX])
		return false;
	for (uint64_t i = 1; i <= NEW_TASK_BYTES_MAX; i++) {
		const struct cfi_rule *rule = look_up(w, w->regs.r[CPU_REG_RIP] + i)->rule;

		if (rule)
			return rule->flags & CFI_RULE_OUTERMOST;
	}
	return false;
}

/* No CFI at this pc: frame pointer, then bare return address. A call through a bad pointer has
 * pushed its return address and nothing else, so that there the order is the other one. */
static bool step_without_cfi(struct walk *w, const struct lookup *at, enum unwind_end *end)
{
	bool has_module = at->state == LOOKUP_MODULE, stack_short, chain_ends;
	uint32_t cookie = at->module.cookie; /* `at` may go with the next look-up */
	struct step_guess guess = {0};

	if (is_first_call(w, at, w->regs.r[CPU_REG_RIP]) || is_planted(w, at) ||
		(has_module && is_new_task(w))) {
		*end = UNWIND_END_COMPLETE;
		return false;
	}
	if ((!has_module && try_stack_top(w, &guess)) || try_frame_pointer(w, &guess)) {
		step_take_guess(&guess, &w->regs);
		return true;
	}
	stack_short = w->reader.failed && step_is_beyond_copy(&w->reader, w->reader.failed_addr);
	/* The ABI marks the outermost frame by rbp = 0; but the innermost function, when it is
	 * hand-written, may use rbp for anything. */
	chain_ends = (w->regs.known >> CPU_REG_RBP & 1) &&
		     ((!w->regs.r[CPU_REG_RBP] && !w->is_innermost) || (guess.has_fp && !guess.pc));
	if (has_module && (try_stack_top(w, &guess) || try_stack_words(w, &guess) ||
				  try_first_call(w, cookie, &guess))) {
		step_take_guess(&guess, &w->regs);
		return true;
	}
	*end = !has_module   ? UNWIND_END_NO_MODULE
	       : chain_ends  ? UNWIND_END_COMPLETE
	       : stack_short ? UNWIND_END_STACK_SHORT
			     : UNWIND_END_NO_CFI;
	return false;
}

/* As struct unwind_stack has it: by words, the last one in part. */
static bool read_bytes(void *ctx, uint64_t addr, void *to, size_t n)
{
	struct walk *w = ctx;
	uint8_t *at = to;

	while (n) {
		size_t part = n < 8 ? n : 8;
		uint64_t word;

		if (!stack_read(&w->reader, addr, part, &word))
			return false;
		memcpy(at, &word, part);
		at += part;
		addr += part;
		n -= part;
	}
	return true;
}

/* UNWIND_GENERATED_UNKNOWN: nobody knows the code; *end is set for the last two. */
static enum unwind_generated step_generated(
	struct walk *w, struct unwind_frame *frame, enum unwind_end *end)
{
	const struct unwind_callbacks *c = w->callbacks;
	const struct unwind_stack stack = {read_bytes, w};
	enum unwind_generated how;

	if (!c->step_generated)
		return UNWIND_GENERATED_UNKNOWN;
	w->reader.failed = false;
	how = c->step_generated(c->ctx, &w->regs, w->is_caller, &stack, &frame->place);
	w->regs.known |= 1u << CPU_REG_RIP | 1u << CPU_REG_RSP;
	*end = how == UNWIND_GENERATED_SHORT && w->reader.failed &&
			       step_is_beyond_copy(&w->reader, w->reader.failed_addr)
		       ? UNWIND_END_STACK_SHORT
		       : UNWIND_END_GENERATED;
	return how;
}

static void put_frame(const struct walk *w, const struct lookup *at, struct unwind_frame *frame)
{
	*frame = (struct unwind_frame){
		.pc = {w->regs.r[CPU_REG_RIP]},
		.is_caller = w->is_caller,
		.has_module = at->state == LOOKUP_MODULE,
		.cookie = at->module.cookie,
		.bias = at->module.bias,
		.sp = {w->regs.r[CPU_REG_RSP]},
		.fp = {w->regs.known >> CPU_REG_RBP & 1 ? w->regs.r[CPU_REG_RBP] : 0},
	};
}

/* A signal handler on its own stack, or a coroutine: the caller may lie anywhere. */
static void note_stack_switch(struct walk *w)
{
	const struct unwind_memory *m = w->reader.memory;

	if (w->regs.r[CPU_REG_RSP] - m->start.v > m->bytes.n)
		w->reader.has_left_copy = true;
}

static bool step_without_rule(
	struct walk *w, const struct lookup *at, struct unwind_frame *frame, enum unwind_end *end)
{
	enum unwind_generated how = step_generated(w, frame, end);

	return how == UNWIND_GENERATED_UNKNOWN ? step_without_cfi(w, at, end)
					       : how == UNWIND_GENERATED_STEPPED;
}

/* Steps from the frame found at `at` to its caller. */
static bool step(
	struct walk *w, const struct lookup *at, struct unwind_frame *frame, enum unwind_end *end)
{
	uint64_t sp = w->regs.r[CPU_REG_RSP], pc = w->regs.r[CPU_REG_RIP];
	const struct cfi_rule *rule = at->rule;
	bool may_go_down = false, may_stay = w->is_innermost;

	w->rule = rule;
	if (rule) {
		may_go_down = rule->flags & (CFI_RULE_SIGNAL | CFI_RULE_NEW_STACK);
		if (!step_by_rule(&w->reader, at->module.cfi, rule, &w->regs, end))
			return false;
	} else if (!step_without_rule(w, at, frame, end)) {
		return false;
	}
	/* A frame that stands for others has no bytes of its own (a virtual thread's rest in the heap). */
	may_stay |= frame->place.kind && w->regs.r[CPU_REG_RIP] != pc;
	w->is_caller = !rule || !(rule->flags & CFI_RULE_SIGNAL);
	if (!w->regs.r[CPU_REG_RIP]) {
		*end = UNWIND_END_COMPLETE;
		return false;
	}
	if (may_go_down) {
		note_stack_switch(w);
	} else if (w->regs.r[CPU_REG_RSP] < sp || (w->regs.r[CPU_REG_RSP] == sp && !may_stay)) {
		/* Equal is right for a leaf that keeps its return address in a register: vfork. */
		*end = UNWIND_END_NO_PROGRESS;
		return false;
	}
	w->is_innermost = false;
	if (restore_pc(w))
		return true;
	*end = UNWIND_END_HOOKED;
	return false;
}

/*
 * The last rule led out of all code. glibc's i386 memcpy and swapcontext, for two, push registers
 * that their CFI does not mention; the CFA is then that many words higher. Believed only when the
 * address found so lies in code with CFI.
 */
static bool retry_with_pushes(struct walk *w)
{
	const struct cfi_rule *rule = w->rule;
	uint64_t cfa = w->regs.r[CPU_REG_RSP];

	if (!rule || !(rule->flags & CFI_RULE_PLAIN) || rule->cfa_reg != CPU_REG_RSP)
		return false;
	for (int i = 0; i < UNTOLD_PUSHES_MAX; i++) {
		cfa += w->reader.word_bytes;
		if (!step_at_cfa(&w->reader, rule, cfa, &w->regs))
			return false;
		if (has_rule(w, w->regs.r[CPU_REG_RIP]))
			return restore_pc(w);
	}
	return false;
}

/*
 * The code that ends a signal handler is a system call that comes back elsewhere: a thread that is in it stands behind its last
 * instruction, and its CFI ends there.
 */
static const struct lookup *look_up_sigreturn(struct walk *w)
{
	const struct lookup *at = look_up(w, w->regs.r[CPU_REG_RIP] - 1);

	return at->rule && at->rule->flags & CFI_RULE_SIGNAL ? at : NULL;
}

/* The frame's module and rule; NULL when a caller lies in no module. */
static const struct lookup *look_up_frame(struct walk *w)
{
	const struct lookup *at = look_up(w, w->regs.r[CPU_REG_RIP] - w->is_caller);

	if (w->is_innermost && at->state == LOOKUP_MODULE && !at->rule) {
		at = look_up_sigreturn(w);
		at = at ? at : look_up(w, w->regs.r[CPU_REG_RIP]);
	}
	if (at->state == LOOKUP_MODULE || w->is_innermost)
		return at;
	return retry_with_pushes(w) ? look_up(w, w->regs.r[CPU_REG_RIP] - w->is_caller) : NULL;
}

static void take_registers(struct walk *w, const struct cpu_regs *regs)
{
	w->regs = *regs;
	w->regs.known |= 1u << CPU_REG_RIP | 1u << CPU_REG_RSP;
	if (regs->is_64)
		return;
	for (int i = 0; i < CPU_N_REGS; i++)
		w->regs.r[i] &= w->reader.mask;
}

enum unwind_end unwinder_walk(struct unwinder *u, const struct cpu_regs *regs,
	const struct unwind_memory *memory, const struct unwind_callbacks *callbacks,
	uint64_t generation, struct unwind_frame *frames, size_t max, size_t *n_frames)
{
	struct walk w = {
		.u = u,
		.callbacks = callbacks,
		.generation = generation,
		.reader = {.memory = memory,
			.ctx = callbacks->ctx,
			.mask = regs->is_64 ? UINT64_MAX : UINT32_MAX,
			.word_bytes = regs->is_64 ? 8 : 4},
		.is_caller = memory->from_caller,
		.is_innermost = !memory->from_caller,
	};
	enum unwind_end end = UNWIND_END_TOO_DEEP;
	size_t n = 0;

	take_registers(&w, regs);
	if (max > UNWIND_FRAMES_MAX)
		max = UNWIND_FRAMES_MAX;
	if (is_replaced(&w, w.regs.r[CPU_REG_RIP]) && !restore_pc(&w))
		w.regs.r[CPU_REG_RIP] = regs->r[CPU_REG_RIP]; /* shown as it is */
	while (n < max) {
		const struct lookup *at = look_up_frame(&w);

		if (!at) {
			end = UNWIND_END_NO_MODULE;
			break;
		}
		put_frame(&w, at, &frames[n]);
		if (!step(&w, at, &frames[n++], &end))
			break;
	}
	*n_frames = n;
	return end;
}
