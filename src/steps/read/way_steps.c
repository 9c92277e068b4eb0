/* SPDX-License-Identifier: MIT */
#include "steps/read/way_steps.h"

#define BLOCKS_MAX (1u << 24)

bool way_blocks_add(struct way_blocks *b, struct span payload)
{
	struct step_blocks_walk w;
	struct step_block block;
	int rc = step_blocks_open(&w, payload) ? 1 : -1;

	for (uint32_t i = 0; rc > 0 && (rc = step_blocks_next(&w, &block)) > 0; i++) {
		bool is_new;
		uint64_t *index = map_ensure(
			&b->by_number, way_block_key(w.head.space, w.head.first + i), &is_new);

		if (!is_new)
			continue;
		*index = b->all.n;
		vec_push(&b->all, ((struct way_block){block.addr, block.strings,
					  (uint32_t)b->lengths.n, block.n}));
		buf_put(&b->lengths, block.lengths, block.n);
		if (b->all.n >= BLOCKS_MAX)
			return false;
	}
	return rc == 0;
}

void way_blocks_release(struct way_blocks *b)
{
	map_release(&b->by_number);
	vec_release(&b->all);
	buf_release(&b->lengths);
}

/* --- a way --------------------------------------------------------------------------------- */

static bool find_block(struct way_steps *w, uint32_t number)
{
	uint64_t key = way_block_key(w->walk.head.space, number) + 1;
	size_t row = number % WAY_CACHE_ROWS;

	if (w->cache[row].key != key) {
		const uint64_t *index = map_find(&w->blocks->by_number, key - 1);

		if (!index)
			return false;
		w->cache[row].key = key;
		w->cache[row].index = (uint32_t)*index;
	}
	w->block = w->blocks->all.v[w->cache[row].index];
	w->at = 0;
	w->addr = w->block.addr;
	return true;
}

bool way_steps_open(
	struct way_steps *w, const struct way_blocks *blocks, uint32_t minor, struct span payload)
{
	w->blocks = blocks;
	if (!step_way_open(&w->walk, minor, payload))
		return false;
	w->n_left = w->walk.head.n;
	w->at = w->block.n = 0;
	return true;
}

/* Steps of the block that it is in. */
static int take_of_block(struct way_steps *w, struct step_at *to, uint32_t max)
{
	const uint8_t *lengths = w->blocks->lengths.p + w->block.lengths_at;
	uint32_t n = w->block.n - w->at;

	n = n < max ? n : max;
	n = n < w->n_left ? n : w->n_left;
	for (uint32_t i = 0; i < n; i++) {
		to[i] = (struct step_at){w->addr, 1};
		if (w->block.strings >> w->at & 1 && !step_way_next_rounds(&w->walk, &to[i].times))
			return -1;
		w->addr += lengths[w->at++];
	}
	w->n_left -= n;
	return (int)n;
}

/* The way ends where its last block does, but for what was not executed of it. */
static bool has_ended(struct way_steps *w)
{
	uint32_t block;

	return w->block.n - w->at == w->walk.head.cut && step_way_next(&w->walk, &block) == 0;
}

int way_steps_take(struct way_steps *w, struct step_at *to, uint32_t max)
{
	uint32_t n = 0, block;
	int got;

	while (n < max && w->n_left) {
		if (w->at == w->block.n &&
			(step_way_next(&w->walk, &block) <= 0 || !find_block(w, block)))
			return n ? (int)n : -1;
		got = take_of_block(w, to + n, max - n);
		if (got < 0)
			return n ? (int)n : -1;
		n += (uint32_t)got;
	}
	return n || has_ended(w) ? (int)n : -1;
}

void way_steps_release(struct way_steps *w)
{
	step_way_walk_release(&w->walk);
}
