/* SPDX-License-Identifier: MIT */
/*
 * From one block to the next where no link leads: looks the next one up, translates it where there is none, and
 * makes the way shorter for the next time (a link, a row of the thread's tables). System calls, waiting signals
 * and the end of translation are here, too, because the program's state is whole here: its registers are in the
 * thread's page, its pc is known.
 */
#include "translate.h"

#define ARCH_SET_GS_ 0x1001
#define VSYSCALL_LOW 0xffffffffff600000ull
#define CALL_LOOK    7

void event_put(struct thread *t, enum translate_event_kind kind, uint32_t block, uint64_t sp)
{
	const struct translate_event e = {sp, translate_thread_cost(&t->a), block, kind};

	if (header.options & TRANSLATE_OPTION_CALLS)
		translate_store_event(t, &e);
}

void words_put(struct thread *t, uint32_t kind, const uint32_t *words, unsigned n)
{
	if (!(header.options & TRANSLATE_OPTION_STEPS))
		return;
	translate_store_word(t, kind);
	for (unsigned i = 0; i < n; i++)
		translate_store_word(t, words[i]);
}

void left_put(struct thread *t, uint32_t block, uint64_t address)
{
	const uint32_t words[3] = {block, (uint32_t)address, (uint32_t)(address >> 32)};

	words_put(t, TRANSLATE_WORD_LEFT, words, 3);
}

/* So many instructions at the end of a block were not executed. */
void block_left(struct thread *t, uint32_t block, int32_t rest)
{
	const uint32_t word = (uint32_t)rest;

	left_put(t, block, 0);
	event_put(t, TRANSLATE_EVENT_FAULT, block, (uint64_t)(int64_t)rest);
	words_put(t, TRANSLATE_WORD_FAULT, &word, 1);
}

void translate_set_gs(uint64_t base)
{
	raw_call(SYS_arch_prctl, ARCH_SET_GS_, base);
}

/* Whether the bytes in front of pc are a call: what returns there, if not by ret, is a longjmp. */
static bool follows_call(uint64_t pc)
{
	uint8_t code[CALL_LOOK];

	if (!translate_copy(code, (const void *)(pc - CALL_LOOK), CALL_LOOK))
		return false;
	if (code[2] == 0xe8)
		return true;
	for (unsigned n = 2; n <= CALL_LOOK; n++) { /* ff /2 of n bytes */
		const uint8_t *p = code + CALL_LOOK - n;
		struct insn insn;

		if (insn_decode(&insn, p, n, pc - n) && insn.length == n &&
			insn.kind == INSN_CALL_INDIRECT)
			return true;
	}
	return false;
}

static bool is_function(uint64_t pc)
{
	const struct translate_function *f = region_function(pc);

	return f && f->start == pc;
}

/* Of what a jump leads to, or a return: that may begin a function, too, as the first switch to a coroutine does. */
static enum variant variant_at(uint64_t pc, bool is_return)
{
	enum variant variant;

	cache_lock();
	if (is_function(pc))
		variant = VARIANT_ENTER;
	else
		variant = !is_return && follows_call(pc) ? VARIANT_LAND : VARIANT_PLAIN;
	cache_unlock();
	return variant;
}

static uint32_t find_or_make(struct thread *t, uint64_t pc, enum variant variant)
{
	uint32_t block = t->is_alone ? cache_make_alone(t, pc) : cache_find(pc, variant);

	t->is_alone = false;
	/* Somebody may have written it elsewhere, without being seen. */
	if (block != NO_BLOCK && region_is_shared(pc) && !cache_is_fresh(block)) {
		cache_forget(pc, pc + block_rows[block].bytes);
		block = NO_BLOCK;
	}
	return block != NO_BLOCK ? block : cache_make(t, pc, variant);
}

