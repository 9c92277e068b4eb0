/* SPDX-License-Identifier: MIT */
#include "formats/foreign/foreign_calls.h"

#include <stdlib.h>

struct open_call {
	uint64_t end_ns; /* UINT64_MAX: the file says it later */
	uint32_t frame;
};

struct player {
	struct foreign_calls *calls;
	struct foreign_trace *trace;
	uint32_t thread;
	VEC(struct open_call) open;
};

void foreign_calls_add(struct foreign_calls *c, const struct foreign_call *call)
{
	if (c->v.n == FOREIGN_CALLS_MAX) {
		c->n_more++;
		return;
	}
	vec_push(&c->v, *call);
	c->v.v[c->v.n - 1].order = c->v.n;
}

/* At one time: what ends before what begins, of what is whole the longer first, else as the file has it. */
static int compare(const void *a, const void *b)
{
	const struct foreign_call *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->kind == FOREIGN_CALL_WHOLE && y->kind == FOREIGN_CALL_WHOLE &&
		x->length_ns != y->length_ns)
		return x->length_ns > y->length_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void leave(struct player *p, uint64_t time)
{
	foreign_trace_routine(p->trace, p->thread, time, p->open.v[--p->open.n].frame, true);
}

/* What is known to be over by then. */
static void leave_ended(struct player *p, uint64_t time)
{
	while (p->open.n && p->open.v[p->open.n - 1].end_ns <= time)
		leave(p, p->open.v[p->open.n - 1].end_ns);
}

static void enter(struct player *p, const struct foreign_call *call)
{
	struct open_call open = {UINT64_MAX, call->frame};

	if (call->kind == FOREIGN_CALL_WHOLE)
		open.end_ns = call->length_ns > UINT64_MAX - 1 - call->time_ns
				      ? UINT64_MAX - 1
				      : call->time_ns + call->length_ns;
	/* A call ends before its caller does. */
	if (p->open.n && p->open.v[p->open.n - 1].end_ns < open.end_ns) {
		p->calls->n_overlaps += call->kind == FOREIGN_CALL_WHOLE;
		open.end_ns = p->open.v[p->open.n - 1].end_ns;
	}
	vec_push(&p->open, open);
	foreign_trace_routine(p->trace, p->thread, call->time_ns, call->frame, false);
}

/* Calls that were begun in it and have no end of their own end with it. */
static void end(struct player *p, const struct foreign_call *call)
{
	size_t at = p->open.n;

	while (at && p->open.v[at - 1].frame != call->frame && call->frame)
		at--;
	if (!at) {
		p->calls->n_unmatched++;
		return;
	}
	p->calls->n_unmatched += p->open.n - at;
	while (p->open.n >= at)
		leave(p, call->time_ns);
}

static void play(struct player *p, const struct foreign_call *call)
{
	if (call->thread != p->thread)
		leave_ended(p, UINT64_MAX - 1);
	if (call->thread != p->thread)
		p->open.n = 0; /* what is still open stays open */
	p->thread = call->thread;
	leave_ended(p, call->time_ns);
	if (call->kind == FOREIGN_CALL_END)
		end(p, call);
	else
		enter(p, call);
}

void foreign_calls_write(struct foreign_calls *c, struct foreign_trace *t)
{
	struct player p = {.calls = c, .trace = t};

	vec_sort(&c->v, compare);
	for (size_t i = 0; i < c->v.n; i++)
		play(&p, &c->v.v[i]);
	leave_ended(&p, UINT64_MAX - 1);
	vec_release(&p.open);
	if (c->n_more)
		foreign_trace_lost_events(t, c->n_more, "the file has more events than are read");
	if (c->n_overlaps)
		foreign_trace_note(
			t, c->n_overlaps, "calls that go on when their callers end: they were cut");
	if (c->n_unmatched)
		foreign_trace_note(
			t, c->n_unmatched, "ends and begins of calls that have no other");
}

void foreign_calls_release(struct foreign_calls *c)
{
	vec_release(&c->v);
}
