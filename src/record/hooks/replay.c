/* SPDX-License-Identifier: MIT */
#include "record/hooks/replay.h"

#include <stdlib.h>
#include <string.h>

#include "rt/hook/hook_abi.h"

#define SLOT_FIRST 1u
#define SLOT_LAST  (HOOK_BLOCK_SLOTS - 1)
/* How far from the expected place a slot's call is looked for before the order decides. */
#define WINDOW 64u
/* A hostile program could make replaced addresses lead to each other; honest tail calls end. */
#define TAIL_CALLS_MAX 4096u
#define DEPTH_MAX      ((size_t)4 << 20)
#define CHAINS_MAX     8192u

void replay_release(struct replay *r)
{
	for (size_t i = 0; i < r->chains.n; i++)
		vec_release(&r->chains.v[i].calls);
	vec_release(&r->chains);
	map_release(&r->blocks);
	map_release(&r->numbers);
	*r = (struct replay){0};
}

static void add_chain(struct replay *r, uint32_t number)
{
	vec_push(&r->chains, ((struct replay_chain){.number = number}));
	*map_ensure(&r->numbers, number, NULL) = r->chains.n;
}

static struct replay_chain *current_chain(struct replay *r)
{
	if (!r->chains.n)
		add_chain(r, 0);
	return &r->chains.v[r->current];
}

static struct replay_chain *find_chain(struct replay *r, uint32_t number)
{
	const uint64_t *at = map_find(&r->numbers, number);

	return at ? &r->chains.v[*at - 1] : NULL;
}

void replay_copy(struct replay *to, const struct replay *from)
{
	replay_release(to);
	for (size_t i = 0; i < from->chains.n; i++) {
		const struct replay_chain *c = &from->chains.v[i];
		struct replay_chain copy = {
			.number = c->number, .n_kept = c->calls.n, .block = c->block};

		vec_reserve(&copy.calls, c->calls.n);
		if (c->calls.n)
			memcpy(copy.calls.v, c->calls.v, c->calls.n * sizeof(*c->calls.v));
		copy.calls.n = c->calls.n;
		add_chain(to, c->number);
		to->chains.v[i] = copy;
	}
	to->current = from->current;
	for (size_t i = 0; i < from->blocks.cap; i++)
		if (from->blocks.slots[i].used)
			*map_ensure(&to->blocks, from->blocks.slots[i].key, NULL) =
				from->blocks.slots[i].value;
}

void replay_reset(struct replay *r)
{
	for (size_t i = 0; i < r->chains.n; i++)
		r->chains.v[i].calls.n = r->chains.v[i].n_kept = r->chains.v[i].block = 0;
	r->current = 0;
	map_reset(&r->blocks);
}

static uint32_t next_slot(const struct replay_chain *c)
{
	uint32_t i = c && c->calls.n ? c->calls.v[c->calls.n - 1].slot_i + 1 : SLOT_FIRST;

	return i > SLOT_LAST ? SLOT_FIRST : i;
}

void replay_enter(struct replay *r, uint32_t id, uint64_t ret, uint64_t ticks)
{
	struct replay_chain *c = current_chain(r);
	uint32_t slot_i;

	if (c->calls.n >= DEPTH_MAX) /* the program's stack cannot be that deep */
		c->calls.n = 0;
	/* Without a return address it has no slot, and the next call has the one that it would have. */
	slot_i = ret	      ? next_slot(c)
		 : c->calls.n ? c->calls.v[c->calls.n - 1].slot_i
			      : SLOT_FIRST - 1;
	vec_push(&c->calls, ((struct replay_call){ret, ticks, id, slot_i}));
	c->n_kept = c->calls.n;
}

size_t replay_leave(struct replay *r, uint32_t id, struct replay_call *left)
{
	struct replay_chain *c = current_chain(r);
	size_t had = c->calls.n, n = had;

	while (n && c->calls.v[n - 1].id != id)
		n--;
	if (!n) {
		r->n_unmatched_leaves++;
		return 0;
	}
	*left = c->calls.v[n - 1];
	c->calls.n = n - 1;
	return had - n + 1;
}

void replay_switch(struct replay *r, uint32_t chain_number)
{
	const struct replay_chain *c;

	current_chain(r);
	c = find_chain(r, chain_number);
	/* More than the library's region has blocks for: the numbers mean nothing. */
	if (!c && r->chains.n < CHAINS_MAX)
		add_chain(r, chain_number);
	r->current = c ? (size_t)(c - r->chains.v) : r->chains.n - 1;
}

uint32_t replay_chain_number(const struct replay *r)
{
	return r->chains.n ? r->chains.v[r->current].number : 0;
}

size_t replay_depth(const struct replay *r)
{
	return r->chains.n ? r->chains.v[r->current].calls.n : 0;
}

/* --- walks ------------------------------------------------------------------------------- */

