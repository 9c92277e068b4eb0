/* SPDX-License-Identifier: MIT */
/*
 * Entries and exits. The fast functions write one record and one entry; whatever is out of the
 * ordinary (a new thread, another stack, a full part of the ring, calls that ended without
 * returning) goes to the late ones, which have signals blocked.
 *
 * Order matters, because a signal handler may call hooked functions at any point:
 * - an entry and a record are taken by one instruction each, and are nobody else's until complete;
 * - the true return address is in the entry before the slot's address replaces it on the stack;
 * - `top` moves down only after the entry has been read for the last time.
 */
#include "ring.h"

#define SLOW_TICKS_MAX	 (1u << 17) /* more was spent waiting, or elsewhere */
#define DESCRIPTOR_BYTES 8 /* before the trampoline's call: u32 id, u8 action, u8 detail, u16 */

struct descriptor {
	uint32_t id;
	uint8_t action, detail;
	uint16_t reserved;
};

static inline const struct descriptor *descriptor_of(uintptr_t after_call)
{
	return (const struct descriptor *)(after_call - HOOK_CALL_BYTES - DESCRIPTOR_BYTES);
}

KEEPS_REGISTERS bool record_nested(
	struct thread *t, struct chain *c, uintptr_t slot, uint64_t head, uint64_t data)
{
	struct writer *w = c->writers, *last = c->writers + N_WRITERS - 1;

	while (w < last && w[1].slot)
		w++;
	if (w == last || writer_is_over(w, slot))
		return false;
	return record_as(t, w + 1, slot, head, data);
}

/* The word that is being replaced leads to the entry below: a hooked function jumped to this one
 * instead of calling it. */
static inline bool is_tail_call(const struct hook_entry *e, const uintptr_t *slot)
{
	return entry_sp(e - 1) == (uintptr_t)slot && *slot == slot_address(e - 1);
}

/* As long as it is not marked with its place on the stack, nobody takes it for a call that is over;
 * as long as it has no id, its end is not recorded. */
static inline void fill_entry(struct hook_entry *e, uintptr_t *slot, uint32_t id)
{
	*(volatile uint64_t *)&e->ret = *slot;
	*(volatile uint32_t *)&e->id = id;
	*(volatile uintptr_t *)slot = slot_address(e);
	entry_set_not_sp(e, ~(uintptr_t)slot);
}

KEEPS_REGISTERS void weir_enter(uintptr_t after_call, uintptr_t *slot)
{
	struct thread *t = weir_thread;
	struct chain *c;
	struct hook_entry *e;
	uint32_t id;

	if (unlikely(!t))
		goto slow;
	c = chain_now(t);
	if (unlikely(!*(struct hook_record *volatile *)&t->limit) ||
		unlikely((uintptr_t)slot - c->start >= c->bytes))
		goto slow;
	e = take_entry(c);
	if (unlikely(!is_in_block(e)) || (unlikely((uintptr_t)slot >= entry_sp(e - 1)) &&
						 unlikely(!is_tail_call(e, slot)))) {
		c->top = e;
		goto slow;
	}
	fill_entry(e, slot, 0);
	id = descriptor_of(after_call)->id;
	e->ticks = ticks_now();
	if (unlikely(
		    !record_call(t, c, slot, HOOK_HEAD(HOOK_RECORD_ENTER, id, e->ticks), e->ret))) {
		*slot = (uintptr_t)e->ret;
		give_entry(c, e);
		goto slow;
	}
	*(volatile uint32_t *)&e->id = id;
	return;
slow:
	weir_enter_slow(after_call, slot);
}

KEEPS_REGISTERS void weir_leave(uintptr_t *slot)
{
	struct hook_entry *e = entry_of_slot(*slot);
	struct thread *t = weir_thread;
	struct chain *c = block_of(e)->chain;
	uint64_t now;

	/* When nothing is recorded the counter is not read: strict seccomp forbids even that. */
	if (unlikely(!t) || unlikely(!t->limit)) {
		weir_leave_slow(slot, e);
		return;
	}
	now = ticks_now();
	if (unlikely(t->chain != c) || unlikely(c->top != e + 1) ||
		unlikely(!record_call(t, c, slot, HOOK_HEAD(HOOK_RECORD_LEAVE, e->id, now), 0))) {
		weir_leave_slow(slot, e);
		return;
	}
	*(volatile uint32_t *)&e->id =
		0; /* its end is recorded: a handler may jump away from here */
	*slot = (uintptr_t)e->ret;
	give_entry(c, e);
}

