/* SPDX-License-Identifier: MIT */
/*
 * Straight code costs a compare and two additions a step; everything else happens in follow(),
 * which is reached behind calls and returns, where the function changes, and behind marks.
 * Instructions are added to the top frame and its node when something changes (settle).
 */
#include "steps/calls/step_calls.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "steps/calls/step_stack.h"

/* Limits: a trace may be damaged or made up. */
#define LANDINGS_MAX 1024
/* Frames that are looked at in vain: so many at first, and one more for every step. */
#define SEARCH_FRAMES (1u << 16)
#define LANDS_COST    64 /* of asking for a landing pad, in frames */

#define SYS_RT_SIGRETURN_64 15
#define SYS_RT_SIGRETURN_32 173
#define SYS_SIGRETURN_32    119

/* ---- what happens between two steps ---- */

/* Wherever the thread came to: the calls that are open there, as far as that is known. */
static void enter_anew(struct step_calls *c, const struct step_call_insn *to)
{
	step_stack_forget(c);
	step_stack_push(c, 0, to->function, to->is_start, false);
}

static bool is_in_top(struct step_calls *c, const struct step_call_insn *to)
{
	return c->frames.n && step_stack_top(c)->function == to->function;
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
	step_stack_unwind(c, n ? n : step_stack_find_open(c, to->function));
}

static void jump(struct step_calls *c, const struct step_call_insn *to, uint64_t addr, bool is_far)
{
	if (is_in_top(c, to))
		return;
	if (is_far && !to->is_start && c->open[to->function])
		unwind_into(c, to, addr);
	else
		step_stack_replace(c, to->function, to->is_start);
}

static void come_back(struct step_calls *c, const struct step_call_insn *to, uint64_t addr)
{
	size_t n;

	if (step_stack_top(c)->ret == addr && c->frames.n > 1) {
		step_stack_pop(c);
		if (!is_in_top(c, to))
			step_stack_replace(c, to->function, false);
		return;
	}
	if (step_stack_top(c)->is_signal && !is_in_top(c, to) && !c->open[to->function]) {
		/* The handler returns to the code that makes rt_sigreturn. */
		step_stack_pop(c);
		step_stack_push(c, 0, to->function, to->is_start, true);
		return;
	}
	n = step_stack_find_return(c, addr, to->function);
	if (n)
		step_stack_unwind(c, n);
	else if (c->open[to->function] && !to->is_start)
		unwind_into(c, to, addr);
	else if (c->frames.n == 1)
		enter_anew(c, to); /* its caller, which was open before the trace began */
	else
		jump(c, to, addr, false);
}

/* Those of frames that are gone go; all of them, when that makes little room. */
static void forget_landings(struct step_calls *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->landings.n; i++) {
		const struct step_landing *l = &c->landings.v[i];

		if (l->depth <= c->frames.n && c->frames.v[l->depth - 1].serial == l->serial)
			c->landings.v[n++] = *l;
	}
	c->landings.n = n > LANDINGS_MAX / 2 ? 0 : n;
}

static void remember_landing(struct step_calls *c, uint64_t ret)
{
	struct step_landing l = {ret, (uint32_t)c->frames.n, step_stack_top(c)->serial};
	const struct step_landing *newest =
		c->landings.n ? &c->landings.v[c->landings.n - 1] : NULL;

	if (newest && newest->addr == ret && newest->serial == l.serial)
		return;
	if (c->landings.n == LANDINGS_MAX)
		forget_landings(c);
	vec_push(&c->landings, l);
}

static void call(struct step_calls *c, const struct step_call_insn *from,
	const struct step_call_insn *to, uint64_t addr)
{
	uint64_t behind = from->addr + from->length;

	if (addr == behind) { /* call next */
		if (!is_in_top(c, to))
			step_stack_replace(c, to->function, false);
		return;
	}
	if (c->is_setjmp[to->function])
		remember_landing(c, behind);
	step_stack_push(c, behind, to->function, true, false);
}

/* rt_sigreturn: what the signal interrupted goes on. */
static void end_handler(struct step_calls *c)
{
	size_t n = c->frames.n;

	while (n && !c->frames.v[n - 1].is_signal)
		n--;
	if (n > 1)
		step_stack_unwind(c, n - 1);
}

static void resume_interrupted(struct step_calls *c, const struct step_call_insn *to, uint64_t addr)
{
	end_handler(c);
	if (is_in_top(c, to) && !(c->n_handlers_due && to->is_start))
		return;
	if (c->n_handlers_due && to->is_start) { /* of another signal that came at once */
		c->n_handlers_due--;
		step_stack_push(c, 0, to->function, true, true);
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
		/* sysenter comes back behind another instruction of the same function. */
		if (c->is_sigreturn || (addr != from->addr + from->length && !is_in_top(c, to)))
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
		return c->frames.n && step_stack_top(c)->ret == addr;
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
		step_stack_pop(c);
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
	step_stack_push(c, 0, to->function, true, true);
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
	n = step_stack_find_return(c, addr, to->function);
	if (n)
		step_stack_unwind(c, n);
	else if (c->why == STEP_WHY_USER && to->is_start)
		step_stack_push(
			c, 0, to->function, true, false); /* called back by what is not traced */
	else if (c->open[to->function])
		unwind_into(c, to, addr);
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
	struct step_frame *f = step_stack_top(c);

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

/* ---- threads ---- */

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

void step_calls_begin(struct step_calls *c, uint32_t pid, uint32_t tid)
{
	struct step_node thread = {.function = STEP_NO_FUNCTION, .min = 1};

	step_stack_forget(c);
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
	if (!step_stack_begin_forked(c, pid, tid))
		return;
	c->has_gap = true;
	c->why = STEP_WHY_ENGINE;
}

/* ---- marks ---- */

static void open_gap(struct step_calls *c, enum step_why why)
{
	const struct step_call_insn *last = c->last ? &c->insns[c->last] : NULL;

	/* Where it returned to is not traced. */
	if (last && last->flow == X86_FLOW_RETURN && c->frames.n > 1 && !c->has_gap)
		step_stack_pop(c);
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
		c->is_sigreturn = mark->c & STEP_CALL_I386 ? mark->a == SYS_RT_SIGRETURN_32 ||
								     mark->a == SYS_SIGRETURN_32
							   : mark->a == SYS_RT_SIGRETURN_64;
		break;
	case STEP_MARK_SIGNAL:
		if (c->n_signals < UINT32_MAX)
			c->n_signals++;
		break;
	case STEP_MARK_FORK:
		if (mark->c != 1)
			step_stack_keep_fork(c, (uint32_t)mark->a, (uint32_t)mark->b);
		break;
	case STEP_MARK_EXEC:
		step_stack_forget(c);
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