static void set_row(struct thread *t, uint32_t table, uint64_t target, uint32_t block)
{
	uint64_t *row = (uint64_t *)((uint8_t *)t + table) + (target & (TABLE_ROWS - 1));
	uint64_t entry = cache_restoring_entry(block);

	if (!entry)
		return;
	row[0] =
		1; /* while it is half done; the low bits of the row's own address never fit this */
	row[TABLE_TARGETS / 8] = entry;
	row[0] = -target;
}

/* ---- leaving ---- */

static void go_native(struct thread *t)
{
	t->go = t->a.pc;
}

bool is_leaving;

void translate_leave(struct thread *t, enum translate_why why)
{
	static bool is_released;
	bool is_last;

	t->a.mask = signals_end(t);
	__atomic_fetch_add(&header.n_left_alone, 1, __ATOMIC_RELAXED);
	if (t->is_guest) { /* its parent's code stays as it is, and its handlers are its own */
		regions_unwatch();
	} else if (!is_released) {
		is_leaving = is_released = true;
		regions_unwatch();
		cache_lock();
		cache_forget_all();
		cache_unlock();
	}
	__atomic_store_n(&t->a.state, TRANSLATE_THREAD_ENDED,
		__ATOMIC_SEQ_CST); /* before others are looked at */
	is_last = !threads_live();
	signals_restore(is_last || t->is_guest || why == TRANSLATE_WHY_ASKED);
	raw_call(SYS_sigaltstack, &t->altstack, 0);
	translate_service(TRANSLATE_LEAVE, t, why);
	signals_release(t->a.mask); /* nobody was there to do it */
	go_native(t);
}

/* ---- the next block ---- */

struct step {
	struct exit *exit;
	uint32_t table; /* T_RETURNS, T_JUMPS; 0 = none */
};

/* The kernel's own page of old system calls: no code that could be copied. */
static bool call_vsyscall(struct thread *t)
{
	static const uint16_t numbers[] = {96 /* gettimeofday */, 201 /* time */, 309 /* getcpu */};
	uint64_t which = (t->a.pc - VSYSCALL_LOW) >> 10;
	uint64_t back;

	if (t->a.pc < VSYSCALL_LOW || t->a.pc >= VSYSCALL_LOW + 0xc00 || (t->a.pc & 0x3ff) ||
		!translate_copy(&back, (const void *)t->a.regs[RSP], 8))
		return false;
	t->a.regs[RAX] =
		(uint64_t)raw_call(numbers[which], t->a.regs[RDI], t->a.regs[RSI], t->a.regs[RDX]);
	t->a.regs[RSP] += 8;
	t->a.pc = back;
	t->variant = VARIANT_PLAIN;
	return true;
}

/* Sets t->go for t->a.pc, t->variant. */
static void go_to(struct thread *t, const struct step *s)
{
	uint32_t block;

	cache_lock();
	block = find_or_make(t, t->a.pc, t->variant);
	if (block != NO_BLOCK) {
		bool is_shared = region_is_shared(t->a.pc); /* then it is looked at each time */

		if (s->exit && !is_shared)
			cache_link(s->exit, block);
		if (s->table && !is_shared)
			set_row(t, s->table, t->a.pc, block);
		t->go = block_rows[block].cache;
	}
	cache_unlock();
	if (block != NO_BLOCK)
		return;
	if (t->cannot)
		translate_leave(t, t->cannot);
	else
		go_native(t); /* nothing executable is there: the fault is the program's */
}

/* Signals may come until here; those that come later are seen on the way out. */
static void set_new_mask(struct thread *t)
{
	uint64_t mask = t->new_mask & ~SIGNALS_KEPT;

	t->kept_mask = t->new_mask & SIGNALS_KEPT;
	t->has_new_mask = false;
	raw_call(SYS_rt_sigprocmask, 2, &mask, 0, 8);
}

static struct step began(struct thread *t)
{
	struct step s = {0};
	uint32_t number = t->exit;

