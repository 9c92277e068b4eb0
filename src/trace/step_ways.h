/* SPDX-License-Identifier: MIT */
/*
 * The payloads of step records (0x57) that tell of blocks, to and from bytes; docs/format/steps.md is the text to this.
 *
 *   BLOCKS  instructions that are executed one behind the other: where, and how long each is
 *   WAY	   the same as a run (trace/step_records.h), as the numbers of the blocks that a thread went through;
 *	   SHORT_WAY, which is only read, guesses by another rule
 *
 * A way is a row of guesses: which block comes next is guessed from those before, by a rule that writer and
 * reader share, and what is written is how many guesses in a row were right, and what came instead of a wrong
 * one. So a loop costs next to nothing, however long it runs.
 */
#ifndef WEIR_TRACE_STEP_WAYS_H
#define WEIR_TRACE_STEP_WAYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/span.h"
#include "trace/records.h"
#include "trace/step_records.h"

#define STEP_BLOCK_INSNS_MAX 64
#define STEP_BLOCKS_MAX	     (1u << 24) /* numbers of a space are below it */
/* A reader decodes a way from its start, whichever step it wants. */
#define STEP_WAY_STEPS_MAX (1u << 22)

/* --- blocks ------------------------------------------------------------------------------- */

struct step_block {
	uint64_t addr;
	uint8_t n;			       /* instructions, at least 1 */
	uint8_t lengths[STEP_BLOCK_INSNS_MAX]; /* bytes of each, 1 to 15 */
	uint64_t
		strings; /* bit i: instruction i is a repeated string instruction, whose rounds a way tells */
};

struct step_blocks_head {
	uint32_t space;
	uint32_t first; /* number of the first one; the others follow */
	uint32_t n;
};

void step_blocks_encode(
	struct buf *to, const struct step_blocks_head *head, const struct step_block *blocks);
struct step_blocks_walk {
	struct step_blocks_head head;
	struct cursor c;
	uint32_t n_left;
	uint64_t last_end;
};
bool step_blocks_open(struct step_blocks_walk *w, struct span payload);
/* 1: a block; 0: the end; -1: damaged. */
int step_blocks_next(struct step_blocks_walk *w, struct step_block *block);

/* --- guesses ------------------------------------------------------------------------------ */

#define STEP_WAY_CONTEXTS 65536u

/* Numbers + 1 of blocks. */
struct step_pair {
	uint32_t newer, older;
};

/* How a block goes into the history, and where a history has its place. */
struct step_guess_rule {
	unsigned shift;
	uint32_t factor;
	unsigned place_shift;
};
#define STEP_GUESS_RULE                                                                            \
	((struct step_guess_rule){.shift = 5, .factor = 0x85ebca6bu, .place_shift = 16})
#define STEP_GUESS_SHORT_RULE ((struct step_guess_rule){.shift = 8, .factor = 1, .place_shift = 20})

/* What the guesses are made from; both sides have the same at each block. */
struct step_guesses {
	uint32_t history; /* of the blocks before */
	uint32_t last;	  /* block */
	/* What came last behind a history: number + 1, and which way it was in. Of another way than this one, or 0:
	 * nothing did. So most ways begin without touching all of it. STEP_WAY_CONTEXTS of them. */
	uint32_t *by_history;
	uint32_t way; /* STEP_GUESS_WAY_UNIT times 1 to 127 */
	/* What came behind a block when it was guessed wrongly: the last one, and another one. */
	VEC(struct step_pair) by_block;
	VEC(uint32_t) touched; /* rows of by_block that are not 0 */
};

#define STEP_GUESS_WAY_UNIT (1u << 25) /* numbers + 1 are below it */

static inline uint32_t step_guess_place(const struct step_guess_rule *rule, uint32_t history)
{
	return history * 0x9e3779b1u >> rule->place_shift;
}

static inline uint32_t step_guess_history(
	const struct step_guess_rule *rule, uint32_t history, uint32_t block)
{
	return (history << rule->shift) + block * rule->factor;
}

/* --- ways --------------------------------------------------------------------------------- */

struct step_way_head {
	uint64_t first; /* number of its first step in the thread */
	uint32_t space, generation;
	uint32_t n;	/* steps, at least 1 */
	uint32_t cut;	/* instructions of the last block that were not executed */
	uint32_t start; /* the first block */
};

/* Builds the payload of a way, block by block. */
struct step_way_coder {
	struct step_way_head head; /* n: that of all blocks that were added */
	uint64_t n_right;	   /* guesses in a row */
	struct step_guesses guesses;
	struct buf tokens, rounds;
};
/* Empty, ready for its first block, which is no guess; keeps the memory. */
void step_way_begin(struct step_way_coder *c, uint64_t first, uint32_t space, uint32_t generation,
	uint32_t block);
/* It went to these blocks, one behind the other. */
#define STEP_WAY_BLOCKS_AT_ONCE 256u
void step_way_add(struct step_way_coder *c, const uint32_t *blocks, size_t n);
/* Of the repeated string instruction that comes next in the way: at least 1. */
void step_way_rounds(struct step_way_coder *c, uint64_t rounds);
/* Appends the payload to `to`. */
void step_way_end(struct step_way_coder *c, struct buf *to);
void step_way_release(struct step_way_coder *c);
static inline bool step_way_is_full(const struct step_way_coder *c)
{
	return c->head.n >= STEP_WAY_STEPS_MAX - STEP_BLOCK_INSNS_MAX ||
	       c->tokens.n + c->rounds.n >= STEP_RUN_BYTES_BEST;
}

/* Walks a payload, block by block. */
struct step_way_walk {
	struct step_way_head head;
	struct cursor tokens, rounds;
	uint64_t n_right; /* guesses that are right before `code` */
	unsigned code;
	bool has_token;
	bool is_begun;
	struct step_guess_rule rule;
	struct step_guesses guesses; /* its memory stays from walk to walk */
};
/* The head alone. False when the payload is damaged. */
bool step_way_head(struct step_way_head *head, struct span payload);
/* In front of its first block; `minor` is the record's. False when damaged. */
bool step_way_open(struct step_way_walk *w, uint32_t minor, struct span payload);
static inline bool step_is_way(uint32_t minor)
{
	return minor == RECORD_STEP_WAY || minor == RECORD_STEP_SHORT_WAY;
}
/* 1: *block; 0: there is none, and the payload ends there; -1: damaged. */
int step_way_next(struct step_way_walk *w, uint32_t *block);
/* The rounds of the next repeated string instruction; false: damaged. */
bool step_way_next_rounds(struct step_way_walk *w, uint64_t *rounds);
void step_way_walk_release(struct step_way_walk *w);

#endif