/* The same for a call without a return address. */
static inline void fill_entry_alone(struct hook_entry *e, uint32_t id)
{
	*(volatile uint64_t *)&e->ret = 0;
	*(volatile uint32_t *)&e->id = id;
	entry_set_not_sp(e, entry_mark(e));
}

/* --- the same, counted in a tree ---------------------------------------------------------- */

/* Before it is taken, so that a handler that jumps away right after leaves one that can be told to
 * be over, and one that makes calls finds out by whom. */
static inline void prepare_entry(struct hook_entry *e, uintptr_t *slot)
{
	*(volatile uint32_t *)&e->node = e[-1].node;
	hook_tree_note(e, HOOK_TREE_ENTERING, 0);
	entry_set_not_sp(e, ~(uintptr_t)slot);
}

KEEPS_REGISTERS void weir_enter_tree(uintptr_t after_call, uintptr_t *slot)
{
	struct thread *t = weir_thread;
	struct hook_tree *tree;
	struct chain *c;
	struct hook_entry *e, *taken;
	uint64_t now;
	uint32_t id;

	if (unlikely(!t))
		goto slow;
	c = chain_now(t);
	if (unlikely(!c) || unlikely((uintptr_t)slot - c->start >= c->bytes) ||
		unlikely(!(++t->n_entries & (LOOK_AROUND_ENTRIES - 1))))
		goto slow;
	e = *(struct hook_entry *volatile *)&c->top;
	if (unlikely(!is_in_block(e)) ||
		(unlikely((uintptr_t)slot >= entry_sp(e - 1)) && unlikely(!is_tail_call(e, slot))))
		goto slow;
	prepare_entry(e, slot);
	taken = take_entry(c);
	tree = tree_now(t);
	if (unlikely(taken != e) || unlikely((uintptr_t)e->not_sp != ~(uintptr_t)slot) ||
		unlikely(!tree) || unlikely(c->tree != tree)) {
		give_entry(c, taken); /* or a handler had it meanwhile */
		goto slow;
	}
	id = descriptor_of(after_call)->id;
	now = ticks_now();
	e->ticks = now;
	e->id = id;
	if (unlikely(!hook_tree_enter(tree, e, id, now))) {
		give_entry(c, e);
		goto slow;
	}
	*(volatile uint64_t *)&e->ret = *slot;
	*(volatile uintptr_t *)slot = slot_address(e);
	if (unlikely(*(struct hook_tree *volatile *)&c->tree != tree))
		e->node = HOOK_TREE_ROOT; /* a handler has forked, and this is the child */
	return;
slow:
	weir_enter_slow(after_call, slot);
}

KEEPS_REGISTERS void weir_leave_tree(uintptr_t *slot)
{
	struct hook_entry *e = entry_of_slot(*slot);
	struct thread *t = weir_thread;
	struct chain *c = block_of(e)->chain;
	struct hook_tree *tree;
	uintptr_t ret;

	if (unlikely(!t) || unlikely(chain_now(t) != c) || unlikely(c->top != e + 1)) {
		weir_leave_slow(slot, e);
		return;
	}
	ret = (uintptr_t)e->ret;
	*(volatile uintptr_t *)slot = ret;
	hook_tree_note(e, HOOK_TREE_LEAVING, 0);
	tree = tree_now(t);
	if (unlikely(!tree) || unlikely(c->tree != tree)) {
		*(volatile uint64_t *)&e->ret = ret;
		weir_leave_slow(slot, e);
		return;
	}
	hook_tree_leave(tree, e, ticks_now());
	give_entry(c, e);
}

/* --- the slow way ------------------------------------------------------------------------ */

