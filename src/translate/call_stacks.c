/* SPDX-License-Identifier: MIT */
/*
 * Which stack is this? Bounds that memory tells are right; others are guessed, and grow downwards with the frames. No
 * two stacks overlap: where a new one is, older ones that were guessed there are cut, and others are gone.
 *
 * A wrong guess shows calls below the thread, or below another coroutine's, and charges what runs between a switch and
 * the next event to the wrong function; sums stay right.
 */
#include "translate/counts_internal.h"

#include "base/search.h"

#define FAR_BYTES   (8u << 20) /* where memory cannot be asked */
#define SLACK_BYTES (8u << 10) /* where it does not know: below what was seen, */
#define ABOVE_BYTES 1024u      /* and above the first stack pointer */
#define FRAMES_FIRST 64u

static void begin(struct call_stack *s)
{
	vec_reserve(&s->frames, FRAMES_FIRST);
	s->frames.v[0] = (struct call_frame){.sp = UINT64_MAX, .kind = CALL_FRAME_FIRST};
	s->frames.n = 1;
}

static void use(struct call_thread *t, uint32_t i)
{
	struct call_stack *s = &t->stacks.v[i];

	t->stack = i;
	s->used = ++t->n_switches;
	t->low = s->low;
	t->size = s->high - s->low;
	t->top = s->frames.v + s->frames.n - 1;
	t->limit = s->frames.v + s->frames.cap - 1;
}

static void leave(struct call_thread *t)
{
	struct call_stack *s = call_stack_now(t);

	s->frames.n = (size_t)(t->top - s->frames.v) + 1;
}

/* Nothing is anywhere before the first event. */
void call_stacks_init(struct call_thread *t)
{
	vec_push(&t->stacks, ((struct call_stack){0}));
	begin(&t->stacks.v[0]);
	use(t, 0);
}

void call_stacks_release(struct call_thread *t)
{
	for (size_t i = 0; i < t->stacks.n; i++)
		vec_release(&t->stacks.v[i].frames);
	vec_release(&t->stacks);
	vec_release(&t->by_low);
	vec_release(&t->free_stacks);
}

bool call_stacks_grow(struct call_thread *t)
{
	struct call_stack *s = call_stack_now(t);

	leave(t);
	if (s->frames.n >= COUNTS_FRAMES_MAX)
		return false;
	vec_reserve(&s->frames, s->frames.n + 1);
	t->top = s->frames.v + s->frames.n - 1;
	t->limit = s->frames.v + s->frames.cap - 1;
	return true;
}

/* --- where they are ---------------------------------------------------------------------------- */

/* The first in by_low that ends behind sp. */
static size_t first_after(const struct call_thread *t, uint64_t sp)
{
	return SEARCH(0, t->by_low.n, i, t->stacks.v[t->by_low.v[i]].high <= sp);
}

static void remove_at(struct call_thread *t, size_t at)
{
	uint32_t i = t->by_low.v[at];

	memmove(&t->by_low.v[at], &t->by_low.v[at + 1], (--t->by_low.n - at) * sizeof(*t->by_low.v));
	vec_push(&t->free_stacks, i);
	t->stacks.v[i].low = t->stacks.v[i].high = 0;
	begin(&t->stacks.v[i]);
}

/* The one that was left longest ago; stacks may be of no use any more, and nobody says so. */
static void remove_oldest(struct call_thread *t)
{
	size_t oldest = 0;

	for (size_t i = 1; i < t->by_low.n; i++)
		if (t->stacks.v[t->by_low.v[i]].used < t->stacks.v[t->by_low.v[oldest]].used)
			oldest = i;
	remove_at(t, oldest);
}

/* The stack whose frames come close above sp; by_low.n: there is none. */
static size_t find_reaching(const struct call_thread *t, uint64_t sp, uint64_t slack)
{
	size_t at = first_after(t, sp);
	const struct call_stack *s = at < t->by_low.n ? &t->stacks.v[t->by_low.v[at]] : NULL;
	const struct call_frame *top = s ? &s->frames.v[s->frames.n - 1] : NULL;

	if (!s || !s->is_guessed)
		return t->by_low.n;
	while (top > s->frames.v && top->sp == UINT64_MAX)
		top--;
	return top->sp != UINT64_MAX && top->sp >= sp && top->sp - sp <= slack ? at : t->by_low.n;
}

