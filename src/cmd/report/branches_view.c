/* SPDX-License-Identifier: MIT */
#include "cmd/report/branches_view.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "cmd/report/steps_view.h"

/* ---- the pass ---- */

static void note_item(struct loss *loss, const struct step_item *item)
{
	uint64_t n;

	if (item->kind == STEP_ITEM_DAMAGE) {
		loss->is_cut = true;
		loss_add_reason(loss, item->sentence, 1);
	} else if (item->kind == STEP_ITEM_MARK && item->mark.kind == STEP_MARK_LOST) {
		n = item->mark.a > 0 ? (uint64_t)item->mark.a : 1;
		loss->events_lost += n;
		loss_add_reason(loss, "steps that were executed are not in the trace", n);
	}
}

static int walk(struct branch_table *t, struct steps_view *view, struct err *err)
{
	struct steps_source *source = NULL, *last = NULL;
	struct step_item item;
	int rc;

	while ((rc = steps_view_next(view, &source, &item, err)) > 0) {
		if (source != last)
			branch_table_begin_thread(t);
		last = source;
		branch_table_add(t, &item);
		note_item(view->report->loss, &item);
	}
	return rc;
}

int branches_read(struct branch_table *t, const struct report *report, struct err *err)
{
	struct report_options options = *report->options;
	struct report in_turn = *report;
	struct steps_view view;
	int rc;

	options.interleave = false; /* the table follows one thread at a time */
	in_turn.options = &options;
	rc = steps_view_open(&view, &in_turn, err);
	if (rc < 0)
		return rc;
	steps_view_note_opening(report);
	branch_table_init_steps(t, report->steps, report->options->returns);
	rc = walk(t, &view, err);
	steps_view_close(&view);
	loss_sort_reasons(report->loss);
	if (rc < 0)
		branch_table_release(t);
	else
		branch_table_finish_steps(t, report->steps);
	return rc;
}

void branches_print_loss(const struct report *report)
{
	const struct loss *loss = report->loss;
	const char *why;

	if (trace_reader_is_recovered(report->reader, &why))
		fprintf(report->out, "the end of the trace is missing: %s\n", why);
	for (size_t i = 0; i < loss->n_reasons; i++)
		fprintf(report->out, "missing: %s (%" PRIu64 ")\n", loss->reasons[i].phrase,
			loss->reasons[i].n);
}

/* ---- places ---- */

void insn_place_get(struct insn_place *place, const struct report *report, uint32_t number)
{
	const struct frame_level *last;

	place->insn = steps_insn(report->steps, number);
	place->function = NULL;
	place->file = NULL;
	place->line = 0;
	place->names.n = 0;
	if (!number || !place->insn->frame)
		return;
	frame_names_get(report->reader, place->insn->frame, &place->names);
	last = &place->names.v[place->names.n - 1];
	place->function = last->has_offset ? last : NULL;
	if (place->names.v[0].line && place->names.v[0].file) {
		place->file = place->names.v[0].file;
		place->line = place->names.v[0].line;
	}
}

bool insn_place_matches(const struct insn_place *place, const struct report *report)
{
	if (!report->options->query.filter)
		return true;
	for (size_t i = 0; i < place->names.n; i++)
		if (query_matches(&report->options->query, place->names.v[i].name))
			return true;
	return false;
}

void insn_place_put(struct buf *to, const struct insn_place *place)
{
	const struct frame_level *f = place->function;

	if (!place->names.n)
		buf_printf(to, "0x%" PRIx64, place->insn->addr);
	else if (!f)
		buf_put_cstr(to, place->names.v[place->names.n - 1].name);
	else if (*f->image)
		buf_printf(
			to, "%s(%s+0x%" PRIx32 ")", path_base_name(f->image), f->name, f->offset);
	else
		buf_printf(to, "%s+0x%" PRIx32, f->name, f->offset);
}

static enum x86_syntax syntax_of(const struct report *report)
{
	const char *syntax = report->options->syntax;

	return syntax && !strcmp(syntax, "intel") ? X86_SYNTAX_INTEL : X86_SYNTAX_ATT;
}

static bool format(
	const struct report *report, char text[X86_TEXT_BYTES], const struct step_insn *insn)
{
	return insn->n_bytes &&
	       x86_format_as(syntax_of(report), text, (struct span){insn->bytes, insn->n_bytes},
		       insn->addr, insn->is_64);
}

static void put_target(struct buf *to, const struct report *report, const struct step_insn *insn)
{
	uint32_t number = steps_find(report->steps, insn->space, insn->target, UINT32_MAX);
	const struct trace_symbol *symbol = NULL;
	const struct trace_symbol_level *level;

	if (number && steps_insn(report->steps, number)->frame)
		symbol = trace_reader_symbol(
			report->reader, steps_insn(report->steps, number)->frame);
	if (!symbol || !symbol->n_levels)
		return;
	level = &symbol->levels[symbol->n_levels - 1];
	buf_printf(to, " <%s", trace_reader_string(report->reader, level->name));
	if (level->offset)
		buf_printf(to, "+0x%" PRIx32, level->offset);
	buf_put_u8(to, '>');
}

void insn_text_put(struct buf *to, const struct report *report, const struct step_insn *insn)
{
	char text[X86_TEXT_BYTES];

	if (!format(report, text, insn)) {
		buf_put_cstr(to, "(code not captured)");
		return;
	}
	buf_put_cstr(to, text);
	if (insn->has_target)
		put_target(to, report, insn);
}

void insn_place_json(struct json *j, const struct report *report, const struct insn_place *place)
{
	const struct frame_levels *names = &place->names;
	const struct frame_level *f = place->function;
	char text[X86_TEXT_BYTES];

	json_u64(j, "address", place->insn->addr);
	report_json_text(j, "image", names->n ? names->v[names->n - 1].image : NULL);
	json_string(j, "symbol", f ? f->name : NULL);
	report_json_measured(j, "offset", f, f ? f->offset : 0);
	json_string(j, "inlined", names->n > 1 ? names->v[0].name : NULL);
	report_json_text(j, "file", place->file);
	report_json_measured(j, "line", place->line, place->line);
	json_string(j, "text", format(report, text, place->insn) ? text : NULL);
}
