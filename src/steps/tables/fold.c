/* SPDX-License-Identifier: MIT */
/*
 * A row of equal stages. A stage folds what repeats among the tokens that it gets, and hands on
 * tokens and loops to the next one, for which a loop is one token: so the first stage finds
 * innermost loops, the second those around them, and so on.
 *
 * A stage is in one of two states.
 *   In the window: tokens are kept while a repetition may still begin with them. When the last `p`
 *   of them are the same as the `p` before, a loop begins; what is before it is handed on.
 *   In a loop: each token is compared with the one that the body has there. The first other one
 *   ends the loop; what was seen of the round that was not finished goes back into the window.
 *
 * Invariants:
 * 1. What was handed on, the loop, and the window, in this order, are what came in.
 * 2. Equal loops have equal numbers, and a number never changes its meaning before a flush.
 *
 * Where a token was last is remembered in a table in which places are overwritten, and only a few
 * earlier places of a token are tried, besides one guess that is followed: a repetition may be
 * found a little later for that, and then its beginning is found by going back.
 */
#include "steps/tables/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

#define WINDOW	    (4 * FOLD_PERIOD_MAX)
#define SEEN_SLOTS  16384 /* power of two */
#define TRIES	    8	  /* earlier places of a token */
#define LOOPS_MAX   65536
#define BODIES_MAX  (1u << 20) /* tokens in all bodies */
#define HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15)
#define NO_PLACE    UINT64_MAX

struct seen {
	uint64_t token, place;
};

struct stage {
	struct fold *fold;
	struct stage *next; /* NULL: the last one */
	/* The window: places count from the beginning of the sequence. */
	uint64_t first; /* place of tokens[0] */
	size_t n;
	uint64_t tokens[WINDOW];
	uint64_t sums[WINDOW + 1]; /* hash of all tokens up to here, from any beginning */
	uint64_t earlier[WINDOW];  /* place of the same token before; NO_PLACE = none */
	struct seen seen[SEEN_SLOTS];
	size_t guess, n_right; /* the last n_right tokens are those `guess` places before */
	/* The loop. */
	bool in_loop;
	size_t period, at; /* `at`: tokens of the round that has begun */
	uint64_t times;
	uint64_t body[FOLD_PERIOD_MAX];
};

struct loop_place {
	size_t first;
	uint32_t n;
	uint64_t times;
};

struct fold {
	fold_emit *emit;
	void *ctx;
	uint64_t powers[FOLD_PERIOD_MAX + 1]; /* of HASH_FACTOR */
	VEC(struct loop_place) loops;
	VEC(uint64_t) bodies;
	struct map by_hash; /* hash -> loop + 1 */
	struct stage stages[FOLD_LEVELS];
};

static void stage_push(struct stage *s, uint64_t token);

/* ---- loops ---- */

struct fold_loop fold_loop(const struct fold *f, uint64_t token)
{
	const struct loop_place *loop = &f->loops.v[token & ~FOLD_LOOP];

	return (struct fold_loop){f->bodies.v + loop->first, loop->n, loop->times};
}

static bool is_loop(const struct fold *f, size_t i, const struct stage *s)
{
	const struct loop_place *loop = &f->loops.v[i];

	return loop->n == s->period && loop->times == s->times &&
	       !memcmp(f->bodies.v + loop->first, s->body, s->period * sizeof(*s->body));
}

/* The number of the stage's loop. Two loops of one hash have different numbers, and the older one
 * is then made anew each time: that costs a repetition, not an error. */
static uint64_t loop_token(struct fold *f, const struct stage *s)
{
	uint64_t hash =
		map_hash_mix(map_hash_bytes(s->body, s->period * sizeof(*s->body)), s->times);
	uint64_t *slot = map_ensure(&f->by_hash, hash, NULL);

	if (*slot && is_loop(f, *slot - 1, s))
		return FOLD_LOOP | (*slot - 1);
	vec_push(&f->loops, ((struct loop_place){f->bodies.n, (uint32_t)s->period, s->times}));
	vec_reserve(&f->bodies, f->bodies.n + s->period);
	memcpy(f->bodies.v + f->bodies.n, s->body, s->period * sizeof(*s->body));
	f->bodies.n += s->period;
	*slot = f->loops.n;
	return FOLD_LOOP | (f->loops.n - 1);
}

/* ---- a stage ---- */

static void hand_on(struct stage *s, uint64_t token)
{
	if (s->next)
		stage_push(s->next, token);
	else
		s->fold->emit(s->fold->ctx, token);
}

/* The first `n` tokens of the window leave it. */
static void window_leave(struct stage *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hand_on(s, s->tokens[i]);
	s->first += n;
	s->n -= n;
	memmove(s->tokens, s->tokens + n, s->n * sizeof(*s->tokens));
	memmove(s->earlier, s->earlier + n, s->n * sizeof(*s->earlier));
	memmove(s->sums, s->sums + n, (s->n + 1) * sizeof(*s->sums));
}

/* A token that the body has once tells how long the body is, and the tokens behind it then agree
 * or not. */
