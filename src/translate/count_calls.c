/* SPDX-License-Identifier: MIT */
/*
 * Events into call trees, by the rules of counts.h. A call and its return take a few nanoseconds each: a frame is
 * pushed and popped, and the node is the one that the same caller entered last. All else is off that way.
 */
#include "translate/counts_internal.h"

#include <stdlib.h>

/* Programs are below: what is not is no stack pointer. */
#define SP_END	       (1ull << 63)
#define SIGNAL_FRAME_BYTES 512 /* at least */
#define TAIL_STEPS     64	/* back along a chain of jumps, for one that comes round */
#define ARGUMENT_FRAMES 8	/* that may lie among the arguments of a call */
#define AHEAD	       8	/* events whose functions are fetched into the cache */
#define HANDLER_FRAMES (1 << 16) /* that are searched for a signal's */

static void charge(struct call_thread *t, uint64_t cost)
{
	uint64_t delta = cost - t->last_cost;

	if (__builtin_expect(cost < t->last_cost, 0)) {
		t->counts->n_back_costs++;
		return;
	}
	t->last_cost = cost;
	t->top->self += delta;
	t->nodes.v[t->top->node].cost += delta;
}

void call_thread_charge(struct call_thread *t, uint64_t cost)
{
	charge(t, cost);
}

/* --- frames ------------------------------------------------------------------------------------ */

static void ended(struct call_thread *t, const struct call_frame *f)
{
	struct call_node *n = &t->nodes.v[f->node];

	if (f->kind != CALL_FRAME_CALL)
		return;
	if (f->self < n->min)
		n->min = f->self;
	if (f->self > n->max)
		n->max = f->self;
}

static void pop(struct call_thread *t)
{
	struct call_frame *f = t->top--;

	ended(t, f);
	/* What ran before the handler's own call is of the call that it interrupted. */
	if (f->kind > CALL_FRAME_FIRST)
		f[-1].self += f->self;
}

static bool is_signal(const struct call_frame *f)
{
	return f->kind > CALL_FRAME_FIRST;
}

/* A handler that is on top of a stack is over when something is above where it began, and what the kernel has put
 * there. */
static bool is_left(const struct call_frame *f, uint64_t sp)
{
	return f->kind == CALL_FRAME_AWAY ? sp > f->entry && sp - f->entry > SIGNAL_FRAME_BYTES : f->kind == CALL_FRAME_SIGNAL && sp >= f->sp;
}

static void drop(struct call_thread *t, uint64_t sp)
{
	do {
		while (t->top->sp < sp)
			pop(t);
		if (__builtin_expect(!is_left(t->top, sp), 1))
			return;
		pop(t);
	} while (true);
}

static void push(struct call_thread *t, const struct call_frame *f)
{
	if (__builtin_expect(t->top == t->limit, 0) && !call_stacks_grow(t)) {
		t->counts->n_without_frame++;
		return;
	}
	*++t->top = *f;
}

/* --- entries ----------------------------------------------------------------------------------- */

static uint32_t child_of(struct call_thread *t, uint32_t parent, uint32_t function)
{
	struct call_node *n = &t->nodes.v[parent];

	if (n->child_function == function)
		return n->child;
	if (n->second_function == function)
		return n->second;
	return call_nodes_child(t, parent, function);
}

/* The node of a function that was jumped to: in the chain of jumps, else a new link of it. */
static uint32_t tail_node(struct call_thread *t, uint32_t function)
{
	uint32_t below = t->top[-1].node, n = t->top->node;

	for (int i = 0; i < TAIL_STEPS && n && n != below; i++) {
		if (t->nodes.v[n].function == function)
			return n;
		n = t->nodes.v[n].parent;
	}
	return child_of(t, t->top->node, function);
}

/* The node is another function's where there was no room for one. */
static bool is_call(const struct call_thread *t, uint32_t node, uint32_t function)
{
	return !(function & ROW_IS_MIDST) && t->nodes.v[node].function == function;
}

/* Back into the midst of the function that jumped out of itself: it goes on. */
static bool jumps_back(const struct call_thread *t, uint32_t function)
{
	const struct call_frame *f = t->top;

	return function & ROW_IS_MIDST && f->kind == CALL_FRAME_OPEN && f[-1].kind <= CALL_FRAME_OPEN &&
	       t->nodes.v[f[-1].node].function == (function & ~ROW_IS_MIDST);
}

static void jump(struct call_thread *t, uint32_t function)
{
	uint32_t node;

	if (t->nodes.v[t->top->node].function == (function & ~ROW_IS_MIDST))
		return; /* round in itself */
	if (jumps_back(t, function)) {
		pop(t);
		return;
	}
	node = tail_node(t, function & ~ROW_IS_MIDST);
	ended(t, t->top);
	t->top->self = 0;
	t->top->node = node;
	t->top->kind = is_call(t, node, function) ? CALL_FRAME_CALL : CALL_FRAME_OPEN;
	t->nodes.v[node].calls += t->top->kind == CALL_FRAME_CALL;
}

