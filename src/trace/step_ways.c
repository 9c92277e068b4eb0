/* SPDX-License-Identifier: MIT */
/*
 * Blocks and ways to and from bytes; docs/format/steps.md is the text to this. The guesses are those of a simple
 * branch predictor: what came last behind the same blocks (some six of them); what came last, and before that, behind
 * this block when that was wrong.
 */
#include "trace/step_ways.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/layout.h"

/* A token is 4 n + code: n right guesses, then this. */
enum code {
	CODE_NEWER,
	CODE_OLDER,
	CODE_NUMBER /* follows, as a difference to the last block */,
	CODE_END
};

#define LENGTH_BITS	15u
#define LENGTH_STRING	16u
#define BLOCK_BYTES_MIN 3 /* of an entry */

static uint32_t take_u32(struct cursor *c)
{
	uint64_t v = cursor_uleb(c);

	if (v > UINT32_MAX)
		c->failed = true;
	return (uint32_t)v;
}

/* --- blocks -------------------------------------------------------------------------------- */

void step_blocks_encode(
	struct buf *to, const struct step_blocks_head *head, const struct step_block *blocks)
{
	uint64_t last_end = 0;

	buf_put_ulebs(to, head->space, head->first, head->n);
	for (uint32_t i = 0; i < head->n; i++) {
		const struct step_block *b = &blocks[i];

		assert(b->n && b->n <= STEP_BLOCK_INSNS_MAX);
		buf_put_uleb(to, zigzag(b->addr - last_end));
		buf_put_u8(to, b->n);
		last_end = b->addr;
		for (uint32_t k = 0; k < b->n; k++) {
			buf_put_u8(to, (uint8_t)(b->lengths[k] |
						 (b->strings >> k & 1 ? LENGTH_STRING : 0)));
			last_end += b->lengths[k];
		}
	}
}

bool step_blocks_open(struct step_blocks_walk *w, struct span payload)
{
	*w = (struct step_blocks_walk){.c = cursor_of(payload)};
	w->head.space = take_u32(&w->c);
	w->head.first = take_u32(&w->c);
	w->head.n = w->n_left = take_u32(&w->c);
	return !w->c.failed && w->head.n <= cursor_left(&w->c) / BLOCK_BYTES_MIN &&
	       w->head.first < STEP_BLOCKS_MAX && w->head.n <= STEP_BLOCKS_MAX - w->head.first;
}

int step_blocks_next(struct step_blocks_walk *w, struct step_block *block)
{
	struct step_block b = {0};

	if (w->c.failed || (!w->n_left && cursor_left(&w->c)))
		return -1;
	if (!w->n_left)
		return 0;
	b.addr = w->last_end + unzigzag(cursor_uleb(&w->c));
	b.n = cursor_u8(&w->c);
	w->last_end = b.addr;
	if (!b.n || b.n > STEP_BLOCK_INSNS_MAX)
		w->c.failed = true;
	for (uint32_t i = 0; !w->c.failed && i < b.n; i++) {
		uint8_t v = cursor_u8(&w->c);

		b.lengths[i] = v & LENGTH_BITS;
		b.strings |= (uint64_t) !!(v & LENGTH_STRING) << i;
		w->last_end += b.lengths[i];
		if (!b.lengths[i] || v > (LENGTH_BITS | LENGTH_STRING))
			w->c.failed = true;
	}
	if (w->c.failed)
		return -1;
	w->n_left--;
	*block = b;
	return 1;
}

/* --- guesses ------------------------------------------------------------------------------- */

static void guesses_begin(
	struct step_guesses *g, const struct step_guess_rule *rule, uint32_t block)
{
	if (!g->by_history) {
		g->by_history = mem_calloc(STEP_WAY_CONTEXTS, sizeof(*g->by_history));
		g->way = 0;
	}
	g->way += STEP_GUESS_WAY_UNIT;
	if (!g->way) { /* all numbers of ways are used up */
		memset(g->by_history, 0, STEP_WAY_CONTEXTS * sizeof(*g->by_history));
		g->way = STEP_GUESS_WAY_UNIT;
	}
	for (size_t i = 0; i < g->touched.n; i++)
		g->by_block.v[g->touched.v[i]] = (struct step_pair){0};
	g->touched.n = 0;
	g->history = step_guess_history(rule, 0, block);
	g->last = block;
}

static struct step_pair *pair_of(struct step_guesses *g, uint32_t block)
{
	struct step_pair *p;

