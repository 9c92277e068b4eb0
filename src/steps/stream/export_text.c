/* SPDX-License-Identifier: MIT */
/*
 * Text of executed instructions. What follows the step's number is the same each time an
 * instruction is executed, so it is made once.
 */
#include "steps/stream/step_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arch/x86_format.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/mem.h"

/* What the steps of a thread accessed. The records of it follow the runs, so a cursor of its own is
 * ahead of the one of the steps, by a run at most unless there is nothing more. */
struct access_feed {
	struct step_cursor *cursor; /* NULL: no more, or the trace has none */
	struct step_data_walk walk; /* of the item that the cursor gave last */
	struct step_datum datum;
	bool has_walk, has_datum;
	uint32_t space; /* of the steps that it passed last */
	uint64_t time;	/* of the record that `walk` is in */
};

struct text_out {
	FILE *file;
	const struct trace_reader *reader;
	struct steps *steps;
	const struct step_export_options *options;
	struct step_export_result *result;
	const char **lines; /* by number of instruction; NULL = not made yet */
	struct arena *arena;
	struct buf line;
	struct access_feed accesses;
	uint32_t tid;
};

/* --- the part of a line that stays ----------------------------------------------------------- */

/* Names are from outside; what would break a line or its columns is not shown. */
static void put_name(struct buf *to, const char *name)
{
	for (; *name; name++)
		buf_put_u8(to, (uint8_t)*name < ' ' || *name == 0x7f ? '?' : (uint8_t)*name);
}

/* image(symbol+0xoffset), image(+0xaddress), (symbol+0xoffset), or - when nothing is known */
static void put_place(struct text_out *t, const struct step_insn *insn)
{
	const struct trace_reader *r = t->reader;
	const struct trace_frame *frame = insn ? trace_reader_frame(r, insn->frame) : NULL;
	const struct trace_symbol *symbol =
		frame && insn->frame ? trace_reader_symbol(r, insn->frame) : NULL;
	const struct trace_symbol_level *level = symbol && symbol->n_levels && !symbol->reason
							 ? &symbol->levels[symbol->n_levels - 1]
							 : NULL;

	if (!frame || (!frame->image && !level)) {
		buf_put_u8(&t->line, '-');
		return;
	}
	if (frame->image)
		put_name(&t->line, path_base_name(trace_reader_string(
					   r, trace_reader_image(r, frame->image)->path)));
	buf_put_u8(&t->line, '(');
	if (level)
		put_name(&t->line, trace_reader_string(r, level->name));
	buf_printf(&t->line, "+0x%" PRIx64 ")", level ? level->offset : frame->addr);
}

static void put_insn(struct text_out *t, uint64_t addr, const struct step_insn *insn)
{
	char text[X86_TEXT_BYTES];

	buf_reset(&t->line);
	buf_printf(&t->line, "\t0x%" PRIx64 "\t", addr);
	for (uint8_t i = 0; insn && i < insn->n_bytes; i++)
		buf_printf(&t->line, "%02x", insn->bytes[i]);
	if (!insn || !insn->n_bytes)
		buf_put_u8(&t->line, '-');
	buf_put_u8(&t->line, '\t');
	put_place(t, insn);
	buf_put_u8(&t->line, '\t');
	if (!insn || !insn->n_bytes)
		buf_put_cstr(&t->line, "(code not captured)");
	else if (x86_format(text, (struct span){insn->bytes, insn->n_bytes}, addr, insn->is_64))
		buf_put_cstr(&t->line, text);
	else
		buf_put_cstr(&t->line, "(not an instruction)");
}

/* Valid until the next call, that of a known instruction until the end. */
static const char *line_of(struct text_out *t, const struct step *step)
{
	if (!step->insn) {
		put_insn(t, step->addr, NULL);
		return buf_text(&t->line);
	}
	if (!t->lines[step->insn]) {
		put_insn(t, step->addr, steps_insn(t->steps, step->insn));
		t->lines[step->insn] = arena_strndup(t->arena, (const char *)t->line.p, t->line.n);
	}
	return t->lines[step->insn];
}

/* --- accesses -------------------------------------------------------------------------------- */

static void feed_open(struct access_feed *f, const struct steps *s, uint32_t thread)
{
	memset(f, 0, sizeof(*f));
	/* When it fails the cursor of the steps fails, too, and tells. */
	if (step_cursor_open(&f->cursor, s, thread, NULL) < 0)
		f->cursor = NULL;
}

static void feed_close(struct access_feed *f)
{
	step_cursor_close(f->cursor);
	f->cursor = NULL;
}

/* Whether there is a further datum, which is then in f->datum. */
static bool feed_advance(struct access_feed *f)
{
	struct step_item item;

	f->has_datum = false;
	while (f->cursor && !f->has_datum) {
		if (f->has_walk && step_data_next(&f->walk, &f->datum) > 0) {
			f->has_datum = true;
			break;
		}
		f->has_walk = false;
		if (step_cursor_next(f->cursor, &item) <= 0) {
			feed_close(f);
			break;
		}
		f->time = item.time;
		if (item.kind == STEP_ITEM_STEPS)
			f->space = item.space;
		f->has_walk = item.kind == STEP_ITEM_DATA && step_data_open(&f->walk, item.data);
	}
	return f->has_datum;
}

