/* SPDX-License-Identifier: MIT */
/*
 * Straight code costs a compare and two additions a step; everything else happens in follow(),
 * which is reached behind calls and returns, where the function changes, and behind marks.
 *
 * 1. frames[i].node is frames[i - 1].node's child, or below it by a chain of tail jumps.
 * 2. open[f] is the number of frames of function f; so a search for one ends with it.
 * 3. Instructions are added to the top frame and its node when something changes (settle).
 */
#include "steps/step_calls.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Limits: a trace may be damaged or made up. */
#define FRAMES_MAX	(1u << 20)
#define NODES_MAX	(1u << 24)
#define LANDINGS_MAX	1024
#define FORK_FRAMES_MAX (1u << 20)
#define TAIL_STEPS	64 /* back along a chain of tail jumps, for one that comes round */
/* Frames that are looked at in vain: so many at first, and one more for every step. */
#define SEARCH_FRAMES (1u << 16)
#define LANDS_COST    64 /* of asking for a landing pad, in frames */

#define SYS_RT_SIGRETURN_64 15
#define SYS_RT_SIGRETURN_32 173
#define SYS_SIGRETURN_32    119

void step_calls_init(struct step_calls *c, uint32_t n_functions)
{
	c->open = mem_calloc(n_functions + 1, sizeof(*c->open));
}

void step_calls_release(struct step_calls *c)
{
	vec_release(&c->nodes);
	vec_release(&c->frames);
	map_release(&c->children);
	free(c->open);
	c->open = NULL;
	vec_release(&c->landings);
	vec_release(&c->forks);
	map_release(&c->fork_of);
	vec_release(&c->fork_frames);
	vec_release(&c->fork_paths);
}

/* ---- nodes ---- */

static uint32_t child_of(struct step_calls *c, uint32_t parent, uint32_t function)
{
	struct step_node *p = &c->nodes.v[parent];
	struct step_node node = {.parent = parent, .function = function, .min = 1};
	bool created;
	uint64_t *at;

	if (p->child && p->child_function == function)
		return p->child;
	if (c->nodes.n >= NODES_MAX) {
		at = map_find(&c->children, (uint64_t)parent << 32 | function);
		if (!at) { /* it is counted in its caller */
			c->n_without_node++;
			return parent;
		}
	} else {
		at = map_ensure(&c->children, (uint64_t)parent << 32 | function, &created);
		if (created) {
			*at = c->nodes.n;
			vec_push(&c->nodes, node);
		}
	}
	p = &c->nodes.v[parent];
	p->child_function = function;
	p->child = (uint32_t)*at;
	return p->child;
}

/* ---- frames ---- */

static struct step_frame *top(struct step_calls *c)
{
	return c->frames.n ? &c->frames.v[c->frames.n - 1] : NULL;
}

static void ended(struct step_calls *c, const struct step_frame *f)
{
	struct step_node *node = &c->nodes.v[f->node];

	if (node->min > node->max) {
		node->min = node->max = f->self;
		return;
	}
	if (f->self < node->min)
		node->min = f->self;
	if (f->self > node->max)
		node->max = f->self;
}

static void pop(struct step_calls *c)
{
	const struct step_frame *f = top(c);

	ended(c, f);
	c->open[f->function]--;
	c->frames.n--;
}

static void unwind(struct step_calls *c, size_t n_left)
{
	while (c->frames.n > n_left)
		pop(c);
}

/* Nobody saw these calls end. */
static void forget_frames(struct step_calls *c)
{
	while (c->frames.n)
		c->open[c->frames.v[--c->frames.n].function]--;
}

static void push(
	struct step_calls *c, uint64_t ret, uint32_t function, bool is_call, bool is_signal)
{
	uint32_t parent = c->frames.n ? top(c)->node : 0;
	struct step_frame f = {
		.ret = ret, .function = function, .serial = c->serial++, .is_signal = is_signal};

	if (c->frames.n >= FRAMES_MAX) {
		c->n_without_frame++;
		return;
	}
	f.node = child_of(c, parent, function);
	c->nodes.v[f.node].calls += is_call;
	c->open[function]++;
	vec_push(&c->frames, f);
}