/* Then nothing is done but what the program needs to go on, and no system call is made. */
static inline bool is_off(void)
{
	return library.is_off || !library.control;
}

/* The slow way, with signals blocked. */
struct slow_way {
	uint64_t mask; /* before */
	uint64_t began, blocked;
	uint64_t stalled; /* so far, by the thread */
	const struct hook_record *limit;
};

static void begin_slowly(struct slow_way *s)
{
	struct thread *t = weir_thread;

	s->began = ticks_now();
	signals_block(&s->mask);
	s->blocked = ticks_now();
	if (t)
		t->block_ticks[t->is_measuring] = (uint32_t)(s->blocked - s->began);
	s->limit = t ? t->limit : NULL;
	s->stalled = s->limit ? t->shared->stalled_ticks : 0;
}

/* Each thread goes this way once for many records; so it is part of what they cost, on the two sides of
 * the record that it is gone for. Signals are unblocked when it is over: that takes as long as
 * blocking them did. */
static void count_slow_way(struct thread *t, const struct slow_way *s, bool is_entry)
{
	uint64_t before = t->recorded_at - s->began - (t->shared->stalled_ticks - s->stalled);
	uint64_t after = ticks_now() - t->recorded_at + (s->blocked - s->began);

	if (before < SLOW_TICKS_MAX && after < SLOW_TICKS_MAX) {
		t->slow_outer += (uint32_t)(is_entry ? before : after);
		t->slow_inner += (uint32_t)(is_entry ? after : before);
	}
}

/* The hook that was under way is done, so that its own cost may be looked at. */
static void end_slowly(struct slow_way *s, enum hook_cost_kind kind, bool is_entry, uintptr_t site)
{
	struct thread *t = weir_thread;

	if (t && !t->is_measuring && !is_off()) {
		cost_look(t, kind, site);
		if (s->limit && t->limit != s->limit)
			count_slow_way(t, s, is_entry);
	}
	signals_unblock(&s->mask);
}

static struct hook_record *take_late(struct thread *t)
{
	struct hook_record *r = take_record(t);

	if (r < t->limit)
		return r;
	if (!thread_next_part(t))
		return NULL;
	return take_record(t);
}

void hook_record_write(struct thread *t, enum hook_record_kind kind, uint32_t id, uint64_t data)
{
	struct hook_record *r = take_late(t);
	uint64_t now = ticks_now();

	t->recorded_at = now;
	if (r)
		write_record(r, HOOK_HEAD(kind, id, now), data);
}

static bool is_tree(void)
{
	return library.control->mode == HOOK_MODE_TREE;
}

static void change_chain(struct thread *t, struct chain *c)
{
	if (t->chain->kind == CHAIN_SIGNAL && c->kind != CHAIN_SIGNAL) {
		thread_settle(t, t->chain, UINTPTR_MAX);
		chain_tell_left(t, t->chain);
	}
	t->chain = c;
	c->owner = t->tid;
	c->user = t;
	if (c->number == t->number)
		return;
	t->number = c->number;
	if (!is_tree())
		hook_record_write(t, HOOK_RECORD_MORE, HOOK_MORE_CHAIN, c->number);
}

/* A function that jumps to functions for ever (a loop of tail calls) would take an entry each time:
 * a long run of them is cut down to its first, whose return address is that of all. */
static void shorten_tail_calls(struct thread *t, struct chain *c, uintptr_t *slot)
{
	struct hook_entry *e = c->top;

	while (!c->tree && e - 1 > block_of(e - 1)->chain->first &&
		entry_sp(e - 1) == (uintptr_t)slot && entry_sp(e - 2) == (uintptr_t)slot &&
		((uintptr_t)(e - 2) & (HOOK_BLOCK_BYTES - 1)) > HOOK_ENTRY_OFFSET)
		e--;
	if (e == c->top)
		return;
	*slot = slot_address(e - 1);
	chain_drop_to(t, c, e, ticks_now());
}

/* A chain's open calls are counted in one thread's tree; another thread that goes on with the chain
 * (a coroutine that moved) may begin only when nothing is open any more. */
