/* SPDX-License-Identifier: MIT */
/*
 * Calls that do not come back: an exception, longjmp, or the end of the thread or the program was in the
 * way. A block is counted as a whole when it begins, so what stands behind such a call in it was counted
 * and not executed. The caller's node gets it back, and a node of its own (COUNT_KEY_LEFT) says how
 * often, for the reader to take it from the block.
 */
#include "runtime.h"

#define EXIT_BYTES 64 /* where the entry code of exit() is, at most */

static uint32_t rest_in_unit(const struct count_unit *u, uint32_t place, bool is_site)
{
	const uint64_t *end = (const uint64_t *)((const uint8_t *)u + u->bytes) - 1;
	const struct count_call *calls = (const struct count_call *)end - *end, *call;
	uint64_t low = 0, high = *end;

	while (low < high) {
		uint64_t middle = (low + high) / 2;

		call = calls + middle;
		if (call->end - (is_site ? call->length : 0) < place)
			low = middle + 1;
		else
			high = middle;
	}
	call = calls + low;
	return low < *end && call->end - (is_site ? call->length : 0u) == place ? call->rest : 0;
}

/* How many instructions of its block stand behind a call: that returns to this place, or is at it. */
static uint32_t rest_behind(uint64_t place, bool is_site)
{
	const struct library *l = &count_library;

	for (uint64_t at = 0; l->units_bytes - at >= sizeof(struct count_unit);) {
		const struct count_unit *u = (const struct count_unit *)(l->units + at);
		uint64_t text = (uint64_t)&u->text + (uint64_t)(int64_t)u->text;

		if (u->magic != COUNT_UNIT_MAGIC || u->bytes < sizeof(*u) ||
			u->bytes > l->units_bytes - at) {
			at += sizeof(uint64_t); /* linkers may leave zeros between units */
			continue;
		}
		if ((u->flags & COUNT_UNIT_CALLS) &&
			place - text - (is_site ? 0 : 1) < u->text_bytes)
			return rest_in_unit(u, (uint32_t)(place - text), is_site);
		at += u->bytes;
	}
	return 0;
}

/* The node that such calls are counted in; none where they are not of counted code. */
static struct count_node *left_node(struct state *s, const struct frame *f)
{
	const struct frame *caller = f - 1;
	bool is_site = frame_is_foreign(f);
	uint64_t place = is_site ? f->node->key : f->ret;
	struct count_node *n;

	if (frame_is_first(caller) || frame_is_foreign(caller) || !place ||
		is_site != (place >> 63)) /* its node is not its own */
		return NULL;
	n = count_node_enter(s, caller->node, place | COUNT_KEY_LEFT, 0);
	if (!n)
		count_calls_lost(1);
	else if (!n->calls)
		n->rest = rest_behind(place & ~COUNT_KEY_FOREIGN, is_site);
	return n;
}

void count_left(struct state *s, const struct frame *f)
{
	struct count_node *n = left_node(s, f);

	if (!n)
		return;
	n->calls++;
	f[-1].node->cost -= n->rest;
	((struct frame *)f)[-1].self -= n->rest;
}

void count_left_not(struct state *s, const struct frame *f)
{
	struct count_node *n = left_node(s, f);

	if (!n)
		return;
	n->calls--;
	f[-1].node->cost += n->rest;
}

extern void exit(int) __attribute__((weak, noreturn));

/* Calls that exit() has made itself, when it is counted, do come back. */
static struct frame *last_left(const struct state *s, const struct stack *k)
{
	struct frame *top = k == &s->stacks[s->stack] ? s->top : k->top;

	for (struct frame *f = top; f > k->frames; f--)
		if (exit && f->node->key - (uint64_t)exit < EXIT_BYTES)
			return f;
	return top;
}

void count_left_open(struct state *s)
{
	uint64_t retry = s->retry;

	s->retry = UINT64_MAX; /* the lock is ours already */
	for (uint32_t i = 0; i < N_STACKS && s->stacks[i].frames_bytes; i++) {
		const struct stack *k = &s->stacks[i];

		if (!k->hi)
			continue;
		for (struct frame *f = last_left(s, k); f > k->frames; f--) {
			if (!count_library.is_confined)
				count_nodes_grow(s);
			count_left(s, f);
			/* Should it be dropped later on, that was it. */
			if (frame_is_foreign(f))
				f->node = f[-1].node;
			else
				f->ret = 0;
		}
	}
	s->retry = retry;
}

void count_left_at_end(void)
{
	struct state *own = count_gs_state();

	for (uint32_t i = 0; i < count_library.n_slots; i++) {
		struct slot *slot = &count_library.slots[i];
		struct state *s = slot->copy ? count_slot_state(slot) : NULL;

		if (!s || !s->self || !s->top)
			continue;
		if (s == own ? s->fs == count_fs_get()
			     : !count_library.is_confined && count_thread_has_ended(s->tid))
			count_left_open(s);
	}
}