/* All of its slots lie in one block, which is known and another one. */
static bool is_not_of(const struct replay_chain *c, uint64_t block)
{
	return c->block && c->block != block && c->calls.n < SLOT_LAST;
}

static bool is_pending(const struct replay_walk *w, uint64_t block, uint32_t slot_i)
{
	struct replay_chain *c;

	if (!w->has_pending)
		return false;
	c = find_chain(w->replay, w->pending_chain);
	return slot_i == next_slot(c) && !(c && is_not_of(c, block));
}

/*
 * Before the first slot of a walk: whose block is it? False: nobody knows.
 */
static bool begin(struct replay_walk *w, uint64_t block)
{
	const uint64_t *number = map_find(&w->replay->blocks, block);
	struct replay_chain *c = current_chain(w->replay);

	w->chain = number ? find_chain(w->replay, (uint32_t)(*number - 1)) : c;
	/* A block that is not its own: a signal stack's, unless there are coroutines. */
	if (!number && is_not_of(c, block) && w->replay->chains.n > 1)
		return false;
	/* The call that was left last may still be on its way out. */
	w->at = w->chain->calls.n + (w->chain->n_kept > w->chain->calls.n);
	return true;
}

static bool is_next_to_last(const struct replay_walk *w, uint64_t block, uint32_t slot_i)
{
	return w->has_last && w->last_block == block && w->last_i == slot_i + 1;
}

/* The position + 1 of the slot's call; 0 when there is none. */
static size_t find_call(
	const struct replay_walk *w, uint64_t block, uint32_t slot_i, bool *by_index)
{
	const struct replay_call *calls = w->chain->calls.v;
	bool is_foreign = is_not_of(w->chain, block);
	size_t n;

	*by_index = true;
	for (size_t i = 0; i < WINDOW && i < w->at && !is_foreign; i++) {
		if (calls[w->at - 1 - i].slot_i == slot_i && calls[w->at - 1 - i].ret)
			return w->at - i;
		if (!i && is_next_to_last(w, block, slot_i))
			break; /* its neighbour was taken by order, and so is this one */
	}
	*by_index = false;
	n = w->at < w->chain->calls.n ? w->at : w->chain->calls.n;
	while (n && !calls[n - 1].ret)
		n--;
	return n;
}

/* The block is certainly this chain's: there is no other, or two neighbours agree. */
static void learn_block(struct replay_walk *w, uint64_t block, uint32_t slot_i, bool is_first)
{
	bool is_only = w->replay->chains.n == 1 && is_first && w->at + 2 >= w->chain->calls.n &&
		       (!w->has_pending || w->pending_chain == w->chain->number);

	if (!is_only && !is_next_to_last(w, block, slot_i))
		return;
	*map_ensure(&w->replay->blocks, block, NULL) = (uint64_t)w->chain->number + 1;
	if (w->at < SLOT_LAST)
		w->chain->block = block;
}

static uint64_t take(struct replay_walk *w, uint64_t block, uint32_t slot_i, uint64_t ret)
{
	w->last_block = block;
	w->last_i = slot_i;
	w->has_last = true;
	return ret;
}

static uint64_t one_return(struct replay_walk *w, uint64_t pc, bool is_caller)
{
	uint64_t block = pc & ~(uint64_t)(HOOK_BLOCK_BYTES - 1), offset = pc - block;
	uint32_t slot_i = (uint32_t)(offset / HOOK_SLOT_BYTES);
	bool is_open = is_caller && offset % HOOK_SLOT_BYTES == HOOK_RETURN_OFFSET;
	bool is_first = !w->chain, by_index;
	struct replay_call *call;
	size_t found;

	if (slot_i > SLOT_LAST || slot_i < SLOT_FIRST || w->is_lost)
		return 0;
	/* On the stack, so the call is open; not open here: its entry comes as the next event. */
	if (is_first && is_open && is_pending(w, block, slot_i)) {
		w->chain = find_chain(w->replay, w->pending_chain);
		w->is_lost = !w->chain; /* the first call of a coroutine: nothing is below it */
		w->at = w->chain ? w->chain->calls.n : 0;
		return take(w, block, slot_i, w->pending_ret);
	}
	w->is_lost = is_first && !begin(w, block);
	found = w->is_lost ? 0 : find_call(w, block, slot_i, &by_index);
	if (!found)
		return 0;
	w->at = found - 1;
	call = &w->chain->calls.v[found - 1];
	if (by_index)
		learn_block(w, block, slot_i, is_first);
	call->slot_i = slot_i; /* where the order decided, it is learned */
	return take(w, block, slot_i, call->ret);
}

uint64_t replay_walk_return(struct replay_walk *w, uint64_t pc, bool is_caller)
{
	for (unsigned i = 0; i < TAIL_CALLS_MAX && pc; i++) {
		pc = one_return(w, pc, is_caller);
		if (pc - w->region_start >= w->region_bytes)
			return pc;
		is_caller = true;
	}
	return 0;
}
