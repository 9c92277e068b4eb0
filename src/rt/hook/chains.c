/* SPDX-License-Identifier: MIT */
/*
 * Which stack is this? A thread's own stack has known bounds. Others are coroutines', and signal
 * stacks. Their bounds are known when makecontext was seen; otherwise they are guessed, and the
 * guess may only err on the safe side: an entry whose return address may still be used is never
 * given to another call. So a stack pointer belongs to a guessed stack only if it lies between that
 * stack's open calls, or closely below the last of them; else it starts another chain. A chain
 * without open calls may be anybody's.
 */
#include "hook.h"

#include <sys/mman.h>

#define N_CHAINS    N_BLOCKS
#define CLOSE_BYTES 8192u
#define N_STACKS    1024u

static struct chain chains[N_CHAINS];
static uint32_t n_chains;    /* only grows; a slot is taken by an atomic add */
static uint32_t n_blocks;    /* likewise */
static uint32_t last_number; /* of a chain */
static struct {
	uintptr_t start, bytes;
} stacks[N_STACKS]; /* that makecontext was called for, the latest ones */
static uint32_t n_stacks;

/* --- blocks ------------------------------------------------------------------------------ */

static void write_slots(uint8_t *block)
{
	uintptr_t pointer = (uintptr_t)block + HOOK_HEADER_OFFSET;

	for (uint32_t i = 0; i < HOOK_BLOCK_SLOTS; i++) {
		uint8_t *slot = block + i * HOOK_SLOT_BYTES;
#ifdef __x86_64__
		int32_t operand = (int32_t)(pointer - (uintptr_t)(slot + 7));
#else
		uint32_t operand = pointer;
#endif

		for (uint32_t k = 0; k < HOOK_SLOT_BYTES; k++)
			slot[k] = 0xcc;
		slot[0] = 0x90;
		slot[1] = 0xff; /* call *pointer */
		slot[2] = 0x15;
		bytes_copy(slot + 3, &operand, 4);
	}
}

static struct hook_block *block_new(struct chain *c)
{
	uint32_t i = __atomic_fetch_add(&n_blocks, 1, __ATOMIC_RELAXED);
	uint8_t *block = weir_region + (uintptr_t)i * HOOK_BLOCK_BYTES;
	struct hook_block *header = (struct hook_block *)(block + HOOK_HEADER_OFFSET);

