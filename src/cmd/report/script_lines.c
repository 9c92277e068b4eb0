/* SPDX-License-Identifier: MIT */
#include "cmd/report/script_lines.h"

#include <stdlib.h>
#include <string.h>

#include "trace/reader.h"

static const char *string_of(const struct report *report, uint64_t id)
{
	return id < trace_reader_n_strings(report->reader)
		       ? trace_reader_string(report->reader, (uint32_t)id)
		       : "";
}

static bool line_of(
	const struct report *report, const struct trace_record *record, struct script_line *line)
{
	size_t n_numbers = record->minor == RECORD_PROBE_LINE ? 4 : 3;
	uint64_t n[4];

	if (record->major != RECORD_MAJOR_PROBE ||
		(record->minor != RECORD_PROBE_LINE && record->minor != RECORD_PROBE_MAP) ||
		trace_record_numbers(report->reader, record, n, n_numbers, NULL) < 0)
		return false;
	*line = (struct script_line){.is_map = record->minor == RECORD_PROBE_MAP,
		.time_ns = record->time > report->profile->start
				   ? record->time - report->profile->start
				   : 0};
	if (line->is_map) {
		line->name = string_of(report, n[0]);
		line->text = string_of(report, n[1]);
		line->json = string_of(report, n[2]);
	} else {
		line->pid = n[0], line->tid = n[1], line->clause = n[2];
		line->text = string_of(report, n[3]);
	}
	return true;
}

static int read_stream(
	struct script_lines *lines, const struct report *report, uint32_t stream, struct err *err)
{
	struct trace_cursor *cursor;
	struct trace_record record;
	struct script_line line;
	int rc = trace_cursor_open(&cursor, report->reader, stream, 0, UINT64_MAX, err);

	if (rc < 0)
		return rc;
	while ((rc = trace_cursor_next(cursor, &record, err)) > 0)
		if (line_of(report, &record, &line) &&
			query_matches(&report->options->query, line.is_map ? line.name : line.text))
			vec_push(lines, line);
	trace_cursor_close(cursor);
	return rc;
}

int script_lines_read(struct script_lines *lines, const struct report *report, struct err *err)
{
	int rc = 0;

	memset(lines, 0, sizeof(*lines));
	for (uint32_t i = 1; rc >= 0 && i < trace_reader_n_streams(report->reader); i++) {
		const struct trace_stream *s = trace_reader_stream(report->reader, i);

		if (s->kind == STREAM_KIND_LIFE && s->number == RECORD_PROBE_STREAM)
			rc = read_stream(lines, report, i, err);
	}
	if (rc < 0)
		vec_release(lines);
	return rc;
}

char *script_line_text(const struct script_line *line)
{
	size_t n = strlen(line->text);

	return mem_strndup(line->text, n && line->text[n - 1] == '\n' ? n - 1 : n);
}