static bool open_tree(struct thread *t, struct chain *c)
{
	if (c->tree == t->tree)
		return true;
	if (c->top != c->first)
		return false;
	c->tree = t->tree;
	return true;
}

/*
 * The call that jumped to this one, so that the word still leads to its entry: at the same place of the
 * stack, or elsewhere when the return address was moved. If that call was taken to be over, its
 * entry may be given to another any time: the word becomes what it was.
 */
static struct hook_entry *tail_caller(struct thread *t, uintptr_t *slot)
{
	while (is_in_region(*slot)) {
		struct hook_entry *e = entry_of_slot(*slot);

		if (e->not_sp > HOOK_LEFT)
			return e;
		t->shared->n_unhooked++;
		*slot = (uintptr_t)e->ret;
	}
	return NULL;
}

/* The entry of a call, or NULL when it cannot be followed. Of one without a return address (`has_return`)
 * `slot` is where the stack is. */
static struct hook_entry *enter_late(
	struct thread *t, uintptr_t *slot, uint32_t id, bool has_return)
{
	struct chain *c = chain_find(t, (uintptr_t)slot);
	struct hook_entry *e, *caller;

	if (!c)
		return NULL;
	caller = has_return ? tail_caller(t, slot) : NULL;
	chain_trim(c);
	thread_settle(t, c, (uintptr_t)slot);
	if (c != t->chain)
		change_chain(t, c);
	chain_drop_stale(t, c, (uintptr_t)slot, caller);
	if (!is_in_block(c->top)) {
		if (has_return)
			shorten_tail_calls(t, c, slot);
		if (!is_in_block(c->top) && !chain_grow(c))
			return NULL;
	}
	if (is_tree() && !open_tree(t, c))
		return NULL;
	e = take_entry(c);
	e->ticks = ticks_now();
	if (c->tree)
		e->node = hook_tree_enter_late(c->tree, e[-1].node, id, e->ticks);
	if (has_return)
		fill_entry(e, slot, id);
	else
		fill_entry_alone(e, id);
	return e;
}

static void enter_unlocked(uint32_t id, uintptr_t *slot)
{
	struct thread *t = thread_ensure((uintptr_t)slot);
	struct hook_entry *e;
	uintptr_t true_return;

	if (!t) {
		thread_miss_call();
		return;
	}
	true_return = *slot;
	e = enter_late(t, slot, id, true);
	if (!e) {
		t->shared->n_unhooked++;
		return;
	}
	if (!is_tree())
		hook_record_write(t, HOOK_RECORD_ENTER, id, true_return);
	else if (!(t->n_entries & (LOOK_AROUND_ENTRIES - 1)))
		thread_look_around(t);
}

REGPARM void weir_enter_late(uintptr_t after_call, uintptr_t *slot)
{
	struct slow_way s;

	if (is_off())
		return;
	begin_slowly(&s);
	enter_unlocked(descriptor_of(after_call)->id, slot);
	end_slowly(&s, HOOK_COST_CALL, true, 0);
}

REGPARM void weir_leave_late(uintptr_t *slot, struct hook_entry *e)
{
	struct chain *c = block_of(e)->chain;
	struct slow_way s;
	struct thread *t;

	if (is_off()) {
		*slot = (uintptr_t)e->ret; /* nobody takes entries any more */
		return;
	}
	begin_slowly(&s);
	t = thread_ensure((uintptr_t)slot);
	chain_trim(c);
	if (t)
		thread_settle(t, c, (uintptr_t)slot);
	if (t && t->chain != c)
		change_chain(t, c);
	*slot = (uintptr_t)e->ret;
	if (e->not_sp > HOOK_LEFT)
		chain_leave(t, c, e);
	else if (t) /* it was taken to be over, because its return address was moved */
		t->shared->n_unhooked++;
	end_slowly(&s, HOOK_COST_CALL, false, 0);
}