	switch (number) {
	case EXIT_RETURN:
		t->a.pc = t->target;
		t->variant = variant_at(t->a.pc, true);
		s.table = T_RETURNS;
		break;
	case EXIT_JUMP:
		t->a.pc = t->target;
		t->variant = variant_at(t->a.pc, false);
		s.table = T_JUMPS;
		break;
	case EXIT_PC:
		break;
	case EXIT_TARGET:
	case EXIT_TARGET + 1:
	case EXIT_TARGET + 2:
		t->a.pc = t->target;
		t->variant = number - EXIT_TARGET;
		left_put(t, t->left, t->target);
		break;
	default:
		s.exit = &exits[number];
		t->a.pc = s.exit->target;
		t->variant = s.exit->variant;
		left_put(t, s.exit->block, 0);
	}
	return s;
}

void translate_dispatch(struct thread *t)
{
	struct step s = began(t);
	bool is_asked = false;

	if (t->is_alone && t->fault_rest)
		block_left(t, t->fault_block, t->fault_rest);
	if (s.exit && s.exit->kind == EXIT_KIND_LEAVE) {
		translate_leave(t, s.exit->why);
		return;
	}
	if (s.exit && s.exit->kind == EXIT_KIND_SYSCALL) {
		if (!calls_make(t)) { /* a signal comes first, and the call then */
			t->a.pc -= 2;
			block_left(t, s.exit->block, 1);
		}
		s = (struct step){0};
	}
	do {
		if (t->pending == PENDING_LEAVE) {
			t->pending = 0;
			t->new_mask = t->waiting_mask | t->kept_mask;
			t->has_new_mask = true;
			is_asked = true;
		}
		while (t->pending) {
			bool is_given = signals_deliver(t);

			t->is_alone = false;
			s = (struct step){0};
			if (!is_given && t->is_ending) {
				go_native(t);
				return;
			}
		}
		if (is_asked || is_leaving) {
			translate_leave(t, TRANSLATE_WHY_ASKED);
			return;
		}
		while (call_vsyscall(t))
			s = (struct step){0};
		go_to(t, &s);
		if (t->has_new_mask)
			set_new_mask(t);
	} while (t->pending);
}

/* ---- beginnings ---- */

void translate_child(struct thread *t)
{
	translate_set_gs((uint64_t)t);
	t->a.tid = raw_tid();
	signals_set_stack(t);
	translate_resume(t);
}

/* All threads of a process that is attached to begin at once: one of them prepares, the others wait for it. */
static bool prepare(bool is_attached)
{
	enum { UNPREPARED, PREPARING, READY, FAILED };
	static uint32_t state;
	uint32_t before = UNPREPARED;

	if (__atomic_compare_exchange_n(
		    &state, &before, PREPARING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
		before = cache_init() && signals_init(is_attached) ? READY : FAILED;
		__atomic_store_n(
			&state, before, __ATOMIC_RELEASE); /* pairs with the loads of the others */
	}
	while (before == PREPARING) {
		raw_call(SYS_sched_yield, 0);
		before = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
	}
	return before == READY;
}

void translate_start(struct translate_boot *boot)
{
	bool is_ready = prepare(boot->is_attached);
	struct thread *t = is_ready ? thread_new() : NULL;

	if (!t) {
		if (is_ready)
			signals_restore(!threads_live());
		translate_service(TRANSLATE_LEAVE, boot, TRANSLATE_WHY_MEMORY);
		for (;;)
			raw_call(SYS_exit_group, 127);
	}
	t->a.tid = raw_tid();
	bytes_copy(t->a.regs, boot->regs, sizeof(boot->regs));
	t->a.pc = boot->pc;
	t->a.flags = boot->flags;
	t->a.program_gs = boot->gs_base;
	t->a.outcome = boot->outcome;
	t->a.call = boot->call;
	t->fault_block = NO_BLOCK;
	raw_call(SYS_sigaltstack, 0, &t->altstack);
	translate_set_gs((uint64_t)t);
	signals_set_stack(t);
	signals_begin(t, boot->mask);
	if (boot->has_rseq)
		has_rseq = true;
	translate_resume(t);
}