/* The top frame's function goes on in another one. */
static void replace(struct step_calls *c, uint32_t function, bool is_call)
{
	struct step_frame *f = top(c);
	uint32_t below = c->frames.n > 1 ? f[-1].node : 0, node = f->node;

	for (int i = 0; i < TAIL_STEPS && node != below && node; i++) {
		if (c->nodes.v[node].function == function)
			break;
		node = c->nodes.v[node].parent;
	}
	if (node == below || !node || c->nodes.v[node].function != function)
		node = child_of(c, f->node, function);
	ended(c, f);
	c->open[f->function]--;
	c->open[function]++;
	c->nodes.v[node].calls += is_call;
	f->function = function;
	f->node = node;
	f->self = 0;
	f->serial = c->serial++;
}

/* Number of frames up to and with the topmost one of an open function. */
static size_t find_open(const struct step_calls *c, uint32_t function)
{
	size_t n = c->frames.n;

	while (c->frames.v[n - 1].function != function)
		n--;
	return n;
}

/* Number of frames below the topmost one that returns there, into this function; 0: none does. */
static size_t find_return(struct step_calls *c, uint64_t addr, uint32_t function)
{
	if (!c->open[function])
		return 0;
	for (size_t n = c->frames.n; n > 1; n--) {
		if (c->frames.v[n - 1].ret == addr && c->frames.v[n - 2].function == function)
			return n - 1;
		if (!c->search_left)
			return 0;
		c->search_left--;
	}
	return 0;
}

/* ---- what happens between two steps ---- */

/* Wherever the thread came to: the calls that are open there, as far as that is known. */
static void enter_anew(struct step_calls *c, const struct step_call_insn *to)
{
	forget_frames(c);
	push(c, 0, to->function, to->is_start, false);
}

static bool is_in_top(struct step_calls *c, const struct step_call_insn *to)
{
	return c->frames.n && top(c)->function == to->function;
}

/* Number of frames up to the topmost one that called setjmp for this place; 0: there is none. */
static size_t find_landing(struct step_calls *c, uint64_t addr)
{
	for (size_t i = c->landings.n; i-- > 0 && c->search_left; c->search_left--) {
		const struct step_landing *l = &c->landings.v[i];

		if (l->addr == addr && l->depth <= c->frames.n &&
			c->frames.v[l->depth - 1].serial == l->serial)
			return l->depth;
	}
	return 0;
}

/* Number of frames up to the topmost one whose call has this landing pad; 0: it is not known. */
static size_t find_pad(struct step_calls *c, const struct step_call_insn *to)
{
	uint32_t number = (uint32_t)(to - c->insns);

	for (size_t n = c->frames.n - 1; n && c->lands; n--) {
		int answer;

		if (c->search_left < LANDS_COST)
			return 0;
		c->search_left--;
		if (c->frames.v[n - 1].function != to->function || !c->frames.v[n].ret)
			continue;
		c->search_left -= LANDS_COST - 1;
		answer = c->lands(c->lands_ctx, number, c->frames.v[n].ret);
		if (answer)
			return answer > 0 ? n : 0;
	}
	return 0;
}

/* longjmp and exceptions: down to the frame that the place is in. Where its function is open once
 * there is no choice. */
static void unwind_into(struct step_calls *c, const struct step_call_insn *to, uint64_t addr)
{
	size_t n = 0;

	if (c->open[to->function] > 1) {
		n = find_landing(c, addr);
		n = n ? n : find_pad(c, to);
	}
	unwind(c, n ? n : find_open(c, to->function));
}

static void jump(struct step_calls *c, const struct step_call_insn *to, uint64_t addr, bool is_far)
{
	if (is_in_top(c, to))
		return;
	if (is_far && !to->is_start && c->open[to->function])
		unwind_into(c, to, addr);
	else
		replace(c, to->function, to->is_start);
}

static void come_back(struct step_calls *c, const struct step_call_insn *to, uint64_t addr)
{
	size_t n;

	if (top(c)->ret == addr && c->frames.n > 1) {
		pop(c);
		if (!is_in_top(c, to))
			replace(c, to->function, false);
		return;
	}
	if (top(c)->is_signal && !is_in_top(c, to) && !c->open[to->function]) {
		/* The handler returns to the code that makes rt_sigreturn. */
		pop(c);
		push(c, 0, to->function, to->is_start, true);
		return;
	}
	n = find_return(c, addr, to->function);
	if (n)
		unwind(c, n);
	else if (c->open[to->function] && !to->is_start)
		unwind_into(c, to, addr);
	else if (c->frames.n == 1)
		enter_anew(c, to); /* its caller, which was open before the trace began */
	else
		jump(c, to, addr, false);
}

