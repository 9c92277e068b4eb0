/* SPDX-License-Identifier: MIT */
/* The steps of a way (trace/step_ways.h): each block that it went through has its instructions, which the trace has told
 * once. Inside src/steps only. */
#ifndef WEIR_STEPS_READ_WAY_STEPS_H
#define WEIR_STEPS_READ_WAY_STEPS_H

#include "base/map.h"
#include "base/mem.h"
#include "trace/step_records.h"
#include "trace/step_ways.h"

struct way_block {
	uint64_t addr;
	uint64_t strings;
	uint32_t lengths_at; /* in `lengths` */
	uint32_t n;
};

/* All blocks of a trace. Zero-initialise it. */
struct way_blocks {
	struct map by_number; /* space, number -> index in `all` */
	VEC(struct way_block) all;
	struct buf lengths;
};
/* Those of a record; of two with one number the first one holds. False: the record is damaged, or there are too many. */
bool way_blocks_add(struct way_blocks *b, struct span payload);
void way_blocks_release(struct way_blocks *b);
static inline uint64_t way_block_key(uint32_t space, uint32_t number)
{
	return (uint64_t)space << 32 | number;
}

#define WAY_CACHE_ROWS 1024u

struct way_steps {
	const struct way_blocks *blocks;
	struct step_way_walk walk;
	/* The block that it is in, and what is left of it. */
	struct way_block block;
	uint32_t at;
	uint64_t addr;
	uint32_t n_left; /* steps of the way */
	struct {
		uint64_t key; /* + 1; 0: free */
		uint32_t index;
	} cache[WAY_CACHE_ROWS];
};
/* `minor` is the record's. False when the payload is damaged. */
bool way_steps_open(
	struct way_steps *w, const struct way_blocks *blocks, uint32_t minor, struct span payload);
/* As step_run_take(). */
int way_steps_take(struct way_steps *w, struct step_at *to, uint32_t max);
void way_steps_release(struct way_steps *w);

#endif
