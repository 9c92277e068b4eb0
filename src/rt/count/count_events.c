/* SPDX-License-Identifier: MIT */
/*
 * The events in full. entry.S comes here when its fast way is not open: another stack, another
 * thread, frames that are gone, a child that is new, foreign code on the way.
 *
 * The cost since the last event belongs to the frame that was open. It counts as charged before the
 * node gets it: should the thread end in between, the reader finds the rest by the block counts.
 */
#include "runtime.h"

#define IN_C	     1u /* in state.busy */
#define SWITCH_TRIES 4
#define TAIL_STEPS   64 /* back along a chain of tail calls, for one that comes round */

_Static_assert(sizeof(struct state) == STATE_BYTES, "entry.S has this number");
_Static_assert(offsetof(struct state, cache) == STATE_CACHE, "entry.S has this number");
_Static_assert(offsetof(struct state, cost) == STATE_HOT && offsetof(struct state, top) == 1112 &&
		       offsetof(struct state, nodes) == 1144 &&
		       offsetof(struct state, self) == 1184,
	"entry.S has these numbers");
_Static_assert(
	sizeof(struct frame) == 32 && sizeof(struct count_node) == 64, "entry.S has these numbers");
_Static_assert(offsetof(struct count_thread, current_node) == 24, "entry.S has this number");

/* Handlers look at it: nothing else is moved across. */
static void set_busy(struct state *s, uint64_t busy)
{
	__asm__ volatile("" ::: "memory");
	*(volatile uint64_t *)&s->busy = busy;
	__asm__ volatile("" ::: "memory");
}

static uint64_t sum(const uint64_t *stripes)
{
	const volatile uint64_t *v = stripes;

	return v[0] + v[1] + v[2] + v[3];
}

static void clock_run(struct frame *f)
{
	if (frame_is_foreign(f))
		f->ticks = count_ticks();
}

static void clock_stop(struct frame *f)
{
	uint64_t ticks;

	if (!frame_is_foreign(f) || !f->ticks)
		return;
	ticks = count_library.is_timeless ? 0 : ticks_now() - f->ticks;
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
	if (frame_is_foreign(f))
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

static bool is_below(const struct frame *f, uint64_t sp)
{
	return !frame_is_first(f) &&
	       (frame_sp(f) < sp || (frame_is_foreign(f) && frame_sp(f) == sp));
}

/* Those of a function that begins here are gone, too. */
static bool is_at(const struct frame *f, uint64_t sp)
{
	return !frame_is_first(f) && frame_sp(f) <= sp;
}

/*
 * Drops frames that are gone. They were left in the midst of a call, and so were their callers but for
 * the last one, which goes on: where control has come by a jump (`is_landing`) not behind that call. Elsewhere
 * it may have come back in a way that was not seen.
 */
static void drop(struct state *s, uint64_t sp, bool (*is_gone)(const struct frame *, uint64_t),
	bool is_landing)
{
	for (; is_gone(s->top, sp); pop(s))
		if (is_landing || is_gone(s->top - 1, sp))
			count_left(s, s->top);
}

static void cache_put(struct state *s, const struct count_node *parent, struct count_node *node)
{
	uint64_t key = node->key | (parent == s->top->node ? 0 : KEY_TAIL);
	uint64_t i = ((key * CACHE_FACTOR) >> 20 ^ (uint64_t)parent) / sizeof(struct cache_line);
	struct cache_line *line = &s->cache[i & (N_CACHE - 1)];

	if (s->site_mask)
		return;
	if (line->parent != parent || line->key != key)
		s->cache[(i ^ 1) & (N_CACHE - 1)] = *line; /* entry.S looks there, too */
	*line = (struct cache_line){parent, key, node, s->top->node, {0}};
}

/*
 * Functions that jump to each other without end (interpreters, state machines) would make a tree
 * without end: one that is in the chain of jumps already is entered again.
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
	bool is_callback = frame_is_foreign(s->top);
	bool is_tail = parent != s->top->node;
	/* The fast ways of such calls would look at the clock. */
	bool is_unclocked = (key & COUNT_KEY_FOREIGN) && count_library.is_timeless;
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
		/* Not in the midst of a fast way, which may be reading that line. */
		if (!is_callback && !s->nest.is_at_work && !is_unclocked)
			cache_put(s, parent, n);
	}
	if (is_callback)
		clock_stop(s->top);
	f = s->top + 1;
	f->node = n ? n : s->top->node;
	f->self = 0;
	f->ret = key & COUNT_KEY_FOREIGN ? 0 : *(const uint64_t *)sp;
	f->sp = sp - (n && !is_unclocked ? 0 : FRAME_LOST) - (is_callback ? FRAME_CALLBACK : 0) -
		(key & COUNT_KEY_FOREIGN ? FRAME_FOREIGN : 0);
	s->top = f;
	if (key & COUNT_KEY_FOREIGN)
		clock_run(f);
}