static void remember_landing(struct step_calls *c, uint64_t ret)
{
	struct step_landing l = {ret, (uint32_t)c->frames.n, top(c)->serial};
	const struct step_landing *newest =
		c->landings.n ? &c->landings.v[c->landings.n - 1] : NULL;

	if (newest && newest->addr == ret && newest->serial == l.serial)
		return;
	/* Those of frames that are gone go first. */
	for (size_t i = c->landings.n; i-- > 0 && c->landings.n >= LANDINGS_MAX / 2;) {
		const struct step_landing *old = &c->landings.v[i];

		if (old->depth > c->frames.n || c->frames.v[old->depth - 1].serial != old->serial ||
			(old->addr == ret && old->serial == l.serial))
			c->landings.v[i] = c->landings.v[--c->landings.n];
	}
	if (c->landings.n == LANDINGS_MAX)
		c->landings.n = 0;
	vec_push(&c->landings, l);
}

static void call(struct step_calls *c, const struct step_call_insn *from,
	const struct step_call_insn *to, uint64_t addr)
{
	uint64_t behind = from->addr + from->length;

	if (addr == behind) { /* call next */
		if (!is_in_top(c, to))
			replace(c, to->function, false);
		return;
	}
	if (c->is_setjmp[to->function])
		remember_landing(c, behind);
	push(c, behind, to->function, true, false);
}

/* rt_sigreturn: what the signal interrupted goes on. */
static void end_handler(struct step_calls *c)
{
	size_t n = c->frames.n;

	while (n && !c->frames.v[n - 1].is_signal)
		n--;
	if (n > 1)
		unwind(c, n - 1);
}

static void resume_interrupted(struct step_calls *c, const struct step_call_insn *to, uint64_t addr)
{
	end_handler(c);
	if (is_in_top(c, to) && !(c->n_handlers_due && to->is_start))
		return;
	if (c->n_handlers_due && to->is_start) { /* of another signal that came at once */
		c->n_handlers_due--;
		push(c, 0, to->function, true, true);
	} else if (c->open[to->function]) {
		unwind_into(c, to, addr);
	} else {
		jump(c, to, addr, false);
	}
}

static void transfer(struct step_calls *c, const struct step_call_insn *from,
	const struct step_call_insn *to, uint64_t addr)
{
	switch (from->flow) {
	case X86_FLOW_CALL:
	case X86_FLOW_CALL_FAR:
		call(c, from, to, addr);
		break;
	case X86_FLOW_RETURN:
		come_back(c, to, addr);
		break;
	case X86_FLOW_SYSCALL:
		if (c->is_sigreturn || addr != from->addr + from->length)
			resume_interrupted(c, to, addr);
		else
			jump(c, to, addr, false);
		break;
	default:
		jump(c, to, addr, from->flow == X86_FLOW_JUMP_FAR);
	}
}

/* Whether a step may follow another without anything between them. */
static bool is_natural(struct step_calls *c, const struct step_call_insn *from, uint64_t addr)
{
	bool is_target = from->target && c->insns[from->target].addr == addr;

	switch (from->flow) {
	case X86_FLOW_CALL:
	case X86_FLOW_JUMP:
		return is_target;
	case X86_FLOW_BRANCH:
		return is_target || addr == from->addr + from->length;
	case X86_FLOW_RETURN:
		return c->frames.n && top(c)->ret == addr;
	case X86_FLOW_CALL_FAR:
	case X86_FLOW_JUMP_FAR:
		return true; /* nobody knows */
	default:	     /* a system call may be made once more */
		return addr == from->addr + from->length || addr == from->addr;
	}
}

