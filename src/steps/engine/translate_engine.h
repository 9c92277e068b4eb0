/* SPDX-License-Identifier: MIT */
/*
 * Steps by the translator inside the program (rt/translate/), which says which blocks of code a thread begins. The
 * tracer of src/translate/ follows the program; what it tells becomes ways and marks here.
 *
 *	translate_engine.c	programs and threads
 *	translate_rows.c	blocks of the translator, and what they are in the trace
 *	translate_words.c	words of threads: blocks, system calls, signals
 */
#ifndef WEIR_STEPS_ENGINE_TRANSLATE_ENGINE_H
#define WEIR_STEPS_ENGINE_TRANSLATE_ENGINE_H

#include "base/mem.h"
#include "steps/record/step_internal.h"
#include "translate/tracer.h"

/* A block of the translator's table. */
struct translated_row {
	uint64_t pc;
	const uint8_t *code; /* NULL: could not be read */
	uint32_t bytes;
	uint16_t n;
	bool ends_in_call; /* with a system call */
	bool is_implied;   /* TRANSLATE_BLOCK_IMPLIED */
	uint64_t target;   /* of its jump or call; 0: as in struct translate_block */
};

/* Rows and the code that they point to. The child of a fork goes on with its parent's. */
struct translated_rows {
	unsigned n_users;
	struct translated_rows *parent;
	uint32_t n_of_parent; /* rows below are the parent's */
	VEC(struct translated_row) rows;
	VEC(uint8_t *) code;
};

/* What is needed of a row for each word, by the translator's number. All 0: has to be looked at. */
struct translated_fast {
	uint32_t number; /* of the space, + 1 */
	uint16_t n;
	uint16_t flags; /* FAST_* */
};
#define FAST_UNWANTED 1u /* --user-code */
#define FAST_STRINGS  2u /* it has repeated string instructions */

/* Of two words that came behind each other: what was executed from the first one's row up to the way to the second one's,
 * as one block. All 0: has to be looked at. */
struct translated_edge {
	uint32_t row; /* + 1 */
	uint32_t next;
	uint32_t number; /* of the space, + 1 */
	uint32_t n;
};
#define EDGE_BITS 18

struct translated_program {
	struct translated_rows *rows;
	struct step_space *space;
	VEC(struct translated_fast) fast;
	uint32_t generation, n_forgotten; /* of the space, for which `fast` holds */
	struct translated_edge *edges;	  /* 1 << EDGE_BITS of them, by translated_edge_place() */
	struct map joined;		  /* a row, its last one << 32: number of the space, + 1 */
};

#define WORDS_MAX 5 /* behind a word that is no block */

/* A system call that a signal has interrupted, and that the trace has as far: it is made again, perhaps by another one. */
enum call_state { CALL_NONE, CALL_AGAIN, CALL_OTHERWISE };

struct translated_thread {
	struct step_track *track;
	bool is_wanted;	   /* --threads */
	bool is_in;	   /* its steps and marks are wanted, and come */
	bool is_marked_in; /* the trace says so; false in code that --user-code does not want */
	bool is_out;	   /* there are enough (--max): nothing of it is recorded any more */
	enum call_state call;
	bool has_stood;	 /* since then, with its whole process: it has not made the call again */
	bool skips_call; /* it was made by the system call whose end comes next */
	/* The block that was begun last, until it is known how far it was executed. */
	bool has_pending;
	struct translated_fast pending;
	uint32_t pending_row, pending_generation;
	bool is_left; /* TRANSLATE_WORD_LEFT has come: rows behind the pending one were not begun */
	uint64_t rounds[STEP_BLOCK_INSNS_MAX]; /* of its repeated string instructions */
	unsigned n_rounds;
	uint64_t repeats_before;
	/* A word that is no block, and those behind it so far. */
	uint32_t kind, words[WORDS_MAX];
	unsigned n_words, n_wanted;
	struct step_mark given; /* a signal; a 0: none */
	uint64_t exec_call;	/* number of the system call that it becomes another program by */
};

static inline uint32_t translated_edge_place(uint32_t row, uint32_t next)
{
	return (row * 0x9e3779b1u + next * 0x85ebca6bu) >> (32 - EDGE_BITS);
}

struct translate_engine {
	struct step_session *s;
	struct translate_tracer tracer;
	bool has_wanted_thread;
	uint64_t taken_ns;
};

int translate_engine_run(struct step_session *s, struct err *err);
int translate_engine_accepts(const struct step_session *s, struct err *err);
const char *translate_engine_hindrance(void);

/* --- translate_rows.c ------------------------------------------------------------------------- */

struct translated_rows *translated_rows_new(struct translated_rows *parent, uint32_t n_of_parent);
void translated_rows_drop(struct translated_rows *r); /* NULL too */
void translated_rows_add(struct translate_engine *e, struct traced_program *p, uint32_t first,
	const struct translate_block *rows, size_t n);
/* NULL: there is none of this number. */
const struct translated_row *translated_rows_get(const struct translated_rows *r, uint32_t number);
/* Nothing that was found out of its rows holds any more, or has been found out. */
void translated_program_begin(struct translated_program *p);
/* How many rows behind it are implied by it. */
uint32_t translated_rows_implied(const struct translated_rows *r, uint32_t number);
/* The last one of the row and those that it implies that was executed, when `pc` came next. UINT32_MAX: it cannot. */
uint32_t translated_rows_left(const struct translated_rows *r, uint32_t number, uint64_t pc);
/* The rows up to this one, which need no look, as one block: its number in the space, + 1; 0: they cannot be one. */
uint32_t translated_join(
	struct translated_program *p, struct step_space *space, uint32_t first, uint32_t last);
/* What stands for the row now: its code is what is executed, and the trace will have it. NULL: that is not known. */
const struct translated_fast *translated_look(struct translate_engine *e, struct traced_program *p,
	struct translated_thread *d, uint32_t row);

/* --- translate_words.c ------------------------------------------------------------------------ */

void translated_take(
	struct translate_engine *e, struct traced_thread *t, const uint32_t *words, size_t n);
/* The block that was begun last was executed, but for so many instructions. */
void translated_settle(struct translate_engine *e, struct translated_thread *d, uint32_t rest);
/* It stands behind a system call that is to be made again; what it wrote before was taken. */
void translated_interrupted(
	struct translate_engine *e, struct translated_thread *d, uint64_t number, int64_t result);
/* Rows up to this one, which the pending one implies, were executed; but for its own, which is pending then. */
void translated_go_on_to(struct translate_engine *e, struct traced_thread *t, uint32_t row);
/* Nobody knows which of the rows that the pending one implies were begun. */
bool translated_is_open(const struct traced_thread *t);
/* The recording of the thread ends here. */
void translated_mark_out(
	struct translate_engine *e, struct translated_thread *d, enum step_why why);

#endif