static void put_number(struct text_out *t, uint64_t number)
{
	char text[48];
	int n = snprintf(text, sizeof(text), "%" PRIu32 "\t%" PRIu64, t->tid, number);

	fwrite(text, 1, (size_t)n, t->file);
}

/* A column of its own, - when nothing is known. */
static void put_where(struct text_out *t)
{
	const struct access_feed *f = &t->accesses;
	struct step_where where;

	buf_reset(&t->line);
	if (steps_where(t->steps, f->space, f->datum.addr, f->time, &where))
		step_where_put(&t->line, t->steps, &where);
	else
		buf_put_u8(&t->line, '-');
	fprintf(t->file, "\t%s\n", buf_text(&t->line));
}

static void put_accesses(struct text_out *t, uint64_t number)
{
	static const char *const words[] = {"", "read", "write", "modify"};
	struct access_feed *f = &t->accesses;

	for (; f->has_datum && f->datum.at < number; feed_advance(f))
		t->result->n_gaps++; /* its step is missing */
	for (; f->has_datum && f->datum.at == number; feed_advance(f)) {
		put_number(t, number);
		fprintf(t->file, "\t%s\t0x%" PRIx64 "\t%u\t", words[f->datum.how & 3],
			f->datum.addr, f->datum.n);
		for (uint8_t i = 0; f->datum.has_value && i < f->datum.n; i++)
			fprintf(t->file, "%02x", f->datum.value[i]);
		if (!f->datum.has_value)
			putc('-', t->file);
		put_where(t);
	}
}

/* --- lines ----------------------------------------------------------------------------------- */

static void put_steps(struct text_out *t, const struct step_item *item)
{
	for (uint32_t i = 0; i < item->n; i++) {
		const struct step *step = &item->steps[i];

		put_number(t, item->first + i);
		fputs(line_of(t, step), t->file);
		if (step->times != 1)
			fprintf(t->file, "\t%" PRIu32, step->times);
		putc('\n', t->file);
		if (t->accesses.has_datum)
			put_accesses(t, item->first + i);
	}
	t->result->n_steps += item->n;
}

static void put_remark(struct text_out *t, uint64_t number, const char *word, const char *text)
{
	put_number(t, number);
	buf_reset(&t->line);
	put_name(&t->line, text);
	fprintf(t->file, "\t%s\t%s\n", word, buf_text(&t->line));
}

static void put_item(struct text_out *t, const struct step_item *item)
{
	struct buf words = {0};

	switch (item->kind) {
	case STEP_ITEM_STEPS:
		put_steps(t, item);
		break;
	case STEP_ITEM_MARK:
		t->options->put_mark(&words, &item->mark, t->reader);
		put_remark(t, item->first, "mark", buf_text(&words));
		t->result->n_gaps += item->mark.kind == STEP_MARK_LOST;
		buf_release(&words);
		break;
	case STEP_ITEM_DATA: /* is behind its steps already */
		break;
	case STEP_ITEM_DAMAGE:
		put_remark(t, item->first, "damage", item->sentence);
		t->result->n_gaps++;
		break;
	}
}

static int put_thread(struct text_out *t, uint32_t thread, struct err *err)
{
	struct step_cursor *cursor;
	struct step_item item;
	int rc = step_cursor_open(&cursor, t->steps, thread, err);

	if (rc < 0)
		return rc;
	t->tid = steps_thread(t->steps, thread)->tid;
	if (trace_reader_has_kind(t->reader, RECORD_MAJOR_STEP, RECORD_STEP_DATA)) {
		feed_open(&t->accesses, t->steps, thread);
		feed_advance(&t->accesses);
	}
	while (!ferror(t->file) && step_cursor_next(cursor, &item) > 0)
		put_item(t, &item);
	for (; t->accesses.has_datum; feed_advance(&t->accesses))
		t->result->n_gaps++;
	feed_close(&t->accesses);
	step_cursor_close(cursor);
	return 0;
}

int export_step_text(const struct trace_reader *r, const struct step_export_options *options,
	FILE *out, struct step_export_result *result, struct err *err)
{
	struct text_out t = {.file = out,
		.reader = r,
		.steps = steps_open(r),
		.options = options,
		.result = result};
	uint32_t *wanted = NULL, n_wanted = 0;
	int rc = step_export_threads(&wanted, &n_wanted, t.steps, options, err);

	*result = (struct step_export_result){0};
	if (rc == 0) {
		result->n_gaps = steps_n_damaged(t.steps, NULL);
		t.lines = mem_calloc(steps_n_insns(t.steps) + (size_t)1, sizeof(*t.lines));
		t.arena = arena_new();
	}
	for (uint32_t i = 0; rc == 0 && i < n_wanted; i++)
		rc = put_thread(&t, wanted[i], err);
	free(wanted);
	free(t.lines);
	arena_free(t.arena);
	buf_release(&t.line);
	steps_close(t.steps);
	return rc;
}
