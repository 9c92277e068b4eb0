/* SPDX-License-Identifier: MIT */
#include "cmd/report/insn_place.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"

void insn_place_get(
	struct insn_place *place, const struct report *report, uint32_t number, bool only_true)
{
	const struct frame_level *last;

	place->insn = steps_insn(report->steps, number);
	place->function = NULL;
	place->file = NULL;
	place->line = 0;
	place->addr_in_image = 0;
	place->names.n = 0;
	if (!number || !place->insn->frame)
		return;
	frame_names_get(report->reader, place->insn->frame, &place->names);
	last = &place->names.v[place->names.n - 1];
	place->addr_in_image = trace_reader_frame(report->reader, place->insn->frame)->addr;
	if (last->has_offset &&
		!(only_true && trace_reader_symbol(report->reader, place->insn->frame)->reason))
		place->function = last;
	if (place->names.v[0].file) {
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
	else if (!f && *place->names.v[place->names.n - 1].image)
		/* The made-up name is that of the function's start. */
		buf_printf(to, "%s+0x%" PRIx64,
			path_base_name(place->names.v[place->names.n - 1].image),
			place->addr_in_image);
	else if (!f)
		buf_put_cstr(to, place->names.v[place->names.n - 1].name);
	else if (*f->image)
		buf_printf(
			to, "%s(%s+0x%" PRIx32 ")", path_base_name(f->image), f->name, f->offset);
	else
		buf_printf(to, "%s+0x%" PRIx32, f->name, f->offset);
}

void insn_place_json(struct json *j, const struct insn_place *place)
{
	const struct frame_levels *names = &place->names;
	const struct frame_level *f = place->function;

	report_json_text(j, "image", names->n ? names->v[names->n - 1].image : NULL);
	json_string(j, "symbol", f ? f->name : NULL);
	json_u64_if(j, "offset", f, f ? f->offset : 0);
	json_string(j, "inlined", names->n > 1 ? names->v[0].name : NULL);
	report_json_text(j, "file", place->file);
	json_u64_if(j, "line", place->line, place->line);
}

bool insn_text_format(
	const struct report *report, char text[X86_TEXT_BYTES], const struct step_insn *insn)
{
	const char *syntax = report->options->syntax;

	return insn && insn->n_bytes &&
	       x86_format_as(syntax && !strcmp(syntax, "intel") ? X86_SYNTAX_INTEL : X86_SYNTAX_ATT,
		       text, (struct span){insn->bytes, insn->n_bytes}, insn->addr, insn->is_64);
}

/* " <memcpy>", " <main+0x1c>": where a direct jump or call goes. */
static void put_target(
	struct buf *to, const struct report *report, const struct step_insn *insn, bool only_true)
{
	uint32_t number = steps_find(report->steps, insn->space, insn->target, UINT32_MAX);
	uint32_t frame = number ? steps_insn(report->steps, number)->frame : 0;
	const struct trace_symbol *symbol =
		frame ? trace_reader_symbol(report->reader, frame) : NULL;
	const struct trace_symbol_level *level;

	if (!symbol || !symbol->n_levels || (only_true && symbol->reason))
		return;
	level = &symbol->levels[symbol->n_levels - 1];
	buf_printf(to, " <%s", trace_reader_string(report->reader, level->name));
	if (level->offset)
		buf_printf(to, "+0x%" PRIx32, level->offset);
	buf_put_u8(to, '>');
}

bool insn_text_put(
	struct buf *to, const struct report *report, const struct step_insn *insn, bool only_true)
{
	char text[X86_TEXT_BYTES];

	if (!insn_text_format(report, text, insn)) {
		buf_put_cstr(to,
			!insn || !insn->n_bytes ? "(code not captured)" : "(not an instruction)");
		return false;
	}
	buf_put_cstr(to, text);
	if (insn->has_target)
		put_target(to, report, insn, only_true);
	return true;
}
