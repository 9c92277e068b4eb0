/* SPDX-License-Identifier: MIT */
/* The listing of steps as lines of text. Columns are as wide as usual values, since the steps
 * stream by. */
#include <inttypes.h>

#include "base/file.h"
#include "cmd/report/steps_listing.h"
#include "steps/read/step_mark_words.h"

/* ---- the part that is kept ---- */

static void pad(struct buf *to, size_t from, size_t width)
{
	while (to->n - from < width)
		buf_put_u8(to, ' ');
	buf_put_cstr(to, "  ");
}

static void put_line(struct buf *to, const struct listed_insn *listed, struct span source)
{
	const struct insn_place *place = listed->place;
	size_t start = to->n;

	(void)source; /* a line of its own */
	buf_printf(to, "0x%" PRIx64, listed->addr);
	pad(to, start, ADDRESS_WIDTH);
	start = to->n;
	if (place->names.n)
		insn_place_put(to, place);
	else
		buf_put_u8(to, '.');
	pad(to, start, WHERE_WIDTH);
	start = to->n;
	if (place->file && place->line)
		buf_printf(to, "%s:%" PRIu32, path_base_name(place->file), place->line);
	else if (place->file)
		buf_put_cstr(to, path_base_name(place->file));
	else
		buf_put_u8(to, '.');
	pad(to, start, LINE_WIDTH);
	buf_put_cstr(to, listed->text);
}

/* ---- rows ---- */

void listing_put_number(struct buf *b, uint64_t number, size_t width)
{
	char text[TABLE_NUMBER_BYTES];
	const char *digits = table_digits(text, number);
	size_t n = (size_t)(text + TABLE_NUMBER_BYTES - 1 - digits);

	for (size_t i = n; i < width; i++)
		buf_put_u8(b, ' ');
	buf_put(b, digits, n);
}

/* Returns the width that is left for the number: bars take from its blanks. */
static size_t put_bars(struct listing *l, unsigned depth)
{
	buf_reset(&l->row);
	for (unsigned i = 0; i < depth; i++)
		buf_put_cstr(&l->row, "| ");
	return l->row.n < STEP_WIDTH ? STEP_WIDTH - l->row.n : 0;
}

static void write_row(struct listing *l)
{
	buf_put_u8(&l->row, '\n');
	fwrite_unlocked(l->row.p, 1, l->row.n, l->report->out);
}

/* A row that has no number. */
static void put_margin(struct listing *l, unsigned depth)
{
	for (size_t n = put_bars(l, depth) + 2; n; n--)
		buf_put_u8(&l->row, ' ');
}

static void text_thread(struct listing *l)
{
	const struct step_thread *t = l->source->thread;

	fprintf(l->report->out, "thread %" PRIu32 "_%" PRIu32 "%s%s", t->pid, t->tid,
		*t->name ? " " : "", t->name);
	if (l->report->options->interleave)
		fprintf(l->report->out, ", up to %" PRIu64 " ns", l->time - l->view.start);
	fputc('\n', l->report->out);
}

/* The text of the source line when it is another one than before. */
static void write_source(struct listing *l, const struct step_line *line)
{
	struct span text;

	if (!line->file || (line->file == l->file && line->line == l->line))
		return;
	l->file = line->file;
	l->line = line->line;
	text = step_lines_source(&l->lines, line->file, line->line);
	if (!text.n)
		return;
	put_margin(l, l->depth);
	buf_printf(&l->row, "%s:%" PRIu32 ": ",
		path_base_name(trace_reader_string(l->report->reader, line->file)), line->line);
	buf_put(&l->row, text.p, text.n);
	write_row(l);
}

static void write_datum(struct listing *l, const struct step_datum *d)
{
	static const char *const hows[] = {"accesses", "reads", "writes", "changes"};
	struct step_where where;

	put_margin(l, l->depth);
	buf_printf(&l->row, "  %s %u at 0x%" PRIx64, hows[d->how & 3], d->n, d->addr);
	if (steps_view_where(&l->view, l->source, d, &where)) {
		buf_put_u8(&l->row, ' ');
		step_where_put(&l->row, l->report->steps, &where);
	}
	if (d->has_value && d->n) {
		/* The byte of the highest address first: as a number is written. */
		buf_put_cstr(&l->row, ": 0x");
		for (unsigned i = d->n; i-- > 0;)
			buf_printf(&l->row, "%02x", d->value[i]);
	}
	write_row(l);
}

static void text_step(
	struct listing *l, uint64_t number, const struct step *step, const struct step_line *line)
{
	struct step_datum datum;

	if (l->report->options->source_lines)
		write_source(l, line);
	listing_put_number(&l->row, number, put_bars(l, l->depth));
	buf_put(&l->row, "  ", 2);
	buf_put(&l->row, line->text, line->n);
	if (step->times > 1) {
		buf_put_cstr(&l->row, "  x ");
		listing_put_number(&l->row, step->times, 0);
	}
	write_row(l);
	if (l->view.has_data)
		while (steps_view_datum(l->source, number, &datum))
			write_datum(l, &datum);
}

static void text_mark(struct listing *l, uint64_t at, const struct step_mark *mark)
{
	(void)at;
	put_margin(l, l->depth);
	buf_put_cstr(&l->row, "-- ");
	step_mark_put_words(&l->row, mark, l->report->reader);
	write_row(l);
}

static void text_damage(struct listing *l, uint64_t at, const char *sentence)
{
	(void)at;
	put_margin(l, l->depth);
	buf_printf(&l->row, "-- damage: %s", sentence);
	write_row(l);
}

static void text_loop(struct listing *l, unsigned depth, const struct listing_loop *loop)
{
	put_margin(l, depth);
	buf_printf(&l->row, "x %" PRIu64 ": %" PRIu64 " step%s, %" PRIu64 " in all", loop->times,
		loop->n_steps, loop->n_steps == 1 ? "" : "s", loop->n_steps * loop->times);
	write_row(l);
}

const struct listing_form listing_text = {
	.thread = text_thread,
	.step = text_step,
	.mark = text_mark,
	.damage = text_damage,
	.loop = text_loop,
	.put = put_line,
};
