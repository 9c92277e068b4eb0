/* SPDX-License-Identifier: MIT */
/*
 * The events in full. entry.S comes here when its fast way is not open: another stack, another thread,
 * frames that are gone, a child that is new, foreign code on the way.
 *
 * The cost since the last event belongs to the frame that was open. It counts as charged before the node
 * gets it: should the thread end in between, the reader finds the rest by the block counts.
 */
#include "runtime.h"

#define TAIL_STEPS 64 /* back along a chain of tail calls, for one that comes round */

_Static_assert(sizeof(struct state) == STATE_BYTES, "entry.S has this number");
_Static_assert(offsetof(struct state, cache) == STATE_CACHE, "entry.S has this number");
_Static_assert(offsetof(struct state, cost) == STATE_HOT && offsetof(struct state, top) == 1112 &&
		       offsetof(struct state, nodes) == 1144 && offsetof(struct state, self) == 1184,
	"entry.S has these numbers");
_Static_assert(sizeof(struct frame) == 32 && sizeof(struct count_node) == 64,
	"entry.S has these numbers");
_Static_assert(offsetof(struct count_thread, current) == 12, "entry.S has this number");

static uint64_t frame_sp(const struct frame *f)
{
	return (f->sp + 7) & ~(uint64_t)7;
}

static uint32_t frame_flags(const struct frame *f)
{
	return (uint32_t)(frame_sp(f) - f->sp);
}

static bool is_foreign(const struct frame *f)
{
	return frame_flags(f) & FRAME_FOREIGN;
}

static bool is_first(const struct frame *f)
{
	return f->sp == UINT64_MAX;
}

static uint64_t sum(const uint64_t *stripes)
{
	const volatile uint64_t *v = stripes;

	return v[0] + v[1] + v[2] + v[3];
}

static void clock_run(struct frame *f)
{
	if (is_foreign(f) && !is_first(f))
		f->ticks = ticks_now();
}

static void clock_stop(struct frame *f)
{
	uint64_t ticks;

	if (is_first(f) || !is_foreign(f) || !f->ticks)
		return;
	ticks = ticks_now() - f->ticks;
	f->ticks = 0;
	f->node->cycles += ticks;
	f->self += ticks;
}

static void charge(struct state *s, bool has_cycles)
{
	struct frame *f = s->top;
	uint64_t delta = sum(s->cost) - s->last_cost;

	s->last_cost += delta;
	f->node->cost += delta;
	if (is_foreign(f) && !is_first(f))
		return;
	f->self += delta;
	if (has_cycles) {
		delta = sum(s->cycles) - s->last_cycles;
		s->last_cycles += delta;
		f->node->cycles += delta;
	}
}

/* The innermost frame is over. */
static void pop(struct state *s)
{
	struct frame *f = s->top;
	uint32_t flags = frame_flags(f);
	struct count_node *n = f->node;

	clock_stop(f);
	if (!(flags & FRAME_LOST)) {
		if (f->self < n->min)
			n->min = f->self;
		if (f->self > n->max)
			n->max = f->self;
	}
	s->top = f - 1;
	if (flags & FRAME_CALLBACK)
		clock_run(f - 1);
}

/* Drops frames below the stack pointer of an event in the midst of a function. */
static void drop_below(struct state *s, uint64_t sp)
{
	while (!is_first(s->top) &&
		(frame_sp(s->top) < sp || (is_foreign(s->top) && frame_sp(s->top) == sp)))
		pop(s);
}

/* Those of a function that begins here are gone, too. */
static void drop_at(struct state *s, uint64_t sp)
{
	while (!is_first(s->top) && frame_sp(s->top) <= sp)
		pop(s);
}

static void cache_put(struct state *s, const struct count_node *parent, struct count_node *node)
{
	uint64_t key = node->key;
	uint32_t i = (uint32_t)(((key + (uint64_t)parent) * CACHE_FACTOR) >> 33) & (N_CACHE - 1);

	s->cache[i] = (struct cache_line){parent, s->top->node, key, node};
}

/*
 * Functions that jump to each other without end (interpreters, state machines) would make a tree without
 * end: one that is in the chain of jumps already is entered again.
 */
static struct count_node *find_in_chain(
	const struct state *s, struct count_node *tail, uint64_t key, uint64_t site)
{
	struct count_node *n = tail;

	for (int i = 0; i < TAIL_STEPS && n != s->top->node && n != s->nodes; i++) {
		if (n->key == key && n->site == site)
			return n;
		n = s->nodes + n->parent;
	}
	return NULL;
}

static void push(
	struct state *s, struct count_node *parent, uint64_t key, uint64_t site, uint64_t sp)
{
	bool is_callback = is_foreign(s->top) && !is_first(s->top);
	bool is_tail = parent != s->top->node;
	struct count_node *n = is_tail ? find_in_chain(s, parent, key, site) : NULL;
	struct frame *f;

	if (!n)
		n = count_node_enter(s, parent, key, site);
	if (!n || s->top >= s->limit)
		count_calls_lost(1);
	if (s->top >= s->limit)
		return;
	if (n) {
		n->calls++;
		if (!is_tail && !is_callback)
			parent->last_child = (uint32_t)(n - s->nodes);
		if (!is_callback)
			cache_put(s, parent, n);
	}
	if (is_callback)
		clock_stop(s->top);
	f = s->top + 1;
	f->node = n ? n : s->top->node;
	f->self = 0;
	f->ticks = 0;
	f->sp = sp - (n ? 0 : FRAME_LOST) - (is_callback ? FRAME_CALLBACK : 0) -
		(key & COUNT_KEY_FOREIGN ? FRAME_FOREIGN : 0);
	s->top = f;
	if (key & COUNT_KEY_FOREIGN)
		clock_run(f);
}