void record_late(enum hook_record_kind kind, uint32_t id, uintptr_t *slot, uint64_t data,
	const struct patch *p)
{
	struct slow_way s;
	struct thread *t;
	struct chain *c;

	begin_slowly(&s);
	t = thread_ensure((uintptr_t)slot);
	c = t ? chain_find(t, (uintptr_t)slot) : NULL;
	if (!t && kind == HOOK_RECORD_ENTER)
		thread_miss_call();
	if (c) {
		thread_settle(t, c, (uintptr_t)slot);
		if (c != t->chain)
			change_chain(t, c);
		hook_record_write(t, kind, id, data);
	}
	if (p)
		end_slowly(&s, HOOK_COST_INSTRUMENT, kind == HOOK_RECORD_ENTER, p->site);
	else
		signals_unblock(&s.mask);
}

/* --- calls without a return address, in a tree -------------------------------------------- */

void tree_enter_late(uint32_t id, uintptr_t *slot)
{
	struct thread *t;
	uint64_t mask;

	signals_block(&mask);
	t = thread_ensure((uintptr_t)slot);
	if (!t)
		thread_miss_call();
	else if (!enter_late(t, slot, id, false))
		t->shared->n_unhooked++;
	else if (!(t->n_entries & (LOOK_AROUND_ENTRIES - 1)))
		thread_look_around(t);
	signals_unblock(&mask);
}

/* The innermost one of this function that nothing with a return address lies above; NULL: there is none. */
static struct hook_entry *find_alone(struct chain *c, uint32_t id, uintptr_t sp)
{
	struct hook_entry *e = c->top;

	while ((e = chain_below(c, e))) {
		if (!e->ret && e->id == id && e->not_sp > HOOK_LEFT)
			return e;
		if (e->ret && e->not_sp > HOOK_LEFT && entry_sp(e) > sp)
			return NULL;
	}
	return NULL;
}

void tree_leave_late(uint32_t id, uintptr_t *slot)
{
	struct thread *t;
	struct chain *c;
	struct hook_entry *e;
	uint64_t mask;

	signals_block(&mask);
	t = thread_ensure((uintptr_t)slot);
	c = t ? chain_find(t, (uintptr_t)slot) : NULL;
	if (c) {
		chain_trim(c);
		thread_settle(t, c, (uintptr_t)slot);
		if (c != t->chain)
			change_chain(t, c);
		e = find_alone(c, id, (uintptr_t)slot);
		if (e)
			chain_drop_to(t, c, e, ticks_now());
	}
	signals_unblock(&mask);
}

/* --- entries with arguments -------------------------------------------------------------- */

static uint64_t argument(const struct hook_regs *regs, unsigned i)
{
#ifdef __x86_64__
	static const uint8_t numbers[] = {5, 4, 1, 2}; /* rdi, rsi, rdx, rcx */

	return regs->r[numbers[i]];
#else
	return ((const uint32_t *)(uintptr_t)regs->r[4])[1 + i];
#endif
}

static uint64_t amount_of(enum hook_amount amount, const struct hook_regs *regs)
{
	switch (amount) {
	case HOOK_AMOUNT_ARG0:
		return argument(regs, 0);
	case HOOK_AMOUNT_ARG1:
		return argument(regs, 1);
	case HOOK_AMOUNT_ARG2:
		return argument(regs, 2);
	case HOOK_AMOUNT_ARG0_ARG1:
		return argument(regs, 0) * argument(regs, 1);
	case HOOK_AMOUNT_ARG1_ARG2:
		return argument(regs, 1) * argument(regs, 2);
	}
	return 0;
}

/* A part is filled up with padding when the stack does not fit into what is left of it. */
static struct hook_record *take_many(struct thread *t, size_t n)
{
	struct hook_record *r;

	if (n > library.control->part_bytes / sizeof(*r) / 2)
		return NULL;
	for (int i = 0; i < 2; i++) {
		r = t->pos;
		if (r < t->limit && (size_t)(t->limit - r) >= n) {
			t->pos = r + n;
			return r;
		}
		if (r < t->limit) {
			size_t left = (size_t)(t->limit - r);

			t->pos = t->limit;
			write_record(r, HOOK_HEAD(HOOK_RECORD_MORE, HOOK_MORE_PAD, ticks_now()),
				left - 1);
		}
		if (!thread_next_part(t))
			return NULL;
	}
	return NULL;
}

