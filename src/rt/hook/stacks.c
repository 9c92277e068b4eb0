/* SPDX-License-Identifier: MIT */
/*
 * Which stack is this? A thread's own is known from its control block, or is the program's first.
 * Others are signal stacks, which the kernel knows, and coroutines'. Their bounds are known when
 * makecontext was seen; else a call belongs to the stack whose open calls are closest above it. A
 * wrong guess shows calls below the wrong ones; it never gives away an entry (chains.c).
 */
#include "hook.h"

#include "../base/stack_bounds.h"

#define CLOSE_BYTES 8192u
#define N_STACKS    1024u

static uint32_t last_number; /* of a chain */
static struct {
	uintptr_t start, bytes;
	uint32_t tid; /* that said so */
} stacks[N_STACKS];   /* that makecontext was called for, the latest ones */
static uint32_t n_stacks;

static uint32_t new_number(void)
{
	return __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
}

static bool overlaps(const struct chain *c, const struct stack_bounds *b)
{
	return c->low < b->high && b->low < c->high;
}

static bool is_at(const struct chain *c, const struct stack_bounds *b)
{
	return c->low == b->low && c->high == b->high;
}

/* --- a thread's own ---------------------------------------------------------------------- */

static uintptr_t thread_pointer(void)
{
	uintptr_t p;

#ifdef __x86_64__
	__asm__("mov %%fs:0, %0" : "=r"(p));
#else
	__asm__("mov %%gs:0, %0" : "=r"(p));
#endif
	return p;
}

/* Where threads are many, so are mappings: they are not read for each of them, if the kernel allows. */
static bool find_mapping(uintptr_t address, struct maps_line *line)
{
	struct proc_text t;
	bool found;

	if (!maps_open(&t))
		return false;
	found = maps_query(&t, address, line);
	proc_text_close(&t);
	return found || maps_find(address, line);
}

static bool find_bounds(uintptr_t sp, struct stack_bounds *b)
{
	uintptr_t block = thread_pointer();
	struct maps_line line = {0};

	return (find_mapping(block, &line) && stack_find_by_control_block(block, sp, &line, b)) ||
	       stack_find_main(b);
}

static void set_bounds(struct chain *c, const struct stack_bounds *b)
{
	c->low = b->low;
	c->high = b->high;
	c->start = b->low;
	c->bytes = c->has_stacks_inside ? 0 : b->high - b->low;
}

/* A thread runs there now: what was there before is gone, but for coroutines that it made itself.
 */
static bool clear_for_thread(const struct stack_bounds *b, uint32_t tid)
{
	bool has_stacks = false;
	struct chain *c;

	for (uint32_t i = 0; i < N_STACKS; i++) {
		if (stacks[i].start >= b->high || b->low >= stacks[i].start + stacks[i].bytes)
			continue;
		has_stacks |= stacks[i].tid == tid;
		if (stacks[i].tid != tid)
			stacks[i].bytes = 0;
	}
	for (uint32_t i = 0; (c = chain_at(i)); i++)
		if (overlaps(c, b))
			chain_free_ended(c);
	return has_stacks;
}

/* That of a thread that had the same stack, taken, so that nobody else takes it to be free. */
static struct chain *take_own(const struct stack_bounds *b)
{
	struct chain *c;