static void enter(struct call_thread *t, uint32_t function, uint64_t sp)
{
	struct call_frame f = {.sp = sp};

	drop(t, sp);
	if (t->top->sp == sp) {
		jump(t, function);
		return;
	}
	if (function & ROW_IS_MIDST &&
		t->nodes.v[t->top->node].function == (function & ~ROW_IS_MIDST))
		return; /* it has called itself by halves: "call next; pop" */
	if (jumps_back(t, function)) {
		pop(t);
		return;
	}
	f.node = child_of(t, t->top->node, function & ~ROW_IS_MIDST);
	f.kind = is_call(t, f.node, function) ? CALL_FRAME_CALL : CALL_FRAME_OPEN;
	t->nodes.v[f.node].calls += f.kind == CALL_FRAME_CALL;
	push(t, &f);
}

/* --- signals ----------------------------------------------------------------------------------- */

/* Of handlers that were left by longjmp, on a stack where the next one begins. */
static void drop_stale(struct call_thread *t, uint64_t sp)
{
	while (t->top->sp <= sp || (t->top->kind == CALL_FRAME_AWAY && t->top->entry <= sp))
		pop(t);
}

/* The handler's first event is at sp; only now it is known where its stack is. */
static void begin_handler(struct call_thread *t, uint64_t sp, bool is_entry)
{
	struct call_frame f = {
		.sp = t->signal_sp, .node = t->top->node, .kind = CALL_FRAME_SIGNAL, .back = t->signal_sp};
	bool is_here = sp - t->low < t->size;

	t->has_signal = false;
	if (is_here && sp >= t->signal_sp && !is_entry)
		return; /* it is over already */
	if (!is_here || sp >= t->signal_sp) {
		f.kind = CALL_FRAME_AWAY;
		f.sp = UINT64_MAX;
		f.entry = sp;
	}
	if (!is_here) {
		call_stacks_switch(t, sp);
		drop_stale(t, sp);
	}
	push(t, &f);
}

static void come(struct call_thread *t, uint64_t sp, bool is_entry)
{
	if (t->has_signal)
		begin_handler(t, sp, is_entry);
	if (sp - t->low >= t->size)
		call_stacks_switch(t, sp);
}

/* The innermost handler that interrupted what is at sp, else the innermost; NULL: there is none. */
static struct call_frame *find_handler(struct call_thread *t, uint64_t sp)
{
	const struct call_frame *first = call_stack_now(t)->frames.v;
	struct call_frame *innermost = NULL, *f = t->top;

	for (int i = 0; i < HANDLER_FRAMES && f > first; i++, f--) {
		if (!is_signal(f))
			continue;
		if (f->back == sp)
			return f;
		innermost = innermost ? innermost : f;
	}
	return innermost;
}

static void end_handler(struct call_thread *t, uint64_t sp)
{
	const struct call_frame *f;

	if (t->has_signal) {
		t->has_signal = false;
		return;
	}
	f = find_handler(t, sp);
	while (f && t->top >= f)
		pop(t);
	if (sp - t->low >= t->size)
		call_stacks_switch(t, sp);
}

/* --- faults ------------------------------------------------------------------------------------ */

static void fault(struct call_thread *t, const struct translate_event *e)
{
	const struct counts *c = t->counts;
	struct call_node *n = &t->nodes.v[t->top->node];
	uint64_t *at;

	if (e->block >= c->rows.n || !e->sp || e->sp > c->rows.v[e->block].n_insns || e->sp > n->cost) {
		t->counts->n_bad_faults++;
		return;
	}
	n->cost -= e->sp;
	t->top->self -= e->sp < t->top->self ? e->sp : t->top->self;
	at = map_ensure(&t->fault_of, (uint64_t)e->block << 32 | e->sp, NULL);
	if (!*at) {
		vec_push(&t->faults, ((struct counts_fault){e->block, (uint32_t)e->sp, 0}));
		*at = t->faults.n;
	}
	t->faults.v[*at - 1].count++;
}

/* --- events ------------------------------------------------------------------------------------ */

static inline uint32_t function_of(struct counts *c, uint32_t block)
{
	uint32_t f = __builtin_expect(block < c->row_functions.n, 1) ? c->row_functions.v[block] : 0;

	return __builtin_expect(f != 0, 1) ? f : counts_row_function(c, block);
}

