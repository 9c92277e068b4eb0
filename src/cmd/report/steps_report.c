/* SPDX-License-Identifier: MIT */
/*
 * The listing of executed instructions. It streams: what is held is one item of each thread, the
 * text of each instruction that was shown, and with --fold the window in which loops are found.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/report/steps_listing.h"
#include "steps/read/step_mark_words.h"

/* ---- rows ---- */

static bool is_over(struct listing *l)
{
	uint64_t limit = l->report->options->query.limit;

	l->is_full |= limit && l->n_rows >= limit;
	return l->is_full;
}

/* What is due in front of a row: the thread's head, the loops that it is in. */
static bool begin(struct listing *l)
{
	if (is_over(l))
		return false;
	if (l->shown != l->source) {
		l->form->thread(l);
		l->shown = l->source;
		l->file = l->line = 0;
	}
	for (unsigned i = 0; i < l->depth; i++)
		if (!l->loops[i].is_shown) {
			l->form->loop(l, i, &l->loops[i]);
			l->loops[i].is_shown = true;
		}
	l->n_rows++;
	return true;
}

void listing_step(struct listing *l, uint64_t number, const struct step *step)
{
	const struct step_line *line = step_lines_get(&l->lines, step);

	if (line->matches && begin(l))
		l->form->step(l, number, step, line);
}

void listing_mark(struct listing *l, uint64_t at, const struct step_mark *mark)
{
	bool is_wanted = true;

	if (l->report->options->query.filter) {
		buf_reset(&l->row);
		step_mark_put_words(&l->row, mark, l->report->reader);
		is_wanted = query_matches(&l->report->options->query, buf_text(&l->row));
	}
	if (is_wanted && begin(l))
		l->form->mark(l, at, mark);
}

void listing_damage(struct listing *l, uint64_t at, const char *sentence)
{
	if (begin(l))
		l->form->damage(l, at, sentence);
}

/* ---- items ---- */

static void list_item(
	struct listing *l, struct steps_folding *folding, const struct step_item *item)
{
	steps_view_note_item(l->report->loss, item);
	switch (item->kind) {
	case STEP_ITEM_STEPS:
		for (uint32_t i = 0; i < item->n && !l->is_full; i++)
			if (folding)
				steps_folding_step(folding, item->first + i, &item->steps[i]);
			else
				listing_step(l, item->first + i, &item->steps[i]);
		break;
	case STEP_ITEM_MARK:
		if (folding)
			steps_folding_mark(folding, item->first, &item->mark);
		else
			listing_mark(l, item->first, &item->mark);
		break;
	case STEP_ITEM_DAMAGE:
		if (folding)
			steps_folding_flush(folding);
		listing_damage(l, item->first, item->sentence);
		break;
	case STEP_ITEM_DATA: /* shown below its steps */
		break;
	}
}

static int walk(struct listing *l, struct steps_folding *folding, struct err *err)
{
	struct steps_source *source = NULL;
	struct step_item item;
	int rc;

	while (!is_over(l) && (rc = steps_view_next(&l->view, &source, &item, err)) != 0) {
		if (rc < 0)
			return rc;
		if (folding && source != l->source)
			steps_folding_flush(folding);
		l->source = source;
		l->time = item.time;
		list_item(l, folding, &item);
	}
	if (folding)
		steps_folding_flush(folding);
	return 0;
}

static const struct column columns[] = {
	{"step", "Step", COLUMN_WIDTH(STEP_WIDTH)},
	{"address", "Address", COLUMN_LEFT | COLUMN_WIDTH(ADDRESS_WIDTH)},
	{"where", "Where", COLUMN_LEFT | COLUMN_WIDTH(WHERE_WIDTH)},
	{"line", "Line", COLUMN_LEFT | COLUMN_WIDTH(LINE_WIDTH)},
	{"text", "Instruction", 0},
	{0},
};

int steps_report(const struct report *report, struct err *err)
{
	const struct listing_form *form = report->options->json ? &listing_json : &listing_text;
	struct steps_folding *folding = NULL;
	struct listing *l = mem_zalloc(sizeof(*l));
	int rc = steps_view_open(&l->view, report, err);

	if (rc < 0) {
		free(l);
		return rc;
	}
	l->report = report;
	l->form = form;
	l->has_time = !report->options->fold;
	steps_view_note_opening(report);
	step_lines_init(&l->lines, report, form->put);
	if (report->options->fold)
		folding = steps_folding_new(l);
	rows_begin(&l->rows, report, "steps", steps_total(report->steps));
	rows_open(&l->rows, "rows", columns);
	rc = walk(l, folding, err);
	loss_sort_reasons(report->loss);
	rows_end_plain(&l->rows);
	steps_folding_free(folding);
	step_lines_release(&l->lines);
	steps_view_close(&l->view);
	buf_release(&l->row);
	buf_release(&l->head);
	free(l);
	return rc;
}