static void enter(struct state *s, uint64_t sp, uint64_t key, bool has_cycles)
{
	uint64_t ret = *(const uint64_t *)sp;
	bool is_tail = s->tail_sp == sp && s->tail_ret == ret;
	struct count_node *tail = s->tail_node;

	charge(s, has_cycles);
	drop_at(s, sp);
	push(s, is_tail ? tail : s->top->node, key, ret & s->site_mask, sp);
}

static void leave(struct state *s, uint64_t sp, bool has_cycles, bool is_tail)
{
	struct count_node *n;

	charge(s, has_cycles);
	drop_below(s, sp);
	if (is_first(s->top) || is_foreign(s->top) || frame_sp(s->top) != sp)
		return;
	n = s->top->node;
	pop(s);
	if (!is_tail)
		return;
	s->tail_node = n;
	s->tail_ret = *(const uint64_t *)sp;
	s->tail_sp = sp;
}

static void foreign_done(struct state *s, uint64_t sp, bool has_cycles)
{
	charge(s, has_cycles);
	drop_below(s, sp); /* its own frame, too */
}

static void foreign(struct state *s, uint64_t sp, uint64_t key, bool has_cycles)
{
	charge(s, has_cycles);
	drop_below(s, sp);
	push(s, s->top->node, key | COUNT_KEY_FOREIGN, 0, sp);
}

static void do_event(struct state *s, uint32_t event, uint64_t sp, uint64_t key)
{
	bool has_cycles = event & EVENT_CYCLES;
	uint64_t tail_sp = s->tail_sp;

	s->tail_sp = 0;
	switch (event & ~(uint32_t)EVENT_CYCLES) {
	case EVENT_ENTER:
		s->tail_sp = tail_sp;
		enter(s, sp, key, has_cycles);
		s->tail_sp = 0;
		break;
	case EVENT_LEAVE:
		leave(s, sp, has_cycles, false);
		break;
	case EVENT_TAIL:
		leave(s, sp, has_cycles, true);
		break;
	case EVENT_RESYNC:
		charge(s, has_cycles);
		drop_below(s, sp);
		break;
	case EVENT_FOREIGN:
		foreign(s, sp, key, has_cycles);
		break;
	case EVENT_FOREIGN_DONE:
		foreign_done(s, sp, has_cycles);
		break;
	default:
		break;
	}
	state_thread(s)->current = (uint32_t)(s->top->node - s->nodes);
}

/* The old stack's open foreign call (swapcontext and the like) does not last until we are back. A
 * handler on a signal stack gives no sign when it is over: that clock runs on. */
static bool change_stack(struct state *s, uint64_t sp)
{
	struct frame *old = s->top;
	uint32_t from = s->stack;

	if (!count_stack_switch(s, sp))
		return false;
	if (!((s->stacks[from].flags | s->stacks[s->stack].flags) & STACK_SIGNAL) && s->top != old) {
		clock_stop(old);
		clock_run(s->top);
	}
	return true;
}

/* Somebody who is at work and will come back to it? A handler that left by longjmp has not. */
static bool is_at_work(const struct state *s, uint64_t here)
{
	uint64_t busy = s->busy;

	if (!busy)
		return false;
	return here - s->lo >= s->size || busy >= here;
}

struct search {
	struct state *state; /* that of the thread, when found */
	uint64_t sp;
};

/* A thread that is new, a child of fork, or a stack that is new. Under the lock. */
static void search(void *arg)
{
	struct search *look = arg;
	struct state *s = look->state;
	struct slot *slot;

	if (!s) {
		if (!count_gs_get())
			return;
		count_forked(look->sp);
		s = look->state = count_gs_state();
		if (!count_gs_get() || !s->self) {
			look->state = NULL;
			return;
		}
	}
	if (s->tid != (uint32_t)raw_call(SYS_gettid, 0)) {
		slot = count_thread_open(look->sp);
		look->state = slot ? count_slot_state(slot) : NULL;
		return;
	}
	if (look->sp - s->lo < s->size)
		return;
	s->busy = look->sp;
	if (!count_stack_find(s, look->sp))
		look->state = NULL;
	s->busy = 0;
}

void count_event(struct state *s, uint32_t event, uint64_t sp, uint64_t key)
{
	uint64_t here = (uint64_t)__builtin_frame_address(0);

	if (!count_library.is_ready || (s && s->busy == UINT64_MAX))
		return;
	if (s && s->fs == count_fs_get() && is_at_work(s, here))
		return;
	if (!s || sp - s->lo >= s->size) {
		bool is_known = false;

		if (s && s->fs == count_fs_get()) {
			s->busy = here;
			is_known = change_stack(s, sp);
			s->busy = 0;
		}
		if (!is_known) {
			struct search look = {s, sp};

			count_apart(search, &look);
			s = look.state;
			if (!s)
				return;
		}
	}
	s->busy = here;
	do_event(s, event, sp, key);
	s->busy = 0;
}
