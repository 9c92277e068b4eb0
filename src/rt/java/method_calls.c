/* SPDX-License-Identifier: MIT */
/*
 * What rewritten methods call, at their start and before they end. No return address is replaced: each exit is
 * called, too. Their records are written as those of hooks are, because handlers may come here as well; so
 * calls of Java methods and of native functions are in one order.
 */
#ifdef __x86_64__
#include "../hook/ring.h"
#include "java.h"

/* `id` is a method's, or says what kind of HOOK_RECORD_MORE it is. */
static inline void record(enum hook_record_kind kind, uint32_t id, uintptr_t *slot, uint64_t data)
{
	struct thread *t = weir_thread;

	if (likely(t) && likely(t->limit)) {
		struct chain *c = t->chain;

		if (likely((uintptr_t)slot - c->start < c->bytes) &&
			likely(record_call(t, c, slot, HOOK_HEAD(kind, id, ticks_now()), data)))
			return;
	}
	if (java_is_wanted())
		record_late(kind, id, slot, data, NULL);
	else
		java_give_back();
}

/* What was allocated since the thread's record before is of the call that is open. A thread without a record has
 * allocated for none. */
static inline void record_bytes(const void *env, uintptr_t *slot)
{
	struct thread *t = weir_thread;
	uint64_t bytes, before;

	if (likely(!heap_bytes(env, &bytes)) || !t || !t->limit)
		return;
	before = t->java_bytes;
	if (before && bytes + 1 <= before)
		return;
	t->java_bytes = bytes + 1;
	if (before)
		record(HOOK_RECORD_MORE, HOOK_MORE_HEAP, slot, bytes + 1 - before);
}

/* 0 instead of the caller's address says that no slot belongs to the call. */
static inline void record_enter(const void *env, uint32_t id, uintptr_t *slot)
{
	bool is_first = !weir_thread || !weir_thread->java_bytes;

	if (unlikely(id == JAVA_NO_METHOD))
		return;
	record_bytes(env, slot);
	record(HOOK_RECORD_ENTER, id, slot, 0);
	if (unlikely(is_first))
		record_bytes(env, slot);
}

static inline void record_leave(const void *env, uint32_t id, uintptr_t *slot, uint64_t n_bytecodes)
{
	if (unlikely(id == JAVA_NO_METHOD))
		return;
	record_bytes(env, slot);
	if (n_bytecodes)
		record(HOOK_RECORD_MORE, HOOK_MORE_BYTECODES, slot, n_bytecodes);
	record(HOOK_RECORD_LEAVE, id, slot, 0);
}

/* --- counted in a tree -------------------------------------------------------------------- */

/* As weir_enter_tree (events.c), but that no return address is replaced. */
static bool enter_tree(uint32_t id, uintptr_t slot)
{
	struct thread *t = weir_thread;
	struct chain *c = t ? chain_now(t) : NULL;
	struct hook_tree *tree;
	struct hook_entry *e, *taken;
	uintptr_t mark;
	uint64_t now;

	if (unlikely(!c) || unlikely(slot - c->start >= c->bytes) ||
		unlikely(!(++t->n_entries & (LOOK_AROUND_ENTRIES - 1))))
		return false;
	e = *(struct hook_entry *volatile *)&c->top;
	if (unlikely(!is_in_block(e)) || unlikely(slot >= entry_sp(e - 1)))
		return false;
	mark = entry_mark(e);
	*(volatile uint32_t *)&e->node = e[-1].node;
	hook_tree_note(e, HOOK_TREE_ENTERING, 0);
	entry_set_not_sp(e, mark);
	taken = take_entry(c);
	tree = tree_now(t);
	if (unlikely(taken != e) || unlikely((uintptr_t)e->not_sp != mark) || unlikely(!tree) ||
		unlikely(c->tree != tree)) {
		give_entry(c, taken); /* or a handler had it meanwhile */
		return false;
	}
	now = ticks_now();
	e->ticks = now;
	e->id = id;
	if (unlikely(!hook_tree_enter(tree, e, id, now))) {
		give_entry(c, e);
		return false;
	}
	*(volatile uint64_t *)&e->ret = 0;
	if (unlikely(*(struct hook_tree *volatile *)&c->tree != tree))
		e->node = HOOK_TREE_ROOT; /* a handler has forked, and this is the child */
	return true;
}

/* The innermost open call is one of the method without a return address. */
static inline bool is_call_of(const struct hook_entry *e, uint32_t id)
{
	return ((uintptr_t)e & (HOOK_BLOCK_BYTES - 1)) != HOOK_ENTRY_OFFSET && !e->ret &&
	       e->id == id && e->not_sp > HOOK_LEFT;
}

static bool leave_tree(uint32_t id, uintptr_t slot)
{
	struct thread *t = weir_thread;
	struct chain *c = t ? chain_now(t) : NULL;
	struct hook_tree *tree;
	struct hook_entry *e;

	if (unlikely(!c) || unlikely(slot - c->start >= c->bytes))
		return false;
	e = *(struct hook_entry *volatile *)&c->top - 1;
	if (unlikely(!is_call_of(e, id)))
		return false;
	hook_tree_note(e, HOOK_TREE_LEAVING, 0);
	tree = tree_now(t);
	if (unlikely(!tree) || unlikely(c->tree != tree)) {
		*(volatile uint64_t *)&e->ret = 0;
		return false;
	}
	hook_tree_leave(tree, e, ticks_now());
	give_entry(c, e);
	return true;
}

static void enter_tree_late(uint32_t id, uintptr_t *slot)
{
	if (java_is_wanted())
		tree_enter_late(id, slot);
	else
		java_give_back();
}

static inline bool is_tree(void)
{
	const struct hook_control *control = library.control;

	return control && control->mode == HOOK_MODE_TREE;
}

/* --- what is called ------------------------------------------------------------------------ */

void java_enter(void *env, void *class, int32_t id)
{
	uintptr_t *slot = __builtin_frame_address(0);

	(void)class;
	if (!is_tree())
		record_enter(env, (uint32_t)id, slot);
	else if (id != JAVA_NO_METHOD && !enter_tree((uint32_t)id, (uintptr_t)slot))
		enter_tree_late((uint32_t)id, slot);
}

static inline void leave(const void *env, uint32_t id, uintptr_t *slot, uint64_t n_bytecodes)
{
	if (!is_tree())
		record_leave(env, id, slot, n_bytecodes);
	else if (id != JAVA_NO_METHOD && !leave_tree(id, (uintptr_t)slot) && java_is_wanted())
		tree_leave_late(id, slot);
}

void java_leave(void *env, void *class, int32_t id)
{
	(void)class;
	leave(env, (uint32_t)id, __builtin_frame_address(0), 0);
}

void java_done(void *env, void *class, int32_t id, int64_t n_bytecodes)
{
	(void)class;
	leave(env, (uint32_t)id, __builtin_frame_address(0), (uint64_t)n_bytecodes);
}
#endif