static void go_on_guessing(struct stage *s)
{
	size_t at = s->n - 1;
	uint64_t earlier = s->earlier[at];

	if (s->guess && at >= s->guess && s->tokens[at] == s->tokens[at - s->guess]) {
		s->n_right++;
		return;
	}
	s->n_right = earlier != NO_PLACE && earlier >= s->first;
	s->guess = s->n_right ? (size_t)(s->first + at - earlier) : 0;
}

static void window_add(struct stage *s, uint64_t token)
{
	uint64_t hash = map_hash(token);
	struct seen *seen = &s->seen[hash & (SEEN_SLOTS - 1)];

	if (s->n == WINDOW)
		window_leave(s, WINDOW / 2);
	s->tokens[s->n] = token;
	s->earlier[s->n] = seen->token == token ? seen->place : NO_PLACE;
	s->sums[s->n + 1] = s->sums[s->n] * HASH_FACTOR + hash;
	*seen = (struct seen){token, s->first + s->n};
	s->n++;
	go_on_guessing(s);
}

static uint64_t hash_of(const struct stage *s, size_t from, size_t n)
{
	return s->sums[from + n] - s->sums[from] * s->fold->powers[n];
}

static bool ends_twice(const struct stage *s, size_t period)
{
	const uint64_t *end = s->tokens + s->n;

	return hash_of(s, s->n - period, period) == hash_of(s, s->n - 2 * period, period) &&
	       !memcmp(end - period, end - 2 * period, period * sizeof(*end));
}

/* The smallest number of tokens that the window ends with twice, as far as it is looked for; 0:
 * there is none. */
static size_t find_period(const struct stage *s)
{
	uint64_t place = s->earlier[s->n - 1];

	for (int i = 0; i < TRIES && place != NO_PLACE && place >= s->first; i++) {
		size_t at = (size_t)(place - s->first), period = s->n - 1 - at;

		if (period > FOLD_PERIOD_MAX || 2 * period > s->n)
			break;
		if (ends_twice(s, period))
			return period;
		place = s->earlier[at];
	}
	if (s->guess && s->guess <= FOLD_PERIOD_MAX && s->n_right >= s->guess &&
		2 * s->guess <= s->n)
		return s->guess;
	return 0;
}

static void begin_loop(struct stage *s, size_t period)
{
	size_t start = s->n - 2 * period, n;

	while (start && s->tokens[start - 1] == s->tokens[start - 1 + period])
		start--;
	n = s->n - start;
	memcpy(s->body, s->tokens + start, period * sizeof(*s->body));
	s->period = period;
	s->times = n / period;
	s->at = n % period;
	s->in_loop = true;
	window_leave(s, start);
	/* Its places are not used again: nothing that is remembered points at other tokens. */
	s->first += s->n;
	s->n = 0;
	s->guess = 0;
}

static void end_loop(struct stage *s)
{
	s->in_loop = false;
	hand_on(s, loop_token(s->fold, s));
	/* Nothing repeats in the part of a round: it would have been found in the body. */
	for (size_t i = 0; i < s->at; i++)
		window_add(s, s->body[i]);
}

static void stage_push(struct stage *s, uint64_t token)
{
	size_t period;

	if (s->in_loop) {
		if (token == s->body[s->at]) {
			if (++s->at == s->period) {
				s->at = 0;
				s->times++;
			}
			return;
		}
		end_loop(s);
	}
	window_add(s, token);
	period = find_period(s);
	if (period)
		begin_loop(s, period);
}

static void stage_flush(struct stage *s)
{
	if (s->in_loop)
		end_loop(s);
	window_leave(s, s->n);
}

/* ---- all ---- */

struct fold *fold_new(fold_emit *emit, void *ctx)
{
	struct fold *f = mem_zalloc(sizeof(*f));

	f->emit = emit;
	f->ctx = ctx;
	f->powers[0] = 1;
	for (size_t i = 1; i <= FOLD_PERIOD_MAX; i++)
		f->powers[i] = f->powers[i - 1] * HASH_FACTOR;
	for (size_t i = 0; i < FOLD_LEVELS; i++) {
		f->stages[i].fold = f;
		f->stages[i].next = i + 1 < FOLD_LEVELS ? &f->stages[i + 1] : NULL;
		for (size_t j = 0; j < SEEN_SLOTS; j++)
			f->stages[i].seen[j].place = NO_PLACE;
	}
	return f;
}

void fold_free(struct fold *f)
{
	if (!f)
		return;
	vec_release(&f->loops);
	vec_release(&f->bodies);
	map_release(&f->by_hash);
	free(f);
}

void fold_push(struct fold *f, uint64_t token)
{
	stage_push(&f->stages[0], token);
	if (f->loops.n > LOOPS_MAX || f->bodies.n > BODIES_MAX)
		fold_flush(f);
}

void fold_flush(struct fold *f)
{
	for (size_t i = 0; i < FOLD_LEVELS; i++)
		stage_flush(&f->stages[i]);
	/* Numbers of loops get new meanings: no stage holds one any more, but a stage remembers
	 * where it last saw one, before its window; places there are not looked at. */
	f->loops.n = f->bodies.n = 0;
	map_reset(&f->by_hash);
}
