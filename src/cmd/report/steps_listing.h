/* SPDX-License-Identifier: MIT */
/*
 * A listing of steps as it is written: rows go through the filter and the limit to a form (text or
 * JSON), which writes them.
 *
 *   steps_view (items) --> [steps_folding] --> listing_* --> steps_text or steps_json
 */
#ifndef WEIR_CMD_REPORT_STEPS_LISTING_H
#define WEIR_CMD_REPORT_STEPS_LISTING_H

#include "cmd/report/rows.h"
#include "cmd/report/steps_lines.h"
#include "cmd/report/steps_view.h"

#define LISTING_DEPTH_MAX 16 /* of loops in loops */

/* Of the columns of text. */
#define STEP_WIDTH    10
#define ADDRESS_WIDTH 14
#define WHERE_WIDTH   36
#define LINE_WIDTH    18

struct listing;

struct listing_loop {
	uint64_t first; /* number of the first step of the first round */
	uint64_t times;
	uint64_t n_steps; /* of one round */
	bool is_shown;
};

struct listing_form {
	void (*thread)(struct listing *l); /* rows of l->source follow */
	void (*step)(struct listing *l, uint64_t number, const struct step *step,
		const struct step_line *line);
	void (*mark)(struct listing *l, uint64_t at, const struct step_mark *mark);
	void (*damage)(struct listing *l, uint64_t at, const char *sentence);
	void (*loop)(struct listing *l, unsigned depth, const struct listing_loop *loop);
	void (*put)(struct buf *to, const struct listed_insn *listed, struct span source);
};
extern const struct listing_form listing_text, listing_json;

struct listing {
	const struct report *report;
	const struct listing_form *form;
	struct steps_view view;
	struct step_lines lines;
	struct steps_source *source; /* whose rows these are */
	struct steps_source *shown;  /* whose head was written last */
	uint64_t time;		     /* of the item */
	bool has_time;		     /* not of rows that were folded */
	uint64_t n_rows;
	bool is_full; /* the limit is reached */
	/* That the row is in, outermost first; the row of a loop is written before the first in it. */
	struct listing_loop loops[LISTING_DEPTH_MAX];
	unsigned depth;
	struct rows rows; /* around them; for forms: */
	struct buf row, head;
	uint32_t file, line; /* of the source line that was shown last */
};

/* Rows; they do nothing when the filter does not want them or the limit is reached. */
void listing_step(struct listing *l, uint64_t number, const struct step *step);
void listing_mark(struct listing *l, uint64_t at, const struct step_mark *mark);
void listing_damage(struct listing *l, uint64_t at, const char *sentence);

/* Right-aligned; there are millions of them. */
void listing_put_number(struct buf *b, uint64_t number, size_t width);

/* --- folding --- */

struct steps_folding;
struct steps_folding *steps_folding_new(struct listing *l);
void steps_folding_free(struct steps_folding *f);
void steps_folding_step(struct steps_folding *f, uint64_t number, const struct step *step);
void steps_folding_mark(struct steps_folding *f, uint64_t at, const struct step_mark *mark);
/* Writes all that is held back. */
void steps_folding_flush(struct steps_folding *f);

#endif