static void enter(struct state *s, uint64_t sp, uint64_t key, bool has_cycles)
{
	uint64_t ret = *(const uint64_t *)sp;
	/* The caller has executed a block since when what was jumped to has returned, unseen. */
	bool is_tail = s->tail_sp == sp && s->tail_ret == ret && sum(s->cost) == s->last_cost;
	struct count_node *tail = s->tail_node;

	charge(s, has_cycles);
	drop(s, sp, is_at, false);
	push(s, is_tail ? tail : s->top->node, key, ret & s->site_mask, sp);
}

/*
 * Unwinders and longjmp that are counted, too, leave their frames and others for a place in the midst of a
 * function. Then no frame is here, or one that was to return to another place. Some functions return by
 * a jump, with their return address off the stack.
 */
static bool is_jump(const struct state *s, uint64_t sp, bool is_tail)
{
	const struct frame *f = s->top;

	while (is_below(f, sp))
		f--;
	if (f == s->top || (is_tail && f == s->top - 1 && sp == frame_sp(s->top) + sizeof(sp)))
		return false;
	return frame_is_first(f) || frame_is_foreign(f) || frame_sp(f) != sp ||
	       (f->ret && f->ret != *(const uint64_t *)sp);
}

static void leave(struct state *s, uint64_t sp, bool has_cycles, bool is_tail)
{
	struct count_node *n;

	charge(s, has_cycles);
	if (is_jump(s, sp, is_tail)) {
		drop(s, sp, is_tail ? is_below : is_at, true);
		return;
	}
	drop(s, sp, is_below, false);
	if (frame_is_first(s->top) || frame_is_foreign(s->top) || frame_sp(s->top) != sp)
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
	drop(s, sp, is_below, false); /* its own frame, too */
}

static void foreign(struct state *s, uint64_t sp, uint64_t key, bool has_cycles)
{
	charge(s, has_cycles);
	drop(s, sp, is_below, false);
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
		drop(s, sp, is_below, true);
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
	state_thread(s)->current_node = (uint64_t)s->top->node;
}

/* What ran until now ran on the old stack; or behind a handler that is over, on the one it interrupted,
 * which is charged then. */
static void charge_old_stack(struct state *s, bool has_cycles)
{
	if (!frame_is_first(s->top) || !(s->stacks[s->stack].flags & STACK_SIGNAL))
		charge(s, has_cycles);
}

/* The old stack's open foreign call (swapcontext and the like) does not last until we are back. A
 * handler on a signal stack gives no sign when it is over: that clock runs on. */
static bool change_stack(struct state *s, uint64_t sp, bool is_new)
{
	struct frame *old = s->top;
	uint32_t from = s->stack;

	if (is_new ? !count_stack_find(s, sp) : !count_stack_switch(s, sp))
		return false;
	if (!((s->stacks[from].flags | s->stacks[s->stack].flags) & STACK_SIGNAL) &&
		s->top != old) {
		clock_stop(old);
		clock_run(s->top);
	}
	return true;
}

/* Somebody who is at work and will come back to it? Whoever was left by longjmp will not. */
static bool is_at_work(const struct state *s, uint64_t sp)
{
	return sp - s->lo >= s->size || sp < s->busy;
}

struct search {
	struct state *state; /* that of the thread, when found */
	uint64_t sp;
	bool has_cycles;
};

static void use_stack(struct search *look)
{
	struct state *s = look->state;

	if (look->sp - s->lo < s->size)
		return;
	set_busy(s, look->sp | IN_C);
	charge_old_stack(s, look->has_cycles);
	if (!change_stack(s, look->sp, true))
		look->state = NULL;
	set_busy(s, 0);
}

/* The same without a system call. */
static void search_confined(struct search *look)
{
	if (look->state && look->state->fs == count_fs_get()) {
		use_stack(look);
		return;
	}
	/* A child of fork has a state that was wiped. */
	if (!look->state)
		count_child_is_lost();
	else
		count_thread_join_lost();
	look->state = NULL;
}

/* A thread that is new, a child of fork, or a stack that is new. Under the lock. */
static void search(void *arg)
{
	struct search *look = arg;
	struct state *s = look->state;
	struct slot *slot;

	if (count_library.is_confined) {
		search_confined(look);
		return;
	}
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
	if (s->tid != raw_tid()) {
		slot = count_thread_open(look->sp);
		look->state = slot ? count_slot_state(slot) : NULL;
		return;
	}
	use_stack(look);
}