#define STACK_COPY_BYTES 8192u

/* So much that two stacks, each behind its record and registers, fit into a part of the ring: in
 * 32-bit programs that is a little less. */
static size_t copy_bytes_max(void)
{
	size_t room = library.control->part_bytes / 2 - sizeof(struct hook_record) -
		      sizeof(struct hook_regs);

	return room < STACK_COPY_BYTES ? room : STACK_COPY_BYTES;
}

/* Bytes from `sp` on that are surely of its stack; 0 when that is not known. */
static size_t stack_bytes(const struct chain *c, uintptr_t sp)
{
	/* The end of a stack that nobody told us of: behind the word of its first call. */
	uintptr_t end = c->kind == CHAIN_GUESSED ? c->high + sizeof(uintptr_t) : c->high;

	if (sp < c->low || sp >= end)
		return 0;
	return end - sp < copy_bytes_max() ? end - sp : copy_bytes_max();
}

static void write_stack(struct thread *t, uintptr_t *slot, struct hook_regs *regs, uint64_t ret)
{
	uintptr_t start = (uintptr_t)slot;
	size_t n_bytes = stack_bytes(t->chain, start);
	size_t n = (sizeof(*regs) + n_bytes + sizeof(struct hook_record) - 1) /
		   sizeof(struct hook_record);
	struct hook_record *r = take_many(t, n + 1);
	uint8_t *to = (uint8_t *)(r + 1);

	if (!r) {
		t->shared->n_dropped++;
		return;
	}
	regs->stack_addr = start;
	bytes_copy(to, regs, sizeof(*regs));
	bytes_copy(to + sizeof(*regs), (const void *)start, n_bytes);
	/* The copy has the slot's address where the caller's was: the entry's record has that. */
	if (n_bytes >= sizeof(uintptr_t))
		bytes_copy(to + sizeof(*regs), &ret, sizeof(uintptr_t));
	write_record(r, HOOK_HEAD(HOOK_RECORD_MORE, HOOK_MORE_STACK, ticks_now()),
		sizeof(*regs) + n_bytes);
}

REGPARM void weir_enter_args(uintptr_t after_call, uintptr_t *slot, struct hook_regs *regs)
{
	const struct descriptor *d = descriptor_of(after_call);
	uint64_t ret = *slot;
	struct slow_way s;
	struct thread *t;

	if (is_off())
		return;
	begin_slowly(&s);
	enter_unlocked(d->id, slot);
	t = weir_thread;
	if (t && t->limit && !is_tree()) {
		if (d->action == HOOK_ACTION_AMOUNT)
			hook_record_write(t, HOOK_RECORD_AMOUNT, d->id,
				amount_of((enum hook_amount)d->detail, regs));
		else if (d->action == HOOK_ACTION_STACK)
			write_stack(t, slot, regs, ret);
	}
	if (d->action == HOOK_ACTION_AMOUNT)
		end_slowly(&s, HOOK_COST_AMOUNT, true, 0);
	else
		signals_unblock(&s.mask);
}

REGPARM void weir_note(uintptr_t after_call, uintptr_t *slot, struct hook_regs *regs)
{
	const struct descriptor *d = descriptor_of(after_call);

	if (is_off())
		return;
	if (d->detail != HOOK_OWN_MAKECONTEXT) {
		const uintptr_t args[HOOK_NOTE_ARGS] = {(uintptr_t)argument(regs, 0),
			(uintptr_t)argument(regs, 1), (uintptr_t)argument(regs, 2),
			(uintptr_t)argument(regs, 3)};

		library_note_call((enum hook_own)d->detail, args, (uintptr_t)slot);
	} else {
		/* ucontext_t: uc_flags, uc_link, uc_stack {ss_sp, ss_flags, ss_size} */
		const uintptr_t *context = (const uintptr_t *)(uintptr_t)argument(regs, 0);

		chain_add_stack(context[2], context[4]);
	}
}