/* Those that are rare. */
static void take_other(struct call_thread *t, const struct translate_event *e)
{
	switch (e->kind) {
	case TRANSLATE_EVENT_SIGNAL:
		come(t, e->sp, true);
		t->has_signal = true;
		t->signal_sp = e->sp;
		break;
	case TRANSLATE_EVENT_SIGRETURN:
		end_handler(t, e->sp);
		break;
	case TRANSLATE_EVENT_FAULT:
		fault(t, e);
		break;
	case TRANSLATE_EVENT_CALLED:
		break; /* counts_fork() has opened what is open */
	default:
		t->counts->n_bad_events++;
	}
}

static bool is_32(const struct counts *c, uint32_t block)
{
	return block < c->rows.n && c->rows.v[block].flags & COUNTS_BLOCK_I386;
}

/* 32-bit code comes back from setjmp with its arguments still on the stack: what was called without any then has its
 * frame above that. So the function goes on that the place is in. */
static void land_among_arguments(struct call_thread *t, uint32_t function)
{
	const struct call_frame *f = t->top;

	for (int i = 0; i < ARGUMENT_FRAMES && f->kind <= CALL_FRAME_OPEN; i++, f--)
		if (t->nodes.v[f->node].function == (function & ~ROW_IS_MIDST)) {
			while (t->top > f)
				pop(t);
			return;
		}
}

static void take(struct call_thread *t, const struct translate_event *e)
{
	uint64_t sp = e->sp;
	uint32_t function;

	charge(t, e->cost);
	if (__builtin_expect(sp >= SP_END, 0)) {
		t->counts->n_bad_events++;
		return;
	}
	if (__builtin_expect(e->kind - 1 > TRANSLATE_EVENT_LAND - 1, 0)) {
		take_other(t, e);
		return;
	}
	if (__builtin_expect(sp - t->low >= t->size || t->has_signal, 0))
		come(t, sp, e->kind == TRANSLATE_EVENT_ENTER);
	switch (e->kind) {
	case TRANSLATE_EVENT_ENTER:
		function = function_of(t->counts, e->block);
		if (function)
			enter(t, function, sp);
		else
			t->counts->n_bad_events++;
		break;
	case TRANSLATE_EVENT_RETURN:
		drop(t, sp + 1);
		break;
	default:
		drop(t, sp);
		if (__builtin_expect(is_32(t->counts, e->block), 0))
			land_among_arguments(t, function_of(t->counts, e->block));
	}
}

/* --- the usual way ----------------------------------------------------------------------------- */

/*
 * Nearly all events are calls and returns of functions on the stack that the thread is on, without a signal. They are
 * taken here, by the same rules, with what changes all the time in registers; what is anything else is left to take().
 */
struct usual {
	struct call_frame *top, *limit;
	struct call_node *nodes;
	uint64_t low, size, last_cost;
};

static inline struct usual usual_of(const struct call_thread *t)
{
	return (struct usual){.top = t->top,
		.limit = t->limit,
		.nodes = t->nodes.v,
		.low = t->low,
		.size = t->has_signal ? 0 : t->size,
		.last_cost = t->last_cost};
}

static inline void usual_charge(struct usual *u, uint64_t cost)
{
	uint64_t delta = cost - u->last_cost;

	u->last_cost = cost;
	u->top->self += delta;
	u->nodes[u->top->node].cost += delta;
}

static inline void usual_end(struct usual *u)
{
	struct call_node *n = &u->nodes[u->top->node];
	uint64_t self = u->top->self;

	if (u->top->kind != CALL_FRAME_CALL)
		return;
	if (__builtin_expect(self < n->min, 0))
		n->min = self;
	if (__builtin_expect(self > n->max, 0))
		n->max = self;
}

static inline uint32_t usual_child(
	struct call_thread *t, struct usual *u, uint32_t parent, uint32_t function)
{
	const struct call_node *n = &u->nodes[parent];
	uint32_t child;

	if (__builtin_expect(n->child_function == function, 1))
		return n->child;
	if (n->second_function == function)
		return n->second;
	child = call_nodes_child(t, parent, function);
	u->nodes = t->nodes.v;
	return child;
}

/* The call of a function from its beginning on; or the jump there, of one that was called and has not been jumped to. */
static inline bool usual_enter(
	struct call_thread *t, struct usual *u, uint32_t function, uint64_t sp)
{
	bool is_jump = u->top->sp == sp;
	uint32_t from = u->top->node, node;

	if (is_jump ? u->top->kind > CALL_FRAME_OPEN || u->nodes[from].parent != u->top[-1].node ||
				u->nodes[from].function == function
		    : u->top->sp < sp || u->top->kind > CALL_FRAME_FIRST || u->top == u->limit)
		return false;
	node = usual_child(t, u, from, function);
	if (is_jump)
		usual_end(u);
	else
		*++u->top = (struct call_frame){.sp = sp};
	u->top->self = 0;
	u->top->node = node;
	u->top->kind = u->nodes[node].function == function ? CALL_FRAME_CALL : CALL_FRAME_OPEN;
	u->nodes[node].calls += u->top->kind == CALL_FRAME_CALL;
	return true;
}