	if (i >= N_BLOCKS) {
		__atomic_fetch_sub(&n_blocks, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	if (raw_failed(raw_mmap(block, HOOK_BLOCK_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1)))
		return NULL;
	write_slots(block);
	header->stub = (uintptr_t)weir_leave_stub;
	header->chain = c;
	header->next = NULL;
	header->previous = NULL;
	if (raw_call(SYS_mprotect, block, HOOK_HEADER_OFFSET, PROT_READ | PROT_EXEC) < 0)
		return NULL;
	return header;
}

static struct hook_entry *first_entry(const struct hook_block *b)
{
	return (struct hook_entry *)((uintptr_t)b - HOOK_HEADER_OFFSET + HOOK_ENTRY_OFFSET);
}

bool chain_grow(struct chain *c)
{
	struct hook_entry *last = c->top - 1; /* of a full block */
	struct hook_block *full = block_of(last);

	if (!full->next) {
		struct hook_block *b = block_new(c);

		if (!b)
			return false;
		b->previous = full;
		full->next = b;
	}
	first_entry(full->next)->not_sp = last->not_sp;
	first_entry(full->next)->node = last->node;
	c->top = first_entry(full->next) + 1;
	return true;
}

/* --- chains ------------------------------------------------------------------------------ */

static struct chain *chain_new(void)
{
	uint32_t i = __atomic_fetch_add(&n_chains, 1, __ATOMIC_RELAXED);
	struct chain *c = &chains[i];

	if (i >= N_CHAINS) {
		__atomic_fetch_sub(&n_chains, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	c->block = block_new(c);
	if (!c->block)
		return NULL;
	c->first = first_entry(c->block) + 1;
	c->first[-1].node = HOOK_TREE_ROOT;
	__atomic_store_n(&c->top, c->first, __ATOMIC_RELEASE);
	return c;
}

static bool is_empty(const struct chain *c)
{
	return c->top == c->first;
}

struct hook_entry *chain_below(const struct chain *c, struct hook_entry *e)
{
	struct hook_block *b;

	if (e == c->first)
		return NULL;
	e--;
	b = block_of(e);
	if (e != first_entry(b))
		return e;
	return b->previous ? first_entry(b->previous) + HOOK_BLOCK_SLOTS - 1 : NULL;
}

void chain_drop_to(struct chain *c, struct hook_entry *e, uint64_t now)
{
	struct hook_entry *last;

	do {
		last = chain_below(c, c->top);
		if (!last)
			break;
		if (c->tree)
			hook_tree_leave(c->tree, last->node, last->ticks, now);
		last->not_sp = 0;
		c->top = last;
	} while (last != e);
	c->top = e;
}

void chain_drop_stale(struct chain *c, uintptr_t sp)
{
	struct hook_entry *e = c->top, *below;

	while ((below = chain_below(c, e)) && entry_sp(below) <= sp)
		e = below;
	if (e != c->top)
		chain_drop_to(c, e, ticks_now());
}

void chains_disown(void)
{
	for (uint32_t i = 0; i < n_chains && i < N_CHAINS; i++) {
		struct hook_entry *e = chains[i].top;

		chains[i].tree = NULL;
		while (e && (e = chain_below(&chains[i], e)))
			e->id = 0;
	}
}

static void adopt(struct chain *c, struct hook_tree *tree)
{
	struct hook_entry *e = c->first;
	uint32_t node = HOOK_TREE_ROOT;
	uint64_t now = ticks_now();

	c->tree = tree;
	c->first[-1].node = node;
	while (e != c->top) {
		if (!((uintptr_t)e & (HOOK_BLOCK_BYTES - 1))) {
			e = first_entry(block_of(e - 1)->next);
			(e++)->node = node;
			continue;
		}
		node = hook_tree_adopt(tree, node, e->id, now);
		e->node = node;
		(e++)->ticks = now;
	}
}

void chains_adopt(struct hook_tree *tree)
{
	for (uint32_t i = 0; i < n_chains && i < N_CHAINS; i++)
		if (chains[i].tree)
			adopt(&chains[i], tree);
}

static struct chain *chain_with_bounds(uintptr_t sp)
{
	uint32_t n = __atomic_load_n(&n_chains, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n && i < N_CHAINS; i++)
		if (chains[i].is_exact && sp - chains[i].start < chains[i].bytes)
			return &chains[i];
	return NULL;
}

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

/* glibc puts a thread's control block at the upper end of its stack; above it may be anything that
 * happens to be mapped next to it. */
static void own_bounds(uintptr_t sp, uintptr_t *start, uintptr_t *end)
{
	struct mapping_bounds m;
	uintptr_t control_block = thread_pointer();

	if (!maps_find(sp, &m)) {
		*start = sp > (8u << 20) ? sp - (8u << 20) : 0;
		*end = sp + (64u << 10);
		return;
	}
	*start = m.start;
	*end = m.end;
	if (m.is_main_stack) /* it grows: nothing else is mapped as far as the limit reaches */
		*start = m.end > (1u << 30) ? m.end - (1u << 30) : m.start;
	else if (control_block > sp && control_block < m.end)
		*end = control_block;
}

struct chain *chain_own(uintptr_t sp, uint32_t tid)
{
	uintptr_t start, end;
	struct chain *c = chain_with_bounds(sp);

	if (c && !c->number) {
		/* After fork it is still this thread's; else that of a thread that is gone. */
		if (c->owner != tid && library.pid != tid)
			c->top = c->first;
		c->owner = tid;
		return c;
	}
	own_bounds(sp, &start, &end);
	c = chain_new();
	if (!c)
		return NULL;
	c->start = start;
	c->bytes = end - start;
	c->owner = tid;
	c->number = 0;
	c->is_exact = true;
	return c;
}

void chain_add_stack(uintptr_t start, uintptr_t bytes)
{
	uint32_t i = __atomic_fetch_add(&n_stacks, 1, __ATOMIC_RELAXED);

	stacks[i % N_STACKS].start = start;
	stacks[i % N_STACKS].bytes = bytes;
}

static bool stack_find(uintptr_t sp, uintptr_t *start, uintptr_t *bytes)
{
	for (uint32_t i = 0; i < N_STACKS && i < n_stacks; i++) {
		if (sp - stacks[i].start < stacks[i].bytes) {
			*start = stacks[i].start;
			*bytes = stacks[i].bytes;
			return true;
		}
	}
	return false;
}

/* The handler of a signal runs there: what it calls is called in the midst of what it interrupted.
 */
static bool is_signal_stack(uintptr_t sp, uintptr_t *start, uintptr_t *bytes)
{
	struct {
		uintptr_t sp;
		int flags;
		uintptr_t bytes;
	} s = {0};

	if (raw_call(SYS_sigaltstack, 0, &s) < 0 || sp - s.sp >= s.bytes)
		return false;
	*start = s.sp;
	*bytes = s.bytes;
	return true;
}

static bool is_near(const struct chain *c, uintptr_t sp)
{
	struct hook_entry *last = chain_below(c, c->top);

	if (!last)
		return false;
	return sp <= entry_sp(c->first) && sp + CLOSE_BYTES > entry_sp(last);
}

/* Where the fast way may go on; whatever lies outside comes here again. */
static void set_window(struct chain *c, uintptr_t low, uintptr_t high)
{
	c->start = low > CLOSE_BYTES ? low - CLOSE_BYTES : 0;
	c->bytes = high - c->start + 1;
}

/* A coroutine whose stack nobody told us of. */
static struct chain *guessed(struct thread *t, uintptr_t sp)
{
	uint32_t n = __atomic_load_n(&n_chains, __ATOMIC_ACQUIRE);
	struct chain *empty = NULL;

	for (uint32_t i = 0; i < n && i < N_CHAINS; i++) {
		struct chain *c = &chains[i];

		if (c->is_exact || !c->block)
			continue;
		if (is_near(c, sp)) {
			set_window(c, sp, entry_sp(c->first));
			return c;
		}
		if (is_empty(c) && c->owner == t->tid && !empty)
			empty = c;
	}
	if (!empty) {
		empty = chain_new();
		if (!empty)
			return NULL;
		empty->number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
	}
	set_window(empty, sp, sp);
	return empty;
}

struct chain *chain_find(struct thread *t, uintptr_t sp)
{
	uintptr_t start, bytes;
	struct chain *c;
	bool is_signal;

	if (t->chain && t->chain->is_exact && sp - t->chain->start < t->chain->bytes)
		return t->chain;
	if (t->own && sp - t->own->start < t->own->bytes)
		return t->own;
	c = chain_with_bounds(sp);
	if (c)
		return c;
	is_signal = is_signal_stack(sp, &start, &bytes);
	if (!is_signal && !stack_find(sp, &start, &bytes))
		return guessed(t, sp);
	c = chain_new();
	if (!c)
		return NULL;
	c->start = start;
	c->bytes = bytes;
	c->number = is_signal ? t->number : __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
	c->is_exact = true;
	return c;
}
