/* SPDX-License-Identifier: MIT */
#include "cmd/report/steps_lines.h"

#include <stdlib.h>
#include <string.h>

#define SOURCES_MAX 4096 /* files that are kept open */

void step_lines_init(struct step_lines *l, const struct report *report,
	void (*put)(struct buf *to, const struct listed_insn *listed, struct span source))
{
	memset(l, 0, sizeof(*l));
	l->report = report;
	l->put = put;
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

/* The row's text is in l->row. */
static void make(struct step_lines *l, struct step_line *line, const struct step *step)
{
	struct listed_insn listed = {.addr = step->addr, .place = &l->place};
	struct span source = {NULL, 0};

	insn_place_get(&l->place, l->report, step->insn, true);
	if (!step->insn)
		l->place.insn = NULL;
	if (l->place.file && l->place.line) {
		line->file = trace_reader_symbol(l->report->reader, l->place.insn->frame)
				     ->levels[0]
				     .file;
		line->line = l->place.line;
	}
	buf_reset(&l->text);
	listed.is_remark = !insn_text_put(&l->text, l->report, l->place.insn, true);
	listed.text = buf_text(&l->text);
	line->matches = insn_place_matches(&l->place, l->report) ||
			query_matches(&l->report->options->query, listed.text);
	if (l->report->options->source_lines)
		source = step_lines_source(l, line->file, line->line);
	buf_reset(&l->row);
	l->put(&l->row, &listed, source);
	line->n = (uint32_t)l->row.n;
}

const struct step_line *step_lines_get(struct step_lines *l, const struct step *step)
{
	struct step_line *line = &l->lines[step->insn];

	if (!step->insn) {
		memset(&l->passing, 0, sizeof(l->passing));
		make(l, &l->passing, step);
		l->passing.text = buf_text(&l->row);
		return &l->passing;
	}
	if (!line->text) {
		make(l, line, step);
		line->text = arena_strndup(l->arena, (const char *)l->row.p, l->row.n);
	}
	return line;
}
