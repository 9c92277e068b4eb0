/* SPDX-License-Identifier: MIT */
/*
 * Folds the repetitions of a long sequence of tokens as it goes by: what comes several times in a
 * row comes out once, with a number; repetitions inside of repetitions are folded first. Putting
 * every loop's body as often as it says gives exactly the sequence that went in.
 *
 * Memory is bounded, however long the sequence is. So a body is at most FOLD_PERIOD_MAX long and
 * loops are nested at most FOLD_LEVELS deep; what repeats beyond that comes out as it is.
 */
#ifndef WEIR_STEPS_TABLES_FOLD_H
#define WEIR_STEPS_TABLES_FOLD_H

#include <stdint.h>

#define FOLD_LEVELS	6
#define FOLD_PERIOD_MAX 4096

/* Tokens are the caller's numbers, without this bit; with it they are loops. */
#define FOLD_LOOP (UINT64_C(1) << 63)

struct fold;
/* Called with tokens and loops in order. */
typedef void fold_emit(void *ctx, uint64_t token);

struct fold *fold_new(fold_emit *emit, void *ctx);
void fold_free(struct fold *f);
void fold_push(struct fold *f, uint64_t token);
/* Gives out all that is held back; repetitions do not go on behind it. */
void fold_flush(struct fold *f);

struct fold_loop {
	const uint64_t *body; /* tokens and loops */
	uint32_t n;
	uint64_t times; /* at least 2 */
};
/* What a loop is; to be asked while it is given out. */
struct fold_loop fold_loop(const struct fold *f, uint64_t token);

#endif