/* The last step's own effect, when the signal came before the next one. */
static void complete(struct step_calls *c, const struct step_call_insn *from)
{
	const struct step_call_insn *to = from->target ? &c->insns[from->target] : NULL;

	if (from->flow == X86_FLOW_RETURN && c->frames.n > 1)
		pop(c);
	else if (from->flow == X86_FLOW_SYSCALL && c->is_sigreturn)
		end_handler(c);
	else if (to && (from->flow == X86_FLOW_CALL || from->flow == X86_FLOW_JUMP))
		transfer(c, from, to, to->addr);
}

static void handle_signal(struct step_calls *c, const struct step_call_insn *from,
	const struct step_call_insn *to, uint64_t addr)
{
	/* Behind rt_sigreturn anything may follow. */
	bool is_handler = !from || c->is_sigreturn ? to->is_start : !is_natural(c, from, addr);

	if (!is_handler || !c->frames.n) { /* it is ignored, or stops the thread */
		if (from && c->frames.n)
			transfer(c, from, to, addr);
		else if (!is_in_top(c, to))
			enter_anew(c, to);
		return;
	}
	if (from)
		complete(c, from);
	c->n_handlers_due = c->n_signals - 1;
	push(c, 0, to->function, true, true);
}

/* Steps are missing: the stack may be another one. */
static void cross_gap(struct step_calls *c, const struct step_call_insn *to, uint64_t addr)
{
	size_t n;

	if (!c->frames.n || c->why == STEP_WHY_REGION) {
		enter_anew(c, to);
		return;
	}
	if (c->why != STEP_WHY_USER && is_in_top(c, to))
		return;
	n = find_return(c, addr, to->function);
	if (n)
		unwind(c, n);
	else if (c->why == STEP_WHY_USER && to->is_start)
		push(c, 0, to->function, true, false); /* called back by what is not traced */
	else if (c->open[to->function])
		unwind(c, find_open(c, to->function));
	else
		enter_anew(c, to);
}

static void follow(struct step_calls *c, const struct step *step)
{
	const struct step_call_insn *to = &c->insns[step->insn];
	const struct step_call_insn *from = c->last ? &c->insns[c->last] : NULL;

	if (c->has_gap)
		cross_gap(c, to, step->addr);
	else if (c->n_signals)
		handle_signal(c, from, to, step->addr);
	else if (!c->frames.n)
		enter_anew(c, to);
	else if (from)
		transfer(c, from, to, step->addr);
	else
		jump(c, to, step->addr, false);
	c->has_gap = c->is_sigreturn = false;
	c->n_signals = 0;
	c->function = to->function;
	/* A call that had no frame, for want of memory, is a part of its caller. */
	assert(c->frames.n);
}

static void settle(struct step_calls *c, uint64_t n)
{
	struct step_frame *f = top(c);

	if (!n)
		return;
	f->self += n;
	c->nodes.v[f->node].base += n;
	c->n_steps += n;
	c->search_left += n;
}

void step_calls_steps(struct step_calls *c, const struct step *steps, uint32_t n)
{
	const struct step_call_insn *insns = c->insns;
	uint64_t *executed = c->executed;
	uint32_t function = c->function, begun = 0;
	bool is_pending = c->is_pending;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t number = steps[i].insn;
		const struct step_call_insn *insn = &insns[number];

		executed[number]++;
		if (__builtin_expect(is_pending || insn->function != function, 0)) {
			settle(c, i - begun);
			begun = i;
			c->last = i ? steps[i - 1].insn : c->last;
			follow(c, &steps[i]);
			function = c->function;
		}
		is_pending = insn->is_transfer;
	}
	if (!n)
		return;
	settle(c, n - begun);
	c->last = steps[n - 1].insn;
	c->is_pending = is_pending;
}

/* ---- forks ---- */