	if (block >= g->by_block.n) {
		size_t n = g->by_block.n;

		vec_reserve(&g->by_block, block + 1 > 2 * n ? block + 1 : 2 * n);
		memset(g->by_block.v + n, 0, (block + 1 - n) * sizeof(*g->by_block.v));
		g->by_block.n = block + 1;
	}
	p = &g->by_block.v[block];
	if (!p->newer)
		vec_push(&g->touched, block);
	return p;
}

/* What came behind a block is remembered. */
static void learn(struct step_pair *p, uint32_t block)
{
	if (p->newer == block + 1)
		return;
	p->older = p->newer;
	p->newer = block + 1;
}

static void guesses_release(struct step_guesses *g)
{
	free(g->by_history);
	g->by_history = NULL;
	vec_release(&g->by_block);
	vec_release(&g->touched);
}

/* --- writing ------------------------------------------------------------------------------- */

void step_way_begin(struct step_way_coder *c, uint64_t first, uint32_t space, uint32_t generation,
	uint32_t block)
{
	c->head = (struct step_way_head){
		.first = first, .space = space, .generation = generation, .start = block};
	c->n_right = 0;
	buf_reset(&c->tokens);
	buf_reset(&c->rounds);
	guesses_begin(&c->guesses, &STEP_GUESS_RULE, block);
}

/* Which of the blocks were not guessed, by their index; returns how many. What comes is remembered in any case, and
 * nothing branches: wrong guesses come as they like, and the processor would guess them wrongly, too. */
static size_t find_missed(
	struct step_guesses *g, const uint32_t *blocks, size_t n, uint16_t *missed)
{
	const struct step_guess_rule rule = STEP_GUESS_RULE;
	uint32_t *by_history = g->by_history, history = g->history, way = g->way;
	size_t n_missed = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t *guess = &by_history[step_guess_place(&rule, history)];
		uint32_t is = way | (blocks[i] + 1);

		missed[n_missed] = (uint16_t)i;
		n_missed += *guess != is;
		*guess = is;
		history = step_guess_history(&rule, history, blocks[i]);
	}
	g->history = history;
	return n_missed;
}

static uint8_t *put_uleb(uint8_t *to, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*to++ = (uint8_t)(v | 0x80);
	*to++ = (uint8_t)v;
	return to;
}

/* Two numbers each, of 64 and of 33 bits. */
#define TOKEN_BYTES_MAX 15u

/* The token of a block that came behind `last` and was not guessed. */
static uint8_t *put_missed(
	struct step_guesses *g, uint8_t *to, uint64_t n_right, uint32_t last, uint32_t block)
{
	struct step_pair *p = pair_of(g, last);
	enum code code = p->newer == block + 1	 ? CODE_NEWER
			 : p->older == block + 1 ? CODE_OLDER
						 : CODE_NUMBER;

	to = put_uleb(to, 4 * n_right + code);
	if (code == CODE_NUMBER)
		to = put_uleb(to, zigzag((uint64_t)block - last));
	learn(p, block);
	return to;
}

static void add_some(struct step_way_coder *c, const uint32_t *blocks, size_t n)
{
	uint8_t tokens[STEP_WAY_BLOCKS_AT_ONCE * TOKEN_BYTES_MAX], *to = tokens;
	uint16_t missed[STEP_WAY_BLOCKS_AT_ONCE];
	struct step_guesses *g = &c->guesses;
	size_t n_missed = find_missed(g, blocks, n, missed), from = 0;

	for (size_t k = 0; k < n_missed; k++) {
		size_t i = missed[k];

		to = put_missed(
			g, to, c->n_right + (i - from), i ? blocks[i - 1] : g->last, blocks[i]);
		c->n_right = 0;
		from = i + 1;
	}
	c->n_right += n - from;
	g->last = blocks[n - 1];
	if (to != tokens)
		buf_put(&c->tokens, tokens, (size_t)(to - tokens));
}

void step_way_add(struct step_way_coder *c, const uint32_t *blocks, size_t n)
{
	for (size_t some; n; blocks += some, n -= some) {
		some = n < STEP_WAY_BLOCKS_AT_ONCE ? n : STEP_WAY_BLOCKS_AT_ONCE;
		add_some(c, blocks, some);
	}
}

void step_way_rounds(struct step_way_coder *c, uint64_t rounds)
{
	buf_put_uleb(&c->rounds, rounds);
}