/* The state of this thread, with this stack in use; or none. */
static struct state *find_state(struct state *s, uint64_t sp, bool has_cycles)
{
	struct search look = {s, sp, has_cycles};
	bool is_known = false;

	if (s && s->fs == count_fs_get()) {
		set_busy(s, sp | IN_C);
		charge_old_stack(s, has_cycles);
		is_known = change_stack(s, sp, false);
		set_busy(s, 0);
	}
	if (!is_known && !count_apart(search, &look))
		return NULL;
	return look.state;
}

/* --- handlers in the midst of a fast way ---------------------------------------------------- */

static void context_save(const struct state *s, struct context *c)
{
	*c = (struct context){s->top, s->limit, s->last_cost, s->last_cycles, s->tail_sp,
		s->tail_ret, s->tail_node, state_thread(s)->current_node};
}

static void context_load(struct state *s, const struct context *c)
{
	s->top = c->top;
	s->limit = c->limit;
	s->last_cost = c->last_cost;
	s->last_cycles = c->last_cycles;
	s->tail_sp = c->tail_sp;
	s->tail_ret = c->tail_ret;
	s->tail_node = c->tail_node;
	state_thread(s)->current_node = c->current_node;
}

static void nest_begin(struct state *s)
{
	struct nest *n = &s->nest;

	n->frames[0] = (struct frame){.node = s->nodes, .sp = UINT64_MAX};
	n->own = (struct context){.top = n->frames,
		.limit = n->frames + N_NEST - 1,
		.last_cost = sum(s->cost),
		.last_cycles = sum(s->cycles)};
	for (int i = 0; i < COUNT_STRIPES; i++) {
		n->cost[i] = s->cost[i];
		n->cycles[i] = s->cycles[i];
	}
	n->owner = s->busy;
}

/* The one it interrupted may have read some of the sums and not yet the others. */
static void nest_end(struct state *s)
{
	struct nest *n = &s->nest;

	for (int i = 0; i < COUNT_STRIPES; i++) {
		s->cost[i] = n->cost[i];
		s->cycles[i] = n->cycles[i];
	}
	n->owner = 0;
}

/* Left by longjmp: what its nodes have got is not to be charged again. */
static void nest_abandon(struct state *s)
{
	struct nest *n = &s->nest;

	if (!n->owner)
		return;
	if (n->is_at_work)
		context_load(s, &n->before);
	n->is_at_work = false;
	s->last_cost += n->own.last_cost - sum(n->cost);
	s->last_cycles += n->own.last_cycles - sum(n->cycles);
	n->owner = 0;
}

static void set_at_work(struct nest *n, bool is_at_work)
{
	__asm__ volatile("" ::: "memory");
	*(volatile bool *)&n->is_at_work = is_at_work;
	__asm__ volatile("" ::: "memory");
}

static bool is_entry(uint32_t event)
{
	event &= ~(uint32_t)EVENT_CYCLES;
	return event == EVENT_ENTER || event == EVENT_FOREIGN;
}

static void nested_event(struct state *s, uint32_t event, uint64_t sp, uint64_t key)
{
	struct nest *n = &s->nest;

	if ((s->busy & IN_C) || n->is_at_work) {
		if (is_entry(event))
			count_calls_lost(1);
		return;
	}
	if (n->owner != s->busy) {
		if (!is_entry(event))
			return;
		nest_begin(s);
	}
	context_save(s, &n->before);
	set_at_work(n, true);
	context_load(s, &n->own);
	do_event(s, event, sp, key);
	context_save(s, &n->own);
	context_load(s, &n->before);
	set_at_work(n, false);
	if (n->own.top == n->frames)
		nest_end(s);
}

void count_event(struct state *s, uint32_t event, uint64_t sp, uint64_t key)
{
	if (!count_library.is_ready || (s && s->busy == UINT64_MAX))
		return;
	if (s && s->busy && s->fs == count_fs_get()) {
		if (is_at_work(s, sp)) {
			nested_event(s, event, sp, key);
			return;
		}
		nest_abandon(s);
	}
	for (int i = 0; i < SWITCH_TRIES; i++) {
		if (!s || sp - s->lo >= s->size)
			s = find_state(s, sp, event & EVENT_CYCLES);
		if (!s) {
			if (count_library.is_confined && count_library.is_ready && is_entry(event))
				count_calls_lost(1);
			return;
		}
		set_busy(s, (uint64_t)__builtin_frame_address(0) | IN_C);
		if (sp - s->lo < s->size) {
			do_event(s, event, sp, key);
			set_busy(s, 0);
			return;
		}
		set_busy(s, 0); /* a handler on a stack of its own came in between */
	}
}
