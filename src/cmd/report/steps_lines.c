/* SPDX-License-Identifier: MIT */
#include "cmd/report/steps_lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SOURCES_MAX 4096 /* files that are kept open */

void step_lines_init(struct step_lines *l, const struct report *report,
	void (*put)(struct buf *to, const struct listed_insn *place, struct span source))
{
	const char *syntax = report->options->syntax;

	memset(l, 0, sizeof(*l));
	l->report = report;
	l->put = put;
	l->syntax = syntax && !strcmp(syntax, "intel") ? X86_SYNTAX_INTEL : X86_SYNTAX_ATT;
	l->lines = mem_calloc(steps_n_insns(report->steps) + (size_t)1, sizeof(*l->lines));
	l->arena = arena_new();
}

void step_lines_release(struct step_lines *l)
{
	for (size_t i = 0; i < l->sources.n; i++) {
		source_text_release(l->sources.v[i]);
		free(l->sources.v[i]);
	}
	vec_release(&l->sources);
	map_release(&l->files);
	buf_release(&l->text);
	buf_release(&l->row);
	arena_free(l->arena);
	free(l->lines);
}

struct span step_lines_source(struct step_lines *l, uint32_t file, uint32_t line)
{
	uint64_t *slot = file ? map_ensure(&l->files, file, NULL) : NULL;
	const char *path;

	if (!slot || (!*slot && l->sources.n == SOURCES_MAX))
		return (struct span){NULL, 0};
	if (!*slot) {
		path = trace_reader_string(l->report->reader, file);
		vec_push(&l->sources, mem_zalloc(sizeof(**l->sources.v)));
		*slot = l->sources.n;
		source_text_open(
			l->sources.v[*slot - 1], path, trace_reader_name(l->report->reader));
	}
	return source_text_line(l->sources.v[*slot - 1], line);
}

/* " <memcpy>", " <main+0x1c>": where a direct jump or call goes. */
static void put_target(struct step_lines *l, const struct step_insn *insn)
{
	uint32_t number = steps_find(l->report->steps, insn->space, insn->target, UINT32_MAX);
	const struct step_insn *target = number ? steps_insn(l->report->steps, number) : NULL;
	const struct trace_symbol *symbol =
		target && target->frame ? trace_reader_symbol(l->report->reader, target->frame)
					: NULL;
	const struct trace_symbol_level *level;

	if (!symbol || !symbol->n_levels || symbol->reason)
		return;
	level = &symbol->levels[symbol->n_levels - 1];
	buf_printf(&l->text, " <%s", trace_reader_string(l->report->reader, level->name));
	if (level->offset)
		buf_printf(&l->text, "+0x%" PRIx32, level->offset);
	buf_put_u8(&l->text, '>');
}

static void describe(struct step_lines *l, struct listed_insn *place, struct step_line *line)
{
	const struct step_insn *insn = place->insn;
	char text[X86_TEXT_BYTES];

	buf_reset(&l->text);
	if (insn && insn->frame) {
		const struct trace_symbol *symbol =
			trace_reader_symbol(l->report->reader, insn->frame);

		frame_names_get(l->report->reader, insn->frame, &l->names);
		place->names = &l->names;
		place->is_named = l->names.v[l->names.n - 1].has_offset && !symbol->reason;
		place->file = l->names.v[0].line ? l->names.v[0].file : NULL;
		place->line = place->file ? l->names.v[0].line : 0;
		line->file = place->file ? symbol->levels[0].file : 0;
		line->line = place->line;
	}
	place->is_remark = true;
	if (!insn || !insn->n_bytes) {
		buf_put_cstr(&l->text, "(code not captured)");
	} else if (x86_format_as(l->syntax, text, (struct span){insn->bytes, insn->n_bytes},
			   insn->addr, insn->is_64)) {
		place->is_remark = false;
		buf_put_cstr(&l->text, text);
		if (insn->has_target)
			put_target(l, insn);
	} else {
		buf_put_cstr(&l->text, "(not an instruction)");
	}
	place->text = buf_text(&l->text);
}

static bool matches(const struct step_lines *l, const struct listed_insn *place)
{
	if (!l->report->options->query.filter)
		return true;
	for (size_t i = 0; place->names && i < place->names->n; i++)
		if (query_matches(&l->report->options->query, place->names->v[i].name))
			return true;
	return query_matches(&l->report->options->query, place->text);
}

/* The row's text is in l->row. */
static void make(
	struct step_lines *l, struct step_line *line, uint64_t addr, const struct step_insn *insn)
{
	struct listed_insn place = {.addr = addr, .insn = insn};
	struct span source = {NULL, 0};

	describe(l, &place, line);
	line->matches = matches(l, &place);
	if (l->report->options->source_lines)
		source = step_lines_source(l, line->file, line->line);
	buf_reset(&l->row);
	l->put(&l->row, &place, source);
	line->n = (uint32_t)l->row.n;
}

const struct step_line *step_lines_get(struct step_lines *l, const struct step *step)
{
	struct step_line *line = &l->lines[step->insn];

	if (!step->insn) {
		memset(&l->passing, 0, sizeof(l->passing));
		make(l, &l->passing, step->addr, NULL);
		l->passing.text = buf_text(&l->row);
		return &l->passing;
	}
	if (!line->text) {
		make(l, line, step->addr, steps_insn(l->report->steps, step->insn));
		line->text = arena_strndup(l->arena, (const char *)l->row.p, l->row.n);
	}
	return line;
}