void step_way_end(struct step_way_coder *c, struct buf *to)
{
	buf_put_uleb(&c->tokens, 4 * c->n_right + CODE_END);
	buf_put_ulebs(to, c->head.first, c->head.space, c->head.generation, c->head.n, c->head.cut,
		c->head.start, c->tokens.n);
	buf_put(to, c->tokens.p, c->tokens.n);
	if (c->rounds.n)
		buf_put(to, c->rounds.p, c->rounds.n);
}

void step_way_release(struct step_way_coder *c)
{
	guesses_release(&c->guesses);
	buf_release(&c->tokens);
	buf_release(&c->rounds);
}

/* --- reading ------------------------------------------------------------------------------- */

static bool take_head(struct cursor *c, struct step_way_head *head, uint64_t *n_tokens)
{
	struct step_way_head h;

	h.first = cursor_uleb(c);
	h.space = take_u32(c);
	h.generation = take_u32(c);
	h.n = take_u32(c);
	h.cut = take_u32(c);
	h.start = take_u32(c);
	*n_tokens = cursor_uleb(c);
	if (c->failed || !h.n || h.n > STEP_WAY_STEPS_MAX || h.first > UINT64_MAX - h.n ||
		h.cut >= STEP_BLOCK_INSNS_MAX || h.start >= STEP_BLOCKS_MAX ||
		*n_tokens > cursor_left(c))
		return false;
	*head = h;
	return true;
}

bool step_way_head(struct step_way_head *head, struct span payload)
{
	struct cursor c = cursor_of(payload);
	uint64_t n_tokens;

	return take_head(&c, head, &n_tokens);
}

bool step_way_open(struct step_way_walk *w, uint32_t minor, struct span payload)
{
	struct cursor c = cursor_of(payload);
	uint64_t n_tokens;

	if (!take_head(&c, &w->head, &n_tokens))
		return false;
	w->tokens = cursor_of((struct span){c.p, (size_t)n_tokens});
	w->rounds = cursor_of((struct span){c.p + n_tokens, cursor_left(&c) - (size_t)n_tokens});
	w->has_token = w->is_begun = false;
	w->rule = minor == RECORD_STEP_SHORT_WAY ? STEP_GUESS_SHORT_RULE : STEP_GUESS_RULE;
	guesses_begin(&w->guesses, &w->rule, w->head.start);
	return true;
}

static bool take_token(struct step_way_walk *w)
{
	uint64_t v = cursor_uleb(&w->tokens);

	w->n_right = v / 4;
	w->code = v % 4;
	w->has_token = !w->tokens.failed;
	return w->has_token;
}

/* What came in place of `guess`; false: damaged. */
static bool take_missed(struct step_way_walk *w, uint32_t *guess, uint32_t *block)
{
	struct step_guesses *g = &w->guesses;
	struct step_pair *p = pair_of(g, g->last);
	uint64_t number;

	w->has_token = false;
	if (w->code == CODE_NUMBER)
		number = g->last + unzigzag(cursor_uleb(&w->tokens));
	else
		number = (uint64_t)(w->code == CODE_NEWER ? p->newer : p->older) - 1;
	if (w->tokens.failed || number >= STEP_BLOCKS_MAX)
		return false;
	*block = (uint32_t)number;
	*guess = g->way | (*block + 1);
	learn(p, *block);
	return true;
}

int step_way_next(struct step_way_walk *w, uint32_t *block)
{
	struct step_guesses *g = &w->guesses;
	uint32_t *guess;

	if (!w->is_begun) {
		w->is_begun = true;
		*block = w->head.start;
		return 1;
	}
	if (!w->has_token && !take_token(w))
		return -1;
	guess = &g->by_history[step_guess_place(&w->rule, g->history)];
	if (w->n_right) {
		if (*guess - g->way >= STEP_GUESS_WAY_UNIT) /* nothing was there yet */
			return -1;
		w->n_right--;
		*block = *guess - g->way - 1;
	} else if (w->code == CODE_END) {
		return cursor_left(&w->tokens) || cursor_left(&w->rounds) ? -1 : 0;
	} else if (!take_missed(w, guess, block)) {
		return -1;
	}
	g->history = step_guess_history(&w->rule, g->history, *block);
	g->last = *block;
	return 1;
}

bool step_way_next_rounds(struct step_way_walk *w, uint64_t *rounds)
{
	*rounds = cursor_uleb(&w->rounds);
	return !w->rounds.failed && *rounds;
}

void step_way_walk_release(struct step_way_walk *w)
{
	guesses_release(&w->guesses);
}
