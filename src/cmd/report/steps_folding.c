/* SPDX-License-Identifier: MIT */
/*
 * A listing with its repetitions folded. The rows of a stretch become tokens: an instruction is its
 * number; what needs more than that (a mark, iterations of a string instruction, an address without
 * code) is a word of a table. What comes back are the same rows, each loop once.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/report/steps_listing.h"
#include "steps/tables/fold.h"

#define WORD	  (UINT64_C(1) << 32) /* tokens from here on are words, below are instructions */
#define WORDS_MAX 65536

_Static_assert(
	FOLD_LEVELS <= LISTING_DEPTH_MAX, "a listing shows loops as deep as they are folded");

struct fold_word {
	bool is_mark;
	struct step step;
	struct step_mark mark;
};

struct steps_folding {
	struct listing *listing;
	struct fold *fold;
	struct intern words;
	bool is_empty;
	uint64_t in, out; /* numbers of the next step that comes in and goes out */
};

/* ---- out ---- */

static struct fold_word word_of(const struct steps_folding *f, uint64_t token)
{
	struct fold_word word = {.step = {.insn = (uint32_t)token, .times = 1}};

	if (token >= WORD)
		memcpy(&word, intern_get(&f->words, (uint32_t)(token - WORD)), sizeof(word));
	else
		word.step.addr = steps_insn(f->listing->report->steps, word.step.insn)->addr;
	return word;
}

static uint64_t n_steps_of(const struct steps_folding *f, uint64_t token)
{
	struct fold_loop loop;
	uint64_t n = 0;

	if (token < WORD)
		return 1;
	if (!(token & FOLD_LOOP))
		return !word_of(f, token).is_mark;
	loop = fold_loop(f->fold, token);
	for (uint32_t i = 0; i < loop.n; i++)
		n += n_steps_of(f, loop.body[i]);
	return n * loop.times;
}

static void show(struct steps_folding *f, uint64_t token, uint64_t number)
{
	struct listing *l = f->listing;
	struct fold_loop loop;
	struct fold_word word;

	if (!(token & FOLD_LOOP)) {
		word = word_of(f, token);
		if (word.is_mark)
			listing_mark(l, number, &word.mark);
		else
			listing_step(l, number, &word.step);
		return;
	}
	loop = fold_loop(f->fold, token);
	l->loops[l->depth++] = (struct listing_loop){
		.first = number, .times = loop.times, .n_steps = n_steps_of(f, token) / loop.times};
	for (uint32_t i = 0; i < loop.n && !l->is_full; i++) {
		show(f, loop.body[i], number);
		number += n_steps_of(f, loop.body[i]);
	}
	l->depth--;
}

static void emit(void *ctx, uint64_t token)
{
	struct steps_folding *f = ctx;

	if (!f->listing->is_full)
		show(f, token, f->out);
	f->out += n_steps_of(f, token);
}

/* ---- in ---- */

struct steps_folding *steps_folding_new(struct listing *l)
{
	struct steps_folding *f = mem_zalloc(sizeof(*f));

	f->listing = l;
	f->fold = fold_new(emit, f);
	f->is_empty = true;
	return f;
}

void steps_folding_free(struct steps_folding *f)
{
	if (!f)
		return;
	fold_free(f->fold);
	intern_release(&f->words);
	free(f);
}

void steps_folding_flush(struct steps_folding *f)
{
	fold_flush(f->fold);
	intern_release(&f->words);
	f->is_empty = true;
}

/* Numbers of what is held back follow one another. */
static void begin_at(struct steps_folding *f, uint64_t number)
{
	if (!f->is_empty && (f->in != number || f->words.n_items >= WORDS_MAX))
		steps_folding_flush(f);
	if (f->is_empty)
		f->in = f->out = number;
	f->is_empty = false;
}

static void push_word(struct steps_folding *f, const struct fold_word *word)
{
	fold_push(f->fold, WORD + intern_bytes(&f->words, word, sizeof(*word)));
}

void steps_folding_step(struct steps_folding *f, uint64_t number, const struct step *step)
{
	struct fold_word word;

	begin_at(f, number);
	f->in++;
	if (step->insn && step->times == 1) {
		fold_push(f->fold, step->insn);
		return;
	}
	memset(&word, 0, sizeof(word)); /* words are compared byte by byte */
	word.step.addr = step->addr;
	word.step.insn = step->insn;
	word.step.times = step->times;
	push_word(f, &word);
}

void steps_folding_mark(struct steps_folding *f, uint64_t at, const struct step_mark *mark)
{
	struct fold_word word;

	begin_at(f, at);
	memset(&word, 0, sizeof(word));
	word.is_mark = true;
	word.mark.kind = mark->kind;
	word.mark.a = mark->a;
	word.mark.b = mark->b;
	word.mark.c = mark->c;
	word.mark.text = mark->text;
	push_word(f, &word);
}