static uint64_t below(uint64_t sp, uint64_t n)
{
	return sp > n ? sp - n : 0;
}

static uint64_t above(uint64_t sp, uint64_t n)
{
	return sp < UINT64_MAX - n ? sp + n : UINT64_MAX;
}

/* [*low, *high) around sp, in nobody's way. */
static void guess(const struct call_thread *t, uint64_t sp, uint64_t *low, uint64_t *high)
{
	bool can_ask = t->counts->bounds;
	size_t at = first_after(t, sp);

	*low = below(sp, can_ask ? SLACK_BYTES : FAR_BYTES);
	*high = above(sp, can_ask ? ABOVE_BYTES : FAR_BYTES);
	if (at && t->stacks.v[t->by_low.v[at - 1]].high > *low)
		*low = t->stacks.v[t->by_low.v[at - 1]].high;
	if (at < t->by_low.n && t->stacks.v[t->by_low.v[at]].low < *high)
		*high = t->stacks.v[t->by_low.v[at]].low;
}

/* Whoever was there is cut, is gone, or is the same stack, which has grown: then true, and it is at *at. */
static bool make_way(struct call_thread *t, uint64_t sp, uint64_t low, uint64_t high, size_t *at)
{
	size_t i = first_after(t, low);

	while (i < t->by_low.n && t->stacks.v[t->by_low.v[i]].low < high) {
		struct call_stack *s = &t->stacks.v[t->by_low.v[i]];

		if (s->high == high && !s->is_guessed) {
			s->low = low;
			*at = i;
			return true;
		}
		if (s->is_guessed && s->low < low && s->high <= sp) {
			s->high = low;
			i++;
		} else if (s->is_guessed && s->high > high && s->low > sp) {
			s->low = high;
		} else {
			remove_at(t, i);
		}
	}
	*at = i;
	return false;
}

/* No other stack has these bytes, around sp. */
static void add_stack(struct call_thread *t, uint64_t sp, uint64_t low, uint64_t high, bool is_guessed)
{
	size_t at = first_after(t, sp);
	uint32_t i;

	if (t->free_stacks.n) {
		i = t->free_stacks.v[--t->free_stacks.n];
	} else {
		i = (uint32_t)t->stacks.n;
		vec_push(&t->stacks, ((struct call_stack){0}));
		begin(&t->stacks.v[i]);
	}
	t->stacks.v[i].low = low;
	t->stacks.v[i].high = high;
	t->stacks.v[i].is_guessed = is_guessed;
	vec_insert(&t->by_low, at, i);
	use(t, i);
}

static void add(struct call_thread *t, uint64_t sp)
{
	counts_stack_bounds *ask = t->counts->bounds;
	uint64_t low = 0, high = 0;
	bool is_known = ask && ask(t->counts->bounds_ctx, sp, &low, &high) && low <= sp && sp < high;
	size_t at;

	if (is_known && make_way(t, sp, low, high, &at)) {
		use(t, t->by_low.v[at]);
		return;
	}
	if (t->by_low.n >= COUNTS_STACKS_MAX)
		remove_oldest(t);
	if (!is_known)
		guess(t, sp, &low, &high);
	add_stack(t, sp, low, high, !is_known);
}

void call_stacks_copy(struct call_thread *t, uint64_t low, uint64_t size)
{
	add_stack(t, low, low, low + size, false);
}

void call_stacks_switch(struct call_thread *t, uint64_t sp)
{
	uint64_t slack = t->counts->bounds ? SLACK_BYTES : FAR_BYTES;
	size_t at = first_after(t, sp);

	leave(t);
	if (at < t->by_low.n && t->stacks.v[t->by_low.v[at]].low <= sp) {
		use(t, t->by_low.v[at]);
		return;
	}
	at = find_reaching(t, sp, slack);
	if (at < t->by_low.n) {
		struct call_stack *s = &t->stacks.v[t->by_low.v[at]];

		s->low = below(sp, SLACK_BYTES);
		if (at && t->stacks.v[t->by_low.v[at - 1]].high > s->low)
			s->low = t->stacks.v[t->by_low.v[at - 1]].high;
		use(t, t->by_low.v[at]);
		return;
	}
	add(t, sp);
}