static void keep_fork(struct step_calls *c, uint32_t pid, uint32_t tid)
{
	struct step_fork fork = {.first_frame = (uint32_t)c->fork_frames.n,
		.n_frames = (uint32_t)c->frames.n,
		.first_path = (uint32_t)c->fork_paths.n};
	size_t frame = c->frames.n;

	if (!frame)
		return;
	for (uint32_t node = top(c)->node; node; node = c->nodes.v[node].parent)
		fork.n_path++;
	if (c->fork_frames.n + fork.n_frames > FORK_FRAMES_MAX ||
		c->fork_paths.n + fork.n_path > FORK_FRAMES_MAX) {
		c->n_without_fork++;
		return;
	}
	for (size_t i = 0; i < frame; i++)
		vec_push(&c->fork_frames, c->frames.v[i]);
	for (uint32_t i = 0; i < fork.n_path; i++)
		vec_push(&c->fork_paths, 0);
	for (uint32_t node = top(c)->node, at = fork.n_path; node; node = c->nodes.v[node].parent) {
		c->fork_paths.v[fork.first_path + --at] = c->nodes.v[node].function;
		for (; frame && c->frames.v[frame - 1].node == node; frame--)
			c->fork_frames.v[fork.first_frame + frame - 1].node = at;
	}
	assert(!frame);
	*map_ensure(&c->fork_of, (uint64_t)pid << 32 | tid, NULL) = c->forks.n + 1;
	vec_push(&c->forks, fork);
}

/* The calls of the parent are open here, too, but they are not calls of this thread. */
static void begin_forked(struct step_calls *c, const struct step_fork *fork)
{
	uint32_t node = 0, n_frames = 0;

	for (uint32_t i = 0; i < fork->n_path; i++) {
		node = child_of(c, node, c->fork_paths.v[fork->first_path + i]);
		while (n_frames < fork->n_frames &&
			c->fork_frames.v[fork->first_frame + n_frames].node == i) {
			struct step_frame f = c->fork_frames.v[fork->first_frame + n_frames++];

			f.node = node;
			f.self = 0;
			f.serial = c->serial++;
			c->open[f.function]++;
			vec_push(&c->frames, f);
		}
	}
}

void step_calls_begin(struct step_calls *c, uint32_t pid, uint32_t tid)
{
	struct step_node thread = {.function = STEP_NO_FUNCTION, .min = 1};
	uint64_t *fork = map_find(&c->fork_of, (uint64_t)pid << 32 | tid);

	forget_frames(c);
	map_reset(&c->children);
	c->nodes.n = c->landings.n = 0;
	vec_push(&c->nodes, thread);
	c->n_steps = 0;
	c->function = STEP_NO_FUNCTION;
	c->last = 0;
	c->is_pending = true;
	c->has_gap = c->is_sigreturn = false;
	c->n_signals = c->n_handlers_due = 0;
	c->search_left = SEARCH_FRAMES;
	if (!fork || !*fork)
		return;
	begin_forked(c, &c->forks.v[*fork - 1]);
	*fork = 0; /* a tid may be used again */
	c->has_gap = true;
	c->why = STEP_WHY_ENGINE;
}

/* ---- marks ---- */

static void open_gap(struct step_calls *c, enum step_why why)
{
	const struct step_call_insn *last = c->last ? &c->insns[c->last] : NULL;

	/* Where it returned to is not traced. */
	if (last && last->flow == X86_FLOW_RETURN && c->frames.n > 1 && !c->has_gap)
		pop(c);
	/* A forked process that only begins keeps its parent's calls. */
	if (!(c->has_gap && why == STEP_WHY_START))
		c->why = why;
	c->has_gap = true;
	c->last = 0;
}

void step_calls_mark(struct step_calls *c, const struct step_mark *mark)
{
	c->is_pending = true;
	switch (mark->kind) {
	case STEP_MARK_SYSCALL:
		c->is_sigreturn =
			mark->c == 1 ? mark->a == SYS_RT_SIGRETURN_32 || mark->a == SYS_SIGRETURN_32
				     : mark->a == SYS_RT_SIGRETURN_64;
		break;
	case STEP_MARK_SIGNAL:
		if (c->n_signals < UINT32_MAX)
			c->n_signals++;
		break;
	case STEP_MARK_FORK:
		if (mark->c != 1)
			keep_fork(c, (uint32_t)mark->a, (uint32_t)mark->b);
		break;
	case STEP_MARK_EXEC:
		forget_frames(c);
		c->last = 0;
		break;
	case STEP_MARK_RESUME:
	case STEP_MARK_PAUSE:
		open_gap(c, mark->a >= 0 && mark->a <= STEP_WHY_ENGINE ? (enum step_why)mark->a
								       : STEP_WHY_ENGINE);
		break;
	case STEP_MARK_LOST:
		open_gap(c, STEP_WHY_ENGINE);
		break;
	case STEP_MARK_MAP:
	case STEP_MARK_EXIT:
		break;
	}
}
