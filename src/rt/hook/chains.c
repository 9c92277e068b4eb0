/* SPDX-License-Identifier: MIT */
/*
 * Open calls. An entry whose return address may still be used is never given to another call: on a
 * thread's own stack, and on a signal stack, what lies below the stack pointer is over. Elsewhere
 * coroutines may share what we take for one stack, or we may be wrong about its bounds: there a
 * call is over when the word of the stack that led to its entry holds something else.
 *
 * Coroutines may lie in a local array of a thread, too, and nobody has told us: then a call that is
 * taken to be over returns after all. So where the word still leads to the entry, it gets the true
 * return address before the entry is another's.
 */
#include "hook.h"

#include <sys/mman.h>

#define N_CHAINS N_BLOCKS

static struct chain chains[N_CHAINS];
static uint32_t n_chains; /* only grows; a slot is taken by an atomic add */
static uint32_t n_blocks; /* likewise */

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

static uintptr_t leave_stub(void)
{
	bool is_tree = library.control && library.control->mode == HOOK_MODE_TREE;

	return (uintptr_t)(is_tree ? weir_leave_tree_stub : weir_leave_stub);
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
	if (!raw_memory(block, HOOK_BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_NORESERVE))
		return NULL;
	write_slots(block);
	header->stub = leave_stub();
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

void chain_trim(struct chain *c)
{
	if (!is_in_block(c->top))
		c->top = (struct hook_entry *)((uintptr_t)c->top &
					       ~(uintptr_t)(HOOK_BLOCK_BYTES - 1));
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

struct chain *chain_at(uint32_t i)
{
	return i < __atomic_load_n(&n_chains, __ATOMIC_ACQUIRE) && i < N_CHAINS ? &chains[i] : NULL;
}

static struct chain *take_free(void)
{
	struct chain *c;

	for (uint32_t i = 0; (c = chain_at(i)); i++) {
		uint32_t free = CHAIN_FREE;

		if (c->block && __atomic_compare_exchange_n(&c->kind, &free, CHAIN_TAKEN, false,
					__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return c;
	}
	return NULL;
}

static struct chain *take_unused(void)
{
	uint32_t i = __atomic_fetch_add(&n_chains, 1, __ATOMIC_RELAXED);
	struct chain *c = &chains[i];

	if (i >= N_CHAINS) {
		__atomic_fetch_sub(&n_chains, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	__atomic_store_n(&c->kind, CHAIN_TAKEN, __ATOMIC_RELEASE); /* before take_free sees it */
	c->block = block_new(c);
	if (!c->block)
		return NULL;
	c->first = first_entry(c->block) + 1;
	c->first[-1].node = HOOK_TREE_ROOT;
	__atomic_store_n(&c->top, c->first, __ATOMIC_RELEASE);
	return c;
}

bool chain_free_ended(struct chain *c)
{
	uint32_t kind = __atomic_load_n(&c->kind, __ATOMIC_ACQUIRE), owner = c->owner;

	if ((kind != CHAIN_OWN && kind != CHAIN_CONTEXT) || owner == raw_tid() ||
		!thread_has_ended(owner) ||
		!__atomic_compare_exchange_n(
			&c->kind, &kind, CHAIN_TAKEN, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	if (c->owner != owner) { /* it has become another's in between */
		__atomic_store_n(&c->kind, kind, __ATOMIC_RELEASE);
		return false;
	}
	chain_reset(c);
	c->bytes = 0;
	__atomic_store_n(&c->kind, CHAIN_FREE, __ATOMIC_RELEASE);
	return true;
}

/* The stacks of threads that have ended stay as they were for as long as nobody else runs there. When the
 * region is used up they are looked for. */
static struct chain *take_ended(void)
{
	bool has_freed = false;
	struct chain *c;

	for (uint32_t i = 0; (c = chain_at(i)); i++)
		has_freed |= c->kind == CHAIN_OWN && chain_free_ended(c);
	return has_freed ? take_free() : NULL;
}

struct chain *chain_new(enum chain_kind kind)
{
	struct chain *c = take_free();

	if (!c)
		c = take_unused();
	if (!c)
		c = take_ended();
	if (!c)
		return NULL;
	c->start = c->bytes = c->low = c->high = 0;
	c->number = c->owner = 0;
	c->tree = NULL;
	c->user = NULL;
	c->has_stacks_inside = false;
	__atomic_store_n(&c->kind, (uint32_t)kind, __ATOMIC_RELEASE);
	return c;
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

void chain_reset(struct chain *c)
{
	struct hook_entry *e;

	while ((e = chain_below(c, c->top))) {
		e->not_sp = 0;
		c->top = e;
	}
	for (uint32_t i = N_WRITERS; i--;)
		c->writers[i].slot = 0;
	c->tree = NULL;
}

/* Whether a call that begins further up the stack says that those below are over. */
static bool is_sure(const struct chain *c)
{
	return c->kind == CHAIN_OWN || c->kind == CHAIN_SIGNAL;
}

/* The kernel reads the set before it looks at what to do with it, and we ask for nothing. */
static bool is_readable(uintptr_t at)
{
	return raw_call(SYS_rt_sigprocmask, -1, at & ~(uintptr_t)7, 0, 8) != -EFAULT;
}

/* Seen from a call at `now`: one that is further up may be in the midst of returning, interrupted by
 * a handler; its word is another's then, too. */
static bool is_over(const struct hook_entry *e, uintptr_t now)
{
	uintptr_t sp = entry_sp(e);

	if (!e->not_sp || hook_tree_note_of(e))
		return false; /* a handler came before it was filled, or while it was left */
	if (e->not_sp == HOOK_LEFT)
		return true;
	return sp <= now && (!is_readable(sp) || *(const volatile uintptr_t *)sp != slot_address(e));
}

/* Into another thread's tree nothing may be written. */
static void end_call(struct thread *t, struct chain *c, struct hook_entry *e, uint64_t now)
{
	if (e->not_sp <= HOOK_LEFT)
		return;
	if (c->tree && t && c->tree == t->tree && hook_tree_note_of(e))
		hook_tree_repair(c->tree, e, now);
	else if (c->tree && t && c->tree == t->tree)
		hook_tree_leave_late(c->tree, e->node, e->ticks, now);
	else if (c->tree && t)
		t->shared->n_unhooked++;
	else if (t && e->id && library.control->mode != HOOK_MODE_TREE)
		hook_record_write(t, HOOK_RECORD_LEAVE, e->id, 0);
}

/*
 * The stack of a thread that runs can be written. Of what the thread's frames, and ours in them, have
 * come to use again, no word leads to an entry. true when one did: the call was left by a jump or an
 * exception; or it goes on, on a stack of the program's own making among the thread's frames.
 */
static bool put_return_back(const struct chain *c, const struct hook_entry *e)
{
	uintptr_t sp = entry_sp(e), own = slot_address(e);

	if (c->kind != CHAIN_OWN || e->not_sp <= HOOK_LEFT || sp < c->low || sp >= c->high)
		return false;
	return *(const volatile uintptr_t *)sp == own &&
	       __atomic_compare_exchange_n((uintptr_t *)sp, &own, (uintptr_t)e->ret, false,
		       __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void chain_drop_to(struct thread *t, struct chain *c, struct hook_entry *e, uint64_t now)
{
	struct hook_entry *last;

	while ((last = chain_below(c, c->top))) {
		end_call(t, c, last, now);
		if (put_return_back(c, last) && t)
			t->shared->n_jumped++;
		last->not_sp = 0;
		c->top = last;
		if (last == e)
			break;
	}
}

/* From the last one on: the calls that are over. */
static void drop_ended(
	struct thread *t, struct chain *c, uintptr_t sp, const struct hook_entry *caller)
{
	uint64_t now = ticks_now();
	struct hook_entry *last;

	while ((last = chain_below(c, c->top)) && last != caller && is_over(last, sp))
		chain_drop_to(t, c, last, now);
}

void chain_drop_stale(
	struct thread *t, struct chain *c, uintptr_t sp, const struct hook_entry *caller)
{
	struct hook_entry *e = c->top, *below = e;
	uint64_t now = ticks_now();

	if (!is_sure(c)) {
		drop_ended(t, c, sp, caller);
		return;
	}
	/* One that was never filled is over when one below it is. */
	while ((below = chain_below(c, below)) && below != caller &&
		(!below->not_sp || entry_sp(below) <= sp))
		e = below->not_sp ? below : e;
	if (e != c->top)
		chain_drop_to(t, c, e, now);
}

void chain_leave(struct thread *t, struct chain *c, struct hook_entry *e)
{
	uintptr_t sp = entry_sp(e);
	uint64_t now = ticks_now();

	if (is_sure(c)) {
		chain_drop_to(t, c, e, now);
		return;
	}
	drop_ended(t, c, sp, e);
	end_call(t, c, e, now);
	e->not_sp = HOOK_LEFT;
	drop_ended(t, c, sp, NULL);
}

void chain_tell_left(struct thread *t, struct chain *c)
{
	struct hook_entry *e = c->top;
	uint64_t now = ticks_now();

	while ((e = chain_below(c, e))) {
		end_call(t, c, e, now);
		e->id = 0;
		if (!c->tree)
			continue;
		e->node = HOOK_TREE_ROOT; /* which nobody reads: it may be left once more */
		if (hook_tree_note_of(e))
			e->ret = 0;
	}
}

void chains_disown(void)
{
	for (uint32_t i = 0; i < n_blocks && i < N_BLOCKS; i++) {
		uintptr_t block = (uintptr_t)weir_region + (uintptr_t)i * HOOK_BLOCK_BYTES;

		((struct hook_block *)(block + HOOK_HEADER_OFFSET))->stub = leave_stub();
	}
	for (uint32_t i = 0; i < n_chains && i < N_CHAINS; i++) {
		struct hook_entry *e = chains[i].top;

		chains[i].tree = NULL;
		while (e && (e = chain_below(&chains[i], e)))
			e->id = 0;
	}
}

static bool has_interrupted(const struct chain *c)
{
	struct hook_entry *e = c->top;

	for (uint32_t i = 0; i < N_WRITERS; i++)
		if (c->writers[i].slot)
			return true;
	while (e && (e = chain_below(c, e)))
		if (e->not_sp && hook_tree_note_of(e))
			return true;
	return false;
}

bool chains_have_interrupted(void)
{
	for (uint32_t i = 0; i < n_chains && i < N_CHAINS; i++)
		if (has_interrupted(&chains[i]))
			return true;
	return false;
}

/* Not that of another thread that was measuring (self_cost.c): it is elsewhere. */
void chains_empty_trees(uint64_t bytes)
{
	for (uint32_t i = 0; i < n_chains && i < N_CHAINS; i++)
		if ((uintptr_t)chains[i].tree - library.area < library.area_bytes)
			hook_tree_init(chains[i].tree, bytes, 0, 0);
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
		if (e->not_sp > HOOK_LEFT && e->id && !hook_tree_note_of(e))
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