	for (uint32_t i = 0; (c = chain_at(i)); i++) {
		uint32_t own = CHAIN_OWN;

		if (c->kind == CHAIN_OWN && is_at(c, b) &&
			__atomic_compare_exchange_n(&c->kind, &own, CHAIN_TAKEN, false,
				__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return c;
	}
	return NULL;
}

struct chain *chain_own(uintptr_t sp, uint32_t tid)
{
	struct stack_bounds b;
	struct chain *c;

	if (!find_bounds(sp, &b))
		b.low = b.high = 0; /* its calls are taken for a coroutine's */
	c = b.high ? take_own(&b) : NULL;
	if (c) {
		/* After fork it is still this thread's; else that of a thread that is gone. */
		if (c->owner != tid && library.pid != tid)
			chain_reset(c);
		c->owner = tid;
		__atomic_store_n(&c->kind, CHAIN_OWN, __ATOMIC_RELEASE);
		return c;
	}
	c = chain_new(CHAIN_TAKEN);
	if (!c)
		return NULL;
	c->owner = tid;
	c->has_stacks_inside = b.high && clear_for_thread(&b, tid);
	set_bounds(c, &b);
	__atomic_store_n(&c->kind, CHAIN_OWN, __ATOMIC_RELEASE);
	return c;
}

/* --- coroutines' and signal stacks ------------------------------------------------------- */

/* What ran there before has ended. */
static void clear_for_context(struct chain *c, const struct stack_bounds *b)
{
	if (c->top != c->first) {
		chain_reset(c);
		c->number = new_number();
	}
	if (is_at(c, b))
		return;
	c->bytes = 0;
	__atomic_store_n(&c->kind, CHAIN_FREE, __ATOMIC_RELEASE);
}

void chain_add_stack(uintptr_t start, uintptr_t bytes)
{
	const struct stack_bounds b = {start, start + bytes};
	uint32_t place = N_STACKS;
	struct chain *c;

	for (uint32_t i = 0; i < N_STACKS; i++) {
		if (stacks[i].start >= b.high || start >= stacks[i].start + stacks[i].bytes)
			continue;
		stacks[i].bytes = 0;
		place = i;
	}
	for (uint32_t i = 0; (c = chain_at(i)); i++) {
		if (!overlaps(c, &b))
			continue;
		if (c->kind == CHAIN_CONTEXT) {
			clear_for_context(c, &b);
		} else if (c->kind == CHAIN_OWN && !c->has_stacks_inside) {
			c->has_stacks_inside = true;
			c->bytes = 0;
		}
	}
	if (place == N_STACKS)
		place = __atomic_fetch_add(&n_stacks, 1, __ATOMIC_RELAXED) % N_STACKS;
	stacks[place].start = start;
	stacks[place].tid = raw_tid();
	stacks[place].bytes = bytes;
}

static bool stack_find(uintptr_t sp, struct stack_bounds *b)
{
	for (uint32_t i = 0; i < N_STACKS; i++) {
		if (sp - stacks[i].start < stacks[i].bytes) {
			b->low = stacks[i].start;
			b->high = b->low + stacks[i].bytes;
			return true;
		}
	}
	return false;
}

static struct chain *find_told(uintptr_t sp, enum chain_kind kind)
{
	struct chain *c;

	for (uint32_t i = 0; (c = chain_at(i)); i++)
		if (c->kind == kind && sp >= c->low && sp < c->high)
			return c;
	return NULL;
}

/* Where the handler of a signal runs, what it calls is called in the midst of what it interrupted. */
static struct chain *told(struct thread *t, uintptr_t sp)
{
	struct stack_bounds b;
	bool is_signal = stack_find_signal(sp, &b);
	enum chain_kind kind = is_signal ? CHAIN_SIGNAL : CHAIN_CONTEXT;
	struct chain *c;

	if (!is_signal && !stack_find(sp, &b))
		return NULL;
	c = find_told(sp, kind);
	if (c && !is_at(c, &b)) {
		if (c->top != c->first)
			return c; /* of before, still in use */
		set_bounds(c, &b);
	}
	if (!c) {
		c = chain_new(CHAIN_TAKEN);
		if (!c)
			return NULL;
		set_bounds(c, &b);
		c->number = is_signal ? 0 : new_number();
		__atomic_store_n(&c->kind, (uint32_t)kind, __ATOMIC_RELEASE);
	}
	if (is_signal && c != t->chain)
		c->number = t->number;
	return c;
}

/* --- guesses ----------------------------------------------------------------------------- */

/* Another thread is on it, as far as we know. */
static bool is_in_use(const struct chain *c, const struct thread *t)
{
	return c->user && c->user != t && c->user->chain == c && c->user->tid == c->owner;
}

/* How far below its last call, or above it, if it may be the chain's. */
static uintptr_t distance(const struct chain *c, uintptr_t sp)
{
	struct hook_entry *last = c->top;

	while ((last = chain_below(c, last)) && last->not_sp <= HOOK_LEFT)
		;
	if (!last || sp > c->high || sp + CLOSE_BYTES <= entry_sp(last))
		return UINTPTR_MAX;
	return sp < entry_sp(last) ? entry_sp(last) - sp : sp - entry_sp(last);
}

/* Where the fast way may go on; whatever lies outside comes here again. */
static void set_window(struct chain *c, uintptr_t sp)
{
	c->start = sp > CLOSE_BYTES ? sp - CLOSE_BYTES : 0;
	c->bytes = c->high - c->start + 1;
}

/* A coroutine whose stack nobody told us of. */
static struct chain *guessed(struct thread *t, uintptr_t sp)
{
	struct chain *c, *empty = NULL, *best = NULL;
	uintptr_t best_distance = UINTPTR_MAX;

	for (uint32_t i = 0; (c = chain_at(i)); i++) {
		uintptr_t d;

		if (c->kind != CHAIN_GUESSED || is_in_use(c, t))
			continue;
		d = distance(c, sp);
		if (d < best_distance) {
			best_distance = d;
			best = c;
		}
		if (c->top == c->first && c->owner == t->tid)
			empty = c;
	}
	if (best) {
		set_window(best, sp);
		return best;
	}
	if (!empty) {
		empty = chain_new(CHAIN_TAKEN);
		if (!empty)
			return NULL;
		empty->owner = t->tid;
		empty->number = new_number();
		__atomic_store_n(&empty->kind, CHAIN_GUESSED, __ATOMIC_RELEASE);
	}
	empty->high = sp;
	set_window(empty, sp);
	return empty;
}

/* A local array may be the signal stack, above calls that are open or being recorded. */
static bool is_signal_stack_inside(struct chain *own, uintptr_t sp)
{
	struct hook_entry *last = chain_below(own, own->top);
	bool is_above = (last && entry_sp(last) < sp) ||
			(own->writers[0].slot && own->writers[0].slot < sp);
	struct stack_bounds b;

	return is_above && stack_find_signal(sp, &b);
}

struct chain *chain_find(struct thread *t, uintptr_t sp)
{
	bool is_own = sp >= t->own->low && sp < t->own->high;
	struct chain *c;

	if (is_own && !t->own->has_stacks_inside && !is_signal_stack_inside(t->own, sp))
		return t->own;
	c = told(t, sp);
	if (c)
		return c;
	return is_own ? t->own : guessed(t, sp);
}