static inline bool usual_return(struct usual *u, uint64_t sp)
{
	if (u->top->sp != sp || u->top->kind > CALL_FRAME_OPEN || u->top[-1].sp <= sp ||
		u->top[-1].kind > CALL_FRAME_FIRST)
		return false;
	usual_end(u);
	u->top--;
	return true;
}

static inline bool usual_take(
	struct call_thread *t, struct usual *u, const struct translate_event *e)
{
	const struct counts *c = t->counts;
	uint32_t function;

	if (e->sp - u->low >= u->size || e->cost < u->last_cost)
		return false;
	usual_charge(u, e->cost);
	if (e->kind == TRANSLATE_EVENT_RETURN)
		return usual_return(u, e->sp);
	if (e->kind != TRANSLATE_EVENT_ENTER || e->block >= c->row_functions.n)
		return false;
	function = c->row_functions.v[e->block];
	return function && !(function & ROW_IS_MIDST) && usual_enter(t, u, function, e->sp);
}

static void keep_usual(struct call_thread *t, const struct usual *u)
{
	t->top = u->top;
	t->last_cost = u->last_cost;
}

void counts_events(
	struct counts *c, uint64_t thread, pid_t tid, const struct translate_event *e, size_t n)
{
	struct call_thread *t = counts_thread_of(c, thread, tid);
	struct usual u;

	if (!t)
		return;
	u = usual_of(t);
	for (size_t i = 0; i < n; i++) {
		uint32_t ahead = i + AHEAD < n ? e[i + AHEAD].block : TRANSLATE_NO_BLOCK;

		if (ahead < c->row_functions.n)
			__builtin_prefetch(&c->row_functions.v[ahead]);
		if (__builtin_expect(usual_take(t, &u, &e[i]), 1))
			continue;
		keep_usual(t, &u);
		take(t, &e[i]);
		u = usual_of(t);
	}
	keep_usual(t, &u);
}

/* --- forks ------------------------------------------------------------------------------------- */

struct fork_copy {
	struct counts *c;
	const struct counts *parent;
	struct call_thread *to;
	const struct call_thread *from;
	struct map node_of; /* node of `from` -> of `to` */
	VEC(uint32_t) path;
};

static void copy_blocks(struct counts *c, const struct counts *parent)
{
	for (size_t i = 0; i < parent->rows.n; i++) {
		struct counts_row row = parent->rows.v[i];

		row.count = 0;
		vec_push(&c->rows, row);
		vec_push(&c->row_functions, 0);
	}
	for (size_t i = 0; i < parent->code.n; i++)
		vec_push(&c->code, parent->code.v[i]);
	for (size_t i = 0; i < parent->functions.n; i++)
		vec_push(&c->functions, parent->functions.v[i]);
}

/* The node of the same path, which nobody has called here. */
static uint32_t copy_node(struct fork_copy *f, uint32_t node)
{
	const struct call_node *nodes = f->from->nodes.v;
	const uint64_t *known = NULL;
	uint32_t to;

	f->path.n = 0;
	for (; node && !(known = map_find(&f->node_of, node)); node = nodes[node].parent)
		vec_push(&f->path, node);
	to = known ? (uint32_t)*known : 0;
	while (f->path.n) {
		uint32_t from = f->path.v[--f->path.n];
		uint32_t block = f->parent->by_number.v[nodes[from].function].block;
		uint32_t function = counts_row_function(f->c, block) & ~ROW_IS_MIDST;

		if (function)
			to = call_nodes_child(f->to, to, function);
		*map_ensure(&f->node_of, from, NULL) = to;
	}
	return to;
}

void counts_fork(struct counts *c, uint64_t thread, pid_t tid, const struct counts *parent, uint64_t by)
{
	const uint64_t *at = map_find(&parent->thread_of, by);
	struct fork_copy f = {.c = c, .parent = parent};
	const struct call_frame *frame;

	copy_blocks(c, parent);
	f.to = counts_thread_of(c, thread, tid);
	if (!at || !f.to)
		return;
	f.from = parent->threads.v[*at];
	if (f.from->low == 0 && f.from->size == 0)
		return; /* it has had no event */
	frame = f.from->stacks.v[f.from->stack].frames.v + 1;
	call_stacks_copy(f.to, f.from->low, f.from->size);
	for (; frame <= f.from->top; frame++) {
		struct call_frame copy = *frame;

		copy.node = copy_node(&f, frame->node);
		copy.self = 0;
		if (copy.kind == CALL_FRAME_CALL)
			copy.kind = CALL_FRAME_OPEN;
		push(f.to, &copy);
	}
	map_release(&f.node_of);
	vec_release(&f.path);
}
